"""Rules: which command checks which files, and which edits it has not checked.

Pure. The gate machine has rules in its configuration (docs/machines/gate.md, "Configuration"), and the checks of a loop
are rules, too.
"""

from tailhook.machines import clip_field
from tailhook.machines.shell_line import ShellLine, parse_command
from tailhook.machines.shell_words import HIDDEN, RUN, Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_RULES = 50  # more are left out
MAX_PATTERNS = 100  # of a rule, after its braces are expanded
MAX_PATTERN_CHARS = 1000
MAX_PATTERNS_COST = 1 << 15  # of the patterns of all rules, in characters: as written, and with their braces expanded
PATTERN_COST = 30  # of one pattern, in characters that take the same time
MAX_COMPARED = 1 << 15  # letters of patterns to compare with paths for one stop, or steps as costly
MAX_NAMED = 5  # rules named in a reason
MAX_STEPS = 80_000  # to take shell lines apart for one stop; 20 ms at most
MAX_SHELL_LINE_CHARS = 300  # of a shell line in a reason


class Rule:
    """One rule of the configuration.

    patterns: of its files.
    ran: the first words of the command that checks them.
    command: the same, as written.
    """

    __slots__ = ("command", "patterns", "ran")

    def __init__(self, edited: "Sequence[object]", ran: str, budget: Budget | None = None) -> None:
        """Raises ValueError with the reason if the rule is not valid.

        edited: patterns, with braces.
        budget: for the patterns of all rules.
        """
        budget = budget or Budget(MAX_PATTERNS_COST)
        self.ran = parse_command(ran)
        self.command = ran.strip()
        self.patterns: list[Pattern] = []
        for value in edited:
            if not isinstance(value, str):
                continue
            texts = expand_pattern(value) if budget.spend(PATTERN_COST + len(value)) else []
            if not budget.spend(sum(map(len, texts)) + PATTERN_COST * len(texts)):
                raise ValueError(
                    f"with the rules before it, its patterns are longer than {MAX_PATTERNS_COST} characters"
                )
            self.patterns += map(Pattern, texts)
            if len(self.patterns) > MAX_PATTERNS:
                break
        if not 0 < len(self.patterns) <= MAX_PATTERNS:
            raise ValueError(f'"edited" does not hold 1 to {MAX_PATTERNS} patterns that can match')

    def concerns(self, edit: "Edit", budget: Budget | None = None) -> bool:
        """Return whether the rule is about the edited file. Beyond the budget of a stop, it is not."""
        budget = budget or Budget(MAX_COMPARED)
        if not budget.spend(len(self.patterns) * len(edit.paths)):
            return False
        return any(pattern.matches(path, budget) for pattern in self.patterns for path in edit.paths)


