"""Compare the code map with the oracle on any number of generated documents.

python tests/fuzz/markdown_long.py --documents 10000000 --seed 1
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.markdown_documents import document
from support.oracles.markdown import Oracle

from tailhook.patterns.sets import code_spans


def differs(oracle: Oracle, text: str) -> bool:
    return [tuple(span) for span in code_spans(text)] != oracle.spans(text)


def minimised(oracle: Oracle, text: str) -> str:
    """Return a smaller text that still differs."""
    size = len(text) // 2
    while size:
        at = 0
        while at < len(text):
            shorter = text[:at] + text[at + size :]
            if differs(oracle, shorter):
                text = shorter
            else:
                at += size
        size //= 2
    return text


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--documents", type=int, default=1_000_000)
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    random, oracle, wrong = Random(options.seed), Oracle(), 0
    start = time.monotonic()
    for number in range(1, options.documents + 1):
        text = document(random)
        if differs(oracle, text):
            wrong += 1
            least = minimised(oracle, text)
            print(f"document {number}: {least!r}")
            print(f"  core   {[tuple(span) for span in code_spans(least)]}\n  oracle {oracle.spans(least)}")
            if wrong == 100:
                break
        if number % 100_000 == 0:
            print(f"{number:,} documents, {wrong} differ, {time.monotonic() - start:.0f} s", flush=True)
    print(f"markdown: {number:,} documents compared with markdown-it-py, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
