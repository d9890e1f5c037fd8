"""ignore_case and word against `re`, which defines them."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.keywords import BESIDE, BLANKS, KEYWORDS, found_by_re, hard_line, regexes
from support.long_runs import examples

from tailhook._core import keywords as core_keywords
from tailhook.machines.keywords import tables
from tailhook.patterns.sets import PatternSet


def found(patterns, text):
    return sorted((match.name, match.start, match.end) for match in patterns.findall(text))


@pytest.mark.parametrize("seed", range(10))
def test_keywords_are_found_as_re_finds_them(seed):
    patterns = PatternSet(KEYWORDS, ignore_case=True, word=True, outside_code=False)
    compiled = list(regexes(KEYWORDS))
    chance = Random(seed)
    matched = 0
    for _ in range(2000):
        line = hard_line(chance)
        wanted = found_by_re(compiled, line)
        assert found(patterns, line) == wanted, ascii(line)
        matched += len(wanted)
    assert matched > 1000


@pytest.mark.parametrize("profile", ["seed", "tuned"])
def test_the_built_in_tables_find_what_re_finds(profile):
    numbers = tables()[profile]
    words = list(dict.fromkeys(word for _, word in numbers))
    compiled = list(regexes(words))
    by_word = {word: [number for number, other in numbers if other == word] for word in words}
    chance = Random(5)
    for _ in range(3000):
        line = hard_line(chance, words).encode("utf-8", "replace").decode()
        wanted = sorted(
            (number, len(line[:start].encode()), len(line[:end].encode()))
            for word, start, end in found_by_re(compiled, line)
            for number in by_word[word]
        )
        assert sorted(core_keywords(line.encode(), profile == "tuned")) == wanted, ascii(line)


ALPHABET = st.sampled_from([letter for letter in ("a", "b", *"iskISK", "-", *BESIDE, *BLANKS) if len(letter) == 1])
PATTERN = st.text(ALPHABET, min_size=1, max_size=7).filter(lambda text: not text.isspace())


@settings(max_examples=examples(500))
@given(st.data(), st.lists(PATTERN, min_size=1, max_size=5, unique=True))
def test_patterns_of_any_letters_are_found_as_re_finds_them(data, patterns):
    folded = [pattern for pattern in patterns if not any(letter in pattern for letter in "éß漢\u0345ªⅧ")] or ["k"]
    parts = data.draw(st.lists(st.one_of(st.sampled_from(folded), ALPHABET), max_size=25))
    text = "".join(parts)
    wanted = found_by_re(list(regexes(folded)), text)
    assert found(PatternSet(folded, ignore_case=True, word=True, outside_code=False), text) == wanted
