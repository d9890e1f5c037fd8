"""`tailhook hook` and `tailhook hook-command`."""

import argparse
import json
import sys

from tailhook.cli.arguments import describe_unknown
from tailhook.cli.install import prepare_daemon
from tailhook.cli.output import CommandError, Commands, UsageError, command, print_lines
from tailhook.hook.answer import describe, plain
from tailhook.hook.event import load_config
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import project_root
from tailhook.hosts import NAMES as HOSTS
from tailhook.install.client import NoClientError, prepare_client
from tailhook.install.command import hook_command, reporting_machines


def add(commands: Commands) -> None:
    """Declare the group's commands."""
    # `tailhook hook` itself never comes here (tailhook.cli.main): a host waits for it.
    parser = command(
        commands, "hook", lambda arguments: None, "answer one hook event", "tailhook hook idle < payload.json"
    )
    parser.add_argument(
        "machines", nargs="?", metavar="MACHINES", help=f"machine names, separated by commas: {', '.join(MACHINES)}"
    )
    parser.add_argument("--event", metavar="NAME", help="the event, if the payload does not name it")
    parser.add_argument("--exit", choices=("0", "2"), help=f"the exit code of a block (default: {exit_codes()})")
    parser.add_argument("--announce", action="store_true", help="notify the user when a loop ends")
    parser.add_argument(
        "--host",
        choices=HOSTS,
        help="the agent host that sends the payload and reads the answer (default: claude-code)",
    )

    parser = command(
        commands,
        "hook-command",
        print_hook_command,
        "print the argv of the fastest form of `tailhook hook`, as a JSON array",
        "tailhook hook-command idle",
    )
    parser.add_argument(
        "machines", nargs="?", metavar="MACHINES", help=f"machine names, separated by commas: {', '.join(MACHINES)}"
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--warm", action="store_true", help="print the native client's command; fail if it does not work"
    )
    forms.add_argument("--cold", action="store_true", help="print the command that starts Python, without a pool")


def exit_codes() -> str:
    """Return the exit codes of a block, by machine, as a help text."""
    two = [name for name, machine in MACHINES.items() if machine.get("exit_code") == 2]
    return f"{' and '.join(two)}: 2, others: 0"


def print_hook_command(arguments: argparse.Namespace) -> None:
    """Print the argv for a host, and write the native client that it names.

    If it asks the plates machine, also write the file from which hooks start the daemon.
    """
    words = arguments.machines
    unknown = [name for name in words.split(",") if name not in MACHINES] if words else []
    if unknown:
        raise UsageError(describe_unknown("machine", unknown, MACHINES))
    if reporting_machines(words.split(",") if words else configured_machines(load_config(project_root({})))):
        try:
            notes = prepare_daemon()
        except OSError as error:
            notes = [f"Hooks cannot start the daemon: {plain(describe(error))}"]
        sys.stderr.writelines(f"tailhook: {note}\n" for note in notes)
    print_lines(json.dumps(hook_command(words, "" if arguments.cold else client_if_it_works(arguments.warm))))


def client_if_it_works(is_needed: bool) -> str:
    """Return the path of the native client; "" and a line on stderr if it does not work here.

    Raises CommandError if it is needed.
    """
    try:
        return prepare_client()
    except NoClientError as error:
        if is_needed:
            raise CommandError(f"the warm form does not work here: {plain(str(error))}") from None
        sys.stderr.write(f"tailhook: this is the cold form, because {plain(str(error))}.\n")
        return ""
