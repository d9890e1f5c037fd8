"""Show by instruction counts that the code map is linear: four times a worst case costs four times as much.

    python tests/fuzz/markdown_linear.py [name]

Needs valgrind; without it nothing is counted and the exit code is 0. A busy machine counts the same. Some cases take
fewer instructions than reading the text, or than the start of the process varies by. So each text is mapped many times
in its process and comes from a file, and the bytecode is written before the first count.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.markdown_worst_cases import WORST_CASES  # noqa: E402

SIZE = 50_000
CALLS = 10
AT_MOST = 4.6  # the logarithm of a search among long backtick runs, and buffers that double, make it more than 4
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
PROGRAM = f"""
import sys
sys.path.insert(0, "src")
from tailhook import _core
class Span(tuple): __slots__ = ()
text = sys.stdin.buffer.read()
for _ in range({CALLS}): _core.code_spans(text, Span)
"""


def instructions(text: str) -> int:
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        run = subprocess.run(
            [*VALGRIND, sys.executable, "-S", "-c", PROGRAM],
            stdin=file,
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"},
        )
    return int(re.search(rb"I\s+refs:\s+([\d,]+)", run.stderr)[1].replace(b",", b""))


def costs(name: str, start: int) -> list[float]:
    """Return the instructions for each call, on the text and on four times as much of it."""
    return [(instructions(WORST_CASES[name](size)) - start) / CALLS for size in (SIZE, 4 * SIZE)]


def main() -> int:
    if shutil.which("valgrind") is None:
        print("no valgrind here: instructions are not counted")
        return 0
    names, wrong = sys.argv[1:] or list(WORST_CASES), 0
    instructions("a")  # the first run writes the bytecode
    start = instructions("")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, (small, large) in zip(names, pool.map(partial(costs, start=start), names), strict=True):
            wrong += large > AT_MOST * small
            print(
                f"{name:50} {small / SIZE:8.1f} instructions a byte, {large / small:5.2f} times as many for four times"
            )
    print(f"markdown: {wrong} worst cases cost more than {AT_MOST} times as much at four times the size")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
