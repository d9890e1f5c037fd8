"""The daemon as a process: its routes, its stream, and that only one runs."""

import fcntl
import json
import os
import shlex
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.daemon import SERVE, daemon_pid, refused, request, spooled, sse, wait_until
from support.host import tailhook
from support.usual_secrets import SECRETS, is_shown, written

from tailhook._core import send_wake_up

IS_JSON = {"content-type": "application/json"}
DEEP = '{"session_id":"deep","project_path":"/","event_type":"stop","tool_params":{"a":%s}}' % ("[" * 400 + "]" * 400)

# ---- routes ------------------------------------------------------------------


def test_an_event_becomes_a_plate(daemon):
    daemon.post("tool_start", "routes", tool_name="AskUserQuestion", git_branch="main", ts=1000)
    plate = daemon.ask("GET", "/plates/routes").json()
    assert (plate["status"], plate["last_tool"], plate["git_branch"]) == ("awaiting_input", "AskUserQuestion", "main")
    assert plate["events"] == []


def test_the_details_of_a_plate_have_its_events_and_the_last_words(daemon, tmp_path):
    transcript = tmp_path / "t.jsonl"
    transcript.write_text('{"type":"assistant","message":{"role":"assistant","content":"All done."}}\n')
    os.utime(transcript, (0, 0))  # else it goes on after the stop, and the health check looks at it
    daemon.post("prompt_submit", "details", transcript_path=str(transcript), ts=1)
    daemon.post("tool_start", "details", tool_name="Bash", tool_params={"command": "make"}, ts=2)
    daemon.post("stop", "details", ts=3)
    details = daemon.ask("GET", "/plates/details", params={"events": 2}).json()
    assert details["last_message"] == "All done."
    assert [(event["event_type"], event["status"]) for event in details["events"]] == [
        ("tool_start", "running"),
        ("stop", "idle"),
    ]


def test_no_secret_of_a_session_is_stored_or_shown(own, tmp_path):
    own.start()
    transcript = tmp_path / "t.jsonl"
    said = "\n\n".join(written(name)[1] for name in SECRETS if "PEM" not in name)  # one that is cut hides the rest
    message = {"role": "assistant", "content": said}
    transcript.write_text(json.dumps({"type": "assistant", "message": message}) + "\n")
    for name in SECRETS:
        text = written(name)[1]
        own.post("tool_call", "s", tool_params={"command": text}, error=text, transcript_path=str(transcript))
    details = own.ask("GET", "/plates/s?events=1000").json()
    assert len(details["events"]) == len(SECRETS)
    own.stop()
    stored = b"".join(path.read_bytes() for path in own.state.glob("plates.db*")).decode("latin-1")
    for name in SECRETS:
        assert not is_shown(name, json.dumps(details)), name
        assert not is_shown(name, stored), name
    assert details["last_message"].count("[secret]") >= len(SECRETS) - 3


def test_an_event_of_an_unknown_type_is_counted_and_makes_no_plate(daemon):
    before = daemon.ask("GET", "/status").json()["unknown_events"]
    daemon.post("coffee_break", "unknown")
    assert daemon.ask("GET", "/plates/unknown").status_code == 404
    assert "unknown" not in daemon.plates()
    assert daemon.ask("GET", "/status").json()["unknown_events"] == before + 1
    daemon.post("stop", "unknown")
    daemon.post("coffee_break", "unknown")
    assert daemon.plates()["unknown"]["status"] == "idle"
    assert daemon.ask("GET", "/status").json()["unknown_events"] == before + 2


def test_a_plate_has_the_time_since_which_its_status_holds(daemon):
    for ts, kind in ((60_000, "prompt_submit"), (120_000, "stop"), (180_000, "turn_ended")):
        daemon.post(kind, "since", ts=ts)
    daemon.post("tool_call", "since", ts=60_500, git_branch="late")
    plate = daemon.plates()["since"]
    assert (plate["since"], plate["git_branch"]) == ("1970-01-01T00:02:00.000Z", "late")


