"""Connections of other users have no token. They do not hinder others, and end soon."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.daemon import SERVE, answers, daemon_in, request, sse, wait_until
from support.host import HANGS_S, Started, command_server
from support.pool import switches_of

from tailhook.plates.connections import MAX_STRANGERS, STRANGER_TIMEOUT_S

pytestmark = pytest.mark.system

HOLDS = Path(__file__).parents[2] / "support" / "holds_connections.py"
MAX_STDERR_BYTES = 10_000


@pytest.fixture
def limited(tmp_path):
    """Start a daemon that may open so many files, and return it. Its stderr is a file.

    timeout_s: how long a stranger may stay.
    """
    with daemon_in(tmp_path) as one:

        def start(files, soft=None, timeout_s=STRANGER_TIMEOUT_S):
            one.stderr = tmp_path / "stderr"
            constants = {"tailhook.plates.connections.STRANGER_TIMEOUT_S": timeout_s}
            with one.stderr.open("wb") as out:
                one.process = command_server(True).start(
                    [*SERVE[3:], "--port", "0"], one.env, tmp_path, constants, (soft or files, files), out.fileno()
                )
            one.link = one.process.stdout.readline().split()[-1]
            one.port = int(one.base.rpartition(":")[2])
            return one

        yield start


def open_sockets(daemon):
    """Return how many sockets the daemon has open. Not its files: a thread opens some after the link was printed."""
    number = 0
    for one in Path(f"/proc/{daemon.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            number += os.readlink(one).startswith("socket:")
    return number


@contextmanager
def held(daemon, number, kind, seconds=HANGS_S):
    """Let another program hold connections meanwhile."""
    argv = [sys.executable, str(HOLDS), str(daemon.port), str(number), kind, str(seconds)]
    with Started(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def followed(daemon):
    """Let a signed-in browser follow the stream; yield the list of received events."""
    found = []
    client = httpx.Client(timeout=HANGS_S, verify=False, headers={"authorization": f"Bearer {daemon.secret}"})

    def follow():
        try:
            with client.stream("GET", f"{daemon.base}/stream") as answer:
                for event in sse(answer):
                    found.append(event)
        except (httpx.HTTPError, OSError):
            found.append(("cut", None))

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        wait_until(lambda: found)
        yield found
    finally:
        daemon.stop()
        thread.join()
        client.close()


def post_by_hook(project, daemon, session):
    """Report an event through the spool, like a hook."""
    project.argv = [*project.argv[:-1], "plates"]
    project.env = {**daemon.env, "TAILHOOK_NO_AUTOSTART": "1"}
    stop = project.hook(json.dumps(project.payload(session_id=session)).encode(), read=False)
    assert (stop.exit_code, stop.stderr) == (0, "")


def is_let_in(daemon):
    """Return whether a program with the token is served at the port; a flood may have cost it its connection."""
    headers = {"authorization": f"Bearer {daemon.token}"}
    with contextlib.suppress(httpx.TransportError):
        return request("GET", f"{daemon.base}/plates", headers=headers, timeout=HANGS_S).status_code == 200
    return False


def test_thousands_of_connections_hinder_neither_the_user_nor_the_hooks(limited, project, report):
    daemon = limited(1024)
    before = open_sockets(daemon)
    most = 0
    with (
        followed(daemon) as found,
        held(daemon, 1200, "again") as again,
        held(daemon, 1200, "silent"),
        held(daemon, 1200, "half"),
    ):
        are_closed = threading.Thread(target=again.stdout.readline)
        are_closed.start()
        number = 0
        while number < 20 or are_closed.is_alive():
            daemon.post("stop", f"posted-{number}")
            post_by_hook(project, daemon, f"hooked-{number}")
            most = max(most, open_sockets(daemon))
            number += 1
        wait_until(lambda: {f"hooked-{one}" for one in range(number)} <= daemon.plates().keys())
        wait_until(lambda: len(found) > 2 * number)
        assert ("cut", None) not in found
        wait_until(lambda: is_let_in(daemon))
        assert daemon.stderr.stat().st_size < MAX_STDERR_BYTES
    report(f"daemon: 3,600 connections: {most} sockets at most")
    assert most < before + 4 * MAX_STRANGERS


def test_it_recovers_by_itself_while_they_are_still_held(limited):
    daemon = limited(1024, timeout_s=2)
    before = open_sockets(daemon)
    with held(daemon, MAX_STRANGERS - 8, "half") as process:
        assert process.stdout.readline() == f"{MAX_STRANGERS - 8}\n"  # were closed
        wait_until(lambda: open_sockets(daemon) <= before)


def connect(daemon):
    """Connect to the port."""
    return socket.create_connection(("127.0.0.1", daemon.port), timeout=HANGS_S)


def wait_until_closed(connection):
    """Wait until the daemon closes a connection that sends nothing more."""
    while connection.recv(1 << 16):
        pass


def push_out(daemon):
    """Connect until the first of these connections is closed: then no older stranger is left."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(connect(daemon))
        while not select.select([first], [], [], 0)[0]:
            stack.enter_context(connect(daemon))  # waits until the daemon has accepted others


