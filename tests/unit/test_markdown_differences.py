"""The code map keeps to CommonMark where markdown-it-py does not: docs/decisions/markdown-differences.md."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tailhook.patterns.sets import code_spans

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "markdown-differences.md"
DIFFERENCES = {  # number and name: document, its code, its code by the untouched preset
    "1 a comment may end in a hyphen": ("a <!----->`b`", ["<!----->", "`b`"], "a &lt;!-----&gt;"),
    "2 a form feed is not a blank in an HTML block": ("<p\x0c\n`a`", ["`a`"], "<p\x0c\n`a`"),
    "2 an unquoted value may hold a control character": ("a <b c=\x01 d='`'> `e`", ["`e`"], "<code>'&gt; </code>"),
    "3 a label keeps Unicode blank space": ("[[a]](`b)`\n\n[a\u3000]: c", [], '<a href="c">'),
    "4 a lazy line is text in an inner quote, too": (">> a\n    # `b\nc`", ["`b\nc`"], "<pre><code># `b\n"),
    "5 a line that leaves an item may be lazy": ("1.   a\n    # b `c\nd`", ["`c\nd`"], "<pre><code># b `c\n"),
    "6 text after a definition may be indented": ("[a]: b\n    `c`", ["`c`"], "<pre><code>`c`\n"),
    "6 it may look like an item from 2": ("[a]: b\n2. c `d\n# e`", [], '<ol start="2">'),
    "6 it may be lazy": ("> [a]: b\n<x>\n`c`", ["`c`"], "<x>\n`c`"),
    "6 an underline ends an incomplete definition": ("[`a`]:\n===\n[`a`]", ["`a`", "`a`"], '<a href="===">'),
    "7 a label is characters": ("[][`a]`\n\n[`a]: b", [], "<code>a]</code>"),
    "7 a blank label is not a label": ("[[a][ ]](`b)`\n\n[a]: c", ["`b)`"], '<a href="%60b">'),
    "8 a backslash escapes no space": ('[a](b\\ "`c`")', [], "<code>c</code>"),
    "9 a quote's marker is indented by three at most": ("> a\n>\n    > b", ["    > b"], "<p>b</p>"),
    "10 a tab counts from the line's start": (">>- \t`a`", [">>- \t`a`"], "<li><code>a</code></li>"),
    "10 if an indent becomes smaller, too": (">>1. \t`a`", ["`a`"], "<pre><code>`a`"),
    "11 a link holds no link inside an image": ("[![[a](b)](c)](`d`)", ["`d`"], '<a href="%60d%60">'),
    "12 any scheme makes a link": ("[a](javascript:`b`)", [], "<code>b</code>"),
    "13 quotes nest without limit": (">" * 21 + " `a`", ["`a`"], "<blockquote></blockquote>"),
    "14 a label has at most 999 characters": (f"[[{'a' * 1000}]](`b)`\n\n[{'a' * 1000}]: c", [], '<a href="c">'),
    "15 an empty title before text is not a title": ('[`a]: b\n"" `c`', ["`c`"], "<code>a]: b &quot;&quot; </code>"),
    "16 a title is set off from the destination": ('[a]: <b>"`\n`"\n\n[a]', ["`\n`"], '<a href="b"'),
    "17 a label follows the text at once": ("[](<`b`>][a]\n\n[a]: c", ["`b`"], '<a href="c"></a>'),
}


@pytest.fixture(scope="module")
def rendered():
    """Return the code of the documents by markdown-it-py, in a process without the oracle's corrections."""
    program = (
        "import json, sys; from markdown_it import MarkdownIt; md = MarkdownIt('commonmark');"
        "print(json.dumps([md.render(text) for text in json.load(sys.stdin)]))"
    )
    documents = json.dumps([markdown for markdown, _, _ in DIFFERENCES.values()])
    run = subprocess.run([sys.executable, "-c", program], input=documents, capture_output=True, text=True, check=True)
    return dict(zip(DIFFERENCES, json.loads(run.stdout), strict=True))


def test_every_row_of_the_page_has_a_case():
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert [*dict.fromkeys(name.split()[0] for name in DIFFERENCES)] == rows


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_the_standard_wins(difference, rendered):
    markdown, code, html = DIFFERENCES[difference]
    assert [markdown[span.start : span.end] for span in code_spans(markdown)] == code
    assert html in rendered[difference]
