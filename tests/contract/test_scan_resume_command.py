"""`tailhook scan --resume DIR` as a whole process: a later run reads only news; and every way to fail."""

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from itertools import cycle

import pyarrow.parquet
import pytest
from support.host import ENVIRONMENT, HANGS_S, tailhook
from support.library_sample import asked, said, text

import tailhook as library
from tailhook.fleet.columns import TABLE_COLUMNS

PATTERN = ("--pattern", "found=it")
LINE = json.dumps(said(2, "m-1", text("I run it first. " * 20), 3)) + "\n"


@pytest.fixture
def scan(tmp_path, folder):
    """Run `tailhook scan` on the sample or on other sources, in the folder that has it."""

    def run(*words, sources=("transcripts",), exit_code=0, **options):
        env = {"HOME": str(tmp_path), "TZ": "UTC"}
        done = tailhook("scan", *sources, *words, env=env, cwd=tmp_path, **options)
        assert done.returncode == exit_code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def kept(folder):
    """Return the rows of the Parquet files in a folder, sorted."""
    files = [pyarrow.parquet.read_table(path).to_pylist() for path in folder.glob("*.parquet")]
    return sorted(json.dumps(row, default=str) for rows in files for row in rows)


def scanned(sources, table="matches", **options):
    """Return the rows of a scan from the beginning, in the form of `kept`."""
    question = {"patterns": {"found": "it"}} if table == "matches" else {}
    rows = library.scan(sources, table, **question, **options).rows()
    return sorted(json.dumps(row._asdict(), default=str) for row in rows)


# Runs the command, but stops the process (SIGSTOP) as soon as it has written the part of this number.
STOPS_AT_PART = """
import os, signal, sys
from tailhook.cli import main
from tailhook.fleet.resume import PartFolder

number = int(sys.argv.pop(1))
write_part = PartFolder.write_part

def write_and_stop(folder, batches):
    name = write_part(folder, batches)
    if folder.last_number == number:
        os.kill(os.getpid(), signal.SIGSTOP)
    return name

PartFolder.write_part = write_and_stop
sys.exit(main())
"""


