"""Show by instruction counts that the code map is linear: four times a worst case costs four times as much.

    python tests/fuzz/markdown_linear.py [name]

Counts repeat exactly, so a run on a busy machine shows the same. Needs valgrind; without it nothing is counted.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from markdown_worst_cases import WORST_CASES  # noqa: E402

SIZE = 50_000
AT_MOST = 4.6  # the logarithm in a search among long backtick runs, and what grows by doubling, make it more than 4
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
PROGRAM = """
import sys
sys.path.insert(0, "src")
from tailhook import _core
class Span(tuple): __slots__ = ()
text = sys.stdin.buffer.read()
if sys.argv[1:]: _core.code_spans(text, Span)
"""


def instructions(text: str) -> int:
    """Of the code map alone: what it takes to start and to read the text is taken off."""
    return executed(text, "map") - executed(text)


def executed(text: str, *words: str) -> int:
    run = subprocess.run(
        [*VALGRIND, sys.executable, "-S", "-c", PROGRAM, *words],
        input=text.encode(),
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"},
    )
    return int(re.search(rb"I\s+refs:\s+([\d,]+)", run.stderr)[1].replace(b",", b""))


def main() -> int:
    if shutil.which("valgrind") is None:
        print("no valgrind here: instructions are not counted")
        return 0
    wrong = 0
    for name in sys.argv[1:] or WORST_CASES:
        small, large = (instructions(WORST_CASES[name](size)) for size in (SIZE, 4 * SIZE))
        wrong += large > AT_MOST * small
        print(f"{name:50} {small / SIZE:8.1f} instructions a byte, {large / small:5.2f} times as many for four times")
    print(f"markdown: {wrong} worst cases cost more than {AT_MOST} times as much at four times the size")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
