"""A daemon outlives an upgrade: boards and lists warn about it, and boards replace it if no person started it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from support.daemon import daemon_in
from support.host import tailhook
from support.terminal import Terminal

from tailhook import __version__
from tailhook.plates.client import ANSWERS, numbers_in

BOARD = [sys.executable, "-m", "tailhook", "board"]
# Answers like a daemon of another version, and has its lock.
OTHER = """
import fcntl, http.server, json, os, socketserver, sys
runtime, lock, kind, version, count, more = sys.argv[1:]
file = open(lock, "w")
fcntl.flock(file, fcntl.LOCK_EX)
file.write(f"{os.getpid()} 0 {kind} {runtime}")
file.flush()
plate = {"session_id": "s", "project_path": "/p", "status": "idle", "updated_at": "2026-01-01T00:00:00Z"}
plates = [plate] * int(count)
ANSWERS = {"/health": {"status": "ok", "version": version}, "/plates": plates, **json.loads(more)}

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in ANSWERS else 404)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWERS.get(self.path, {"error": "Not Found"})).encode())

    def log_message(self, *_):
        pass

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

server = Server(f"{runtime}/http", Handler)
print("ready", flush=True)
server.serve_forever()
"""


def describe_other(version):
    """Return what a person reads about a daemon of another version, or of an older commit of this one."""
    if version == __version__:
        return f"an older daemon runs: it calls itself {version}, as this tailhook does, but lacks fields"
    return f"a daemon of another version runs ({version}); this is tailhook {__version__}"


@pytest.fixture
def daemon(tmp_path):
    """A daemon that is not started, with its folders."""
    with daemon_in(tmp_path) as one:
        one.runtime.mkdir(mode=0o700, parents=True)
        one.state.chmod(0o700)
        yield one


@pytest.fixture
def other(daemon):
    """Call it with a version and a kind: a daemon of that version runs, started by a person ("port") or by a hook.

    It has no route for statuses, like the daemons before there was one. `more` are its answers of other routes.
    """
    running = []

    def start(version, kind, plates=1, more=None):
        lock = daemon.state / "daemon-lock"
        words = [kind, version, str(plates), json.dumps(more or {})]
        argv = [sys.executable, "-c", OTHER, str(daemon.runtime), str(lock), *words]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def end_started(daemon):
    """End the daemon that has the lock."""
    os.kill(int((daemon.state / "daemon-lock").read_text().split(" ")[0]), signal.SIGTERM)


@pytest.mark.parametrize(
    ("plates", "words"),
    [
        (0, ["list"]),
        (1, ["list"]),
        (1, ["list", "--waiting"]),
        (1, ["list", "--waiting", "--json"]),
        (1, ["list", "--waiting", "--short"]),
        (1, ["waits"]),
        (1, ["waits", "--json"]),
    ],
)
@pytest.mark.parametrize("version", ["0.0.9", __version__])
def test_a_list_of_an_older_daemons_plates_explains_what_to_do(daemon, other, version, plates, words):
    old = other(version, "port", plates)
    done = tailhook("plates", *words, env=daemon.env, cwd=daemon.home)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"tailhook: {describe_other(version)}."
        f" End it:  kill {old.pid}   Then start one of this version:  tailhook plates serve\n"
    )
    assert old.poll() is None


@pytest.mark.parametrize(("version", "kind"), [("0.0.9", "port"), (__version__, "port"), ("999.0", "no-port")])
def test_a_board_warns_about_an_other_daemon_that_a_person_started_or_that_is_newer(daemon, other, version, kind):
    running = other(version, kind)
    board = Terminal(BOARD, {**daemon.env, "TERM": "xterm"}, daemon.home)
    assert board.wait() == 1
    assert describe_other(version).partition(";")[0] in " ".join(board.seen.split())
    assert "Traceback" not in board.seen
    assert running.poll() is None


@pytest.mark.parametrize("version", ["0.0.9", __version__])
def test_a_board_replaces_an_older_daemon_that_a_hook_started(daemon, other, version):
    check_that_a_board_replaces(other(version, "no-port"), daemon)


def check_that_a_board_replaces(old, daemon):
    """Open a board; it must end the process `old` and start a daemon of this version, which ends here, too."""
    board = Terminal(BOARD, {**daemon.env, "TERM": "xterm"}, daemon.home)
    try:
        board.until("No sessions yet")
        os.write(board.fd, b"q")
        assert board.wait() == 0
        assert old.wait() == -signal.SIGTERM
        assert daemon.ask("GET", "/health").json()["version"] == __version__
    finally:
        end_started(daemon)


def answers_without(field):
    """Return the answers of a daemon of this version, from before its plates had a field."""
    kinds = {kind.__name__: {name: {} for name in kind.__required_keys__ - {field}} for kind in ANSWERS}
    schemas = {name: {"properties": fields} for name, fields in kinds.items()}
    statuses = {"groups": [], "statuses": [], "marks": [], "filter_fields": "", "long_wait_hours": 8}
    return {"/openapi.json": {"components": {"schemas": schemas}}, "/statuses": statuses}


def test_a_daemon_of_the_same_number_whose_plates_lack_a_field_is_an_older_one(daemon, other):
    old = other(__version__, "no-port", more=answers_without("tokens_used"))
    done = tailhook("plates", "list", env=daemon.env, cwd=daemon.home)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"End it:  kill {old.pid} " in done.stderr
    check_that_a_board_replaces(old, daemon)


def test_a_board_whose_daemon_cannot_start_leaves_the_command_with_which_hooks_start_theirs(daemon):
    database = daemon.state / "plates.db"
    with sqlite3.connect(database) as made_by_a_newer_one:
        made_by_a_newer_one.execute("CREATE TABLE alembic_version (version_num TEXT)")
        made_by_a_newer_one.execute("INSERT INTO alembic_version VALUES ('9999')")
    made_by_a_newer_one.close()
    argv = daemon.state / "daemon-argv"
    argv.write_text("/opt/newer/bin/python\0plates\0serve")
    argv.chmod(0o600)
    board = Terminal(BOARD, {**daemon.env, "TERM": "xterm"}, daemon.home)
    assert board.wait() == 1
    assert argv.read_text() == "/opt/newer/bin/python\0plates\0serve"


def test_without_leave_to_start_a_daemon_none_is_replaced(daemon, other):
    old = other("0.0.9", "no-port")
    env = {**daemon.env, "TERM": "xterm", "TAILHOOK_NO_AUTOSTART": "1"}
    board = Terminal(BOARD, env, daemon.home)
    assert board.wait() == 1
    assert "a daemon of another version runs (0.0.9)" in board.seen
    assert old.poll() is None


@pytest.mark.parametrize("version", ["0.0.9", __version__, "999.0"])
def test_the_doctor_names_a_daemon_of_another_version_and_does_not_blame_its_database(daemon, other, version):
    other(version, "port")
    settings = daemon.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    install = tailhook("install", "--print", "--with", "plates", env=daemon.env, cwd=daemon.home)
    settings.write_text(install.stdout)
    done = tailhook("doctor", "--json", env=daemon.env, cwd=daemon.home)
    found = next(one for one in json.loads(done.stdout)["findings"] if one["check"] == "plates")
    assert (found["status"], found["what"]) == ("failure", describe_other(version))
    newer = "Use the newer tailhook, to which the daemon belongs. If that is gone, end the daemon:  kill "
    assert found["advice"].startswith(newer if version == "999.0" else "End it:  kill ")


def test_versions_are_compared_by_their_numbers():
    assert numbers_in("0.9.10") > numbers_in("0.9.9") > numbers_in("0.9")
    assert numbers_in("1.0.0.dev1") > numbers_in("0.10")
    assert numbers_in("0.10.2rc1") == numbers_in("0.10.2")  # its daemon is replaced
    assert numbers_in("unknown") == []
