"""What no hook told: transcripts that went on, and processes that are gone."""

import errno
import io
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Collection
from datetime import datetime
from itertools import islice
from pathlib import Path

import psutil
from sqlalchemy.exc import SQLAlchemyError

from tailhook._core import last_message, parse_record, reverse_lines
from tailhook.hook.answer import plain
from tailhook.hook.plates import CLOCK_BOOTTIME
from tailhook.hook.plates import process_start as ticks_at_start
from tailhook.hook.process import FARTHEST, LONGEST_LINE
from tailhook.machines.plates import EXAMINED, HEALTH_CHECK_INTERVAL, Event, Kind, Look, Status, examine
from tailhook.plates.db import Database, Moment
from tailhook.plates.tables import Plate, is_of_a_row
from tailhook.stores.atomic import stamp_of
from tailhook.transcript import Record

log = logging.getLogger("tailhook.plates")

SLEPT = 30  # seconds between two checks from which on the machine is taken to have slept
WAKING = 10  # seconds after that in which transcripts and hooks may catch up
INTERRUPTED = "[Request interrupted by user"
OUTLIVED = 5  # seconds after an event in which its hook has ended, and so has a shell around it
RECORDS_BACK = 50  # records from the transcript's end among which the session's own is looked for
MAX_DECODED_BYTES = 1 << 20  # of a record whose members are looked at: they take up to 30 times its size
MAX_SHOWN = 100_000  # characters of the agent's last words
MAX_LETTER_BYTES = 4  # in UTF-8

Stamp = tuple[int, int, int]  # see `stamp_of`


class Health:
    """Looks at every open plate that is this daemon's to look after, as often as `check` is called: every 10 s.

    keeper: the daemon's, as plates have it.  is_drained: whether all that hooks told is taken.  clock: Unix seconds.
    uptime: seconds since the machine's start, which nobody sets.  look: what a transcript shows, None where there is
    none.  started: when a process started, None where it is gone.
    """

    def __init__(
        self,
        database: Database,
        keeper: str,
        is_drained: Callable[[], bool],
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = lambda: time.clock_gettime(CLOCK_BOOTTIME),
        look: "Callable[[str], Look | None] | None" = None,
        started: "Callable[[int], float | None] | None" = None,
    ) -> None:
        self.database = database
        self.keeper = keeper
        self.is_drained = is_drained
        self.clock = clock
        self.uptime = uptime
        self.looks = Looks()
        self.look = look or self.looks
        self.started = started or process_start
        self.last = uptime()
        self.first: dict[tuple[str, int], Look] = {}  # of the plates as they are, as the first check saw them
        self.resting = 0.0  # until that uptime nothing is judged
        self.faults: dict[str, str] = {}  # of the sessions that could not be looked at, as they were logged

    def check(self) -> int:
        """Look once; returns how many plates it changed."""
        now = self.uptime()
        if now - self.last > SLEPT:
            self.resting = now + WAKING - HEALTH_CHECK_INTERVAL / 2  # the check after this one is not to be missed
        self.last = now
        if now < self.resting:
            return 0
        changed = 0
        kept = self.database.kept_by(self.keeper)
        self.first = {key: self.first[key] for plate in kept if (key := key_of(plate)) in self.first}
        self.looks.forget_others({plate["transcript_path"] for plate in kept})
        self.faults = {plate["session_id"]: self.faults.get(plate["session_id"], "") for plate in kept}
        for plate in kept:
            try:
                changed += self.examine(plate)
            except SQLAlchemyError as error:
                if not is_of_a_row(error):
                    raise
                self.log_once(plate, error)
            except Exception as error:  # MemoryError and RecursionError too: the other sessions are looked at
                self.log_once(plate, error)
        return changed

    def examine(self, plate: Plate) -> bool:
        """Look at one plate; returns whether that changed it."""
        at = Moment(int(self.clock() * 1000), int(self.uptime() * 1000))  # what happens from now on is newer
        event = self.event_of(plate, self.clock())
        return event is not None and self.database.apply(plate, event, at)

    def log_once(self, plate: Plate, error: Exception) -> None:
        """Log that a plate cannot be looked at, unless the last failure was the same."""
        fault = plain(repr(error))
        if self.faults[plate["session_id"]] != fault:
            self.faults[plate["session_id"]] = fault
            log.warning("the session %s cannot be looked at: %s", plain(plate["session_id"]), fault)

    def event_of(self, plate: Plate, now: float) -> Event | None:
        """What has become of a plate."""
        if self.is_gone(plate) and self.is_drained():  # who goes on in another process may have told so already
            return Event(Kind.SESSION_END)
        status = Status(plate["status"])
        if status not in EXAMINED or not plate["transcript_path"]:
            return None
        look = self.look(plate["transcript_path"])
        if look is None:
            return None
        return examine(status, plate["event_ts"] / 1000, look, now, self.first.setdefault(key_of(plate), look))

    def is_gone(self, plate: Plate) -> bool:
        """Whether the process has ended, or its number belongs to another one.

        One that is a guess, or of which no start is known, has to be seen first; a guess once it has outlived its hook.
        """
        if plate["pid"] is None:
            return False
        started = self.started(plate["pid"])
        if plate["pid_is_guess"] and self.clock() - plate["event_ts"] / 1000 < OUTLIVED:
            return False
        is_another = plate["pid_started"] not in (None, started)
        if not is_another and started is not None and (plate["pid_is_guess"] or plate["pid_started"] is None):
            self.database.seen(plate, started)
        return is_another and not plate["pid_is_guess"]


