"""Runs of the benchmark: the words of short ones, and hooks with figures that a test chooses."""

from tailhook.bench.processes import Sample
from tailhook.bench.rounds import Subject

QUICK = ("--rounds", "3", "--size", "10 KB")
TRUE = ("--hook", "/bin/true", "--rounds", "2")


def subject_of(name="idle", times=(), bare=(), form="cold"):
    """Return a measured subject. Times are arguments of `sample_of`."""
    one = Subject(name, "10 KB", form, ["hook"], None)
    add_rounds(one, times, bare)
    return one


def add_rounds(subject, times, bare):
    """Add rounds to a subject."""
    subject.samples += map(sample_of, times)
    subject.bare_runs += map(sample_of, bare)
    subject.true_runs += [sample_of(1.0)] * len(times)


def sample_of(time):
    """Return a run. If only a wall time is given, the process had the processor all the time.

    time: the wall time, or also the processor time, and the wait for a processor if known.
    """
    wall, cpu, *waited = time if isinstance(time, tuple) else (time, time)
    return Sample(wall, cpu, 0, *(waited or [None]), system=4.0)
