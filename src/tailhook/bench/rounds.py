"""Rounds of hooks and programs that do nothing, in turns, and their results."""

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

MIN_WARM = 0.5  # of a warm hook's runs: then the median is the time of an answered run
MIN_INTERRUPTED = 0.5  # of the rounds, on a busy computer, if the hook's waiting time is unknown
NEIGHBOURS = 6  # hooks that share a round's runs of bare Python and /bin/true


class Project(Protocol):
    """The project of a hook's run: a `BenchProject`."""

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
    argv: the command.
    project: the one in which it runs.
    other: the argv of the other hook in the comparison, None for none.
    other_is_warm: whether a pool of the benchmark should answer the other hook.
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
        """Return whether the waiting time for a processor is known for all runs."""
        return all(sample.waited is not None for sample in (*self.samples, *self.bare_runs))

    def undisturbed(self, samples: Sequence[Sample], beside: Sequence[Sample] | None = None) -> list[float]:
        """Return the runs' times without the effect of other programs, in milliseconds.

        This is the wall time minus the waiting time for a processor; if that is unknown, the processor time.

        beside: the other runs of the comparison; None for those of bare Python.
        """
        beside = self.bare_runs if beside is None else beside
        if all(sample.waited is not None for sample in (*self.samples, *beside)):
            return [sample.wall - (sample.waited or 0.0) for sample in samples]
        return [sample.cpu for sample in samples]

    def undisturbed_ratio(self, beside: Sequence[Sample]) -> Estimate:
        """Return the median of the rounds' undisturbed ratios to another program; infinite if that took no time.

        beside: its run in each round.
        """
        pairs = zip(self.undisturbed(self.samples, beside), self.undisturbed(beside, beside), strict=True)
        return estimate([ours / theirs if theirs else math.inf for ours, theirs in pairs])

    def change(self) -> RatioChange | None:
        """Return the change of the ratio to bare Python since the earlier run; None without that run."""
        if self.before is None:
            return None
        undisturbed = self.undisturbed_ratio(self.bare_runs)
        return change_since(self.before, self.ratio(self.bare_runs), self.undisturbed_before, undisturbed)

    def interrupted_rounds(self) -> int:
        """Return the number of rounds in which bare Python waited for a processor.

        The hook may wait for something else, so it does not show this. Bare Python waits only for a processor.
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

    limit: its largest allowed value.
    wall: the figure, of the wall time.
    undisturbed: the same figure without the effect of other programs.
    phrase: words for both, with a place for the value.
    needed: the number of rounds that it needs.
    quantile: its quantile of all rounds.
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
        """Return whether bare Python waited in so many rounds that waiting may explain the wall time.

        More than a fifth of the rounds above the quantile may be enough: for the median, a tenth of all. If the hook's
        waiting time is unknown, more than half of the rounds are needed: its processor time then leaves out all
        waiting, not only for a processor.
        """
        least = (1 - self.quantile) / 5 if subject.is_waiting_known() else MIN_INTERRUPTED
        return subject.interrupted_rounds() > least * len(subject.samples)


class Limits(NamedTuple):
    """The limits of a gate; None for a limit that is not given.

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
        """Return how many rounds the limits need; 0 if the subject has enough."""
        needed = max((figure.needed for figure in self.figures(subject)), default=0)
        return needed if len(subject.samples) < needed else 0

    def verdicts(self, subject: Subject) -> list[tuple[str, str]]:
        """Return a verdict on each limit, with an explanation."""
        found = [judge_figure(subject, figure) for figure in self.figures(subject)]
        counted = subject.instruction_ratio()
        if self.instructions is not None and counted is None:
            found.append((NOT_COUNTED, "its instructions are not counted: a worker of the pool answers"))
        elif self.instructions is not None and counted is not None:
            shown = f"{counted:.3f} times the instructions of bare Python, the limit is {self.instructions:g}"
            found.append((FAIL if counted > self.instructions else PASS, shown))
        return found

    def is_close(self, subject: Subject) -> bool:
        """Return whether a figure is over its limit, but not its whole interval: more rounds may decide."""
        return any(one.wall.low <= one.limit < one.wall.value for one in self.figures(subject))

    def verdict(self, subject: Subject) -> str:
        """Return FAIL if a run failed, NOISY if too few runs were warm.

        Otherwise return FAIL if a limit is exceeded, NOISY if one cannot be decided, PASS if all are kept, and
        NOT_COUNTED if the only limit is on instructions, and they were not counted.
        """
        if subject.failures():
            return FAIL
        if subject.unanswered():
            return NOISY  # in more rounds a worker may answer
        verdicts = {verdict for verdict, _ in self.verdicts(subject)}
        return next((one for one in (FAIL, NOISY, PASS, NOT_COUNTED) if one in verdicts), PASS)


def judge_figure(subject: Subject, figure: LimitedFigure) -> tuple[str, str]:
    """Return the verdict on a limit, with an explanation.

    On a busy computer the wall time decides only if the time without other programs confirms it. A longer process is
    interrupted more often, so its wall time grows more than bare Python's. If both are interrupted equally often, it
    grows less.
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
    """Add rounds to the subjects. In each round all take turns, in a random order.

    A program's time depends on the previous program, because that one emptied or filled the processor's caches. So each
    program, also one that does nothing, must follow every other one equally often.

    Raises OSError if a program cannot be started, HookTimeoutError if a hook does not end, and NoPoolError if the
    number of answered runs is unknown.
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
            return sample._replace(waited=None)  # the worker's waiting time is unknown
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
    """Run some subjects, and each program that does nothing once, in a random order; add a round to the subjects.

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
    """Count the instructions of bare Python and of each subject that runs in one process.

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
    """Measure the subjects; measure those again that fail or are too noisy. Return each one's last verdict, by title.

    A failure counts only if it remains with `rounds` more rounds, so that a moment of load fails no subject.

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
