"""Rounds in which hooks and programs that do nothing take turns, and what comes of them."""

import math
import random
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
    RatioChange,
    change_since,
    estimate,
    judge,
)
from tailhook.bench.processes import HookTimeoutError, Sample, has_waited, run_once
from tailhook.bench.warm import AnsweredRuns
from tailhook.pool.reference_programs import bare_argv, nothing_program

MIN_WARM = 0.5  # of the runs of a warm hook: so the median is the time of a run that a worker answered
MIN_INTERRUPTED = 0.5  # of the rounds, on a busy computer, if it is not known how long the hook waited
NEIGHBOURS = 6  # hooks that are compared with the same runs of the programs that do nothing


class Project(Protocol):
    """What a hook is started in: a `BenchProject`."""

    payload: Path
    env: dict[str, str]
    limit_s: float

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
    bare_runs, true_runs: of each round, the run of bare Python and of /bin/true among the same few hooks.
    before: its ratio to bare Python in an earlier run, None without one.
    undisturbed_before: the same ratio, undisturbed.
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
    bare_runs: list[Sample] = field(default_factory=list)
    true_runs: list[Sample] = field(default_factory=list)
    before: Estimate | None = None
    undisturbed_before: Estimate | None = None
    answered: int = 0
    others_answered: int = 0
    instructions: int | None = None
    bare_instructions: int | None = None

    @property
    def title(self) -> str:
        """The case, the transcript and the form, in words."""
        return make_title(self.name, self.transcript, self.form)

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

    def system_ms(self) -> float:
        """Return the median of the processor time in system mode, in milliseconds."""
        return statistics.median(sample.system for sample in self.samples)

    def ratio(self, beside: Sequence[Sample]) -> Estimate:
        """Return the median of the rounds' ratios to another program.  beside: its run in each round."""
        return estimate([ours.wall / other.wall for ours, other in zip(self.samples, beside, strict=True)])

    def is_waiting_known(self) -> bool:
        """Return whether it is known of all runs how long they waited for a processor."""
        return all(sample.waited is not None for sample in (*self.samples, *self.bare_runs))

    def undisturbed(self, samples: Sequence[Sample], beside: Sequence[Sample] | None = None) -> list[float]:
        """Return what runs took on this computer apart from its other programs, in milliseconds.

        That is the wall time without what they waited for a processor. If that is not known, their processor time.

        beside: the runs that they are compared with; None for those of bare Python.
        """
        beside = self.bare_runs if beside is None else beside
        if all(sample.waited is not None for sample in (*self.samples, *beside)):
            return [sample.wall - (sample.waited or 0.0) for sample in samples]
        return [sample.cpu for sample in samples]

    def undisturbed_ratio(self, beside: Sequence[Sample]) -> Estimate:
        """Return the median of the rounds' ratios to another program, each undisturbed; infinite if that has no time.

        beside: its run in each round.
        """
        pairs = zip(self.undisturbed(self.samples, beside), self.undisturbed(beside, beside), strict=True)
        return estimate([ours / theirs if theirs else math.inf for ours, theirs in pairs])

    def change(self) -> RatioChange | None:
        """Return how the ratio to bare Python has changed since the earlier run; None without that run."""
        if self.before is None:
            return None
        undisturbed = self.undisturbed_ratio(self.bare_runs)
        return change_since(self.before, self.ratio(self.bare_runs), self.undisturbed_before, undisturbed)

    def interrupted_rounds(self) -> int:
        """Return in how many rounds bare Python waited for a processor.

        The hook does not show that it waited for one: it may have waited for something else. Bare Python does not.
        """
        return sum(map(has_waited, self.bare_runs))

    def failures(self) -> list[int]:
        """Return the exit codes of the runs that did not end as a hook does: with 0 or 2."""
        return [*failed_codes(self.samples), *failed_codes(self.others)]

    def failed_words(self) -> list[str]:
        """Return a phrase for the hook, and one for the other hook, if some of its runs failed."""
        found = []
        for samples, whose in ((self.samples, ""), (self.others, " of the other command")):
            if codes := failed_codes(samples):
                runs = f"{len(codes)} of {len(samples)} runs"
                found.append(f"{runs}{whose} ended with exit code {codes[0]}, not 0 or 2")
        return found

    def unanswered(self) -> str:
        """Return why a warm hook's figures do not count: most runs were cold. Return "" if they count."""
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


