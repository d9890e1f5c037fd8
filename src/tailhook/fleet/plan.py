"""Files of a scan, and the tasks into which they are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from tailhook.transcripts.urls import UrlVersion, web_address

TASK_BYTES = 64 << 20  # a larger file is cut into tasks of this size; smaller files share a task
TASK_FILES = 4096  # at most, of a task: each takes memory and time of its own
HEAD_BYTES = 1 << 20  # the line that names a file's session must begin in these first bytes
FIRST_HEAD_BYTES = 1 << 15  # how much of the head is read first
MARK_BYTES = 1024  # the last bytes of a file; a later run compares their digest
COMPRESSED = (".gz", ".zst")
SINCE_SLACK_S = 86_400  # a file last modified so long before `since` has no counting row
FIRST_TRANSCRIPT = 1_577_836_800  # Unix seconds of 2020-01-01: all known hosts are newer
ONE_FILE_TABLES = ("matches", "records", "tools")  # tables with rows that do not depend on other files
OBJECT_TASK_FACTOR = 2  # a task of objects has twice as many bytes, because each request has a delay


class SourceFile(NamedTuple):
    """A file to scan.

    path: for rows; a URL without credentials for an object.
    size: in bytes.
    modified: Unix seconds.
    etag: an object's, "" if it has none. None: it is a file of this computer.
    start: of the scan; an earlier run has read the bytes before it.
    url: to fetch an object; of a file, the path to open if it is another one.
    """

    path: str
    size: int
    modified: float
    etag: str | None = None
    start: int = 0
    url: str = ""

    @property
    def version(self) -> UrlVersion | None:
        """The found version of an object; None for a file of this computer."""
        return None if self.etag is None else UrlVersion(self.size, self.modified, self.etag)


class FileRange(NamedTuple):
    """A part of a file: the lines whose first byte is in [start, end).

    end: None for all of a compressed file; its lines are counted in decompressed bytes.
    size: of the file, when it was found.
    version: the found one of an object. None: it is a file of this computer.
    first_start: the start of the file's first range. An earlier run has read the bytes before it.
    url: to fetch an object; of a file, the path to open if it is another one.
    """

    path: str
    start: int
    end: int | None
    size: int
    version: UrlVersion | None = None
    first_start: int = 0
    url: str = ""

    @property
    def source(self) -> str:
        """The argument for `open_source`."""
        return self.url or self.path


class ScanProblem(NamedTuple):
    """A source that could not be read, and why."""

    path: str
    reason: str


def problem_of(path: str, error: Exception) -> ScanProblem:
    """Return why a file could not be read; the reason does not repeat its name."""
    if "\0" in path:
        return ScanProblem(path, "no file has a null character in its name")  # Python's words differ by its version
    reason = getattr(error, "strerror", None) or str(error)
    return ScanProblem(path, f"it {reason.removeprefix(f'{path} ')}" if reason.startswith(f"{path} ") else reason)


def make_tasks(files: Sequence[SourceFile], task_bytes: int = TASK_BYTES) -> Iterator[list[FileRange]]:
    """Yield tasks, each a list of ranges, in the order of the files.

    task_bytes: at most so many in a task, or twice as many if its files are objects.

    A compressed file is one range, at any size. Lines appended after their file was found are not in any task.
    """
    task: list[FileRange] = []
    size = 0
    for path, file_size, modified, etag, begin, url in files:
        version, limit = None, task_bytes
        if etag is not None:
            version, limit = UrlVersion(file_size, modified, etag), task_bytes * OBJECT_TASK_FACTOR
        length = file_size - begin
        if task and (size + length > limit or len(task) == TASK_FILES):
            yield task
            task, size = [], 0
        if is_named_compressed(path):
            task.append(FileRange(path, 0, None, file_size, version, 0, url))
            size += file_size
        elif length <= limit:
            task.append(FileRange(path, begin, file_size, file_size, version, begin, url))
            size += length
        else:
            for start in range(begin, file_size, limit):
                end = min(start + limit, file_size)
                yield [FileRange(path, start, end, file_size, version, begin, url)]
    if task:
        yield task


def files_since(files: Sequence[SourceFile], table: str, since: datetime | None) -> Sequence[SourceFile]:
    """Return the files that may have rows at `since` or later: not the ones last modified more than a day before it.

    A host appends a record at the record's time, so a file's records are not later than its last modification. The day
    is for differing clocks. A row of matches, records and tools comes from one file and counts by the time of one
    record in it, so other files never change it. All files are kept

    - for usage: the row of a response has the session, agent and project of the response's first record, and an older
      record without a request id joins others. These may stand in any file, since a resumed session repeats lines;
    - for sessions: the figures are those of the whole session, and an older file may have a part of it.

    A file with an impossibly old time, such as 1970 or 1980, is kept. No file is begun in its middle: in joined or
    resumed files, lines are not in the order of their times.

    table: of the wanted rows. since: None for all times.
    """
    if since is None or table not in ONE_FILE_TABLES:
        return files
    oldest = since.timestamp() - SINCE_SLACK_S
    return [file for file in files if file.modified >= oldest or file.modified < FIRST_TRANSCRIPT]


def is_named_compressed(path: str) -> bool:
    """Return whether the name of a file or object looks compressed."""
    return (web_address(path) if "://" in path else path).endswith(COMPRESSED)


def tail_digest(data: bytes) -> str:
    """Return a digest of the last MARK_BYTES of a file, or of a smaller file.  data: these bytes."""
    from hashlib import blake2b  # loads slowly, and only a resumed scan needs it

    return blake2b(data, digest_size=8).hexdigest()
