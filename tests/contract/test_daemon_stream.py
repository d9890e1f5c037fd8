"""The stream of the daemon, and the words that boards show."""

from support.daemon import sse


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
