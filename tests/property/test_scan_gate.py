"""The gate before the record parser opens for every line with a match: any pattern, any JSON form of the text."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.long_runs import examples

from tailhook._core import RangeScan
from tailhook.fleet.answer import Conditions
from tailhook.fleet.columns import MatchOptions
from tailhook.fleet.program import compile_sets, make_gate, make_program
from tailhook.patterns.sets import PatternSet

# Letters with rules of their own: in JSON, in word boundaries, in case folding, in UTF-16.
LETTERS = st.sampled_from(
    list("aKkSsiI \t\n\"\\/'<>éß\u017f\u212a\u0131\u0130\u00a0\u2028\ufffd漢\U0001f600\U0001d11e\x7f\x01u0")
)
ANYWHERE = MatchOptions(in_code=None)
PATTERNS = st.text(LETTERS | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@st.composite
def written(draw, text):
    """Return a text as one of the JSON strings that stand for it, in UTF-8."""
    parts = []
    for letter in text:
        units = letter.encode("utf-16-be", "surrogatepass")
        escaped = "".join(rf"\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
        upper = escaped.upper().replace("\\U", "\\u")
        ways = [escaped, upper, json.dumps(letter)[1:-1], json.dumps(letter, ensure_ascii=False)[1:-1]]
        if letter == "/":
            ways.append("\\/")
        parts.append(draw(st.sampled_from(ways)))
    return "".join(parts).encode()


@st.composite
def cases(draw):
    """Draw (a set, the JSON text of a string that probably has a match)."""
    word = draw(st.booleans())
    patterns = draw(st.lists(PATTERNS.filter(lambda text: not word or not text.isspace()), min_size=1, max_size=3))
    asked = PatternSet({"p": patterns}, ignore_case=draw(st.booleans()), word=word)
    found = draw(st.sampled_from(patterns))
    if asked.ignore_case:
        found = "".join(draw(st.sampled_from([letter, letter.swapcase(), *alike(letter)])) for letter in found)
    if word:
        found = "".join(draw(st.sampled_from([" ", "\t\n", "\u00a0 "])) if one.isspace() else one for one in found)
    if "\ufffd" in found:
        found = found.replace("\ufffd", draw(st.sampled_from(["\ufffd", "\ud800", "\udc00"])))
    around = st.sampled_from(["", " ", "\n", "漢 "])
    return asked, draw(written(draw(around) + found + draw(around)))


def alike(letter):
    """Return the letters that equal this one if case is ignored."""
    return {"k": "\u212a", "s": "\u017f", "i": "\u0131\u0130"}.get(letter.lower(), "")


def rows(asked, line, gated):
    program = make_program("matches", ("start", "end"), compile_sets([asked]), Conditions(), ANYWHERE)
    if not gated:
        _, (arguments,) = program.__reduce__()
        sets = [(asked._automaton.data, False, 0, 1)]
        program = type(program)(**{**arguments, "sets": sets, "gate": None})
    scan = RangeScan(program)
    scan.begin("t.jsonl", "s", "claude-code")
    scan.feed(line)
    scan.end_file()
    return [batch.columns() for batch in scan.finish()]


def line_of(content):
    return b'{"type":"user","message":{"role":"user","content":"' + content + b'"}}\n'


@settings(max_examples=examples(200), deadline=None)
@given(case=cases())
@example(case=(PatternSet({"p": ["\ufffd"]}), rb"\ud800"))
@example(case=(PatternSet({"p": ["ask"]}, ignore_case=True), rb"A\u017f\u212A"))
def test_a_line_with_a_match_passes_the_gate(case):
    asked, content = case
    line = line_of(content)
    assert rows(asked, line, gated=True) == rows(asked, line, gated=False)


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), more=PATTERNS)
def test_a_line_passes_the_gate_of_several_sets(case, more):
    asked, content = case
    other = PatternSet({"q": [more]}, ignore_case=not asked.ignore_case)
    gate = make_gate([asked, other])
    line = line_of(content)
    program = make_program("matches", ("start",), compile_sets([asked, other]), Conditions(), ANYWHERE)
    _, (arguments,) = program.__reduce__()
    assert arguments["gate"] == gate
    found = []
    for one in (gate, None):
        scan = RangeScan(type(program)(**{**arguments, "gate": one}))
        scan.begin("t.jsonl", "s", "claude-code")
        scan.feed(line * 3)
        scan.end_file()
        found.append([batch.columns() for batch in scan.finish()])
    assert found[0] == found[1]
