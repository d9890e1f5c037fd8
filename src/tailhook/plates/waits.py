"""How long sessions waited for a person, in intervals such as days. Pure: no I/O, no clock.

A wait is a time in which a session's status was `awaiting_input` or `awaiting_approval`. Times are Unix milliseconds.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import PurePosixPath
from statistics import median
from typing import NamedTuple

from tailhook.machines.plates import ASKED
from tailhook.plates.fields import IntervalWaitsOut, WaitFigures, WaitsOut
from tailhook.plates.tables import Plate

WAIT_STATUSES = tuple(status.value for status in ASKED)


class Wait(NamedTuple):
    """A wait of a session for a person."""

    session_id: str
    project_path: str
    start: int
    end: int


def find_ended_wait(before: Plate, after: Plate) -> Wait | None:
    """Return the wait that an event has ended, or None. It has ended at the latest when a person hid the session."""
    if before["status"] not in WAIT_STATUSES or before["status"] == after["status"]:
        return None
    end = after["since"] if before["hidden_at"] is None else min(after["since"], before["hidden_at"])
    return Wait(before["session_id"], before["project_path"], before["since"], end)


def join_waits(waits: Iterable[Wait]) -> list[Wait]:
    """Return the waits; those of a session without a gap between them are one, such as a question after an approval.

    A wait without a length is left out: a clock was set back, or the session was hidden before.
    """
    joined: list[Wait] = []
    for wait in sorted(waits):
        if wait.end <= wait.start:
            continue
        last = joined[-1] if joined else None
        if last and last.session_id == wait.session_id and wait.start <= last.end:
            joined[-1] = last._replace(end=max(last.end, wait.end))
        else:
            joined.append(wait)
    return joined


def is_of_project(path: str, wanted: Iterable[str], name_of: Callable[[str], str]) -> bool:
    """Return whether a project has one of the wanted names, or lies in one of the wanted folders."""
    return any(name_of(path) == one or PurePosixPath(path).is_relative_to(one) for one in wanted)


def sum_waits(waits: Iterable[Wait], edges: Sequence[int], name_of: Callable[[str], str]) -> WaitsOut:
    """Return how long sessions waited in each interval, and in all of them.

    A wait that lasts over an edge is counted in both intervals, and once in all of them. Sessions that wait at the
    same time add up.

    edges: the ends of the intervals, ascending.
    name_of: returns the name of a project.
    """
    joined = join_waits(waits)
    intervals = describe_intervals(joined, edges, name_of)
    return {
        "intervals": intervals,
        "total": describe_intervals(joined, (edges[0], edges[-1]), name_of)[0] if intervals else None,
    }


def describe_intervals(
    waits: Iterable[Wait], edges: Sequence[int], name_of: Callable[[str], str]
) -> list[IntervalWaitsOut]:
    """Return the figures of each interval. waits: without those that touch each other."""
    found: list[dict[str, list[int]]] = [defaultdict(list) for _ in edges[1:]]
    for wait in waits:
        for at in range(max(0, bisect_right(edges, wait.start) - 1), len(found)):
            if edges[at] >= wait.end:
                break
            found[at][wait.project_path].append(min(wait.end, edges[at + 1]) - max(wait.start, edges[at]))
    return [
        describe_interval(start, end, lengths, name_of)
        for (start, end), lengths in zip(pairwise(edges), found, strict=True)
    ]


def describe_interval(
    start: int, end: int, lengths: Mapping[str, Sequence[int]], name_of: Callable[[str], str]
) -> IntervalWaitsOut:
    """Return the figures of an interval, with those of its projects: the one that waited longest comes first.

    lengths: of the waits, by the project's path.
    """
    projects = sorted(lengths.items(), key=lambda item: (-sum(item[1]), item[0]))
    return {
        "start": start,
        "end": end,
        **describe_lengths(list(chain.from_iterable(lengths.values()))),
        "projects": [{"project_path": path, "name": name_of(path), **describe_lengths(of)} for path, of in projects],
    }


def describe_lengths(lengths: Sequence[int]) -> WaitFigures:
    """Return the figures of waits with these lengths."""
    return {
        "waited_ms": sum(lengths),
        "waits": len(lengths),
        "median_ms": int(median(lengths)) if lengths else 0,
        "longest_ms": max(lengths, default=0),
    }