def test_an_event_from_the_end_of_time_closes_no_plate_for_the_events_after_it(daemon):
    end = 8_640_000_000_000_000
    daemon.post("session_end", "end", ts=end, mono=end)
    daemon.post("prompt_submit", "end")
    assert daemon.plates()["end"]["status"] == "running"


def test_a_subagents_events_are_on_the_timeline_and_move_nothing(daemon):
    daemon.post("tool_start", "sub", tool_name="AskUserQuestion", tool_use_id="a")
    daemon.post("tool_start", "sub", tool_name="Bash", tool_use_id="b", agent_id="x")
    daemon.post("tool_call", "sub", tool_name="Bash", tool_use_id="b", agent_id="x")
    details = daemon.ask("GET", "/plates/sub?events=9").json()
    assert details["status"] == "awaiting_input"
    reported = [(event["event_type"], event["agent_id"], event["status"]) for event in details["events"]]
    assert reported == [
        ("tool_start", None, "awaiting_input"),
        ("tool_start", "x", None),
        ("tool_call", "x", None),
    ]


@pytest.mark.parametrize("text", [r'"\ud800"', r'"a\u0000b"', "NaN", "-Infinity", "1e999", "[[NaN]]", r'{"\udfff": 1}'])
def test_what_no_database_and_no_answer_can_have_is_made_fit(daemon, text):
    body = f'{{"session_id":"odd","project_path":"/p","event_type":"stop","tool_params":{{"a":{text}}}}}'
    assert daemon.ask("POST", "/events", content=body, headers=IS_JSON).status_code == 200
    details = daemon.ask("GET", "/plates/odd?events=1")
    assert details.status_code == 200
    assert details.json()["events"][0]["tool_params"].keys() == {"a"}


def test_plates_are_filtered_by_status_and_project(daemon):
    daemon.post("stop", "filtered", project_path="/only")
    assert [plate["session_id"] for plate in daemon.ask("GET", "/plates?project=/only&status=idle").json()] == [
        "filtered"
    ]
    assert daemon.ask("GET", "/plates?project=/only&status=running").json() == []
    assert daemon.ask("GET", "/plates?status=asleep").status_code == 422


def test_a_plate_is_deleted_once(daemon):
    daemon.post("stop", "deleted")
    assert daemon.ask("DELETE", "/plates/deleted").json() == {"status": "ok"}
    gone = daemon.ask("DELETE", "/plates/deleted")
    assert (gone.status_code, gone.json()) == (404, {"error": "no such plate"})


def test_a_run_is_registered_and_stopped(daemon):
    plate = daemon.ask(
        "POST", "/plates/register", json={"project_path": "/run", "run_id": "r", "pid": os.getpid()}
    ).json()
    assert (plate["session_id"], plate["status"]) == ("pending:/run", "starting")
    assert daemon.ask("GET", "/plates/pending:/run").json()["run_id"] == "r"
    assert daemon.ask("POST", "/plates/stopped", json={"run_id": "r"}).json() == {"status": "ok", "closed": 1}
    assert daemon.ask("POST", "/plates/stopped", json={}).json() == {"status": "ok", "closed": 0}


def test_the_status_route_returns_figures(daemon):
    daemon.post("stop", "figures")
    figures = daemon.ask("GET", "/status").json()
    assert figures["plates"]["idle"] >= 1
    assert figures["spool_bytes"] == 0
    assert daemon.ask("GET", "/health").json() == {"status": "ok", "version": figures["version"]}


