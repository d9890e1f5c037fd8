"""The lines of an explained message, cut into runs of one look, with their marks. Both pictures use them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tailhook.machines import memory
from tailhook.pictures.explanation import Explanation, TextMark
from tailhook.pictures.keyword_marks import span_at, span_end

MAX_EXPLAINED_CHARS = 1 << 20  # of a text, in whole lines; also the limit of one line
MAX_NOTES = 2000
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
ORDER = ("signal", "keyword", "booster", "negation")  # the first kind wins if two marks share a place


class TextRun(NamedTuple):
    """A part of a line with one look.

    mark: its mark, or None.
    """

    start: int
    end: int
    is_code: bool
    mark: TextMark | None


class ShownLine(NamedTuple):
    """A line of a text, without its end.

    number: from 1.
    is_code: whether it is all code, or empty and inside of code.
    marks: the ones that begin in it.
    """

    number: int
    start: int
    end: int
    is_code: bool
    runs: list[TextRun]
    marks: list[TextMark]


def cut_lines(explanation: Explanation) -> Iterator[ShownLine]:
    """Yield the shown lines of a text. LF, CRLF and CR end a line."""
    notes = 0
    for number, found in enumerate(LINE.finditer(explanation.text, 0, MAX_EXPLAINED_CHARS), 1):
        start = found.start()
        end = start + len(found[0].rstrip("\r\n"))
        first = bisect_left(explanation.marks, start, key=mark_start)
        last = bisect_left(explanation.marks, found.end(), first, key=mark_start)
        marks = explanation.marks[first : min(last, first + MAX_NOTES - notes)]
        notes += len(marks)
        runs = list(cut_runs(explanation, marks, start, end))
        is_code = all(run.is_code for run in runs) if runs else span_at(explanation.code, start, start + 1) is not None
        yield ShownLine(number, start, end, is_code, runs, marks)


def hidden_part(explanation: Explanation) -> str:
    """Return words about the hidden rest of a text and its marks, "" if nothing is hidden."""
    parts = []
    if len(explanation.text) > MAX_EXPLAINED_CHARS:
        parts.append(f"{len(explanation.text) - MAX_EXPLAINED_CHARS:,} more characters")
    if len(explanation.marks) > MAX_NOTES:
        parts.append(f"more than {MAX_NOTES:,} marks")
    return f"Not shown: {' and '.join(parts)}." if parts else ""


def cut_runs(explanation: Explanation, marks: list[TextMark], start: int, end: int) -> Iterator[TextRun]:
    """Yield the runs of a line.

    marks: of the line, sorted.
    """
    code = explanation.code
    first = bisect_right(code, start, key=span_end)
    spans = []
    while first < len(code) and code[first].start < end:
        spans.append(code[first])
        first += 1
    edges = {start, end, *(place for mark in marks for place in (mark.start, mark.end))}
    edges |= {place for span in spans for place in (span.start, span.end)}
    places = sorted(place for place in edges if start <= place <= end)
    open_marks: list[TextMark] = []
    mark, span = 0, 0
    for left, right in pairwise(places):
        while mark < len(marks) and marks[mark].start <= left:
            open_marks.append(marks[mark])
            mark += 1
        open_marks = [one for one in open_marks if one.end > left]
        while span < len(spans) and spans[span].end <= left:
            span += 1
        is_code = span < len(spans) and spans[span].start <= left
        top = min(open_marks, key=lambda one: (not one.counts, ORDER.index(one.kind)), default=None)
        yield TextRun(left, right, is_code, top)


def mark_start(mark: TextMark) -> int:
    """Return the start of a mark."""
    return mark.start


def format_note(mark: TextMark) -> str:
    """Return why a mark counts or not, as a line for a person."""
    if mark.kind == "signal":
        return f"signal {mark.name} {'counts' if mark.counts else 'does not count'}: {mark.why}"
    if mark.kind == "keyword":
        return f"{mark.name} {mark.why}" if mark.counts else f"{mark.name} does not count: {mark.why}"
    if mark.kind == "booster":
        return f"booster of {mark.name}: {mark.why}"
    return f"negation: {mark.why}"


def sum_up(explanation: Explanation, role: str | None, excluded: str) -> list[str]:
    """Return the result of the marks, as lines for a person.

    role: of the message.
    excluded: why the message's words do not count, "" if they do.
    """
    signals = [mark for mark in explanation.marks if mark.kind == "signal"]
    if explanation.ends is not None:
        word, modes = explanation.ends
        ended = f"Signal {word} would end a loop (mode {' or '.join(modes)})."
    elif role != "assistant":
        ended = "Only the agent's own words can end a loop."
    elif signals:
        count = len(signals)
        which = "1 signal, which does not count" if count == 1 else f"{count:,} signals, of which none counts"
        ended = f"{which}: this message would not end a loop."
    else:
        ended = "No signal: this message would not end a loop."
    if excluded:
        return [ended, f"Nothing in this message counts: {excluded}."]
    shares = [f"{name} +{share:.1f} of {memory.WHOLE:.1f}" for name, share in explanation.shares.items()]
    return [ended, f"This message adds {', '.join(shares) or 'nothing'} to the scores of the memory machine."]
