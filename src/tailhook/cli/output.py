"""Common parts of the commands: how they are declared, print and fail."""

import argparse
import io
import json
import os
import select
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tailhook.errors import UPGRADE_ADVICE, TailhookError, install_command, is_own_part
from tailhook.hook.answer import describe, plain_lines
from tailhook.machines import MAX_COUNT, whole_number

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


Run = Callable[[argparse.Namespace], int | None]  # a command, which returns its exit code


MAX_HELP_COLUMNS = 100  # of a help's text, in a wider terminal


class CommandError(Exception):
    """A command cannot be done. The message describes what happened, the place, and what to do."""

    exit_code = 1


class UsageError(CommandError):
    """The arguments are not valid."""

    exit_code = 2


def import_fault(what: str, extra: str, error: ImportError) -> CommandError:
    """Return the error for a module that cannot be imported.

    what: the thing that needs it, for people.
    extra: the extra with the module, if it is another package's. A module of tailhook's own is missing during an
        upgrade.
    """
    if is_own_part(error):
        return CommandError(f"a part of tailhook itself is missing ({error}). {UPGRADE_ADVICE}")
    command = install_command(f"tailhook[{extra}]")
    return CommandError(f"{what} needs more packages ({error}). Install them with:  {command}")


class Commands(Protocol):
    """The result of `ArgumentParser.add_subparsers`."""

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser: ...


class CommandGroup(Protocol):
    """A module of commands."""

    def add(self, commands: Commands) -> None:
        """Declare the commands."""
        ...


def open_missing_streams() -> None:
    """Open /dev/null for each standard stream that is closed, such as stdout after `>&-` in a shell."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - until the process ends


class WaitingFile(io.FileIO):
    """A standard stream. On a non-blocking pipe it waits for the reader, like a blocking pipe."""

    def write(self, data: "ReadableBuffer") -> int:
        """Write some bytes, and return how many. Raises OSError."""
        while (written := super().write(data)) is None:
            select.select([], [self.fileno()], [])
        return written


def is_blocking(stream: io.TextIOWrapper) -> bool:
    """Return whether the stream waits for its reader, or has no descriptor: then it is a buffer, or closed."""
    try:
        return os.get_blocking(stream.fileno())
    except (OSError, ValueError):
        return True


def write_streams_whole() -> None:
    """Let stdout and stderr write all that they get. Without a buffer, Python loses what does not fit at once.

    PYTHONUNBUFFERED takes the buffer away. A non-blocking pipe makes it useless. A disk that is almost full takes only
    the beginning, and reports nothing before the next write.
    """
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        is_buffered = not isinstance(stream.buffer, io.RawIOBase)
        if is_buffered and is_blocking(stream):
            continue
        by_line = stream.line_buffering or not is_buffered
        file = io.BufferedWriter(WaitingFile(stream.fileno(), "w", closefd=False))
        whole = io.TextIOWrapper(file, stream.encoding, stream.errors, line_buffering=by_line)
        setattr(sys, "stdout" if stream is sys.stdout else "stderr", whole)


def accept_any_input() -> None:
    """Let stdin replace what its encoding does not allow, as in a file with a prompt. Otherwise Python raises."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def check_stdout(advice: str) -> None:
    """Raise CommandError if stdout was closed when the process began.  advice: what to do."""
    if sys.__stdout__ is None:  # see open_missing_streams
        raise CommandError(f"standard output is closed, so nothing can be printed: {advice}")


