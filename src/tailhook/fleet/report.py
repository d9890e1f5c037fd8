"""The reports of a scan: its progress, and at the end the read and the unreadable sources."""

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
    """The report of a scan.

    files, bytes: the read ones; the bytes are decompressed.
    records, broken_lines: of the decoded lines. The tables records and sessions decode all lines; the others only lines
        that could give a row.
    long_lines: lines skipped because they are longer than 16 MiB.
    seconds: None while it runs.
    skipped: unreadable sources, each with the reason.
    unknown_types: the number of decoded records of unknown types, by (type, host version). For the table usage, the
        number of records with uncounted tokens, by type or subtype.
    older_files: files that were not opened, because they were last modified more than a day before `since`.
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
    """The progress of a scan.

    files, bytes: the finished ones; compressed files count with their size on disk.
    all_files, all_bytes: to read; with `resume`, only new ones.

    The table sessions reads every file twice. A file and its bytes count half after the first reading.
    """

    files: int
    bytes: int
    all_files: int
    all_bytes: int


Watch = Callable[[Progress], object]  # a function to call while a scan runs; its result is not used


class ScanNotes:
    """Notes the progress and the results of one iteration of a scan.

    counts: as in `TaskResult`, and older_files.
    problems: sources that could not be read.
    """

    def __init__(self, table: str, progress: Watch | None, missing: MissingSources | None = None) -> None:
        """table: of the rows. progress: as for a Scan. missing: collects the sources that an engine cannot read."""
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
        """Report the files to read. readings: the files of each reading, without repetitions."""
        sizes = [sum(file.size - file.start for file in files) for files in readings]
        self._files, self._bytes = len(readings[0]), sizes[0]
        if any(files is not readings[0] for files in readings):
            once = {file.path: file.size - file.start for files in readings for file in files}
            self._files, self._bytes = len(once), sum(once.values())
        self._advance(Progress(0, 0, sum(map(len, readings)), sum(sizes)))

    def note(self, result: TaskResult, table: str, task: Sequence[FileRange] = ()) -> None:
        """Add a task's result to the report.

        table: of its rows or halves. Sessions read all files again for their usage; these count once.
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
        """Keep the scan's progress, and report it. reads: each file as often as it is read; it is reported once."""
        self._reads = reads
        if self._progress is not None:
            done = reads.files * self._files // max(1, reads.all_files)
            size = reads.bytes * self._bytes // max(1, reads.all_bytes)
            self._progress(Progress(done, size, self._files, self._bytes))

    def report(self) -> ScanReport:
        """Return the report so far."""
        counts = self.counts
        problems = dict.fromkeys([*self.problems, *(self._missing.found() if self._missing else ())])
        return ScanReport(
            *(counts["files"], counts["bytes"], counts["records"], counts["broken_lines"], counts["long_lines"]),
            *(self._seconds, tuple(problems), dict(self._unknown_types)),
            *(counts["older_files"], counts["unchanged_files"]),
        )
