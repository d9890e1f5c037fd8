"""What the end of a transcript shows: whether a turn is over, and which awaited calls have ended."""

import os
import re
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tailhook._core import parse_record, reverse_lines, unix_time
from tailhook.hook.event import MAX_TRANSCRIPT_BYTES
from tailhook.hook.payload import MAX_RECORD_BYTES, MAX_RECORDS
from tailhook.machines.plates import Look
from tailhook.plates.transcript_ends import open_transcript
from tailhook.stores.atomic import stamp_of
from tailhook.transcripts.transcript import Record

INTERRUPTED = "[Request interrupted by user"
MAX_NEWEST_RECORDS = 50  # from the transcript's end, to search for the session's newest record
MAX_RECORDS_TO_CALLS = 500  # the same, but the session waits for tools: their calls are searched too
MAX_WATCHED = 200  # of each kind (transcripts, hosts' files, processes) are looked at each second
MAX_DECODED_BYTES = 1 << 20  # of a record that is decoded: it takes up to 30 times its size
TURN_START, TURN_END, TURN_ABORTED = "task_started", "task_complete", "turn_aborted"  # of Codex
OF_COPILOT = {"assistant.turn_start": TURN_START, "session.error": TURN_END, "abort": TURN_ABORTED}
HOOKS_OF_COPILOT = "hook.start", "hook.end"  # one of them is the hook that reports a wait, so they do not answer it
TOOL_RESULT = re.compile(rb'"tool_use_id"\s*:\s*"([^"\\]*)"')  # inside a JSON string the quotes would be escaped

Stamp = tuple[int, int, int]  # see `stamp_of`


class Since(NamedTuple):
    """The event after which a transcript is examined.

    at: when the newest event happened, in Unix seconds.
    size: bytes of the transcript at that event; None if the hook did not report it.
    calls: ids of the tools that the session waits for.
    is_agents: whether the transcript is a sub-agent's own.
    """

    at: float = 0.0
    size: int | None = None
    calls: frozenset[str] = frozenset()
    is_agents: bool = False


ANY_TIME = Since()
OF_AGENT = Since(is_agents=True)


