"""How often `tailhook bench` judges wrongly: it judges hooks of a known figure many times, at several loads.

usage: bench_quality.py [--limit ratio|ms|p99_ms] [--runs N] [--rounds N] [--load N] [--real]
--limit: of --max-ratio, --max-ms or --max-p99-ms (ratio)   --runs: of each kind at each load (200)
--rounds: of each run, at first (100; 368 for p99_ms)
--load: only this one; may be repeated (0 to 4)   --real: with processes, not simulated

A hook at 95 % of the limit must pass; one at 110 % must fail. If more programs run than there are processors, either
may be too noisy. A simulated round is a run of bare Python and one of the hook, on two processors. Slow phases of the
computer change both processor times alike; noise changes each by itself. A run waits each time it has used up a slice
of processor time. More runs wait if there are more processes, and a longer run waits more often. With --real, the hooks
are processes that work for a known time while others keep the computer busy. Their true ratio is measured before, at
load 0.

A limit in milliseconds is a multiple of the hook's time at the same load, without the waits for a processor. This time
is measured before. Other programs also slow a hook that does not wait; --max-ms counts the loss as the hook's own time.
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
from typing import NamedTuple, Protocol

from tailhook.bench.cases import WORKING, BenchProject, Case, no_state
from tailhook.bench.intervals import FAIL, MIN_P99_VALUES, NOISY, P99, PASS, estimate
from tailhook.bench.processes import Sample
from tailhook.bench.rounds import NEIGHBOURS, Limits, Subject, measure_until_clear, run_rounds
from tailhook.cli.bench import ATTEMPTS, DEFAULT_ROUNDS
from tailhook.pool.installation import real_interpreter

LOADS = range(5)
LIMIT = 1.35
KINDS = {"within the limit": 0.95, "10 % over it": 1.10}
QUANTILES = {"ms": 0.5, "p99_ms": P99}  # of the limits in milliseconds
BARE_MS = 7.0
# The share of the runs that wait at each load, and for how long after each slice of processor time. Runs with --real on
# two processors have about the same.
WAITING = (0.01, 0.1, 0.3, 0.9, 1.0)
SLICE_MS, WAIT_MS = 3.0, 8.0
CALIBRATION_ROUNDS, LIMIT_ROUNDS = 400, 2000


def main() -> None:
    """Print the share of each verdict, for each load and kind of hook."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", choices=["ratio", *QUANTILES], default="ratio")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--load", type=int, choices=LOADS, action="append")
    parser.add_argument("--real", action="store_true")
    arguments = parser.parse_args()
    rounds = arguments.rounds or (MIN_P99_VALUES if arguments.limit == "p99_ms" else DEFAULT_ROUNDS)
    sys.stdout.write("| load | hook | passes | fails | too noisy |\n|-|-|-:|-:|-:|\n")
    with tempfile.TemporaryDirectory(prefix="tailhook-quality-") as folder:
        project = BenchProject(Path(folder, "project"), Case("idle", "quality", WORKING, False, no_state), "10 KB")
        cost = calibrated(project) if arguments.real else {}
        for load in arguments.load or LOADS:
            with ExitStack() as stack:
                if arguments.real:
                    for _ in range(load):
                        stack.enter_context(busy_process())
                for kind, share in KINDS.items():
                    hook = RealHook(project, cost[share]) if arguments.real else SimulatedHook(project, load, share)
                    limits = limits_of(arguments.limit, hook, share)
                    found = Counter(hook.judge(limits, arguments.runs, rounds))
                    shares = " | ".join(f"{found[verdict] / arguments.runs:.1%}" for verdict in (PASS, FAIL, NOISY))
                    sys.stdout.write(f"| {load} | {kind} | {shares} |\n")
                    sys.stdout.flush()


class Hook(Protocol):
    """A hook whose true figure is known."""

    def measure(self, rounds: int) -> Subject:
        """Return the hook with some rounds."""
        ...

    def judge(self, limits: Limits, runs: int, rounds: int) -> Iterator[str]:
        """Yield the verdicts of some runs.  rounds: of each run, at first."""
        ...


