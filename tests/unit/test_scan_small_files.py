"""Small files: the core reads many at a time, gives the same rows as one by one, and works little for each."""

import gzip
import json
import sys
import tracemalloc

import pytest

from tailhook._core import ScanProgram
from tailhook.fleet.listing import find_source_files
from tailhook.fleet.local import SHORTER, scan_task
from tailhook.fleet.plan import TASK_FILES, FileRange, files_since, make_tasks
from tailhook.fleet.reduce import SESSION_LINE

PROGRAMS = {
    table: ScanProgram(table=table, columns=columns)
    for table, columns in {
        "records": ("path", "session_id", "host", "offset", "uuid", "text"),
        "sessions": SESSION_LINE,
    }.items()
}
RECORD = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "hé"}}
LINE = json.dumps(RECORD).encode()


def with_members(**members):
    return json.dumps({**RECORD, **members}, ensure_ascii=False).encode()


CONTENTS = {
    "one line": LINE + b"\n",
    "no newline": LINE + b"\n" + LINE,
    "only a line without newline": LINE,
    "two sessions": LINE + b"\n" + with_members(sessionId="other") + b"\n",
    "a later record without a session": LINE + b'\n{"type":"summary"}\n',
    "no id": with_members(uuid=None) + b"\n" + LINE + b"\n",
    "an empty id": with_members(uuid="") + b"\n",
    "an empty session": with_members(sessionId="") + b"\n" + LINE + b"\n",
    "an escaped session": with_members(sessionId='a"b') + b"\n" + b'{"type":"user"}\n',
    "a session beyond ASCII": with_members(sessionId="é漢") + b"\n" + b'{"type":"user"}\n',
    "a session that is not UTF-8": LINE.replace(b'"s"', b'"\xff"') + b"\n",
    "a long session": with_members(sessionId="s" * 5000) + b"\n" + LINE + b"\n",
    "a summary first": b'{"type":"summary","summary":"x"}\n' + LINE + b"\n",
    "blank lines": b"\n\r\n" + LINE + b"\r\n\n",
    "a byte order mark": b"\xef\xbb\xbf" + LINE + b"\n",
    "a torn line": b'{"type":"us\n' + LINE + b"\n",
    "something before the record": b"x" + LINE + b"\n",
    "another host": b'{"timestamp":"t","type":"session_meta","payload":{"id":"c","cwd":"/p"}}\n'
    b'{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":'
    b'[{"type":"input_text","text":"hi"}]}}\n',
    "nothing": b"",
    "compressed": gzip.compress(LINE + b"\n"),
    "UTF-16": (LINE + b"\n").decode().encode("utf-16"),
    "larger than a block": (LINE + b"\n") * 3000,
}


def found(parts, table):
    """Return the rows, counts and problems of a task."""
    result = scan_task(PROGRAMS[table], parts)
    rows = [row for batch in result.batches for row in zip(*batch.columns(), strict=True)]
    return rows, result.counts, [problem.reason for problem in result.problems]


@pytest.mark.parametrize("table", PROGRAMS)
@pytest.mark.parametrize("content", CONTENTS)
def test_a_small_file_gives_the_rows_that_it_gives_by_itself(tmp_path, content, table):
    parts, alone = [], []
    for number, data in enumerate((LINE + b"\n", CONTENTS[content], LINE + b"\n")):
        path = tmp_path / f"{number}é.jsonl"
        path.write_bytes(data)
        parts.append(FileRange(str(path), 0, len(data), len(data)))
        alone.append(FileRange(str(path), 0, None, len(data)))  # with an open end, Python reads it
    assert found(parts, table) == found(alone, table)


def test_a_small_file_that_changed_since_it_was_found_is_read_as_any_other(tmp_path):
    paths = [tmp_path / f"{name}.jsonl" for name in ("shorter", "longer", "gone", "a link")]
    for path in paths:
        path.write_bytes((LINE + b"\n") * 2)
    parts = [FileRange(str(path), 0, 2 * len(LINE) + 2, 2 * len(LINE) + 2) for path in paths]
    paths[0].write_bytes(LINE + b"\n")
    paths[1].write_bytes((LINE + b"\n") * 3)
    paths[2].unlink()
    paths[3].unlink()
    paths[3].symlink_to(paths[1])
    rows, counts, problems = found(parts, "records")
    assert [row[0] for row in rows] == [str(paths[0]), *[str(paths[1])] * 2, *[str(paths[3])] * 2]
    assert counts["files"] == 3
    assert problems[0] == SHORTER
    assert "No such file" in problems[1]


def test_a_scan_that_is_stopped_reads_no_more_small_files(tmp_path):
    from tailhook._core import RangeScan

    (tmp_path / "a.jsonl").write_bytes(LINE + b"\n")
    scan = RangeScan(PROGRAMS["records"])
    scan.stop()
    task = [FileRange(str(tmp_path / "a.jsonl"), 0, len(LINE) + 1, len(LINE) + 1)]
    assert scan_task(PROGRAMS["records"], task, scan).counts["files"] == 0


def calls_of(function):
    """Call a function; return the number of calls inside, by name, and its result."""
    calls = {}

    def note(frame, event, argument):
        if event in ("call", "c_call"):
            name = frame.f_code.co_name if event == "call" else argument.__name__
            calls[name] = calls.get(name, 0) + 1

    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return calls, result


def test_a_small_file_is_listed_and_read_without_python(tmp_path):
    count = 500
    for number in range(count):
        (tmp_path / f"{number:03}.jsonl").write_bytes(LINE + b"\n")
    calls, files = calls_of(lambda: find_source_files([tmp_path], []))
    assert len(files) == count
    assert sum(calls.values()) < count / 4
    (task,) = make_tasks(files)
    calls, result = calls_of(lambda: scan_task(PROGRAMS["records"], task))
    assert result.counts["records"] == count
    assert sum(calls.values()) < count * 1.2  # the size of each is added up


def test_a_file_that_was_found_takes_little_more_memory_than_its_path(tmp_path):
    count = 512
    for number in range(count):
        (tmp_path / f"{number:03}.jsonl").touch()
    find_source_files([tmp_path], [])  # what is loaded once
    tracemalloc.start()
    try:
        files = files_since(find_source_files([tmp_path], []), "matches", None)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(files) == count
    assert size < count * (2 * len(str(tmp_path / "000.jsonl")) + 50)  # the paths have room to grow


def test_a_task_has_few_enough_files_that_its_memory_is_bounded():
    files = [(f"{number}.jsonl", 1, 0.0, None, 0, "") for number in range(TASK_FILES * 2 + 1)]
    assert [len(task) for task in make_tasks(files)] == [TASK_FILES, TASK_FILES, 1]
