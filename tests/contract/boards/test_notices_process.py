"""The daemon's notices: a real daemon runs a real command and calls a real HTTP server."""

import json
import os
import queue
import signal
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.daemon import daemon_in, spooled
from support.host import HANGS_S, tailhook, wait_until
from support.pool import is_alive

from tailhook.machines.plates import STUCK_TIMEOUT

# Writes what it got into a new file, whose name appears only when it is whole.
RECORD = """
import json, os, sys
got = {name: value for name, value in os.environ.items() if name.startswith("TAILHOOK_")}
found = {"argv": sys.argv[2:], "env": got, "stdin": json.load(sys.stdin), "folder": os.getcwd()}
path = os.path.join(sys.argv[1], str(os.getpid()))
open(path + ".part", "w").write(json.dumps(found))
os.rename(path + ".part", path + ".json")
"""
ASKED = {"tool_name": "AskUserQuestion", "tool_params": {"question": "Which database?", "choices": ["A", "B"]}}


def configure(daemon, **notify):
    """Write the user's configuration; it appears at once."""
    folder = daemon.home / ".config" / "tailhook"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "new").write_text(json.dumps({"plates": {"notify": notify}}))
    (folder / "new").rename(folder / "config.json")


class Recorder:
    """A command that records the notices it gets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        script = folder / "record.py"
        script.write_text(RECORD)
        self.argv = [sys.executable, str(script), str(folder), "-x"]

    def got(self):
        """Return what its runs got."""
        return [json.loads(path.read_text()) for path in self.folder.glob("*.json")]

    def texts(self):
        """Return the sessions and the kinds of the notices."""
        return sorted((one["stdin"]["session_id"], one["stdin"]["kind"]) for one in self.got())


@contextmanager
def web_server(status=200, answers=True):
    """Yield a server on a free port as its URL and a queue of the requests.

    answers: whether it answers; otherwise it only accepts requests until the end of the block.
    """
    requests, over = queue.Queue(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.put((self.path, dict(self.headers.items()), body))
            if not answers:
                over.wait()
                return
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            over.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def recorder(tmp_path):
    return Recorder(tmp_path / "recorded")


def test_a_command_gets_the_question_in_its_environment_and_on_stdin_and_nothing_in_its_arguments(own, recorder):
    configure(own, command=recorder.argv)
    own.env["TAILHOOK_TOKEN"] = "x" * 40
    own.start()
    own.post("prompt_submit", "a", prompt="Choose; $(id)", project_path="/p/shop")
    own.post("tool_start", "a", **ASKED, project_path="/p/shop")
    wait_until(recorder.got)
    [got] = recorder.got()
    text = "asks Which database?\n1) A\n2) B\nChoose; $(id)"
    assert got["argv"] == ["-x"]
    assert got["folder"] == str(own.home)
    assert got["stdin"] == {
        "kind": "waits",
        "title": "shop waits for you",
        "text": text,
        "session_id": "a",
        "project_path": "/p/shop",
        "host": os.uname().nodename,
    }
    named = {name: value for name, value in got["env"].items() if name.startswith("TAILHOOK_NOTICE_")}
    assert named == {
        "TAILHOOK_NOTICE_KIND": "waits",
        "TAILHOOK_NOTICE_TITLE": "shop waits for you",
        "TAILHOOK_NOTICE_TEXT": text,
    }
    assert not got["env"].keys() & {"TAILHOOK_TOKEN", "TAILHOOK_DB"}


def test_ntfy_gets_a_title_and_a_text_and_slack_gets_json(own):
    with web_server() as (url, requests):
        configure(own, webhook=f"{url.replace('//', '//:tk_secret@')}/topic")
        own.start()
        own.post("tool_start", "a", **ASKED, project_path="/p/läden")
        path, headers, body = requests.get(timeout=HANGS_S)
        assert (path, body.decode()) == ("/topic", "asks Which database?\n1) A\n2) B")
        assert headers["Title"] == "=?UTF-8?B?bMOkZGVuIHdhaXRzIGZvciB5b3U=?="
        assert headers["Content-Type"] == "text/plain; charset=utf-8"
        assert headers["Authorization"] == "Basic OnRrX3NlY3JldA=="  # base64 of ":tk_secret"
        configure(own, webhook=f"{url}/slack", format="slack")  # while the daemon runs
        own.post("prompt_submit", "b", project_path="/p/shop")
        own.post("stop", "b", reply="<!channel> & all.", project_path="/p/shop")
        path, headers, body = requests.get(timeout=HANGS_S)
        assert (path, headers["Content-Type"]) == ("/slack", "application/json")
        assert json.loads(body) == {"text": "shop has finished\n&lt;!channel&gt; &amp; all."}
        assert "Title" not in headers


def test_a_command_and_a_webhook_both_get_each_change_once(own, recorder):
    with web_server() as (url, requests):
        configure(own, command=recorder.argv, webhook=url)
        own.start()
        own.post("tool_start", "a", **ASKED)
        own.post("permission_asked", "a", tool_name="Bash", tool_params={"command": "make"})
        requests.get(timeout=HANGS_S)
        own.post("prompt_submit", "b")
        own.post("stop", "b")
        requests.get(timeout=HANGS_S)
        wait_until(lambda: len(recorder.got()) == 2)
        assert recorder.texts() == [("a", "waits"), ("b", "finished")]
        assert requests.empty()


def test_a_session_that_becomes_stuck_gives_a_notice(own, recorder):
    configure(own, command=recorder.argv)
    own.start()
    own.post("prompt_submit", "a", prompt="Wait for it")
    own.make_older(STUCK_TIMEOUT + 5)
    wait_until(recorder.got)
    [got] = recorder.got()
    assert (got["stdin"]["kind"], got["stdin"]["title"]) == ("stuck", "p may be stuck")
    assert got["stdin"]["text"] == "thinking\nWait for it"


def test_old_waits_and_those_of_hidden_sessions_and_other_machines_give_none(own, recorder):
    configure(own, command=recorder.argv)
    own.start()
    own.post("tool_start", "old", **ASKED, ts=1000)
    own.post("session_start", "hidden")
    assert own.ask("PATCH", "/plates/hidden", json={"hidden": True}).status_code == 200
    own.post("tool_start", "hidden", **ASKED)
    own.post("tool_start", "elsewhere", **ASKED, host="another")
    own.post("tool_start", "last", **ASKED)  # its notice comes after all others
    wait_until(recorder.got)
    assert recorder.texts() == [("last", "waits")]


def test_a_new_start_repeats_no_notice_and_a_backlog_gives_no_old_one(own, recorder):
    configure(own, command=recorder.argv)
    own.start()
    own.post("tool_start", "a", **ASKED)
    wait_until(recorder.got)
    own.stop()
    lines = [spooled(one, session=f"s{one}", event_type="stop") | {"ts": 1000} for one in range(500)]
    own.spool(*lines)
    own.start()
    own.post("tool_start", "a", **ASKED | {"tool_params": {"question": "And which table?"}})
    own.post("tool_start", "last", **ASKED)
    wait_until(lambda: len(recorder.got()) == 2)
    assert recorder.texts() == [("a", "waits"), ("last", "waits")]
    assert len(own.plates()) == 502


def test_the_notices_of_unwanted_kinds_are_not_sent(own):
    with web_server() as (url, requests):
        configure(own, webhook=url, on=["finished"])
        own.start()
        own.post("tool_start", "a", **ASKED)
        own.post("prompt_submit", "b")
        own.post("stop", "b")
        assert requests.get(timeout=HANGS_S)[1]["Title"] == "p has finished"
        assert requests.empty()


def test_quiet_hours_are_in_local_time(own, recorder):
    own.env["TZ"] = "Etc/GMT-6"  # six hours ahead of UTC
    here = datetime.now(UTC)
    quiet = "-".join(f"{here + timedelta(hours=hours):%H:%M}" for hours in (-2, 2))
    configure(own, command=recorder.argv, quiet=quiet)
    own.start()
    own.post("tool_start", "a", **ASKED)
    wait_until(recorder.got)


def test_a_project_cannot_choose_a_command_or_a_webhook(own, recorder, project):
    with web_server() as (url, requests):
        configure(own, command=recorder.argv)
        file = project.folder / ".claude" / "tailhook.json"
        file.parent.mkdir(exist_ok=True)
        theirs = Recorder(recorder.folder / "theirs")
        notify = {"command": theirs.argv, "webhook": url, "on": [], "format": "slack", "quiet": "00:00-23:59"}
        file.write_text(json.dumps({"plates": {"notify": notify}}))
        own.before = ["env", "-C", str(project.folder)]
        own.start()
        own.post("tool_start", "a", **ASKED, project_path=str(project.folder))
        wait_until(recorder.got)
        assert (theirs.got(), requests.empty()) == ([], True)
    printed = project.tailhook("doctor").stdout
    for key in notify:
        assert f"the key plates.notify.{key} is ignored here: only the user's own file can set it" in printed


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["false"], "exit status 1"),
        (["/missing/program"], "/missing/program: No such file or directory"),
        (["sleep", "600"], "it took longer than 10 seconds, and was killed"),
    ],
)
def test_a_command_that_fails_is_reported_once_and_the_daemon_goes_on(own, argv, words):
    configure(own, command=argv)
    own.is_forked = False
    own.start()
    for name in ("a", "b"):
        own.post("tool_start", name, **ASKED)
    own.post("stop", "while-it-hangs")
    assert "while-it-hangs" in own.plates()
    failures = wait_until(lambda: own.ask("GET", "/status").json()["notice_failures"])
    assert words in failures["command"]
    assert tailhook("install", "--yes", "--with", "plates", env=own.env, cwd=own.home).returncode == 0
    printed = tailhook("doctor", env=own.env, cwd=own.home).stdout
    assert f"the last notice of plates.notify.command was not sent: {failures['command']}" in " ".join(printed.split())
    process = own.process
    own.process = None
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=HANGS_S)
    assert stderr.splitlines() == [f"tailhook: plates.notify.command failed: {failures['command']}"]


@pytest.mark.parametrize("status", [302, 500])
def test_a_webhook_that_refuses_is_reported_without_its_url(own, status):
    with web_server(status) as (url, requests):
        configure(own, webhook=f"{url}/secret-topic")
        own.start()
        own.post("tool_start", "a", **ASKED)
        assert wait_until(lambda: own.ask("GET", "/status").json()["notice_failures"]) == {
            "webhook": f"HTTP status {status}"
        }
        assert requests.get(timeout=HANGS_S)[0] == "/secret-topic"
        assert requests.empty()  # no redirect was followed


def test_a_notice_that_is_sent_takes_the_failure_back(own, recorder):
    configure(own, command=["false"])
    own.start()
    own.post("tool_start", "a", **ASKED)
    wait_until(lambda: own.ask("GET", "/status").json()["notice_failures"])
    configure(own, command=recorder.argv)
    own.post("tool_start", "b", **ASKED)
    wait_until(lambda: not own.ask("GET", "/status").json()["notice_failures"])
    assert recorder.texts() == [("b", "waits")]


def test_the_daemon_ends_while_a_command_and_a_webhook_hang_and_kills_the_command(own, tmp_path):
    started = tmp_path / "started"
    with web_server(answers=False) as (url, requests):
        script = f"echo $$ > {started}.part; mv {started}.part {started}; sleep 600"
        configure(own, command=["sh", "-c", script], webhook=url)
        own.start()
        own.post("tool_start", "a", **ASKED)
        requests.get(timeout=HANGS_S)
        wait_until(started.exists)
        assert own.stop() == 0
    wait_until(lambda: not is_alive(int(started.read_text())))  # killed; init reaps it a moment later


def test_of_two_daemons_on_one_database_only_the_sessions_own_sends(postgres_url, short_path):
    name = f"notices_{os.urandom(4).hex()}"
    server = sa.create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    server.dispose()
    with daemon_in(short_path / "one") as one, daemon_in(short_path / "two") as two:
        recorders = []
        for daemon in (one, two):
            recorders.append(Recorder(daemon.home / "recorded"))
            configure(daemon, command=recorders[-1].argv)
            daemon.start("--db", postgres_url.replace("/postgres", f"/{name}"))
        one.post("tool_start", "of-one", **ASKED)
        wait_until(lambda: "of-one" in two.plates())
        wait_until(recorders[0].got)
        two.post("tool_start", "of-two", **ASKED)
        wait_until(recorders[1].got)
        assert [one.texts() for one in recorders] == [[("of-one", "waits")], [("of-two", "waits")]]
