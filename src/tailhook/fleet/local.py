"""Runs the tasks of a scan in threads of this process. The core holds no interpreter lock while it scans."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from tailhook._core import ArrowBatch, RangeScan, ScanProgram
from tailhook.fleet.plan import FIRST_HEAD_BYTES, HEAD_BYTES, FileRange, Problem, name_of, session_of

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


def scan_task(program: ScanProgram, task: Iterable[FileRange]) -> TaskResult:
    """Scan the ranges of a task. A file that cannot be read is a problem, and the others are scanned all the same."""
    scan = RangeScan(program)
    counts: Counter[str] = Counter()
    problems = []
    for part in task:
        try:
            counts["bytes"] += scan_part(scan, part)
            counts["files"] += part.start == 0
        except OSError as error:
            problems.append(Problem(part.path, error.strerror or str(error)))
    counts.update(scan.counts)
    return TaskResult(scan.finish(), counts, problems)


def scan_part(scan: RangeScan, part: FileRange) -> int:
    """Scan a range of a file and return how many bytes it has. Raises OSError."""
    fd = os.open(part.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        scan.begin(part.path, file_session(fd, part.path), "claude-code", part.start, part.end)
        scan.read(fd)
        scan.end_file()
        end = os.fstat(fd).st_size if part.end is None else part.end
        return max(0, end - part.start)
    finally:
        os.close(fd)


def file_session(fd: int, path: str) -> str:
    """Return the session of the records in a file that name none."""
    head = os.pread(fd, FIRST_HEAD_BYTES, 0)
    found = session_of(path, head)
    if found is None and len(head) == FIRST_HEAD_BYTES:
        found = session_of(path, os.pread(fd, HEAD_BYTES, 0))
    return found or name_of(path)


def run_tasks(program: ScanProgram, tasks: Iterable[list[FileRange]], workers: int) -> Iterator[TaskResult]:
    """Yield the results of the tasks in their order. At most AHEAD * workers of them wait to be asked for.

    When the caller stops, tasks that have not begun do not begin.
    """
    if workers == 1:
        yield from (scan_task(program, task) for task in tasks)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="tailhook-scan")
    waiting: deque[Future[TaskResult]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(scan_task, program, task))
            if len(waiting) >= AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
