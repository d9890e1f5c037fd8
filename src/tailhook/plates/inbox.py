"""The daemon's side of the spool: what the hooks appended, taken into the database, each event once.

The offset moves in an event's own transaction. A file is removed when it has got another name (it is full) and all of
it is taken and on the disk; what a hook wrote into it at that moment, it writes again.
"""

import json
import logging
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.exc import DataError, SQLAlchemyError

from tailhook._core import fingerprint
from tailhook.plates import paths
from tailhook.plates.db import Database, Moment, Place
from tailhook.plates.report import Report, RunEnd, scrubbed
from tailhook.plates.tables import is_of_a_row
from tailhook.stores.atomic import read_file, replace_file
from tailhook.stores.processes import pid_namespace
from tailhook.stores.spool import RECORD_START, RUN_ENDED, SPOOL_FILE

log = logging.getLogger("tailhook.plates")

LOOPBACK = ("127.0.0.1", "::1")  # whence this machine's own requests come
CHUNK = 1 << 20  # bytes that are read at a time
HEAD = 4096  # bytes of a file's first line that tell it from another one
ATTEMPTS = 3  # at a line that the database refuses, before it is passed over; not where it is away, full or broken


class Origin(NamedTuple):
    """Where an event happened.

    fields: of it, what is known better.  keeper: the id of the spool whose daemon looks after its plate, None for none.
    """

    fields: dict[str, Any]
    spool_id: str | None


class Inbox:
    """Takes events out of the spool.

    folder: where the spool is.  lost: how many lines were passed over, as they were no events or the database refused
    them.  stopping: set in another thread, so that `take` returns before the next line.
    """

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        self.database = database
        self.lost = 0
        self.stopping = False
        self.failures: list[Place] = []  # the place of the line that could not be taken, as often as that was tried
        self.id = spool_id(folder)

    def files(self) -> list[Path]:
        """The spool's files, oldest first: those that were full, then the one that hooks append to."""
        aside = [path for path in self.folder.glob(f"{SPOOL_FILE}.*") if path.suffix[1:].isdecimal()]
        aside.sort(key=lambda path: int(path.suffix[1:]))
        return [*aside, self.folder / SPOOL_FILE]

    def waiting(self) -> int:
        """How many bytes are not taken yet."""
        return sum(max(0, size_of(path) - self.offset(path)) for path in self.files())

    def is_drained(self) -> bool:
        """Whether no whole line waits."""
        for path in self.files():
            try:
                fd = open_file(path)
            except FileNotFoundError:
                continue
            try:
                if any(lines(fd, self.database.offset(self.key(fd)))):
                    return False
            finally:
                os.close(fd)
        return True

    def offset(self, path: Path) -> int:
        """How far the file is taken."""
        try:
            fd = open_file(path)
        except FileNotFoundError:
            return 0
        try:
            return self.database.offset(self.key(fd))
        finally:
            os.close(fd)

    def key(self, fd: int) -> str:
        """What stays of a file when it gets another name; different from that of any other spool's.

        Its inode may be a later file's: that one begins with another line. Until the line is whole, nothing is taken.
        """
        state = os.fstat(fd)
        first = os.pread(fd, HEAD, 0).partition(b"\n")[0]
        return f"{self.id}:{state.st_dev}:{state.st_ino}:{fingerprint(first):016x}"

    def origin(self, said: Mapping[str, Any], peer: str | None = None) -> Origin:
        """Where an event happened.

        said: its fields.  peer: the address that sent it over TCP, None for the spool and the Unix socket.

        This machine's are the events that say so, and of those that name no host the ones from this machine, which may
        have come through a tunnel: their process is nobody's. So is one of another namespace, a container's.
        """
        here = paths.local_identity()
        is_near = peer is None or peer in LOOPBACK
        default = here if is_near else {"host": peer, "user": None}
        fields = {name: said.get(name) or value for name, value in default.items()}
        is_unsure = peer is not None and not said.get("host")
        if is_unsure or said.get("pid_namespace") not in (None, pid_namespace()):
            fields |= {"pid": None, "pid_started": None}
        return Origin(fields, self.id if is_near and fields == {**fields, **here} else None)

    def take(self) -> int:
        """Take all that is there; returns how many events came."""
        taken = 0
        for path in self.files():
            try:
                fd = open_file(path)
            except FileNotFoundError:
                continue
            try:
                taken += self.take_file(fd)
                if self.stopping:
                    return taken
                if path.name != SPOOL_FILE and self.database.settle():
                    path.unlink()
                    self.database.forget_file(self.key(fd))
            finally:
                os.close(fd)
        return taken

    def take_file(self, fd: int) -> int:
        """Take the rest of one file; returns how many events came."""
        key = self.key(fd)
        end = self.database.offset(key)
        if end > os.fstat(fd).st_size:
            end = 0  # it was emptied
        taken = 0
        for line, end in lines(fd, end):  # noqa: B020 - read once
            if self.stopping:
                break
            place = Place(key, end)
            fields = parse(line)
            try:
                if fields.get("event_type") == RUN_ENDED:
                    end_of_run = RunEnd.model_validate(fields)
                    self.database.stopped(end_of_run.run_id, at=Moment(end_of_run.ts, end_of_run.mono))
                else:
                    origin = self.origin(fields)
                    report = Report.model_validate({**fields, **origin.fields})
                    taken += self.database.record(report, place, origin.spool_id)
                    continue
            except (ValueError, DataError):
                self.lost += bool(line.strip())
            except Exception as error:
                is_the_databases = isinstance(error, SQLAlchemyError) and not is_of_a_row(error)
                if is_the_databases or not self.is_hopeless(place):
                    raise
                log.warning("the spool: an event that the database does not take is passed over: %s", error)
                self.lost += 1
            self.database.move_offset(place)
        return taken

    def is_hopeless(self, place: Place) -> bool:
        """Return whether the line at that place failed often enough in a row."""
        self.failures = [*(failed for failed in self.failures if failed == place), place]
        return len(self.failures) >= ATTEMPTS


def open_file(path: Path) -> int:
    """A descriptor of a spool's file. Raises OSError, for a link too."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def parse(line: bytes) -> dict[str, Any]:
    """The object in a line; behind one that was cut off, on the same line, the whole one. Empty for none."""
    for start in dict.fromkeys((0, max(0, line.rfind(RECORD_START)))):
        try:
            found = scrubbed(json.loads(line[start:]))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def lines(fd: int, start: int) -> Iterator[tuple[bytes, int]]:
    """The whole lines of a file from an offset on, each with the offset behind it."""
    rest, at = b"", start
    while chunk := os.pread(fd, CHUNK, at + len(rest)):
        rest += chunk
        *whole, rest = rest.split(b"\n")
        for line in whole:
            at += len(line) + 1
            yield line, at


def spool_id(folder: Path) -> str:
    """What this spool is called in the database, which may be one of several machines; made with the spool."""
    path = str(folder / f"{SPOOL_FILE}-id")
    try:
        return read_file(path).decode()
    except FileNotFoundError:
        made = secrets.token_hex(8)
        replace_file(path, made.encode())
        return made


def size_of(path: Path) -> int:
    """The file's size, 0 where it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
