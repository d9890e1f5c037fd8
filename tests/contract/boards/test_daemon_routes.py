"""The routes of the daemon: their answers, and the owner of an event's session."""

import json
import os

import pytest
from support.daemon import daemon_in, request
from support.usual_secrets import SECRETS, is_shown, written

IS_JSON = {"content-type": "application/json"}
DEEP = '{"session_id":"deep","project_path":"/","event_type":"stop","tool_params":{"a":%s}}' % ("[" * 400 + "]" * 400)


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
        own.post("stop_paused", "s", title=f"A {text}", prompt=text, reply=text)
    details = own.ask("GET", "/plates/s?events=1000").json()
    assert len(details["events"]) == 2 * len(SECRETS)
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


def test_a_hidden_plate_keeps_its_events_and_is_shown_again(daemon):
    daemon.post("permission_asked", "hidden", event_id="asked", tool_name="Bash")
    before = daemon.plates()["hidden"]
    hidden = daemon.ask("PATCH", "/plates/hidden", json={"hidden": True}).json()
    assert (hidden["hidden"], hidden["group"], hidden["status"]) == (True, "rest", "awaiting_approval")
    assert daemon.plates()["hidden"] == hidden
    assert [one["event_type"] for one in daemon.ask("GET", "/plates/hidden?events=9").json()["events"]] == [
        "permission_asked"
    ]
    assert daemon.ask("PATCH", "/plates/hidden", json={"hidden": False}).json() == before


@pytest.mark.parametrize(
    "body", [{}, {"hidden": 1}, {"hidden": None}, {"seen": False}, {"hidden": True, "status": "idle"}, []]
)
def test_a_plate_is_hidden_by_nothing_else(daemon, body):
    daemon.post("stop", "stays")
    assert daemon.ask("PATCH", "/plates/stays", json=body).status_code == 422
    assert not daemon.plates()["stays"]["hidden"]


def test_a_plate_that_is_missing_cannot_be_hidden(daemon):
    missing = daemon.ask("PATCH", "/plates/missing", json={"hidden": True})
    assert (missing.status_code, missing.json()) == (404, {"error": "no such plate"})


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


def test_x_forwarded_for_does_not_change_the_host(own):
    own.env["FORWARDED_ALLOW_IPS"] = "*"
    own.start()
    body = {"session_id": "s", "project_path": "/p", "event_type": "stop"}
    headers = {"Authorization": f"Bearer {own.token}", "X-Forwarded-For": "192.0.2.7"}
    assert request("POST", f"{own.base}/events", json=body, headers=headers).status_code == 200
    assert own.plates()["s"]["host"] == os.uname().nodename


@pytest.mark.parametrize(
    ("seconds", "note"),
    [(900, "nothing happened for 15 min"), (0, ""), ("15", "nothing happened for 10 min")],
)
def test_the_users_configuration_sets_when_a_session_is_stuck(tmp_path, seconds, note):
    folder = tmp_path / ".config/tailhook"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"plates": {"stuck_after": seconds}}))
    with daemon_in(tmp_path) as own:
        groups = own.start().ask("GET", "/statuses").json()["groups"]
    assert [group["note"] for group in groups if group["id"] == "stuck"] == [note]
