"""Count the instructions of a hook, which repeat where milliseconds do not, and compare with what they were.

usage: instructions.py [--write]        --write: record the counts as the new baseline

A count is told in units of what bare Python executes on the same machine, so that another build of the interpreter
hardly moves it; it may grow by 3 %. Needs valgrind; without it there is nothing to compare and the exit code is 0.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tailhook.cli.bench import CASES, Stop
from tailhook.hosts.command import real_interpreter

BASELINE = Path(__file__).with_name("instructions.json")
TOLERANCE = 1.03


def main() -> int:
    """Print the counts; 1 when one has grown too much."""
    if shutil.which("valgrind") is None:
        sys.stdout.write("no valgrind here: instructions are not counted\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="tailhook-instructions-") as folder:
        stops = [Stop(Path(folder) / str(number), case, "10 KB") for number, case in enumerate(CASES)]
        bare = instructions([real_interpreter(), "-I", "-S", "-c", "pass"], stops[0])
        found = {}
        for stop in stops:
            instructions(stop.hook, stop)  # the first run writes the bytecode
            found[stop.case.name] = round(instructions(stop.hook, stop) / bare, 4)
    if "--write" in sys.argv:
        BASELINE.write_text(json.dumps(found, indent=2) + "\n")
    before = json.loads(BASELINE.read_text())
    sys.stdout.write(f"{'hook':<42}{'x bare':>10}{'baseline':>10}    (bare: {bare / 1e6:.1f} million instructions)\n")
    grown = [name for name, count in found.items() if count > before[name] * TOLERANCE]
    for name, count in found.items():
        sys.stdout.write(f"{name:<42}{count:>10.4f}{before[name]:>10.4f}{'  grown' if name in grown else ''}\n")
    return 1 if grown else 0


def instructions(argv: list[str], stop: Stop) -> int:
    """How many instructions the process executes from its start to its end."""
    stop.reset()
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *argv],
        stdin=stop.payload.open("rb"),
        env={**stop.env, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


if __name__ == "__main__":
    sys.exit(main())
