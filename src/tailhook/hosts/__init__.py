"""Agent hosts: one module for each, with all differences between hosts.

Inside tailhook, events and fields have Claude Code's names. So its hook needs no translation and imports none of these
modules. The hook of another host imports only that host's module. To add a host, add its module, with the members of
`tailhook.hosts.protocols.TranslatedHost`, and its name to NAMES.
"""

import posix

NAMES = ("claude-code", "codex", "gemini", "cursor", "copilot")
DEFAULT = NAMES[0]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.hosts.protocols import Host, TranslatedHost


def find_host(name: str) -> "Host":
    """Import and return the module of a host.

    name: one of NAMES.
    """
    host: Host = __import__(f"tailhook.hosts.{name.replace('-', '_')}", None, None, ("NAME",))
    return host


def find_translated_host(name: str) -> "TranslatedHost":
    """Import and return the module of another host than Claude Code.

    name: one of NAMES except the first.
    """
    host: TranslatedHost = __import__(f"tailhook.hosts.{name}", None, None, ("NAME",))
    return host


def current_host() -> "Host":
    """Return the host of the agent that runs this process; Claude Code if it is unknown."""
    hosts = [find_host(name) for name in NAMES]
    return next((host for host in hosts if host.SHELL_VARIABLE.encode() in posix.environ), hosts[0])


def current_session() -> str:
    """Return the session of the agent that runs this process, "" without one or if the host does not name it."""
    return posix.environ.get(current_host().SESSION_VARIABLE.encode(), b"").decode("utf-8", "surrogateescape")
