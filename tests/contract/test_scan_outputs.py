"""Outputs of `tailhook scan`: full disks, closed pipes, and files that it does not replace."""

import os
import resource
import shutil
import subprocess
import sys

import pytest
from support.host import ENVIRONMENT


def run_into(stdout, folder, *words, env=(), **options):
    """Run a command in a folder with this stdout."""
    return subprocess.run(
        [sys.executable, "-m", "tailhook", *words],
        env={**ENVIRONMENT, "HOME": str(folder), **dict(env)},
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        **options,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "--table", "records", "transcripts"],
        ["scan", "--table", "records", "--count", "transcripts"],
        ["usage", "transcripts"],
        ["usage", "--json", "transcripts"],
        ["anatomy", "transcripts/s-1.jsonl", "-o", "picture.svg"],
    ],
    ids=" ".join,
)
def test_a_full_disk_at_the_output_is_reported(tmp_path, folder, words):
    with open("/dev/full", "wb") as full:
        done = run_into(full, tmp_path, *words)
    assert (done.returncode, done.stderr) == (1, "tailhook: standard output: No space left on device\n")


@pytest.mark.parametrize("env", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "words",
    [
        ["scan", "--table", "records", "transcripts"],
        ["scan", "--table", "records", "--format", "csv", "transcripts"],
        ["scan", "--table", "records", "--format", "table", "transcripts"],
        ["usage", "--json", "transcripts"],
        ["explain", "transcripts/s-1.jsonl"],
    ],
    ids=" ".join,
)
def test_an_output_of_which_a_full_disk_takes_the_beginning_is_an_error(tmp_path, folder, words, env):
    place = tmp_path / "out"
    with place.open("wb") as out:
        assert run_into(out, tmp_path, *words, env=env).returncode == 0
    size = place.stat().st_size - 1
    with place.open("wb") as out:
        done = run_into(
            out,
            tmp_path,
            *words,
            env=env,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        )
    assert (done.returncode, done.stderr) == (1, "tailhook: standard output: File too large\n")


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "--table", "records", "--count", "transcripts"],
        ["usage", "transcripts"],
        ["explain", "transcripts/s-1.jsonl"],
    ],
    ids=" ".join,
)
def test_a_reader_that_has_left_is_not_an_error(tmp_path, folder, words):
    reader, writer = os.pipe()
    os.close(reader)
    done = run_into(writer, tmp_path, *words)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, folder, ending):
    (tmp_path / f"out.{ending}").write_text("old")
    done = subprocess.run(
        [sys.executable, "-m", "tailhook", "scan", "--table", "records", folder, "-o", f"out.{ending}"],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )
    assert done.returncode == 1
    assert done.stderr == f"tailhook: out.{ending}: File too large\n"
    assert (tmp_path / f"out.{ending}").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out.{ending}", "transcripts"]


def test_an_output_that_is_not_a_file_is_refused(scan, tmp_path):
    (tmp_path / "out").mkdir()
    assert scan("--signals", "-o", "out", exit_code=1).stderr == (
        "tailhook: out is not a regular file: rows are only written to one\n"
    )
    assert "No such file or directory" in scan("--signals", "-o", "absent/out.jsonl", exit_code=1).stderr


@pytest.mark.parametrize("way", ["name", "spelling", "folder", "glob", "link", "hard link", "host"])
def test_an_output_that_would_replace_a_source_is_refused(scan, folder, tmp_path, way):
    (tmp_path / "link.jsonl").symlink_to(folder / "s-1.jsonl")
    os.link(folder / "s-1.jsonl", tmp_path / "hard.jsonl")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "projects").symlink_to(folder)
    name, source = {
        "name": ("transcripts/s-1.jsonl", "transcripts/s-1.jsonl"),
        "spelling": ("./transcripts/../transcripts/s-1.jsonl", "transcripts/s-1.jsonl"),
        "folder": (str(folder / "s-1.jsonl"), "transcripts"),
        "glob": ("transcripts/s-1.jsonl", "trans*/*.jsonl"),
        "link": ("link.jsonl", "transcripts"),
        "hard link": ("hard.jsonl", "transcripts"),
        "host": ("transcripts/s-1.jsonl", None),
    }[way]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    done = scan("--pattern", "a=zzzz", "-o", name, sources=(source,) if source else (), exit_code=2)
    assert done.stderr == f"tailhook: {name} is one of the files to scan: give the name of another file\n"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before


