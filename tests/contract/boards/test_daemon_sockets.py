"""The daemon's sockets and their folder. It may be deleted at logout and made again at login."""

import json
import os
import shutil
import signal
import socket
import subprocess

import pytest
from support.daemon import STARTS, answers, daemon_pid, refused, request, wait_until

from tailhook._core import send_wake_up
from tailhook.plates.sockets import bind_unix_socket


@pytest.fixture
def login(own, tmp_path):
    """Return the folder that exists while a user is logged in; the daemon's sockets are in it."""
    folder = tmp_path / "login"
    folder.mkdir(mode=0o700)
    own.env["XDG_RUNTIME_DIR"] = str(folder)
    own.runtime = folder / "tailhook"
    return folder


def test_a_folder_that_was_removed_and_made_again_has_the_sockets_again(own, login):
    own.start().post("stop", "before")
    shutil.rmtree(login)
    login.mkdir(mode=0o700)
    wait_until(lambda: answers(own))
    assert daemon_pid(own) == own.process.pid
    assert own.plates()["before"]["status"] == "idle"
    assert send_wake_up(os.fsencode(own.runtime / "poke")) == 0
    assert request("GET", f"{own.base}/health").status_code == 200  # on the port that it had
    assert own.stop() == 0
    assert not (own.runtime / "http").exists()


def test_without_a_login_the_sockets_are_in_the_users_own_folder(own, login):
    own.start()
    there = own.runtime
    shutil.rmtree(login)
    own.runtime = own.state / "run"
    wait_until(lambda: answers(own))
    login.mkdir(mode=0o700)
    own.runtime = there
    wait_until(lambda: answers(own))
    assert own.stop() == 0


def test_sockets_that_cannot_be_looked_at_are_not_gone(own):
    own.start()
    aside = own.runtime.rename(own.state / "aside")
    own.runtime.symlink_to(own.runtime)  # as far as it leads, every answer is an error
    with pytest.raises(subprocess.TimeoutExpired):
        own.process.wait(2.5)
    own.runtime.unlink()
    aside.rename(own.runtime)
    assert answers(own)
    assert own.stop() == 0


def test_a_signal_while_it_moves_its_sockets_ends_it(own):
    own.start()

    def is_moving():
        (own.runtime / "poke").unlink(missing_ok=True)  # again, if it has moved meanwhile
        return not answers(own)

    wait_until(is_moving)
    own.process.send_signal(signal.SIGTERM)
    own.process.communicate(timeout=STARTS)
    assert own.process.returncode in (0, -signal.SIGTERM)


def test_two_with_one_folder_for_their_sockets_are_not_both_served(own, login, tmp_path):
    own.start()
    mine, own.env = own.env, {**own.env, "XDG_STATE_HOME": str(tmp_path / "another")}
    assert f"a daemon is running already (process {own.process.pid})" in refused(own, "--no-port")
    own.env = mine
    assert answers(own)
    assert own.stop() == 0


def test_a_client_that_finds_the_socket_of_a_daemon_that_is_starting_is_not_refused(tmp_path):
    path = tmp_path / "http"
    with bind_unix_socket(socket.SOCK_STREAM, path), socket.socket(socket.AF_UNIX) as client:
        assert client.connect_ex(str(path)) == 0


def test_a_start_that_fails_changes_nothing_and_leaves_nothing(own, tmp_path):
    own.start("--retention", "7").stop()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = refused(own, "--port", port, "--db", f"sqlite:///{tmp_path}/typo.db")
    assert f"127.0.0.1:{port}" in words
    assert json.loads((own.state / "daemon-settings").read_text()) == {"db": None, "db_file": None, "retention": 7}
    assert not (own.runtime / "http").exists()
    assert not (own.runtime / "poke").exists()