def limits_of(name: str, hook: Hook, share: float) -> Limits:
    """Return the limit with a name, such that the hook takes `share` of it."""
    if name == "ratio":
        return Limits(LIMIT)
    subject = hook.measure(LIMIT_ROUNDS)
    return Limits(**{name: estimate(subject.undisturbed(subject.samples), QUANTILES[name]).value / share})


# ---- simulated ---------------------------------------------------------------------


class SimulatedHook(NamedTuple):
    """A hook that takes a share of the limit on the ratio, on a simulated computer."""

    project: BenchProject
    load: int
    share: float

    def subject(self) -> Subject:
        """Return the hook before its first round."""
        return Subject("quality", "", "command", [], self.project)

    def measure(self, rounds: int) -> Subject:
        """Return the hook with some rounds."""
        subject = self.subject()
        self.rounds_of("measured")([subject], rounds)
        return subject

    def judge(self, limits: Limits, runs: int, rounds: int) -> Iterator[str]:
        """Yield the verdicts of some runs."""
        for number in range(runs):
            run = self.rounds_of(str(number))
            yield measure_until_clear([self.subject()], rounds, limits, ATTEMPTS, run)["quality"]

    def rounds_of(self, name: str) -> Callable[[Sequence[Subject], int], None]:
        """Return a function that adds simulated rounds, always the same ones for a name."""
        return simulated(random.Random(f"{self.load} {self.share} {name}"), self.load, self.share * LIMIT)


def simulated(draw: random.Random, load: int, ratio: float) -> Callable[[Sequence[Subject], int], None]:
    """Return a function that adds simulated rounds of a hook with a true ratio."""
    slowness = 1.0

    def sample_of(milliseconds: float) -> Sample:
        cpu = milliseconds * slowness * draw.lognormvariate(0, 0.03 + 0.02 * load)
        waits = int(cpu / SLICE_MS) if draw.random() < WAITING[load] else 0
        waited = sum(WAIT_MS * draw.lognormvariate(0, 0.3) for _ in range(waits))
        return Sample(cpu + waited, cpu, 0, waited)

    def run(subjects: Sequence[Subject], rounds: int) -> None:
        nonlocal slowness
        for _ in range(rounds):
            slowness = max(1.0, 1 + 0.9 * (slowness - 1) + draw.gauss(0, 0.02 + 0.02 * load))
            for subject in subjects:
                subject.bare_runs.append(sample_of(BARE_MS))
                subject.true_runs.append(Sample(1.0, 1.0, 0, 0.0))
                subject.samples.append(sample_of(BARE_MS * ratio))

    return run


# ---- real --------------------------------------------------------------------------


class RealHook(NamedTuple):
    """A process that counts to a number."""

    project: BenchProject
    steps: int

    def subject(self, number: int) -> Subject:
        """Return the process before its first round."""
        argv = [real_interpreter(), "-I", "-S", "-c", work(self.steps)]
        return Subject(f"{number}", "", "command", argv, self.project)

    def measure(self, rounds: int) -> Subject:
        """Return the process with some rounds."""
        subject = self.subject(0)
        run_rounds([subject], rounds)
        return subject

    def judge(self, limits: Limits, runs: int, rounds: int) -> Iterator[str]:
        """Yield the verdicts of some runs.

        As in a benchmark of many cases, several take turns and share a run of bare Python.
        """
        for first in range(0, runs, NEIGHBOURS):
            subjects = [self.subject(number) for number in range(first, min(first + NEIGHBOURS, runs))]
            yield from measure_until_clear(subjects, rounds, limits, ATTEMPTS).values()


def work(steps: int) -> str:
    """Return a program that counts to a number."""
    return f"for _ in range({steps}): pass"


def calibrated(project: BenchProject) -> dict[float, int]:
    """Return for each kind the number of steps with which a process takes its share of the limit, at load 0."""
    steps = 200_000
    subject = RealHook(project, steps).measure(CALIBRATION_ROUNDS)
    bare = statistics.median(sample.wall for sample in subject.bare_runs)
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
