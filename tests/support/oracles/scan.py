"""The five tables of a scan, found slowly with json, re and markdown-it-py: the oracle of every scan test.

docs/scan-rows.md states the rules for users; the docstrings here repeat each rule at its code. A file is (path, bytes),
uncompressed. A row is a dict with exactly the columns of COLUMNS, `text` and `input` too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from support.keywords import regexes
from support.oracles.markdown import Oracle
from support.oracles.scan_model import Head, Record, Usage
from support.oracles.scan_records import MAX_LINE_BYTES, head_of, read_record, read_restated
from support.oracles.scan_values import sortable_time

COLUMNS = {
    "matches": (
        *("path", "offset", "session_id", "agent_id", "project", "role", "timestamp", "message_id"),
        *("name", "start", "end", "line", "in_code", "context"),
    ),
    "records": (
        *("path", "offset", "host", "host_version", "session_id", "agent_id", "project", "git_branch"),
        *("uuid", "parent_uuid", "type", "subtype", "role", "timestamp", "message_id", "request_id", "model"),
        *("is_prompt", "is_sidechain", "is_meta", "is_error", "tools", "text_bytes", "text"),
    ),
    "tools": (
        *("path", "offset", "session_id", "agent_id", "tool_use_id", "name"),
        *("started", "ended", "duration_ms", "is_error", "input", "file", "command"),
    ),
    "usage": (
        *("session_id", "agent_id", "project", "host", "model", "timestamp", "message_id", "request_id"),
        *("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
    ),
    "sessions": (
        *("host", "session_id", "parent", "path", "project", "git_branch", "models", "host_version", "start", "end"),
        *("prompts", "messages", "tool_calls"),
        *("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
        *("errors", "sub_agents", "bytes", "broken_lines"),
    ),
}
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
SIGNALS = (
    *(f"<loop-done>{word}</loop-done>" for word in ("COMPLETE", "MAX_ITERATIONS", "STUCK")),
    "<issue-complete>DONE</issue-complete>",
    *(f"<grind-done>{word}</grind-done>" for word in ("NO_MORE_ISSUES", "MAX_ISSUES")),
)
CATEGORIES = {
    "DECISION": ("decided", "chose", "selected", "went with", "picked"),
    "RUNBOOK": ("error", "exception", "traceback", "stack trace", "failed"),
    "CONSTRAINT": ("limitation", "API limit", "cannot", "restricted", "not supported", "quota"),
    "TECH_DEBT": ("TODO", "deferred", "tech debt", "workaround", "hack", "will address later"),
    "PREFERENCE": ("always use", "prefer", "convention", "from now on", "standard", "never use"),
}
FOUND_BY = {name: [regex for _, regex in regexes(words)] for name, words in CATEGORIES.items()}
LINE_END = re.compile(r"\r\n|\r|\n")
MARKERS = re.compile(r"(?:\s|>|[-+*](?=\s)|\d{1,9}[.)](?=\s))*")  # of quotes and list items, and blank space
BLANK = b" \t\r\n"
MAX_INT64 = 2**63 - 1
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MARKDOWN = Oracle()
Row = dict[str, Any]
Files = Sequence[tuple[str, bytes]]


@dataclass(frozen=True)
class Question:
    """The question of a scan; all conditions must hold.

    patterns: literals by name.
    signals, categories: whether the idle machine's signals and the memory machine's keywords are searched for too.
    roles: None for all; for matches and records only.
    since, until: aware; since is inclusive, until exclusive. A row without a time fails both.
    project: a folder; itself and the folders below it count.
    sessions: session ids; None for all.
    all_text: search the text of every record, not only own words; this includes sub-agents.
    sidechains: search the own words of sub-agents too.
    in_code: False for matches outside code, True for those in code, None for both.
    context: characters before and after a match.
    """

    patterns: dict[str, str] = field(default_factory=dict)
    signals: bool = False
    categories: bool = False
    roles: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None
    project: str | None = None
    sessions: tuple[str, ...] | None = None
    all_text: bool = False
    sidechains: bool = False
    in_code: bool | None = False
    context: int = 80


@dataclass
class Line:
    """A line of a file: its bytes with the newline, and its record if it has one."""

    path: str
    offset: int
    size: int
    head: Head
    record: Record | None
    is_broken: bool

    @property
    def session_id(self) -> str:
        return (self.record and self.record.session_id) or self.head.session_id

    @property
    def place(self) -> tuple[datetime, str, int]:
        """Return (timestamp, path, offset), the order of records over all files. No time comes first."""
        return (sortable_time(self.record and self.record.timestamp), self.path, self.offset)


def rows(table: str, files: Files, question: Question | None = None) -> list[Row]:
    """Return the rows of a table, sorted: the same for any order of `files`."""
    return TABLES[table](tuple(files), question or Question())


@lru_cache(maxsize=1)  # the tables of the same files are asked for one after the other
def read_lines(files: Files) -> list[Line]:
    """Return the lines of all files that are not blank, sorted by (path, offset).

    Lines end with a line feed; the last one may have none. A line is blank if it has only spaces, tabs and returns
    after a byte order mark at its beginning. A line is broken if it is not exactly one JSON object; it may have a
    record all the same. NULs make it broken. Lines of more than 16 MiB, without the line feed, do not count. A message
    that a record of Gemini repeats counts as a line without bytes, behind that record, at its offset.
    """
    found = []
    for path, data in sorted(files):
        head = head_of(path, data)
        offset, known = 0, set[str]()
        for line in re.findall(rb"[^\n]*\n|[^\n]+", data):
            if len(line.removesuffix(b"\n")) <= MAX_LINE_BYTES and line.removeprefix(BYTE_ORDER_MARK).strip(BLANK):
                record, is_broken = read_record(line, head)
                found.append(Line(path, offset, len(line), head, record, is_broken))
                found += [Line(path, offset, 0, head, one, False) for one in read_restated(line, head, known)]
            offset += len(line)
    return found


# ---- conditions ----------------------------------------------------------------


def is_wanted(question: Question, session_id: str, project: str | None, time: datetime | None) -> bool:
    """Return whether a row meets the conditions on session, project and time.

    A row meets a condition by its own columns, after usage was counted once and tools were paired.
    """
    if question.sessions is not None and session_id not in question.sessions:
        return False
    if question.project is not None and not is_below(question.project, project):
        return False
    if question.since is not None and (time is None or time < question.since):
        return False
    return question.until is None or (time is not None and time < question.until)


def is_below(folder: str, project: str | None) -> bool:
    """Return whether a project is a folder or is below it. A slash or backslash at the folder's end does not count."""
    if project is None:
        return False
    folder = folder.rstrip("/\\")
    if not folder:  # the root
        return project.startswith("/")
    return project == folder or project.startswith((folder + "/", folder + "\\"))


