"""Joins the halves of ranges into rows: tool uses with their results, and the sums of sessions.

The rows do not depend on the order of the tasks' ends: records are ordered by their place, (time, path, offset).
`join_tools` needs sorted halves. The core's `ResponseCounter` counts responses once, and also takes any order.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, compress, groupby
from operator import attrgetter
from typing import Any, NamedTuple

from tailhook.fleet.columns import TABLE_COLUMNS, TOKEN_COLUMNS
from tailhook.fleet.typed_rows import RowOfSessions, SessionColumns, ToolHalf, UsageHalf, columns_of, row_type

NEVER = datetime.min.replace(tzinfo=UTC)  # in place of a missing time: it comes before all others
NONE = (NEVER, 0, "")
MAX_INT64 = (1 << 63) - 1  # of a column of whole numbers
Place = tuple[datetime, str, int]  # of a record: its time, path and offset
ORIGIN = ("path", "offset", "session_id", "agent_id", "project")  # of each half: the origin of its record
USAGE_HALF = (
    *(*ORIGIN, "host", "model", "timestamp", "message_id", "request_id", "uuid", "advisor", "copies"),
    *TOKEN_COLUMNS,
)
SESSION_LINE = SessionColumns._fields
# The columns of a row of tools that are not in its halves.
TOOL_MADE: Mapping[str, Callable[[ToolHalf], Any]] = {"duration_ms": lambda use: duration_ms(use.started, use.ended)}
TOOL_HALF = tuple(
    name for name in dict.fromkeys((*ORIGIN, *TABLE_COLUMNS["tools"], "is_result")) if name not in TOOL_MADE
)
make_tool_half: Callable[[Iterable[Any]], ToolHalf] = row_type(TOOL_HALF)._make
make_session_row: Callable[..., RowOfSessions] = row_type(TABLE_COLUMNS["sessions"])


class HalfTable(NamedTuple):
    """The halves for a table with joined rows.

    columns: the possible ones of a half.
    always: the ones of every half. The others are read only on request.
    marks: texts; every line with a half contains one of them, and for usage every line with tokens. () if any line may
        have one.
    """

    columns: Sequence[str]
    always: Sequence[str]
    marks: tuple[str, ...]


HALVES: Mapping[str, HalfTable] = {
    "tools": HalfTable(
        TOOL_HALF,
        (*ORIGIN, "tool_use_id", "name", "started", "ended", "is_error", "is_result"),
        ("tool_use", "tool_result"),
    ),
    "usage": HalfTable(
        tuple(dict.fromkeys((*USAGE_HALF, *columns_of(UsageHalf)))), USAGE_HALF, ('usage"', 'okens"', 'oken_count"')
    ),
    "sessions": HalfTable(SESSION_LINE, SESSION_LINE, ()),
}


def half_columns(table: str, asked: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of the halves of a table.  asked: the columns of its rows."""
    wanted = {*HALVES[table].always, *asked}
    return tuple(name for name in HALVES[table].columns if name in wanted)


def join_tools(halves: Iterable[ToolHalf]) -> Iterator[ToolHalf]:
    """Yield the uses in the order of their files and lines, each with its result if the file has one.

    halves: sorted by path and offset. Those of one file are held in memory.
    """
    for _, of_file in groupby(halves, key=attrgetter("path")):
        uses: list[ToolHalf] = []
        places: dict[str, int] = {}  # of the uses, by id
        early: dict[str, ToolHalf] = {}  # results before their use
        for half in of_file:
            name = half.tool_use_id
            if not half.is_result:
                if name is None:
                    uses.append(half)
                elif name not in places:
                    places[name] = len(uses)
                    uses.append(with_result(half, early.pop(name, None)))
            elif name in places:
                if uses[places[name]].is_error is None:  # it has no result yet
                    uses[places[name]] = with_result(uses[places[name]], half)
            elif name is not None:
                early.setdefault(name, half)
        yield from uses


def with_result(use: ToolHalf, result: ToolHalf | None) -> ToolHalf:
    """Return a use with its result, if there is one."""
    return use if result is None else use._replace(ended=result.ended, is_error=result.is_error)


def duration_ms(started: datetime | None, ended: datetime | None) -> int | None:
    """Return the whole milliseconds between two times, rounded down; None if one is missing."""
    if started is None or ended is None:
        return None
    return (ended - started) // timedelta(milliseconds=1)


def tool_row(use: ToolHalf, columns: Iterable[str]) -> tuple[Any, ...]:
    """Return a row of the table tools."""
    return tuple([TOOL_MADE[name](use) if name in TOOL_MADE else getattr(use, name) for name in columns])


# ---- sessions ------------------------------------------------------------------


