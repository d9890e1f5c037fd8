"""Code regions of Markdown: the core beside md4c, cmark-gfm and markdown-it-py.

Peers in other languages render HTML, the quickest output that Python gets from them. Before the time is taken, the
answers are compared: the regions of markdown-it-py, the number of code elements of the others.
"""

import re

import cmarkgfm
import md4c
import pytest
from markdown_it import MarkdownIt
from support.markdown_worst_cases import WORST_CASES
from support.oracles.markdown import Oracle
from support.texts import assistant_prose

from tailhook.patterns.sets import code_spans

ENGINES = {
    "tailhook, bytes": code_spans,
    "tailhook, str": code_spans,
    "md4c, bytes": md4c.HTMLRenderer().parse,
    "md4c, str": md4c.HTMLRenderer().parse,
    "cmark-gfm, str": cmarkgfm.cmark.markdown_to_html,
    "markdown-it-py, str": MarkdownIt("commonmark").parse,
}
HOSTILE = [
    "nothing but backticks",
    "backtick runs of all lengths",
    "nested brackets",
    "link starts",
    "list markers on a line",
]


def given_to(engine, text):
    return text.encode() if engine.endswith("bytes") else text


def code_elements(html):
    """Return the number of code blocks and spans. HTML has none of those in the descriptions of images."""
    return len(re.findall(r"<code[ >]", html if isinstance(html, str) else html.decode()))


@pytest.fixture(scope="module")
def prose():
    text = assistant_prose()
    assert [tuple(span) for span in code_spans(text)] == Oracle().spans(text)
    return text


@pytest.mark.parametrize("engine", ENGINES)
def test_code_of_assistant_prose(benchmark, engine, prose):
    given = given_to(engine, prose)
    if engine.startswith(("md4c", "cmark")):
        assert code_elements(ENGINES[engine](given)) == len(code_spans(prose))
    benchmark.extra_info["bytes"] = len(prose.encode())
    benchmark(ENGINES[engine], given)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if not engine.startswith("markdown-it-py")])
def test_code_of_hostile_text(benchmark, engine, name):
    """Without markdown-it-py: it gives up on some and takes hours over others."""
    text = WORST_CASES[name](100_000)
    given = given_to(engine, text)
    if engine.startswith(("md4c", "cmark")):
        assert code_elements(ENGINES[engine](given)) == len(code_spans(text))
    benchmark.extra_info["bytes"] = len(text.encode())
    benchmark.pedantic(ENGINES[engine], (given,), rounds=5)
