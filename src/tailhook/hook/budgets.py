"""How many tokens a session and its sub-agents have used since a loop began. A stop reads only what is new."""

import posix

from tailhook._core import (
    ResponseCounter,
    ScanProgram,
    fingerprint,
    reverse_lines,
    scan_range,
    unix_time,
)
from tailhook.hook.payload import MAX_RECORD_BYTES
from tailhook.hook.session_files import agent_transcripts, first_time, offset_before
from tailhook.machines.budgets import Spent, parse_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hook.event import HookEvent

# By the columns before `output_tokens` the core knows the records of one response, as in a scan. The others are the
# tokens that count.
RESPONSE_COLUMNS = (
    *("path", "offset", "timestamp", "session_id", "message_id", "request_id", "uuid", "advisor", "copies"),
    *("output_tokens", "input_tokens", "cache_creation_tokens"),
)
PROGRAM = ScanProgram(table="usage", columns=RESPONSE_COLUMNS)  # a resident worker makes it once
MAX_AGENT_FILES = 10_000  # to look at
MAX_NEW_BYTES = 64 << 20  # of all transcripts, at one stop
# Records of one transcript may be out of order by so much. Older ones behind a saved place are copies: a compaction, a
# resumed and a forked session write old records again, with their times.
LATE_S = 10
WRITE_LAG_S = 2.0  # a host may write a record so much later than its time


class Reading:
    """The transcripts of one session, read up to now.

    spent: what was counted before; `count` adds to it.
    since: the time from which the responses in transcripts without a saved place count (Unix seconds).
    max_bytes: to read of all transcripts.
    """

    def __init__(self, spent: Spent, since: float, now: float, max_bytes: int) -> None:
        self.spent = spent
        self.since = since
        self.now = now
        self.places = spent.places
        self.max_bytes = self.bytes_left = max_bytes
        self.counter = ResponseCounter(RESPONSE_COLUMNS)

    def read(self, path: str) -> bool:
        """Read what is new in a transcript; return whether it can be read. What is over the limit is read later."""
        try:
            fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
        except (OSError, ValueError):
            return False
        try:
            facts = posix.fstat(fd)
            if facts.st_mode & 0o170000 != 0o100000:
                return False
            name, size = str(facts.st_ino), facts.st_size
            start, newest = self.places.pop(name, (-1, 0))
            if not 0 <= start <= size:  # new, or written again from its beginning
                start, newest = self.find_start(fd, size), -1
            self.places[name] = start, newest
            end = min(size, start + self.bytes_left)
            self.bytes_left -= end - start
            if start < end:
                for batch in scan_range(fd, start, end, PROGRAM, path=name):
                    self.counter.add(batch)
            self.places[name] = find_end(fd, start, end) if end == size else end, newest
        except (OSError, ValueError):
            return False
        finally:
            posix.close(fd)
        return True

    def find_start(self, fd: int, size: int) -> int:
        """Return where to read an open transcript without a saved place: before the first response that counts."""
        start = offset_before(fd, size, 0, self.since)
        if start is None:
            start = 0 if first_time(fd, 0, size) is not None else max(0, size - self.max_bytes)
        return start

    def count(self) -> Spent:
        """Count the responses that were read, and save the places."""
        newest = {name: time for name, (_, time) in self.places.items()}
        for batch in self.counter.rows(RESPONSE_COLUMNS):
            for path, offset, time, _, message_id, request_id, uuid, advisor, _, *counts in zip(
                *batch.columns(times_as_text=True), strict=True
            ):
                at, last = unix_time(time) if time else None, self.places[path][1]
                if not self.is_new(at, last):
                    continue
                if at is not None:
                    newest[path] = max(newest[path], round(min(at, self.now) * 1000))
                name = (message_id, request_id) if message_id else request_id or uuid or (path, offset)
                response = f"{fingerprint(repr((name, advisor)).encode('utf-8', 'surrogatepass')):016x}"[:12]
                output, *others = (number or 0 for number in counts)
                self.spent.add(response, output, output + sum(others))
        since_ms = round(self.since * 1000)
        self.spent.places = {
            name: (offset, newest[name] if newest[name] >= 0 else since_ms) for name, (offset, _) in self.places.items()
        }
        if self.bytes_left:  # otherwise a transcript may be unread, and is found by the time of its change
            self.spent.until = self.now
        return self.spent

    def is_new(self, at: float | None, last: int) -> bool:
        """Return whether a record behind a transcript's place is not a copy of an older one.

        at: its time; None if it has none.
        last: the newest time before that place (milliseconds); -1 if the transcript has no saved place.
        """
        if last < 0:
            return at is not None and at >= self.since
        return at is None or last / 1000 > self.now or at >= last / 1000 - LATE_S


def read_spent(event: "HookEvent", fields: "Mapping[str, Any]", max_bytes: int = MAX_NEW_BYTES) -> str:
    """Return the mark of the tokens that a session has used since a loop began; "" if no transcript can be read.

    Reads what is new in the session's transcript and in those of its sub-agents.

    fields: of the loop.
    max_bytes: to read; the rest is counted at the next stop.
    """
    path, saved = event.transcript_path(), parse_mark(fields.get("spent"))
    if saved is None:
        began = fields.get("began")
        began_at = unix_time(began) if isinstance(began, str) else None
        since = event.now if began_at is None else began_at
        saved = Spent(since)
    else:
        since = min(saved.until, event.now) - WRITE_LAG_S
    reading = Reading(saved, since, event.now, max_bytes)
    is_read = reading.read(path)
    own = list(reading.places)[-1:]
    for _, agent in sorted(new_sub_agents(path, since)):
        is_read = reading.read(agent) or is_read
    for name in own:  # the last ones are kept
        reading.places[name] = reading.places.pop(name)
    return reading.count().mark() if is_read else ""


def new_sub_agents(path: str, since: float) -> "list[tuple[float, str]]":
    """Return the transcripts of a session's sub-agents that have changed since a time: when, and the path.

    path: of the session's own transcript.
    """
    found = []
    try:
        for _, one in zip(range(MAX_AGENT_FILES), agent_transcripts(path), strict=False):
            if one[0] >= since:
                found.append(one)
    except (OSError, ValueError):
        pass  # a folder cannot be read: what was found before counts
    return found


def find_end(fd: int, start: int, end: int) -> int:
    """Return where the complete lines in a part of an open transcript end: the rest is read again at the next stop."""
    if start < end and posix.pread(fd, 1, end - 1) != b"\n":
        offset, line = next(reverse_lines(fd, start, end, MAX_RECORD_BYTES), (start, b""))
        end = offset if offset + len(line) >= end else offset + len(line) + 1
    return end
