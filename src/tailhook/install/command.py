"""The argv of the fast forms of `tailhook hook`, and how to recognize them in a hooks file."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import tailhook.hook
from tailhook.hook.machines import MACHINES, machines_with
from tailhook.pool.installation import CLIENT_FILE, POOLS, real_interpreter

ENTRY = "/tailhook/hook/entry.py"


def hook_command(machines: str | None = None, client: str = "") -> list[str]:
    """Return the argv of a hook: the client, or the real interpreter, isolated, without `site`, and the entry file.

    machines: names, comma-separated; None for the configured ones.
    client: the path of the native client, "" for the cold form.
    """
    if client:
        return [client, "hook", *([machines] if machines else [])]
    entry = Path(str(tailhook.hook.__file__)).with_name("entry.py")
    return [real_interpreter(), "-I", "-S", str(entry), *([machines] if machines else [])]


def shell_command(hook: object, members: Sequence[str] = ("command",)) -> str:
    """Return the shell command of a hook, or the program of one in exec form; "" if it has none.

    hook: an entry of a hooks file.
    members: the members that may have it.
    """
    found = [hook.get(name) for name in members] if isinstance(hook, Mapping) else []
    return next((command for command in found if isinstance(command, str)), "")


def argv_of(hook: object, members: Sequence[str] = ("command",)) -> list[str]:
    """Return the argv of a hook in exec form or shell form; [] for anything else.

    hook: an entry of a hooks file.
    members: the members that may have the command.
    """
    command = shell_command(hook, members)
    if isinstance(hook, Mapping) and isinstance(arguments := hook.get("args"), list):
        return [command, *map(str, arguments)] if command else []
    try:
        return shlex.split(command)
    except ValueError:  # an open quotation mark
        return []


def is_ours(argv: Sequence[str]) -> bool:
    """Return whether this argv comes from `tailhook install` or `tailhook hook-command`."""
    return any(word.endswith(ENTRY) for word in argv) or bool(client_of(argv))


def client_of(argv: Sequence[str]) -> str:
    """Return the path of the native client that an argv runs, "" if it runs none."""
    program = argv[0] if argv else ""
    folder, _, name = program.rpartition("/")
    return program if name == CLIENT_FILE and folder.rpartition("/")[0].endswith(f"/tailhook/{POOLS}") else ""


def is_tailhook(argv: Sequence[str]) -> bool:
    """Return whether an argv runs tailhook in any form: also as `tailhook hook`, or from the plugin."""
    return is_ours(argv) or any(
        word.rpartition("/")[2] == "tailhook" and argv[at + 1 : at + 2] == ["hook"] for at, word in enumerate(argv)
    )


def machines_of(argv: Sequence[str]) -> list[str] | None:
    """Return the machines in a hook's argv; None if it leaves them to the configuration."""
    named = {name for word in argv if not word.startswith("-") for name in word.split(",")}
    return [name for name in MACHINES if name in named] or None


def reporting_machines(machines: Sequence[str]) -> list[str]:
    """Return the machines that report events to the board."""
    return [name for name in machines_with("reports") if name in machines]
