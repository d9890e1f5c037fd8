"""The memory machine's keywords in one message, with the reason why each counts or not.

`score_lines` of the core returns the counting lines, without their places. This module repeats its rules for one
message, with places and reasons; the tests compare both.  (docs/machines/memory.md)
"""

import re
from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

from tailhook import _core
from tailhook.machines import memory
from tailhook.patterns.sets import Span

LINES_BEFORE, LINES_AFTER = int(memory.CORE_NUMBERS["LINES_BEFORE"]), int(memory.CORE_NUMBERS["LINES_AFTER"])
NEGATION_REACH_BYTES = int(memory.CORE_NUMBERS["NEGATION_REACH_BYTES"])
BLANK_BYTES = b" \t\n\v\f\r"
KEYWORD_COUNTS, NEGATED, NESTED, REPEATED = "counts", "negated", "nested", "repeated"


class KeywordMark(NamedTuple):
    """A keyword in a text.

    start, end: characters of the text, the end exclusive.
    kind: "keyword", "booster" or "negation".
    why: why it counts or not; "" in code.
    """

    start: int
    end: int
    kind: str
    categories: tuple[str, ...]
    counts: bool
    is_code: bool
    why: str


class Hit(NamedTuple):
    """A keyword in the prose: bytes, the end exclusive; the number of `tailhook.machines.keywords.tables`."""

    start: int
    end: int
    number: int


class Prose(NamedTuple):
    """A text without its code.

    origins: pairs (offset in the prose, offset in the text), sorted: from there on, the bytes are the text's.
    """

    data: bytes
    origins: list[tuple[int, int]]

    def place(self, hit: Hit) -> tuple[int, int]:
        """Return the place of a hit in the text."""
        return self.offset(hit.start), self.offset(hit.end - 1) + 1

    def offset(self, offset: int) -> int:
        """Return the offset in the text of a byte of the prose."""
        prose, text = self.origins[bisect_right(self.origins, (offset, len(self.data) << 32)) - 1]
        return text + offset - prose


def cut_code(text: bytes, code: list[Span]) -> Prose:
    r"""Return a text without its code, in the memory machine's form.

    Code that fills its lines is left out with them. Other code becomes a space. A line of only such code is left out.

    code: its spans, in bytes.

    >>> cut_code(b"a `b` c\n`d`\n", [Span("span", 2, 5), Span("span", 8, 11)])
    Prose(data=b'a   c\n', origins=[(0, 0), (3, 5)])
    """
    prose = bytearray()
    origins: list[tuple[int, int]] = []
    line, has_code, at = 0, False, 0

    def end_line() -> None:
        nonlocal line, has_code
        if has_code and not prose[line:].strip(BLANK_BYTES):
            del prose[line:]
            while origins and origins[-1][0] >= line:
                origins.pop()
        line, has_code = len(prose), False

    for start, end in [*((span.start, span.end) for span in code), (len(text), len(text))]:
        while at < start:
            newline = text.find(b"\n", at, start)
            stop = start if newline < 0 else newline + 1
            origins.append((len(prose), at))
            prose += text[at:stop]
            at = stop
            if newline >= 0:
                end_line()
        fills_lines = (start == 0 or text[start - 1] == 10) and (end == len(text) or text[end - 1] == 10)
        if start < end and not fills_lines:
            prose += b" "
            has_code = True
        at = end
    end_line()
    return Prose(bytes(prose), origins)


