"""What of a message is code, where its signals and keywords are, and why each of them counts or not.

Pure: a text in, marks out. `tailhook.pictures.keyword_marks` has the rules of the memory machine.
"""

from functools import cache
from typing import NamedTuple

from tailhook import _core
from tailhook.machines import idle
from tailhook.patterns.sets import PatternSet, Span
from tailhook.pictures.keyword_marks import KeywordMark, mark_keywords, span_at

CODE_WORDS = {
    "fence": "in a fenced block",
    "indented": "in an indented block",
    "span": "in a code span",
    "comment": "in an HTML comment",
    "raw": "in raw HTML",
}


class TextMark(NamedTuple):
    """A signal or a keyword in a text.

    start, end: characters of the text, the end exclusive.
    kind: "signal", "keyword", "booster" or "negation".
    name: the signal's word, or the names of categories.
    why: why it counts or not, as the rest of a sentence.
    """

    start: int
    end: int
    kind: str
    name: str
    counts: bool
    why: str


class Explanation(NamedTuple):
    """A text with its code and its marks.

    marks: sorted by place.
    ends: the deciding signal, and the modes of the loops that it would end; None if no signal counts.
    shares: the text's shares of the sums of the memory machine's categories.
    """

    text: str
    code: list[Span]
    marks: list[TextMark]
    ends: "tuple[str, tuple[str, ...]] | None"
    shares: dict[str, float]


def explain_text(text: str, role: str | None, excluded: str = "", tuned: bool = False) -> Explanation:
    """Return a message's text with its code, and with its signals and keywords.

    role: of the message; only the assistant's signals count.
    excluded: why nothing in this message counts, such as "a sub-agent wrote it"; "" if it does.
    tuned: use the memory machine's second profile.
    """
    code = [Span(*span) for span in _core.code_spans(text, Span)]
    silent = excluded or ("" if role == "assistant" else "only the agent's own words end a loop")
    found = mark_signals(text, code, silent)
    ends = next(((mark.name, modes_of(text[mark.start : mark.end])) for mark in reversed(found) if mark.counts), None)
    keywords, shares = mark_keywords(text, code, tuned)
    if excluded:
        shares = {}
    found += [keyword_mark(one, code, excluded) for one in keywords]
    return Explanation(text, code, sorted(found, key=lambda mark: mark[:3]), ends, shares)


# ---- signals -----------------------------------------------------------------


@cache
def signal_set(own_line: bool) -> PatternSet:
    """Return the set of the idle machine's signals: in any place, or only alone on their lines."""
    texts = {text for signals in idle.SIGNALS.values() for text in signals}
    return PatternSet(sorted(texts), own_line=own_line, outside_code=False)


def modes_of(signal: str) -> tuple[str, ...]:
    """Return the modes of the loops that a signal ends."""
    return tuple(mode for mode, signals in idle.SIGNALS.items() if signal in signals)


def signal_word(signal: str) -> str:
    """Return the word in a signal.

    >>> signal_word("<loop-done>COMPLETE</loop-done>")
    'COMPLETE'
    """
    return signal.partition(">")[2].partition("<")[0]


def mark_signals(text: str, code: list[Span], silent: str) -> list[TextMark]:
    """Return the signals in a text, in order.

    silent: why none counts, "" if they do.
    """
    alone = {(match.start, match.end) for match in signal_set(True).findall(text)}
    found = []
    for match in signal_set(False).findall(text):
        faults = []
        if (span := span_at(code, match.start, match.end)) is not None:
            faults.append(CODE_WORDS[span.kind])
        if (match.start, match.end) not in alone:
            faults.append("not alone on its line")
        if silent:
            faults.append(silent)
        why = ", ".join(faults) or "alone on its line, outside of code"
        found.append(TextMark(match.start, match.end, "signal", signal_word(match.name), not faults, why))
    last = next((mark for mark in reversed(found) if mark.counts), None)
    return [
        mark._replace(counts=False, why="a later signal decides") if mark.counts and mark is not last else mark
        for mark in found
    ]


# ---- keywords ----------------------------------------------------------------


def keyword_mark(found: KeywordMark, code: list[Span], excluded: str) -> TextMark:
    """Return the mark of a keyword."""
    why, counts = found.why, found.counts
    if found.is_code:
        span = span_at(code, found.start, found.end)
        why = CODE_WORDS[span.kind] if span is not None else why
    if excluded:
        why, counts = excluded, False
    return TextMark(found.start, found.end, found.kind, " and ".join(found.categories), counts, why)
