"""Compare ignore_case and word with `re` on any number of random lines.

python tests/fuzz/keywords_long.py --lines 1000000 [--seed N]
"""

import argparse
import sys
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.keywords import KEYWORDS, found_by_re, hard_line, regexes

from tailhook.patterns.sets import PatternSet


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=1_000_000)
    options.add_argument("--seed", type=int, default=0)
    options = options.parse_args()
    chance = Random(options.seed)
    patterns = PatternSet(KEYWORDS, ignore_case=True, word=True, outside_code=False)
    compiled = list(regexes(KEYWORDS))
    matches = 0
    for number in range(options.lines):
        line = hard_line(chance)
        found = sorted((match.name, match.start, match.end) for match in patterns.findall(line))
        wanted = found_by_re(compiled, line)
        if found != wanted:
            sys.exit(f"line {number} of seed {options.seed}: {line!a}\n  re: {wanted}\n  tailhook: {found}")
        matches += len(found)
    sys.stdout.write(f"{options.lines} lines, {matches} matches: as re finds them\n")


if __name__ == "__main__":
    main()