@pytest.fixture
def stopped_at_part(tmp_path):
    """Return a function that starts `tailhook scan`, and returns its process when it has written a part and stopped."""
    started = []

    def start(number, *words):
        process = subprocess.Popen(
            [sys.executable, "-c", STOPS_AT_PART, str(number), "scan", *map(str, words)],
            env={**ENVIRONMENT, "HOME": str(tmp_path)},
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture
def many(tmp_path):
    """Return a folder with many names of one file: 400 MB to read, without needing the space."""
    found = tmp_path / "many"
    found.mkdir()
    (found / "0000.jsonl").write_text(LINE * (5_000_000 // len(LINE)))
    for number in range(1, 80):
        os.link(found / "0000.jsonl", found / f"{number:04}.jsonl")
    return found


OUTPUTS = [(), ("-o", "kept"), ("--output", "./kept/", "--format", "parquet")]


@pytest.mark.parametrize(("table", "output"), zip(TABLE_COLUMNS, cycle(OUTPUTS)))
def test_the_folder_has_the_rows_and_nothing_is_printed(scan, tmp_path, monkeypatch, table, output):
    done = scan("--table", table, *(PATTERN if table == "matches" else ()), "--resume", "kept", *output)
    assert (done.stdout, done.stderr) == ("", "")
    monkeypatch.chdir(tmp_path)
    assert kept(tmp_path / "kept") == scanned("transcripts", table)
    assert kept(tmp_path / "kept")


def test_an_unchanged_file_is_not_opened(scan, tmp_path, folder):
    """Its bytes change and its size and time do not: a run that opened it would notice."""
    scan(*PATTERN, "--resume", "kept")
    before = kept(tmp_path / "kept")
    for path in folder.rglob("*.jsonl"):
        facts = path.stat()
        path.write_bytes(b"x" * facts.st_size)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    done = scan(*PATTERN, "--resume", "kept")
    assert done.stderr == ""
    assert kept(tmp_path / "kept") == before


def test_a_grown_file_is_read_from_its_old_end(scan, tmp_path, folder, monkeypatch):
    scan(*PATTERN, "--resume", "kept")
    first = (tmp_path / "kept" / "part-000001.parquet").stat().st_mtime_ns
    with (folder / "s-1.jsonl").open("a") as file:
        file.write(json.dumps(asked(50, "Is it done?")) + "\n")
    scan(*PATTERN, "--resume", "kept")
    monkeypatch.chdir(tmp_path)
    assert kept(tmp_path / "kept") == scanned("transcripts")
    assert len(pyarrow.parquet.read_table(tmp_path / "kept" / "part-000002.parquet")) == 1
    assert (tmp_path / "kept" / "part-000001.parquet").stat().st_mtime_ns == first


def test_a_folder_without_a_row_has_a_file_with_the_columns(scan, tmp_path, folder):
    words = ("--pattern", "no=nowhere", "--columns", "path,line", "--resume", "kept")
    scan(*words)
    (part,) = (tmp_path / "kept").glob("*.parquet")
    assert pyarrow.parquet.read_table(part).to_pydict() == {"path": [], "line": []}
    scan(*words)
    assert list((tmp_path / "kept").glob("*.parquet")) == [part]
    part.unlink()
    scan(*words)
    (part,) = (tmp_path / "kept").glob("*.parquet")
    with (folder / "s-1.jsonl").open("a") as file:
        file.write(json.dumps(asked(50, "It is nowhere.")) + "\n")
    scan(*words)
    assert [json.loads(row)["line"] for row in kept(tmp_path / "kept")] == [1]


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_ends_half_way_goes_on_and_keeps_what_was_read(stopped_at_part, scan, tmp_path, many, way):
    words = ("--table", "records", "--columns", "path,offset", "--resume", "kept")
    running = stopped_at_part(3, many, *words)
    running.send_signal(way)
    running.send_signal(signal.SIGCONT)
    _, errors = running.communicate(timeout=HANGS_S)
    assert running.returncode == (130 if way == signal.SIGINT else -way)
    assert "Traceback" not in errors
    lines = (tmp_path / "kept" / "manifest.ndjson").read_text().splitlines()
    parts = [name for line in lines for name in json.loads(line)["parts"]]
    times = [(tmp_path / "kept" / name).stat().st_mtime_ns for name in parts]
    assert scan(*words, sources=(many,)).stderr == ""
    assert [(tmp_path / "kept" / name).stat().st_mtime_ns for name in parts] == times
    files = sorted((tmp_path / "kept").glob("part-*"))
    assert 2 <= len(parts) < len(files)
    assert sum(pyarrow.parquet.read_metadata(path).num_rows for path in files) == 80 * (5_000_000 // len(LINE))
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {
        *(path.name for path in files),
        *(".lock", "manifest.ndjson", "scan.json"),
    }


def test_a_second_run_at_once_is_refused(stopped_at_part, scan, many):
    words = ("--table", "records", "--columns", "path,offset", "--resume", "kept")
    running = stopped_at_part(1, many, *words)
    done = scan(*words, exit_code=1)
    assert done.stderr == "tailhook: another scan is writing to kept: wait until it has ended\n"
    running.kill()
    running.communicate()
    scan(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--table", "usage"], "--table was records and is usage now"),
        (["--signals"], "--table was records and is matches now"),
        (["--table", "records", "--role", "user"], "--role was all and is user now"),
        (["--table", "records", "--redact"], "--redact was off and is on now"),
        (["--table", "records", "--since", "2026-11-01"], "--since was not given and is 2026-11-01T00:00:00+00:00 now"),
        (["--table", "records", "--project", "/w"], "--project was all and is /w now"),
        (["--table", "records", "--columns", "path,text,uuid"], "timestamp, mess… are gone, and text is new"),
        (
            ["--table", "records", "--columns", "path,text", "--session", "s"],
            "text is new; --session was all and is s now",
        ),
    ],
)
def test_another_question_is_refused_and_the_rows_stay(scan, tmp_path, words, message):
    scan("--table", "records", "--resume", "kept")
    before = kept(tmp_path / "kept")
    done = scan(*words, "--resume", "kept", exit_code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("tailhook: kept has the rows of another question (")
    assert done.stderr.endswith(f"{message}): choose another folder\n")
    assert kept(tmp_path / "kept") == before


LONG = "x" * 500


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (["--pattern", "a=b"], ["--pattern", "a=c"], "--pattern was a=b and is a=c now"),
        (["--pattern", "a=b"], ["--pattern", "a=b", "--pattern", "a=c"], "--pattern: a=c is new"),
        (["--pattern", "a=b"], ["--pattern", "a=b", "-i"], "--ignore-case was off and is on now"),
        (["--pattern", "a=b", "--signals"], ["--pattern", "a=b"], "--signals was on and is off now"),
        (["--signals"], ["--categories"], "--signals was on and is off now; --categories was off and is on now"),
        (["--pattern", "a=b", "--pattern", "a=c"], ["--pattern", "a=b"], "--pattern: a=c is gone"),
        (["--signals"], ["--signals", "--pattern", "a=b"], "(--pattern: a=b is new"),
        (
            ["--signals", "--columns", "path,line"],
            ["--signals", "--columns", "path,name,role"],
            "--columns: line is gone, and name, role are new",
        ),
        (["--signals", "--in-code"], ["--signals"], "--anywhere was --in-code and is --outside-code now"),
        (
            ["--signals", "--redact"],
            ["--signals", "--context", "9"],
            "--redact was on and is off now; --context was 80 and is 9 now",
        ),
        (["--pattern", f"a={LONG}"], ["--pattern", f"a={LONG}c"], f"…{'x' * 30} and is …{'x' * 30}c now"),
        (["--pattern", f"a={LONG}b"], ["--pattern", f"a={LONG}c"], f"…{'x' * 30}b and is …{'x' * 30}c now"),
        (
            ["--signals", "--columns", "path,line"],
            ["--signals", "--columns", "line,path"],
            "--columns: in another order",
        ),
    ],
)
def test_only_what_differs_between_two_questions_is_shown(scan, before, after, message):
    scan(*before, "--resume", "kept")
    done = scan(*after, "--resume", "kept", exit_code=1)
    assert done.stderr.endswith(f"{message}): choose another folder\n")
    assert len(done.stderr) < 250


def test_a_folder_of_another_version_is_refused(scan, tmp_path):
    scan("--signals", "--resume", "kept")
    path = tmp_path / "kept" / "scan.json"
    usual = json.loads(path.read_text())
    for changed in ({"format": 1}, {"format": usual["format"] + 1}, {"options": {**usual["options"], "later": 1}}):
        path.write_text(json.dumps(usual | changed))
        done = scan("--signals", "--resume", "kept", exit_code=1)
        assert done.stderr == "tailhook: kept was written by another version of tailhook: choose another folder\n"
    path.write_text(json.dumps(usual | {"patterns": [[{}, False]]}))
    assert "scan.json is damaged" in scan("--signals", "--resume", "kept", exit_code=1).stderr


# Of a question, of its options and of a set of patterns, by the number of the folder's format.
MEMBERS = {
    2: (
        "columns format options patterns project redact roles sessions since table until",
        "all_text code context sidechains",
        4,
    )
}


def test_a_folder_with_other_members_has_another_format(scan, tmp_path):
    """A new member makes an older folder look damaged, unless the format has another number."""
    scan("--signals", "--resume", "kept")
    there = json.loads((tmp_path / "kept" / "scan.json").read_text())
    members = " ".join(sorted(there)), " ".join(sorted(there["options"])), len(there["patterns"][0])
    assert {there["format"]: members} == MEMBERS


def test_a_folder_with_something_else_is_refused_and_stays_as_it_is(scan, folder):
    before = sorted(path.name for path in folder.iterdir())
    done = scan("--table", "records", "--resume", "transcripts", exit_code=1)
    assert done.stderr == "tailhook: transcripts is not empty and has no scan.json: choose an empty folder\n"
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_file_in_the_place_of_the_folder_is_refused(scan, tmp_path):
    (tmp_path / "kept").touch()
    assert scan("--table", "records", "--resume", "kept", exit_code=1).stderr == "tailhook: kept is not a folder\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "other"], "--resume kept writes its rows to kept: leave out -o"),
        (["-o", "kept/rows.parquet"], "--resume kept writes its rows to kept: leave out -o"),
        (["--format", "csv"], "--resume keeps all rows as Parquet files: leave out --format csv"),
        (["--count"], "--resume keeps all rows as Parquet files: leave out --count, and ask the files"),
        (["--limit", "3"], "--resume keeps all rows as Parquet files: leave out --limit, and ask the files"),
        (["--sort", "line"], "--resume keeps all rows as Parquet files: leave out --sort, and ask the files"),
        (["--columns", "line"], "resume needs the column path, by which it knows the rows of a file"),
    ],
)
def test_flags_that_a_folder_of_parquet_files_does_not_have_are_refused(scan, tmp_path, words, message):
    done = scan(*PATTERN, "--resume", "kept", *words, exit_code=2)
    assert done.stderr == f"tailhook: {message}\n"
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("scan.json", b"[]"),
        ("scan.json", b"null"),
        ("scan.json", b"{"),
        ("scan.json", b"[" * 100_000),
        ("halves/tools/manifest.ndjson", b"garbage\n"),
        ("halves/tools/manifest.ndjson", b"[]\n"),
        ("halves/tools/manifest.ndjson", b'{"files": {"a": [1]}}\n'),
        ("halves/tools/manifest.ndjson", b'{"parts": {"a": []}}\n'),
        ("halves/tools/part-000001.parquet", b"garbage"),
        ("halves/tools/part-000001.parquet", b"PAR1" + bytes(100)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_folder_that_is_damaged_is_refused(scan, tmp_path, folder, name, data):
    words = ("--table", "tools", "--resume", "kept")
    scan(*words)
    path = tmp_path / "kept" / name
    if name.endswith(".parquet"):  # one of another size is made again
        data = data.ljust(path.stat().st_size, b"\0")
    path.write_bytes(path.read_bytes() + data if name.endswith(".ndjson") else data)
    (folder / "s-9.jsonl").write_text(LINE)
    done = scan(*words, exit_code=1)
    assert (done.stdout, done.stderr) == ("", f"tailhook: kept/{name} is damaged: remove kept to begin again\n")


def test_joined_rows_are_made_again_if_the_halves_were_removed_and_are_as_many_bytes_as_before(scan, tmp_path, folder):
    words = ("--table", "usage", "--resume", "kept")
    path = folder / "s-1.jsonl"
    os.utime(path, (1_800_000_000, 1_800_000_000))
    scan(*words)
    path.write_text(path.read_text().replace('"output_tokens": ', '"output_tokens": 1'))
    os.utime(path, (1_800_000_001, 1_800_000_001))
    shutil.rmtree(tmp_path / "kept" / "halves")
    scan(*words)
    rows = pyarrow.parquet.read_table(tmp_path / "kept" / "rows.parquet").to_pylist()
    assert [row["output_tokens"] for row in rows] == [row.output_tokens for row in library.scan(folder, "usage").rows()]


def test_joined_rows_that_are_damaged_are_made_again(scan, tmp_path, monkeypatch):
    words = ("--table", "tools", "--resume", "kept")
    scan(*words)
    for data in (b"garbage", b""):
        (tmp_path / "kept" / "rows.parquet").write_bytes(data)
        scan(*words)
        monkeypatch.chdir(tmp_path)
        assert kept(tmp_path / "kept") == scanned("transcripts", "tools")


def test_a_part_that_is_damaged_is_an_error_when_it_is_read(tmp_path, folder, monkeypatch):
    scan = library.scan(folder, "records", resume=tmp_path / "kept")
    (path,) = scan.update()
    path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    with pytest.raises(library.ResumeError, match="is damaged"):
        list(scan.rows())
    path.unlink()
    list(scan.rows())
    path = next((tmp_path / "kept").glob("part-*"))
    path.write_bytes(b"garbage".ljust(path.stat().st_size, b"\0"))
    (folder / "s-1.jsonl").write_text("{}\n")
    with pytest.raises(library.ResumeError, match="is damaged"):
        scan.update()


@pytest.mark.parametrize("table", ["records", "tools"])
def test_what_a_killed_run_left_is_removed(scan, tmp_path, table):
    words = ("--table", table, "--resume", "kept")
    scan(*words)
    before = sorted(path for path in (tmp_path / "kept").rglob("*"))
    halves = tmp_path / "kept" / ("halves/tools" if table == "tools" else ".")
    for remains in (
        "kept/.0123456789abcdef.4711.part",
        halves / ".fedcba9876543210.4711.part",
    ):
        (tmp_path / remains).touch()
    with (halves / "manifest.ndjson").open("ab") as file:
        file.write(b'{"parts": {"part-0000')
    scan(*words)
    assert sorted(path for path in (tmp_path / "kept").rglob("*")) == before


@pytest.mark.parametrize(("table", "limit"), zip(TABLE_COLUMNS, cycle([0, 1000, 3000])))
def test_a_full_disk_is_reported_and_a_later_run_goes_on(scan, tmp_path, monkeypatch, table, limit):
    """A file that may not grow fails as one on a full disk does, with another message."""
    words = ("--table", table, *(PATTERN if table == "matches" else ()), "--resume", "kept")
    full = [sys.executable, "-m", "tailhook", "scan", "transcripts", *words]
    done = subprocess.run(
        full,
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert (done.returncode, done.stderr) in ((1, "tailhook: kept: File too large\n"), (0, ""))
    assert done.returncode == 1 or limit
    assert not [path for path in (tmp_path / "kept").rglob(".*") if path.name != ".lock"]
    scan(*words)
    monkeypatch.chdir(tmp_path)
    assert kept(tmp_path / "kept") == scanned("transcripts", table)


def test_secrets_are_masked_before_rows_are_written(scan, tmp_path, folder, monkeypatch):
    secret = "abc123def"
    call = {"type": "tool_use", "id": "t-9", "name": "Bash", "input": {"command": f"login --token {secret}"}}
    (folder / "s-9.jsonl").write_text(
        "".join(
            json.dumps(said(number, f"m-{number}", part, 1)) + "\n"
            for number, part in enumerate((text(f"Is it export API_TOKEN={secret} here?"), call), 1)
        )
    )
    monkeypatch.chdir(tmp_path)
    for table, words, columns in (
        ("matches", PATTERN, None),
        ("records", ("--columns", "path,text"), ["path", "text"]),
        ("tools", ("--columns", "command,input"), ["command", "input"]),
        ("tools", ("--columns", "name"), ["name"]),
    ):
        place = tmp_path / f"kept-{table}-{len(words)}-{len(columns or ())}"
        scan("--table", table, *words, "--redact", "--resume", place.name)
        assert kept(place) == scanned("transcripts", table, columns=columns, redact=True)
        for path in place.rglob("*.parquet"):
            values = json.dumps(pyarrow.parquet.read_table(path).to_pylist(), default=str)
            assert secret not in values
    assert "[secret]" in "".join(kept(tmp_path / "kept-records-2-2"))


def test_a_source_that_cannot_be_read_is_reported_and_read_by_a_later_run(scan, tmp_path, folder, monkeypatch):
    packed = gzip.compress(LINE.encode())
    (folder / "s-0.jsonl.gz").write_bytes(packed[:-9])
    words = ("--table", "records", "--resume", "kept")
    assert "tailhook: transcripts/s-0.jsonl.gz: " in scan(*words, exit_code=1).stderr
    (folder / "s-0.jsonl.gz").write_bytes(packed)
    scan(*words)
    monkeypatch.chdir(tmp_path)
    assert kept(tmp_path / "kept") == scanned("transcripts", "records")


def test_a_folder_below_the_sources_is_not_scanned(scan, tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted = scanned("transcripts", "records")
    for _ in range(2):
        assert scan("--table", "records", "--resume", "transcripts/kept").stderr == ""
        assert kept(folder / "kept") == wanted


@pytest.mark.parametrize("table", ["records", "usage"])
def test_transcripts_of_a_host_that_have_all_grown_are_there(scan, tmp_path, folder, table):
    (tmp_path / ".claude").mkdir()
    folder.rename(tmp_path / ".claude" / "projects")
    words = ("--table", table, "--resume", "kept")
    assert scan(*words, sources=()).stderr == ""
    for path in (tmp_path / ".claude" / "projects").rglob("*.jsonl"):
        with path.open("a") as file:
            file.write(LINE)
    assert scan(*words, sources=()).stderr == ""


def test_the_report_and_the_progress_are_of_what_is_new(tmp_path, folder):
    (folder / "s-3.jsonl").write_text('{"type":"later","version":"3.0","sessionId":"s-3"}\n')
    seen = []
    scan = library.scan(folder, "sessions", resume=tmp_path / "kept", progress=seen.append)
    scan.update()
    report = scan.report
    assert (report.files, report.unchanged_files, report.unknown_types) == (4, 0, {("later", "3.0"): 1})
    assert report.seconds is not None
    size = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
    assert seen[0] == (0, 0, 4, size)
    assert seen[-1] == (4, size, 4, size)
    seen.clear()
    with (folder / "s-3.jsonl").open("a") as file:
        file.write(LINE)
    scan.update()
    assert (scan.report.files, scan.report.unchanged_files) == (1, 3)
    assert seen[0][2] == 1
    scan.update()
    assert (scan.report.files, scan.report.unchanged_files, scan.report.bytes) == (0, 4, 0)
    assert seen[-1] == (0, 0, 0, 0)
