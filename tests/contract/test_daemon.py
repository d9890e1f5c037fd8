"""The daemon as a process: its routes, who may use them, and that it loses nothing."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import httpx
import pytest
from daemon import daemon_in, wait_until
from httpx import Client

from tailhook.plates.guard import LARGEST_BODY

SERVE = [sys.executable, "-m", "tailhook", "plates", "serve"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A running daemon that the tests of this module share."""
    with daemon_in(tmp_path_factory.mktemp("daemon")) as one:
        yield one.start()


@pytest.fixture
def own(tmp_path):
    """A daemon of the test's own, not started."""
    with daemon_in(tmp_path) as one:
        yield one


# ---- routes ------------------------------------------------------------------


def test_an_event_becomes_a_plate(daemon):
    daemon.post("tool_start", "routes", tool_name="AskUserQuestion", git_branch="main", ts=1000)
    plate = daemon.ask("GET", "/plates/routes").json()
    assert (plate["status"], plate["last_tool"], plate["git_branch"]) == ("awaiting_input", "AskUserQuestion", "main")
    assert plate["events"] == []


def test_the_details_of_a_plate_have_its_events_and_the_last_words(daemon, tmp_path):
    transcript = tmp_path / "t.jsonl"
    transcript.write_text('{"type":"assistant","message":{"role":"assistant","content":"All done."}}\n')
    daemon.post("prompt_submit", "details", transcript_path=str(transcript), ts=1)
    daemon.post("tool_start", "details", tool_name="Bash", tool_params={"command": "make"}, ts=2)
    daemon.post("stop", "details", ts=3)
    details = daemon.ask("GET", "/plates/details", params={"events": 2}).json()
    assert details["last_message"] == "All done."
    assert [(event["event_type"], event["status"]) for event in details["events"]] == [
        ("tool_start", "running"),
        ("stop", "idle"),
    ]


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


def test_the_figures_are_told(daemon):
    daemon.post("coffee_break", "figures")
    figures = daemon.ask("GET", "/status").json()
    assert figures["unknown_events"] >= 1
    assert figures["plates"]["starting"] >= 1
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
        ("POST", "/events", {"json": {"session_id": "s", "project_path": "/", "event_type": "stop", "ts": "now"}}, 422),
        ("POST", "/events", {"content": b'{"session_id": "\\ud800", "project_path": "/", "event_type": "x"}'}, 422),
        ("GET", "/nothing", {}, 404),
        ("GET", "/plates/../../etc/passwd", {}, 404),
        ("GET", "/plates/%2e%2e%2f%2e%2e%2fetc%2fpasswd", {}, 404),
        ("PATCH", "/plates", {}, 405),
    ],
)
def test_every_error_is_json_with_a_message(daemon, method, path, options, code):
    response = daemon.ask(method, path, **options)
    assert response.status_code == code
    assert set(response.json()) == {"error"}
    assert response.json()["error"]


# ---- the stream --------------------------------------------------------------


