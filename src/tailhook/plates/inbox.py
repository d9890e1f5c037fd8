"""The daemon's side of the spool: it stores in the database, once, each event that the hooks have appended.

The offset moves in the transaction of its events. A full file is renamed, and removed when all of it is stored and on
the disk. If a hook wrote into it at that moment, the hook writes the event again.
"""

import json
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.exc import DataError, SQLAlchemyError

from tailhook._core import fingerprint
from tailhook.hook.answer import describe
from tailhook.plates import paths
from tailhook.plates.db import Batch, Database, Moment, SpoolLine, SpoolOffset
from tailhook.plates.opening import first_line
from tailhook.plates.schemas import Report, RunEnd, scrub
from tailhook.plates.tables import is_row_error
from tailhook.stores.atomic import read_file, replace_file
from tailhook.stores.processes import pid_namespace
from tailhook.stores.spool import RECORD_START, RUN_ENDED, SPOOL_FILE

log = logging.getLogger("tailhook.plates")

LOOPBACK = ("127.0.0.1", "::1")  # addresses of this machine's own requests
INGEST_BYTES = 1 << 16  # that are read at a time; the memory of larger parts stays with the process
MAX_HEAD_BYTES = 4096  # of a file's first line; they identify the file
MAX_BATCH_LINES = 200  # of one transaction
MAX_ATTEMPTS = 3  # to store a line that the database refuses; not counted if it is unreachable, full or broken


class Origin(NamedTuple):
    """Where an event happened.

    fields: of the event, corrected by what the daemon knows.
    owner: the spool's id of the daemon that looks after its plate, or None.
    """

    fields: dict[str, Any]
    owner: str | None


class ParsedLine(NamedTuple):
    """A line of the spool.

    place: its position.
    entry: what the database stores of it.
    is_lost: whether the line holds no event although it should.
    run_end: the end of a wrapper's command, if the line reports one.
    """

    place: SpoolOffset
    entry: SpoolLine
    is_lost: bool = False
    run_end: RunEnd | None = None


