"""A transcript that is read while its host writes it."""

from __future__ import annotations

import io
import os
from codecs import BOM_UTF8 as BOM
from itertools import chain
from threading import Event

from tailhook._core import forward_lines, parse_json, parse_record
from tailhook.host_records import HostRecords, recognize
from tailhook.sources import open_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailhook._core import Record
    from tailhook.sources import OpenSource, SeekableFile

FOLLOW_INTERVAL_S = 0.1
MAX_WITNESS_BYTES = 64  # before the end of what was read: if they change, the file was written again from its beginning


class Follower:
    """Reads the records of a file, and those that are appended, until it is stopped.

    A file that is truncated or overwritten is read again from its beginning. If another file takes its path, the rest
    of the old one is read, and then the new one. A line without its end is given as soon as it is a whole JSON object:
    an object that is cut off is never one.
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
        self._end = 0  # where the next line begins that is not read
        self._witness = b""  # the bytes before it
        self._given = b""  # a line that begins there, has no end yet, and was given
        self._host: HostRecords | None = None

    def __iter__(self) -> Iterator[Record]:
        try:
            if (descriptor := plain_descriptor(self._file)) is not None:
                # A copy: when another thread closes the file, its number may be used for another one at once.
                self._file = io.FileIO(os.dup(descriptor))
            while not self._is_over():
                self._find_successor()
                if self._was_overwritten():
                    self._restart()
                count = 0
                for record in self._new_records():
                    count += 1
                    yield record
                    if self._is_over():
                        return
                if self._successor is not None:
                    self._close()
                    self._file, self._successor = self._successor, None
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
        """Open the file at the path if it is another one than the open one. It may be missing, or not be a file."""
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

    def _size(self) -> int:
        if (descriptor := plain_descriptor(self._file)) is not None:
            return os.fstat(descriptor).st_size
        return self._file.seek(0, os.SEEK_END)

    def _was_overwritten(self) -> bool:
        return self._read(self._end - len(self._witness), len(self._witness)) != self._witness

    def _new_records(self) -> Iterator[Record]:
        """Yield the records of the lines that are complete and not read yet."""
        size = self._size()
        if size <= self._end + len(self._given):
            return
        if self._end == 0:
            self._host = recognize(self._file)
        line = None
        for following in chain(forward_lines(self._file, self._end, size), [None]):
            if line is not None:
                end = following[0] if following is not None else self._line_end(*line)
                yield from self._new_record(line[1], end)
            line = following
        start = max(0, self._end - MAX_WITNESS_BYTES)
        self._witness = self._read(start, self._end - start)

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
        record = self._parse(fresh, self._end)
        if end is None:
            self._given = line
        else:
            self._end, self._given = end, b""
        if record is not None:
            yield record

    def _parse(self, line: bytes, offset: int) -> Record | None:
        return parse_record(line, offset) if self._host is None else self._host.translate(line, offset)


def plain_descriptor(file: SeekableFile) -> int | None:
    """Return the descriptor of a file that has no other bytes than it, as for the core; None for other files.

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