def make_title(name: str, transcript: str, form: str) -> str:
    """Return the title of a hook for people and for other tools.  name, transcript, form: as of a `Subject`."""
    return ", ".join(filter(None, (name, transcript, "" if form == "command" else form)))


def failed_codes(samples: Sequence[Sample]) -> list[int]:
    """Return the exit codes of the runs that did not end as a hook does: with 0 or 2."""
    return [sample.exit_code for sample in samples if sample.exit_code not in (0, 2)]


class LimitedFigure(NamedTuple):
    """A figure of a hook that has a limit.

    limit: what it must not exceed.
    wall: the figure, of the wall time.
    undisturbed: the same figure of what the runs took apart from other programs.
    phrase: what either is, with a place for its value.
    needed: how many rounds it needs.
    quantile: which one of all rounds it is.
    """

    limit: float
    wall: Estimate
    undisturbed: Estimate
    phrase: str
    needed: int = MIN_VALUES
    quantile: float = 0.5

    def describe(self, found: Estimate) -> str:
        """Return a value of this figure in words, with its interval."""
        return f"{self.phrase.format(found.value)} ({found.low:.2f} to {found.high:.2f})"

    def is_disturbed(self, subject: Subject) -> bool:
        """Return whether bare Python waited for a processor in so many rounds that it may explain the wall time.

        A fifth as many as lie above the quantile may change it. If it is not known how long the hook waited, more than
        half of the rounds are needed: its time without waiting then leaves out everything that it waits for.
        """
        least = (1 - self.quantile) / 5 if subject.is_waiting_known() else MIN_INTERRUPTED
        return subject.interrupted_rounds() > least * len(subject.samples)


class Limits(NamedTuple):
    """The limits of a gate, None for those that were not given.

    ratio: of the median to that of bare Python.
    ms, p99_ms: of the median and of the 99th percentile.
    instructions: beside bare Python's.
    regression: of the ratio to an earlier run, and of that to the other hook.
    """

    ratio: float | None = None
    ms: float | None = None
    p99_ms: float | None = None
    instructions: float | None = None
    regression: float | None = None

    def figures(self, subject: Subject) -> list[LimitedFigure]:
        """Return the subject's figure for each limit on a time."""
        found = []
        if self.ratio is not None:
            wall, undisturbed = subject.ratio(subject.bare_runs), subject.undisturbed_ratio(subject.bare_runs)
            found.append(LimitedFigure(self.ratio, wall, undisturbed, "{:.2f} times bare Python"))
        if self.regression is not None and (change := subject.change()):
            found.append(LimitedFigure(self.regression, *change, "{:.2f} times what it was before"))
        if self.regression is not None and subject.others:
            wall, undisturbed = subject.ratio(subject.others), subject.undisturbed_ratio(subject.others)
            found.append(LimitedFigure(self.regression, wall, undisturbed, "{:.2f} times the other hook"))
        times = subject.undisturbed(subject.samples)
        if self.ms is not None:
            found.append(LimitedFigure(self.ms, subject.median(), estimate(times), "{:.2f} ms"))
        if self.p99_ms is not None:
            wall, undisturbed = subject.p99(), estimate(times, P99)
            phrase = "{:.2f} ms in 1 of 100 runs"
            found.append(LimitedFigure(self.p99_ms, wall, undisturbed, phrase, MIN_P99_VALUES, P99))
        return found

    def missing_rounds(self, subject: Subject) -> int:
        """Return how many rounds the limits need, 0 if the subject has that many."""
        needed = max((figure.needed for figure in self.figures(subject)), default=0)
        return needed if len(subject.samples) < needed else 0

    def verdicts(self, subject: Subject) -> list[tuple[str, str]]:
        """Return a verdict on each limit with words that explain it."""
        found = [judge_figure(subject, figure) for figure in self.figures(subject)]
        counted = subject.instruction_ratio()
        if self.instructions is not None and counted is None:
            found.append((NOT_COUNTED, "its instructions are not counted: a worker of the pool answers"))
        elif self.instructions is not None and counted is not None:
            shown = f"{counted:.3f} times the instructions of bare Python, the limit is {self.instructions:g}"
            found.append((FAIL if counted > self.instructions else PASS, shown))
        return found

    def is_close(self, subject: Subject) -> bool:
        """Return whether a figure is over its limit, but not its whole interval: more rounds may show that it is."""
        return any(one.wall.low <= one.limit < one.wall.value for one in self.figures(subject))

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