class Inbox:
    """Reads the spool.

    folder: of the spool.
    notify_backlog: called with the number of waiting lines while they are more than one transaction takes, or cannot be
        stored, and with 0 after that.
    lost: how many lines were skipped because they are not events or the database refused them.
    failure: why new events could not be stored at the last try; "" if they could.
    stopping: set by another thread; then `ingest` returns before the next line.
    """

    def __init__(
        self, folder: Path, database: Database, notify_backlog: Callable[[int], None] = lambda lines: None
    ) -> None:
        self.folder = folder
        self.database = database
        self.notify_backlog = notify_backlog
        self.backlog = 0
        self.seen: tuple[int, int] | None = None  # what `look` returned before the last reading of the spool
        self.alone = 0  # lines to store one by one, because a transaction with them failed
        self.lost = 0
        self.failure = ""
        self.stopping = False
        self.failures: list[SpoolOffset] = []
        self.ends: dict[str, int] = {}  # up to which offset each file was stored when that was last known, by its key
        self.id = load_spool_id(folder)

    def files(self) -> list[Path]:
        """Return the spool's files, oldest first: the full ones, then the one to which hooks append."""
        aside = [path for path in self.folder.glob(f"{SPOOL_FILE}.*") if path.suffix[1:].isdecimal()]
        aside.sort(key=lambda path: int(path.suffix[1:]))
        return [*aside, self.folder / SPOOL_FILE]

    def count_waiting_bytes(self) -> int:
        """Return how many bytes are not stored yet."""
        return sum(max(0, file_size(path) - self.offset_of(path)) for path in self.files())

    def count_waiting_lines(self) -> int:
        """Return how many whole lines are not stored yet."""
        return sum(count_whole_lines(path, self.offset_of(path)) for path in self.files())

    def is_drained(self) -> bool:
        """Return whether every whole line is stored."""
        for path in self.files():
            try:
                fd = open_spool_file(path)
            except FileNotFoundError:
                continue
            try:
                if any(read_lines(fd, self.database.offset(self.key(fd)))):
                    return False
            finally:
                os.close(fd)
        return True

    def offset_of(self, path: Path) -> int:
        """Return the offset up to which a file is stored, as it was last known if the database cannot be read."""
        try:
            fd = open_spool_file(path)
        except FileNotFoundError:
            return 0
        try:
            key = self.key(fd)
        finally:
            os.close(fd)
        with suppress(SQLAlchemyError):
            self.ends[key] = self.database.offset(key)
        return self.ends.get(key, 0)

    def key(self, fd: int) -> str:
        """Return a key that identifies a file among the files of all spools, even after it was renamed.

        A later file may get the same inode, but its first line differs. Nothing is stored before that line is whole.
        """
        state = os.fstat(fd)
        first = os.pread(fd, MAX_HEAD_BYTES, 0).partition(b"\n")[0]
        return f"{self.id}:{state.st_dev}:{state.st_ino}:{fingerprint(first):016x}"

    def origin(self, said: Mapping[str, Any], peer: str | None = None) -> Origin:
        """Return where an event happened.

        An event is local if it names this host, or if it names no host and arrived over the spool, the Unix socket or
        loopback. Loopback may be the end of a tunnel, so the process id of such an event is dropped. The same is true
        for a process id of another PID namespace, such as a container's.

        said: the event's fields.
        peer: the address that sent it over TCP; None for the spool and the Unix socket.
        """
        here = paths.local_identity()
        is_near = peer is None or peer in LOOPBACK
        default = here if is_near else {"host": peer, "user": None}
        fields = {name: said.get(name) or value for name, value in default.items()}
        is_unsure = peer is not None and not said.get("host")
        if is_unsure or said.get("pid_namespace") not in (None, pid_namespace()):
            fields |= {"pid": None, "pid_started": None}
        return Origin(fields, self.id if is_near and fields == {**fields, **here} else None)

    def has_changed(self) -> bool:
        """Return whether the spool may hold new lines since it was read last.

        Returns True if that is unknown, for example without a free file descriptor; `ingest` then logs why.
        """
        try:
            return self.look() != self.seen or self.seen is None
        except OSError:
            return True

    def look(self) -> "tuple[int, int] | None":
        """Return inode and size of the file to which hooks append, or None if there are full files beside it."""
        *full, current = self.files()
        if full:
            return None
        try:
            state = current.stat()
        except FileNotFoundError:
            return 0, 0
        return state.st_ino, state.st_size

    def ingest(self) -> int:
        """Store every new event of the spool. Returns how many there were.

        If that fails, the reason is in `failure`, and the number of waiting lines is published.
        """
        try:
            taken = self.store_new_events()
        except Exception as error:
            self.failure = describe(error) if isinstance(error, OSError) else first_line(error)
            with suppress(OSError, SQLAlchemyError):
                self.show_backlog(self.count_waiting_lines())
            raise
        self.failure = ""
        return taken

    def store_new_events(self) -> int:
        """Store every new event of the spool. Returns how many there were."""
        taken = 0
        self.seen = self.look()
        for path in self.files():
            try:
                fd = open_spool_file(path)
            except FileNotFoundError:
                continue
            try:
                taken += self.ingest_file(fd)
                if self.stopping:
                    return taken
                if path.name != SPOOL_FILE and self.database.checkpoint():
                    path.unlink()
                    self.database.forget_file(self.key(fd))
                    self.ends.pop(self.key(fd), None)
            finally:
                os.close(fd)
        self.show_backlog(0)
        return taken

    def ingest_file(self, fd: int) -> int:
        """Store the events of one file from its last offset on. Returns how many there were."""
        key = self.key(fd)
        end = self.database.offset(key)
        if end > os.fstat(fd).st_size:
            end = 0  # it was emptied
        taken = 0
        lines = (self.parse(line, SpoolOffset(key, end)) for line, end in read_lines(fd, end))
        waiting: list[ParsedLine] = []
        while not self.stopping:
            waiting += islice(lines, max(0, (1 if self.alone else MAX_BATCH_LINES) - len(waiting)))
            if not waiting:
                break
            done, new = self.store(waiting)
            taken += new
            if done:
                self.ends[key] = waiting[done - 1].place.end
            if done == MAX_BATCH_LINES or done < len(waiting):
                self.count_backlog(done)
            del waiting[:done]
        return taken

    def parse(self, line: bytes, place: SpoolOffset) -> "ParsedLine":
        """Parse a line of the spool."""
        fields = parse_line(line)
        try:
            if fields.get("event_type") == RUN_ENDED:
                return ParsedLine(place, SpoolLine(place), run_end=RunEnd.model_validate(fields))
            origin = self.origin(fields)
            return ParsedLine(place, SpoolLine(place, Report.model_validate({**fields, **origin.fields}), origin.owner))
        except ValueError:
            return ParsedLine(place, SpoolLine(place), is_lost=bool(line.strip()))

    def store(self, lines: "Sequence[ParsedLine]") -> Batch:
        """Store the first of some lines in one transaction. After a failure they are stored one by one."""
        batch = list(takewhile(lambda line: line.run_end is None, lines))
        if self.alone or len(batch) < 2:
            stored = self.store_alone(lines[0])
            self.alone = max(0, self.alone - 1)
            return stored
        try:
            stored = self.database.record_lines([line.entry for line in batch], lambda: self.stopping)
        except Exception:  # when the failing line is alone, its error is raised
            self.alone = len(batch)
            return Batch(0, 0)
        self.lost += sum(line.is_lost for line in batch[: stored.lines])
        return stored

    def store_alone(self, line: "ParsedLine") -> Batch:
        """Store one line. If the database refuses it, it is tried again, and skipped after MAX_ATTEMPTS."""
        try:
            if line.run_end is None:
                stored = self.database.record_lines([line.entry])
                self.lost += line.is_lost
                return stored
            self.database.close_sessions(line.run_end.run_id, at=Moment(line.run_end.ts, line.run_end.mono))
        except (ValueError, DataError):
            self.lost += 1
        except Exception as error:
            is_the_databases = isinstance(error, SQLAlchemyError) and not is_row_error(error)
            if is_the_databases or not self.count_failure(line.place):
                raise
            log.warning("the spool: an event that the database refuses is skipped: %s", error)
            self.lost += 1
        self.database.move_offset(line.place)
        return Batch(1, 0)

    def count_backlog(self, stored: int) -> None:
        """Publish the number of waiting lines, if they are more than one transaction takes.

        stored: how many lines were stored since the last call.
        """
        left = self.backlog - stored
        if left <= 0:
            left = self.count_waiting_lines()
        if self.backlog or left > MAX_BATCH_LINES:
            self.show_backlog(left)

    def show_backlog(self, lines: int) -> None:
        """Publish the number of lines that wait, if it changed."""
        if lines != self.backlog:
            self.backlog = lines
            self.notify_backlog(lines)

    def count_failure(self, place: SpoolOffset) -> bool:
        """Count a failure of the line at that place. Return whether it is the last of MAX_ATTEMPTS in a row."""
        self.failures = [*(failed for failed in self.failures if failed == place), place]
        return len(self.failures) >= MAX_ATTEMPTS