@pytest.mark.parametrize(
    ("method", "path", "options", "code"),
    [
        ("POST", "/events", {"content": b"{"}, 422),
        ("POST", "/events", {"json": []}, 422),
        ("POST", "/events", {"json": {"session_id": "s"}}, 422),
        ("POST", "/events", {"json": {"session_id": "", "project_path": "/", "event_type": "stop"}}, 422),
        ("POST", "/events", {"json": {"session_id": "a\0b", "project_path": "/", "event_type": "stop"}}, 422),
        ("POST", "/events", {"json": {"session_id": "..", "project_path": "/", "event_type": "stop"}}, 422),
        ("POST", "/events", {"json": {"session_id": "a/./b", "project_path": "/", "event_type": "stop"}}, 422),
        ("POST", "/events", {"json": {"session_id": "s", "project_path": "/", "event_type": "stop", "ts": "now"}}, 422),
        (
            "POST",
            "/events",
            {"json": {"session_id": "s", "project_path": "/", "event_type": "x", "ts": 9 * 10**15}},
            422,
        ),
        ("POST", "/events", {"content": b'{"session_id": "\\ud800", "project_path": "/", "event_type": "x"}'}, 422),
        ("POST", "/events", {"content": DEEP}, 422),
        ("POST", "/plates/register", {"json": {"project_path": "/a/../b"}}, 422),
        ("POST", "/plates/register", {"json": {"project_path": "/a", "run_id": "/../b"}}, 422),
        ("GET", "/nothing", {}, 404),
        ("GET", "/plates/../../etc/passwd", {}, 404),
        ("GET", "/plates/%2e%2e%2f%2e%2e%2fetc%2fpasswd", {}, 404),
        ("PATCH", "/plates", {}, 405),
    ],
)
def test_every_error_is_json_with_a_message(daemon, method, path, options, code):
    response = daemon.ask(method, path, headers=IS_JSON, **options)
    assert response.status_code == code
    assert set(response.json()) == {"error"}
    assert response.json()["error"]


# ---- whose a session is -------------------------------------------------------


def test_a_session_elsewhere_has_no_words_of_this_machines_files(own, tmp_path):
    transcript = tmp_path / "t.jsonl"
    transcript.write_text('{"type":"assistant","message":{"role":"assistant","content":"All done."}}\n')
    own.start()
    own.post("stop", "here", transcript_path=str(transcript))
    own.post("stop", "there", transcript_path=str(transcript), host="elsewhere")
    words = [own.ask("GET", f"/plates/{name}?events=1").json()["last_message"] for name in ("here", "there")]
    assert words == ["All done.", None]


def test_an_event_over_tcp_without_a_host_has_no_process(own):
    own.start()
    event = {"session_id": "s", "project_path": "/p", "event_type": "stop", "pid": os.getpid(), "pid_started": 1}
    request(
        "POST", f"{own.base}/events", json=event, headers={"authorization": f"Bearer {own.token}"}
    ).raise_for_status()
    run = {"project_path": "/run", "run_id": "r", "pid": os.getpid(), "pid_started": 1}
    own.ask("POST", "/plates/register", json=run)
    plates = own.plates()
    assert (plates["s"]["host"], plates["s"]["pid"]) == (os.uname().nodename, None)
    assert (plates["pending:/run"]["host"], plates["pending:/run"]["pid"]) == (os.uname().nodename, os.getpid())


# ---- the stream --------------------------------------------------------------


def test_x_forwarded_for_does_not_change_the_host(own):
    own.env["FORWARDED_ALLOW_IPS"] = "*"
    own.start()
    body = {"session_id": "s", "project_path": "/p", "event_type": "stop"}
    headers = {"Authorization": f"Bearer {own.token}", "X-Forwarded-For": "192.0.2.7"}
    assert request("POST", f"{own.base}/events", json=body, headers=headers).status_code == 200
    assert own.plates()["s"]["host"] == os.uname().nodename


