"""The command that a rule wants: its words, and a quick look for its program in a shell line. (docs/machines/gate.md)

Pure. A hook that meets no line with the program loads no more of what takes lines apart than this module needs.
"""

from tailhook.machines import is_visible
from tailhook.machines.shell import UNKNOWN, Budget, ShellReader, SimpleCommand, is_assignment

MAX_WANTED_CHARS = 200  # of a command to look for
NOT_PROGRAMS = ("[[", "}", "case", "done", "esac", "fi", "for", "function", "in", "select")
QUOTING = str.maketrans("", "", "\\'\"")


def parse_command(text: str) -> list[str]:
    """Return the words of a text that is one simple command, which `runs` looks for.

    Raises ValueError with the reason if it is anything else, or longer than MAX_WANTED_CHARS.

    >>> parse_command("npm run 'unit tests'")
    ['npm', 'run', 'unit tests']
    """
    if len(text) > MAX_WANTED_CHARS:
        raise ValueError(f"the command is longer than {MAX_WANTED_CHARS} characters")
    if not all(map(is_visible, text)):
        raise ValueError("the command has control characters or more than one line")
    reader = ShellReader(text, Budget(MAX_WANTED_CHARS))
    reader.read()
    command = reader.tokens[0] if len(reader.tokens) == 1 else None
    words = command.words if isinstance(command, SimpleCommand) else []
    is_plain = reader.is_plain and not reader.is_unknown and not any(UNKNOWN in word for word in words)
    if not words or not is_plain or "`" in text:
        raise ValueError("it is not one simple command: no ; & | < > ( ) $ ` # or keywords of the shell outside quotes")
    if not words[0] or words[0] in NOT_PROGRAMS or is_assignment(words[0]):
        raise ValueError("the command does not begin with a program")
    return words


def program_name(program: str) -> str:
    """Return what every command that runs a program has in it, apart from quotes: Python's version may differ."""
    name = base_name(program)
    return "py" if is_python(name) else name


def contains_name(line: str, name: str) -> bool:
    """Return whether a line has a program's name in it, quotes left out. It is much faster than `runs`."""
    if name in line:
        return True
    return ("\\" in line or "'" in line or '"' in line) and name in line.replace("\\\n", "").translate(QUOTING)


def base_name(path: str) -> str:
    """Return what is after the last slash."""
    return path.rpartition("/")[2]


def is_python(name: str) -> bool:
    """Return whether a program is a Python interpreter: python, python3.14, pypy3."""
    version = name.removeprefix("python").removeprefix("pypy")
    return name == "py" or (name[:2] == "py" and not version.strip("0123456789."))
