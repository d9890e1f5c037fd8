"""All overlapping matches of 6, 8, 40 and 94 literals in prose: without a hit, and with hits as they come.

Each engine gives the plain matches as its user would get them, (pattern, end) each: no code map, no lines.
`re` finds no overlapping matches, so it is only compared if there are none.
"""

import random
import re
from functools import cache

import ahocorasick
import ahocorasick_rs
import hyperscan
import pytest
from support.keywords import KEYWORDS

from tailhook.patterns.sets import PatternSet

MEGABYTES = 16
SIGNALS = [
    *(f"<loop-done>{word}</loop-done>" for word in ("COMPLETE", "MAX_ITERATIONS", "STUCK")),
    *("<issue-complete>DONE</issue-complete>", "<grind-done>NO_MORE_ISSUES</grind-done>"),
    "<grind-done>MAX_ISSUES</grind-done>",
]
MORE = [
    phrase.strip()
    for phrase in """
    let's go with, settled on, rate limit, root cause was, going with, we will use, opted for, the fix is, fixed the,
    turned out, stick with, make sure to, hard limit, memory leak, race condition, segfault, out of memory, timeout,
    deadlock, regression, refactor, clean up, follow-up, legacy, deprecated, quick fix, band-aid, do not use, must not,
    should not, style guide, naming, best practice, not allowed, maximum, minimum, depends on, blocked by, crash,
    incompatible, stack overflow, panic, null pointer, permission denied, not found, trade-off, in favour of,
    compared to
    """.split(",")
]
SETS = {6: SIGNALS, 8: KEYWORDS[:8], 40: KEYWORDS[:40], 94: (*KEYWORDS, *MORE)[:94]}
WORDS = """
    the a of to and in that is for it as with on by this be are from at or an not which have was we can will has
    but if all more when one their there been may other use only so then these what some into than its no two also
    file test line code value call change read write check build function path name state work run list result add
    """.split()


def tailhook_engine(patterns, fold):
    automaton = PatternSet(patterns, ignore_case=fold)._automaton
    return lambda text: [(pattern, end) for pattern, _, end in automaton.hits(text)]


def hyperscan_engine(patterns, fold):
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    flags = hyperscan.HS_FLAG_CASELESS if fold else 0
    literals = [pattern.encode() for pattern in patterns]
    database.compile(literals, ids=range(len(literals)), elements=len(literals), flags=flags, literal=True)

    def search(text):
        found = []
        database.scan(
            text, match_event_handler=lambda pattern, _start, end, _flags, _context: found.append((pattern, end))
        )
        return found

    return search


def ahocorasick_rs_engine(patterns, fold):
    literals = [pattern.lower() if fold else pattern for pattern in patterns]
    automaton = ahocorasick_rs.BytesAhoCorasick([literal.encode() for literal in literals])
    return lambda text: [
        (pattern, end)
        for pattern, _, end in automaton.find_matches_as_indexes(text.lower() if fold else text, overlapping=True)
    ]


def pyahocorasick_engine(patterns, fold):
    automaton = ahocorasick.Automaton()
    for number, pattern in enumerate(patterns):
        automaton.add_word(pattern.lower() if fold else pattern, number)
    automaton.make_automaton()

    def search(text):
        text = text.decode()
        return [(pattern, last + 1) for last, pattern in automaton.iter(text.lower() if fold else text)]

    return search


def re_engine(patterns, fold):
    regex = re.compile(b"|".join(re.escape(pattern.encode()) for pattern in patterns), re.IGNORECASE if fold else 0)
    return lambda text: [(match[0], match.end()) for match in regex.finditer(text)]


ENGINES = {
    "tailhook": tailhook_engine,
    "hyperscan": hyperscan_engine,
    "ahocorasick_rs": ahocorasick_rs_engine,
    "pyahocorasick": pyahocorasick_engine,
    "re": re_engine,
}


@cache
def prose(count, fold, hits_per_kilobyte):
    """Return English-like prose for a set, with hits if asked for. One word in a thousand is nearly a pattern."""
    patterns = SETS[count]
    chance = random.Random(94)
    words = chance.choices(WORDS, weights=[1 / rank for rank in range(1, len(WORDS) + 1)], k=60_000)
    near = [pattern[:-2] + pattern[-1] for pattern in patterns if len(pattern) > 4]
    words = [chance.choice(near) if chance.random() < 0.001 else word for word in words]
    text = " ".join(words)
    regex = re.compile("|".join(map(re.escape, patterns)), re.IGNORECASE if fold else 0)
    while regex.search(text):
        text = regex.sub("it", text)
    if hits_per_kilobyte:
        kilobytes = [text[at : at + 1024] for at in range(0, len(text), 1024)]
        text = "".join(f"{part} {chance.choice(patterns)} " for part in kilobytes)
    return (text * (MEGABYTES * 2**20 // len(text) + 1)).encode()


@pytest.mark.parametrize("hits", [0, 1], ids=["no hits", "1 hit a KB"])
@pytest.mark.parametrize("fold", [False, True], ids=["case", "no case"])
@pytest.mark.parametrize("count", SETS)
@pytest.mark.parametrize("engine", ENGINES)
def test_literals(benchmark, engine, count, fold, hits):
    if engine == "re" and hits:
        pytest.skip("re finds no overlapping matches")
    text = prose(count, fold, hits)
    if engine == "re":  # an eighth of it takes up to a second
        text = text[: MEGABYTES * 2**17]
    search = ENGINES[engine](SETS[count], fold)
    sample = text[: 2**20]
    assert sorted(search(sample)) == sorted(tailhook_engine(SETS[count], fold)(sample))
    assert bool(search(sample)) == bool(hits)
    benchmark.group = f"{count} literals, {'no case' if fold else 'case'}, {hits} hits a KB"
    benchmark.extra_info["bytes"] = len(text)
    benchmark.pedantic(search, (text,), rounds=2 if engine == "re" else 5)
