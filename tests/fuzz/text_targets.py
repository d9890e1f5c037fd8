"""Fuzz targets of text: Markdown code, patterns, front matter, times, secrets."""

import datetime
import re

from fuzz.json_targets import result_of
from support.keywords import KEYWORDS, found_by_re, regexes
from support.oracles.markdown import Oracle

from tailhook import _core
from tailhook.machines import idle
from tailhook.machines.secret_rules import KEY_BEGINNINGS
from tailhook.machines.secrets import mask
from tailhook.patterns.sets import PatternSet, code_spans
from tailhook.pictures.explanation import CODE_WORDS
from tailhook.stores.frontmatter import FrontMatter

LITERALS = ["a", "ab", "bab", "abab", "éa", "<loop-done>", "done>"]
SETS = {fold: PatternSet(LITERALS, ignore_case=fold, outside_code=False) for fold in (False, True)}
WORDS = PatternSet(KEYWORDS, ignore_case=True, word=True, outside_code=False)
ORACLE = Oracle()


def code_map(data):
    text = data.decode("utf-8", "replace")
    assert [tuple(span) for span in code_spans(text)] == ORACLE.spans(text)
    for kind, start, end in code_spans(data):
        assert kind in CODE_WORDS
        assert 0 <= start < end <= len(data)


def literals(data):
    text = data.decode("utf-8", "replace")
    expected = sorted(
        (at, at + len(literal), LITERALS.index(literal), literal)
        for literal in LITERALS
        for at in range(len(text))
        if text.startswith(literal, at)
    )
    found = SETS[False].findall(text)
    assert [(match.start, match.end, match.name) for match in found] == [(a, b, name) for a, b, _, name in expected]
    folded = {(match.start, match.end, match.name) for match in SETS[True].findall(text)}
    assert folded >= {(a, b, name) for a, b, _, name in expected}
    for match in SETS[True].findall(data):
        assert 0 <= match.start < match.end <= len(data)


def keywords(data):
    line = " ".join(data.decode("utf-8", "replace").splitlines())
    found = sorted((match.name, match.start, match.end) for match in WORDS.findall(line))
    assert found == found_by_re(COMPILED, line)


COMPILED = list(regexes(KEYWORDS))
MARKERS = tuple(" \t>-+*.)0123456789")


def signals(data):
    text = data.decode("utf-8", "replace")
    known = {signal for mode in idle.SIGNALS.values() for signal in mode}
    found = _core.signals(text)
    assert set(found) <= known
    code = [text[start:end] for _, start, end in code_spans(text)]
    assert len(found) <= sum(text.count(signal) - sum(part.count(signal) for part in code) for signal in known)


def front_matter(data):
    text = data.decode("utf-8", "surrogateescape")
    page = result_of(FrontMatter, text)
    if page is ValueError:
        return
    for key in list(page.spans)[:4]:
        changed = FrontMatter(page.set(key, "5"))
        assert changed[key] == "5"
        assert changed.body == page.body
        assert {name: changed[name] for name in changed.spans if name != key} == {
            name: page[name] for name in page.spans if name != key
        }


def iso_time(data):
    text = data.decode("utf-8", "replace")
    ours = _core.unix_time(text)
    try:
        theirs = datetime.datetime.fromisoformat(text)
    except ValueError:
        return
    if ours is not None and "," not in text and not re.search(r"T\d\d(:?\d\d)?\.|24", text):
        if theirs.tzinfo is None:
            theirs = theirs.replace(tzinfo=datetime.UTC)
        assert abs(theirs.timestamp() - ours) < 1e-3


PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}KEY-----[ \t\r\n]*[A-Za-z0-9+/=]{16}")


def masked_text(data):
    text = data.decode("utf-8", "surrogatepass" if data.isascii() else "replace")
    shown = mask(text)
    assert shown.count("\n") <= text.count("\n")
    assert not PRIVATE_KEY.search(shown), shown
    reached = 0
    for start, end in _core.find_keys(text):
        assert reached <= start < end <= len(text)
        assert text[start:end].isascii()
        assert text.startswith(tuple(KEY_BEGINNINGS), start)
        assert text[start:end] not in shown or text.count(text[start:end]) > 1
        reached = end
