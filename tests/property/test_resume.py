"""A scan that keeps its rows in a folder: a later run reads only news, and no row is lost or counted twice."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from support.host import HANGS_S
from support.long_runs import IS_LONG, sample
from support.range_server import bucket
from support.scan_tables import TABLES
from support.transcript_trees import grow_tree, mixed_files

import tailhook
from tailhook.fleet import plan, resume
from tailhook.fleet.columns import TABLE_COLUMNS

pytest.importorskip("pyarrow")


def line(number, session="s"):
    record = {
        "type": "assistant",
        "sessionId": session,
        "uuid": f"{session}{number}",
        "timestamp": f"2026-11-01T12:00:{number % 60:02}Z",
        "message": {
            "id": f"m{session}{number}",
            "role": "assistant",
            "model": "m",
            "content": f"TODO {number}",
            "usage": {"input_tokens": 1, "output_tokens": number},
        },
    }
    return json.dumps(record).encode() + b"\n"


CODEX = b'{"type":"session_meta","payload":{"id":"s","cwd":"/p"}}\n'


def codex_line(number):
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"TODO {number}"}]}
    record = {"type": "response_item", "timestamp": f"2026-11-01T12:00:{number % 60:02}Z", "payload": message}
    return json.dumps(record).encode() + b"\n"


def question(sources, table="matches", **options):
    found = {"patterns": ["the ", "TODO"], "in_code": None} if table == "matches" else {}
    return tailhook.scan(sources, table, workers=2, **found, **options)


def rows_of(asked):
    """Return the rows, sorted, and check that all sources could be read."""
    found = sorted(map(repr, asked.rows()))
    assert asked.report.skipped == ()
    return found


@pytest.fixture
def small_tasks(monkeypatch):
    original = plan.make_tasks
    monkeypatch.setattr(resume, "make_tasks", lambda files: original(files, 1 << 10))


@pytest.fixture
def opened(monkeypatch):
    """Return the list of the scanned paths."""
    paths = []
    original = resume.run_tasks

    def run(program, tasks, workers, **options):
        paths.extend((Path(part.path).name, part.start) for task in tasks for part in task)
        return original(program, tasks, workers, **options)

    monkeypatch.setattr(resume, "run_tasks", run)
    return paths


@TABLES
@pytest.mark.parametrize("seed", sample(range(3), 3))
def test_files_that_grow_between_runs_give_the_rows_of_one_run(tmp_path, table, seed, small_tasks):
    random = Random(seed)
    sources = tmp_path / "sources"
    files = [(path, data) for path, data in (*grow_tree(random).files, *mixed_files(random))]
    cuts = [sorted(random.randrange(len(data) + 1) for _ in range(3)) for _, data in files]
    for run in range(4):
        for (path, data), ends in zip(files, cuts, strict=True):
            file = sources / path.strip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            if random.random() < 0.7 or run == 3:
                is_whole = run == 3 or path.endswith(plan.COMPRESSED)
                file.write_bytes(data if is_whole else data[: ends[run]])
        assert rows_of(question(sources, table, resume=tmp_path / "kept")) == rows_of(question(sources, table))


@TABLES
def test_a_run_that_ends_anywhere_goes_on(tmp_path, table, small_tasks, monkeypatch):
    sources = tmp_path / "sources"
    sources.mkdir()
    for number in range(4):
        (sources / f"{number}.jsonl").write_bytes(b"".join(line(n, str(number)) for n in range(4 * number)))
    wanted = rows_of(question(sources, table))
    steps = 0

    def ending_at(step, function):
        def call(*arguments, **options):
            nonlocal steps
            steps += 1
            if steps == step:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        return call

    for step in range(1, 200, 1 if IS_LONG else 7):
        folder = tmp_path / f"kept{step}"
        steps = 0
        with monkeypatch.context() as patches:
            for name in ("fsync", "truncate", "replace"):
                patches.setattr(os, name, ending_at(step, getattr(os, name)))
            patches.setattr(Path, "replace", ending_at(step, Path.replace))
            try:
                question(sources, table, resume=folder).update()
            except KeyboardInterrupt:
                pass
            else:
                break
        assert rows_of(question(sources, table, resume=folder)) == wanted
        assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    assert step > 10


def test_a_run_that_is_killed_goes_on(tmp_path):
    sources, folder = tmp_path / "sources", tmp_path / "kept"
    sources.mkdir()
    for number in range(20):
        (sources / f"{number}.jsonl").write_bytes(b"".join(line(n, str(number)) for n in range(300)))
    program = (
        "import itertools, os, signal, sys, tailhook; from tailhook.fleet import plan, resume; make = plan.make_tasks\n"
        "resume.make_tasks = lambda files: make(files, 1 << 14)\n"
        "sync, calls = os.fsync, itertools.count(1)\n"
        "os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL) if next(calls) == int(sys.argv[3]) else sync(fd)\n"
        "tailhook.scan(sys.argv[1], 'usage', resume=sys.argv[2], workers=2).update()\n"
    )
    kills = 0
    for calls in range(9, 10**6, 5 if IS_LONG else 37):  # an odd step: every other kill comes at the other of two calls
        argv = [sys.executable, "-c", program, str(sources), str(folder), str(calls)]
        run = subprocess.run(argv, timeout=HANGS_S, check=False)
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL
        kills += 1
    assert kills >= 3
    assert rows_of(question(sources, "usage", resume=folder)) == rows_of(question(sources, "usage"))


def test_an_unchanged_file_is_not_opened_and_a_grown_one_is_read_from_its_old_offset(tmp_path, opened):
    sources, folder = tmp_path / "sources", tmp_path / "kept"
    sources.mkdir()
    for name in "abc":
        (sources / f"{name}.jsonl").write_bytes(line(1, name))
    (sources / "d.jsonl.gz").write_bytes(gzip.compress(line(1, "d")))
    asked = question(sources, resume=folder)
    assert len(rows_of(asked)) == 4
    assert [path for path, _ in opened] == ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl.gz"]
    assert asked.report.files == 4
    opened.clear()
    assert len(rows_of(asked)) == 4
    assert opened == []
    assert asked.report.unchanged_files == 4
    (sources / "b.jsonl").write_bytes(line(1, "b") + line(2, "b"))
    assert len(rows_of(asked)) == 5
    assert opened == [("b.jsonl", len(line(1, "b")))]


@pytest.mark.parametrize(
    "new",
    [line(2, "b"), line(7, "b") + line(8, "b"), line(1, "b")[:-9], b"", b'{"type":"user"}\n' * 50],
    ids=["another line", "two other lines", "cut off", "emptied", "other records"],
)
@TABLES
def test_a_file_with_another_content_is_read_again_and_its_old_rows_are_gone(tmp_path, table, new):
    sources, folder = tmp_path / "sources", tmp_path / "kept"
    sources.mkdir()
    for name in "abc":
        (sources / f"{name}.jsonl").write_bytes(line(1, name))
    asked = question(sources, table, resume=folder)
    before = rows_of(asked)
    (sources / "b.jsonl").write_bytes(new)
    os.utime(sources / "b.jsonl", (1, 1))
    after = rows_of(question(sources, table))
    assert rows_of(asked) == after
    assert before != after or table in ("tools", "sessions")


def test_a_line_that_was_torn_counts_once_when_it_is_whole(tmp_path):
    sources, folder = tmp_path / "sources", tmp_path / "kept"
    sources.mkdir()
    whole = line(1) + line(2)
    for end in (*range(len(line(1)) - 3, len(line(1)) + 3), len(whole) - 1, len(whole)):
        (sources / "s.jsonl").write_bytes(whole[:end])
        for table in TABLE_COLUMNS:
            kept = rows_of(question(sources, table, resume=folder / table))
            assert kept == rows_of(question(sources, table)), (end, table)


def test_a_session_that_becomes_known_later_is_that_of_the_earlier_records_too(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(b'{"type":"summary"}\n')
    asked = question(tmp_path / "t.jsonl", "records", resume=tmp_path / "kept")
    assert [row.session_id for row in asked.rows()] == ["t"]
    with (tmp_path / "t.jsonl").open("ab") as file:
        file.write(line(1))
    assert [row.session_id for row in asked.rows()] == ["s", "s"]


def test_the_rows_of_a_file_that_is_gone_stay(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(line(1))
    asked = question(str(tmp_path / "*.jsonl"), "usage", resume=tmp_path / "kept")
    before = rows_of(asked)
    (tmp_path / "t.jsonl").rename(tmp_path / "t.txt")
    (tmp_path / "u.jsonl").write_bytes(line(2))
    assert len(rows_of(asked)) == 2
    assert before[0] in rows_of(asked)


def test_a_part_that_is_gone_is_made_again(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(line(1, name))
    asked = question(str(tmp_path / "*.jsonl"), resume=tmp_path / "kept")
    before = rows_of(asked)
    next((tmp_path / "kept").glob("part-*")).unlink()
    assert rows_of(asked) == before


@pytest.mark.parametrize("table", ["records", "usage"])
@pytest.mark.parametrize("kept_bytes", [0, 100])
def test_a_part_that_was_cut_off_is_made_again(tmp_path, table, kept_bytes):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(line(1, name))
    asked = question(str(tmp_path / "*.jsonl"), table, resume=tmp_path / "kept")
    before = rows_of(asked)
    (part,) = (tmp_path / "kept").rglob("part-*")
    os.truncate(part, kept_bytes)
    (tmp_path / "c.jsonl").write_bytes(line(2, "c"))
    after = rows_of(asked)
    assert len(after) == 3
    assert set(before) < set(after)
    assert rows_of(asked) == after


def test_a_manifest_without_the_sizes_of_parts_is_read(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(line(1))
    asked = question(str(tmp_path / "*.jsonl"), resume=tmp_path / "kept")
    before = rows_of(asked)
    manifest = tmp_path / "kept" / "manifest.ndjson"
    entries = [json.loads(entry) for entry in manifest.read_bytes().splitlines()]
    assert sum(len(entry.pop("sizes", {})) for entry in entries) == 1
    manifest.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert rows_of(asked) == before


def test_a_file_that_cannot_be_read_is_a_problem_and_is_read_by_a_later_run(tmp_path):
    packed = gzip.compress(line(1, "b"))
    (tmp_path / "a.jsonl").write_bytes(line(1, "a"))
    (tmp_path / "b.jsonl.gz").write_bytes(packed[:-9])
    asked = question([tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"], resume=tmp_path / "kept")
    assert len(list(asked.rows())) == 1
    assert [Path(problem.path).name for problem in asked.report.skipped] == ["b.jsonl.gz"]
    (tmp_path / "b.jsonl.gz").write_bytes(packed)
    assert len(rows_of(asked)) == 2


def test_another_question_another_folder_and_a_second_run_are_refused(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(line(1))
    folder = tmp_path / "kept"
    rows_of(question(tmp_path / "t.jsonl", "records", resume=folder))
    with pytest.raises(
        tailhook.ResumeError, match=r"kept has the rows of another question \(--role was all and is user now"
    ):
        question(tmp_path / "t.jsonl", "records", roles=["user"], resume=folder).update()
    with pytest.raises(tailhook.ResumeError, match=r"\(--table was records and is usage now\)"):
        question(tmp_path / "t.jsonl", "usage", resume=folder).update()
    with pytest.raises(tailhook.ResumeError, match="is not empty"):
        question(tmp_path / "t.jsonl", "usage", resume=tmp_path).update()
    described = question(None, "records")._question.described()
    with (
        resume.opened_folder(folder, described),
        pytest.raises(tailhook.ResumeError, match="another scan is writing"),
    ):
        question(tmp_path / "t.jsonl", "records", resume=folder).update()
    with pytest.raises(ValueError, match="resume needs the column path"):
        question(tmp_path, "records", columns=["type"], resume=folder)


@pytest.mark.parametrize("lines", [1, 6000])
def test_an_object_is_known_by_its_etag_and_a_grown_one_is_fetched_from_its_old_end(tmp_path, lines, opened):
    old = b"".join(line(number, "b") for number in range(lines))
    assert (len(old) > plan.HEAD_BYTES) is (lines > 1)
    with bucket({"a.jsonl": line(1, "a"), "b.jsonl": old}) as (files, asked):
        scan = question("s3://bucket", resume=tmp_path / "kept")
        assert len(rows_of(scan)) == lines + 1
        asked.clear()
        opened.clear()
        assert len(rows_of(scan)) == lines + 1
        assert asked == []
        for number in range(3):
            end = len(files["/bucket/b.jsonl"])
            files["/bucket/b.jsonl"] += line(lines + number, "b")
            assert len(rows_of(scan)) == lines + 2 + number
            size = len(files["/bucket/b.jsonl"])
            before = max(0, size - plan.MARK_BYTES)
            head = (0, min(size, plan.HEAD_BYTES))
            mark = (max(0, end - plan.MARK_BYTES), end)
            heads = [head] * (1 + (lines == 1))  # a small file's session and host are compared, too
            assert sorted(asked) == sorted([*heads, mark, (before, end - 1), (end - 1, size)])
            assert opened == [("b.jsonl", end)]
            asked.clear()
            opened.clear()
        assert rows_of(scan) == rows_of(question("s3://bucket"))
        files["/bucket/b.jsonl"] = line(9, "b")
        assert rows_of(scan) == rows_of(question("s3://bucket"))


@pytest.mark.parametrize("host", ["claude-code", "codex"])
@pytest.mark.parametrize("lines", range(12, 20) if IS_LONG else range(12, 16))  # four lines are a range
def test_a_grown_object_of_several_ranges_is_read_from_its_old_end(tmp_path, lines, host, small_tasks, opened):
    head, write = (b"", line) if host == "claude-code" else (CODEX, codex_line)
    old = head + b"".join(write(number) for number in range(lines))
    with bucket({"a.jsonl": old}) as (files, _):
        scan = question("s3://bucket", "records", resume=tmp_path / "kept")
        before = len(rows_of(scan))
        assert before >= lines
        assert len(opened) > 1
        opened.clear()
        files["/bucket/a.jsonl"] += write(lines)
        assert len(rows_of(scan)) == before + 1
        assert opened == [("a.jsonl", len(old))]
        assert rows_of(scan) == rows_of(question("s3://bucket", "records"))


@pytest.mark.parametrize("host", ["claude-code", "codex"])
@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_an_object_with_another_content_of_which_the_first_line_is_as_long_is_read_again(tmp_path, scheme, host):
    head = b"" if host == "claude-code" else CODEX
    with bucket({"a.jsonl": head + line(1, "a"), "b.jsonl": line(1, "b")}) as (files, _):
        sources = ["s3://bucket/a.jsonl", "s3://bucket/b.jsonl"]
        if scheme == "http":
            sources = [f"{os.environ['AWS_ENDPOINT_URL']}/bucket/{name}.jsonl" for name in "ab"]
        scan = question(sources, "records", resume=tmp_path / "kept")
        before = rows_of(scan)
        files["/bucket/a.jsonl"] = head + line(2, "a") + line(3, "a")
        wanted = rows_of(question(sources, "records"))
        assert rows_of(scan) == wanted != before
        files["/bucket/a.jsonl"] += line(4, "a")
        assert rows_of(scan) == rows_of(question(sources, "records"))


def test_an_object_that_was_read_in_part_and_then_replaced_is_read_again(tmp_path, small_tasks, monkeypatch):
    data = b"".join(line(number) for number in range(40))
    with bucket({"a.jsonl": data}) as (files, _):
        scan = question("s3://bucket", resume=tmp_path / "kept")
        with monkeypatch.context() as patches:
            patches.setattr(resume.PartFolder, "write_part", ending_at_second(resume.PartFolder.write_part))
            with pytest.raises(KeyboardInterrupt):
                scan.update()
        files["/bucket/a.jsonl"] = data.replace(b"TODO", b"DONE", 3) + line(41)
        assert rows_of(scan) == rows_of(question("s3://bucket"))


def ending_at_second(function):
    """Return a function that is interrupted at its second call."""
    calls = []

    def call(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return function(*arguments)

    return call


def test_an_object_that_is_replaced_while_it_is_read_is_a_problem_and_is_read_by_a_later_run(tmp_path):
    with bucket({"a.jsonl": line(1, "a"), "b.jsonl": line(1, "b")}) as (files, _):

        def replace(progress):
            files["/bucket/a.jsonl"] = line(2, "a") + line(3, "a")

        scan = question("s3://bucket", resume=tmp_path / "kept", progress=replace)
        assert len(list(scan.rows())) == 1
        assert [problem.path for problem in scan.report.skipped] == ["s3://bucket/a.jsonl"]
        assert rows_of(scan) == rows_of(question("s3://bucket"))
