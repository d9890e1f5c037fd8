"""One daemon runs for a user, whatever the folder of its sockets and whatever a lock names."""

import fcntl
import json
import os
import subprocess
import sys

import pytest
from support.daemon import SERVE, answers, refused, wait_until
from support.host import HANGS_S, Started

from tailhook._core import send_wake_up


def test_there_is_one_daemon_for_a_user(own):
    own.start()
    words = refused(own, "--no-port")
    assert f"a daemon is running already (process {own.process.pid}). To end it:  kill {own.process.pid}" in words
    assert "running already" in refused(own, "--port", "0")


def test_there_is_one_whatever_the_folder_of_the_sockets_is(own, tmp_path):
    own.start()
    (tmp_path / "run").mkdir()
    own.env["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    assert "running already" in refused(own, "--port", "0")
    own.runtime = tmp_path / "run" / "tailhook"
    assert own.ask("GET", "/health").status_code == 200  # programs that look there are led to it
    assert send_wake_up(os.fsencode(own.runtime / "poke")) == 0
    assert own.stop() == 0
    assert own.start().ask("GET", "/health").status_code == 200


def test_a_runtime_folder_that_is_not_there_is_not_used(own, project, tmp_path):
    own.env["XDG_RUNTIME_DIR"] = str(tmp_path / "gone")
    own.start()
    project.argv = [*project.argv[:-1], "plates"]
    project.env = {**own.env, "TAILHOOK_NO_AUTOSTART": "1"}
    stop = project.hook(json.dumps(project.payload()).encode(), read=False)
    assert (stop.exit_code, stop.stderr) == (0, "")
    wait_until(lambda: "mine" in own.plates())
    assert not (tmp_path / "gone").exists()


@pytest.fixture
def stranger():
    """Yield a process that has nothing to do with the daemon."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    "left", ["{pid} 1 no-port /", "{pid} no-port", "999999 5 no-port /", "-1 5 no-port /", "words", "", "\xff"]
)
def test_the_process_in_a_lock_is_not_ended_if_it_is_a_stranger(own, stranger, left):
    own.state.mkdir(parents=True, mode=0o700)
    with (own.state / "daemon-lock").open("w") as lock:
        lock.write(left.format(pid=stranger.pid))
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        starting = subprocess.Popen([*SERVE, "--port", "0"], env=own.env, stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            starting.wait(3)
    try:
        assert "Open the board" in starting.stdout.readline()  # once it is free
        assert stranger.poll() is None
    finally:
        starting.terminate()
        starting.communicate(timeout=HANGS_S)
    assert (own.state / "daemon-lock").read_text() == ""


def test_a_person_takes_the_place_of_a_daemon_that_was_started_by_itself(own):
    with Started([*SERVE, "--no-port"], env=own.env) as first:
        wait_until(lambda: answers(own))
        own.post("stop")
        own.start()
        assert first.wait(30) == 0
    assert own.plates()["s"]["status"] == "idle"
    assert own.base.startswith("http://127.0.0.1:")