class SessionLines(SessionColumns):
    """The contributions of consecutive lines of a file to a session, in parts."""

    __slots__ = ()

    def cut(self, start: int, end: int) -> SessionLines:
        """Return the lines from `start` up to `end`, without it."""
        return SessionLines._make(column[start:end] for column in self)

    def only(self, flags: Sequence[bool]) -> SessionLines:
        """Return the lines whose flag is set."""
        if all(flags):
            return self
        if not any(flags):
            return NO_LINES
        return SessionLines._make(list(compress(column, flags)) for column in self)

    def runs(self) -> Iterator[SessionLines]:
        """Yield the lines in parts of one file and one session each."""
        start = 0
        for _, lines in groupby(zip(self.path, self.session_id, strict=True)):
            end = start + sum(1 for _ in lines)
            yield self.cut(start, end)
            start = end


NO_LINES = SessionLines._make([] for _ in SESSION_LINE)


class QueueStep(NamedTuple):
    """The effect of a line on the queue of texts that wait while the agent works.

    kind: "typed", "command" or "notice" puts a person's text, a slash command or a message of the host into it;
        "dequeue", "remove" and "popAll" take one from it; "given" is the attachment that a text became.
    text: its hash, None without a text.
    """

    path: str
    offset: int
    kind: str
    text: int | None
    time: datetime | None


class WaitingTexts:
    """The texts that wait in the queue of one file."""

    def __init__(self) -> None:
        self.persons: deque[QueueStep] = deque()
        self.notices: deque[QueueStep] = deque()
        self.by_text: dict[int, deque[QueueStep]] = defaultdict(deque)
        self.taken: set[int] = set()  # offsets of texts that may still be in one of the above

    def put(self, step: QueueStep) -> None:
        """Add a text."""
        (self.notices if step.kind == "notice" else self.persons).append(step)
        if step.text is not None:
            self.by_text[step.text].append(step)

    def take(self, text: int | None) -> QueueStep | None:
        """Take the oldest one with this text. None means any text: a person's come before the host's."""
        for steps in (self.persons, self.notices) if text is None else (self.by_text[text],):
            while steps:
                step = steps.popleft()
                if step.offset not in self.taken:
                    self.taken.add(step.offset)
                    return step
        return None


def queued_prompts(steps: Iterable[QueueStep]) -> Iterator[object]:
    """Yield an identity of each prompt that is only in the queue: the agent got it between two steps.

    Claude Code writes a `remove` then. A `dequeue` begins a turn, with a record of its own; a `popAll` gives the text
    back to the person. Newer versions write an attachment beside the `remove`.
    """
    for path, of_file in groupby(sorted(steps, key=attrgetter("path", "offset")), key=attrgetter("path")):
        waiting = WaitingTexts()
        removed: list[QueueStep] = []
        given: set[int | None] = set()
        for step in of_file:
            if step.kind in ("typed", "command", "notice"):
                waiting.put(step)
            elif step.kind == "given":
                given.add(step.text)
            elif (found := waiting.take(step.text)) is not None and (step.kind, found.kind) == ("remove", "typed"):
                removed.append(found)
        for step in removed:
            if step.text not in given:
                yield (path, step.offset) if step.time is None else (step.time, step.text)


class SessionTotals:
    """The collected facts from the lines of one session."""

    def __init__(self) -> None:
        self.first: dict[str, tuple[Place, str]] = {}  # by column: the value of the first record with one
        self.last: dict[str, tuple[Place, str]] = {}
        self.host: tuple[str, str] | None = None  # the least path, and the host of its file
        self.path: tuple[int, str] | None = None  # a file's rank for the session, and its path
        self.times: list[datetime] = []  # the least and the greatest
        self.prompts: set[object] = set()
        self.messages: set[object] = set()  # those without a message id
        self.requests: dict[str, set[str]] = defaultdict(set)  # by message id: the request ids, "" for a missing one
        self.errors: set[object] = set()
        self.tool_ids: set[str] = set()
        self.unnamed_uses = 0
        self.agents: set[str] = set()
        self.queue: list[QueueStep] = []
        self.bytes = 0
        self.broken_lines = 0

    def add(self, lines: SessionLines, stem: str) -> None:
        """Add lines of one file.  stem: the file's name."""
        self.bytes += sum(lines.line_bytes)
        self.broken_lines += sum(lines.is_broken)
        path, session_id, host = lines.path[0], lines.session_id[0], lines.host[0]
        self.host = (path, host) if self.host is None else min(self.host, (path, host))
        lines = lines.only(lines.has_record)
        are_own = [not agent and not side for agent, side in zip(lines.agent_id, lines.is_sidechain, strict=True)]
        rank = 0 if stem == session_id else 1 if any(are_own) else 2
        self.path = (rank, path) if self.path is None else min(self.path, (rank, path))
        if lines.path:
            self.add_records(lines, path)

    def add_records(self, lines: SessionLines, path: str) -> None:
        """Add the records of one file."""
        known_times = [time for time in lines.timestamp if time is not None]
        if known_times:
            self.times += [min(known_times), max(known_times)]
            self.times = [min(self.times), max(self.times)]
        for name in ("project", "parent", "host"):
            if (found := end_value(min, lines, path, getattr(lines, name))) is not None:
                self.first[name] = min(self.first.get(name, found), found)
        for name in ("git_branch", "host_version"):
            if (found := end_value(max, lines, path, getattr(lines, name))) is not None:
                self.last[name] = max(self.last.get(name, found), found)
        self.prompts.update(known_by(lines.only(lines.is_prompt)))
        self.errors.update(known_by(lines.only(lines.is_error)))
        spoken = lines.only(
            [words and not side for words, side in zip(lines.has_own_words, lines.is_sidechain, strict=True)]
        )
        for message_id, request_id, record in zip(spoken.message_id, spoken.request_id, known_by(spoken), strict=True):
            if message_id:
                self.requests[message_id].add(request_id or "")
            else:
                self.messages.add(record)
        self.tool_ids.update(chain.from_iterable(lines.tool_ids))
        self.unnamed_uses += sum(lines.unnamed_uses)
        self.agents.update(filter(None, lines.agent_id), filter(None, chain.from_iterable(lines.progress_agents)))
        if any(lines.queued):
            for offset, time, queued in zip(lines.offset, lines.timestamp, lines.queued, strict=True):
                if queued is not None:
                    text, _, kind = queued.rpartition("\n")
                    self.queue.append(QueueStep(path, offset, kind, hash(text) if text else None, time))

    def count_messages(self) -> int:
        """Return the number of messages. If a record of a message id lacks the request id, the id has one message."""
        return len(self.messages) + sum(1 if "" in requests else len(requests) for requests in self.requests.values())