def has_role(question: Question, record: Record) -> bool:
    return question.roles is None or record.role in question.roles


def utf8(value: Any) -> Any:
    """Return a value with U+FFFD for every lone surrogate: Arrow's strings cannot have one."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    return [utf8(item) for item in value] if isinstance(value, list) else value


def make_row(table: str, **values: Any) -> Row:
    assert set(values) == set(COLUMNS[table]), set(values) ^ set(COLUMNS[table])
    return {name: utf8(values[name]) for name in COLUMNS[table]}


# ---- matches and records ---------------------------------------------------------


def matches(files: Files, question: Question) -> list[Row]:
    """Return all matches, overlapping ones too, sorted by path, offset, start, end and the order of the names.

    The text is the record's. The names are those of the patterns, then the signals, then the categories. A pattern
    matches as it stands, in any place. A signal is named as it is written, and must stand alone on its line (markers of
    quotes and list items may stand before it). A category matches at each of its keywords, with the rules `word` and
    `ignore_case`. Its keywords are the first column of the memory machine's table, profile "seed"; boosters do not
    count.

    `start` and `end` count characters (code points) of the text. `line` counts from 1; CRLF, CR and LF end a line. A
    match that is partly in code is in code. `context` is the match with up to `question.context` characters before and
    after it, line ends included.
    """
    found = []
    for line in read_lines(files):
        record = line.record
        if record is None or not record.text or not has_role(question, record):
            continue
        if not question.all_text and not (record.has_own_words and (question.sidechains or not record.is_sidechain)):
            continue
        if not is_wanted(question, line.session_id, record.project, record.timestamp):
            continue
        text = record.text
        hits = sorted({(start, end, number, name) for number, name, start, end in find(question, text)})
        code = MARKDOWN.spans(text) if hits else []
        for start, end, _, name in hits:
            in_code = any(start < code_end and end > code_start for _, code_start, code_end in code)
            if question.in_code not in (None, in_code):
                continue
            row = make_row(
                "matches",
                path=line.path,
                offset=line.offset,
                session_id=line.session_id,
                agent_id=record.agent_id,
                project=record.project,
                role=record.role,
                timestamp=record.timestamp,
                message_id=record.message_id,
                name=name,
                start=start,
                end=end,
                line=1 + sum(match.end() <= start for match in LINE_END.finditer(text)),
                in_code=in_code,
                context=text[max(0, start - question.context) : end + question.context],
            )
            found.append(row)
    return found


def find(question: Question, text: str) -> list[tuple[int, str, int, int]]:
    """Return (number of the name, name, start, end) of every match."""
    found = []
    for number, (name, literal) in enumerate(question.patterns.items()):
        found += [(number, name, at, at + len(literal)) for at in places(literal, text)]
    for number, signal in enumerate(SIGNALS if question.signals else (), 1000):
        alone = [at for at in places(signal, text) if is_alone(text, at, at + len(signal))]
        found += [(number, signal, at, at + len(signal)) for at in alone]
    for number, name in enumerate(CATEGORIES if question.categories else (), 2000):
        found += [(number, name, *match.span(1)) for regex in FOUND_BY[name] for match in regex.finditer(text)]
    return found


def places(literal: str, text: str) -> list[int]:
    """Return the places of a literal in a text, overlapping ones too."""
    return [match.start() for match in re.finditer(f"(?={re.escape(literal)})", text)]


def is_alone(text: str, start: int, end: int) -> bool:
    """Return whether a match is alone on its line or lines, without blank space and markers before it."""
    before = re.split(LINE_END, text[:start])[-1]
    after = re.split(LINE_END, text[end:])[0]
    return not after.strip() and MARKERS.fullmatch(before) is not None


def records(files: Files, question: Question) -> list[Row]:
    """Return every record, sorted by (path, offset), also those of unknown types and those in broken lines.

    `text_bytes` is the length of the text in UTF-8. `tools` are the names of the record's tool uses; a use without a
    name is left out.
    """
    found = []
    for line in read_lines(files):
        record = line.record
        if record is None or not has_role(question, record):
            continue
        if is_wanted(question, line.session_id, record.project, record.timestamp):
            same = {name: getattr(record, name) for name in COLUMNS["records"] if hasattr(record, name)}
            same |= {"session_id": line.session_id, "path": line.path, "offset": line.offset, "host": line.head.host}
            same |= {"tools": [use.name for use in record.tool_uses if use.name is not None]}
            found.append(make_row("records", **same, text_bytes=len(utf8(record.text).encode())))
    return found


# ---- tools ---------------------------------------------------------------------


def tools(files: Files, question: Question) -> list[Row]:
    """Return each tool use with its result, sorted by path, the offset of the use's line, and the place in it.

    Use and result are paired by their id inside a file, by path. If a file has several uses or results of an id (a
    repeated line), the first of each counts. A use without an id is a row without a result. A result without a use is
    not a row. The time of a row, for since and until, is `started`. `duration_ms` is rounded down to whole
    milliseconds; it is negative if the clock was set back. `is_error` is null without a result. Uses inside of progress
    records do not count.
    """
    return [row for row, project in tool_rows(read_lines(files)) if is_wanted_tool(question, row, project)]


def is_wanted_tool(question: Question, row: Row, project: str | None) -> bool:
    return is_wanted(question, row["session_id"], project, row["started"])


def tool_rows(lines: list[Line]) -> list[tuple[Row, str | None]]:
    """Return (row, the project of the use's record) of each tool use."""
    results: dict[tuple[str, str], tuple[datetime | None, bool]] = {}
    for line in lines:
        for result in line.record.tool_results if line.record else ():
            if result.tool_use_id is not None:
                ended = result.time or line.record.timestamp
                results.setdefault((line.path, result.tool_use_id), (ended, result.is_error))
    found, seen = [], set()
    for line in lines:
        for use in line.record.tool_uses if line.record else ():
            if use.id is not None and (line.path, use.id) in seen:
                continue
            seen.add((line.path, use.id))
            started = line.record.timestamp
            ended, is_error = results.get((line.path, use.id), (None, None)) if use.id is not None else (None, None)
            row = make_row(
                "tools",
                path=line.path,
                offset=line.offset,
                session_id=line.session_id,
                agent_id=line.record.agent_id,
                tool_use_id=use.id,
                name=use.name,
                started=started,
                ended=ended,
                duration_ms=(ended - started) // timedelta(milliseconds=1) if started and ended else None,
                is_error=is_error,
                input=use.input,
                file=use.file,
                command=use.command,
            )
            found.append((row, line.record.project))
    return found


# ---- usage ---------------------------------------------------------------------


def usage(files: Files, question: Question) -> list[Row]:
    """Return one row for each API response, sorted by timestamp, session, message id, request id, and the place of the
    counting record. Missing values come first.

    An occurrence of a response is an assistant record with an object `message.usage`, or such a record in the
    `data.message` of a progress record. Occurrences with the model `<synthetic>` and API errors do not count.

    A response is known by (message id, request id). Without a request id it is known by the message id, without a
    message id by the request id, without both by the uuid; an occurrence with none of them is a response. If one
    occurrence of a message id has no request id, all occurrences with this message id are one response. An empty id
    counts as missing.

    Of its occurrences, the one with the most output tokens counts (a missing number is less than 0), then the latest by
    (timestamp, path, offset), but the first for other hosts than Claude Code: the model, timestamp, ids and tokens are
    its own. Session, agent, project and host are those of the first occurrence, the least by (timestamp, path, offset).
    A missing timestamp comes before all others.
    """
    return [row for row in count_once(read_lines(files)) if is_wanted_response(question, row)]


def is_wanted_response(question: Question, row: Row) -> bool:
    return is_wanted(question, row["session_id"], row["project"], row["timestamp"])


def count_once(lines: list[Line]) -> list[Row]:
    by_message: dict[Any, dict[Any, list[tuple[Line, Usage]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        for one in line.record.usages if line.record else ():
            if one.message_id:
                by_message["message", one.message_id][one.request_id or None].append((line, one))
            elif one.request_id:
                by_message["request", one.request_id][one.request_id].append((line, one))
            elif one.uuid:
                by_message["uuid", one.uuid][one.uuid].append((line, one))
            else:
                by_message["line", line.path, line.offset][line.offset].append((line, one))
    found = []
    for by_request in by_message.values():
        groups = list(by_request.values())
        if None in by_request:
            groups = [[occurrence for group in groups for occurrence in group]]
        found += [row_of_response(group) for group in groups]
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def row_of_response(occurrences: list[tuple[Line, Usage]]) -> tuple[Any, Row]:
    """Return the key to sort the row by, and the row."""

    def place(occurrence: tuple[Line, Usage]) -> tuple[datetime, str, int]:
        line, one = occurrence
        return (sortable_time(one.timestamp), line.path, line.offset)

    def output(occurrence: tuple[Line, Usage]) -> int:
        tokens = occurrence[1].output_tokens
        return -1 if tokens is None else tokens

    occurrences = sorted(occurrences, key=place)
    first, first_usage = occurrences[0]
    most = max(map(output, occurrences))
    equal = [one for one in occurrences if output(one) == most]
    line, counted = equal[-1 if first.head.host == "claude-code" else 0]
    row = make_row(
        "usage",
        session_id=first.session_id,
        agent_id=first_usage.agent_id,
        project=first.record.project,
        host=first.head.host,
        model=counted.model,
        timestamp=counted.timestamp,
        message_id=counted.message_id,
        request_id=counted.request_id,
        **{name: getattr(counted, name) for name in TOKENS},
    )
    time = sortable_time(counted.timestamp)
    ids = [utf8(name or "") for name in (first.session_id, counted.message_id, counted.request_id)]
    return (time, *ids, place((line, counted))), row


# ---- sessions ------------------------------------------------------------------


def sessions(files: Files, question: Question) -> list[Row]:
    """Return one row for each session with a line that is not blank, sorted by session id.

    since and until keep the sessions that have a record in that time or span it: `end` is not before since, and `start`
    is before until. The figures are those of the whole session. The other conditions are on the columns of the row.
    """
    lines = read_lines(files)
    by_session: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_session[line.session_id].append(line)
    responses = count_once(lines)
    found = []
    for session_id, own in sorted(by_session.items()):
        row = row_of_session(session_id, own, [one for one in responses if one["session_id"] == utf8(session_id)])
        no_times = Question(project=question.project, sessions=question.sessions)
        in_time = (question.since is None or (row["end"] is not None and row["end"] >= question.since)) and (
            question.until is None or (row["start"] is not None and row["start"] < question.until)
        )
        if question.since is not None and question.until is not None and question.since >= question.until:
            in_time = False
        if in_time and is_wanted(no_times, session_id, row["project"], None):
            found.append(row)
    return found


def row_of_session(session_id: str, lines: list[Line], responses: list[Row]) -> Row:
    """Return a session's row.

    project, host and parent are those of its first record that has one, git_branch and host_version those of the last,
    by (timestamp, path, offset); an empty text counts as missing. `path` is the file that is named after the session,
    otherwise the first file with a record of its main conversation, otherwise the first file; the least path of these.

    A record whose uuid stands in several lines is counted once in prompts, messages and errors. Several records of one
    message id and request id are one message, and all of a message id if one of them has no request id. `messages` are
    those of the main conversation with own words, prompts included. `tool_calls` are distinct ids of tool uses, and
    uses without an id. `errors` are records with `is_error`.
    `sub_agents` are distinct agent ids, in progress records too. models and tokens are those of the session's usage
    rows; models are sorted, missing tokens count 0, and a sum is at most 2^63 - 1.

    `bytes` are those of the session's lines with their newlines; broken lines without a record, like all lines that
    name no session, belong to the file's own session. Blank lines belong to no session.
    """
    ordered = sorted((line for line in lines if line.record), key=lambda line: line.place)

    def pick(name: str, last: bool = False) -> str | None:
        values = [getattr(line.record, name) for line in ordered if getattr(line.record, name)]
        return (values[-1] if last else values[0]) if values else None

    def known_by(line: Line) -> Any:
        return line.record.uuid or (line.path, line.offset)

    times = [line.record.timestamp for line in ordered if line.record.timestamp is not None]
    prompts = {known_by(line) for line in ordered if line.record.is_prompt}
    queued = queued_prompts(lines)
    talk = [line for line in ordered if line.record.has_own_words and not line.record.is_sidechain]
    unnamed = {line.record.message_id for line in talk if not line.record.request_id}

    def message_of(line: Line) -> Any:
        name = line.record.message_id
        return known_by(line) if not name else (name, "" if name in unnamed else line.record.request_id)

    uses = {
        (use.id,) if use.id is not None else (line.path, line.offset, number)
        for line in ordered
        for number, use in enumerate(line.record.tool_uses)
    }
    agents = {line.record.agent_id for line in ordered} | {one.agent_id for it in ordered for one in it.record.usages}
    agents |= {line.record.progress_agent_id for line in ordered}
    return make_row(
        "sessions",
        host=(ordered or lines)[0].head.host,
        session_id=session_id,
        parent=pick("parent"),
        path=min((rank_of_path(session_id, line), line.path) for line in lines)[1],
        project=pick("project"),
        git_branch=pick("git_branch", last=True),
        models=sorted({one["model"] for one in responses if one["model"]}),
        host_version=pick("host_version", last=True),
        start=min(times, default=None),
        end=max(times, default=None),
        prompts=len(prompts) + len(queued),
        messages=len({message_of(line) for line in talk}) + len(queued),
        tool_calls=len(uses),
        errors=len({known_by(line) for line in ordered if line.record.is_error}),
        sub_agents=len(agents - {None, ""}),
        bytes=sum(line.size for line in lines),
        broken_lines=sum(line.is_broken for line in lines),
        **{name: min(sum(one[name] or 0 for one in responses), MAX_INT64) for name in TOKENS},
    )


def queued_prompts(lines: list[Line]) -> set[Any]:
    """Return the prompts that only the queue has, by time and text: a `remove` takes them, without an attachment.

    A step without a text takes the oldest one of a person, otherwise the oldest one; with a text, the oldest one with
    this text. A text does not count if an attachment in its file has the same text.
    """
    found = set()
    for path in {line.path for line in lines}:
        steps = [line for line in lines if line.path == path and line.record and line.record.queue_step]
        given = {line.record.text for line in steps if line.record.queue_step == "given"}
        waiting: list[Line] = []
        for line in sorted(steps, key=lambda line: line.offset):
            if line.record.queue_step == "enqueue":
                waiting.append(line)
            elif line.record.queue_step != "given":
                fitting = [one for one in waiting if one.record.text == line.record.text]
                if not line.record.text:
                    fitting = [one for one in waiting if one.record.is_queued_by_person] or waiting
                for one in fitting[:1]:
                    waiting.remove(one)
                    is_prompt = one.record.is_queued_prompt and one.record.text not in given
                    if line.record.queue_step == "remove" and is_prompt:
                        found.add((one.record.timestamp or (path, one.offset), one.record.text))
    return found


def rank_of_path(session_id: str, line: Line) -> int:
    if line.head.stem == session_id:
        return 0
    record = line.record
    return 1 if record and not record.is_sidechain and not record.agent_id else 2


TABLES = {"matches": matches, "records": records, "tools": tools, "usage": usage, "sessions": sessions}
