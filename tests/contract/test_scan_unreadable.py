"""Sources and lines that `tailhook scan` cannot read: it reports them, and scans the others."""

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile

import pytest
from support.host import ENVIRONMENT
from support.library_sample import asked, write_records

import tailhook as library


def test_a_missing_source_is_reported_and_the_others_are_scanned(scan):
    sources = ("absent.jsonl", "transcripts", "absent-*.jsonl")
    done = scan("--table", "sessions", sources=sources, exit_code=1)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == (
        "tailhook: absent.jsonl: No such file or directory\ntailhook: absent-*.jsonl: no file matches\n"
    )


def test_a_link_that_leads_to_no_file_is_reported(scan, folder):
    (folder / "s-0.jsonl").symlink_to("gone.jsonl")
    done = scan("--table", "sessions", sources=("transcripts", "transcripts/s-0.jsonl"), exit_code=1)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == "tailhook: transcripts/s-0.jsonl: No such file or directory\n"


def test_what_is_not_a_regular_file_is_reported(scan, folder):
    os.mkfifo(folder / "s-0.jsonl")
    done = scan("--table", "sessions", exit_code=1)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == "tailhook: transcripts/s-0.jsonl: it is not a regular file\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_and_a_folder_without_permission_are_reported(scan, folder):
    (folder / "s-2.jsonl").chmod(0)
    (folder / "closed").mkdir(mode=0)
    done = scan("--table", "sessions", exit_code=1)
    assert len(done.stdout.splitlines()) == 1
    assert sorted(done.stderr.splitlines()) == [
        "tailhook: transcripts/closed: Permission denied",
        "tailhook: transcripts/s-2.jsonl: Permission denied",
    ]


def test_many_sources_that_cannot_be_read_are_counted(scan):
    done = scan("--table", "sessions", sources=[f"absent-{number}" for number in range(30)], exit_code=1)
    lines = done.stderr.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "tailhook: 10 more sources could not be read"


def test_a_compressed_file_that_is_cut_off_is_reported(scan, folder):
    import gzip

    data = gzip.compress(b'{"type":"user"}\n' * 1000)
    (folder / "s-3.jsonl.gz").write_bytes(data[:-20])
    done = scan("--table", "records", "--count", exit_code=1)
    assert done.stderr.startswith("tailhook: transcripts/s-3.jsonl.gz: ")
    assert "is cut off" in done.stderr


def test_lines_that_are_not_records_are_counted(scan, rows, folder):
    whole = len(rows("--table", "records"))
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "binary.jsonl").write_bytes(bytes(range(256)) * 10)
    line = json.dumps(asked(1, "Torn."))
    (folder / "torn.jsonl").write_text(f"{line}\n{line[:40]}")
    done = scan("--table", "records")
    assert len(done.stdout.splitlines()) == whole + 1
    assert done.stderr == f"tailhook: {len(bytes(range(256)).splitlines()[:1]) * 10 + 2} lines are not valid records\n"


def test_records_of_unknown_types_are_reported(scan, folder):
    kinds = ["later", "newer", "later", "user"]
    write_records(folder / "new.jsonl", [{"type": kind, "version": f"3.{at}"} for at, kind in enumerate(kinds)])
    done = scan("--table", "sessions")
    words = "later of version 3.0 (1), later of version 3.2 (1), newer of version 3.1 (1)"
    assert done.stderr == f"tailhook: records of unknown types: {words}\n"


def test_of_many_unknown_types_the_most_frequent_are_named(scan, folder):
    kinds = ["frequent"] * 3 + [f"type{number}" for number in range(10)]
    write_records(folder / "new.jsonl", [{"type": kind} for kind in kinds])
    done = scan("--table", "sessions")
    named = ", ".join(f"type{number} (1)" for number in range(7))
    assert done.stderr == f"tailhook: records of unknown types: frequent (3), {named}, others (3)\n"


def test_a_file_that_vanishes_while_the_scan_runs_is_reported(folder):
    paths = [folder / "s-1.jsonl", folder / "s-2.jsonl"]
    scan = library.scan(paths, "records", progress=lambda progress: paths[0].unlink(missing_ok=True))
    assert {row.session_id for row in scan.rows()} == {"s-2"}
    assert [(problem.path, problem.reason) for problem in scan.report.skipped] == [
        (str(paths[0]), "No such file or directory")
    ]


def test_a_file_that_is_truncated_while_the_scan_runs_gives_whole_lines(folder):
    path = folder / "s-1.jsonl"
    scan = library.scan(path, "records", progress=lambda progress: os.truncate(path, 300))
    assert len(list(scan.rows())) <= 1
    assert [problem.path for problem in scan.report.skipped] == [str(path)]


def test_a_message_names_the_file_once(scan, folder):
    packed = gzip.compress((folder / "s-1.jsonl").read_bytes())
    (folder / "cut.jsonl.gz").write_bytes(packed[:-9])
    done = scan("--table", "records", exit_code=1)
    assert done.stderr == "tailhook: transcripts/cut.jsonl.gz: it is cut off: its compressed data has no end\n"


def test_the_folder_that_has_no_room_for_a_decompressed_copy_is_named(folder, tmp_path):
    (folder / "big.jsonl.gz").write_bytes(gzip.compress((folder / "s-1.jsonl").read_bytes() * 4000))
    done = subprocess.run(
        [sys.executable, "-m", "tailhook", "scan", "--table", "records", "--count", "transcripts"],
        env={**ENVIRONMENT, "HOME": str(tmp_path), "TMPDIR": tempfile.gettempdir()},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    place = f"{tempfile.gettempdir()}: File too large"
    assert done.stderr == f"tailhook: transcripts/big.jsonl.gz: it cannot be copied to a temporary file: {place}\n"
    assert done.returncode == 1


def test_one_line_is_and_two_lines_are(scan, folder):
    (folder / "bad.jsonl").write_text("no\n")
    assert "tailhook: 1 line is not a valid record\n" in scan("--table", "records").stderr
    (folder / "bad.jsonl").write_text("no\nno\n")
    assert "tailhook: 2 lines are not valid records\n" in scan("--table", "records").stderr