class LookCache:
    """Examines transcripts. Each is read again only if its size, its time or its inode has changed."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, Since], tuple[Stamp | None, Look | None]] = {}
        self.asked: set[tuple[str, Since]] = set()

    def __call__(self, path: str, since: Since = ANY_TIME) -> Look | None:
        """Return what a transcript shows, or None if it cannot be read."""
        key = path, since
        self.asked.add(key)
        stamp = stamp_of_path(path)
        stamp_then, look = self.seen.get(key, (None, None))
        if stamp != stamp_then or key not in self.seen:
            self.seen[key] = stamp, None  # if examining it fails, it is not read again before it changes
            look = look_at(path, since) if stamp else None
            self.seen[key] = stamp, look
        return look

    def have_changed(self) -> bool:
        """Return whether one of the transcripts has changed since it was examined; of many, only some are compared."""
        return any(stamp_of_path(path) != stamp for (path, _), (stamp, _) in islice(self.seen.items(), MAX_WATCHED))

    def forget_others(self) -> None:
        """Forget the transcripts that were not asked for since the last call."""
        self.seen = {key: seen for key, seen in self.seen.items() if key in self.asked}
        self.asked = set()


def stamp_of_path(path: str) -> Stamp | None:
    """Return the size, time and inode of a file, or None if it is missing."""
    try:
        return stamp_of(Path(path).stat())
    except (OSError, ValueError):
        return None


def look_at(path: str, since: Since = ANY_TIME) -> Look | None:
    """Return what a transcript shows, or None if it cannot be read.

    Reads records from the transcript's end back to the event, to the newest record of the session itself, and to the
    awaited calls: at most MAX_NEWEST_RECORDS, or MAX_RECORDS_TO_CALLS if there are such calls.
    Reads no farther back than a hook does.
    """
    builder = LookBuilder(since)
    try:
        with open_transcript(path) as file:
            facts = os.fstat(file.fileno())
            lines = reverse_lines(file, max(0, facts.st_size - MAX_TRANSCRIPT_BYTES), None, MAX_RECORD_BYTES)
            records = ((line, record) for at, line in islice(lines, MAX_RECORDS) if (record := parse_record(line, at)))
            for line, record in islice(records, MAX_RECORDS_TO_CALLS if since.calls else MAX_NEWEST_RECORDS):
                builder.add_record(line, record)
                if builder.is_complete:
                    break
    except (OSError, ValueError):
        return None
    return builder.build(facts.st_mtime)


class LookBuilder:
    """Builds a Look from the records of a transcript, which are added newest first."""

    def __init__(self, since: Since) -> None:
        self.since = since
        self.own: Record | None = None  # the session's newest record that has a time
        self.has_ended = False  # whether that record ends the turn
        self.turn: TurnEvent | None = None  # the newest one
        self.newest: float | None = None
        self.is_timed = False  # whether every record has a time, so that the file's own time does not count
        self.has_grown = False
        self.others = self.rest = 0  # records after the event, of sub-agents and other tools; and all others after it
        self.is_before = False  # whether the records are older than the event now
        self.later: set[str] = set()  # the agent's messages that were seen
        self.is_answered = False  # whether a person's message was seen
        self.results: set[str] = set()  # ids of the tools whose results were seen
        self.pending: set[str] = set()
        self.ended: set[str] = set()

    @property
    def is_complete(self) -> bool:
        """Whether reading further back is pointless: everything looked for was found."""
        return self.own is not None and self.is_before and self.pending | self.ended == self.since.calls

    def add_record(self, line: bytes, record: Record) -> None:
        """Add the next older record.

        line: the record's bytes.
        """
        if record.type in HOOKS_OF_COPILOT:
            self.is_timed = True
            return
        if self.turn is None and len(line) <= MAX_DECODED_BYTES:
            self.turn = turn_event(record)
        at = parse_timestamp(record.timestamp)
        if self.since.size is None:
            self.is_before = self.is_before or (at is not None and at <= self.since.at)
        else:
            self.is_before = record.offset < self.since.size
        results = results_in(line, record) if self.since.calls else frozenset()
        is_others = record.is_sidechain != self.since.is_agents or bool(results and not results & self.since.calls)
        is_words = record.role in ("assistant", "user", "human") and not record.is_meta
        if not self.is_before:
            self.others += is_others
            self.rest += not is_others
            self.has_grown |= at is None and is_words and not is_others and self.since.size is not None
        if at is not None and not is_others:
            self.newest = at if self.newest is None else max(self.newest, at)
        if not is_words or record.is_sidechain != self.since.is_agents:
            return
        if self.own is None and at is not None and not record.is_api_error:
            self.own = record
            self.has_ended = len(line) <= MAX_DECODED_BYTES and ends_turn(record)
        self.results |= results
        if record.role == "assistant":
            name = record.message_id and f"{record.message_id} {record.request_id}"
            message = name or f"record at {record.offset}"
            self.find_calls(record, message)
            self.later.add(message)
        elif not results and not record.is_compact_summary:
            self.is_answered = True

    def find_calls(self, record: Record, message: str) -> None:
        """Take note of the calls in a record of the agent.

        A call has ended if its result, a person's message or another message of the agent follows.
        """
        for call in self.since.calls.intersection(tool.id for tool in record.tools if tool.id):
            is_over = call in self.results or self.is_answered or bool(self.later - {message})
            (self.ended if is_over else self.pending).add(call)

    def build(self, changed: float) -> Look:
        """Return what the records show.

        changed: when the transcript was last written, in Unix seconds.
        """
        own, turn = self.own, self.turn or NO_TURN
        return Look(
            self.newest if self.is_timed and self.newest is not None else changed,
            turn.at if own is None else parse_timestamp(own.timestamp),
            turn.kind == TURN_ABORTED or (own is not None and own.text.startswith(INTERRUPTED)),
            self.has_ended or turn.kind in (TURN_END, TURN_ABORTED),
            self.newest,
            self.has_grown,
            self.others > 0 and not self.rest,
            frozenset(self.pending),
            frozenset(self.ended),
            turn.has_error,
        )


class TurnEvent(NamedTuple):
    """An event about a turn in a transcript of Codex or Copilot.

    kind: TURN_START, TURN_END or TURN_ABORTED.
    at: in Unix seconds.
    has_error: whether an error of the API has ended the turn (Codex 0.171.0; 0.142.3 does not record that).
    """

    kind: str
    at: float | None
    has_error: bool


NO_TURN = TurnEvent("", None, False)


def results_in(line: bytes, record: Record) -> frozenset[str]:
    """Return the ids of the tools whose results a record holds.

    line: the record's bytes.
    """
    if record.role != "user":
        return frozenset()
    if len(line) > MAX_DECODED_BYTES:
        return frozenset(name.decode("utf-8", "replace") for name in TOOL_RESULT.findall(line))
    content = message_of(record).get("content")
    blocks = content if isinstance(content, list) else ()
    return frozenset(
        block["tool_use_id"]
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)
    )


def ends_turn(record: Record) -> bool:
    """Return whether the message ends the agent's turn."""
    return record.role == "assistant" and message_of(record).get("stop_reason") == "end_turn"


def turn_event(record: Record) -> TurnEvent | None:
    """Return an event about a turn of Codex (0.171.0) or Copilot (1.0.102), or None for any other record."""
    if kind := OF_COPILOT.get(record.type or ""):  # a call that it repeats leaves no error there
        return TurnEvent(kind, parse_timestamp(record.timestamp), kind == TURN_END)
    if record.type != "event_msg":
        return None
    try:
        item = record.json().get("payload")
    except ValueError:
        return None
    if not isinstance(item, dict) or item.get("type") not in (TURN_START, TURN_END, TURN_ABORTED):
        return None
    return TurnEvent(item["type"], parse_timestamp(record.timestamp), isinstance(item.get("error"), dict))


def message_of(record: Record) -> dict[str, Any]:
    """Return the record's message, or {} if it cannot be read."""
    try:
        message = record.json().get("message")
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def parse_timestamp(stamp: str | None) -> float | None:
    """Return the Unix seconds of an ISO 8601 time, or None if it is not one."""
    return unix_time(stamp or "")