def known_by(lines: SessionLines) -> Iterator[object]:
    """Yield an identity of each record: its uuid, otherwise its place."""
    for uuid, path, offset in zip(lines.uuid, lines.path, lines.offset, strict=True):
        yield uuid or (path, offset)


def end_value(
    choose: Callable[..., tuple[datetime, int, str]], lines: SessionLines, path: str, values: Sequence[str | None]
) -> tuple[Place, str] | None:
    """Return the first or the last non-empty value of one file's records, and its place; or None.

    choose: `min` for the first one, `max` for the last one.
    """
    rows = zip(lines.timestamp, lines.offset, values, strict=True)
    valued = ((time or NEVER, offset, value) for time, offset, value in rows if value)
    time, offset, value = choose(valued, default=NONE)
    return None if not value else ((time, path, offset), value)


class ResponseTokens(NamedTuple):
    """The columns of the table usage for a session's sums."""

    session_id: str
    agent_id: str | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_creation_tokens: int | None


class SessionUse:
    """The responses of one session, added up."""

    def __init__(self) -> None:
        self.agents: set[str] = set()
        self.models: set[str] = set()
        self.input_tokens = self.output_tokens = self.cache_read_tokens = self.cache_creation_tokens = 0

    def add(self, response: ResponseTokens) -> None:
        """Add a response."""
        if response.agent_id:
            self.agents.add(response.agent_id)
        if response.model:
            self.models.add(response.model)
        self.input_tokens += response.input_tokens or 0
        self.output_tokens += response.output_tokens or 0
        self.cache_read_tokens += response.cache_read_tokens or 0
        self.cache_creation_tokens += response.cache_creation_tokens or 0


def session_rows(totals: dict[str, SessionTotals], responses: Iterable[ResponseTokens]) -> Iterator[RowOfSessions]:
    """Yield the rows of the table sessions, sorted by session.

    totals: by session. responses: of all sessions, each once.
    """
    used: dict[str, SessionUse] = defaultdict(SessionUse)
    for response in responses:
        used[response.session_id].add(response)
    for session_id, total in sorted(totals.items()):
        own = used[session_id]
        queued = len(set(queued_prompts(total.queue)))
        total.agents.update(own.agents)
        first = {name: value for name, (_, value) in total.first.items()}
        last = {name: value for name, (_, value) in total.last.items()}
        start, end = total.times or (None, None)
        yield make_session_row(
            host=first.get("host") or (total.host or ("", ""))[1],
            session_id=session_id,
            parent=first.get("parent"),
            path=(total.path or (0, ""))[1],
            project=first.get("project"),
            git_branch=last.get("git_branch"),
            models=sorted(own.models),
            host_version=last.get("host_version"),
            start=start,
            end=end,
            prompts=len(total.prompts) + queued,
            messages=total.count_messages() + queued,
            tool_calls=len(total.tool_ids) + total.unnamed_uses,
            input_tokens=min(own.input_tokens, MAX_INT64),
            output_tokens=min(own.output_tokens, MAX_INT64),
            cache_read_tokens=min(own.cache_read_tokens, MAX_INT64),
            cache_creation_tokens=min(own.cache_creation_tokens, MAX_INT64),
            errors=len(total.errors),
            sub_agents=len(total.agents),
            bytes=total.bytes,
            broken_lines=total.broken_lines,
        )
