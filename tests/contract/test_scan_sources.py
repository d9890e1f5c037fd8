"""Sources as they should not be: `tailhook scan` reports them, prints the rows of the others, and never a traceback."""

import gzip
import json
import os
from random import Random

import pytest
from support.host import tailhook
from support.scan_tables import TABLES
from support.transcript_trees import OTHER_SESSIONS

import tailhook as library
from tailhook.fleet.columns import TABLE_COLUMNS
from tailhook.fleet.local import SHORTER
from tailhook.fleet.plan import make_tasks
from tailhook.transcripts.sources import import_zstd

GOOD = b'{"type":"user","sessionId":"good","uuid":"u","timestamp":"2026-11-01T12:00:00Z","message":{"content":"it"}}\n'


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a good transcript."""
    found = tmp_path / "transcripts"
    found.mkdir()
    (found / "good.jsonl").write_bytes(GOOD)
    return found


@pytest.fixture
def scan(tmp_path, folder):
    """Run `tailhook scan`; return the rows and the lines of stderr."""

    def run(*words, sources=("transcripts",), exit_code=0):
        words = words or ("--table", "records", "--columns", "path,offset,session_id,text")
        done = tailhook("scan", *words, *map(str, sources), env={"HOME": str(tmp_path)}, cwd=tmp_path)
        assert "Traceback" not in done.stderr
        assert done.returncode == exit_code, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.splitlines()

    return run


# ---- what is not a file, or is one twice -----------------------------------------


def test_links_in_a_folder_are_not_followed_and_one_that_is_named_is(scan, folder):
    (folder / "link.jsonl").symlink_to("good.jsonl")
    (folder / "loop").symlink_to(".")
    (folder / "other-loop").symlink_to("..")
    (folder / "self.jsonl").symlink_to("self.jsonl")
    assert len(scan()[0]) == 1
    paths = [row["path"] for row in scan(sources=("transcripts", "transcripts/link.jsonl"))[0]]
    assert paths == ["transcripts/good.jsonl", "transcripts/link.jsonl"]


@pytest.mark.parametrize(
    ("pattern", "count"),
    [("**/*.jsonl", 2), ("**/below/*.jsonl", 1), ("**/**/good.jsonl", 1), ("*/**", 1), ("**/absent.jsonl", 0)],
)
def test_a_glob_ends_in_spite_of_links_to_parents(tmp_path, folder, pattern, count):
    (folder / "loop").symlink_to(".")
    (folder / "other-loop").symlink_to("..")
    (folder / "below").mkdir()
    (folder / "below" / "b.jsonl").write_bytes(GOOD)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "good.jsonl").write_bytes(GOOD)
    found = library.scan(f"{folder}/{pattern}", "records")
    assert len({row.path for row in found.rows() if "loop" not in row.path}) == count
    assert [problem.reason for problem in found.report.skipped] == ["no file matches"] * (count == 0)


def test_a_link_to_itself_and_a_device_are_reported(scan, folder):
    (folder / "self.jsonl").symlink_to("self.jsonl")
    rows, errors = scan(sources=("transcripts", "transcripts/self.jsonl", "/dev/zero"), exit_code=1)
    assert len(rows) == 1
    assert errors == [
        "tailhook: transcripts/self.jsonl: Too many levels of symbolic links",
        "tailhook: /dev/zero: it is not a regular file",
    ]


def test_a_file_counts_once_for_a_path_and_twice_for_two_names(scan, folder):
    os.link(folder / "good.jsonl", folder / "other.jsonl")
    assert len(scan(sources=("transcripts", "transcripts/good.jsonl", "transcripts/*"))[0]) == 2


@pytest.mark.parametrize("name", ["new\nline.jsonl", "\x1b[2J.jsonl", "a\tb\r.jsonl", " .jsonl", "\ufffd.jsonl"])
@TABLES
def test_a_name_may_have_any_characters(scan, folder, name, table):
    (folder / name).write_bytes(GOOD.replace(b'"good"', b'""'))
    words = ("--table", table, *(("--pattern", "it=it") if table == "matches" else ()))
    rows, errors = scan(*words)
    if table not in ("tools", "usage"):
        assert len(rows) == 2
        assert {row["session_id"] for row in rows} == {"good", name.removesuffix(".jsonl")}
    assert errors == []


@TABLES
def test_a_file_whose_name_is_not_utf8_is_reported_and_gives_no_row_with_another_path(scan, folder, table):
    with open(os.path.join(os.fsencode(folder), b"not-\xff-utf8.jsonl"), "wb") as file:
        file.write(GOOD.replace(b'"good"', b'""'))
    words = ("--table", table, *(("--pattern", "it=it") if table == "matches" else ()))
    rows, (error,) = scan(*words, exit_code=1)
    assert {row["session_id"] for row in rows} <= {"good"}
    assert error.endswith("utf8.jsonl: its path is not UTF-8, so no row can name it: rename it")


def test_a_name_that_steers_a_terminal_is_escaped_in_a_report(scan, folder):
    (folder / "\x1b[2J\n.jsonl").mkdir()
    os.mkfifo(folder / "\x1b[2J\n.jsonl" / "b.jsonl")
    _, (error,) = scan(exit_code=1)
    assert error.endswith("b.jsonl: it is not a regular file")
    assert "\x1b" not in error


# ---- what changes while it is read -----------------------------------------------


def test_what_is_appended_while_the_scan_runs_is_left_to_the_next_one(folder):
    path = folder / "good.jsonl"

    def append(progress):
        with path.open("ab") as file:
            file.write(GOOD * 3)

    scan = library.scan(folder, "records", progress=append)
    assert [row.offset for row in scan.rows()] == [0]
    assert scan.report.skipped == ()


def test_a_line_that_is_completed_while_the_scan_runs_is_whole(folder):
    path = folder / "good.jsonl"
    path.write_bytes(GOOD + GOOD[:30])

    def complete(progress):
        path.write_bytes(GOOD + GOOD)

    scan = library.scan(folder, "records", progress=complete)
    assert [row.offset for row in scan.rows()] == [0, len(GOOD)]
    assert scan.report.broken_lines == 0


@pytest.mark.parametrize("size", [0, len(GOOD), len(GOOD) + 30])
@pytest.mark.parametrize("task_bytes", [1 << 20, 50])
def test_a_file_that_is_truncated_while_the_scan_runs_is_reported_and_its_rows_are_kept(
    folder, size, task_bytes, monkeypatch
):
    path = folder / "good.jsonl"
    path.write_bytes(GOOD * 3)
    (folder / "other.jsonl").write_bytes(GOOD)
    monkeypatch.setattr("tailhook.fleet.scan.make_tasks", lambda files: make_tasks(files, task_bytes))
    scan = library.scan(folder, "records", progress=lambda progress: progress.files or os.truncate(path, size))
    assert [os.path.basename(row.path) for row in scan.rows()] == ["good.jsonl"] * (size // len(GOOD)) + ["other.jsonl"]
    assert scan.report.skipped == ((str(path), SHORTER),)
    assert scan.report.bytes == size + len(GOOD)


# ---- compressed files ------------------------------------------------------------


def zstd_frames(data, size):
    compress = import_zstd("zst").compress
    return b"".join(compress(data[at : at + size]) for at in range(0, len(data), size))


def test_a_file_of_ten_thousand_zstd_frames_is_one_transcript(scan, folder):
    (folder / "many.jsonl.zst").write_bytes(zstd_frames(GOOD * 1000, len(GOOD) // 10))
    assert len(scan()[0]) == 1001


@pytest.mark.parametrize("name", ["cut.jsonl.gz", "cut.jsonl.zst", "cut.jsonl"])
@pytest.mark.parametrize("left", [20, 0.5, -1])
def test_a_compressed_file_that_is_cut_anywhere_is_reported(scan, folder, name, left):
    data = zstd_frames(GOOD * 1000, 10_000) if name.endswith(".zst") else gzip.compress(GOOD * 1000)
    (folder / name).write_bytes(data[: int(len(data) * left) if isinstance(left, float) else left])
    rows, (error,) = scan(exit_code=1)
    assert len(rows) == 1
    assert error.startswith(f"tailhook: transcripts/{name}: ")


# ---- hostile JSON ----------------------------------------------------------------

FIRST = {host: session(Random(0)).partition(b"\n")[0] + b"\n" for host, session in OTHER_SESSIONS.items()}
HOSTS = {"claude-code": b"", **FIRST}  # the first line of a file
DEEP = 100_000
HOSTILE = {
    "deep arrays": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep and torn": b'{"message":{"content":' + b"[" * DEEP,
    "deep in a tool": b'{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":'
    + b"[" * DEEP + b"]" * DEEP + b"}]}}",
    "the same names": b'{"type":"user","type":"assistant","message":{"id":1,"id":"m","content":"a","content":"it"}}',
    "numbers as ids": b'{"type":5,"sessionId":7,"uuid":1e999,"message":{"id":2,"role":3,"content":4},"cwd":[]}',
    "NaN": b'{"type":"assistant","message":{"usage":{"output_tokens":NaN}}}',
    "huge numbers": b'{"type":"assistant","message":{"usage":{"output_tokens":' + b"9" * 5000 + b"}}}",
    "lone surrogates": b'{"type":"user","uuid":"\\udc00","sessionId":"\\ud800x","message":{"content":"it \\ud83d"}}',
    "not UTF-8": b'{"type":"user","message":{"content":"it \xff"},"cwd":"\xff"}',
    "NULs": b"\0" * 5000 + b'{"type":"user","message":{"content":"it"}}',
    "years": b'{"type":"user","timestamp":"99999-01-01T00:00:00Z","message":{"content":"it"}}',
    "payloads": b'{"type":"response_item","payload":{"type":"function_call","name":[],"arguments":"[[[[1e999"}}',
    "a list of calls": b'{"type":"gemini","id":{},"toolCalls":[1,null,{"args":[]},{"status":"error"}],"tokens":[]}',
    "odd data": b'{"type":"assistant.message","data":{"toolRequests":{},"content":{}},"agentId":1}',
}  # fmt: skip


@TABLES
@pytest.mark.parametrize("host", HOSTS)
def test_hostile_json_costs_no_other_row(folder, table, host):
    for number, line in enumerate(HOSTILE.values()):
        (folder / f"{number}.jsonl").write_bytes(HOSTS[host] + line + b"\n" + line)
    found = library.scan(folder, table, patterns=["it"] if table == "matches" else (), columns=TABLE_COLUMNS[table])
    rows = list(found.rows())
    assert found.report.skipped == ()
    if table not in ("tools", "usage"):
        assert "good" in {row.session_id for row in rows}


def test_hostile_json_is_printed(scan, folder):
    (folder / "hostile.jsonl").write_bytes(b"\n".join(HOSTILE.values()))
    for form in ("jsonl", "csv", "table"):
        done = tailhook(
            *("scan", "transcripts", "--table", "records", "--format", form),
            env={"HOME": str(folder)},
            cwd=folder.parent,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)
        assert "lines are not valid records" in done.stderr


@pytest.mark.parametrize("host", HOSTS)
def test_a_line_of_100_mb_is_reported(scan, folder, host):
    with (folder / "long.jsonl").open("wb") as file:
        file.write(HOSTS[host])
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + GOOD)
    rows, errors = scan()
    assert len(rows) == 2 + bool(HOSTS[host])
    assert errors == ["tailhook: 1 line is longer than 16 MiB and was skipped"]
