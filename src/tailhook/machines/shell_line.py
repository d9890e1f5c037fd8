"""A shell line, judged without taking it apart if possible; the wanted command of a rule. (docs/machines/gate.md)

Pure. If a hook meets only lines of plain words, it does not load the modules that take lines apart.
"""

from tailhook._core import preload
from tailhook.machines.shell_words import (
    ABSENT,
    COMMAND_WORDS,
    MAX_WANTED_CHARS,
    RUN,
    WORD_LETTERS,
    Budget,
    begins_with,
    contains_name,
    is_assignment,
    program_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailhook.machines.shell_tree import Node

MAX_PLAIN_CHARS = 1000  # of a line to read as plain words
PLAIN_COST = 40  # in steps, for that
PLAIN_LETTERS = WORD_LETTERS | {" ", "&", ">"}
NOT_PROGRAMS = ("[[", "}", "case", "done", "esac", "fi", "for", "function", "in", "select")


class ShellLine:
    """A shell line. It is taken apart only if needed, and once for all wanted commands.

    budget: for this line and others. Beyond it, a line counts as running every program that it names.
    plain: the simple commands of a line of plain words, None if it must be taken apart.
    tree: the line taken apart, None as long as that was not needed.
    """

    __slots__ = ("budget", "plain", "text", "tree")

    def __init__(self, text: str, budget: Budget) -> None:
        self.text = text
        self.budget = budget
        self.plain = plain_commands(text) if budget.spend(PLAIN_COST) else None
        self.tree: Node | None = None

    def outcome_of(self, wanted: "Sequence[str]") -> tuple[str, str]:
        """Return the meaning of the line's exit code 0 for the command with the wanted first words, and why.

        It is RUN if the command ran and succeeded, and ABSENT if the line does not run it. Otherwise it is HIDDEN, and
        the second text is why its exit code is unknown. A line that cannot be taken apart is RUN.
        """
        if not contains_name(self.text, program_name(wanted[0])):
            return ABSENT, ""
        if self.plain and runs_plainly(self.plain, wanted):
            return RUN, ""
        preload("machines.shell", "machines.shell_tree", "machines.commands", "machines.exits")
        from tailhook.machines.exits import judge_line

        return judge_line(self, wanted)


def plain_commands(line: str) -> "list[list[str]] | None":
    """Return the words of the simple commands of a line that has only words, `&&` and `2>&1`, otherwise None."""
    if len(line) > MAX_PLAIN_CHARS or not PLAIN_LETTERS.issuperset(line):
        return None
    commands: list[list[str]] = [[]]
    for word in line.split():
        if word == "&&":
            commands.append([])
        elif WORD_LETTERS.issuperset(word):
            commands[-1].append(word)
        elif word != "2>&1":
            return None
    return commands


def runs_plainly(commands: "Sequence[Sequence[str]]", wanted: "Sequence[str]") -> bool:
    """Return whether all commands with && between them are the wanted one or `cd`.

    They exit with 0 only if each of them does.
    """
    is_found = False
    for command in commands:
        at = 0
        while at < len(command) and is_assignment(command[at]):
            at += 1
        words = command[at:]
        if not words:
            return False
        is_wanted = begins_with(words, wanted)
        if not is_wanted and words[0] != "cd":
            return False
        is_found = is_found or is_wanted
    return is_found


def parse_command(text: str) -> list[str]:
    """Return the words of a text that is one simple command, for `runs`.

    Raises ValueError with the reason if it is anything else, or longer than MAX_WANTED_CHARS.

    >>> parse_command("npm run 'unit tests'")
    ['npm', 'run', 'unit tests']
    """
    if len(text) > MAX_WANTED_CHARS:
        raise ValueError(f"the command is longer than {MAX_WANTED_CHARS} characters")
    plain = plain_commands(text) if ">" not in text else None
    if plain and len(plain) == 1 and plain[0] and plain[0][0] not in (*COMMAND_WORDS, "time"):
        words = plain[0]
    else:
        from tailhook.machines.shell import read_simple_command

        words = read_simple_command(text)
    if not words[0] or words[0] in NOT_PROGRAMS or is_assignment(words[0]):
        raise ValueError("the command does not begin with a program")
    return words
