"""The local engine: results in the order of the tasks, a bounded queue, files that fail, and a stop in the middle."""

import gzip
import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from contextlib import closing
from itertools import pairwise

import pytest
from support.host import HANGS_S
from support.oracles import scan as oracle

import tailhook
from tailhook._core import RangeScan, ScanProgram
from tailhook.fleet import local
from tailhook.fleet.local import AHEAD, MAX_SCANNED_LINE_BYTES, ScanStopped, TaskRun, lines_in, run_tasks, scan_task
from tailhook.fleet.plan import FileRange
from tailhook.fleet.reduce import SESSION_LINE, SessionLines, SessionTotals, session_rows
from tailhook.transcripts.sources import GARBAGE

PROGRAM = ScanProgram(table="records", columns=["path", "offset"])
WORKERS = pytest.mark.parametrize("workers", [1, 2, 5])


@pytest.fixture
def tasks(tmp_path):
    """Make 40 files of one to three records, each a task."""
    made = []
    for number in range(40):
        path = tmp_path / f"{number:02}.jsonl"
        path.write_bytes(b'{"type":"user"}\n' * (1 + number % 3))
        made.append([whole(path)])
    return made


def whole(path):
    """Return all of a file, whatever its size, as a range."""
    return FileRange(str(path), 0, None, 0)


def rows(result):
    return [row for batch in result.batches for row in zip(*batch.columns(), strict=True)]


@WORKERS
def test_results_come_in_the_order_of_the_tasks(tasks, workers, monkeypatch):
    def slow_at_first(program, task, *others):
        time.sleep(0.02 if task[0].path.endswith("0.jsonl") else 0)
        return scan_task(program, task, *others)

    monkeypatch.setattr(local, "scan_task", slow_at_first)
    found = [rows(run.whole_result()) for run in run_tasks(PROGRAM, tasks, workers)]
    assert [some[0][0] for some in found] == [task[0].path for task in tasks]
    assert [len(some) for some in found] == [1 + number % 3 for number in range(40)]


@WORKERS
def test_a_slow_caller_is_not_flooded(tasks, workers, monkeypatch):
    done = []

    def counted(program, task, *others):
        done.append(task)
        return scan_task(program, task, *others)

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
        [whole(tmp_path / "none.jsonl"), *tasks[5]],
        [whole(tmp_path), whole(damaged)],
        [whole(tmp_path / "pipe.jsonl")],
    ]
    results = [run.whole_result() for run in run_tasks(PROGRAM, tasks, workers)]
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
    def failing(program, task, *others):
        if task[0].path.endswith("07.jsonl"):
            raise MemoryError
        return scan_task(program, task, *others)

    monkeypatch.setattr(local, "scan_task", failing)
    found = []
    with closing(run_tasks(PROGRAM, tasks, workers)) as runs, pytest.raises(MemoryError):
        found += [run.whole_result() for run in runs]
    wait_for_threads()


@WORKERS
def test_a_caller_that_stops_is_not_waited_for(tmp_path, workers, monkeypatch):
    path = tmp_path / "large.jsonl"
    with open(path, "wb") as file:
        for _ in range(16):
            file.write(b'{"type":"user"}\n' * (1 << 16))  # 16 MiB in all
    tasks = [[whole(path)] for _ in range(5000)]
    begun = []
    monkeypatch.setattr(local, "scan_task", lambda *given: begun.append(True) or scan_task(*given))
    results = run_tasks(PROGRAM, tasks, workers)
    next(results)
    results.close()
    wait_for_threads()
    assert len(begun) < len(tasks)


def test_batches_that_are_taken_after_the_end_are_not_taken_for_all(tmp_path):
    path = tmp_path / "large.jsonl"
    path.write_bytes(b'{"type":"user"}\n' * 600_000)
    results = run_tasks(PROGRAM, [[whole(path)] for _ in range(3)], 1)
    run = next(results)
    batches = run.batches()
    next(batches)
    results.close()
    with pytest.raises(ScanStopped):
        list(batches)
    with pytest.raises(ScanStopped):
        run.result()
    wait_for_threads()


def test_tasks_that_wait_to_be_asked_for_hold_their_rows_and_no_more(tmp_path):
    path = tmp_path / "definitions.jsonl"
    text = r"[x][q`] `\n\n" + r"[a]:b\n" * 200_000 + r"\n\nneedle"
    path.write_text('{"type":"user","sessionId":"s","message":{"role":"user","content":"' + text + '"}}\n')
    program = tailhook.scan(path, patterns=["needle"])._programs["matches"]
    tracemalloc.start()
    try:
        runs = [TaskRun(program, [whole(path)]) for _ in range(4)]
        for run in runs:
            run.run()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(rows(run.result())) for run in runs] == [1] * 4
    assert peak > 5_000_000  # that one task needs
    assert held < 500_000


