"""The table and the matcher, below the rules of pattern sets."""

import random
import struct
import subprocess
import sys
import tracemalloc

import pytest
from support.cases import in_one_test
from support.opcodes import count_opcodes

from tailhook._core import Automaton
from tailhook.patterns.automaton import compile_table


def automaton(patterns, **options):
    options = {"ignore_case": False, "word": False} | options
    return Automaton(compile_table(list(enumerate(patterns)), **options), tuple(patterns))


def naive(patterns, text):
    """Return each place of each pattern, found with bytes.find."""
    found = []
    for number, pattern in enumerate(pattern.encode() for pattern in patterns):
        at = text.find(pattern)
        while at >= 0:
            found.append((number, at, at + len(pattern)))
            at = text.find(pattern, at + 1)
    return sorted(found)


def test_the_prefilter_and_the_automaton_agree_at_each_length_and_place():
    patterns = ["needle", "dle", "ne", "e", "xyz\x00xyz", "a" * 40]
    sets = [automaton(patterns), automaton(patterns[:3]), automaton(["needle"]), automaton(["a" * 40, "dle"])]
    for length in range(301):
        for text in (b"-" * length + b"needle", (b"needle" * 60)[:length], b"a" * length, b"xyz\0" * (length // 4)):
            for some in sets:
                found = sorted(some.hits(text))
                assert found == sorted(some.hits(text, False)) == naive(some.names, text)
                assert some.has_hit(text) is some.has_hit(text, False) is bool(found)


def test_a_literal_is_found_at_each_place_of_a_block():
    some = automaton(["needle", "q"])
    for before in range(200):
        for behind in range(0, 80, 3):
            text = b"." * before + b"needle" + b"." * behind
            assert some.hits(text) == [(0, before, before + 6)]


@in_one_test("count", [1, 2, 7, 8, 9, 40, 94, 300, 700, 3000])
@in_one_test("ignore_case", [False, True])
def test_sets_of_any_size_find_what_bytes_find_does(count, ignore_case):
    chance = random.Random(count)
    patterns = ["".join(chance.choices("abcd -<é漢", k=chance.randint(1, 9))) for _ in range(count)]
    text = "".join(chance.choices("abcd -<é漢\n", k=2000)).encode()
    some = automaton(dict.fromkeys(patterns), ignore_case=ignore_case)
    assert sorted(some.hits(text)) == sorted(some.hits(text, False)) == naive(some.names, text)
    assert some.has_hit(text)


@pytest.mark.parametrize("prefiltered", [True, False])
def test_a_search_for_one_match_takes_no_memory_however_many_there_are(prefiltered):
    some = automaton(["e"])
    tracemalloc.start()
    try:
        assert some.has_hit(b"e" * 1_000_000, prefiltered)
        assert tracemalloc.get_traced_memory()[1] < 1_100_000  # of which the text has 1,000,000
    finally:
        tracemalloc.stop()


def test_a_pattern_far_longer_than_a_block_is_found():
    long = "".join(random.Random(1).choices("abc", k=70000))
    some = automaton([long, long[:-1], long[60000:]])
    text = f"{long[:65000]}{long}{long[1:]}".encode()
    assert sorted(some.hits(text)) == sorted(some.hits(text, False)) == naive(some.names, text)


def test_a_pattern_of_any_length_is_compiled_in_a_thread_with_a_small_stack():
    code = (
        "import tailhook, threading\n"
        "def find():\n"
        "    print(tailhook.PatternSet(['x' * 300_000]).findall('-' + 'x' * 300_000))\n"
        "threading.stack_size(1 << 18)\n"
        "thread = threading.Thread(target=find); thread.start(); thread.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, "start=1, end=300001" in done.stdout) == (0, True)


def test_patterns_that_nest_a_thousand_deep_are_all_found():
    some = automaton(["a" * length for length in range(1, 1001)])
    assert len(some.hits(b"a" * 1500)) == sum(1501 - length for length in range(1, 1001))


def test_a_hundred_thousand_patterns_make_a_table():
    patterns = [f"pattern number {number}" for number in range(100_000)]
    found = automaton(patterns).hits(b"pattern number 77777!")
    assert [patterns[number] for number, _, _ in found] == [f"pattern number {'7' * digits}" for digits in range(1, 6)]


def test_a_table_past_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr("tailhook.patterns.automaton.CELL_LIMIT", 1000)
    with pytest.raises(ValueError, match="split the set"):
        automaton(["".join(random.Random(2).choices("abcdefgh", k=500))])


def test_the_same_set_makes_the_same_table():
    assert compile_table([(0, "b"), (1, "a")], ignore_case=True, word=True) == compile_table(
        [(0, "b"), (1, "a")], ignore_case=True, word=True
    )


def test_a_damaged_table_is_refused_or_harmless():
    table = compile_table(list(enumerate(["he", "she", "for now"])), ignore_case=True, word=True)
    chance = random.Random(3)
    for _ in range(3000):
        damaged = bytearray(table)
        at = chance.choice([chance.randrange(len(table) // 4), chance.randrange(13)]) * 4
        struct.pack_into(
            "I", damaged, at, chance.choice([0, 1, 3, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, chance.randrange(2000)])
        )
        try:
            some = Automaton(bytes(damaged), ("a", "b", "c"))
        except ValueError:
            continue
        some.hits(b"ushers for now and she, for \xe2\x84\xaa now" * 9)
        some.findall("ushers for now and she" * 9, False, False, tuple)


@pytest.mark.parametrize("data", [b"", b"abc", bytes(64), bytes(4096 * 4)])
def test_what_is_not_a_table_is_refused(data):
    with pytest.raises(ValueError, match="not a table"):
        Automaton(data, ("a",))


def test_an_automaton_without_a_table_is_not_made():
    with pytest.raises(TypeError):
        Automaton.__new__(Automaton)


def work_to_compile(count):
    """Return Python's instructions to compile so many patterns, divided by their number."""
    chance = random.Random(count)
    patterns = [(number, "".join(chance.choices("abcdefghij klmnop", k=10))) for number in range(count)]
    return count_opcodes(compile_table, patterns, ignore_case=False, word=False) / count


def test_the_work_to_compile_a_pattern_does_not_grow_with_their_number():
    work_to_compile(20)  # a result is kept
    few, many, most = map(work_to_compile, (60, 260, 601))
    assert most < many < few < 50_000
