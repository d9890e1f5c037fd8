"""Joins the halves that ranges give into rows: responses counted once, tool uses with their results.

Every function here is associative and gives the same rows in whatever order the halves come: places decide, which are
(time, path, offset).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

NEVER = datetime.min.replace(tzinfo=timezone.utc)  # stands for a missing time, which comes before all others
USAGE_HALF = (
    *("path", "offset", "session_id", "agent_id", "project", "host", "model", "timestamp"),
    *("message_id", "request_id", "uuid"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
)
TOOL_HALF = (
    *("path", "offset", "session_id", "agent_id", "project", "tool_use_id", "name", "started", "ended", "is_error"),
    *("input", "file", "command", "is_result"),
)


class Occurrence(NamedTuple):
    """One record of an API response, with the columns of USAGE_HALF."""

    path: str
    offset: int
    session_id: str
    agent_id: str | None
    project: str | None
    host: str
    model: str | None
    timestamp: datetime | None
    message_id: str | None
    request_id: str | None
    uuid: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_creation_tokens: int | None

    def place(self) -> tuple[datetime, str, int]:
        """Return what orders the records of all files."""
        return (self.timestamp or NEVER, self.path, self.offset)

    def weight(self) -> tuple[int, tuple[datetime, str, int]]:
        """Return what decides which record of a response counts: the greatest."""
        return (-1 if self.output_tokens is None else self.output_tokens, self.place())


class Response:
    """What is kept of the records of one response: the first one, and the one that counts."""

    __slots__ = ("counted", "first")

    def __init__(self, first: Occurrence, counted: Occurrence) -> None:
        self.first, self.counted = first, counted

    def add(self, first: Occurrence, counted: Occurrence) -> None:
        """Add another record, or what is kept of others."""
        if first.place() < self.first.place():
            self.first = first
        if counted.weight() > self.counted.weight():
            self.counted = counted


class UsageCounter:
    """Counts each API response once, however many records and files repeat it.

    A response is known by its message id and request id; a message id that occurs without a request id, too, is one
    response.
    """

    def __init__(self) -> None:
        self.responses: dict[tuple[str, ...], dict[str | None, Response]] = defaultdict(dict)

    def add(self, one: Occurrence) -> None:
        """Add a record."""
        group: tuple[str, ...]
        if one.message_id:
            group, request = ("message", one.message_id), one.request_id or None
        elif one.request_id:
            group, request = ("request", one.request_id), one.request_id
        elif one.uuid:
            group, request = ("uuid", one.uuid), one.uuid
        else:
            group, request = ("line", one.path, str(one.offset)), None
        known = self.responses[group].get(request)
        if known is None:
            self.responses[group][request] = Response(one, one)
        else:
            known.add(one, one)

    def rows(self) -> Iterator[Response]:
        """Yield each response."""
        for by_request in self.responses.values():
            found = list(by_request.values())
            if None in by_request and len(found) > 1:
                merged = Response(found[0].first, found[0].counted)
                for other in found[1:]:
                    merged.add(other.first, other.counted)
                found = [merged]
            yield from found


class ToolHalf(NamedTuple):
    """A tool's use or its result, with the columns of TOOL_HALF."""

    path: str
    offset: int
    session_id: str
    agent_id: str | None
    project: str | None
    tool_use_id: str | None
    name: str | None
    started: datetime | None
    ended: datetime | None
    is_error: bool | None
    input: str | None
    file: str | None
    command: str | None
    is_result: bool


def join_tools(halves: Iterable[ToolHalf]) -> Iterator[ToolHalf]:
    """Yield the uses in the order of their files and lines, each with its result if the file has one.

    halves: in the order in which they stand in their files; the files may come in any order.
    """
    uses: list[ToolHalf] = []
    seen: set[tuple[str, str]] = set()
    results: dict[tuple[str, str], ToolHalf] = {}
    for half in sorted(halves, key=lambda half: (half.path, half.offset)):
        known_by = (half.path, half.tool_use_id or "")
        if half.is_result:
            if half.tool_use_id is not None:
                results.setdefault(known_by, half)
        elif half.tool_use_id is None:
            uses.append(half)
        elif known_by not in seen:
            seen.add(known_by)
            uses.append(half)
    for use in uses:
        result = None if use.tool_use_id is None else results.get((use.path, use.tool_use_id))
        yield use if result is None else use._replace(ended=result.ended, is_error=result.is_error)


def duration_ms(started: datetime | None, ended: datetime | None) -> int | None:
    """Return how many whole milliseconds are between two times, rounded down; None if one is missing."""
    if started is None or ended is None:
        return None
    return (ended - started) // timedelta(milliseconds=1)


def usage_row(response: Response) -> tuple[Any, ...]:
    """Return the columns of the table usage: whose it is by its first record, figures by the one that counts."""
    first, counted = response.first, response.counted
    return (
        *(first.session_id, first.agent_id, first.project, first.host),
        *(counted.model, counted.timestamp, counted.message_id, counted.request_id),
        *(counted.input_tokens, counted.output_tokens, counted.cache_read_tokens, counted.cache_creation_tokens),
    )