def test_rows_come_while_their_file_is_scanned(tmp_path):
    path = tmp_path / "large.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"type":"user"}\n' * 1_000_000))
    results = run_tasks(PROGRAM, [[whole(path)]], 1)
    run = next(results)
    batches = run.batches()
    taken = [next(batches)]
    time.sleep(0.3)
    assert not run._has_ended.is_set()  # it waits; two batches are not taken yet
    taken += batches
    assert [offset for batch in taken for offset in batch.columns()[1]] == list(range(0, 16_000_000, 16))
    assert run.result().counts["records"] == 1_000_000
    results.close()


@pytest.mark.parametrize("members", [1, 2])
def test_bytes_behind_gzip_data_are_reported_and_its_rows_are_given(tmp_path, members):
    path = tmp_path / "a.jsonl.gz"
    packed = gzip.compress(b'{"type":"user"}\n' * 200_000) * members
    for behind, problems in ((b"garbage", [GARBAGE]), (bytes(512), [])):
        path.write_bytes(packed + behind)
        result = scan_task(PROGRAM, [whole(path)])
        assert sum(map(len, result.batches)) == 200_000 * members
        assert [problem.reason for problem in result.problems] == problems
        with tailhook.open(path) as transcript:
            assert next(transcript.reversed()).type == "user"
    path.write_bytes(packed[:-1])
    assert "no end" in scan_task(PROGRAM, [whole(path)]).problems[0].reason


def test_a_program_that_ends_does_not_wait_for_rows_that_are_not_taken(tmp_path):
    path = tmp_path / "large.jsonl"
    path.write_bytes(b'{"type":"user"}\n' * 1_000_000)
    code = "import sys, tailhook; rows = iter(tailhook.scan(sys.argv[1], 'records')); print(len(next(rows)) > 0)"
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, timeout=HANGS_S, check=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_rows_of_a_huge_file_take_little_memory(tmp_path):
    said = '{"type":"assistant","sessionId":"s","message":{"id":"m","content":"' + "error " * 200 + '"}}\n'
    # 76 MB of text; the offsets of 3 million matches take more than that.
    for table, lines, rows in (("records", 60_000, 60_000), ("matches", 15_000, 3_000_000)):
        (tmp_path / "all.jsonl.gz").write_bytes(gzip.compress((said * lines).encode(), 1))
        found, mebibytes = rows_and_memory(tmp_path, table)
        assert found == rows
        assert 0 < mebibytes <= 64


def rows_and_memory(folder, table):
    """Return the number of rows of a scan in a process of its own, and the mebibytes that it takes."""
    code = (
        # Not `getrusage`: its peak is at least the parent process's.
        "import pathlib, sys, tailhook; list(tailhook.scan(sys.argv[1] + '/none', 'records'));"
        "peak = lambda: int(pathlib.Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]);"
        "before = peak();"
        "questions = {'records': {'columns': ['path', 'text']}, 'matches': {'patterns': ['error']}};"
        "question = questions.get(sys.argv[2], {});"
        "rows = sum(map(len, tailhook.scan(sys.argv[1], sys.argv[2], workers=1, **question)));"
        "print(rows, (peak() - before) // 1024)"
    )
    argv = [sys.executable, "-c", code, folder, table]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=HANGS_S, check=True)
    found, mebibytes = map(int, done.stdout.split())
    return found, mebibytes


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_tool_uses_of_many_files_take_little_memory(tmp_path):
    use = (
        '{"type":"assistant","sessionId":"s","message":{"content":[{"type":"tool_use","id":"t%d","name":"Bash","input":'
        '{"command":"' + "echo " * 100 + '"}}]}}\n'
        '{"type":"user","sessionId":"s","message":{"content":[{"type":"tool_result","tool_use_id":"t%d"}]}}\n'
    )
    lines = "".join(use % (number, number) for number in range(1000))
    for number in range(60):
        (tmp_path / f"{number}.jsonl").write_text(lines)
    found, mebibytes = rows_and_memory(tmp_path, "tools")
    assert found == 60_000
    assert 0 < mebibytes <= 64


def test_a_task_that_is_stopped_ends_in_the_middle_of_a_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"type":"user"}\n')
    scan = RangeScan(PROGRAM)
    scan.stop()
    result = scan_task(PROGRAM, [whole(path)], scan)
    assert rows(result) == []
    assert result.counts["files"] == 0


def wait_for_threads():
    deadline = time.monotonic() + HANGS_S
    while any(thread.name.startswith("tailhook-scan") for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.005)


# ---- other hosts -------------------------------------------------------------

META = b'{"type":"session_meta","payload":{"id":"s","cwd":"/p"}}\n'
SAID = b'{"type":"response_item","payload":{"type":"message","role":"user","content":"%b"}}'


def test_a_long_line_of_another_host_is_reported_and_skipped(tmp_path):
    path = tmp_path / "rollout.jsonl"
    longest = MAX_SCANNED_LINE_BYTES - len(SAID % b"")
    lines = [META, SAID % (b"a" * longest) + b"\n", SAID % (b"a" * (longest + 1)) + b"\n", SAID % b"end"]
    path.write_bytes(b"".join(lines))
    size = sum(map(len, lines))
    offsets = [0, len(META), size - len(lines[3])]
    for edges in ([0, None], [0, 1, len(META), size - 20, None]):
        results = [scan_task(PROGRAM, [FileRange(str(path), *part, size)]) for part in pairwise(edges)]
        assert [row[1] for result in results for row in rows(result)] == offsets
        assert sum(result.counts["long_lines"] for result in results) == 1


