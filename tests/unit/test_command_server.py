"""Commands forked from a process with the package imported, beside commands in an interpreter of their own."""

import os
import subprocess
import sys

import pytest
from support.host import COVERAGE, ENVIRONMENT, command_server, tailhook

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or bool(COVERAGE), reason="commands are forked only on Linux, and not in `make coverage`"
)


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("--version",), None),
        (("--help",), None),
        (("no-such-command",), None),
        (("scan", "--pattern", "a=é", "-"), None),
        (("scan", "--pattern", "a=b", "none"), None),
        (("usage", "--json", "."), None),
        (("explain", "-"), "é" * 100_000),
        (("loop", "status"), None),
    ],
)
def test_a_forked_command_does_what_an_interpreter_does(tmp_path, words, stdin):
    env = {**ENVIRONMENT, "HOME": str(tmp_path), "TZ": "Asia/Tokyo"}
    argv = [sys.executable, "-m", "tailhook", *words]
    alone = subprocess.run(argv, env=env, cwd=tmp_path, input=stdin, capture_output=True, text=True, check=False)
    forked = tailhook(*words, env=env, cwd=tmp_path, stdin=stdin)
    assert (forked.returncode, forked.stdout, forked.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_a_forked_command_has_the_umask_of_the_test(tmp_path):
    (tmp_path / "session.jsonl").write_text('{"type":"user"}\n')
    before = os.umask(0o027)
    try:
        words = ("scan", "--table", "records", "session.jsonl", "-o", "found.jsonl")
        assert tailhook(*words, env={"HOME": str(tmp_path)}, cwd=tmp_path).returncode == 0
    finally:
        os.umask(before)
    assert (tmp_path / "found.jsonl").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(("limit", "found"), [(-1.0, "Found 1 failure and 1 warning."), (1e9, "Found 1 failure.")])
def test_a_forked_command_has_the_constants_that_a_test_gives(tmp_path, limit, found):
    slow = {"tailhook.doctor.checks.SLOW_SAVE": limit}
    assert tailhook("doctor", env={"HOME": str(tmp_path)}, cwd=tmp_path, **slow).stdout.splitlines()[-1] == found


def test_a_forked_command_runs_until_its_signal_and_can_be_asked_again(tmp_path):
    words = ("run", "--", "sh", "-c", "echo ready; exec cat")
    running = command_server(False).start(words, {**ENVIRONMENT, "HOME": str(tmp_path)}, tmp_path, {})
    assert running.stdout.readline() == "ready\n"
    assert running.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0)
    running.kill()
    assert running.communicate() == ("", "")
    assert (running.returncode, running.wait(), running.poll()) == (-9, -9, -9)
    assert running.communicate() == ("", "")
    running.terminate()  # nothing is left
