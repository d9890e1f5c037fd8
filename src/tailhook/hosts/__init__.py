"""What differs between agent hosts: a module for each host. Hosts that are like Claude Code share one.

Inside tailhook, events and fields have Claude Code's names. So its hook needs no translation and imports none of these
modules. The hook of another host imports only that host's module. docs/recipes.md describes how to add a host.

A host's module has every member of its protocol, also the empty ones. So `tests/unit/test_architecture.py` finds a
forgotten member. With defaults, it would look like an empty one.
"""

import posix

RECORDED = ("codex", "gemini", "cursor", "copilot", "qwen")  # the library reads their transcripts
CLAUDE_LIKE = ("qwen", "droid", "kimi", "devin")  # the rows of `tailhook.hosts.claude_like`
DEFAULT = "claude-code"
NAMES = (DEFAULT, *RECORDED, "droid", "antigravity", "kimi", "devin")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.hosts.protocols import Host, RecordedHost, TranslatedHost


def find_host(name: str) -> "Host":
    """Import and return a host.

    name: one of NAMES.
    """
    if name != DEFAULT:
        return find_translated_host(name)
    host: Host = __import__("tailhook.hosts.claude_code", None, None, ("NAME",))
    return host


def find_translated_host(name: str) -> "TranslatedHost":
    """Import and return another host than Claude Code.

    name: one of NAMES except the first.
    """
    module = __import__(f"tailhook.hosts.{'claude_like' if name in CLAUDE_LIKE else name}", None, None, ("NAME",))
    host: TranslatedHost = module.HOSTS[name] if name in CLAUDE_LIKE else module
    return host


def find_recorded_host(name: str) -> "RecordedHost":
    """Import and return another host whose transcripts the library reads.

    name: one of RECORDED.
    """
    host: RecordedHost = find_translated_host(name)  # type: ignore[assignment]
    return host


def current_host() -> "Host":
    """Return the host of the agent that runs this process; Claude Code if it is unknown."""
    hosts = [find_host(name) for name in NAMES]
    inside = [host for host in hosts if host.SHELL_VARIABLE.encode() in posix.environ]
    if len(inside) > 1:
        from tailhook.hosts.nesting import innermost_host  # only for an agent in another one's shell

        return innermost_host(inside)
    return inside[0] if inside else hosts[0]


def current_session() -> str:
    """Return the session of the agent that runs this process, "" without one or if the host does not name it."""
    return posix.environ.get(current_host().SESSION_VARIABLE.encode(), b"").decode("utf-8", "surrogateescape")