def test_the_session_is_not_looked_for_behind_a_long_line_that_begins_the_file(tmp_path):
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        for _ in range(3):
            file.write(b"a" * MAX_SCANNED_LINE_BYTES)
    with path.open("rb", buffering=0) as file:
        assert local.find_session(file) is None
        assert file.tell() <= MAX_SCANNED_LINE_BYTES + 2 * local.LINE_BLOCK_BYTES


def test_a_task_of_another_hosts_file_is_stopped_in_the_middle(tmp_path, monkeypatch):
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(META + (SAID % b"a" + b"\n") * 100)
    scan = RangeScan(PROGRAM)

    def lines_until_stopped(*arguments):
        for number, line in enumerate(lines_in(*arguments)):
            if number == 5:
                scan.stop()
            yield line

    monkeypatch.setattr(local, "lines_in", lines_until_stopped)
    assert len(rows(scan_task(PROGRAM, [whole(path)], scan))) == 5


def test_a_line_of_another_host_in_which_no_text_can_match_is_not_translated(tmp_path):
    path = tmp_path / "rollout.jsonl"
    turn = b'{"type":"turn_context","payload":{"cwd":"/q"}}\n'
    path.write_bytes(META + SAID % b"other" + b"\n" + turn + SAID % b"a T\\u004fDO" + b"\n" + SAID % b"a TODO")
    scan = tailhook.scan(path, patterns=["TODO"])
    assert [(row.project, row.start) for row in scan.rows()] == [("/q", 2), ("/q", 2)]
    assert scan.report.records == 4


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_record_of_joined_transcripts_decides_the_host(tmp_path, order):
    claude = b'{"type":"user","uuid":"u","sessionId":"c"}\n'
    path = tmp_path / "joined.jsonl"
    path.write_bytes(b"\n" + b"".join([META, claude][::order]))
    program = ScanProgram(table="records", columns=["host", "session_id"])
    host, session = ("codex", "s") if order == 1 else ("claude-code", "c")
    assert set(rows(scan_task(program, [whole(path)]))) == {(host, session)}
    with tailhook.open(path) as transcript:
        assert transcript.host == host


def test_the_host_of_a_session_without_records_does_not_depend_on_the_order_of_its_files(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"{broken\n")
    (batch,) = scan_task(ScanProgram(table="sessions", columns=SESSION_LINE), [whole(path)]).batches
    line = SessionLines(*batch.columns())
    files = [line._replace(path=["/b.jsonl"], host=["codex"]), line._replace(path=["/a.jsonl"], host=["gemini"])]
    for order in (files, files[::-1]):
        total = SessionTotals()
        for lines in order:
            total.add(lines, "s")
        (row,) = session_rows({"s": total}, [])
        assert (row.host, row.path) == ("gemini", "/a.jsonl")


def test_the_report_is_that_of_the_newest_iteration(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"type":"user"}\n' * 5)
    scan = tailhook.scan([tmp_path, tmp_path / "absent"], "records")
    older = iter(scan)
    next(older)
    newer = iter(scan)
    next(newer)
    assert list(older) == []
    assert scan.report.records == 0
    assert scan.report.seconds is None
    assert list(newer) == []
    assert (scan.report.records, scan.report.files, len(scan.report.skipped)) == (5, 1, 1)
    assert scan.report.seconds is not None


def test_what_an_app_sends_as_a_person_is_not_the_persons_own_words(tmp_path):
    texts = ["<ci-monitor-event>We decided.", " <create-pr-command>We decided.", "We decided <ci-monitor-event>."]
    contents = [*texts, [{"type": "text", "text": texts[0]}]]
    records = [
        {"type": role, "uuid": f"{role}-{number}", "sessionId": "s", "message": {"role": role, "content": content}}
        for role in ("user", "human", "assistant")
        for number, content in enumerate(contents)
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    found = tailhook.scan(path, patterns=["decided"], columns=["offset", "role"]).rows()
    assert [row.role for row in found] == ["user", "human", *["assistant"] * 4]
    (session,) = tailhook.scan(path, "sessions").rows()
    assert (session.messages, session.prompts) == (6, 2)
    everywhere = tailhook.scan(path, patterns=["decided"], all_text=True).rows()
    assert sum(1 for _ in everywhere) == 12
    files = [("s.jsonl", path.read_bytes())]
    wanted = oracle.rows("matches", files, oracle.Question({"decided": "decided"}))
    assert [row["role"] for row in wanted] == ["user", "human", *["assistant"] * 4]
    assert [row["messages"] for row in oracle.rows("sessions", files, oracle.Question())] == [6]
