"""The code map of generated documents: beside the oracle's, and its invariants."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.long_runs import IS_LONG
from support.markdown_documents import INLINES, LEAVES, document
from support.markdown_worst_cases import WORST_CASES
from support.oracles.markdown import Oracle

from tailhook.patterns.sets import code_spans
from tailhook.pictures.explanation import CODE_WORDS

DOCUMENTS = 40_000 if IS_LONG else 10_000


def test_generated_documents_have_the_code_of_the_oracle(report):
    random, oracle = Random(20260), Oracle()
    texts = [document(random) for _ in range(DOCUMENTS)]
    kinds = {span.kind for text in texts[:1000] for span in code_spans(text)}
    assert kinds == {*CODE_WORDS}, "markdown_documents.py generates every kind of code"
    differ = [text for text in texts if [tuple(span) for span in code_spans(text)] != oracle.spans(text)]
    report(f"markdown: {len(texts):,} generated documents compared with markdown-it-py, {len(differ)} differ")
    assert differ == []


def test_what_comes_before_a_blank_line_only_moves_the_code():
    random = Random(64)
    for length in range(1, 400):
        text = document(random)
        moved = [(span.kind, span.start + length + 2, span.end + length + 2) for span in code_spans(text)]
        assert code_spans("a" * length + "\n\n" + text) == moved


markdown = st.lists(st.sampled_from(INLINES + LEAVES + ["\n", "\n\n", "> ", "- ", "    "]) | st.text(max_size=3)).map(
    "".join
)


@given(markdown)
def test_spans_are_in_order_and_hold_code_of_their_kind(text):
    position = 0
    for span in code_spans(text):
        assert position <= span.start < span.end <= len(text)
        code = text[span.start : span.end]
        if span.kind == "span":
            assert code[0] == code[-1] == "`"
        elif span.kind == "comment":
            assert "<!--" in code
        else:
            assert span.start == 0 or text[span.start - 1] in "\r\n"
            assert span.end == len(text) or code[-1] in "\r\n"
        position = span.end


@given(markdown)
def test_bytes_have_the_same_code_as_the_str(text):
    data = text.encode()
    assert [(span.kind, text[span.start : span.end]) for span in code_spans(text)] == [
        (span.kind, data[span.start : span.end].decode()) for span in code_spans(data)
    ]


@given(st.binary())
def test_any_bytes_are_read(data):
    assert all(0 <= span.start < span.end <= len(data) for span in code_spans(data))


@pytest.mark.parametrize("name", WORST_CASES)
def test_megabytes_of_a_worst_case_come_to_an_end(name):
    """Less than a second if linear, minutes if not; `make fuzz` takes ten megabytes."""
    size = 10_000_000 if IS_LONG else 1_000_000
    text = WORST_CASES[name](size)
    assert len(text) > 0.99 * size
    assert all(span.start < span.end for span in code_spans(text)[-3:])
