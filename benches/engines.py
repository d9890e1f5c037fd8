"""Times scans on Daft's local runner beside the local engine, in turns, on the same set and the same processors.

usage: engines.py [ROUNDS]    (`make figures`)
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
from transcript_set import make_set

import tailhook

QUESTIONS = {
    "records": {"table": "records"},
    "matches": {"patterns": ["error", "pytest", "function", "because", "failed", "root cause"]},
    "usage": {"table": "usage"},
}


def main() -> None:
    """Print a line for each question: seconds of both engines, and how fast Daft is beside the local engine."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "set"
        size = make_set(folder)
        for name, asked in QUESTIONS.items():
            local, on_daft = compare(tailhook.scan(folder, workers=os.cpu_count(), **asked), rounds)
            beside = f"{size / local / 1e9:.2f} GB/s locally, {size / on_daft / 1e9:.2f} on Daft"
            print(f"{name}: {beside}: {local / on_daft:.2f} of it", flush=True)


def compare(scan: Any, rounds: int) -> tuple[float, float]:
    """Return the median seconds of a scan on the local engine and on Daft. They must give equally many rows."""
    engines: list[Callable[[], int]] = [
        lambda: pyarrow.table(scan).num_rows,
        lambda: scan.to_daft().to_arrow().num_rows,
    ]
    assert len({engine() for engine in engines}) == 1
    seconds: list[list[float]] = [[], []]
    for _ in range(rounds):
        for engine, times in zip(engines, seconds, strict=True):
            started = time.perf_counter()
            engine()
            times.append(time.perf_counter() - started)
    local, on_daft = map(statistics.median, seconds)
    return local, on_daft


if __name__ == "__main__":
    main()
