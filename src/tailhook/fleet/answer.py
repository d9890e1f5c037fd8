"""From what the ranges of files give to the rows that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from tailhook._core import ArrowBatch, ResponseCounter, make_batch
from tailhook.fleet.columns import TABLE_COLUMNS
from tailhook.fleet.plan import name_of
from tailhook.fleet.reduce import (
    TOOL_HALF,
    USAGE_HALF,
    SessionLines,
    SessionTotals,
    ToolHalf,
    UsageRow,
    join_tools,
    session_rows,
    tool_row,
)

BATCH_ROWS = 1 << 16
JOINED_BATCH_ROWS = 1 << 13  # of rows that are Python objects until then, of up to 1 KB each
Read = Callable[[str], Iterator[ArrowBatch]]


class Conditions(NamedTuple):
    """Which rows count: those for which all of these hold.

    roles, sessions: () for all.
    since, until: aware; `until` itself does not count. A row without a time fails both. None: no limit.
    project: a folder; those below it count too. If it ends in a separator, all that begin with it count. None: all.
    """

    roles: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    sessions: tuple[str, ...] = ()

    def hold(self, session_id: str, project: str | None, time: datetime | None) -> bool:
        """Return whether a row with these values counts."""
        return self.are_of_session(session_id, project) and self.is_in_time(time, time)

    def are_of_session(self, session_id: str, project: str | None) -> bool:
        """Return whether the session and the project are among those that count."""
        if self.sessions and session_id not in self.sessions:
            return False
        if self.project is None:
            return True
        if project is None or project == self.project:
            return project is not None
        is_prefix = self.project.endswith(("/", "\\"))
        return project.startswith(self.project if is_prefix else (f"{self.project}/", f"{self.project}\\"))

    def is_in_time(self, start: datetime | None, end: datetime | None) -> bool:
        """Return whether the time from `start` to `end` overlaps the time that counts."""
        if self.since is not None and (end is None or end < self.since):
            return False
        if self.since is not None and self.until is not None and self.since >= self.until:
            return False
        return self.until is None or (start is not None and start < self.until)


def answer_question(
    table: str, columns: Sequence[str], conditions: Conditions, read: Read, is_sorted: bool = False
) -> Iterator[ArrowBatch]:
    """Yield the rows of a table as batches.

    read: yields what the ranges of all files give for a table, those of a file in their order.
    is_sorted: the files are sorted by path. Then only the tool uses of one file are held in memory.
    """
    if table in ("matches", "records"):
        yield from read(table)
        return
    if table == "usage" and conditions == Conditions():
        yield from count_usage(read).rows(tuple(columns))
        return
    places = [TABLE_COLUMNS[table].index(name) for name in columns]
    chosen: list[tuple[Any, ...]] = []
    rows = tool_rows(conditions, read, is_sorted) if table == "tools" else ROWS[table](conditions, read)
    for row in rows:
        chosen.append(tuple(row[place] for place in places))
        if len(chosen) == JOINED_BATCH_ROWS:
            yield make_batch(table, tuple(columns), chosen)
            chosen = []
    if chosen:
        yield make_batch(table, tuple(columns), chosen)


def values(batches: Iterable[ArrowBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of batches as tuples."""
    for batch in batches:
        yield from zip(*batch.columns(), strict=True)


def count_usage(read: Read) -> ResponseCounter:
    """Return every response of all files, counted once."""
    counter = ResponseCounter(USAGE_HALF)
    for batch in read("usage"):
        counter.add(batch)
    return counter


def usage_rows(read: Read) -> Iterator[UsageRow]:
    """Yield a row for each response of all files, sorted by time, session and ids."""
    yield from map(UsageRow._make, values(count_usage(read).rows(UsageRow._fields)))


def chosen_usage_rows(conditions: Conditions, read: Read) -> Iterator[UsageRow]:
    """Yield the rows of the table usage."""
    for row in usage_rows(read):
        if conditions.hold(row.session_id, row.project, row.timestamp):
            yield row


def tool_halves(batches: Iterable[ArrowBatch]) -> Iterator[ToolHalf]:
    """Yield the halves of tool uses. Columns that a batch does not have are None."""
    for batch in batches:
        columns = dict(zip(batch.names, batch.columns(), strict=True))
        missing = [None] * len(batch)
        yield from map(ToolHalf._make, zip(*(columns.get(name, missing) for name in TOOL_HALF), strict=True))


def tool_rows(conditions: Conditions, read: Read, is_sorted: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table tools, sorted by path and offset."""
    halves: Iterable[ToolHalf] = tool_halves(read("tools"))
    if not is_sorted:
        halves = sorted(halves, key=attrgetter("path", "offset"))
    for use in join_tools(halves):
        if conditions.hold(use.session_id, use.project, use.started):
            yield tool_row(use)


def all_session_rows(conditions: Conditions, read: Read) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table sessions, sorted by session."""
    totals: dict[str, SessionTotals] = {}
    for batch in read("sessions"):
        for lines in SessionLines(*batch.columns()).runs():
            totals.setdefault(lines.session_id[0], SessionTotals()).add(lines, name_of(lines.path[0]))
    for row in session_rows(totals, usage_rows(read)):
        if conditions.are_of_session(row[1], row[4]) and conditions.is_in_time(row[8], row[9]):
            yield row


ROWS = {"usage": chosen_usage_rows, "sessions": all_session_rows}
