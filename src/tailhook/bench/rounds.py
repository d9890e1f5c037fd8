"""Rounds in which hooks and programs that do nothing take turns, and what comes of them."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from tailhook.bench.instructions import Count
from tailhook.bench.intervals import (
    FAIL,
    MIN_P99_VALUES,
    MIN_VALUES,
    NOISY,
    NOT_COUNTED,
    P99,
    PASS,
    Estimate,
    estimate,
    judge,
)
from tailhook.bench.processes import Sample, run_once
from tailhook.bench.warm import AnsweredRuns
from tailhook.pool.installation import real_interpreter

MIN_WARM = 0.5  # of the runs of a warm hook: so the median is the time of a run that a worker answered
NEIGHBOURS = 6  # hooks between two runs of the programs that do nothing: a hook is compared with the runs before it


class Project(Protocol):
    """What a hook is started in: a `Stop`."""

    payload: Path
    env: dict[str, str]

    def reset(self) -> None:
        """Put the state back as it was."""
        ...


@dataclass
class Subject:
    """A hook that is measured.

    name: its case.
    transcript: the transcript's size.
    form: "warm", "cold", or "command" for a user's own.
    argv: what is started.
    project: where.
    other: the argv of the hook that it is compared with, None for none.
    other_is_warm: whether a pool that the benchmark started should answer that one.
    samples, others: of each round, of the hook and of the other.
    bare, nothing: of each round, the wall time (ms) of the last run before it of bare Python and of /bin/true.
    answered, others_answered: how many of these runs a worker of the pool answered.
    instructions, bare_instructions: None if they were not counted.
    """

    name: str
    transcript: str
    form: str
    argv: list[str]
    project: Project
    other: list[str] | None = None
    other_is_warm: bool = False
    samples: list[Sample] = field(default_factory=list)
    others: list[Sample] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    nothing: list[float] = field(default_factory=list)
    answered: int = 0
    others_answered: int = 0
    instructions: int | None = None
    bare_instructions: int | None = None

    @property
    def title(self) -> str:
        """The case, the transcript and the form, in words."""
        return ", ".join(filter(None, (self.name, self.transcript, "" if self.form == "command" else self.form)))

    def walls(self) -> list[float]:
        """Return the wall time of each round, in milliseconds."""
        return [sample.wall for sample in self.samples]

    def median(self) -> Estimate:
        """Return the median wall time, in milliseconds."""
        return estimate(self.walls())

    def p99(self) -> Estimate:
        """Return the 99th percentile of the wall time, in milliseconds."""
        return estimate(self.walls(), P99)

    def cpu_ms(self) -> float:
        """Return the median of the processor time, in milliseconds."""
        return statistics.median(sample.cpu for sample in self.samples)

    def ratio(self, beside: Sequence[float]) -> Estimate:
        """Return the median of the rounds' ratios to another program.  beside: its wall time in each round."""
        return estimate([wall / other for wall, other in zip(self.walls(), beside, strict=True)])

    def failures(self) -> list[int]:
        """Return the exit codes of the runs that did not end as a hook does: with 0 or 2."""
        return [sample.exit_code for sample in (*self.samples, *self.others) if sample.exit_code not in (0, 2)]

    def unanswered(self) -> str:
        """Return why the figures are not those of a warm hook, "" if they are, or if the hook is not a warm one."""
        rows = [(self.form == "warm", len(self.samples), self.answered, "its")]
        rows += [(self.other_is_warm, len(self.others), self.others_answered, "the other one's")]
        for is_warm, runs, answered, whose in rows:
            if is_warm and answered < MIN_WARM * runs:
                return f"no figures: a worker of the pool answered only {answered} of {whose} {runs} runs"
        return ""

    def instruction_ratio(self) -> float | None:
        """Return how many instructions the hook executes, beside bare Python; None if they were not counted."""
        if self.instructions is None or not self.bare_instructions:
            return None
        return self.instructions / self.bare_instructions


class Limits(NamedTuple):
    """The limits of a gate, None for those that were not given.

    ratio: of the median to that of bare Python.
    ms, p99_ms: of the median and of the 99th percentile.
    instructions: beside bare Python's.
    """

    ratio: float | None = None
    ms: float | None = None
    p99_ms: float | None = None
    instructions: float | None = None

    def estimates(self, subject: Subject) -> list[tuple[float, Estimate, str]]:
        """Return each limit on a time, with the subject's figure and a phrase for it."""
        found: list[tuple[float | None, Estimate, str]] = [
            (self.ratio, subject.ratio(subject.bare), "{:.2f} times bare Python"),
            (self.ms, subject.median(), "{:.2f} ms"),
            (self.p99_ms, subject.p99(), "{:.2f} ms in 1 of 100 runs"),
        ]
        return [(limit, one, words) for limit, one, words in found if limit is not None]

    def verdicts(self, subject: Subject) -> list[tuple[str, str]]:
        """Return a verdict on each limit with words that explain it."""
        found = []
        for limit, one, words in self.estimates(subject):
            is_enough = len(subject.samples) >= (MIN_P99_VALUES if "runs" in words else MIN_VALUES)
            shown = f"{words.format(one.value)} ({one.low:.2f} to {one.high:.2f}), the limit is {limit:g}"
            found.append((judge(one, limit) if is_enough else NOISY, shown))
        counted = subject.instruction_ratio()
        if self.instructions is not None and counted is None:
            found.append((NOT_COUNTED, "its instructions are not counted: a worker of the pool answers"))
        elif self.instructions is not None and counted is not None:
            shown = f"{counted:.3f} times the instructions of bare Python, the limit is {self.instructions:g}"
            found.append((FAIL if counted > self.instructions else PASS, shown))
        return found

    def is_close(self, subject: Subject) -> bool:
        """Return whether a figure is over its limit, but not its whole interval: more rounds may show that it is."""
        return any(one.low <= limit < one.value for limit, one, _ in self.estimates(subject))

    def verdict(self, subject: Subject) -> str:
        """Return FAIL if a limit is exceeded, NOISY if one cannot be decided, PASS if all are kept.

        If there is no limit but one on instructions, and they were not counted: NOT_COUNTED.
        """
        if subject.failures():
            return FAIL
        if subject.unanswered():
            return NOISY  # in more rounds a worker may answer
        verdicts = {verdict for verdict, _ in self.verdicts(subject)}
        return next((one for one in (FAIL, NOISY, PASS, NOT_COUNTED) if one in verdicts), PASS)


