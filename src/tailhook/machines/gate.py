"""The gate machine: were files edited after the last successful run of the command that checks them?
(docs/machines/gate.md)

Pure: the rules and what happened in the session in; verdict out. `tailhook.hook.gate` reads the transcript.
"""

from tailhook.machines import Verdict, clip_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set
    from typing import Any

MAX_COMMAND_CHARS = 1 << 16  # a longer command is not taken apart
MAX_SHELL_DEPTH = 3  # of shells that run shells: sh -c "sh -c '...'"
MAX_NAMED = 5  # files that a reason names
COMMAND_SEPARATORS = ";&|()\n"
SHELLS = ("bash", "dash", "ksh", "sh", "zsh")
# Programs that run a command: how many arguments of their own they take, and the options whose value is a word.
WRAPPERS = {
    "command": (0, ""),
    "env": (0, "uC"),
    "exec": (0, "a"),
    "nice": (0, "n"),
    "nohup": (0, ""),
    "sudo": (0, "CDghpRrTtUu"),
    "time": (0, "fo"),
    "timeout": (1, "ks"),
    "xargs": (0, "adEILnPs"),
}
SHELL_KEYWORDS = ("!", "{", "do", "elif", "else", "if", "then", "until", "while")  # POSIX.1-2024, shell, 2.4


class Rule:
    """One rule of the configuration.

    edited: patterns of files (`matches_path`).
    ran: the words that the command which checks them begins with.
    """

    __slots__ = ("edited", "ran")

    def __init__(self, edited: "Sequence[str]", ran: str) -> None:
        self.edited = edited
        self.ran = ran.split()


class Edit:
    """A tool that wrote a file. path: relative to the project if it is inside. id: of the tool's use."""

    __slots__ = ("id", "path")

    def __init__(self, path: str, id: str) -> None:  # noqa: A002 - the host's name
        self.path = path
        self.id = id


class Facts:
    """What the payload, the configuration and the session's state say about one stop.

    rules: the rules that are valid.
    happened: the edits and the shell commands (str) that did not fail, the newest first; read as far as needed.
    paused: whether a background task will wake the agent.
    stop_hook_active: whether this turn was blocked before.
    blocked: the ids of edits for which a stop was blocked already.
    """

    __slots__ = ("blocked", "happened", "paused", "rules", "stop_hook_active")

    def __init__(
        self,
        rules: "Sequence[Rule]",
        happened: "Iterable[Edit | str]" = (),
        paused: bool = False,
        stop_hook_active: bool = False,
        blocked: "Set[str]" = frozenset(),
    ) -> None:
        self.rules = rules
        self.happened = happened
        self.paused = paused
        self.stop_hook_active = stop_hook_active
        self.blocked = blocked


def decide(facts: Facts) -> "Verdict[list[str]]":
    """Decide whether the agent may stop. The verdict's change is the ids of the edits that are not checked."""
    if not facts.rules:
        return Verdict("allow", "no rules")
    if facts.paused:
        return Verdict("allow", "paused: a background task is running")
    if facts.stop_hook_active:
        return Verdict("allow", "this turn was blocked before (stop_hook_active)")
    missing = unchecked(facts.rules, facts.happened)
    if not missing:
        return Verdict("allow", "every edit was checked")
    if all(edit.id in facts.blocked for _, edit in missing):
        return Verdict("allow", "a stop was blocked for these edits already")
    lines = [
        f"- `{clip_field(' '.join(rule.ran))}`: {clip_field(edit.path)} was edited after its last successful run."
        for rule, edit in missing[:MAX_NAMED]
    ]
    reason = "\n".join(("Before you stop, run these commands and fix the problems that they report:", *lines))
    commands = f"{len(missing)} command{'s' if len(missing) > 1 else ''}"
    return Verdict("block", f"{commands} not run since an edit", [edit.id for _, edit in missing], reason)


