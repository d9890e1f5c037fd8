"""Measures the goals of the pool, all in one interleaved run, and prints them as a table.

usage: warm_goals.py [--rounds N]   (300)

A goal is in units of /bin/true, started in the same rounds. The transcripts have 10 KB and 10 GB. Ends with 1 if cold
hooks answered a case, or if its median is far above its goal, also when it was measured again: the computer may have
been busy.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tailhook.bench.cases import CASES, BenchProject
from tailhook.bench.intervals import P99, estimate
from tailhook.bench.rounds import Subject, run_rounds
from tailhook.bench.warm import pool_of_bench
from tailhook.cli.bench import ATTEMPTS
from tailhook.install.command import hook_command
from tailhook.pool.control import find_pool
from tailhook.pool.reference_programs import nothing_program

SIZES = ("10 KB", "10 GB")
CALLERS = 8
CROWDS = 60  # rounds of that many callers at once
REST_S = 11.0  # until an idle pool has ended its spare workers
FAR = 1.5  # times a goal
GOALS = {True: (1.5, 4.0), False: (3.0, 6.0)}  # of the median and the 99th percentile: nothing to decide, or a decision


def main() -> int:
    """Print a row for each case, then the crowd and the pool at rest; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=300)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tailhook-warm-"))
        client = stack.enter_context(pool_of_bench(Path(folder, "pool")))
        subjects = [
            Subject(case.name, size, "warm", hook_command(case.machine, client), stop_of(folder, number, case, size))
            for number, case in enumerate(CASES)
            for size in SIZES
        ]
        run_rounds(subjects, 10)  # the workers load what they touch
        for subject in subjects:
            for values in (subject.samples, subject.bare_runs, subject.true_runs):
                values.clear()
            subject.answered = 0
        failed = subjects
        for _ in range(ATTEMPTS):
            run_rounds(failed, arguments.rounds)
            failed = [subject for subject in failed if subject.unanswered() or is_far(subject)]
            if not failed:
                break
        print_cases(subjects)
        print_crowd(subjects[0])
        print_rest(str(Path(client).parent))
    if late := [subject.title for subject in failed if is_far(subject)]:
        sys.stdout.write(f"far above the goal: {'; '.join(late)}\n")
    return int(bool(failed))


def is_far(subject: Subject) -> bool:
    """Return whether the median of a case is far above its goal."""
    return subject.ratio(subject.true_runs).low > FAR * goals_of(subject)[0]


def goals_of(subject: Subject) -> tuple[float, float]:
    """Return the goals of a case, of its median and of its 99th percentile."""
    return GOALS["no state" in subject.name or "plates" in subject.name]


def stop_of(folder: str, number: int, case: object, size: str) -> BenchProject:
    """Return the project of a case, after a first run."""
    stop = BenchProject(Path(folder, f"{number}-{size}"), case, size)
    stop.check()
    return stop


def print_cases(subjects: Sequence[Subject]) -> None:
    """Print the median and the 99th percentile of each case beside those of /bin/true."""
    times = [run.wall for subject in subjects for run in subject.true_runs]
    median, p99 = estimate(times).value, estimate(times, P99).value
    sys.stdout.write(f"/bin/true: median {median:.2f} ms, p99 {p99:.2f} ms\n\n")
    sys.stdout.write("| warm hook | by a worker | median | beside /bin/true | goal | p99 | beside /bin/true's median ")
    sys.stdout.write("| goal |\n|-|-:|-:|-:|-:|-:|-:|-:|\n")
    for subject in subjects:
        title = f"{subject.name}, {subject.transcript} | {subject.answered} of {len(subject.samples)}"
        if why := subject.unanswered():
            sys.stdout.write(f"| {title} | {why} | | | | | |\n")
            continue
        goals = goals_of(subject)
        ratio, late = subject.ratio(subject.true_runs), subject.p99().value
        typical = (
            f"{subject.median().value:.2f} ms | {ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f}) | {goals[0]:g}"
        )
        worst = f"{late:.2f} ms | {late / median:.1f} | {goals[1]:g}"
        sys.stdout.write(f"| {title} | {typical} | {worst} |\n")


def print_crowd(subject: Subject) -> None:
    """Print how long callers at once take, beside as many /bin/true at once."""
    project = subject.project

    def crowd(argv: list[str]) -> list[float]:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, str(project.payload), os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        started = {}
        for _ in range(CALLERS):
            now = time.perf_counter()
            started[os.posix_spawn(argv[0], argv, project.env, file_actions=actions)] = now
        return [time.perf_counter() - started[os.wait()[0]] for _ in range(CALLERS)]

    pairs = [(crowd(subject.argv), crowd([nothing_program()])) for _ in range(CROWDS)]
    hooks, nothing = (
        statistics.median(value for one in column for value in one) for column in zip(*pairs, strict=True)
    )
    sys.stdout.write(f"\n{CALLERS} callers at once: median {hooks * 1000:.2f} ms, {hooks / nothing:.2f} times that of ")
    sys.stdout.write(f"{CALLERS} /bin/true at once (goal: 2)\n")


def print_rest(folder: str) -> None:
    """Print the memory of a pool at rest, and how often its processes wake up in a second."""
    time.sleep(REST_S)
    pool = find_pool(folder)
    if pool is None or pool.workers is None or pool.memory is None:
        sys.stdout.write("at rest: not known on this system\n")
        return
    processes = [pool.pid, *pool.workers]
    time.sleep(0.5)  # looking for the pool has woken a worker
    before = sum(map(wake_ups, processes))
    time.sleep(2)
    woken = sum(map(wake_ups, processes)) - before
    sys.stdout.write(
        f"at rest: {len(pool.workers)} workers, {pool.memory / (1 << 20):.1f} MiB (goal: 25), "
        f"{woken} wake-ups in 2 s (goal: 0)\n"
    )


def wake_ups(pid: int) -> int:
    """Return how often a process has waited."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


if __name__ == "__main__":
    sys.exit(main())
