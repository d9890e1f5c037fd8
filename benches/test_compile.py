"""The time to compile 1 to 10,000 patterns, and a scan's question with them.

A scan pays this before its first byte. The patterns are five words of random letters, about 35 bytes.
Times are of the processor: no engine waits for anything, and other programs do not count.
"""

import json
import random
import time

import pytest
from test_literals import ENGINES

import tailhook
from tailhook.patterns.sets import PatternSet

COUNTS = (1, 100, 500, 1000, 10_000)
pytestmark = pytest.mark.benchmark(timer=time.process_time)


def random_patterns(count):
    chance = random.Random(count)
    words = ("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(5 * count))
    return [" ".join(five) for five in zip(*[words] * 5, strict=True)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "re"])
def test_compile(benchmark, engine, count):
    patterns = random_patterns(count)
    text = f"{patterns[-1]} and {patterns[0]}".encode()
    ends = sorted({len(text), len(patterns[-1])})
    assert sorted({end for _, end in ENGINES[engine](patterns, False)(text)}) == ends
    benchmark.group = f"{count:,} patterns"
    benchmark.pedantic(ENGINES[engine], (patterns, False), rounds=3 if count > 1000 else 5)


@pytest.mark.parametrize("count", COUNTS)
def test_question(benchmark, tmp_path, count):
    patterns = random_patterns(count)
    record = {"type": "user", "message": {"role": "user", "content": patterns[-1]}}
    (tmp_path / "one.jsonl").write_text(json.dumps(record))
    assert [row.name for row in tailhook.scan(tmp_path, patterns=patterns).rows()] == [patterns[-1]]
    assert [row.name for row in tailhook.scan(tmp_path, patterns=PatternSet(patterns)).rows()] == [patterns[-1]]
    benchmark.group = f"{count:,} patterns"
    benchmark.pedantic(tailhook.scan, (tmp_path,), {"patterns": patterns}, rounds=3 if count > 1000 else 5)
