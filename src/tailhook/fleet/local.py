"""Runs the tasks of a scan in threads of this process. The core holds no interpreter lock while it scans."""

from __future__ import annotations

import io
import os
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import NamedTuple, cast

from tailhook._core import ArrowBatch, RangeScan, ScanProgram, parse_record, scan_range
from tailhook.errors import TailhookError
from tailhook.fleet.objects import ObjectReader
from tailhook.fleet.plan import (
    FIRST_HEAD_BYTES,
    HEAD_BYTES,
    FileRange,
    ScanProblem,
    problem_of,
)
from tailhook.hosts import DEFAULT
from tailhook.transcripts.host_records import HostRecords, find_own_session, is_name, recognize
from tailhook.transcripts.sources import (
    OpenSource,
    copy_to_temporary,
    open_source,
)
from tailhook.transcripts.urls import UnreachableError, UrlFile, name_of, store_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tailhook.transcripts.sources import SeekableFile

MAX_SCANNED_LINE_BYTES = 16 << 20  # as in the core, without its newline
LINE_BLOCK_BYTES = 1 << 18  # read at a time of another host's transcript
AHEAD = 2  # tasks for each worker that may be finished before their rows are taken
ENDING_S = 0.1  # for stopped threads, at the caller's end
MAX_WAITING_BATCHES = 2  # of a task, waiting to be taken; with so many, its thread waits
SHORTER = "it is shorter than when it was found, so rows of its end are missing"


class TaskResult(NamedTuple):
    """The result of a task.

    batches: of rows; at least one, which may be empty.
    counts: records, broken_lines and long_lines; read bytes and files.
    problems: unreadable files.
    unknown_types: records of unknown types, by type and version of the host.
    marks: of objects that were read to their end, by path, if needed.
    """

    batches: list[ArrowBatch]
    counts: Counter[str]
    problems: list[ScanProblem]
    unknown_types: dict[tuple[str, str], int]
    marks: dict[str, str]


def scan_task(
    program: ScanProgram, task: list[FileRange], scan: RangeScan | None = None, with_marks: bool = False
) -> TaskResult:
    """Scan the ranges of a task. An unreadable file is a problem; the others are still scanned.

    A file that has become shorter is a problem, too; its read part gives rows. If a server cannot be reached for one
    object, the task does not ask it for the others.

    scan: of the program. Another thread may take its batches: then the result lacks them. It may stop the scan: then
        the task ends, and its result is not whole.
    with_marks: whether the result has the marks of objects.
    """
    scan = scan or RangeScan(program)
    counts: Counter[str] = Counter()
    problems: list[ScanProblem] = []
    objects = ObjectReader(with_marks)
    unreachable: set[str] = set()
    number = 0
    try:
        while True:
            begun, number = number, number + scan.read_small_files(task, number, DEFAULT)
            counts["files"] += number - begun
            counts["bytes"] += sum(part.size for part in task[begun:number])
            if number == len(task) or scan.is_stopped:
                break
            part = task[number]
            try:
                if part.version is None:
                    size = scan_file(scan, part, problems)
                elif store_server(part.url) in unreachable:
                    raise UnreachableError(UnreachableError.OTHERS)
                else:
                    size = scan_object(scan, task, number, objects, problems)
                counts["bytes"] += size
                counts["files"] += part.start == part.first_start
                if part.version is None and os.stat(part.source).st_size < part.size:  # noqa: PTH116 - see listing.py
                    problems.append(ScanProblem(part.path, SHORTER))
            except (OSError, TailhookError) as error:
                if isinstance(error, UnreachableError):
                    unreachable.add(store_server(part.url))
                opened = part.source if part.version is None else part.path
                problems.append(problem_of(opened, error)._replace(path=part.path))
            number += 1
    finally:
        objects.close()
    counts.update(scan.counts)
    return TaskResult(scan.finish(), counts, problems, scan.unknown_types, objects.marks)


