"""One daemon runs for a user, whatever the folder of its sockets and whatever a lock names."""

import contextlib
import errno
import fcntl
import json
import os
import select
import subprocess
import sys

import pytest
from support.daemon import SERVE, answers, daemon_in, refused, wait_until
from support.host import HANGS_S, Started, command_server

from tailhook._core import send_wake_up
from tailhook.errors import TailhookError
from tailhook.plates.serve import single_instance


def test_there_is_one_daemon_for_a_user(own):
    own.start()
    running, end = f"a daemon is running already (process {own.process.pid}). ", f"To end it:  kill {own.process.pid}\n"
    for flags in (["--no-port"], ["--port", "0"]):
        assert f"{running}For a link to its board:  tailhook plates link. {end}" in refused(own, *flags)


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


LEFT = ["{pid} 1 no-port /", "{pid} no-port", "999999 5 no-port /", "-1 5 no-port /", "words", "", "\xff"]
STARTS_NOTHING_S = 3  # for a daemon that does something forbidden


def test_the_process_in_a_lock_is_not_ended_if_it_is_a_stranger(tmp_path, stranger):
    """Each daemon has a home of its own, and finds another text in the lock that another process holds."""
    with contextlib.ExitStack() as stack:
        daemons = [stack.enter_context(daemon_in(tmp_path / str(number))) for number in range(len(LEFT))]
        with contextlib.ExitStack() as locks:
            for daemon, left in zip(daemons, LEFT, strict=True):
                daemon.state.mkdir(parents=True, mode=0o700)
                lock = locks.enter_context((daemon.state / "daemon-lock").open("w"))
                lock.write(left.format(pid=stranger.pid))
                lock.flush()
                fcntl.flock(lock, fcntl.LOCK_EX)
                daemon.process = command_server(True).start([*SERVE[3:], "--port", "0"], daemon.env, tmp_path, {})
            watched = [daemon.process.stdout for daemon in daemons] + [daemon.process.status for daemon in daemons]
            assert select.select(watched, [], [], STARTS_NOTHING_S)[0] == []
        for daemon in daemons:
            assert "Open the board" in daemon.process.stdout.readline()  # once it is free
        assert stranger.poll() is None
        for daemon in daemons:
            assert daemon.stop() == 0
            assert (daemon.state / "daemon-lock").read_text() == ""


def test_a_person_takes_the_place_of_a_daemon_that_was_started_by_itself(own):
    with Started([*SERVE, "--no-port"], env=own.env) as first:
        wait_until(lambda: answers(own))
        own.post("stop")
        own.start()
        assert first.wait(HANGS_S) == 0
    assert own.plates()["s"]["status"] == "idle"
    assert own.base.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EDQUOT])
def test_a_lock_for_which_there_is_no_room_is_not_to_be_removed(monkeypatch, tmp_path, number):
    def fail(path, *_):
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr("tailhook.plates.serve.os.open", fail)
    with pytest.raises(TailhookError) as found, single_instance(tmp_path / "daemon-lock", False, tmp_path):
        pass
    assert str(found.value) == f"{tmp_path}/daemon-lock: {os.strerror(number)}"