def test_the_stream_sends_all_plates_and_then_each_change(daemon):
    daemon.post("stop", "streamed", ts=1)
    with daemon.client() as client, client.stream("GET", "/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        reported = sse(response)
        name, plates = next(reported)
        assert name == "plates"
        assert {plate["session_id"]: plate["status"] for plate in plates}["streamed"] == "idle"
        daemon.post("prompt_submit", "streamed", ts=2)
        name, plate = next(reported)
        assert (name, plate["session_id"], plate["status"]) == ("plate", "streamed", "running")
        daemon.ask("DELETE", "/plates/streamed")
        assert next(reported) == ("removed", {"session_id": "streamed"})


def test_the_stream_renames_projects_when_another_gets_the_same_folder_name(daemon):
    daemon.post("stop", "first", project_path="/a/renamed")
    with daemon.client() as client, client.stream("GET", "/stream") as response:
        sent = sse(response)
        name, plates = next(sent)
        assert {plate["session_id"]: plate["name"] for plate in plates}["first"] == "renamed"
        daemon.post("stop", "second", project_path="/b/renamed")
        name, plate = next(sent)
        assert (name, plate["name"]) == ("plate", "b/renamed")
        assert next(sent) == ("names", {"first": "a/renamed"})
        assert {name: daemon.plates()[name]["name"] for name in ("first", "second")} == {
            "first": "a/renamed",
            "second": "b/renamed",
        }
        daemon.ask("DELETE", "/plates/second")
        assert next(sent) == ("removed", {"session_id": "second"})
        assert next(sent) == ("names", {"first": "renamed"})
    daemon.ask("DELETE", "/plates/first")


def test_every_status_is_described(daemon):
    found = daemon.ask("GET", "/statuses").json()
    assert [one["status"] for one in found["statuses"]] == [
        "awaiting_input",
        "awaiting_approval",
        "error",
        "running",
        "starting",
        "idle",
        "closed",
    ]
    assert found["statuses"][0] == {
        "status": "awaiting_input",
        "symbol": "?",
        "words": "awaiting input",
        "group": "attention",
        "tone": "attention",
    }
    assert [(group["id"], group["title"]) for group in found["groups"]] == [
        ("attention", "Needs attention"),
        ("running", "Running"),
        ("rest", "Other"),
    ]
    assert found["filter_fields"].startswith("project, ")


# ---- one process -----------------------------------------------------------


def test_a_port_that_is_taken_is_reported(own):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = refused(own, "--port", str(taken.getsockname()[1]))
    assert "--port N" in words


def test_a_database_that_cannot_be_opened_is_reported(own):
    assert "the database cannot be opened" in refused(own, "--db", "sqlite:////nowhere/plates.db")
    assert "the database cannot be opened" in refused(own, "--db", "no URL")


def test_an_invalid_port_is_wrong_usage(own):
    for port in ("99999", "-1", "http"):
        done = subprocess.run([*SERVE, "--port", port], env=own.env, capture_output=True, text=True, check=False)
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
    assert "made by a newer tailhook" in refused(own, "--port", "0")


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
        starting.communicate(timeout=30)
    assert (own.state / "daemon-lock").read_text() == ""


def test_a_person_takes_the_place_of_a_daemon_that_was_started_by_itself(own):
    with subprocess.Popen([*SERVE, "--no-port"], env=own.env) as first:
        wait_until(lambda: (own.runtime / "http").exists())
        own.post("stop")
        own.start()
        assert first.wait(30) == 0
    assert own.plates()["s"]["status"] == "idle"
    assert own.base.startswith("http://127.0.0.1:")


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


WORKS = [
    "from tailhook.plates.health import Health as Part; name = 'check'",
    "from tailhook.plates.inbox import Inbox as Part; name = 'ingest'",
    "from tailhook.plates.db import Database as Part; name = 'prune'",
]


@pytest.mark.parametrize("error", ["KeyError('odd')", "MemoryError()", "RecursionError()"])
@pytest.mark.parametrize("part", WORKS)
def test_a_failure_that_was_not_foreseen_does_not_end_it(own, part, error):
    """It fails twice; then it is done."""
    code = (
        f"{part}\n"
        "done, failures = getattr(Part, name), []\n"
        "def fail(self, *more):\n"
        "    if len(failures) < 2:\n"
        "        failures.append(1)\n"
        f"        raise {error}\n"
        f"    open({str(own.home / 'done')!r}, 'w')\n"
        "    return done(self, *more)\n"
        "setattr(Part, name, fail)\n"
    )
    with_changed(own, code)
    wait_until((own.home / "done").exists)
    own.post("stop")
    assert own.plates()["s"]["status"] == "idle"
    own.process.send_signal(signal.SIGTERM)
    _, words = own.process.communicate(timeout=60)
    assert own.process.returncode == 0
    assert words.count(f" failed: {error}\nTraceback") == 1  # the same failure is logged once a minute


def test_it_ends_when_its_server_does(own):
    """The next hook finds no daemon, and starts one."""
    with_changed(
        own,
        "import uvicorn\n"
        "async def fail(self, *more):\n"
        "    import asyncio\n"
        "    await asyncio.sleep(0.5)\n"
        "    raise KeyError('odd')\n"
        "uvicorn.Server.main_loop = fail\n",
    )
    _, words = own.process.communicate(timeout=60)
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
        wait_until(lambda: (own.runtime / "http").exists())
        wait_until(lambda: own.ask("GET", "/health").status_code == 200)
        assert not (own.state / "token").exists()
    finally:
        process.terminate()
        assert process.communicate(timeout=30)[0] == ""


# ---- the spool ---------------------------------------------------------------


def test_what_came_while_it_was_away_is_there_when_it_is_back(own):
    own.spool(spooled(1), spooled(2, event_type="stop"))
    own.start()
    wait_until(lambda: own.plates().get("s", {}).get("status") == "idle")


def test_a_wait_outlives_a_daemon_that_is_killed(own):
    def spool(number, kind, tool, tool_use_id):
        own.spool(spooled(number, event_type=kind, tool_name=tool, tool_use_id=tool_use_id))

    own.start()
    spool(1, "tool_start", "Read", "a")
    spool(2, "tool_start", "Bash", "b")
    spool(3, "permission_asked", "Read", None)
    wait_until(lambda: own.plates().get("s", {}).get("status") == "awaiting_approval")
    own.stop(signal.SIGKILL)
    spool(4, "tool_call", "Bash", "b")
    own.start()
    wait_until(lambda: len(own.ask("GET", "/plates/s?events=9").json()["events"]) == 4)
    assert own.plates()["s"]["status"] == "awaiting_approval"
    spool(5, "tool_call", "Read", "a")
    wait_until(lambda: own.plates()["s"]["status"] == "running")


def test_the_list_has_the_boards_order_and_how_long_each_status_has_lasted(own):
    own.start()
    now = time.time_ns() // 1_000_000
    for session, kind, ago in (
        ("late", "permission_asked", 50),
        ("first", "permission_asked", 7200),
        ("busy", "stop", 5),
    ):
        own.post(kind, session, ts=now - ago * 1000, project_path=f"/p/{session}")
    own.post("tool_call", "late", ts=now - 60_000, git_branch="main", project_path="/p/late")  # fills a field
    own.post("stop", "ahead", ts=now + 3_600_000, project_path="/p/ahead")
    listed = tailhook("plates", "list", env=own.env, cwd=own.home).stdout.splitlines()
    assert [line.split()[-1] for line in listed] == ["first", "late", "ahead", "busy"]
    ages = [line.split()[1] for line in listed]
    assert ages[0] == "2h"
    assert 50 <= int(ages[1].removesuffix("s")) < 60
    assert int(ages[2].removesuffix("s")) < 30
    code = "import sys; from tailhook.cli import main; main(['plates', 'list']); print(*sys.modules, file=sys.stderr)"
    argv = [sys.executable, "-c", code]
    loaded = subprocess.run(argv, env=own.env, cwd=own.home, capture_output=True, text=True, check=True).stderr.split()
    assert {"tailhook.board.view"} <= set(loaded)
    assert not {"sqlalchemy", "alembic", "pydantic"} & set(loaded)
    reported = json.loads(tailhook("plates", "list", "--json", env=own.env, cwd=own.home).stdout)["plates"]
    assert {plate["session_id"]: plate["since"] for plate in reported}["first"] < reported[0]["since"]


def test_a_hook_is_on_the_board_at_once(own, project):
    own.start()
    project.argv = [*project.argv[:-1], "plates"]
    project.env = {**own.env, "TAILHOOK_NO_AUTOSTART": "1"}
    with own.client() as client, client.stream("GET", "/stream") as response:
        reported = sse(response)
        next(reported)
        project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(), read=False)
        name, plate = next(reported)
    assert (name, plate["session_id"], plate["status"]) == ("plate", "mine", "running")


