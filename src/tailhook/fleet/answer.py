"""Makes the rows of the answer from the results of the ranges of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from tailhook._core import ArrowBatch, ResponseCounter, make_batch
from tailhook.fleet.reduce import (
    TOOL_HALF,
    ResponseTokens,
    SessionLines,
    SessionTotals,
    half_columns,
    join_tools,
    make_tool_half,
    session_rows,
    tool_row,
)
from tailhook.transcripts.urls import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.fleet.typed_rows import ToolHalf

BATCH_ROWS = 1 << 16
JOINED_BATCH_ROWS = 1 << 13  # of rows as Python objects, of up to 1 KB each
Read = Callable[[str], Iterator[ArrowBatch]]


class Conditions(NamedTuple):
    """The conditions of rows: a row counts if all of them hold.

    roles, sessions: None for all.
    since, until: aware; `until` itself does not count. A row without a time fails both. None: no limit.
    project: a folder; folders below it count too. If it ends in a separator, all paths that begin with it count. None:
    all.
    """

    roles: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    sessions: tuple[str, ...] | None = None

    def hold(self, session_id: str, project: str | None, time: datetime | None) -> bool:
        """Return whether a row with these values counts."""
        return self.hold_at_any_time(session_id, project) and self.is_in_time(time, time)

    def hold_at_any_time(self, session_id: str, project: str | None) -> bool:
        """Return whether a row of this session and project counts, if its time counts."""
        if self.sessions is not None and session_id not in self.sessions:
            return False
        if self.project is None:
            return True
        if project is None or project == self.project:
            return project is not None
        is_prefix = self.project.endswith(("/", "\\"))
        return project.startswith(self.project if is_prefix else (f"{self.project}/", f"{self.project}\\"))

    def is_in_time(self, start: datetime | None, end: datetime | None) -> bool:
        """Return whether the time from `start` to `end` overlaps the question's time."""
        if self.since is not None and (end is None or end < self.since):
            return False
        if self.since is not None and self.until is not None and self.since >= self.until:
            return False
        return self.until is None or (start is not None and start < self.until)


def answer_question(
    table: str, columns: Sequence[str], conditions: Conditions, read: Read, is_sorted: bool = False
) -> Iterator[ArrowBatch]:
    """Yield the rows of a table as batches.

    read: takes a table's name and yields the batches of all files. The batches of one file come in the order of its
        ranges.
    is_sorted: whether the files are sorted by path: then only the tool uses of one file are held in memory.
    """
    if table in ("matches", "records"):
        yield from read(table)
        return
    if table == "usage" and conditions == Conditions():
        yield from count_usage(read, columns).rows(tuple(columns))
        return
    if table == "tools":
        rows = tool_rows(conditions, read, columns, is_sorted)
    else:
        rows = (usage_rows if table == "usage" else chosen_session_rows)(conditions, read, columns)
    while chosen := list(islice(rows, JOINED_BATCH_ROWS)):
        yield make_batch(table, tuple(columns), chosen)


def values(batches: Iterable[ArrowBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of batches as tuples."""
    for batch in batches:
        yield from zip(*batch.columns(), strict=True)


def count_usage(read: Read, columns: Iterable[str] = ()) -> ResponseCounter:
    """Return every response of all files, counted once. columns: of the wanted rows."""
    counter = ResponseCounter(half_columns("usage", columns))
    for batch in read("usage"):
        counter.add(batch)
    return counter


def usage_rows(conditions: Conditions, read: Read, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table usage, sorted by time, session and ids."""
    for row in values(count_usage(read, columns).rows((*columns, "session_id", "project", "timestamp"))):
        if conditions.hold(*row[len(columns) :]):
            yield row[: len(columns)]


def tool_halves(batches: Iterable[ArrowBatch]) -> Iterator[ToolHalf]:
    """Yield the halves of tool uses. Missing columns of a batch are None."""
    for batch in batches:
        columns = dict(zip(batch.names, batch.columns(), strict=True))
        missing = [None] * len(batch)
        yield from map(make_tool_half, zip(*(columns.get(name, missing) for name in TOOL_HALF), strict=True))


def tool_rows(conditions: Conditions, read: Read, columns: Sequence[str], is_sorted: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table tools, sorted by path and offset."""
    halves: Iterable[ToolHalf] = tool_halves(read("tools"))
    if not is_sorted:
        halves = sorted(halves, key=attrgetter("path", "offset"))
    for use in join_tools(halves):
        if conditions.hold(use.session_id, use.project, use.started):
            yield tool_row(use, columns)


def chosen_session_rows(conditions: Conditions, read: Read, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table sessions, sorted by session."""
    totals: dict[str, SessionTotals] = {}
    for batch in read("sessions"):
        for lines in SessionLines(*batch.columns()).runs():
            totals.setdefault(lines.session_id[0], SessionTotals()).add(lines, name_of(lines.path[0]))
    batches = count_usage(read).rows(ResponseTokens._fields)
    for row in session_rows(totals, map(ResponseTokens._make, values(batches))):
        if conditions.hold_at_any_time(row.session_id, row.project) and conditions.is_in_time(row.start, row.end):
            yield tuple([getattr(row, name) for name in columns])