def mark_keywords(text: str, code: list[Span], tuned: bool) -> tuple[list[KeywordMark], dict[str, float]]:
    """Return the keywords in a text, and its share of each category's sum. Categories without a share are left out.

    Only the beginning of a long text is scored, as in the machine (MAX_TEXT_BYTES). Boosters and negations in code are
    left out, and so are negations without effect.

    code: its spans, in characters.
    """
    data = text.encode("utf-8", "surrogatepass")[: memory.MAX_TEXT_BYTES]
    spans = [Span(*span) for span in _core.code_spans(data, Span)] if code else []
    prose = cut_code(data, spans)
    lines: defaultdict[int, list[Hit]] = defaultdict(list)
    newlines = [match.start() for match in re.finditer(b"\n", prose.data)]
    broken = []  # over a line end
    for number, start, end in sorted(_core.keywords(prose.data, tuned), key=lambda hit: (hit[1], hit[2], hit[0])):
        hit = Hit(start, end, number)
        if prose.data.find(b"\n", start, end) >= 0:
            broken.append(hit)
        else:
            lines[bisect_right(newlines, start)].append(hit)
    scorer = LineScorer(prose, lines, tuned)
    scorer.score()
    found = [*scorer.marks, *(mark for hit in broken if (mark := broken_mark(prose, hit)))]
    known = {(start, end) for start, end, *_ in found}
    for number, start, end in _core.keywords(data, tuned) if code else ():
        is_code = span_at(spans, start, end) is not None
        if is_code and number % 2 == 0 and number != memory.NEGATION and (start, end) not in known:
            found.append(KeywordMark(start, end, "keyword", (category_of(number),), False, True, ""))
    return merge_marks(count_characters(data, found)), {name: share for name, share in scorer.shares.items() if share}


def span_at(code: list[Span], start: int, end: int) -> Span | None:
    """Return the first code that a range touches, or None.  code: sorted."""
    place = bisect_right(code, start, key=span_end)
    return code[place] if place < len(code) and code[place].start < end else None


def span_end(span: Span) -> int:
    """Return the end of a span."""
    return span.end