class Pattern:
    """A pattern, with the beginning and the end of all matching paths: most paths lack them.

    text: for `matches_path`.
    below: if `text` may name a folder: the pattern of the paths below it; "" if the last name has wildcards.
    """

    __slots__ = ("below", "head", "tail", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        special = [at for at, letter in enumerate(text) if letter in "*?[]"]
        self.tail = text[special[-1] + 1 if special else 0 :].rpartition("/")[2]
        is_relative = "/" in text and not text.startswith("/")
        self.head = text[: special[0] if special else None].rpartition("/")[0] if is_relative else ""
        names_folder = self.tail and self.tail == text.rpartition("/")[2]
        self.below = f"{text if '/' in text else f'**/{text}'}/**" if names_folder else ""

    def mark(self) -> bytes:
        """Return a text that occurs in any JSON text with a matching path, unless that has escapes."""
        if self.below:
            return self.tail.encode("utf-8", "surrogatepass")
        folder = self.text.removesuffix("/**").rpartition("/")[2]
        is_below = self.text.endswith("/**") and not any(letter in folder for letter in "*?[]")
        return (folder if is_below else f'{self.tail}"').encode("utf-8", "surrogatepass")

    def matches(self, path: str, budget: Budget) -> bool:
        """Return whether a path or a folder above it matches. Beyond the budget, it does not."""
        if not path.startswith(self.head):
            return False
        if path.endswith(self.tail) and matches_path(self.text, path, budget):
            return True
        return bool(self.below) and f"{self.tail}/" in path and matches_path(self.below, path, budget)


class QuickLook:
    """Beginnings, ends and parts of the paths that match a pattern of some rules: most paths have none of them."""

    __slots__ = ("cost", "folders", "heads", "tails")

    def __init__(self, rules: "Iterable[Rule]") -> None:
        patterns = [pattern for rule in rules for pattern in rule.patterns]
        self.heads = tuple({pattern.head for pattern in patterns if pattern.head and not pattern.tail})
        self.tails = tuple({pattern.tail for pattern in patterns if pattern.tail or not pattern.head})
        self.folders = {f"{pattern.tail}/" for pattern in patterns if pattern.below}
        self.cost = 2 + (len(self.heads) + len(self.tails)) // 16 + len(self.folders) // 4

    def may_concern(self, edit: "Edit", budget: Budget) -> bool:
        """Return whether a rule could be about the edited file."""
        for path in edit.paths:
            if not budget.spend(self.cost):
                return False
            if path.startswith(self.heads) or path.endswith(self.tails):
                return True
            if any(folder in path for folder in self.folders):
                return True
        return False


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


class Unchecked:
    """A rule whose command has not run successfully since something happened.

    edit: its newest edit.
    line, why: the newest line after it that may have run the command, and why it does not count; "" without one.
    """

    __slots__ = ("edit", "line", "rule", "why")

    def __init__(self, rule: Rule, edit: Edit, line: str = "", why: str = "") -> None:
        self.rule = rule
        self.edit = edit
        self.line = line
        self.why = why

    def describe(self) -> str:
        """Return the line of a reason: the missing command. If a run does not count: why, and what to run instead."""
        command = clip_field(self.rule.command)
        missing = f"- `{command}`: it has not run successfully since {self.edit.describe()}."
        if not self.line:
            return missing
        pipe = ", or with `set -o pipefail;` in front" if self.why.endswith("behind a pipe") else ""
        why = clip_field(self.why, MAX_SHELL_LINE_CHARS)
        advice = f"Run `{command}` in a tool call of its own{pipe}."
        return f"{missing} `{show_line(self.line)}` does not count: {why}. {advice}"


def show_line(line: str) -> str:
    r"""Return a shell line for a reason: line ends as \n, and only the beginning of a long line."""
    shown = clip_field(line.strip().replace("\n", r"\n").replace("\t", " "), MAX_SHELL_LINE_CHARS + 1)
    return shown if len(shown) <= MAX_SHELL_LINE_CHARS else f"{shown[:MAX_SHELL_LINE_CHARS]}…"


def unchecked(
    rules: "Sequence[Rule]", happened: "Iterable[Edit | str]"
) -> tuple[list[Unchecked], list[tuple[Rule, str, str]]]:
    """Return the rules whose newest edit is newer than the newest successful run of their command.

    Also return the rules without an edit or a run, each with the line and the reason of `Unchecked`.
    """
    budget, compared, waiting, missing = Budget(MAX_STEPS), Budget(MAX_COMPARED), list(rules), list[Unchecked]()
    quick = QuickLook(waiting)
    hidden: dict[Rule, tuple[str, str]] = {}
    for happening in happened:
        if isinstance(happening, Edit):
            if not quick.may_concern(happening, compared):
                continue
            decided = [rule for rule in waiting if rule.concerns(happening, compared)]
            missing += [Unchecked(rule, happening, *hidden.get(rule, ("", ""))) for rule in decided]
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
            quick = QuickLook(waiting)
    return missing, [(rule, *hidden.get(rule, ("", ""))) for rule in waiting]


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
    return expand_braces(pattern)


def expand_braces(pattern: str) -> list[str]:
    """Return a pattern with {a,b} expanded: at most MAX_PATTERNS + 1 patterns. Braces may be nested.

    >>> expand_braces("*.{ts,js{,x}}"), expand_braces("{a}")
    (['*.ts', '*.js', '*.jsx'], ['{a}'])
    """
    return expand_part(pattern, 0, len(pattern), find_choices(pattern)) if "{" in pattern else [pattern]


def find_choices(pattern: str) -> "dict[int, list[int]]":
    """Return the ends of the words in braces (commas and the closing brace), by the index of the opening brace.

    Braces that are not closed, or have no comma of their own, are left out.
    """
    found, opened = {}, list[tuple[int, list[int]]]()
    for at, letter in enumerate(pattern):
        if letter == "{":
            opened.append((at, []))
        elif letter == "," and opened:
            opened[-1][1].append(at)
        elif letter == "}" and opened:
            start, ends = opened.pop()
            if ends:
                found[start] = [*ends, at]
    return found


def expand_part(pattern: str, start: int, end: int, choices: "Mapping[int, Sequence[int]]") -> list[str]:
    """Return a part of a pattern, expanded: at most MAX_PATTERNS + 1 patterns.

    choices: the result of `find_choices` for the whole pattern.
    """
    done, kept, at = [""], start, start
    while at < end:
        at = pattern.find("{", at, end)
        if at < 0:
            break
        if at not in choices:
            at += 1
            continue
        words, first = list[str](), at + 1
        for last in choices[at]:
            words += expand_part(pattern, first, last, choices)
            if len(words) > MAX_PATTERNS:
                return words[: MAX_PATTERNS + 1]  # more than a rule may have, so it does not matter which
            first = last + 1
        done = [f"{head}{pattern[kept:at]}{word}" for head in done for word in words][: MAX_PATTERNS + 1]
        if len(done) > MAX_PATTERNS:
            return done
        kept = at = first
    return [f"{head}{pattern[kept:end]}" for head in done]


def matches_path(pattern: str, path: str, budget: Budget | None = None) -> bool:
    """Return whether a pattern matches a path: `*`, `?` and `[a-z]` within a name, `**` for any folders.

    A pattern without a slash matches names in any folder, as in .gitignore. With a slash, it is matched from the
    project's root. Only a pattern with a slash at its beginning can match an absolute path.

    budget: for the compared letters. Beyond it, nothing matches.

    >>> matches_path("*.py", "src/app.py"), matches_path("src/*.py", "src/a/b.py"), matches_path("src/**", "src/a/b")
    (True, False, True)
    """
    budget = budget or Budget(MAX_COMPARED)
    names = path.removeprefix("/").split("/")
    budget.spend(len(names))
    if "/" not in pattern:
        return matches_name(pattern, names[-1], budget)
    if path.startswith("/") and not pattern.startswith("/"):
        return False
    return matches_names(pattern.removeprefix("/").split("/"), names, budget)


def matches_names(patterns: "Sequence[str]", names: "Sequence[str]", budget: Budget) -> bool:
    """Return whether the patterns match the names of a path. A pattern matches one name, `**` any number of names."""
    reached = {0}  # numbers of names that the patterns so far can match
    for pattern in patterns:
        if not reached or not budget.spend(len(reached)):
            return False
        if pattern == "**":
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and matches_name(pattern, names[at], budget)}
    return len(names) in reached