def tool_row(use: ToolHalf) -> tuple[Any, ...]:
    """Return the columns of the table tools."""
    return (
        *(use.path, use.offset, use.session_id, use.agent_id, use.tool_use_id, use.name, use.started, use.ended),
        *(duration_ms(use.started, use.ended), use.is_error, use.input, use.file, use.command),
    )


# ---- sessions ------------------------------------------------------------------

SESSION_LINE = (
    *("path", "offset", "host", "host_version", "session_id", "agent_id", "project", "git_branch", "uuid", "timestamp"),
    *("message_id", "is_prompt", "is_sidechain", "is_error", "parent"),
    *("line_bytes", "has_record", "is_broken", "has_own_words", "tool_ids", "unnamed_uses", "progress_agents"),
)


class SessionLine(NamedTuple):
    """What a session gets from one line, with the columns of SESSION_LINE."""

    path: str
    offset: int
    host: str
    host_version: str | None
    session_id: str
    agent_id: str | None
    project: str | None
    git_branch: str | None
    uuid: str | None
    timestamp: datetime | None
    message_id: str | None
    is_prompt: bool
    is_sidechain: bool
    is_error: bool
    parent: str | None
    line_bytes: int
    has_record: bool
    is_broken: bool
    has_own_words: bool
    tool_ids: list[str]
    unnamed_uses: int
    progress_agents: list[str]


Place = tuple[datetime, str, int]


class SessionTotals:
    """What is kept of the lines of one session."""

    def __init__(self) -> None:
        self.first: dict[str, tuple[Place, str]] = {}  # by column: the value of the first record that has one
        self.last: dict[str, tuple[Place, str]] = {}
        self.host = ""
        self.path: tuple[int, str] | None = None  # how well a file stands for the session, and its path
        self.times: list[datetime] = []  # the least and the greatest
        self.prompts: set[object] = set()
        self.messages: set[object] = set()
        self.errors: set[object] = set()
        self.tool_ids: set[str] = set()
        self.unnamed_uses = 0
        self.agents: set[str] = set()
        self.bytes = 0
        self.broken_lines = 0

    def add(self, line: SessionLine, stem: str) -> None:
        """Add a line.  stem: the name of its file."""
        self.bytes += line.line_bytes
        self.broken_lines += line.is_broken
        rank = 0 if stem == line.session_id else 2
        if rank and line.has_record and not line.is_sidechain and not line.agent_id:
            rank = 1
        if self.path is None or (rank, line.path) < self.path:
            self.path = (rank, line.path)
        self.host = self.host or line.host
        if not line.has_record:
            return
        place = (line.timestamp or NEVER, line.path, line.offset)
        for name in ("project", "parent", "host"):
            keep_first(self.first, name, place, getattr(line, name))
        for name in ("git_branch", "host_version"):
            keep_last(self.last, name, place, getattr(line, name))
        if line.timestamp is not None:
            self.times = [min([*self.times[:1], line.timestamp]), max([*self.times[1:], line.timestamp])]
        known_by = line.uuid or (line.path, line.offset)
        if line.is_prompt:
            self.prompts.add(known_by)
        if line.is_error:
            self.errors.add(known_by)
        if line.has_own_words and not line.is_sidechain:
            self.messages.add(line.message_id or known_by)
        self.tool_ids.update(line.tool_ids)
        self.unnamed_uses += line.unnamed_uses
        self.agents.update(agent for agent in (line.agent_id, *line.progress_agents) if agent)


def keep_first(kept: dict[str, tuple[Place, str]], name: str, place: Place, value: str | None) -> None:
    """Keep a value if it is not empty and no earlier record has one."""
    if value and (name not in kept or place < kept[name][0]):
        kept[name] = (place, value)


def keep_last(kept: dict[str, tuple[Place, str]], name: str, place: Place, value: str | None) -> None:
    """Keep a value if it is not empty and no later record has one."""
    if value and (name not in kept or place > kept[name][0]):
        kept[name] = (place, value)


def session_rows(totals: dict[str, SessionTotals], responses: Iterable[Response]) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of the table sessions, sorted by session.

    totals: by session.  responses: those of all sessions, each once.
    """
    used: dict[str, list[Occurrence]] = defaultdict(list)
    for response in responses:
        used[response.first.session_id].append(response.counted)
        if response.first.session_id in totals:
            totals[response.first.session_id].agents.update(filter(None, [response.first.agent_id]))
    for session_id, total in sorted(totals.items()):
        own = used[session_id]
        first = {name: value for name, (_, value) in total.first.items()}
        last = {name: value for name, (_, value) in total.last.items()}
        start, end = total.times or (None, None)
        yield (
            *(first.get("host", total.host), session_id, first.get("parent"), (total.path or (0, ""))[1]),
            *(first.get("project"), last.get("git_branch"), sorted({one.model for one in own if one.model})),
            *(last.get("host_version"), start, end, len(total.prompts), len(total.messages)),
            len(total.tool_ids) + total.unnamed_uses,
            *(sum(one.input_tokens or 0 for one in own), sum(one.output_tokens or 0 for one in own)),
            *(sum(one.cache_read_tokens or 0 for one in own), sum(one.cache_creation_tokens or 0 for one in own)),
            *(len(total.errors), len(total.agents), total.bytes, total.broken_lines),
        )