def test_the_first_hook_starts_the_daemon_that_was_installed(own, project):
    own.start().stop()  # leaves what starts it
    project.argv = [*project.argv[:-1], "plates"]
    project.env = own.env
    project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(), read=False)
    wait_until(lambda: (own.runtime / "http").exists())
    try:
        wait_until(lambda: "mine" in own.plates())
    finally:
        os.kill(daemon_pid(own), signal.SIGTERM)
        wait_until(lambda: not (own.runtime / "http").exists())


def test_the_hooks_start_the_daemon_with_the_same_database(own, project, tmp_path):
    own.start("--db", f"sqlite:///{tmp_path}/team.db", "--retention", "7").post("stop", "before")
    own.stop()
    done = tailhook("install", "--yes", "--with", "plates", env=own.env, cwd=own.home)
    assert done.returncode == 0, done.stderr
    project.argv = [*project.argv[:-1], "plates"]
    project.env = own.env
    project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(), read=False)
    wait_until(lambda: (own.runtime / "http").exists())
    try:
        wait_until(lambda: own.plates().keys() == {"before", "mine"})
        assert b"team.db" not in Path(f"/proc/{daemon_pid(own)}/cmdline").read_bytes()  # a password may be in it
    finally:
        os.kill(daemon_pid(own), signal.SIGTERM)
        wait_until(lambda: not (own.runtime / "http").exists())
    assert not (own.state / "plates.db").exists()
    kept = own.state / "daemon-settings"
    assert (stat.S_IMODE(kept.stat().st_mode), json.loads(kept.read_text())["retention"]) == (0o600, 7)


