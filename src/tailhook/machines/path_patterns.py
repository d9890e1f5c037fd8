"""Patterns of files' paths: `*`, `?` and `[a-z]` within a name, `**` for any folders, braces. (docs/machines/gate.md)

Pure. A stop imports it for the first edit, or if a pattern has braces.
"""

from tailhook.machines.shell_words import Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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
    """Beginnings, ends and parts of the paths that match one of some patterns: most paths have none of them."""

    __slots__ = ("cost", "folders", "heads", "tails")

    def __init__(self, patterns: "Sequence[Pattern]") -> None:
        self.heads = tuple({pattern.head for pattern in patterns if pattern.head and not pattern.tail})
        self.tails = tuple({pattern.tail for pattern in patterns if pattern.tail or not pattern.head})
        self.folders = {f"{pattern.tail}/" for pattern in patterns if pattern.below}
        self.cost = 2 + (len(self.heads) + len(self.tails)) // 16 + len(self.folders) // 4

    def may_match(self, paths: "Iterable[str]", budget: Budget) -> bool:
        """Return whether one of the patterns could match one of a file's paths."""
        for path in paths:
            if not budget.spend(self.cost):
                return False
            if path.startswith(self.heads) or path.endswith(self.tails):
                return True
            if any(folder in path for folder in self.folders):
                return True
        return False


def expand_braces(pattern: str, limit: int) -> list[str]:
    """Return a pattern with {a,b} expanded: at most `limit` patterns. Braces may be nested.

    >>> expand_braces("*.{ts,js{,x}}", 100), expand_braces("{a}", 100)
    (['*.ts', '*.js', '*.jsx'], ['{a}'])
    """
    return expand_part(pattern, 0, len(pattern), find_choices(pattern), limit)


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


def expand_part(pattern: str, start: int, end: int, choices: "Mapping[int, Sequence[int]]", limit: int) -> list[str]:
    """Return a part of a pattern, expanded: at most `limit` patterns.

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
            words += expand_part(pattern, first, last, choices, limit)
            if len(words) >= limit:
                return words[:limit]  # more than a rule may have, so it does not matter which
            first = last + 1
        done = [f"{head}{pattern[kept:at]}{word}" for head in done for word in words][:limit]
        if len(done) >= limit:
            return done
        kept = at = first
    return [f"{head}{pattern[kept:end]}" for head in done]


def matches_path(pattern: str, path: str, budget: Budget) -> bool:
    """Return whether a pattern matches a path: `*`, `?` and `[a-z]` within a name, `**` for any folders.

    A pattern without a slash matches names in any folder, as in .gitignore. With a slash, it is matched from the
    project's root. Only a pattern with a slash at its beginning can match an absolute path.

    budget: for the compared letters. Beyond it, nothing matches.

    >>> budget = Budget(1000)
    >>> matches_path("*.py", "src/app.py", budget), matches_path("src/*.py", "src/a/b.py", budget)
    (True, False)
    """
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
