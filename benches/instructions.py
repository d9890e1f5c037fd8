"""Count the instructions of a hook and compare them with the last counts. They vary less than milliseconds.

usage: instructions.py [--write] [NAME...]   --write: record the counts as the new baseline; NAME: only these cases

The cases are: those of `tailhook bench`; two of them through the native client without a pool; the worst ones
(worst_cases.py); and the memory machine on real transcripts, the 50 newest messages of each shared one, both profiles.
A count is divided by the instructions of bare Python on the same machine, so another build of the interpreter hardly
moves it. It may grow by 3 %. On a real transcript it may be at most 1.35. A case without a baseline is printed as new.
Needs valgrind: without it the exit code is 2.
Real transcripts are read from the folder `transcripts` in TAILHOOK_CORPORA, or in `shared` beside the checkout. It
prints a line if it finds none.
"""

import json
import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from worst_cases import CASES as WORST_CASES
from worst_cases import Worst, WorstStop

from tailhook.bench.cases import CASES, BenchProject, memory_folder
from tailhook.bench.instructions import count_by_valgrind
from tailhook.bench.rounds import bare_argv
from tailhook.install.command import hook_command
from tailhook.pool.installation import real_interpreter, write_installation

BASELINE = Path(__file__).with_name("instructions.json")
CORPORA = Path(os.environ.get("TAILHOOK_CORPORA") or Path(__file__).resolve().parents[2] / "shared")
THROUGH_CLIENT = ("idle, no state", "idle, active")
TOLERANCE = 1.03
REAL_LIMIT = 1.35  # times bare Python, of a stop on a real transcript


def main() -> int:
    """Print the counts; return 1 if one has grown too much, 2 if there is no such case or nothing to count with."""
    if shutil.which("valgrind") is None:
        sys.stderr.write("instructions.py: install valgrind, which counts the instructions\n")
        return 2
    before = json.loads(BASELINE.read_text())
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    found = {}
    failed = False
    bare = 0
    with tempfile.TemporaryDirectory(prefix="tailhook-instructions-") as folder:
        for name, count in counts(stops(Path(folder), wanted)):
            if not bare:
                bare = count
                sys.stdout.write(f"{'hook':<60}{'x bare':>10}{'baseline':>10}    (bare: {bare / 1e6:.1f} million)\n")
                continue
            found[name] = round(count / bare, 4)
            known = before.get(name)
            grown = known is not None and found[name] > known * TOLERANCE
            grown = grown or (name.startswith("real transcript") and found[name] > REAL_LIMIT)
            failed = failed or grown
            sys.stdout.write(
                f"{name:<60}{found[name]:>10.4f}{known or 0:>10.4f}{'  grown' if grown else '' if known else '  new'}\n"
            )
            sys.stdout.flush()
    if unknown := set(wanted) - found.keys():
        sys.stderr.write(f"instructions.py: there is no case {', '.join(sorted(unknown))}\n")
        return 2
    if "--write" in sys.argv:
        BASELINE.write_text(json.dumps({**before, **found} if wanted else found, indent=2) + "\n")
        return 0
    return 1 if failed else 0


def stops(folder: Path, wanted: list[str]) -> Iterator[tuple[str, BenchProject]]:
    """Set up each case in turn, with a first run to write the bytecode."""
    for number, case in enumerate(CASES):
        if not wanted or case.name in wanted:
            stop = BenchProject(folder / str(number), case, "10 KB")
            stop.check()
            yield case.name, stop
    client, _ = write_installation(real_interpreter(), str(folder / "client"))
    for case in CASES:
        name = f"{case.name}, by the client without a pool"
        if case.name in THROUGH_CLIENT and (not wanted or name in wanted):
            stop = BenchProject(folder / name, case, "10 KB")
            stop.hook = hook_command(case.machine, client)
            stop.env["TAILHOOK_NO_POOL"] = "1"
            stop.check()
            yield name, stop
    worst = [(one.about, one, None) for one in WORST_CASES]
    transcripts = sorted((CORPORA / "transcripts").glob("*.jsonl"))
    if not transcripts:
        sys.stdout.write(f"no real transcripts in {CORPORA}/transcripts\n")
    for path in transcripts:
        for profile in ("seed", "tuned"):
            about = f"real transcript {path.stem}, {profile}"
            worst.append((about, Worst(about, machine="memory", begin=memory_folder, profile=profile), path))
    for number, (name, one, transcript) in enumerate(worst):
        if not wanted or name in wanted:
            stop = WorstStop(folder / f"worst-{number}", one, transcript)
            stop.check()
            yield name, stop


def counts(cases: Iterator[tuple[str, BenchProject]]) -> Iterator[tuple[str, int]]:
    """Yield the instructions of bare Python, then those of each case's process from its start to its end.

    The next case is set up meanwhile, and a case's files are removed as soon as it is counted.
    """
    counting: deque[tuple[str, BenchProject, Future[int]]] = deque()
    with ProcessPoolExecutor() as processes:

        def wait_for_one() -> tuple[str, int]:
            name, stop, count = counting.popleft()
            found = count.result()
            if isinstance(stop, WorstStop):
                stop.remove()
            return name, found

        for number, (name, stop) in enumerate(cases):
            if not number:
                yield "", count_by_valgrind(bare_argv(), stop.payload, stop.env)
            stop.reset()
            counting.append((name, stop, processes.submit(count_by_valgrind, stop.hook, stop.payload, stop.env)))
            if len(counting) > (os.cpu_count() or 1):
                yield wait_for_one()
        while counting:
            yield wait_for_one()


if __name__ == "__main__":
    sys.exit(main())