def test_a_private_output_stays_private(scan, tmp_path):
    path = tmp_path / "out.csv"
    path.touch(0o600)
    path.chmod(0o600)
    scan("--table", "sessions", "-o", "out.csv")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().startswith("host,")


def test_an_output_that_is_a_link_is_followed(scan, tmp_path):
    (tmp_path / "out.jsonl").symlink_to("real.jsonl")
    scan("--table", "sessions", "-o", "out.jsonl")
    assert (tmp_path / "out.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_text() == scan("--table", "sessions").stdout


def test_a_file_that_is_not_scanned_is_replaced(scan, folder, tmp_path):
    (tmp_path / "out.jsonl").write_bytes((folder / "s-1.jsonl").read_bytes())
    scan("--pattern", "a=zzzz", "-o", "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_a_reader_that_leaves_ends_the_scan_without_a_message(tmp_path, many):
    done = subprocess.run(
        f"{sys.executable} -m tailhook scan --table records {many} | head -n 2",
        shell=True,
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


def test_a_minus_as_the_file_is_stdout(scan, tmp_path):
    usual = scan("--table", "records").stdout
    assert scan("--table", "records", "-o", "-").stdout == usual
    assert scan("--table", "records", "-o", "-", "--format", "csv").stdout.startswith("path,offset,")
    assert not (tmp_path / "-").exists()


def test_a_file_that_cannot_be_made_is_named_as_the_person_named_it(scan):
    done = scan("--table", "records", "-o", "none/out.jsonl", exit_code=1)
    assert done.stderr == "tailhook: none/out.jsonl: No such file or directory\n"


def test_a_file_below_a_file_is_named_as_the_person_named_it(scan):
    done = scan("--table", "records", "-o", "transcripts/s-1.jsonl/out.jsonl", exit_code=1)
    assert done.stderr == "tailhook: transcripts/s-1.jsonl/out.jsonl: Not a directory\n"


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "--table", "records", "transcripts", "--format", "jsonl", "-o"],
        ["scan", "--table", "records", "transcripts", "--format", "arrow", "-o"],
        ["anatomy", "transcripts/s-1.jsonl", "-o"],
        ["explain", "transcripts/s-1.jsonl", "--html"],
        ["bench", "--hook", "/bin/true", "--rounds", "2", "-o"],
    ],
    ids=" ".join,
)
def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path, folder, words):
    for size, error in ((240, ""), (255, ""), (256, "File name too long")):
        name = "é" * 100 + "x" * (size - 205) + ".html"
        (tmp_path / "out").mkdir()
        done = run_into(subprocess.DEVNULL, tmp_path, *words, f"out/{name}")
        assert (done.returncode, done.stderr) == ((1, f"tailhook: out/{name}: {error}\n") if error else (0, ""))
        assert os.listdir(tmp_path / "out") == ([] if error else [name])
        shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "words",
    [
        "scan --table records transcripts",
        "scan --table records --count transcripts",
        "usage transcripts",
        "explain transcripts/s-1.jsonl",
        "scan --table records none",
    ],
)
def test_a_closed_stream_is_not_a_crash_and_a_closed_stdout_is_an_error(tmp_path, folder, closed, words):
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m tailhook {words} {closed}', sys.executable],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    is_stdout_closed = ">&-" in closed.split()
    assert done.returncode == int("none" in words or is_stdout_closed)
    assert ("standard output is closed" in done.stderr) == (closed == ">&-")
    assert "Traceback" not in done.stderr
    assert folder.is_dir()
