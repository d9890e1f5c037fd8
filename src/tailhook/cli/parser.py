"""The command line: one parser, one small module per command group."""

import argparse
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import cast

from tailhook import __version__
from tailhook.cli.output import CommandGroup, attempt, open_missing_streams, wait_for_readers

# The modules of this folder that declare commands, with their commands, in the order of `tailhook --help`.
COMMAND_MODULES = {
    "hook": ("hook", "hook-command"),
    "loop": ("loop",),
    "ralph": ("ralph",),
    "triage": ("triage",),
    "memory": ("memory",),
    "plates": ("plates", "run"),
    "board": ("board",),
    "scan": ("scan",),
    "usage": ("usage",),
    "explain": ("explain",),
    "anatomy": ("anatomy",),
    "pool": ("pool",),
    "bench": ("bench",),
    "install": ("install", "uninstall"),
    "doctor": ("doctor",),
}


def run_command(argv: Sequence[str]) -> int:
    """Parse and run. If it fails, print one line on stderr and return 1; exit with 2 for wrong usage."""
    open_missing_streams()
    wait_for_readers()
    arguments, rest = parser(modules_of(argv)).parse_known_args(argv)
    if rest and (any(word.startswith("-") for word in rest) or not hasattr(arguments, "add_words")):
        arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        arguments.add_words(arguments, rest)
    return attempt(lambda: arguments.run(arguments))


def modules_of(argv: Sequence[str]) -> Collection[str]:
    """Return the modules that the words need: that of their command if they begin with one, otherwise all.

    To import all of them takes longer than most commands.
    """
    return [name for name, commands in COMMAND_MODULES.items() if argv and argv[0] in commands] or COMMAND_MODULES


def parser(modules: Collection[str] = tuple(COMMAND_MODULES)) -> argparse.ArgumentParser:
    """Return the parser of the commands of some modules."""
    top = argparse.ArgumentParser(
        prog="tailhook",
        description="Answers the hooks of coding agents in milliseconds, however large the transcript.",
        epilog="example:\n  tailhook loop start --max 20 'Make the tests pass.'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"tailhook {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name in modules:
        cast("CommandGroup", import_module(f"tailhook.cli.{name}")).add(commands)
    return top