def attempt(command: Callable[[], int | None]) -> int:
    """Run a command and return its exit code. If it fails, print one line on stderr."""
    try:
        return int(command() or 0)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left
        discard_output()
        return 0
    except (CommandError, TailhookError, OSError) as error:
        words = describe(error) if isinstance(error, OSError) else str(error)
        if isinstance(error, FileNotFoundError) and not error.filename and is_folder_gone():
            words = "the current folder was removed: change to another one"
        sys.stderr.write(f"tailhook: {plain_lines(words)}\n")
        return error.exit_code if isinstance(error, CommandError) else 1


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Let the block end early if the reader of our output has left: the code after it decides about the exit code."""
    try:
        yield
    except BrokenPipeError:
        discard_output()


def is_folder_gone() -> bool:
    """Return whether the current folder was removed."""
    try:
        os.getcwd()  # noqa: PTH109 - as the functions that failed
    except FileNotFoundError:
        return True
    return False


def command(commands: Commands, name: str, run: Run, about: str, example: str) -> argparse.ArgumentParser:
    """Declare a command with its help and an example."""
    parser = commands.add_parser(
        name,
        help=about,
        description="\n".join(wrap_help(f"{about[0].upper()}{about[1:]}.")),
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def wrap_help(words: str, head: str = "") -> list[str]:
    """Return the lines of a text that fit into the terminal.  head: in front of the first line."""
    columns = min(MAX_HELP_COLUMNS, shutil.get_terminal_size((MAX_HELP_COLUMNS, 24)).columns)
    return textwrap.wrap(words, columns, initial_indent=head, subsequent_indent=" " * len(head))


def group(commands: Commands, name: str, about: str, example: str) -> Commands:
    """Declare a command group and return the object on which its commands are declared."""
    return command(commands, name, print_group_help, about, example).add_subparsers()


def print_group_help(arguments: argparse.Namespace) -> int:
    """Print the help of a group that is named without one of its commands. Return the exit code of wrong usage."""
    arguments.parser.print_help(sys.stderr)
    return UsageError.exit_code


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the flag of every command that prints facts."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def whole(word: str) -> int:
    """Parse an argument as a whole number from 0 on."""
    number = whole_number(word)
    if number is None:
        raise argparse.ArgumentTypeError(number_fault(word, 0))
    return number


def positive(word: str) -> int:
    """Parse an argument as a whole number from 1 on."""
    number = whole_number(word)
    if not number:
        raise argparse.ArgumentTypeError(number_fault(word, 1))
    return number


def number_fault(word: str, least: int) -> str:
    """Return why an argument is not a whole number of at least so many."""
    if word.isascii() and word.isdigit() and len(word.lstrip("0")) >= len(str(MAX_COUNT)):
        return f"{word!r} is over {MAX_COUNT:,}"
    return f"{word!r} is not a whole number of {least} or more"


def print_json(facts: Mapping[str, Any], indent: int | None = 2) -> None:
    """Print facts for a program, with JSON's escapes for characters that stdout's encoding lacks (UTF-8: surrogates).

    indent: None prints them on one line.

    Raises what `print_words` raises.
    """
    words = json.dumps(facts, indent=indent, ensure_ascii=False)
    try:
        words.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        words = json.dumps(facts, indent=indent)
    print_words(f"{words}\n")


def print_lines(*lines: str) -> None:
    """Print lines for a person. Raises the same errors as `print_words`."""
    print_words("".join(f"{line}\n" for line in lines))


def print_words(words: str) -> None:
    """Write to stdout at once. Characters that its encoding lacks are written as escapes.

    Raises CommandError, and BrokenPipeError if the reader has left.
    """
    try:
        try:
            sys.stdout.write(words)
        except UnicodeEncodeError:
            encoding = sys.stdout.encoding
            sys.stdout.write(words.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise CommandError(f"standard output: {error.strerror}") from error


def replace_output(name: str, data: bytes) -> None:
    """Write a file that a person has named. Raises OSError with its name.

    A file appears whole and keeps its mode; a new one has the umask's. A pipe or a device is written to. Links are
    followed.
    """
    try:
        write_target(Path(name), data)
    except OSError as error:
        error.filename = name
        raise


def write_target(path: Path, data: bytes) -> None:
    """Write a file, a pipe or a device. Raises OSError."""
    from tailhook.fleet.output import whole_file

    is_regular = path.is_file() or not path.exists()
    with whole_file(path) if is_regular else path.open("wb") as file:
        file.write(data)


@contextmanager
def naming_output(name: str) -> Iterator[None]:
    """Raise CommandError with a name for an OSError without a file's name, such as that of a full disk.

    name: of the written file, folder or stream. A BrokenPipeError stays as it is.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename or not error.strerror:
            raise
        raise CommandError(f"{name}: {error.strerror}") from error


def discard_output() -> None:
    """Let stdout lead nowhere. Otherwise the exit tries again to write the rest, and fails."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_facts(arguments: argparse.Namespace, facts: Mapping[str, Any], *lines: str) -> None:
    """Print a result, for a program or for a person."""
    if arguments.json:
        print_json(facts)
    else:
        print_lines(*lines)


def counted(count: int, things: str) -> str:
    """Return a number of things in words. things: the plural of their name.

    >>> counted(1, "matches"), counted(1200, "tool uses")
    ('1 match', '1,200 tool uses')
    """
    return f"{count:,} {things if count != 1 else 'match' if things == 'matches' else things.removesuffix('s')}"


def coloured(words: str, colour: int) -> str:
    """Return `words` in an ANSI colour if stdout is a terminal and NO_COLOR (https://no-color.org) is not set."""
    plain = not sys.stdout.isatty() or os.environ.get("TERM") == "dumb"
    if os.environ.get("NO_COLOR") or (plain and not os.environ.get("FORCE_COLOR")):
        return words
    return f"\x1b[{colour}m{words}\x1b[0m"
