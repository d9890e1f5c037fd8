"""Rules: which command checks which files, and which edits it has not checked.

Pure. The gate machine has rules in its configuration (docs/machines/gate.md, "Configuration"), and the checks of a loop
are rules, too.
"""

from tailhook._core import preload
from tailhook.machines import clip_field
from tailhook.machines.shell_line import ShellLine, parse_command
from tailhook.machines.shell_words import HIDDEN, RUN, Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tailhook.machines.path_patterns import Pattern, QuickLook

    # A rule whose command has not run successfully since its newest edit. Also the newest line after it that may have
    # run the command, and why that does not count: "" without one.
    Unchecked = tuple["Rule", "Edit", str, str]
    Undecided = tuple["Rule", str, str]  # a rule without an edit or a run, and the same

MAX_RULES = 50  # more are left out
MAX_PATTERNS = 100  # of a rule, after its braces are expanded
MAX_PATTERN_CHARS = 1000
MAX_PATTERNS_COST = 1 << 15  # of the patterns of all rules, in characters: as written, and with their braces expanded
PATTERN_COST = 30  # of one pattern, in characters that take the same time
MAX_COMPARED = 1 << 15  # letters of patterns to compare with paths for one stop, or steps as costly
MAX_NAMED = 5  # rules named in a reason
MAX_STEPS = 80_000  # to take shell lines apart for one stop; 20 ms at most


class Rule:
    """One rule of the configuration.

    texts: of the patterns of its files, with their braces expanded.
    ran: the first words of the command that checks them.
    command: the same, as written.
    """

    __slots__ = ("command", "compiled", "ran", "texts")

    def __init__(self, edited: "Sequence[object]", ran: str, budget: Budget | None = None) -> None:
        """Raises ValueError with the reason if the rule is not valid.

        edited: patterns, with braces.
        budget: for the patterns of all rules.
        """
        budget = budget or Budget(MAX_PATTERNS_COST)
        self.ran = parse_command(ran)
        self.command = ran.strip()
        self.texts: list[str] = []
        self.compiled: list[Pattern] | None = None
        for value in edited:
            if not isinstance(value, str):
                continue
            texts = expand_pattern(value) if budget.spend(PATTERN_COST + len(value)) else []
            if not budget.spend(sum(map(len, texts)) + PATTERN_COST * len(texts)):
                raise ValueError(
                    f"with the rules before it, its patterns are longer than {MAX_PATTERNS_COST} characters"
                )
            self.texts += texts
            if len(self.texts) > MAX_PATTERNS:
                break
        if not 0 < len(self.texts) <= MAX_PATTERNS:
            raise ValueError(f'"edited" does not hold 1 to {MAX_PATTERNS} patterns that can match')

    def patterns(self) -> "list[Pattern]":
        """Return the patterns of its files."""
        if self.compiled is None:
            preload("machines.path_patterns")
            from tailhook.machines.path_patterns import Pattern

            self.compiled = list(map(Pattern, self.texts))
        return self.compiled

    def concerns(self, edit: "Edit", budget: Budget | None = None) -> bool:
        """Return whether the rule is about the edited file. Beyond the budget of a stop, it is not."""
        budget = budget or Budget(MAX_COMPARED)
        if not budget.spend(len(self.texts) * len(edit.paths)):
            return False
        return any(pattern.matches(path, budget) for pattern in self.patterns() for path in edit.paths)


class Edit:
    """A tool that wrote a file.

    path: relative to the project if it is inside, for messages.
    id: of the tool's use.
    paths: all paths of the file: the absolute one, and those relative to the project's folders.
    clock: when it was edited, as HH:MM; "" if that does not matter or is unknown.
    """

    __slots__ = ("clock", "id", "path", "paths")

    def __init__(self, path: str, id: str, paths: "Iterable[str]" = ()) -> None:  # noqa: A002 - the host's name
        self.path = path
        self.id = id
        self.paths = {path, *paths}
        self.clock = ""

    def describe(self) -> str:
        """Return what happened, for a reason."""
        return f"{clip_field(self.path)} was edited{self.clock and f' at {self.clock}'}"


