"""Runs the tasks of a scan in threads of this process. The core holds no interpreter lock while it scans."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import NamedTuple

from tailhook._core import ArrowBatch, RangeScan, ScanProgram, forward_lines
from tailhook.errors import TailhookError
from tailhook.fleet.plan import FIRST_HEAD_BYTES, HEAD_BYTES, FileRange, Problem, name_of, session_of
from tailhook.host_records import name_of_host, recognize
from tailhook.sources import open_source

AHEAD = 2  # tasks for each worker that may be finished before their rows are asked for


class TaskResult(NamedTuple):
    """What a task gives.

    batches: of rows; at least one, which may be empty.
    counts: records, broken_lines and long_lines that were met, bytes and files that were read.
    problems: files that could not be read.
    """

    batches: list[ArrowBatch]
    counts: Counter[str]
    problems: list[Problem]


def scan_task(program: ScanProgram, task: Iterable[FileRange], stop: Event | None = None) -> TaskResult:
    """Scan the ranges of a task. A file that cannot be read is a problem, and the others are scanned all the same.

    stop: when it is set, the task ends, and its result is not whole.
    """
    scan = RangeScan(program)
    counts: Counter[str] = Counter()
    problems = []
    for part in task:
        if stop is not None and stop.is_set():
            break
        try:
            counts["bytes"] += scan_part(scan, part, stop)
            counts["files"] += part.start == 0
        except (OSError, TailhookError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            problems.append(Problem(part.path, reason))
    counts.update(scan.counts)
    return TaskResult(scan.finish(), counts, problems)


def scan_part(scan: RangeScan, part: FileRange, stop: Event | None) -> int:
    """Scan a range of a source and return how many bytes it has. Raises OSError and TailhookError."""
    opened = open_source(part.path)
    try:
        fd = opened.file.fileno()
        records = recognize(opened.file)
        session = file_session(fd, part.path)
        scan.begin(part.path, session, name_of_host(records), part.start, part.end)
        if records is None:
            scan.read(fd, stop)
            scan.end_file()
        else:
            records.read_changes(opened.file, part.start)
            for offset, line in forward_lines(opened.file, part.start, part.end):
                if (translated := records.translate_line(line, offset)) is not None:
                    scan.feed_line(translated, offset)
        end = os.fstat(fd).st_size if part.end is None else part.end
        return max(0, end - part.start)
    finally:
        opened.close()


def file_session(fd: int, path: str) -> str:
    """Return the session of the records in a file that name none."""
    head = os.pread(fd, FIRST_HEAD_BYTES, 0)
    found = session_of(head)
    if found is None and len(head) == FIRST_HEAD_BYTES:
        found = session_of(os.pread(fd, HEAD_BYTES, 0))
    return found or name_of(path)


def run_tasks(program: ScanProgram, tasks: Iterable[list[FileRange]], workers: int) -> Iterator[TaskResult]:
    """Yield the results of the tasks in their order. At most AHEAD * workers of them wait to be asked for.

    When the caller stops, tasks that have not begun do not begin, and those that run end soon.
    """
    if workers == 1:
        yield from (scan_task(program, task) for task in tasks)
        return
    stop = Event()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="tailhook-scan")
    waiting: deque[Future[TaskResult]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(scan_task, program, task, stop))
            if len(waiting) >= AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