ASSET = b"GET /web/board.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SENT = {
    "nothing": b"",
    "half a header": ASSET[:30],
    "a request without a token": ASSET.replace(b"/web/board.js", b"/plates"),
    "a public request": ASSET,
    "a public request and half of another one": ASSET + ASSET[:30],
    "half a body": b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf",
    "half a body for another route": b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf",
}


def test_a_connection_without_a_token_is_closed(limited):
    daemon = limited(1024, timeout_s=2)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(daemon)) for _ in SENT]
        for connection, sent in zip(connections, SENT.values(), strict=True):
            connection.sendall(sent)
        for connection in connections:
            wait_until_closed(connection)


def test_a_header_that_comes_byte_by_byte_does_not_prolong_it(limited):
    with connect(limited(1024, timeout_s=2)) as connection, contextlib.suppress(ConnectionError):
        while not select.select([connection], [], [], 0.1)[0]:  # a byte each 0.1 s, until it is closed
            connection.sendall(b"G")
        assert connection.recv(1 << 16) == b"" or connection.recv(1 << 16) == b""  # behind an answer


def test_a_signed_in_stream_that_is_quiet_is_not_cut(limited):
    daemon = limited(1024)
    with followed(daemon) as found:
        with connect(daemon) as later:
            wait_until_closed(later)  # it came after the stream, and is a stranger
        daemon.post("stop", "late")
        wait_until(lambda: any(name == "plate" and plate["session_id"] == "late" for name, plate in found))
        assert ("cut", None) not in found


def test_the_oldest_makes_room(limited):
    daemon = limited(1024, timeout_s=HANGS_S)
    before = open_sockets(daemon)
    connections = [connect(daemon) for _ in range(MAX_STRANGERS)]
    try:
        wait_until(lambda: open_sockets(daemon) >= before + MAX_STRANGERS)
        connections[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            connections[0].recv(1)
        connections.append(connect(daemon))
        connections[0].setblocking(True)
        assert connections[0].recv(1) == b""
        connections[1].setblocking(False)
        with pytest.raises(BlockingIOError):
            connections[1].recv(1)
    finally:
        for one in connections:
            one.close()


def test_a_token_takes_a_connection_off_the_strangers(limited):
    daemon = limited(1024, timeout_s=HANGS_S)
    with connect(daemon) as mine:
        header = f"GET /plates HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {daemon.token}\r\n\r\n".encode()
        for _ in range(2):
            mine.sendall(header)
            answer = b""
            while not answer.endswith(b"\r\n\r\n[]"):
                received = mine.recv(1 << 16)
                assert received, "it was closed"
                answer += received
            assert answer.startswith(b"HTTP/1.1 200")
            push_out(daemon)


# ---- the limit of open files, and what is logged ---------------------------------


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be(limited):
    daemon = limited(3000, soft=200)
    (line,) = [
        line
        for line in Path(f"/proc/{daemon.process.pid}/limits").read_text().splitlines()
        if line.startswith("Max open files")
    ]
    assert line.split()[3:5] == ["3000", "3000"]


def test_with_few_files_there_are_fewer_strangers(limited):
    daemon = limited(100)
    with held(daemon, 300, "silent"):
        for number in range(20):
            daemon.post("stop", f"s{number}")
            assert len(os.listdir(f"/proc/{daemon.process.pid}/fd")) < 80
    assert daemon.stderr.read_text() == ""


def test_that_no_connection_can_be_accepted_is_logged_once(limited):
    """The user's own programs hold so many connections that no file is left."""
    daemon = limited(64)
    connections = []
    try:
        for _ in range(100):
            one = socket.socket(socket.AF_UNIX)
            connections.append(one)
            one.setblocking(False)
            one.connect_ex(str(daemon.runtime / "http"))
        wait_until(lambda: "Too many open files" in daemon.stderr.read_text())
        before = switches_of(daemon.process.pid)
        wait_until(lambda: switches_of(daemon.process.pid) > before + 4)  # it has tried again
    finally:
        for one in connections:
            one.close()
    said = daemon.stderr.read_text()
    assert said.count("socket.accept() out of system resource: [Errno 24] Too many open files\n") == 1
    assert len(set(said.splitlines())) == said.count("\n")
    assert "Traceback" not in said
    assert len(said) < MAX_STDERR_BYTES
    wait_until(lambda: answers(daemon))
    daemon.post("stop", "after")
    assert "after" in daemon.plates()


def test_what_is_not_http_fills_no_log(limited):
    daemon = limited(1024)
    with held(daemon, 500, "garbage") as process:
        assert process.stdout.readline() == "500\n"  # were closed
    assert daemon.stderr.stat().st_size < 1000
