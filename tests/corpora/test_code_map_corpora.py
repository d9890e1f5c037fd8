"""The code map of texts that are not ours, beside the oracle's."""

from support.corpora import commonmark_examples, naughty_strings
from support.oracles.markdown import Oracle
from support.texts import assistant_texts

from tailhook.patterns.sets import code_spans


def compare(texts):
    """Return the numbers of the texts whose code maps differ; the texts themselves are private."""
    oracle = Oracle()
    return [i for i, text in enumerate(texts) if [tuple(span) for span in code_spans(text)] != oracle.spans(text)]


def test_every_example_of_commonmark_has_the_code_of_the_oracle(report):
    texts = [example["markdown"] for example in commonmark_examples()]
    differ = compare(texts)
    report(f"markdown: {len(texts)} CommonMark examples compared with markdown-it-py, {len(differ)} differ")
    assert len(texts) == 652
    assert differ == []


def test_every_text_of_the_transcripts_has_the_code_of_the_oracle(report):
    texts = assistant_texts()
    differ = compare(texts)
    report(f"markdown: {len(texts)} assistant texts compared with markdown-it-py, {len(differ)} differ")
    assert texts
    assert differ == []


def test_every_naughty_string_has_the_code_of_the_oracle(report):
    texts = naughty_strings()
    differ = compare(texts)
    report(f"markdown: {len(texts)} naughty strings compared with markdown-it-py, {len(differ)} differ")
    assert differ == []
