"""An interrupt ends `tailhook scan` at any moment, soon and without a traceback."""

import csv
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.host import ENVIRONMENT, HANGS_S
from support.library_sample import said, text
from support.scan_tables import TABLES
from support.terminal import Terminal


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_ends_the_scan_with_what_is_finished(tmp_path, many, workers):
    words = ["--table", "records", "--columns", "path,offset", "--workers", workers, many]
    interrupt(tmp_path, words, lambda process: (tmp_path / "out").stat().st_size > 0)
    lines = (tmp_path / "out").read_text().splitlines()
    assert [sorted(json.loads(line)) for line in (lines[0], lines[-1])] == [["offset", "path"]] * 2


def interrupt(tmp_path, words, is_time):
    """Interrupt a scan of `many`, and return how many bytes it reads after that.

    Its output is in the file "out".

    is_time: takes the process, and returns whether to interrupt it.
    """
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tailhook", "scan", *words],
            env={**ENVIRONMENT, "HOME": str(tmp_path)},
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )
    wait_until(lambda: is_time(process))
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    before = bytes_read(process.pid)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its counts are still there
    after = bytes_read(process.pid)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.startswith("tailhook: interrupted after ")
    assert errors.endswith(" of 4,000 files\n")
    return after - before


def bytes_read(process_id):
    """Return how many bytes a process on Linux has read, also one that has ended."""
    counts = Path(f"/proc/{process_id}/io")
    return int(counts.read_text().split()[1]) if counts.exists() else 0  # rchar: N


