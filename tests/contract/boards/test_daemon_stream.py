"""The stream of the daemon, and the words that boards show."""

import json
import sys
from contextlib import ExitStack

from support.daemon import beginning, listening, spooled, sse_with_ids, wait_until
from support.host import assistant, tailhook

from tailhook.fleet.columns import TOKEN_COLUMNS
from tailhook.plates.hub import PAGE_PLATES

# Runs the daemon, and appends the session of each plate that it encodes for the stream to a file.
COUNTING = """
import runpy, sys
from tailhook.plates.hub import Hub
encode_plate = Hub.encode_plate
def count(hub, plate):
    with open({path!r}, "a") as file:
        file.write(plate["session_id"] + "\\n")
    return encode_plate(hub, plate)
Hub.encode_plate = count
del sys.argv[:3]
runpy.run_module("tailhook", run_name="__main__", alter_sys=True)
"""


def test_the_stream_sends_all_plates_and_then_each_change(daemon):
    daemon.post("stop", "streamed", ts=1)
    with daemon.client() as client, client.stream("GET", "/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        sent = sse_with_ids(response)
        plates, closed, _ = beginning(sent)
        assert plates["streamed"]["status"] == "idle"
        daemon.post("prompt_submit", "streamed", ts=2)
        name, plate, _ = next(sent)
        assert (name, plate["session_id"], plate["status"]) == ("plate", "streamed", "running")
        daemon.post("session_end", "streamed", ts=3)
        name, plate, _ = next(sent)
        assert (name, plate["session_id"], plate["status"]) == ("plate", "streamed", "closed")
        assert next(sent)[:2] == ("closed", {"sessions": closed + 1})
        daemon.ask("DELETE", "/plates/streamed")
        assert next(sent)[:2] == ("removed", {"session_id": "streamed"})
        assert next(sent)[:2] == ("closed", {"sessions": closed})


def test_the_stream_begins_with_the_open_plates_those_that_wait_first_and_counts_the_closed_ones(daemon):
    with listening(daemon) as sent:
        before, closed, _ = beginning(sent)
    for number in range(PAGE_PLATES + 1):
        daemon.post("stop", f"many-{number}", ts=1)
    daemon.post("session_end", "many-0", ts=2)
    daemon.post("notification", "many-7", ts=2, notification_type="permission_prompt")
    with listening(daemon) as sent:
        plates, now_closed, _ = beginning(sent)
    assert plates.keys() - before.keys() == {f"many-{number}" for number in range(1, PAGE_PLATES + 1)}
    assert now_closed == closed + 1
    waits = [plate["group"] == "waits" for plate in plates.values()]
    assert waits == sorted(waits, reverse=True)
    for number in range(PAGE_PLATES + 1):
        daemon.ask("DELETE", f"/plates/many-{number}")


def test_a_listener_that_comes_back_gets_the_newest_state_of_what_changed_meanwhile(daemon):
    for name in ("still", "changed", "gone"):
        daemon.post("stop", f"back-{name}", ts=1)
    with listening(daemon) as sent:
        _, closed, last = beginning(sent)
    daemon.post("prompt_submit", "back-changed", ts=2)
    daemon.post("stop", "back-changed", ts=3)
    daemon.ask("DELETE", "/plates/back-gone")
    with listening(daemon, last) as sent:
        assert next(sent) == ("closed", {"sessions": closed}, last)
        name, plate, newer = next(sent)
        assert (name, plate["session_id"], plate["status"]) == ("plate", "back-changed", "idle")
        assert next(sent)[:2] == ("removed", {"session_id": "back-gone"})
    with listening(daemon, newer) as sent:
        assert next(sent)[0] == "closed"
        assert next(sent)[:2] == ("removed", {"session_id": "back-gone"})


def test_a_listener_with_an_id_of_another_run_or_of_none_gets_all_plates(daemon):
    daemon.post("stop", "known", ts=1)
    with listening(daemon) as sent:
        _, _, last = beginning(sent)
    run, _, number = last.partition("-")
    later = [f"{run}-{number}" for number in ("", "x", "-1", 10**6, "9" * 5000)]
    for strange in (f"x{run}-{number}", number, "-", *later):
        with listening(daemon, strange) as sent:
            plates, _, again = beginning(sent)
            assert "known" in plates
            assert again.startswith(f"{run}-")


def test_a_change_is_encoded_once_for_all_listeners_of_the_stream(own, tmp_path):
    own.before = [sys.executable, "-c", COUNTING.format(path=str(tmp_path / "encoded"))]
    own.start()
    with ExitStack() as open_streams:
        streams = [open_streams.enter_context(listening(own)) for _ in range(5)]
        for sent in streams:
            beginning(sent)
        own.post("stop", "changed")
        for sent in streams:
            name, plate, _ = next(sent)
            assert (name, plate["session_id"]) == ("plate", "changed")
        assert (tmp_path / "encoded").read_text() == "changed\n"


def test_the_stream_renames_projects_when_another_gets_the_same_folder_name(daemon):
    daemon.post("stop", "first", project_path="/a/renamed")
    with listening(daemon) as sent:
        plates, _, _ = beginning(sent)
        assert plates["first"]["name"] == "renamed"
        daemon.post("stop", "second", project_path="/b/renamed")
        name, plate, _ = next(sent)
        assert (name, plate["name"]) == ("plate", "b/renamed")
        assert next(sent)[:2] == ("names", {"first": "a/renamed"})
        assert {name: daemon.plates()[name]["name"] for name in ("first", "second")} == {
            "first": "a/renamed",
            "second": "b/renamed",
        }
        daemon.ask("DELETE", "/plates/second")
        assert next(sent)[:2] == ("removed", {"session_id": "second"})
        assert next(sent)[:2] == ("names", {"first": "renamed"})
    daemon.ask("DELETE", "/plates/first")


def test_the_stream_sends_the_tokens_of_a_session_that_the_command_counts(daemon, tmp_path):
    transcript = tmp_path / "counted.jsonl"
    agent = tmp_path / "counted" / "subagents" / "agent-a.jsonl"
    agent.parent.mkdir(parents=True)

    def respond(path, name, tokens, **fields):
        one = {**assistant("Done.", id=name), "sessionId": "counted", **fields}
        one["message"]["usage"] = {"input_tokens": 1, "output_tokens": tokens, "cache_read_input_tokens": 500}
        with path.open("a") as file:
            file.write(json.dumps(one) + "\n")

    def usage():
        done = tailhook("usage", "--json", "--session", "counted", str(tmp_path), env={}, cwd=tmp_path)
        return {name: count for name, count in json.loads(done.stdout)["total"].items() if name in TOKEN_COLUMNS}

    respond(transcript, "m1", 100)
    with listening(daemon) as sent:
        daemon.spool(spooled(1, "counted", event_type="prompt_submit", transcript_path=str(transcript)))
        changes = ((name, data) for name, data, _ in sent if name == "tokens")
        assert next(changes) == ("tokens", {"counted": "601"})
        respond(transcript, "m1", 400)
        respond(agent, "m2", 50, isSidechain=True, agentId="a")
        while (change := next(changes)[1]["counted"]) != "1k":
            assert change == "901"
        assert daemon.plates()["counted"]["tokens_used"] == "1k"
        details = daemon.ask("GET", "/plates/counted").json()
        assert {name: details["tokens"][name] for name in TOKEN_COLUMNS} == usage()
    wait_until(lambda: daemon.plates()["counted"]["tokens_used"] is None)  # no board is open
    daemon.ask("DELETE", "/plates/counted")


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
        "group": "waits",
        "tone": "attention",
    }
    assert [(one["words"], one["status"]) for one in found["marks"]] == [("finished", "idle"), ("stuck", "running")]
    assert [(group["id"], group["title"]) for group in found["groups"]] == [
        ("waits", "Waits for you"),
        ("finished", "Finished, not looked at"),
        ("stuck", "Stuck"),
        ("working", "Working"),
        ("rest", "At rest"),
    ]
    assert found["filter_fields"].startswith("project, ")
