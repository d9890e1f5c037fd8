"""Sessions that Claude Code's own list has (`claude agents --json`) on the board, with hooks and without."""

import json
import subprocess
import threading
from contextlib import contextmanager, suppress

import httpx
import pytest
from interactive import KEY
from model import Model, bash
from run_hosts import host_path
from support.daemon import daemon_in, sse, wait_until


@contextmanager
def in_background(claude, model):
    """Start a session in the background; yield its short id. At the end the host's own service is ended."""
    trust = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY], "rejected": []},
        "projects": {str(claude.project): trust},
    }
    (claude.home / ".claude.json").write_text(json.dumps(state))
    claude.env["ANTHROPIC_BASE_URL"] = model.url
    try:
        printed = host(claude, "--bg", "--permission-mode", "default", "Do the work.")
        yield printed.partition("·")[2].split()[0]
    finally:
        host(claude, "daemon", "stop", "--any")


def host(claude, *words):
    """Run the host without a terminal; return what it prints."""
    argv = [str(host_path("claude")), *words]
    done = subprocess.run(
        argv, env=claude.env, cwd=claude.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def daemon(claude):
    """Yield a daemon that finds the host."""
    claude.env["TAILHOOK_NO_AUTOSTART"] = "1"
    with daemon_in(claude.home) as one:
        one.env["PATH"] = f"{host_path('claude').parent}:{one.env['PATH']}"
        yield one.start()


@contextmanager
def board(daemon):
    """Open a board; yield a list that gets the events of its stream."""
    sent = []

    def watch():
        with suppress(httpx.TransportError), daemon.client() as client, client.stream("GET", "/stream") as response:
            sent.extend(sse(response))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield sent
    finally:
        daemon.stop()
        watcher.join()


def find_row(sent, **fields):
    """Return the first row that was sent with these fields; wait for it."""

    def found():
        rows = (row for name, row in sent if name == "plate")
        return next((row for row in rows if all(row[field] == value for field, value in fields.items())), None)

    return wait_until(found)


@pytest.fixture
def has_thought():
    """Return an event: the model thinks about its first answer until it is set."""
    return threading.Event()


@pytest.fixture
def thinking(has_thought):
    """Yield a model that thinks about its first answer; at the end of the test at the latest it has thought."""
    with Model(lambda _: "All is done." if has_thought.wait() else "") as model:
        yield model
        has_thought.set()


def test_a_session_in_the_background_without_hooks_is_on_the_board_until_it_ends(claude, daemon, thinking, has_thought):
    with in_background(claude, thinking) as short_id, board(daemon) as sent:
        row = find_row(sent, status="running")
        assert row["session_id"].startswith(short_id)
        assert (row["project_path"], row["last_event_type"]) == (str(claude.project), "listed")
        assert row["activity"]["words"] == "from claude agents"
        assert row["headline"] != ""
        assert daemon.plates().keys() == {row["session_id"]}
        has_thought.set()
        rested = find_row(sent, status="idle")
        assert row["since"] < rested["since"] < rested["updated_at"]
        details = daemon.ask("GET", f"/plates/{row['session_id']}?events=10").json()
        assert (details["last_message"], details["events"]) == ("All is done.", [])
        host(claude, "stop", short_id)
        wait_until(lambda: ("removed", {"session_id": row["session_id"]}) in sent)
        assert daemon.plates() == {}


def test_a_session_in_the_background_with_hooks_is_left_to_them(claude, daemon, thinking):
    claude.tailhook("install", "--yes", "--with", "plates")
    with in_background(claude, thinking), board(daemon) as sent:
        row = find_row(sent, last_event_type="prompt_submit")
        listed = json.loads(host(claude, "agents", "--json"))
        assert [one["sessionId"] for one in listed] == [row["session_id"]]
        assert [plate["last_event_type"] for plate in daemon.plates().values()] == ["prompt_submit"]


def test_a_session_in_the_background_without_hooks_waits_for_a_permission(claude, daemon):
    with Model(bash("touch x")) as model, in_background(claude, model), board(daemon) as sent:
        row = find_row(sent, group="waits")
        assert (row["activity"]["words"], row["activity"]["text"]) == ("from claude agents:", "permission prompt")
        asked = daemon.ask("GET", f"/plates/{row['session_id']}?events=10").json()["asked"]
        assert [question["text"] for question in asked["questions"]] == ["permission prompt"]