def unchecked(rules: "Sequence[Rule]", happened: "Iterable[Edit | str]") -> "tuple[list[Unchecked], list[Undecided]]":
    """Return the rules whose newest edit is newer than the newest successful run of their command.

    Also return the rules without an edit or a run.
    """
    budget, compared, waiting = Budget(MAX_STEPS), Budget(MAX_COMPARED), list(rules)
    missing: list[Unchecked] = []
    quick: QuickLook | None = None
    hidden: dict[Rule, tuple[str, str]] = {}
    for happening in happened:
        if isinstance(happening, Edit):
            quick = quick or look_quickly(waiting)
            if not quick.may_match(happening.paths, compared):
                continue
            decided = [rule for rule in waiting if rule.concerns(happening, compared)]
            missing += [(rule, happening, *hidden.get(rule, ("", ""))) for rule in decided]
        else:
            line, decided = ShellLine(happening, budget), []
            for rule in waiting:
                outcome, why = line.outcome_of(rule.ran)
                if outcome == RUN:
                    decided.append(rule)
                elif outcome == HIDDEN:
                    hidden.setdefault(rule, (happening, why))
        if decided:
            waiting = [rule for rule in waiting if rule not in decided]
            if not waiting:
                break
            quick = None
    return missing, [(rule, *hidden.get(rule, ("", ""))) for rule in waiting]


def look_quickly(rules: "Iterable[Rule]") -> "QuickLook":
    """Return the quick look at a path for the patterns of some rules."""
    preload("machines.path_patterns")
    from tailhook.machines.path_patterns import QuickLook

    return QuickLook([pattern for rule in rules for pattern in rule.patterns()])


def blank_fault(command: str) -> str:
    """Return why no shell runs a command as it is shown, "" if its blanks are a shell's.

    >>> blank_fault("npm\\xa0test")
    "it has the blank '\\\\xa0', which no shell takes for a space"
    """
    if command.isascii():
        return ""
    blank = next((letter for letter in command if letter.isspace() and not letter.isascii()), "")
    return blank and f"it has the blank {blank!a}, which no shell takes for a space"


# ---- files -------------------------------------------------------------------


def pattern_fault(pattern: object) -> str:
    """Return why a pattern cannot match a file, "" if it can."""
    if not isinstance(pattern, str):
        return "it is not a text"
    if not pattern or len(pattern) > MAX_PATTERN_CHARS:
        return f"it is empty, or longer than {MAX_PATTERN_CHARS} characters"
    if pattern.startswith("!"):
        return "patterns that exclude files are not supported"
    if pattern.startswith("~"):
        return "write an absolute path instead of ~"
    if "\\" in pattern:
        return "a backslash has no meaning"
    if not {"..", ".", ""}.isdisjoint(without_ends(pattern).split("/")):
        return 'it has a folder named "", "." or ".."'
    return ""


def without_ends(pattern: str) -> str:
    """Return a pattern without "./" or a slash at its beginning, and without a slash at its end."""
    while pattern.startswith("./"):
        pattern = pattern[2:]
    return pattern.removeprefix("/").removesuffix("/")


def expand_pattern(pattern: str) -> list[str]:
    """Return the patterns for `matches_path` of a configured pattern; [] if it cannot match.

    >>> expand_pattern("./src/*.{c,h}"), expand_pattern("docs/"), expand_pattern("!x")
    (['src/*.c', 'src/*.h'], ['docs/**'], [])
    """
    if pattern_fault(pattern):  # the other patterns of the rule count all the same
        return []
    if pattern.endswith("/"):
        pattern += "**"
    while pattern.startswith("./"):
        pattern = pattern[2:] if "/" in pattern[2:] else pattern[1:]
    if "{" not in pattern:
        return [pattern]
    preload("machines.path_patterns")
    from tailhook.machines.path_patterns import expand_braces

    return expand_braces(pattern, MAX_PATTERNS + 1)  # one more than a rule may have
