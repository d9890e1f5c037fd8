"""What the rows of each table hold, for type checkers. Nothing imports this while it runs: see `row_type`.

A row has only the columns that were asked for. `text` and `input` are not among those that a question has by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from tailhook.fleet.report import Watch
    from tailhook.fleet.scan import Patterns


class TableRow(tuple[Any, ...]):
    """A named tuple."""

    _fields: tuple[str, ...]

    def _asdict(self) -> dict[str, Any]: ...  # type: ignore[empty-body]


class RowOfMatches(TableRow):
    """A row of matches."""

    path: str
    offset: int
    session_id: str
    agent_id: str | None
    project: str | None
    role: str | None
    timestamp: datetime | None
    message_id: str | None
    name: str
    start: int
    end: int
    line: int
    in_code: bool
    context: str


class RowOfRecords(TableRow):
    """A row of records."""

    path: str
    offset: int
    host: str
    host_version: str | None
    session_id: str
    agent_id: str | None
    project: str | None
    git_branch: str | None
    uuid: str | None
    parent_uuid: str | None
    type: str | None
    subtype: str | None
    role: str | None
    timestamp: datetime | None
    message_id: str | None
    request_id: str | None
    model: str | None
    is_prompt: bool
    is_sidechain: bool
    is_meta: bool
    is_error: bool
    tools: list[str]
    text_bytes: int
    text: str


class RowOfTools(TableRow):
    """A row of tools."""

    path: str
    offset: int
    session_id: str
    agent_id: str | None
    tool_use_id: str | None
    name: str | None
    started: datetime | None
    ended: datetime | None
    duration_ms: int | None
    is_error: bool | None
    input: str | None
    file: str | None
    command: str | None


class RowOfUsage(TableRow):
    """A row of usage."""

    session_id: str
    agent_id: str | None
    project: str | None
    host: str
    model: str | None
    timestamp: datetime | None
    message_id: str | None
    request_id: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_creation_tokens: int | None


class RowOfSessions(TableRow):
    """A row of sessions."""

    host: str
    session_id: str
    parent: str | None
    path: str
    project: str | None
    git_branch: str | None
    models: list[str]
    host_version: str | None
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


class ScanOptions(TypedDict, total=False):
    """What `tailhook.scan` takes by name."""

    patterns: Patterns
    signals: bool
    categories: bool
    roles: Iterable[str] | None
    since: datetime | None
    until: datetime | None
    project: str | os.PathLike[str] | None
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
