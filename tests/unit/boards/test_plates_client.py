"""The client of the daemon, in this process: it leaves nothing open if no daemon answers."""

import gc
import os
import posix
import socket

import pytest

from tailhook.plates.client import AwayError, HangingError, connect, request
from tailhook.plates.paths import http_socket_path, lock_path


@pytest.fixture(autouse=True)
def runtime(tmp_path, monkeypatch):
    """Make the folder of the sockets; the garbage collector closes nothing meanwhile."""
    for name in (b"XDG_RUNTIME_DIR", b"XDG_STATE_HOME"):
        monkeypatch.setitem(posix.environ, name, os.fsencode(tmp_path))
    (tmp_path / "tailhook").mkdir(mode=0o700)
    gc.disable()
    yield
    gc.enable()


def open_files():
    return sorted(os.listdir("/dev/fd"))


def test_a_request_without_a_daemon_leaves_no_socket_open():
    before = open_files()
    with pytest.raises(AwayError, match="no daemon answers"):
        request("GET", "/health")
    assert open_files() == before


def test_a_request_to_a_daemon_that_was_killed_leaves_no_socket_open():
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(http_socket_path()))
    before = open_files()
    with pytest.raises(AwayError, match="no daemon answers"):
        request("GET", "/health")
    assert open_files() == before


def test_a_request_to_a_daemon_that_hangs_leaves_no_socket_open():
    lock_path().write_text("123 ")
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(http_socket_path()))
        hanging.listen()
        before = open_files()
        with pytest.raises(HangingError, match="kill -9 123"), connect(timeout=0.05) as client:
            client.get("/health")
        assert open_files() == before
