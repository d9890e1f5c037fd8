"""The daemon as a process: the reasons not to start, and its end."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from datetime import datetime

import pytest
from support.daemon import SERVE, answers, refused, spooled, sse, wait_until
from support.host import HANGS_S, tailhook


def test_a_port_that_is_taken_is_reported(own):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = refused(own, "--port", str(taken.getsockname()[1]))
    assert "--port N" in words


def test_a_database_that_cannot_be_opened_is_reported(own):
    assert "the database cannot be opened" in refused(own, "--db", "sqlite:////nowhere/plates.db")
    assert "the database cannot be opened" in refused(own, "--db", "no URL")


@pytest.mark.parametrize("url", ["mysql://db/x", "postgres://db/x", "postgresql://db/x"])
def test_a_database_of_another_kind_is_refused_with_those_that_can_be_used(own, url):
    words = refused(own, "--port", "0", "--db", url)
    assert "sqlite://... or postgresql+psycopg://..." in words


def test_a_session_was_created_when_its_first_event_happened_also_if_that_one_comes_last(daemon):
    now = time.time_ns() // 1_000_000
    daemon.post("tool_call", "late", tool_name="Read", ts=now - 60_000)
    daemon.post("prompt_submit", "late", ts=now - 600_000)
    daemon.post("stop", "late", ts=now - 30_000)
    for plate in (daemon.plates()["late"], daemon.ask("GET", "/plates/late").json()):
        assert datetime.fromisoformat(plate["created_at"]).timestamp() * 1000 == pytest.approx(now - 600_000, abs=1)
        assert datetime.fromisoformat(plate["since"]).timestamp() * 1000 == pytest.approx(now - 30_000, abs=1)


def test_an_invalid_port_is_wrong_usage(own):
    for port in ("99999", "-1", "http"):
        done = tailhook("plates", "serve", "--port", port, env=own.env, cwd=own.home)
        assert (done.returncode, "is not a port" in done.stderr) == (2, True)


def test_an_invalid_retention_is_wrong_usage(own):
    for days in ("36501", "0", "1e3"):
        done = tailhook("plates", "serve", "--retention", days, env=own.env, cwd=own.home)
        assert (done.returncode, days in done.stderr) == (2, True)
    own.start("--retention", "36500")
    assert json.loads((own.state / "daemon-settings").read_text())["retention"] == 36500


def test_a_database_of_a_newer_version_is_reported(own):
    own.start().stop()
    with sqlite3.connect(own.state / "plates.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    assert "newer tailhook. Upgrade tailhook, or give another database with --db" in refused(own, "--port", "0")


def test_a_socket_whose_path_is_too_long_is_reported(own, tmp_path):
    (tmp_path / ("long" * 30)).mkdir()
    own.env["XDG_RUNTIME_DIR"] = str(tmp_path / ("long" * 30))
    assert "set XDG_RUNTIME_DIR to a folder whose path is shorter" in refused(own, "--port", "0")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be a user without a name")
def test_a_user_without_a_name_is_a_number(own):
    code = (
        "import os; from tailhook.plates.paths import local_identity; os.setuid(54321); print(local_identity()['user'])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=own.env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("54321\n", "")


def test_a_daemon_that_hangs_is_distinguished_from_one_that_is_away(own):
    away = tailhook("plates", "list", env=own.env, cwd=own.home)
    assert "no daemon answers" in away.stderr
    own.start()
    os.kill(own.process.pid, signal.SIGSTOP)
    hangs = tailhook("plates", "list", env=own.env, cwd=own.home)
    os.kill(own.process.pid, signal.SIGCONT)
    assert f"kill -9 {own.process.pid}" in hangs.stderr
    assert "Start one" not in hangs.stderr


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_while_a_client_listens(own, how):
    own.start()
    with own.client() as client, client.stream("GET", "/stream") as response:
        next(sse(response))
        assert own.stop(how) == 0
    assert not (own.runtime / "http").exists()
    assert not (own.runtime / "poke").exists()


def test_it_ends_in_the_middle_of_a_long_spool(own):
    own.spool(*(spooled(number) for number in range(20_000)))
    own.start()
    wait_until(lambda: own.plates())
    assert own.stop() == 0
    own.start()
    assert own.ask("GET", "/status").json()["spool_bytes"] > 0  # it did not wait for the rest


def with_changed(own, code):
    """Start a daemon that runs some code first."""
    (own.home / "site").mkdir()
    (own.home / "site" / "sitecustomize.py").write_text(code)
    own.env["PYTHONPATH"] = str(own.home / "site")
    return own.start()


ERRORS = {"Health.check": "KeyError('odd')", "Inbox.ingest": "MemoryError()", "Database.prune": "RecursionError()"}


def test_a_failure_that_was_not_foreseen_does_not_end_it(own):
    """Each work of the daemon fails twice; then it is done."""
    code = (
        "from tailhook.plates.db import Database\n"
        "from tailhook.plates.health import Health\n"
        "from tailhook.plates.inbox import Inbox\n"
        "def make_fail(part, name, error):\n"
        "    done, failures = getattr(part, name), []\n"
        "    def fail(self, *more):\n"
        "        if len(failures) < 2:\n"
        "            failures.append(1)\n"
        "            raise error\n"
        f"        open({str(own.home)!r} + f'/{{name}}-is-done', 'w')\n"
        "        return done(self, *more)\n"
        "    setattr(part, name, fail)\n"
    )
    for work, error in ERRORS.items():
        part, name = work.split(".")
        code += f"make_fail({part}, {name!r}, {error})\n"
    with_changed(own, code)
    wait_until(lambda: len(list(own.home.glob("*-is-done"))) == len(ERRORS))
    own.post("stop")
    assert own.plates()["s"]["status"] == "idle"
    own.process.send_signal(signal.SIGTERM)
    _, words = own.process.communicate(timeout=HANGS_S)
    assert own.process.returncode == 0
    for error in ERRORS.values():
        assert words.count(f" failed: {error}\nTraceback") == 1  # the same failure is logged once a minute


def test_it_ends_when_its_server_does(own):
    """The next hook finds no daemon, and starts one."""
    with_changed(
        own,
        "from tailhook.plates.sockets import Server\n"
        "async def fail(self, *more):\n"
        "    import asyncio\n"
        "    await asyncio.sleep(0.5)\n"
        "    raise KeyError('odd')\n"
        "Server.main_loop = fail\n",
    )
    _, words = own.process.communicate(timeout=HANGS_S)
    assert own.process.returncode == 1
    assert "a part of it failed: KeyError('odd')" in words
    assert not (own.runtime / "http").exists()


def test_what_a_killed_daemon_left_is_not_a_hindrance(own):
    own.start().post("stop")
    own.stop(signal.SIGKILL)
    assert (own.runtime / "http").exists()
    assert own.start().plates()["s"]["status"] == "idle"


def test_started_by_itself_it_opens_no_port(own):
    process = subprocess.Popen([*SERVE, "--no-port"], env=own.env, stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: answers(own))
        wait_until(lambda: own.ask("GET", "/health").status_code == 200)
        assert not (own.state / "token").exists()
    finally:
        process.terminate()
        assert process.communicate(timeout=HANGS_S)[0] == ""
