"""Every fuzz target for a moment: its seeds, and a hundred mutations of them, the same in every run."""

import zlib
from random import Random

import pytest
from fuzz.inputs import mutated, seeds
from fuzz.targets import TARGETS
from support.long_runs import IS_LONG

MUTATIONS = 4000 if IS_LONG else 100


@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(report, name):
    inputs = seeds(name)
    for data in inputs:
        TARGETS[name](data)
    chance = Random(zlib.crc32(name.encode()))
    for _ in range(MUTATIONS):
        data = mutated(chance, inputs)
        try:
            TARGETS[name](data)
        except Exception as error:
            raise AssertionError(f"{name}: {data!r}") from error
    report(f"fuzz: {name}, {len(inputs)} seeds and {MUTATIONS:,} mutations")
