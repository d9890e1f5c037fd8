"""The local engine: results in the order of the tasks, a bounded queue, files that fail, and a stop in the middle."""

import os
import threading
import time

import pytest

from tailhook._core import ScanProgram
from tailhook.fleet import local
from tailhook.fleet.local import AHEAD, run_tasks, scan_task
from tailhook.fleet.plan import FileRange

PROGRAM = ScanProgram(table="records", columns=["path", "offset"])
WORKERS = pytest.mark.parametrize("workers", [1, 2, 5])


@pytest.fixture
def tasks(tmp_path):
    """Make 40 files of one to three records, each a task."""
    made = []
    for number in range(40):
        path = tmp_path / f"{number:02}.jsonl"
        path.write_bytes(b'{"type":"user"}\n' * (1 + number % 3))
        made.append([FileRange(str(path), 0, None, 0)])
    return made


def rows(result):
    return [row for batch in result.batches for row in zip(*batch.columns(), strict=True)]


@WORKERS
def test_results_come_in_the_order_of_the_tasks(tasks, workers, monkeypatch):
    def slow_at_first(program, task, stop=None):
        time.sleep(0.02 if task[0].path.endswith("0.jsonl") else 0)
        return scan_task(program, task, stop)

    monkeypatch.setattr(local, "scan_task", slow_at_first)
    found = [rows(result) for result in run_tasks(PROGRAM, tasks, workers)]
    assert [some[0][0] for some in found] == [task[0].path for task in tasks]
    assert [len(some) for some in found] == [1 + number % 3 for number in range(40)]


@WORKERS
def test_a_slow_caller_is_not_flooded(tasks, workers, monkeypatch):
    done = []

    def counted(program, task, stop=None):
        done.append(task)
        return scan_task(program, task, stop)

    monkeypatch.setattr(local, "scan_task", counted)
    results = run_tasks(PROGRAM, tasks, workers)
    for taken in range(1, 11):
        next(results)
        time.sleep(0.01)
        assert len(done) <= taken + AHEAD * workers
    results.close()


def test_tasks_are_planned_while_others_run(tasks):
    planned = []

    def plan():
        for task in tasks:
            planned.append(task)
            yield task

    results = run_tasks(PROGRAM, plan(), 2)
    next(results)
    assert len(planned) <= 2 * AHEAD
    results.close()


@WORKERS
def test_a_file_that_fails_is_a_problem_and_the_others_are_scanned(tasks, workers, tmp_path):
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(b"\x1f\x8b no")
    os.mkfifo(tmp_path / "pipe.jsonl")
    tasks[1:1] = [
        [FileRange(str(tmp_path / "none.jsonl"), 0, None, 0), *tasks[5]],
        [FileRange(str(tmp_path), 0, None, 0), FileRange(str(damaged), 0, None, 0)],
        [FileRange(str(tmp_path / "pipe.jsonl"), 0, None, 0)],
    ]
    results = list(run_tasks(PROGRAM, tasks, workers))
    assert sum(len(rows(result)) for result in results) == sum(1 + number % 3 for number in range(40)) + 3
    problems = [problem for result in results for problem in result.problems]
    assert [os.path.basename(problem.path) for problem in problems] == [
        "none.jsonl",
        tmp_path.name,
        "damaged.jsonl.gz",
        "pipe.jsonl",
    ]
    assert problems[0].reason == "No such file or directory"
    assert all(problem.reason for problem in problems)


@WORKERS
def test_an_error_that_is_not_the_files_ends_the_scan(tasks, workers, monkeypatch):
    def failing(program, task, stop=None):
        if task[0].path.endswith("07.jsonl"):
            raise MemoryError
        return scan_task(program, task, stop)

    monkeypatch.setattr(local, "scan_task", failing)
    found = []
    with pytest.raises(MemoryError):
        found += run_tasks(PROGRAM, tasks, workers)
    wait_for_threads()


@WORKERS
def test_a_caller_that_stops_is_not_waited_for(tmp_path, workers):
    path = tmp_path / "large.jsonl"
    with open(path, "wb") as file:
        for _ in range(16):
            file.write(b'{"type":"user"}\n' * (1 << 16))  # 16 MiB in all
    tasks = [[FileRange(str(path), 0, None, 0)] for _ in range(5000)]
    results = run_tasks(PROGRAM, tasks, workers)
    next(results)
    start = time.monotonic()
    results.close()
    wait_for_threads()
    assert time.monotonic() - start < 5  # all tasks would take minutes


def test_a_task_that_is_stopped_ends_in_the_middle_of_a_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"type":"user"}\n')
    stop = threading.Event()
    stop.set()
    result = scan_task(PROGRAM, [FileRange(str(path), 0, None, 0)], stop)
    assert rows(result) == []
    assert result.counts["files"] == 0


def wait_for_threads():
    deadline = time.monotonic() + 30
    while any(thread.name.startswith("tailhook-scan") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