def test_the_stream_tells_all_plates_and_then_each_change(daemon):
    daemon.post("stop", "streamed", ts=1)
    with daemon.client() as client, client.stream("GET", "/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        told = sse(response)
        name, plates = next(told)
        assert name == "plates"
        assert {plate["session_id"]: plate["status"] for plate in plates}["streamed"] == "idle"
        daemon.post("prompt_submit", "streamed", ts=2)
        name, plate = next(told)
        assert (name, plate["session_id"], plate["status"]) == ("plate", "streamed", "running")
        daemon.ask("DELETE", "/plates/streamed")
        assert next(told) == ("removed", {"session_id": "streamed"})


def sse(response):
    """The server-sent events of a response: name and value."""
    name = ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


# ---- who gets in -------------------------------------------------------------


def over_tcp(daemon, path="/plates", **headers):
    """A request to the port."""
    return httpx.get(f"{daemon.base}{path}", headers=headers)


def test_without_the_token_the_port_tells_its_health_alone(daemon):
    assert over_tcp(daemon, "/health").status_code == 200
    for path in ("/plates", "/", "/status", "/stream", "/openapi.json", "/nothing"):
        refused = over_tcp(daemon, path)
        assert (refused.status_code, set(refused.json())) == (401, {"error"}), path


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_the_token_lets_in(daemon, scheme):
    assert over_tcp(daemon, authorization=f"{scheme} {daemon.token}").status_code == 200


@pytest.mark.parametrize("given", ["Bearer", "Bearer x", "Basic {}", "{}", "Bearer {}x", "Bearer \xe9"])
def test_another_word_than_the_token_does_not(daemon, given):
    headers = {"authorization": given.format(daemon.token).encode("latin-1")}
    assert httpx.get(f"{daemon.base}/plates", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7890", "127.0.0.1.evil.example", "", "[", "169.254.169.254"]
)
def test_a_rebound_name_is_refused_even_with_the_token(daemon, host):
    refused = over_tcp(daemon, host=host, authorization=f"Bearer {daemon.token}")
    assert refused.status_code in (400, 421)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1"])
def test_another_origin_is_refused_even_with_the_token(daemon, origin):
    refused = over_tcp(daemon, origin=origin, authorization=f"Bearer {daemon.token}")
    assert (refused.status_code, refused.json()) == (403, {"error": "another page's request"})


def test_the_boards_own_origin_is_let_in(daemon):
    assert over_tcp(daemon, origin=daemon.base, authorization=f"Bearer {daemon.token}").status_code == 200


def test_the_link_signs_one_browser_in_once(own):
    own.start()
    with Client(base_url=own.base) as browser:
        signed = browser.get(own.link.removeprefix(own.base))
        assert (signed.status_code, signed.headers["location"]) == (303, "/")
        cookie = signed.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert browser.get("/plates").status_code == 200
    with Client(base_url=own.base) as another:
        assert another.get(own.link.removeprefix(own.base)).status_code == 401


@pytest.mark.parametrize("told", [True, False])
def test_a_body_over_8_mb_is_refused(daemon, told):
    body = b" " * (LARGEST_BODY + 1)
    content = body if told else iter([body[: 1 << 20]] * 9)
    response = daemon.ask("POST", "/events", content=content)
    assert (response.status_code, set(response.json())) == (413, {"error"})
    assert daemon.ask("GET", "/health").status_code == 200


def test_sockets_token_and_database_are_the_users_alone(daemon):
    for path in (daemon.runtime / "http", daemon.runtime / "poke", daemon.state / "token", daemon.state / "plates.db"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(daemon.runtime.stat().st_mode) == 0o700


def refused(own, *flags):
    """What a daemon says that does not start."""
    argv = [*SERVE, *flags]
    done = subprocess.run(argv, env=own.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_an_address_that_others_reach_needs_a_token(own):
    assert "needs a token" in refused(own, "--host", "0.0.0.0", "--port", "0", "--token", "")


def test_a_token_that_others_can_read_is_refused(own):
    own.state.mkdir(parents=True, mode=0o700)
    (own.state / "token").write_text("known\n")
    (own.state / "token").chmod(0o644)
    assert "can be read by others" in refused(own, "--port", "0")


def test_a_folder_of_sockets_that_others_can_enter_is_refused(own, tmp_path):
    (tmp_path / "run" / "tailhook").mkdir(parents=True)
    (tmp_path / "run" / "tailhook").chmod(0o755)
    own.env["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    assert "not a folder of yours alone" in refused(own)


def test_a_port_that_is_taken_is_told(own):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = refused(own, "--port", str(taken.getsockname()[1]))
    assert "--port N" in words


def test_a_database_that_cannot_be_opened_is_told(own):
    assert "the database cannot be opened" in refused(own, "--db", "sqlite:////nowhere/plates.db")
    assert "the database cannot be opened" in refused(own, "--db", "no URL")


# ---- one process -------------------------------------------------------------


def test_there_is_one_daemon_for_a_user(own):
    own.start()
    assert "running already" in refused(own, "--no-port")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_leaves_cleanly_while_somebody_listens(own, how):
    own.start()
    with own.client() as client, client.stream("GET", "/stream") as response:
        next(sse(response))
        assert own.stop(how) == 0
    assert not (own.runtime / "http").exists()
    assert not (own.runtime / "poke").exists()


def test_what_a_killed_daemon_left_is_no_hindrance(own):
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


def spooled(number, session="s", **fields):
    """An event as a hook appends it."""
    return {
        "event_id": f"{session}-{number}",
        "event_type": "tool_call",
        "ts": number,
        "mono": number,
        "session_id": session,
        "project_path": "/p",
        **fields,
    }


def test_what_came_while_it_was_away_is_there_when_it_is_back(own):
    own.spool(spooled(1), spooled(2, event_type="stop"))
    own.start()
    wait_until(lambda: own.plates().get("s", {}).get("status") == "idle")


def test_a_hook_is_on_the_board_at_once(own, project):
    own.start()
    project.argv = [*project.argv[:-1], "plates"]
    project.env = {**own.env, "TAILHOOK_NO_AUTOSTART": "1"}
    with own.client() as client, client.stream("GET", "/stream") as response:
        told = sse(response)
        next(told)
        project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(), read=False)
        name, plate = next(told)
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


def daemon_pid(own):
    """The process that listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(own.runtime / "http"))
        credentials = one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little")


def test_killed_in_the_middle_again_and_again_it_loses_and_doubles_nothing(own, report):
    total, kills = 3000, 4
    done = threading.Event()

    def keep_writing():
        for number in range(total):
            own.spool(spooled(number, session=f"s{number % 20}"))
            time.sleep(0.0005)
        done.set()

    writer = threading.Thread(target=keep_writing)
    own.start()
    writer.start()
    for _ in range(kills):
        time.sleep(0.3)
        own.stop(signal.SIGKILL)
        own.start()
    writer.join()
    wait_until(lambda: own.ask("GET", "/status").json()["spool_bytes"] == 0)
    assert own.ask("GET", "/status").json()["events"] == {"tool_call": total}
    for session in range(20):
        events = own.ask("GET", f"/plates/s{session}?events=1000").json()["events"]
        assert [event["ts"] for event in events] == list(range(session, total, 20))
    report(f"plates: {total:,} events, the daemon killed {kills} times: each arrived once, in order per session")