def scan_file(scan: RangeScan, part: FileRange, problems: list[ScanProblem]) -> int:
    """Scan a range of a file, or all of it if it is compressed. Return the number of bytes.

    problems: gets the faults of a readable file.

    Raises OSError and TailhookError.
    """
    with closing(open_file(part)) as opened:
        fd = opened.file.fileno()
        if not opened.is_live:
            if part.start:
                return 0  # the range from the file's beginning has all of it
            part = part._replace(end=None)
        if opened.fault:
            problems.append(ScanProblem(part.path, opened.fault))
        records, session = None, find_own_session(os.pread(fd, FIRST_HEAD_BYTES, 0))
        if session is None:
            records, session = find_origin(opened.file, name_of(part.path))
        if records is None:
            ends = part.start, part.end
            scan_range(fd, *ends, scan.program, path=part.path, session_id=session, host=DEFAULT, into=scan)
        else:
            scan_translated(scan, part, opened.file, records, session, lines_in(opened.file, part.start, part.end))
        size = os.fstat(fd).st_size  # it may be shorter than when it was found
        return max(0, (size if part.end is None else min(size, part.end)) - part.start)


def open_file(part: FileRange) -> OpenSource:
    """Open the file of a range. An object with the name of a compressed file is copied first."""
    opened = open_source(part.source, part.version)
    if isinstance(opened.file, UrlFile):  # only its name looks compressed
        opened = OpenSource(copy_to_temporary(opened.file, (), part.path), True, part.path, False)
    return opened


def find_origin(file: SeekableFile, name: str) -> tuple[HostRecords | None, str]:
    """Return the translator of a file's records, None for Claude Code's, and the session of records without one.

    name: the session if no early record names one.
    """
    records = recognize(file)
    return records, (records and records.session_id) or find_session(file) or name


def scan_object(
    scan: RangeScan, task: list[FileRange], number: int, objects: ObjectReader, problems: list[ScanProblem]
) -> int:
    """Scan a range of an object. Return its number of bytes. Raises OSError and TailhookError.

    number: of the part in its task.  problems: as for `scan_file`.
    """
    part = task[number]
    with closing(objects.open(task, number)) as opened:
        if part.end is None or opened.is_compressed:
            return scan_file(scan, part, problems)
        file = cast("SeekableFile", opened)
        records, session = find_origin(file, name_of(part.path))
        blocks = objects.blocks(number, part)
        if records is None:
            scan.begin(part.path, session, DEFAULT, part.start, part.end)
            for block in blocks:
                scan.feed(block)
                if scan.is_done or scan.is_stopped:
                    break
            scan.end_file()
        else:
            scan_translated(scan, part, file, records, session, lines_of(BlocksFile(blocks), part.start, part.end))
    return max(0, part.end - part.start)


def scan_translated(
    scan: RangeScan,
    part: FileRange,
    file: SeekableFile,
    records: HostRecords,
    session: str,
    lines: Iterable[tuple[int, bytes]],
) -> None:
    """Scan lines of another host.  file: to read the records before the part.  lines: of the part."""
    scan.begin(part.path, session, records.host.NAME, part.start, part.end)
    records.read_changes(file, part.start)
    feed_translated(scan, records, lines)


def feed_translated(scan: RangeScan, records: HostRecords, lines: Iterable[tuple[int, bytes]]) -> None:
    """Scan lines of another host's transcript, translated into Claude Code's form.

    A scan for matches does not translate a line in which no text can match: the text of a translation is in its line,
    too. A scan of usage does not translate a line without tokens.

    records: call its `read_changes` up to the lines before.
    """
    gate = scan.line_gate
    for offset, line in lines:
        if scan.is_stopped:
            break
        is_long = len(line) > MAX_SCANNED_LINE_BYTES + 1
        if gate is not None and not is_long and not gate.has_hit(line) and not records.holds_context(line):
            continue
        translated = [] if is_long else records.translate_line(line, offset)
        scan.feed_line(line, translated[0] if translated else None, offset)
        for nested in translated[1:]:
            scan.feed_line(b"", nested, offset)


class BlocksFile(io.RawIOBase):
    """Blocks of bytes, read as one file from its beginning to its end."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def lines_in(file: SeekableFile, start: int, end: int | None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that begin in a range, like `lines_of`."""
    file.seek(max(start - 1, 0))
    return lines_of(cast("io.RawIOBase", file), start, end)


