"""How often `tailhook bench` judges wrongly: hooks whose true ratio is known, judged many times at several loads.

usage: bench_quality.py [--runs N] [--rounds N] [--real]
--runs: of each kind at each load (200)   --rounds: of each run, at first (100)   --real: with processes, not simulated

A hook at 95 % of the limit must pass, one at 110 % of it must fail. A simulated round is a run of bare Python and one
of the hook: their times share what slows the computer for a while, and each has noise of its own and, now and then, a
process that had to wait. With --real they are processes that work for a known time, while others keep the computer
busy; the ratio that they are judged by is measured before, at load 0.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from tailhook.bench.cases import WORKING, Case, Stop, nothing
from tailhook.bench.intervals import FAIL, NOISY, PASS
from tailhook.bench.processes import Sample
from tailhook.bench.rounds import NEIGHBOURS, Limits, Subject, measure_until_clear, run_rounds
from tailhook.cli.bench import ATTEMPTS, DEFAULT_ROUNDS
from tailhook.pool.installation import real_interpreter

LOADS = range(5)
LIMIT = 1.35
KINDS = {"within the limit": 0.95, "10 % over it": 1.10}
BARE_MS = 7.0
CALIBRATION_ROUNDS = 400


def main() -> None:
    """Print the share of each verdict, for each load and kind of hook."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS)
    parser.add_argument("--real", action="store_true")
    arguments = parser.parse_args()
    sys.stdout.write("| load | hook | passes | fails | too noisy |\n|-|-|-:|-:|-:|\n")
    with tempfile.TemporaryDirectory(prefix="tailhook-quality-") as folder:
        project = Stop(Path(folder, "project"), Case("idle", "quality", WORKING, False, nothing), "10 KB")
        cost = calibrated(project) if arguments.real else {}
        for load in LOADS:
            with ExitStack() as stack:
                if arguments.real:
                    for _ in range(load):
                        stack.enter_context(busy_process())
                for kind, share in KINDS.items():
                    if arguments.real:
                        found = Counter(judge_real(project, share, cost[share], arguments.runs, arguments.rounds))
                    else:
                        runs = range(arguments.runs)
                        found = Counter(judge_simulated(project, load, share, run, arguments.rounds) for run in runs)
                    shares = " | ".join(f"{found[verdict] / arguments.runs:.1%}" for verdict in (PASS, FAIL, NOISY))
                    sys.stdout.write(f"| {load} | {kind} | {shares} |\n")
                    sys.stdout.flush()


# ---- simulated ---------------------------------------------------------------------


def judge_simulated(project: Stop, load: int, share: float, number: int, rounds: int) -> str:
    """Return the verdict of one simulated run on a hook whose true ratio is `share` of the limit."""
    subject = Subject("quality", "", "command", [], project)
    run = simulated(random.Random(f"{load} {share} {number}"), load, share * LIMIT)
    return measure_until_clear([subject], rounds, Limits(LIMIT), ATTEMPTS, run)["quality"]


def simulated(draw: random.Random, load: int, ratio: float) -> Callable[[Sequence[Subject], int], None]:
    """Return a function that adds simulated rounds of a hook with a true ratio."""
    slowness = 1.0

    def time_of(milliseconds: float) -> float:
        waits = draw.random() < 0.01 + 0.08 * load  # another process has the processor
        own = draw.lognormvariate(0, 0.03 + 0.03 * load)
        return milliseconds * slowness * own + (draw.expovariate(1 / 4.0) if waits else 0)

    def run(subjects: Sequence[Subject], rounds: int) -> None:
        nonlocal slowness
        for _ in range(rounds):
            slowness = max(1.0, 1 + 0.9 * (slowness - 1) + draw.gauss(0, 0.02 + 0.05 * load))
            for subject in subjects:
                subject.bare.append(time_of(BARE_MS))
                subject.nothing.append(1.0)
                subject.samples.append(Sample(time_of(BARE_MS * ratio), 0.0, 0))

    return run


# ---- real --------------------------------------------------------------------------


def judge_real(project: Stop, share: float, steps: int, runs: int, rounds: int) -> Iterator[str]:
    """Yield the verdicts of some runs on a process whose true ratio is `share` of the limit.

    As many take turns as have a run of bare Python in common: so does a benchmark of many cases.
    """
    argv = [real_interpreter(), "-I", "-S", "-c", work(steps)]
    for first in range(0, runs, NEIGHBOURS):
        numbers = range(first, min(first + NEIGHBOURS, runs))
        subjects = [Subject(f"{share} {number}", "", "command", argv, project) for number in numbers]
        yield from measure_until_clear(subjects, rounds, Limits(LIMIT), ATTEMPTS).values()


def work(steps: int) -> str:
    """Return a program that counts to a number."""
    return f"for _ in range({steps}): pass"


def calibrated(project: Stop) -> dict[float, int]:
    """Return for each kind the number of steps with which a process takes that share of the limit, at load 0."""
    steps = 200_000
    argv = [real_interpreter(), "-I", "-S", "-c", work(steps)]
    subject = Subject("calibration", "", "command", argv, project)
    run_rounds([subject], CALIBRATION_ROUNDS)
    bare = statistics.median(subject.bare)
    each = (subject.median().value - bare) / steps
    return {share: round((share * LIMIT - 1) * bare / each) for share in KINDS.values()}


def busy_process() -> "subprocess.Popen[bytes]":
    """Start a process that keeps a processor busy until this one ends; leaving its context ends it."""
    code = f"import os\nwhile os.getppid() == {os.getpid()}:\n    for _ in range(100_000): pass"

    class Busy(subprocess.Popen):
        def __exit__(self, *details: object) -> None:
            self.kill()
            super().__exit__(*details)

    return Busy([sys.executable, "-c", code])


if __name__ == "__main__":
    main()
