"""The plates machine in whole sessions of Claude Code: what its hooks report, and what the board shows of it."""

import json

import pytest
from model import Model, bash, use
from support.daemon import daemon_in, wait_until


@pytest.fixture
def reporting(claude):
    """Return Claude Code with a hook that reports every event; no daemon is started."""
    claude.env["TAILHOOK_NO_AUTOSTART"] = "1"
    claude.tailhook("install", "--yes", "--with", "plates")
    return claude


def reported(claude) -> list[dict]:
    """Return the events in the spool, oldest first."""
    spool = claude.home / ".local" / "state" / "tailhook" / "events"
    return [json.loads(line) for line in spool.read_text().splitlines()]


def test_a_session_is_reported_from_its_start_to_its_end(reporting):
    with Model(bash("echo hi"), "Done.") as model:
        session = reporting.run(model)
    events = reported(reporting)
    kinds = ["session_start", "prompt_submit", "tool_start", "tool_call", "stop", "session_end"]
    assert [event["event_type"] for event in events] == kinds
    assert {event["session_id"] for event in events} == {session.id}
    assert {event["transcript_path"] for event in events} == {str(session.transcript)}
    assert {event["project_path"] for event in events} == {str(reporting.project)}
    assert events[2]["tool_params"] == {"command": "echo hi"}
    assert len({event["pid"] for event in events}) == 1


def test_a_stop_that_a_loop_blocks_is_not_a_stop(reporting):
    with Model(bash("tailhook loop start Work."), "One.", "<loop-done>COMPLETE</loop-done>") as model:
        reporting.run(model)
    stops = [event["event_type"] for event in reported(reporting) if event["event_type"].startswith("stop")]
    assert stops == ["stop_blocked", "stop"]


def test_a_stop_with_a_paused_loop_is_idle_and_the_board_shows_why(reporting):
    with daemon_in(reporting.home) as daemon:
        daemon.start()
        with Model(bash("tailhook loop start Work."), bash("tailhook loop pause"), "Paused.") as model:
            session = reporting.run(model)
        wait_until(lambda: daemon.plates()[session.id]["status"] == "closed")
        events = daemon.ask("GET", f"/plates/{session.id}?events=20").json()["events"]
    assert [(event["status"], event["words"]) for event in events][-2] == ("idle", "stop, loop paused")


def test_the_board_follows_a_session_and_closes_it(reporting):
    seen = []
    with daemon_in(reporting.home) as daemon:
        daemon.start()

        def status(_):
            (plate,) = wait_until(lambda: list(daemon.plates().values()))
            seen.append(plate["status"])
            return [use("Bash", command="true", description="nothing")] if len(seen) == 1 else "Done."

        with Model(status, status) as model:
            session = reporting.run(model)
        wait_until(lambda: daemon.plates()[session.id]["status"] == "closed")
        details = daemon.ask("GET", f"/plates/{session.id}?events=20").json()
    assert seen == ["running", "running"]
    assert [event["status"] for event in details["events"]][-2:] == ["idle", "closed"]
    assert details["last_message"] == "Done."


def test_the_sub_agents_of_a_turn_are_counted_while_they_think(reporting):
    seen = []
    with daemon_in(reporting.home) as daemon:
        daemon.start()

        def answer(_):
            wait_until(lambda: seen or [plate["agents"] for plate in daemon.plates().values()] == [2])
            seen.append(True)
            return "Seen."

        agents = [use("Agent", description=one, prompt=one, subagent_type="general-purpose") for one in ("one", "two")]
        with Model(agents, *[answer] * 5) as model:
            session = reporting.run(model)
        wait_until(lambda: daemon.plates()[session.id]["status"] == "closed")
        assert daemon.plates()[session.id]["agents"] == 0


def test_the_wrapper_and_the_hooks_are_one_plate(reporting):
    reporting.wrapper = ["tailhook", "run", "--"]
    with daemon_in(reporting.home) as daemon:
        daemon.start()
        with Model("Done.") as model:
            session = reporting.run(model)
        plates = daemon.plates()
    assert list(plates) == [session.id]
    assert plates[session.id]["run_id"]
    assert plates[session.id]["status"] == "closed"
