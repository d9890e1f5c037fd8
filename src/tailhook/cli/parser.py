"""The command line: one parser, one small module per command group."""

import argparse
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import cast

from tailhook import __version__
from tailhook.cli.arguments import CommandParser
from tailhook.cli.output import (
    CommandGroup,
    accept_any_input,
    attempt,
    open_missing_streams,
    wrap_help,
    write_streams_whole,
)
from tailhook.hook import answer

# By a person's wish: this folder's modules for it, and their commands, in the order of the list that `tailhook` prints.
COMMANDS_BY_WISH: dict[str, dict[str, tuple[str, ...]]] = {
    "Set up and check": {"install": ("install",), "uninstall": ("uninstall",), "doctor": ("doctor",)},
    "Keep an agent at work": {"loop": ("loop",), "ralph": ("ralph",), "triage": ("triage",), "memory": ("memory",)},
    "See every session": {"board": ("board",), "plates": ("plates", "run")},
    "Read transcripts": {"scan": ("scan",), "usage": ("usage",), "explain": ("explain",), "anatomy": ("anatomy",)},
    "Run and measure hooks": {"hook": ("hook", "hook-command"), "pool": ("pool",), "bench": ("bench",)},
}
COMMAND_MODULES = {name: commands for modules in COMMANDS_BY_WISH.values() for name, commands in modules.items()}
HELP_COLUMN = 16  # in the list of all commands, their texts begin here


def run_command(argv: Sequence[str]) -> int:
    """Parse and run. If it fails, print one line on stderr and return 1; exit with 2 for wrong usage."""
    open_missing_streams()
    accept_any_input()
    write_streams_whole()
    top = parser(modules_of(argv))
    arguments, rest = top.parse_known_args(argv)
    if rest and (any(word.startswith("-") for word in rest) or not hasattr(arguments, "add_words")):
        arguments.parser.refuse_words(rest)
    if rest:
        arguments.add_words(arguments, rest)
    if arguments.parser is top:
        top.print_help()
        return 0
    answer.warned = set()
    try:
        return attempt(lambda: arguments.run(arguments))
    finally:
        answer.warned = None


def modules_of(argv: Sequence[str]) -> Collection[str]:
    """Return the modules that the words need: their command's if they begin with one, otherwise all.

    Importing all of them takes longer than most commands.
    """
    if argv == ["--version"]:
        return ()
    return [name for name, commands in COMMAND_MODULES.items() if argv and argv[0] in commands] or COMMAND_MODULES


def parser(modules: Collection[str] = tuple(COMMAND_MODULES)) -> argparse.ArgumentParser:
    """Return the parser of the commands of some modules. Without a command, `parser` of its result is itself."""
    top = CommandParser(
        prog="tailhook",
        usage="tailhook [-h] [--version] COMMAND ...",
        epilog="example:\n  tailhook loop start --max 20 'Make the tests pass.'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"tailhook {__version__}")
    top.set_defaults(parser=top)
    commands = top.add_subparsers(prog="tailhook", help=argparse.SUPPRESS)
    for name in modules:
        cast("CommandGroup", import_module(f"tailhook.cli.{name}")).add(commands)
    top.description = describe_commands(commands.choices)
    return top


def describe_commands(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """Return the list of all commands, in groups."""
    lines = wrap_help("Answers the hooks of coding agents in milliseconds, however large the transcript.")
    for wish, modules in COMMANDS_BY_WISH.items():
        lines += ["", f"{wish}:"]
        for name in (name for names in modules.values() for name in names if name in parsers):
            lines += wrap_help(parsers[name].description or "", f"  {name}".ljust(HELP_COLUMN))
    return "\n".join(lines)