def category_of(number: int) -> str:
    """Return the category of a keyword's number."""
    return memory.CATEGORIES[number // 2]


def broken_mark(prose: Prose, hit: Hit) -> KeywordMark | None:
    """Return the mark of a keyword over a line end, or None for a booster or a negation."""
    if hit.number == memory.NEGATION or hit.number % 2:
        return None
    category = (category_of(hit.number),)
    return KeywordMark(*prose.place(hit), "keyword", category, False, False, "it goes over a line end")


def count_characters(data: bytes, marks: list[KeywordMark]) -> list[KeywordMark]:
    """Return marks with places in characters. marks: with places in bytes of UTF-8."""
    places = sorted({place for mark in marks for place in (mark.start, mark.end)})
    characters, at, count = {}, 0, 0
    for place in places:
        count += len(data[at:place].decode("utf-8", "surrogatepass"))
        at = place
        characters[place] = count
    return [mark._replace(start=characters[mark.start], end=characters[mark.end]) for mark in marks]


def merge_marks(marks: list[KeywordMark]) -> list[KeywordMark]:
    """Return one mark for marks that differ only in their categories."""
    merged: dict[tuple[object, ...], KeywordMark] = {}
    for mark in marks:
        key = mark._replace(categories=())
        other = merged.get(key)
        names = mark.categories if other is None else (*other.categories, *mark.categories)
        merged[key] = mark._replace(categories=tuple(dict.fromkeys(names)))
    return list(merged.values())


class LineScorer:
    """Scores the lines of one message, like `score_lines`.

    marks: the keywords with their reasons, places in bytes of the text.
    shares: of the sum of each category.
    """

    def __init__(self, prose: Prose, lines: dict[int, list[Hit]], tuned: bool) -> None:
        """lines: the keywords of each line of the prose, by the line's number, sorted."""
        self.prose, self.lines, self.tuned = prose, lines, tuned
        self.marks: list[KeywordMark] = []
        self.shares: dict[str, float] = dict.fromkeys(memory.CATEGORIES, 0.0)
        self.boosted: dict[str, int] = dict.fromkeys(memory.CATEGORIES, 0)
        self.plain: dict[str, int] = dict.fromkeys(memory.CATEGORIES, 0)
        self.used: set[Hit] = set()  # boosters that count
        self.first: dict[int, dict[int, Hit]] = {}  # the first hit of each number, by line
        for line, hits in lines.items():
            self.first[line] = {hit.number: hit for hit in reversed(hits)}

    def score(self) -> None:
        """Score all lines."""
        for number, hits in sorted(self.lines.items()):
            negations: set[Hit] = set()
            for hit, state, negation in read_line(hits, self.tuned):
                if negation is not None:
                    negations.add(negation)
                self.add_keyword(hit, state, negation, number)
            for negation in sorted(negations):
                self.add(negation, "negation", (), False, "it takes back the next keyword")
        self.add_boosters()

    def add(self, hit: Hit, kind: str, categories: tuple[str, ...], counts: bool, why: str) -> None:
        """Add a mark."""
        self.marks.append(KeywordMark(*self.prose.place(hit), kind, categories, counts, False, why))

    def word(self, hit: Hit) -> str:
        """Return the words of a hit, in quotation marks."""
        words = self.prose.data[hit.start : hit.end].decode("utf-8", "replace")
        return f'"{" ".join(words.split())}"'

    def add_keyword(self, hit: Hit, state: str, negation: Hit | None, number: int) -> None:
        """Add the mark of one keyword.

        number: of its line.
        """
        category = category_of(hit.number)
        if state == NEGATED and negation is not None:
            counts, why = False, f"{self.word(negation)} takes it back"
        elif state == NESTED:
            counts, why = False, "it is a part of another keyword"
        elif state == REPEATED:
            counts, why = False, "another keyword in its line counts"
        else:
            counts, why = self.weigh(category, number)
        self.add(hit, "keyword", (category,), counts, why)

    def weigh(self, category: str, number: int) -> tuple[bool, str]:
        """Return whether a line still counts for a category, and why; add its share to the sum."""
        booster = self.booster_near(number, 2 * memory.CATEGORIES.index(category) + 1)
        if booster is not None and self.boosted[category] < memory.MAX_BOOSTED:
            self.boosted[category] += 1
            self.shares[category] += memory.BOOSTED
            self.used.add(booster)
            return True, f"+{memory.BOOSTED}, with {self.word(booster)} near it"
        if self.plain[category] < memory.MAX_PLAIN:
            self.plain[category] += 1
            self.shares[category] += memory.PLAIN
            near = "no booster is near it"
            if booster is not None:
                near = f"{memory.MAX_BOOSTED} with a booster count already"
            return True, f"+{memory.PLAIN}, {near}"
        full = f"{memory.MAX_PLAIN} without a booster count already"
        if booster is not None:
            full = f"{memory.MAX_BOOSTED} with a booster and {full}"
        return False, full

    def booster_near(self, number: int, booster: int) -> Hit | None:
        """Return the first booster of this number in the window of a line, or None."""
        for near in range(number - LINES_BEFORE, number + LINES_AFTER + 1):
            if (hit := self.first.get(near, {}).get(booster)) is not None:
                return hit
        return None

    def add_boosters(self) -> None:
        """Add the marks of the boosters."""
        for number, hits in sorted(self.lines.items()):
            for hit in hits:
                if hit.number == memory.NEGATION or hit.number % 2 == 0:
                    continue
                category = category_of(hit.number)
                near = range(number - LINES_AFTER, number + LINES_BEFORE + 1)
                if hit in self.used:
                    why = "a keyword near it counts more"
                elif any(hit.number - 1 in self.first.get(line, ()) for line in near):
                    why = "no keyword near it can count more"
                else:
                    why = "no keyword is near it"
                self.add(hit, "booster", (category,), hit in self.used, why)


def read_line(hits: list[Hit], tuned: bool) -> list[tuple[Hit, str, Hit | None]]:
    """Return the keywords of a line with their states, and the negation that cancels one.

    The first table has no negations; of each category, a line counts once.

    hits: sorted.
    """
    found: list[tuple[Hit, str, Hit | None]] = []
    reached: dict[int, int] = {}  # the end of the last keyword that counts, by number
    pending: Hit | None = None
    negation: Hit | None = None
    for hit in hits:
        if pending is not None and pending.end <= hit.start and (negation is None or pending.end > negation.end):
            negation = pending
        if hit.number == memory.NEGATION:
            pending = hit
        elif hit.number % 2 == 0:
            if negation is not None and hit.start - negation.end <= NEGATION_REACH_BYTES:
                found.append((hit, NEGATED, negation))
                continue
            is_inside = hit.start < reached.get(hit.number, 0)
            is_first = hit.number not in reached
            reached[hit.number] = max(reached.get(hit.number, 0), hit.end)
            state = KEYWORD_COUNTS if is_first or (tuned and not is_inside) else NESTED if is_inside else REPEATED
            found.append((hit, state, None))
    return found
