"""Every fuzz target for a moment: its seeds, and a few thousand mutations of them, the same in every run."""

import time
import zlib
from random import Random

import pytest
from fuzz.inputs import mutated, seeds
from fuzz.targets import TARGETS

SECONDS = 1.0
MAX_MUTATIONS = 4000


@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(report, name):
    inputs = seeds(name)
    for data in inputs:
        TARGETS[name](data)
    chance, deadline = Random(zlib.crc32(name.encode())), time.monotonic() + SECONDS
    done = 0
    while done < 200 or (done < MAX_MUTATIONS and time.monotonic() < deadline):
        data = mutated(chance, inputs)
        try:
            TARGETS[name](data)
        except Exception as error:
            raise AssertionError(f"{name}: {data!r}") from error
        done += 1
    report(f"fuzz: {name}, {len(inputs)} seeds and {done:,} mutations")