def lines_of(file: io.RawIOBase, start: int, end: int | None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in a range, each with its offset and its newline.

    Of a line of more than 16 MiB, only a part is yielded: enough to see its length.

    file: positioned at the byte before the range.
    """
    reader = io.BufferedReader(file, LINE_BLOCK_BYTES)
    try:
        offset = max(start - 1, 0)
        is_rest = start > 0  # of a line that begins before the range or is too long
        while (end is None or offset < end) and (line := reader.readline(MAX_SCANNED_LINE_BYTES + 2)):
            if not is_rest:
                yield offset, line
            is_rest = not line.endswith(b"\n")
            offset += len(line)
    finally:
        reader.detach()


def find_session(file: SeekableFile) -> str | None:
    """Return the first session id in the records that begin in the first 1 MiB of a file, or None."""
    for _, line in lines_in(file, 0, HEAD_BYTES):
        is_long = len(line) > MAX_SCANNED_LINE_BYTES + 1
        if not is_long and (b"sessionId" in line or b"\\u" in line):
            record = parse_record(line)
            if record is not None and record.session_id and is_name(record.session_id):
                return str(record.session_id)
    return None


class ScanStopped(Exception):  # noqa: N818 - nothing went wrong
    """The caller takes no more rows."""


class TaskRun:
    """A task that waits for a thread, runs in one, or has ended.

    At most MAX_WAITING_BATCHES of its batches wait to be taken; then its thread waits.
    """

    def __init__(self, program: ScanProgram, task: list[FileRange], with_marks: bool = False) -> None:
        """with_marks: as for `scan_task`."""
        self.task = task
        self._program = program
        self._scan = RangeScan(program, MAX_WAITING_BATCHES)
        self._with_marks = with_marks
        self._has_ended = Event()
        self._result: TaskResult  # of a task, after its end without an error
        self._error: BaseException | None = None

    def run(self) -> None:
        """Scan the task in this thread."""
        try:
            self._result = scan_task(self._program, self.task, self._scan, self._with_marks)
            if self._scan.is_stopped:
                self._error = ScanStopped()  # the result lacks rows
        except BaseException as error:
            self._error = error  # the caller gets it from `batches`
            self._scan.stop()
        self._has_ended.set()

    def stop(self) -> None:
        """Let the task's thread end soon. `batches` and `result` then raise ScanStopped, unless it had ended."""
        self._scan.stop()

    def batches(self) -> Iterator[ArrowBatch]:
        """Yield the finished batches, until the task has ended. Raises the task's error."""
        while (batch := self._scan.take()) is not None:
            yield batch
        yield from self.result().batches

    def result(self) -> TaskResult:
        """Wait for the end, and return the result without the taken batches. Raises the task's error."""
        self._has_ended.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def whole_result(self) -> TaskResult:
        """Wait for the end, and return the result with all batches. Raises the task's error."""
        batches = list(self.batches())
        return self.result()._replace(batches=batches)


def run_tasks(
    program: ScanProgram, tasks: Iterable[list[FileRange]], workers: int, *, with_marks: bool = False
) -> Generator[TaskRun]:
    """Yield the tasks in their order while threads run them. Up to AHEAD * workers of them may wait.

    Take the batches of each before the next: its thread may wait for that. Close the generator: then no further task
    begins, and running ones end soon. A single worker is a thread, too: the core does not handle signals during a scan,
    but the waiting thread does. At its end, a program waits for the threads for at most ENDING_S, so that most of them
    are gone before the interpreter.

    with_marks: as for `scan_task`.
    """
    begun: SimpleQueue[TaskRun | None] = SimpleQueue()
    threads: list[Thread] = []
    waiting: deque[TaskRun] = deque()  # the last yielded one is the first
    try:
        for task in tasks:
            waiting.append(TaskRun(program, task, with_marks))
            begun.put(waiting[-1])
            if len(threads) < workers:
                name = f"tailhook-scan-{len(threads)}"
                threads.append(Thread(target=run_begun_tasks, args=(begun,), name=name, daemon=True))
                threads[-1].start()
            if len(waiting) >= AHEAD * workers:
                yield waiting[0]
                waiting.popleft()
        while waiting:
            yield waiting[0]
            waiting.popleft()
    finally:
        for run in waiting:
            run.stop()
        for _ in threads:
            begun.put(None)
        until = monotonic() + ENDING_S
        for thread in threads:
            if thread.is_alive():  # Ctrl-C may have come before it was
                # PythonFinalizationError, from CPython 3.14 on: while the interpreter ends, no thread runs Python.
                with suppress(RuntimeError):
                    thread.join(max(0.0, until - monotonic()))


def run_begun_tasks(begun: SimpleQueue[TaskRun | None]) -> None:
    """Run tasks, one after the other, until there is None."""
    while (run := begun.get()) is not None:
        run.run()