def test_a_database_in_the_folder_of_the_person_is_meant_there(own, project):
    argv = [*SERVE, "--port", "0", "--db", "sqlite:///team.db"]
    with subprocess.Popen(argv, env=own.env, cwd=project.folder, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.terminate()
    assert json.loads((own.state / "daemon-settings").read_text())["db"] == f"sqlite:///{project.folder}/team.db"


# ---- sessions without the wrapper --------------------------------------------

# A host: it has a hook run for the first events of its session, then waits for its end.
HOST = """
import json, subprocess, sys
for payload in sys.argv[2:]:
    subprocess.run(json.loads(sys.argv[1]), input=payload.encode(), check=True)
print("ready", flush=True)
sys.stdin.read()
"""


def host_of(own, project, session, names_itself):
    """Start a host that reports a session's start.  names_itself: like Claude Code, which runs hooks in a shell."""
    argv = project.argv
    if names_itself:
        argv = ["/bin/sh", "-c", f"CLAUDE_PID=$PPID; export CLAUDE_PID; {shlex.join(argv)}; true"]
    events = ["SessionStart", "UserPromptSubmit"]
    payloads = [json.dumps(project.payload(session_id=session, hook_event_name=name)) for name in events]
    return subprocess.Popen(
        [sys.executable, "-c", HOST, json.dumps(argv), *payloads],
        env={**own.env, "TAILHOOK_NO_AUTOSTART": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def test_a_session_without_the_wrapper_is_closed_when_its_host_is_killed(own, project):
    project.argv = [*project.argv[:-1], "plates"]
    dead = [host_of(own, project, f"dead {names}", names) for names in (True, False)]
    alive = [host_of(own, project, f"alive {names}", names) for names in (True, False)]
    for host in dead + alive:
        assert host.stdout.readline() == b"ready\n"
    for host in dead:
        host.kill()  # before the daemon has seen it
        host.communicate()
    own.start()
    wait_until(lambda: sum(plate["status"] == "closed" for plate in own.plates().values()) == 2)
    statuses = {name: plate["status"] for name, plate in own.plates().items()}
    for host in alive:
        host.kill()
        host.communicate()
    assert statuses == {
        "dead True": "closed",
        "dead False": "closed",
        "alive True": "running",
        "alive False": "running",
    }
