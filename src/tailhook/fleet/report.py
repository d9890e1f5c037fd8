"""What a scan reports of itself: how far it is, and at the end what it read and what it could not read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tailhook.fleet.local import TaskResult
from tailhook.fleet.plan import FileRange, ScanProblem, SourceFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.fleet.engines import MissingSources


class ScanReport(NamedTuple):
    """What a scan read.

    files, bytes: that were read; the bytes are those of the transcripts, decompressed.
    records, broken_lines: of the lines that were decoded. The tables records and sessions decode all lines; the others
        only those that could give a row.
    long_lines: lines that were skipped because they are longer than 16 MiB.
    seconds: None while it runs.
    skipped: sources that could not be read, each with the reason.
    unknown_types: how many of the decoded records have a type that tailhook does not know, by (type, host version).
        For the table usage, how many have tokens that are not counted, by type or subtype.
    older_files: that were not opened, because they were last modified more than a day before `since`.
    unchanged_files: files that were not opened, because `resume` has their rows.
    """

    files: int
    bytes: int
    records: int
    broken_lines: int
    long_lines: int
    seconds: float | None
    skipped: tuple[ScanProblem, ...]
    unknown_types: dict[tuple[str, str], int]
    older_files: int
    unchanged_files: int


class Progress(NamedTuple):
    """How far a scan is.

    files, bytes: that are done, compressed files with the size that they have on disk.
    all_files, all_bytes: that there are to read; with `resume`, what is new.

    The table sessions reads every file twice. A file and its bytes count half after the first reading.
    """

    files: int
    bytes: int
    all_files: int
    all_bytes: int


Watch = Callable[[Progress], object]  # a function that is called while a scan runs; what it returns is not used


class ScanNotes:
    """Notes what one iteration of a scan reads.

    counts: as `TaskResult` has them, and older_files.
    problems: sources that could not be read.
    """

    def __init__(self, table: str, progress: Watch | None, missing: MissingSources | None = None) -> None:
        """table: of the rows.  progress: as for a Scan.  missing: collects what an engine cannot read."""
        self.counts: Counter[str] = Counter()
        self.problems: list[ScanProblem] = []
        self._table, self._progress, self._missing = table, progress, missing
        self._unknown_types: Counter[tuple[str, str]] = Counter()
        self._files = self._bytes = 0  # to read, each file once
        self._reads = Progress(0, 0, 0, 0)  # each file as often as it is read
        self._seconds: float | None = None

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure how long the run takes."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds = time.monotonic() - started

    def begin(self, *readings: Sequence[SourceFile]) -> None:
        """Report what there is to read.  readings: the files of each reading; none of them twice in one."""
        sizes = [sum(file.size - file.start for file in files) for files in readings]
        self._files, self._bytes = len(readings[0]), sizes[0]
        if any(files is not readings[0] for files in readings):
            once = {file.path: file.size - file.start for files in readings for file in files}
            self._files, self._bytes = len(once), sum(once.values())
        self._advance(Progress(0, 0, sum(map(len, readings)), sum(sizes)))

    def note(self, result: TaskResult, table: str, task: Sequence[FileRange] = ()) -> None:
        """Add what a task read to the report.

        table: whose rows or halves it gives. Sessions read all files again for their usage; these count once.
        task: () if no file was read.
        """
        if table == self._table:
            self.counts.update(result.counts)
            self._unknown_types.update(result.unknown_types)
        self.problems += [problem for problem in dict.fromkeys(result.problems) if problem not in self.problems]
        if not task:
            return
        done = sum(part.end in (None, part.size) for part in task)
        size = sum((part.size if part.end is None else part.end) - part.start for part in task)
        self._advance(self._reads._replace(files=self._reads.files + done, bytes=self._reads.bytes + size))

    def _advance(self, reads: Progress) -> None:
        """Keep how far the scan is, and report it.  reads: each file as often as it is read; it is reported once."""
        self._reads = reads
        if self._progress is not None:
            done = reads.files * self._files // max(1, reads.all_files)
            size = reads.bytes * self._bytes // max(1, reads.all_bytes)
            self._progress(Progress(done, size, self._files, self._bytes))

    def report(self) -> ScanReport:
        """Return what was read so far."""
        counts = self.counts
        problems = dict.fromkeys([*self.problems, *(self._missing.found() if self._missing else ())])
        return ScanReport(
            *(counts["files"], counts["bytes"], counts["records"], counts["broken_lines"], counts["long_lines"]),
            *(self._seconds, tuple(problems), dict(self._unknown_types)),
            *(counts["older_files"], counts["unchanged_files"]),
        )
