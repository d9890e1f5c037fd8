"""The columns of a scan, declared once: their tables, order and types.

Type checkers read these classes as they are; `TABLE_COLUMNS` (columns.py) has their names; and at the build
ext/tables.py makes the core's columns of them. A row has only the requested columns: see `row_type`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from tailhook.fleet.report import Watch
    from tailhook.fleet.scan import Patterns


Repeated: TypeAlias = str  # a text of few different values: Arrow keeps them in a dictionary


class TableRow(tuple[Any, ...]):
    """A named tuple, made by `row_type`."""

    _fields: tuple[str, ...]

    def _asdict(self) -> dict[str, Any]: ...  # type: ignore[empty-body]


class RowOfMatches(TableRow):
    """A row of matches."""

    path: Repeated
    offset: int
    session_id: Repeated
    agent_id: Repeated | None
    project: Repeated | None
    role: Repeated | None
    timestamp: datetime | None
    message_id: str | None
    name: Repeated
    start: int
    end: int
    line: int
    in_code: bool
    context: str


class RowOfRecords(TableRow):
    """A row of records."""

    path: Repeated
    offset: int
    host: Repeated
    host_version: Repeated | None
    session_id: Repeated
    agent_id: Repeated | None
    project: Repeated | None
    git_branch: Repeated | None
    uuid: str | None
    parent_uuid: str | None
    type: Repeated | None
    subtype: Repeated | None
    role: Repeated | None
    timestamp: datetime | None
    message_id: str | None
    request_id: str | None
    model: Repeated | None
    is_prompt: bool
    is_sidechain: bool
    is_meta: bool
    is_error: bool
    tools: list[str]
    text_bytes: int
    text: str


class RowOfTools(TableRow):
    """A row of tools."""

    path: Repeated
    offset: int
    session_id: Repeated
    agent_id: Repeated | None
    tool_use_id: str | None
    name: Repeated | None
    started: datetime | None
    ended: datetime | None
    duration_ms: int | None
    is_error: bool | None
    input: str | None
    file: str | None
    command: str | None


class RowOfUsage(TableRow):
    """A row of usage."""

    session_id: Repeated
    agent_id: Repeated | None
    project: Repeated | None
    host: Repeated
    model: Repeated | None
    timestamp: datetime | None
    message_id: str | None
    request_id: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_creation_tokens: int | None


class RowOfSessions(TableRow):
    """A row of sessions."""

    host: Repeated
    session_id: Repeated
    parent: str | None
    path: Repeated
    project: Repeated | None
    git_branch: Repeated | None
    models: list[str]
    host_version: Repeated | None
    start: datetime | None
    end: datetime | None
    prompts: int
    messages: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    errors: int
    sub_agents: int
    bytes: int
    broken_lines: int


class ToolHalf(RowOfTools):
    """A tool's use or its result, before both are joined. Unread columns are None."""

    project: Repeated | None
    is_result: bool

    def _replace(self, **values: Any) -> ToolHalf: ...  # type: ignore[empty-body]


class UsageHalf(RowOfUsage):
    """A record of a response, before all of its records are joined.

    cache_creation_1h_tokens: the tokens written to a cache for an hour.
    speed: the mode in which the model answered, "fast" or "standard".
    inference_geo: where it ran.
    advisor: which response of an advisor it is, from 1; 0 for the agent's own.
    copies: the ids that a repeated response may have in other threads, one a line.
    """

    path: Repeated
    offset: int
    uuid: str | None
    cache_creation_1h_tokens: int | None
    speed: Repeated | None
    inference_geo: Repeated | None
    advisor: int
    copies: str | None


class SessionColumns(NamedTuple):
    """The contributions of consecutive lines of a file to a session: a list for each column.

    queued: a text, a newline, and the line's effect on the queue: see QueueStep (reduce.py).
    """

    path: list[Repeated]
    offset: list[int]
    host: list[Repeated]
    host_version: list[Repeated | None]
    session_id: list[Repeated]
    agent_id: list[Repeated | None]
    project: list[Repeated | None]
    git_branch: list[Repeated | None]
    uuid: list[str | None]
    timestamp: list[datetime | None]
    message_id: list[str | None]
    request_id: list[str | None]
    is_prompt: list[bool]
    is_sidechain: list[bool]
    is_error: list[bool]
    parent: list[str | None]
    line_bytes: list[int]
    has_record: list[bool]
    is_broken: list[bool]
    has_own_words: list[bool]
    tool_ids: list[list[str]]
    unnamed_uses: list[int]
    progress_agents: list[list[str]]
    queued: list[str | None]


ROWS = {
    "matches": RowOfMatches,
    "records": RowOfRecords,
    "tools": RowOfTools,
    "usage": RowOfUsage,
    "sessions": RowOfSessions,
}
HALF_ROWS = (ToolHalf, UsageHalf, SessionColumns)  # halves from ranges of files; rows are joined from them


def columns_of(row: type[tuple[Any, ...]]) -> tuple[str, ...]:
    """Return the own columns of a class of rows, in their order."""
    return tuple(row.__annotations__)


@cache
def row_type(columns: tuple[str, ...]) -> Any:
    """Return a class of named tuples with these columns. Its rows can be pickled."""
    make_class: Any = NamedTuple
    row_class = make_class("Row", [(name, Any) for name in columns])
    row_class.__reduce__ = reduce_row
    return row_class


def reduce_row(row: Any) -> tuple[Any, ...]:
    """Return the pickle form of a row: another process could not find its class by a name."""
    return make_row, (row._fields, tuple(row))


def make_row(columns: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Return a pickled row."""
    return row_type(columns)._make(values)


class ScanOptions(TypedDict, total=False):
    """The keyword arguments of `tailhook.scan`."""

    patterns: Patterns
    signals: bool
    categories: bool
    roles: Iterable[str] | None
    since: datetime | None
    until: datetime | None
    project: Repeated | os.PathLike[str] | None
    sessions: Iterable[str] | None
    columns: Sequence[str] | None
    in_code: bool | None
    context: int
    all_text: bool
    sidechains: bool
    workers: int | None
    progress: Watch | None
    resume: str | os.PathLike[str] | None
    redact: bool