def open_spool_file(path: Path) -> int:
    """Open a file of the spool and return its descriptor. Raises OSError, also for a symbolic link."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the JSON object in a line, or {} if there is none.

    If an object was cut off, the next one follows it on the same line and is returned.
    """
    for start in dict.fromkeys((0, max(0, line.rfind(RECORD_START)))):
        try:
            found = scrub(json.loads(line[start:]))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def read_lines(fd: int, start: int) -> Iterator[tuple[bytes, int]]:
    """Yield the whole lines of a file from an offset on, each with the offset after it."""
    parts: list[bytes] = []  # of the line whose end is not read yet
    at = end = start
    while chunk := os.pread(fd, INGEST_BYTES, at):
        at += len(chunk)
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = b"".join((*parts, line))
            parts.clear()
            end += len(whole) + 1
            yield whole, end
        parts.append(rest)


def count_whole_lines(path: Path, start: int) -> int:
    """Return how many whole lines a file of the spool has from an offset on."""
    try:
        fd = open_spool_file(path)
    except FileNotFoundError:
        return 0
    try:
        lines = 0
        while chunk := os.pread(fd, INGEST_BYTES, start):
            lines += chunk.count(b"\n")
            start += len(chunk)
        return lines
    finally:
        os.close(fd)


def load_spool_id(folder: Path) -> str:
    """Return the spool's id in the database, which several machines may share; make it if it is missing."""
    path = str(folder / f"{SPOOL_FILE}-id")
    try:
        return read_file(path).decode()
    except FileNotFoundError:
        made = secrets.token_hex(8)
        replace_file(path, made.encode())
        return made


def file_size(path: Path) -> int:
    """Return a file's size in bytes, or 0 if it is missing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
