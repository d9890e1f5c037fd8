"""The marks of keywords in a message add up to the counts of the core's `score_lines`."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from support.long_runs import examples

from tailhook import _core
from tailhook.machines import idle, memory
from tailhook.machines.keywords import KEYWORDS, MORE_KEYWORDS, NEGATIONS
from tailhook.pictures.explanation import explain_text
from tailhook.pictures.explanation_lines import cut_lines
from tailhook.pictures.keyword_marks import mark_keywords

WORDS = [word for table in (KEYWORDS, MORE_KEYWORDS) for both in table.values() for words in both for word in words]
SIGNALS = [signal for signals in idle.SIGNALS.values() for signal in signals]
OTHERS = ["a", "`x`", "`", "\n", "\n\n", "```\n", "    ", "é", "日", "<!-- x -->", "~~~\n", "> ", "- ", "\udc80", "\r"]
pieces = st.sampled_from([*WORDS, *WORDS, *NEGATIONS]) | st.sampled_from([*OTHERS, *OTHERS, *SIGNALS])
texts = st.lists(st.tuples(pieces, st.sampled_from(["", " ", "\n"])), max_size=40).map(
    lambda parts: "".join(piece + end for piece, end in parts)
)


@given(texts, st.booleans())
@settings(max_examples=examples(150))
def test_the_marks_come_to_what_the_core_counts(text, tuned):
    lines = _core.score_lines([text.encode("utf-8", "surrogatepass")], tuned)
    counted = Counter(memory.CATEGORIES[line[0]] for line in lines)
    found, shares = mark_keywords(text, explain_text(text, "assistant", "", tuned).code, tuned)
    assert (
        Counter(name for mark in found if mark.kind == "keyword" and mark.counts for name in mark.categories) == counted
    )
    for category in memory.CATEGORIES:
        expected = sum(memory.share(line) for line in lines if memory.CATEGORIES[line[0]] == category)
        assert abs(shares.get(category, 0) - expected) < 1e-9


@given(texts)
@settings(max_examples=examples(100))
def test_the_signal_that_decides_is_the_last_one_that_the_core_finds(text):
    explanation = explain_text(text, "assistant")
    deciding = [text[mark.start : mark.end] for mark in explanation.marks if mark.kind == "signal" and mark.counts]
    assert deciding == _core.signals(text)[-1:]


@given(texts)
@settings(max_examples=examples(100))
def test_the_runs_of_all_lines_cover_the_text(text):
    explanation = explain_text(text, "assistant")
    shown = "".join(text[run.start : run.end] for line in cut_lines(explanation) for run in line.runs)
    assert shown == text.replace("\r", "").replace("\n", "")
