"""The automaton against slower searches for the same matches."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.long_runs import examples

from tailhook.patterns.sets import PatternSet

LETTERS = st.sampled_from("abiksAIKS -_\té\u0130\u0131\u017f\u212a漢\x00")
WORDS = st.text(LETTERS, min_size=1, max_size=6)
SETS = st.lists(WORDS, min_size=1, max_size=12, unique=True)


@st.composite
def texts_with(draw, patterns):
    parts = st.one_of(st.sampled_from(patterns), st.sampled_from(patterns).map(str.swapcase), WORDS, st.just("." * 70))
    return "".join(draw(st.lists(parts, max_size=20)))


@settings(max_examples=examples(150))
@given(st.data(), SETS)
def test_all_overlapping_matches_are_found_and_no_others(data, patterns):
    text = data.draw(texts_with(patterns))
    wanted = [
        (start, start + len(pattern), number)
        for number, pattern in enumerate(patterns)
        for start in range(len(text))
        if text.startswith(pattern, start)
    ]
    found = PatternSet(patterns, outside_code=False).findall(text)
    assert [(match.start, match.end, patterns.index(match.name)) for match in found] == sorted(wanted)


@settings(max_examples=examples(150))
@given(st.data(), SETS, st.booleans(), st.booleans())
def test_the_prefilter_never_changes_what_is_found(data, patterns, ignore_case, word):
    patterns = [pattern for pattern in patterns if pattern.strip()] or ["a"]
    automaton = PatternSet(patterns, ignore_case=ignore_case, word=word)._automaton
    text = data.draw(st.one_of(texts_with(patterns).map(str.encode), st.binary(max_size=300)))
    assert sorted(automaton.hits(text)) == sorted(automaton.hits(text, False))