def matches_name(pattern: str, name: str, budget: Budget) -> bool:
    """Return whether a pattern matches a whole name.

    `*` stands for any characters, `?` for one character, `[a-z]` for one of these, `[!a-z]` for any other.
    """
    at = place = 0
    star, resume = -1, 0
    while place < len(name):
        end = class_end(pattern, at)
        if not budget.spend(end - at):
            return False
        if pattern[at : at + 1] == "*":
            star, resume, at = at, place, at + 1
            if at == len(pattern):
                return True
        elif at < len(pattern) and matches_letter(pattern[at:end], name[place]):
            at, place = end, place + 1
        elif star >= 0:
            resume += 1
            at, place = star + 1, resume
        else:
            return False
    return not pattern[at:].strip("*")


def class_end(pattern: str, at: int) -> int:
    """Return the end of the part of a pattern that stands for one letter. at: its beginning."""
    if pattern[at : at + 1] == "[":
        first = at + 1 + (pattern[at + 1 : at + 2] in ("!", "^"))
        return pattern.find("]", first + 1) + 1 or at + 1  # a ] that comes first is a letter of the class
    return at + 1


def matches_letter(part: str, letter: str) -> bool:
    """Return whether a part of a pattern stands for a letter. part: a letter, `?` or a class in brackets."""
    if len(part) == 1:
        return part in ("?", letter)
    inside = part[1:-1]
    is_other = inside[0] in "!^"
    inside, at, found = inside[is_other:], 0, False
    while at < len(inside):
        end = at + 2 if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside) else at
        found = found or inside[at] <= letter <= inside[end]
        at = end + 1
    return found is not is_other
