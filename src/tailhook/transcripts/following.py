"""Reads a transcript while its host writes it."""

from __future__ import annotations

import io
import os
from codecs import BOM_UTF8 as BOM
from itertools import chain
from threading import Event

from tailhook._core import SeenRecords, forward_lines, parse_json, parse_record
from tailhook.transcripts.host_records import HostRecords, recognize
from tailhook.transcripts.sources import open_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailhook._core import Record
    from tailhook.transcripts.sources import OpenSource, SeekableFile

FOLLOW_INTERVAL_S = 0.1
TAIL_PIECE_BYTES = 1 << 20  # of a line without its end, at a time
MAX_WITNESS_BYTES = 64  # before the end of the read part: if they change, the file was written again from its beginning


class Follower:
    """Reads the records of a file, and then new ones, until it is stopped.

    A file that is truncated or overwritten is read again from its beginning. If another file takes its path, the rest
    of the old one is read, and then the new one. A line without its end is given as soon as it is a whole JSON object:
    a cut-off object is never valid JSON. An unchanged file is not read again. If the last line has no end, only its new
    bytes are read until they may complete it.
    """

    def __init__(self, source: OpenSource) -> None:
        self._source = source
        self._file: SeekableFile = source.file
        self._successor: SeekableFile | None = None  # the file that took the path of the open one
        self._stopped = Event()
        self._restart()

    def stop(self) -> None:
        """End the iteration. May be called by another thread; wakes it."""
        self._stopped.set()

    def _restart(self) -> None:
        """Begin at the beginning of the file."""
        self._end = 0  # offset of the first unread line
        self._witness = b""  # the bytes before it
        self._given = b""  # the line there, if it was given although it has no end yet
        self._seen: tuple[int, int | None] | None = None  # the state of the file when all records were given
        self._torn_end = 0  # the line there has no end before this offset, and is not a whole object
        self._torn_witness = b""  # the bytes before it
        self._host: HostRecords | None = None
        self._ids = SeenRecords()  # of the records that were given

    def __iter__(self) -> Iterator[Record]:
        try:
            self._file = own_copy(self._source.file)
            while not self._is_over():
                self._find_successor()
                if self._was_overwritten():
                    self._source.restart()
                    self._restart()
                count = 0
                for record in self._new_records():
                    count += 1
                    yield record
                    if self._is_over():
                        return
                if self._successor is not None:
                    self._close()
                    successor, self._successor = self._successor, None
                    self._source.restart(successor)
                    self._file = own_copy(self._source.file)
                    self._restart()
                elif not count:
                    self._stopped.wait(FOLLOW_INTERVAL_S)
        except (OSError, ValueError):  # of a file that was closed meanwhile
            if not self._is_over():
                raise
        finally:
            self._close()
            if self._successor is not None:
                self._successor.close()

    def _is_over(self) -> bool:
        return self._stopped.is_set() or self._source.file.closed

    def _close(self) -> None:
        if self._file is not self._source.file:
            self._file.close()

    def _find_successor(self) -> None:
        """Open the file at the path, if it differs from the open one. It may be missing, or not a file."""
        if self._source.path is None:
            return
        try:
            at_path, mine = os.stat(self._source.path), os.fstat(self._file.fileno())  # noqa: PTH116
            if not os.path.samestat(at_path, mine):
                self._successor = open_path(self._source.path)
        except OSError:
            pass

    def _read(self, offset: int, size: int) -> bytes:
        if (descriptor := plain_descriptor(self._file)) is not None:
            return os.pread(descriptor, size, offset)
        self._file.seek(offset)
        return self._file.read(size) or b""

    def _state(self) -> tuple[int, int | None]:
        """Return the size of the file, and the time of its last change in nanoseconds; None if unknown."""
        if (descriptor := plain_descriptor(self._file)) is not None:
            facts = os.fstat(descriptor)
            return facts.st_size, facts.st_mtime_ns
        return self._file.seek(0, os.SEEK_END), None

    def _was_overwritten(self) -> bool:
        return self._witness_at(self._end) != self._witness

    def _witness_at(self, end: int) -> bytes:
        """Return the last bytes before an offset. If they differ later, the file was overwritten."""
        start = max(0, end - MAX_WITNESS_BYTES)
        return self._read(start, end - start)

    def _new_records(self) -> Iterator[Record]:
        """Yield the records of the complete, unread lines."""
        state = self._state()
        size = state[0]
        if state == self._seen or size <= self._end + len(self._given):
            return
        if not self._is_torn_still(size):
            yield from self._records_before(size)
        self._torn_end, self._torn_witness = size, self._witness_at(size)
        self._seen = state if state[1] is not None else None

    def _records_before(self, size: int) -> Iterator[Record]:
        """Yield the records of the complete, unread lines that begin before an offset."""
        if self._end == 0:
            self._host = recognize(self._file)
        line = None
        for following in chain(forward_lines(self._file, self._end, size), [None]):
            if line is not None:
                end = following[0] if following is not None else self._line_end(*line)
                yield from self._new_record(line[1], end)
            line = following

    def _is_torn_still(self, size: int) -> bool:
        """Return whether the last line had no end, and the new bytes neither end it nor complete its object."""
        if not self._end < self._torn_end < size or self._witness_at(self._torn_end) != self._torn_witness:
            return False
        last = b""
        for start in range(self._torn_end, size, TAIL_PIECE_BYTES):
            piece = self._read(start, min(TAIL_PIECE_BYTES, size - start))
            if b"\n" in piece:
                return False
            last = piece.rstrip() or last
        return not last.endswith(b"}")

    def _line_end(self, offset: int, line: bytes) -> int | None:
        """Return the offset after the last line's newline, None if it has none yet."""
        after = offset + len(line)
        if offset == 0 and self._read(0, len(BOM)) == BOM:
            after += len(BOM)
        newline = self._read(after, 2)  # a carriage return may come first
        return after + newline.index(b"\n") + 1 if newline in (b"\r\n", b"\n") or newline[:1] == b"\n" else None

    def _new_record(self, line: bytes, end: int | None) -> Iterator[Record]:
        """Yield the record in the line at `_end`, if it was not given yet.

        end: the offset after the line's newline, None if it has none yet.
        """
        fresh = line[len(self._given) :] if line.startswith(self._given) else line
        if end is None and not is_json(fresh):
            return
        records = self._parse(fresh, self._end)
        if end is None:
            self._given = line
        else:
            self._end, self._given = end, b""
            self._witness = self._witness_at(end)  # now: the caller may overwrite the file before it asks for more
        yield from records

    def _parse(self, line: bytes, offset: int) -> list[Record]:
        if self._host is not None:
            return self._host.records(line, offset)
        record = parse_record(line, offset)
        return [record] if record is not None and self._ids.add(record) else []


def own_copy(file: SeekableFile) -> SeekableFile:
    """Return the file under a descriptor of its own, if it has one, otherwise the file itself.

    If another thread closes the file, another file may get its descriptor's number at once.
    """
    descriptor = plain_descriptor(file)
    return file if descriptor is None else io.FileIO(os.dup(descriptor))


def plain_descriptor(file: SeekableFile) -> int | None:
    """Return the descriptor of a file for the core; None if the file's bytes are not those of its descriptor.

    Raises ValueError if the file is closed.
    """
    raw = file.raw if type(file) is io.BufferedReader else file
    return raw.fileno() if type(raw) is io.FileIO else None


def is_json(line: bytes) -> bool:
    """Return whether a line is a whole JSON object."""
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(parse_json(line), dict)
    except ValueError:
        return False