def run_rounds(subjects: Sequence[Subject], rounds: int) -> None:
    """Add rounds to the subjects: all take turns in each, and each round begins with another one.

    A hook that follows the programs that do nothing takes longer: they have emptied the processor's caches.

    Raises OSError if a program cannot be started, and NoPoolError if it is not known which runs a worker answered.
    """
    warm = [subject.argv[0] for subject in subjects if subject.form == "warm"]
    warm += [subject.other[0] for subject in subjects if subject.other and subject.other_is_warm]
    clients = {client: AnsweredRuns(client) for client in warm}

    def run(subject: Subject, argv: list[str]) -> Sample:
        subject.project.reset()
        began = time.time_ns()
        sample = run_once(argv, subject.project.payload, subject.project.env)
        if argv[0] in clients:
            clients[argv[0]].add(began, time.time_ns(), subject.title)
        return sample

    bare_argv = [real_interpreter(), "-I", "-S", "-c", "pass"]
    bare = nothing = 0.0
    for turn in range(rounds):
        first = turn % len(subjects)
        for number, subject in enumerate((*subjects[first:], *subjects[:first])):
            if number % NEIGHBOURS == 0:
                bare = run_once(bare_argv, subject.project.payload, subject.project.env).wall
                nothing = run_once([nothing_program()], subject.project.payload, subject.project.env).wall
            subject.samples.append(run(subject, subject.argv))
            subject.bare.append(bare)
            subject.nothing.append(nothing)
            if subject.other:
                subject.others.append(run(subject, subject.other))
    answered = {client: runs.count() for client, runs in clients.items()}
    for subject in subjects:
        if subject.form == "warm":
            subject.answered += answered[subject.argv[0]][subject.title]
        if subject.other and subject.other_is_warm:
            subject.others_answered += answered[subject.other[0]][subject.title]


def nothing_program() -> str:
    """Return the path of `true`, a native program that does nothing."""
    return next(path for path in ("/bin/true", "/usr/bin/true") if Path(path).exists())


def count_all_instructions(subjects: Sequence[Subject], count: Count) -> None:
    """Count the instructions of each subject that runs in one process, and of bare Python.

    count: counts those of a process.

    Raises OSError, and CountError if they cannot be counted.
    """
    bare: int | None = None
    argv = [real_interpreter(), "-I", "-S", "-c", "pass"]
    for subject in subjects:
        if subject.form == "warm":
            continue  # the worker's instructions are not the client's
        project = subject.project
        if bare is None:
            bare = count(argv, project.payload, project.env)
        project.reset()
        subject.instructions = count(subject.argv, project.payload, project.env)
        subject.bare_instructions = bare


def measure_until_clear(
    subjects: Sequence[Subject],
    rounds: int,
    limits: Limits,
    attempts: int,
    run: Callable[[Sequence[Subject], int], None] = run_rounds,
) -> Mapping[str, str]:
    """Measure the subjects, and those again that fail or are too noisy; return the last verdict of each, by its title.

    So that one moment of load fails no subject, a failure counts only if it is still one with `rounds` more rounds, as
    long as attempts are left.

    attempts: how often a subject is measured at most.
    run: adds rounds to subjects.
    """
    run(subjects, rounds)
    verdicts = {subject.title: limits.verdict(subject) for subject in subjects}
    waiting = [one for one in subjects if verdicts[one.title] in (FAIL, NOISY) or limits.is_close(one)]
    for _ in range(attempts - 1):
        if not waiting:
            break
        before = dict(verdicts)
        run(waiting, rounds)
        for subject in waiting:
            verdicts[subject.title] = limits.verdict(subject)
        waiting = [one for one in waiting if needs_rounds(limits, one, before[one.title], verdicts[one.title])]
    return verdicts


def needs_rounds(limits: Limits, subject: Subject, before: str, now: str) -> bool:
    """Return whether a subject must be measured again, after the verdicts `before` and `now`."""
    return now == NOISY or (now == FAIL and before != FAIL) or (now == PASS and limits.is_close(subject))