def judge_figure(subject: Subject, figure: LimitedFigure) -> tuple[str, str]:
    """Return the verdict on a limit with words that explain it.

    On a busy computer the wall time decides only if the time without other programs confirms it. A longer process is
    interrupted more often, so its wall time grows more than that of bare Python; or less, if both are interrupted
    equally often.
    """
    rounds = len(subject.samples)
    words = f"{figure.describe(figure.wall)}, the limit is {figure.limit:g}"
    if rounds < figure.needed:
        return NOISY, f"too few rounds to decide: {words}; {rounds} rounds were run, this limit needs {figure.needed}"
    verdict = judge(figure.wall, figure.limit)
    is_disturbed = figure.is_disturbed(subject)
    if is_disturbed and judge(figure.undisturbed, figure.limit) != verdict:
        verdict = NOISY
    if verdict == NOISY:
        words = f"too noisy to decide: {words}"
        if is_disturbed:
            process = "client" if subject.form == "warm" else "hook"
            time_of = "time without that" if subject.is_waiting_known() else "processor time"
            words += f"; bare Python waited for a processor in {subject.interrupted_rounds()} of {rounds} rounds, "
            words += f"and the {process}'s {time_of} is {figure.describe(figure.undisturbed)}"
    return verdict, words


def run_rounds(subjects: Sequence[Subject], rounds: int) -> None:
    """Add rounds to the subjects, in which all take turns, in a random order.

    What a program takes depends on the one before it, which has emptied the processor's caches or filled them. So each
    program, also one that does nothing, must follow every other one equally often.

    Raises OSError if a program cannot be started, HookTimeoutError if a hook does not end, and NoPoolError if it is not
    known which runs a worker answered.
    """
    warm = [subject.argv[0] for subject in subjects if subject.form == "warm"]
    warm += [subject.other[0] for subject in subjects if subject.other and subject.other_is_warm]
    clients = {client: AnsweredRuns(client) for client in warm}

    def run(subject: Subject, argv: list[str]) -> Sample:
        subject.project.reset()
        began = time.time_ns()
        try:
            sample = run_once(argv, subject.project.payload, subject.project.env, subject.project.limit_s)
        except HookTimeoutError as error:
            raise HookTimeoutError(f"{subject.title}: {error}") from None
        if argv[0] in clients:
            clients[argv[0]].add(began, time.time_ns(), subject.title)
            return sample._replace(waited=None)  # it is not known how long the worker waited
        return sample

    chance = random.Random(0)  # noqa: S311 - an order
    for _ in range(rounds):
        order = chance.sample(subjects, len(subjects))
        for at in range(0, len(order), NEIGHBOURS):
            run_group(order[at : at + NEIGHBOURS], run, chance)
    answered = {client: runs.count() for client, runs in clients.items()}
    for subject in subjects:
        if subject.form == "warm":
            subject.answered += answered[subject.argv[0]][subject.title]
        if subject.other and subject.other_is_warm:
            subject.others_answered += answered[subject.other[0]][subject.title]


def run_group(group: Sequence[Subject], run: Callable[[Subject, list[str]], Sample], chance: random.Random) -> None:
    """Run some subjects, and once each program that does nothing, in a random order; add a round to the subjects.

    run: starts an argv in the project of a subject.
    """
    starts = [(group[0], bare_argv()), (group[0], [nothing_program()])]
    starts += [(subject, subject.argv) for subject in group]
    starts += [(subject, subject.other) for subject in group if subject.other]
    found = {at: run(*starts[at]) for at in chance.sample(range(len(starts)), len(starts))}
    bare_run, true_run, *samples = [found[at] for at in range(len(starts))]
    others = iter(samples[len(group) :])
    for subject, sample in zip(group, samples, strict=False):
        subject.samples.append(sample)
        subject.bare_runs.append(bare_run)
        subject.true_runs.append(true_run)
        if subject.other:
            subject.others.append(next(others))


def count_all_instructions(subjects: Sequence[Subject], count: Count) -> None:
    """Count the instructions of each subject that runs in one process, and of bare Python.

    count: counts those of a process.

    Raises OSError, and CountError if they cannot be counted.
    """
    bare: int | None = None
    for subject in subjects:
        if subject.form == "warm":
            continue  # the worker's instructions are not the client's
        project = subject.project
        if bare is None:
            bare = count(bare_argv(), project.payload, project.env)
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
