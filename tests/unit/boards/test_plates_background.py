"""A stop while agents work in the background is not the end of the turn."""

import json

import pytest
from support.plate_reports import asked, report, status

from tailhook.machines.plates import Status
from tailhook.plates.health import Health


def test_a_stop_with_agents_in_the_background_is_not_idle(database):
    database.record(report("prompt_submit"))
    database.record(report("stop", background=2))
    assert (status(database), database.get("s")["background"]) == ("running", 2)
    database.record(report("stop"))
    assert (status(database), database.get("s")["background"]) == ("idle", None)


def test_an_error_ends_the_turn_whatever_works_in_the_background(database):
    database.record(report("stop:overloaded", background=1))
    assert status(database) == "error"


def test_a_question_is_over_when_the_turn_stops(database):
    database.record(asked("a"))
    database.record(report("stop", background=1))
    assert status(database) == "running"


def test_the_hosts_notice_that_it_waits_for_the_person_does_not_end_the_turn(database):
    database.record(report("stop", background=1))
    database.record(report("turn_ended"))
    assert status(database) == "running"
    database.record(report("prompt_submit", by_host=True))
    database.record(report("turn_ended"))
    assert status(database) == "idle"


@pytest.mark.parametrize("before", ["stop", "subagent_stop", "interrupted", "prompt_submit"])
def test_a_quiet_transcript_ends_the_turn_only_once_no_agent_works_in_the_background(database, tmp_path, before):
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(
        '{"type":"assistant","timestamp":"1970-01-01T00:00:10Z",'
        '"message":{"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"Wait."}]}}\n'
    )
    fields = {"transcript_path": str(transcript)}
    database.record(report("stop", background=1, ts=9000, mono=9000, **fields), owner="me")
    health = Health(database, "me", lambda: True, clock=lambda: 4e9, uptime=lambda: 100.0)
    health.check()
    assert status(database) == "running"
    agent = {"agent_id": "x"} if before == "subagent_stop" else {}
    database.record(report(before, ts=9500, mono=9500, **agent, **fields), owner="me")
    health.check()
    assert status(database) == "idle"


def test_a_message_of_a_background_agent_is_counted_and_another_event_of_it_is_not(database):
    database.record(report("stop", background=2))
    database.record(report("tool_call", agent_id="x"))
    assert database.get("s")["background"] == 2
    database.record(report("subagent_stop", agent_id="x"))
    assert database.get("s")["background"] == 1
    database.record(report("subagent_stop", agent_id="y"))
    assert (database.get("s")["background"], status(database)) == (None, Status.RUNNING.value)


def test_the_answer_to_a_background_agents_permission_leaves_the_session_running_until_the_agent_ends(database):
    agent = {"agent_id": "x", "tool_use_id": "b", "tool_name": "Bash"}
    database.record(report("prompt_submit"))
    database.record(report("stop", background=2))
    database.record(report("tool_start", **agent))
    database.record(report("permission_asked", agent_id="x", tool_name="Bash"))
    assert (status(database), database.get("s")["background"]) == ("awaiting_approval", 2)
    database.record(report("subagent_stop", agent_id="y"))
    database.record(report("prompt_submit", by_host=True))
    database.record(report("stop", background=1))
    database.record(report("turn_ended"))  # the host's notice that it waits for the person
    assert (status(database), database.get("s")["background"]) == ("awaiting_approval", 1)
    database.record(report("tool_call", **agent))
    assert (status(database), database.get("s")["background"]) == ("running", 1)
    database.record(report("subagent_stop", agent_id="x"))
    database.record(report("prompt_submit", by_host=True))
    database.record(report("stop"))
    assert (status(database), database.get("s")["background"]) == ("idle", None)


def test_a_denial_in_a_background_agent_ends_its_wait_and_the_agent_still_works(database, tmp_path):
    transcript, theirs = tmp_path / "t.jsonl", tmp_path / "t" / "subagents" / "agent-x.jsonl"
    transcript.write_text(
        '{"type":"assistant","timestamp":"1970-01-01T00:00:10Z",'  # written after the hook of the stop
        '"message":{"role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"Wait."}]}}\n'
    )
    theirs.parent.mkdir(parents=True)
    call = {"type": "tool_use", "id": "b", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "b", "is_error": True, "content": "denied"}
    records = [
        {"type": role, "isSidechain": True, "message": {"role": role, "content": [block]}}
        for role, block in (("assistant", call), ("user", result))
    ]
    theirs.write_text(json.dumps(records[0]) + "\n")
    agent = {"agent_id": "x", "tool_name": "Bash", "transcript_path": str(transcript)}
    database.record(report("stop", background=1, ts=9000, mono=9000, transcript_path=str(transcript)), owner="me")
    database.record(report("tool_start", tool_use_id="b", ts=9100, mono=9100, **agent), owner="me")
    database.record(report("permission_asked", ts=9200, mono=9200, **agent), owner="me")
    health = Health(database, "me", lambda: True, clock=lambda: 4e9, uptime=lambda: 100.0)
    health.check()
    assert status(database) == "awaiting_approval"
    theirs.write_text("".join(json.dumps(record) + "\n" for record in records))
    for _ in range(2):  # after the first one, only the quiet transcript is left to judge
        health.check()
        assert (status(database), database.get("s")["background"]) == ("running", 1)
