"""The counting lines of a category, written only from the machine's page: code by markdown-it-py, words by `re`."""

from support.keywords import regexes
from support.oracles.markdown import Oracle
from tailhook.machines.keywords import tables
from tailhook.machines.memory import CATEGORIES, NEGATION

ORACLE = Oracle()
CODE = "\x00\x01"  # stands for code among words; the compared texts do not have it


def prose_lines(text: str) -> list[str]:
    """Return the lines of a message without its code. Lines of code alone are left out."""
    parts, at = [], 0
    for _, start, end in ORACLE.spans(text):
        parts.append(text[at:start])
        fills_lines = (start == 0 or text[start - 1] == "\n") and (end == len(text) or text[end - 1] == "\n")
        parts.append("" if fills_lines else CODE)
        at = end
    lines = "".join((*parts, text[at:])).split("\n")
    kept = [line for line in lines if CODE not in line or line.replace(CODE, "").strip(" \t\n\r\x0b\x0c")]
    return [line.replace(CODE, " ") for line in kept]


class Scorer:
    """Finds the lines that count in a profile."""

    def __init__(self, profile: str) -> None:
        self.tuned = profile == "tuned"
        words: dict[int, list[str]] = {}
        for number, word in tables()[profile]:
            words.setdefault(number, []).append(word)
        self.found_by = {number: [regex for _, regex in regexes(each)] for number, each in words.items()}

    def places(self, line: str, number: int) -> list[tuple[int, int]]:
        """Return the spans of the keywords with a number in a line, sorted by their starts."""
        return sorted(match.span(1) for regex in self.found_by.get(number, ()) for match in regex.finditer(line))

    def occurrences(self, line: str, primary: int) -> list[tuple[int, int]]:
        """Return the spans of the keywords that count: not negated, and not inside another one."""
        ends = [len(line[:end].encode("utf-8", "surrogatepass")) for _, end in self.places(line, NEGATION)]
        counted, reached = [], -1
        for start, end in self.places(line, primary):
            at = len(line[:start].encode("utf-8", "surrogatepass"))
            if any(0 <= at - before <= 14 for before in ends):
                continue
            if start >= reached:
                counted.append((start, end))
            reached = max(reached, end)
        return counted

    def score(self, messages: list[str]) -> list[tuple[int, int, str, str, str, bool]]:
        """Return the result of `score_lines`, with str in place of bytes."""
        found = []
        for category in range(len(CATEGORIES)):
            boosted = plain = 0
            for message, text in enumerate(messages):
                lines = prose_lines(text)
                for number, line in enumerate(lines):
                    counted = self.occurrences(line, 2 * category)
                    if not counted:
                        continue
                    near = lines[max(0, number - 2) : number + 2]
                    boosters = [
                        one[slice(*self.places(one, 2 * category + 1)[0])]
                        for one in near
                        if self.places(one, 2 * category + 1)
                    ]
                    keyword = line[slice(*self.places(line, 2 * category)[0])]
                    for _ in counted if self.tuned else counted[:1]:
                        is_boosted = bool(boosters) and boosted < 2
                        if not is_boosted and plain == 3:
                            break
                        boosted, plain = boosted + is_boosted, plain + (not is_boosted)
                        booster = boosters[0] if boosters else ""
                        found.append((category, message, line, keyword, booster, is_boosted))
        return found