def key_of(plate: Plate) -> tuple[str, int]:
    """A plate as it is, until its next event."""
    return plate["session_id"], plate["version"]


class Looks:
    """What transcripts show. Each is read again only after its size, its time or its inode has changed."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[Stamp, Look | None]] = {}

    def __call__(self, path: str) -> Look | None:
        """Return what a transcript shows, None if it cannot be read."""
        try:
            stamp = stamp_of(Path(path).stat())
        except (OSError, ValueError):
            return None
        stamp_then, look = self.seen.get(path, (None, None))
        if stamp != stamp_then:
            self.seen[path] = stamp, None  # if it cannot be looked at, not before it has changed
            look = look_at(path)
            self.seen[path] = stamp, look
        return look

    def forget_others(self, paths: Collection[str]) -> None:
        """Forget the transcripts that are not among the paths."""
        self.seen = {path: seen for path, seen in self.seen.items() if path in paths}


def look_at(path: str) -> Look | None:
    """Return what a transcript shows, None if it cannot be read. Reads as far back as a hook does."""
    try:
        with opened(path) as file:
            facts = os.fstat(file.fileno())
            lines = reverse_lines(file, max(0, facts.st_size - FARTHEST), None, LONGEST_LINE)
            records = ((line, record) for at, line in lines if (record := parse_record(line, at)))
            for line, record in islice(records, RECORDS_BACK):
                own = record.role in ("assistant", "user", "human") and not (record.is_meta or record.is_sidechain)
                if own and not record.is_api_error and (at := seconds(record.timestamp)) is not None:
                    is_over = len(line) <= MAX_DECODED_BYTES and ends_turn(record)
                    return Look(facts.st_mtime, at, record.text.startswith(INTERRUPTED), is_over)
    except (OSError, ValueError):
        return None
    return Look(facts.st_mtime)


def last_words(path: str) -> str | None:
    """Return the beginning of what the agent said last, None if that is not known. Reads as far back as a hook does."""
    try:
        with opened(path) as file:
            _, texts = last_message(file, FARTHEST, LONGEST_LINE)
    except (OSError, ValueError):
        return None
    words = b"\n".join(text for text, _ in texts)[: MAX_SHOWN * MAX_LETTER_BYTES].decode("utf-8", "replace")[:MAX_SHOWN]
    return "".join(letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in words) or None


def opened(path: str) -> io.FileIO:
    """A transcript's file; OSError for what is none, such as a FIFO that would keep its reader waiting."""
    file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "no regular file", path)
    return file


def ends_turn(record: Record) -> bool:
    """Whether the message says that the agent is done with its turn."""
    message = record.json().get("message")
    return record.role == "assistant" and isinstance(message, dict) and message.get("stop_reason") == "end_turn"


def seconds(stamp: str | None) -> float | None:
    """Unix seconds of an ISO 8601 time, None for what is none."""
    try:
        return datetime.fromisoformat((stamp or "").replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def process_start(pid: int) -> float | None:
    """When the process started: on Linux as the hooks tell it, elsewhere in Unix seconds; None where it is gone.

    psutil reckons Linux's times from the machine's start by a clock that may be set, so they differ from run to run.
    """
    if sys.platform == "linux":
        return ticks_at_start(pid) or None
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None
