"""`tailhook hook` and `tailhook hook-command`."""

import argparse
import json
import os
import sys
from pathlib import Path

import tailhook.hook
from tailhook.cli.output import Commands, UsageError, command, say
from tailhook.hook.process import MACHINES


def add(commands: Commands) -> None:
    """Declare the group's commands."""
    # `tailhook hook` itself never comes here (tailhook.cli.main): a host waits for it.
    parser = command(
        commands, "hook", lambda arguments: None, "answer one hook event", "tailhook hook idle < payload.json"
    )
    parser.add_argument("machines", nargs="?", metavar="MACHINES", help=f"comma-separated, of: {', '.join(MACHINES)}")
    parser.add_argument("--event", metavar="NAME", help="the event, when the payload does not name it")
    parser.add_argument("--exit", choices=("0", "2"), help="the exit code of a block (idle: 2)")
    parser.add_argument("--announce", action="store_true", help="tell the user when a loop ends")
    parser.add_argument("--host", metavar="NAME", help="the agent host (claude-code)")

    parser = command(
        commands,
        "hook-command",
        print_hook_command,
        "print the argv of the fastest form of `tailhook hook`, as a JSON array",
        "tailhook hook-command idle",
    )
    parser.add_argument("machines", nargs="?", metavar="MACHINES", help=f"comma-separated, of: {', '.join(MACHINES)}")


def print_hook_command(arguments: argparse.Namespace) -> None:
    """Print the argv that a host should run."""
    say(json.dumps(hook_command(arguments.machines)))


def hook_command(machines: str | None) -> list[str]:
    """The argv of the fastest form: the real interpreter, isolated, without `site`, and the entry file."""
    unknown = [name for name in machines.split(",") if name not in MACHINES] if machines else []
    if unknown:
        raise UsageError(f"no machine is named {', '.join(unknown)}; there are: {', '.join(MACHINES)}")
    entry = Path(str(tailhook.hook.__file__)).with_name("entry.py")
    return [real_interpreter(), "-I", "-S", str(entry), *([machines] if machines else [])]


def real_interpreter() -> str:
    """The interpreter's own file: a virtual environment's link or a version manager's shim costs time at each start."""
    base = getattr(sys, "_base_executable", "") or sys.executable
    return os.path.realpath(base)