def unchecked(rules: "Sequence[Rule]", happened: "Iterable[Edit | str]") -> "list[tuple[Rule, Edit]]":
    """Return the rules whose newest edit is newer than the newest run of their command, each with that edit."""
    waiting, missing = list(rules), []
    for one in happened:
        decided = []
        for rule in waiting:
            if isinstance(one, Edit):
                if any(matches_path(pattern, one.path) for pattern in rule.edited):
                    missing.append((rule, one))
                    decided.append(rule)
            elif runs(one, rule.ran):
                decided.append(rule)
        waiting = [rule for rule in waiting if rule not in decided]
        if not waiting:
            break
    return missing


def parse_rules(values: "Sequence[dict[str, Any]]") -> list[Rule]:
    """Return the valid rules of the configuration: "edited" is a list of patterns, "ran" a command; both not empty."""
    rules = []
    for value in values:
        edited, ran = value.get("edited"), value.get("ran")
        if not isinstance(edited, list) or not isinstance(ran, str) or not ran.split():
            continue
        patterns = [pattern for pattern in edited if isinstance(pattern, str) and pattern]
        if patterns:
            rules.append(Rule(patterns, ran))
    return rules


# ---- files -------------------------------------------------------------------


def matches_path(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path: `*` and `?` within a name, `**` for any folders.

    A pattern without a slash is one of names in any folder, as in .gitignore.

    >>> matches_path("*.py", "src/app.py"), matches_path("src/*.py", "src/a/b.py"), matches_path("src/**", "src/a/b")
    (True, False, True)
    """
    names = path.split("/")
    if "/" not in pattern:
        return matches_name(pattern, names[-1])
    return matches_names(pattern.removeprefix("/").split("/"), names)


def matches_names(patterns: "Sequence[str]", names: "Sequence[str]") -> bool:
    """Return whether the patterns match the names of a path, one each, but `**` any number of names."""
    reached = {0}  # numbers of names that the patterns so far can match
    for pattern in patterns:
        if pattern == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(names) and matches_name(pattern, names[at])}
    return len(names) in reached


def matches_name(pattern: str, name: str) -> bool:
    """Return whether `*` (any characters) and `?` (one character) of a pattern match a whole name."""
    at = place = 0
    star, resume = -1, 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, resume, at = at, place, at + 1
        elif at < len(pattern) and pattern[at] in ("?", name[place]):
            at, place = at + 1, place + 1
        elif star >= 0:
            resume += 1
            at, place = star + 1, resume
        else:
            return False
    return not pattern[at:].strip("*")


# ---- commands ----------------------------------------------------------------


def runs(command: str, wanted: "Sequence[str]", depth: int = 0) -> bool:
    """Return whether a shell command runs a command that begins with the wanted words, whatever its options are.

    >>> runs("cd app && FORCE=1 .venv/bin/pytest -q  # all of them", ["pytest"]), runs("echo pytest", ["pytest"])
    (True, False)
    """
    if len(command) > MAX_COMMAND_CHARS:
        return wanted[0] in command  # unknown, so it counts as run
    for words in simple_commands(command):
        inner = without_wrappers(words)
        if begins_with(inner, wanted) or begins_with(words, wanted):
            return True
        is_shell = (
            depth < MAX_SHELL_DEPTH and bool(inner) and inner[0].rpartition("/")[2] in SHELLS and "-c" in inner[:-1]
        )
        if is_shell and runs(inner[inner.index("-c") + 1], wanted, depth + 1):
            return True
    return False


def begins_with(words: "Sequence[str]", wanted: "Sequence[str]") -> bool:
    """Return whether a simple command begins with the wanted words; options between them do not count.

    A wanted program without a slash is found in any folder.
    """
    if not words:
        return False
    program = words[0] if "/" in wanted[0] else words[0].rpartition("/")[2]
    if program != wanted[0]:
        return False
    rest = iter(words[1:])
    return all(any_before(rest, word) for word in wanted[1:])


def any_before(words: "Iterator[str]", wanted: str) -> bool:
    """Take words until the wanted one; return False if a word that is not an option comes before it."""
    for word in words:
        if word == wanted:
            return True
        if not word.startswith("-"):
            return False
    return False


def without_wrappers(words: "Sequence[str]") -> "Sequence[str]":
    """Return a simple command without keywords, assignments and programs like `env` and `timeout` in front of it."""
    at, own, valued = 0, 0, ""
    while at < len(words):
        word = words[at]
        if (name := word.rpartition("/")[2]) in WRAPPERS:
            own, valued = WRAPPERS[name]
        elif at and word.startswith("-"):
            at += len(word) == 2 and word[1] in valued  # its value
        elif own:
            own -= 1
        elif word not in SHELL_KEYWORDS and not is_assignment(word):
            break
        at += 1
    return words[at:]


def is_assignment(word: str) -> bool:
    """Return whether a word sets a variable for the command after it: NAME=VALUE."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def simple_commands(line: str) -> "Iterator[list[str]]":
    """Yield the simple commands of a shell line, each as its words without quotes (POSIX.1-2024, shell, 2.2 to 2.9).

    Comments and here-documents are left out. What stands inside quotes is part of a word.
    """
    words: list[str] = []
    word: list[str] | None = None  # the parts of a word that has begun
    is_target = False  # whether the next word is the file of a redirection
    ends: list[str] = []  # of here-documents that begin after this line
    at = 0
    while at < len(line):
        letter = line[at]
        if letter == "\\":
            if line[at + 1 : at + 2] != "\n":  # else the line goes on
                word = word or []
                word.append(line[at + 1 : at + 2])
            at += 2
        elif letter in "'\"":
            end = closing(line, at)
            word = word or []
            word.append(unquote(line[at + 1 : end], letter))
            at = end + 1
        elif letter == "#" and word is None:
            at = next_line(line, at)
        elif letter in COMMAND_SEPARATORS or letter.isspace() or letter in "<>":
            is_redirection = letter in "<>" or line.startswith("&>", at)
            if word is not None and not is_target and not (is_redirection and "".join(word).isdigit()):
                words.append("".join(word))
            is_target, word = is_target and word is None, None
            if line.startswith("<<", at) and not line.startswith("<<<", at):
                at, name = here_name(line, at + 2)
                ends.append(name)
                continue
            if is_redirection:
                is_target = True
                while line[at : at + 1] in ("<", ">", "&"):
                    at += 1
                continue
            at += 1
            if letter == "\n" and ends:
                at, ends = after_here_documents(line, at, ends), []
            if letter in COMMAND_SEPARATORS and words:
                yield words
                words = []
        else:
            word = word or []
            word.append(letter)
            at += 1
    if word is not None and not is_target:
        words.append("".join(word))
    if words:
        yield words


def closing(line: str, at: int) -> int:
    """Return the index of the quote that closes the one at `at`, or the line's length."""
    quote = line[at]
    at += 1
    while at < len(line) and line[at] != quote:
        at += 2 if line[at] == "\\" and quote == '"' else 1
    return min(at, len(line))


def unquote(text: str, quote: str) -> str:
    """Return the text between quotes: a backslash counts in double quotes only (2.2.3)."""
    if quote == "'" or "\\" not in text:
        return text
    parts = text.split("\\")
    return parts[0] + "".join(part if part[:1] in ("$", "`", '"', "\\", "") else f"\\{part}" for part in parts[1:])


def next_line(line: str, at: int) -> int:
    """Return the index of the next newline, or the line's length."""
    end = line.find("\n", at)
    return len(line) if end < 0 else end


def here_name(line: str, at: int) -> tuple[int, str]:
    """Return where the name of a here-document ends, and the name without its quotes."""
    while line[at : at + 1] in ("-", " ", "\t"):
        at += 1
    start = at
    while at < len(line) and not line[at].isspace() and line[at] not in COMMAND_SEPARATORS:
        at += 1
    return at, line[start:at].replace("'", "").replace('"', "").replace("\\", "")


def after_here_documents(line: str, at: int, names: "Sequence[str]") -> int:
    """Return where the text after here-documents begins, of which the first one begins at `at`."""
    for name in names:
        while at < len(line):
            end = next_line(line, at)
            is_end = line[at:end].strip("\t") == name
            at = end + 1
            if is_end:
                break
    return min(at, len(line))