@TABLES
def test_an_interrupt_ends_a_scan_before_it_reads_a_fiftieth_of_the_files(tmp_path, many, table):
    # The core reads each record with the word, which takes ten times as long as a search for a rare one.
    searched = ["--pattern", "x=run", "--role", "user"] if table == "matches" else []
    words = ["--table", table, *searched, "--workers", "2", many]  # each worker has files in hand

    def has_begun(process):
        return psutil.Process(process.pid).num_threads() > 1

    assert interrupt(tmp_path, words, has_begun) < 20e9 / 50  # 170 MB were seen
    if table != "records":  # usage and sessions are joined at the end; no line is a match or a tool use
        assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize(
    ("way", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_a_scan_that_is_ended_leaves_no_file(tmp_path, many, way, exit_code):
    process = subprocess.Popen(
        [sys.executable, "-m", "tailhook", "scan", "--table", "records", many, "-o", "out.jsonl"],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(way, signal.SIG_DFL),  # the tests may run under nohup
    )
    wait_until(lambda: list(tmp_path.glob(".*.part")))
    process.send_signal(way)
    _, errors = process.communicate(timeout=HANGS_S)
    assert process.returncode == exit_code
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("columns", ["path,offset", "text"])
@pytest.mark.parametrize("format_name", ["jsonl", "csv"])
def test_a_pipe_gets_whole_lines_if_an_interrupt_comes_while_its_reader_is_slow(tmp_path, many, columns, format_name):
    shutil.copy(many / "0000.jsonl", tmp_path / "a.jsonl")
    line = json.dumps(said(2, "m-1", text("x" * 200_000), 3)) + "\n"  # longer than a pipe is large
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write(line * 3)
    words = ["--table", "records", "--columns", columns, "--format", format_name, "a.jsonl"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tailhook", "scan", *words],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    found = os.read(process.stdout.fileno(), 1000)
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING)  # the pipe is full
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=HANGS_S)
    assert (process.returncode, errors[:21]) == (130, b"tailhook: interrupted")
    found += rest
    assert found.endswith(b"\n")
    if format_name == "jsonl":
        assert {tuple(json.loads(row)) for row in found.splitlines()} == {tuple(columns.split(","))}
    else:
        assert {len(row) for row in csv.reader(io.StringIO(found.decode()))} == {len(columns.split(","))}


IN_RICH = """
import os, runpy, sys
from rich.console import Console
number, moment = int(sys.argv.pop(1)), sys.argv.pop(1)
usual = Console.show_cursor
def show_cursor(console, show=True):
    if show == (moment == "stop"):
        Console.show_cursor = usual
        os.kill(os.getpid(), number)
    return usual(console, show)
Console.show_cursor = show_cursor
runpy.run_module("tailhook", run_name="__main__")
"""


@pytest.mark.parametrize("moment", ["start", "stop"])
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_while_the_progress_bar_is_drawn_ends_the_scan_without_a_traceback(
    tmp_path, many, number, exit_code, moment
):
    words = ["scan", "--table", "records", str(many), "-o", str(tmp_path / "out.jsonl"), "--limit", "2000000"]
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "TERM": "xterm"}
    shown = Terminal([sys.executable, "-c", IN_RICH, str(int(number)), moment, *words], environment, tmp_path)
    assert shown.wait() == exit_code
    assert "Traceback" not in shown.seen
    assert shown.seen.rfind("\x1b[?25h") > shown.seen.rfind("\x1b[?25l")  # the cursor is shown again
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "{address}/s.jsonl", "--table", "records"],
        ["scan", "{address}/folder/", "--table", "records"],
        ["scan", "s3://bucket/prefix", "--table", "records"],
        ["usage", "s3://bucket/*/x.jsonl"],
        ["explain", "{address}/s.jsonl"],
    ],
    ids=" ".join,
)
def test_an_interrupt_does_not_wait_for_a_server_that_does_not_answer(tmp_path, words):
    """Otherwise it would wait until the request is given up: here, after this test has given up."""
    code = f"import runpy\nfrom tailhook.transcripts import urls\nurls.URL_BUDGET_S = {2 * HANGS_S}\n"
    code += "runpy.run_module('tailhook', run_name='__main__')"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        aws = {"AWS_ENDPOINT_URL": address, "AWS_SKIP_SIGNATURE": "true", "AWS_REGION": "us-east-1"}
        process = subprocess.Popen(
            [sys.executable, "-c", code, *(word.format(address=address) for word in words)],
            env={**ENVIRONMENT, **aws, "HOME": str(tmp_path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        silent.settimeout(HANGS_S)
        try:
            with silent.accept()[0]:
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=HANGS_S)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 130
    assert errors.startswith("tailhook: interrupted")
    assert errors.count("\n") == 1


INTERRUPT = """
import runpy, signal, sys
name = sys.argv.pop(1)
sys.modules.pop(name, None)
class Finder:
    def find_spec(self, module, path=None, target=None):
        if module == name:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


INTERRUPTED = f"""{INTERRUPT}
sys.argv[0] = "tailhook"
runpy.run_module("tailhook", run_name="__main__")
"""


READ_RECORD = f"""{INTERRUPT}
import tailhook
[record] = tailhook.open("s.jsonl")
record.json()
"""


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("tailhook.cli.parser", ["scan"]),
        ("tailhook.cli.scan", ["scan"]),
        ("tailhook.fleet.scan", ["scan", "--table", "usage"]),
        ("tailhook.pictures.explanation", ["explain", "s.jsonl"]),
        ("tailhook.pictures.anatomy", ["anatomy", "s.jsonl", "-o", "f.svg"]),
        ("tailhook.transcripts.messages", ["explain", "s.jsonl", "--message", "1"]),
    ],
)
def test_an_interrupt_before_the_work_begins_ends_a_command_without_a_traceback(tmp_path, module, words):
    (tmp_path / "s.jsonl").write_text(json.dumps(said(1, "m", text("hello"), 1)) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, *words],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "tailhook: interrupted\n")


@pytest.mark.parametrize("module", ["uuid", "dataclasses"])
@pytest.mark.parametrize(
    ("script", "exit_code", "message"),
    [
        (INTERRUPTED, 130, "tailhook: interrupted before the first file\n"),
        (READ_RECORD, -signal.SIGINT, "KeyboardInterrupt\n"),
    ],
    ids=["command", "library"],
)
def test_an_interrupt_while_orjson_is_imported_does_not_crash_the_process(tmp_path, module, script, exit_code, message):
    (tmp_path / "s.jsonl").write_text(json.dumps(said(1, "m", text("hello"), 1)) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", script, module, "scan", "--table", "records", "s.jsonl"],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.endswith(message)) == (exit_code, True)


def wait_until(condition, seconds=HANGS_S):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
