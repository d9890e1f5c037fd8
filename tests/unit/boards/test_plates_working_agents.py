"""A session runs while its sub-agents work, although its own agent has stopped (Codex 0.169).

In Claude Code the stop lists the agents that still work, so their starts only count.
"""

import json
import os

import pytest
from support.plate_reports import report, status
from support.plate_situations import APPROVAL, CLOSED, ERROR, IDLE, RUNNING, play

from tailhook.plates.display import describe_plate
from tailhook.plates.health import Health
from tailhook.plates.notice_settings import NoticeSettings
from tailhook.plates.notices import DELAY_S, NoticeQueue
from tailhook.plates.signs import last_write


def test_a_stop_is_idle_once_the_last_sub_agent_has_stopped():
    play(
        ("a/subagent_start", RUNNING),
        ("b/subagent_start", RUNNING),
        ("a/tool_start:Bash=1", RUNNING),
        ("stop", RUNNING),
        ("a/tool_call:Bash=1", RUNNING),
        ("a/subagent_stop", RUNNING),
        ("c/subagent_stop", RUNNING),  # its start is unknown
        ("b/subagent_stop", IDLE),
    )


def test_a_sub_agent_that_stops_before_its_session_leaves_nothing():
    play(("a/subagent_start", RUNNING), ("a/subagent_stop", RUNNING), ("stop", IDLE))


def test_a_start_that_is_reported_after_the_stop_still_counts():
    play(("stop", IDLE), ("a/subagent_start late", RUNNING), ("a/subagent_stop", IDLE))


@pytest.mark.parametrize(
    ("words", "then", "last"),
    [
        ("interrupted", RUNNING, IDLE),  # it interrupts the session's own agent alone
        ("prompt_submit", RUNNING, RUNNING),
        ("turn_ended", RUNNING, IDLE),
        ("stop_failure", ERROR, ERROR),
        ("session_start", RUNNING, RUNNING),
        ("session_end", CLOSED, CLOSED),
    ],
)
@pytest.mark.parametrize("before", [[], [("stop", RUNNING)]])
def test_what_happens_to_the_session_while_a_sub_agent_works(before, words, then, last):
    play(("a/subagent_start", RUNNING), *before, (words, then), ("a/subagent_stop", last))


def test_a_working_sub_agent_may_wait_for_the_person():
    play(
        ("a/subagent_start", RUNNING),
        ("stop", RUNNING),
        ("a/tool_start:Bash=1", RUNNING),
        ("a/permission_asked:Bash", APPROVAL),
        ("a/tool_call:Bash=1", RUNNING),
        ("a/subagent_stop", IDLE),
    )


def test_a_notification_without_a_tool_is_not_about_the_sub_agent_itself():
    situation = play(("tool_start:Bash=1", RUNNING), ("a/subagent_start", RUNNING), ("permission_asked", APPROVAL))
    play(("tool_call:Bash=1", RUNNING), situation=situation)


def started(database, transcript):
    """Record the start of a sub-agent with a transcript, and the stop of its session."""
    database.record(report("prompt_submit"), owner="me")
    database.record(report("subagent_start", agent_id="a", transcript_path=str(transcript)), owner="me")
    database.record(report("stop"), owner="me")
    assert status(database) == "running"


def rollout(*types):
    """Return the lines of a rollout with events of these types, and with a message after them."""
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "task_complete"}]}
    records = [
        *({"type": "event_msg", "payload": {"type": kind, "turn_id": "t"}} for kind in types),
        {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
        {"type": "event_msg", "payload": None},
        {"type": "response_item", "payload": said},
    ]
    return "".join(json.dumps(record) + "\n" for record in records) + '{"type":"event_msg","payload":{"type":\n'


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([], "running"),
        (["task_started"], "running"),
        (["task_complete", "task_started"], "running"),  # of its parent, before the agent's own
        (["task_started", "turn_aborted"], "idle"),
        (["task_started", "task_complete"], "idle"),
    ],
)
def test_the_transcript_of_a_killed_sub_agent_shows_its_end(database, tmp_path, types, expected):
    transcript = tmp_path / "rollout.jsonl"
    started(database, transcript)
    health = Health(database, "me", lambda: True)
    health.check()
    assert status(database) == "running"  # there is no transcript yet
    transcript.write_text(rollout(*types))
    health.check()
    assert status(database) == expected


def test_a_write_to_the_transcript_of_a_working_sub_agent_is_a_sign(database, tmp_path):
    transcript = tmp_path / "rollout.jsonl"
    started(database, transcript)
    assert last_write({**database.get("s"), "transcript_path": None}) == 0
    transcript.touch()
    os.utime(transcript, (50, 50))
    assert last_write({**database.get("s"), "transcript_path": None}) == 50


def test_a_paused_loop_is_still_shown_when_the_last_sub_agent_has_stopped(database):
    database.record(report("subagent_start", agent_id="a", transcript_path="/t"))
    database.record(report("stop_paused"))
    database.record(report("subagent_stop", agent_id="a"))
    assert (status(database), describe_plate(database.get("s"), "p")["activity"]["words"]) == ("idle", "loop paused")


@pytest.mark.parametrize("seen", [False, True])
def test_a_session_has_finished_when_its_last_sub_agent_has_and_a_notice_reports_that(database, seen):
    queue = NoticeQueue("me")
    for at, kind, agent in (
        (0, "prompt_submit", None),
        (1, "subagent_start", "a"),
        (2, "subagent_start", "b"),
        (60, "stop", None),
        (300, "subagent_stop", "a"),
        (900, "subagent_stop", "b"),
    ):
        fields = {"agent_id": agent, "transcript_path": "/t", "ts": at * 1000, "mono": at * 1000}
        database.record(report(kind, **fields), owner="me")
        if seen and kind == "stop":
            database.mark("s", seen=True)
        queue.note(database.get("s"), at, at)
        notices = queue.take(NoticeSettings(), at + DELAY_S, 0, str)
        assert [notice.kind for notice in notices] == (["finished"] if at == 900 else [])
    shown = describe_plate(database.get("s"), "p")
    assert (shown["group"], shown["turn_until"]) == ("finished", "1970-01-01T00:15:00.000Z")


def test_a_killed_sub_agent_finishes_the_turn_of_its_session_when_the_daemon_finds_that(database, tmp_path):
    transcript = tmp_path / "rollout.jsonl"
    started(database, transcript)
    stopped_at = database.get("s")["finished_at"]
    transcript.write_text(rollout("task_started", "turn_aborted"))
    Health(database, "me", lambda: True).check()
    assert database.get("s")["finished_at"] > stopped_at


def test_the_end_of_a_dialog_of_a_finished_session_does_not_finish_it_again(database):
    database.record(report("prompt_submit"))
    database.record(report("stop", ts=5000, mono=5000))
    for kind in ("input_asked", "input_given"):
        database.record(report(kind, tool_name="mcp__db", ts=9000, mono=9000))
    assert (status(database), database.get("s")["finished_at"]) == ("idle", 5000)


CLAUDE = {"agent_program": "claude-code"}


def counted(database, *kinds):
    """Return how many sub-agents are shown after each event of a session of Claude Code, and the last status."""
    found = []
    for kind in kinds:
        agent, _, kind = kind.rpartition("/")
        word, _, background = kind.partition("+")
        fields = {"agent_id": agent or None, "background": int(background or 0)}
        database.record(report(word, transcript_path="/t", **fields, **CLAUDE))
        found.append(describe_plate(database.get("s"), "p")["agents"])
    return found, status(database)


def test_the_sub_agents_of_a_turn_of_claude_code_are_counted_from_their_start(database):
    started = (
        "prompt_submit",
        "a/subagent_start",
        "b/subagent_start",
        "a/tool_start:Bash",
        "a/tool_call",
        "a/subagent_stop",
    )
    assert counted(database, *started, "b/subagent_stop") == ([0, 1, 2, 2, 2, 1, 0], "running")


@pytest.mark.parametrize(
    ("words", "left", "then"),
    [
        ("stop", 0, "idle"),
        ("turn_ended", 0, "idle"),
        ("interrupted", 0, "idle"),
        ("stop_failure", 0, "error"),
        ("session_end", 0, "closed"),
        ("session_start", 0, "running"),
        ("stop+1", 1, "running"),  # it lists the agent
        ("stop_blocked", 1, "running"),
        ("prompt_submit", 1, "running"),
    ],
)
@pytest.mark.parametrize("tools", [[], ["a/tool_start:Bash"]])
def test_a_killed_sub_agent_of_claude_code_does_not_hold_its_session(database, words, left, then, tools):
    """It has no SubagentStop, its tool has no end, and a stop lists the others."""
    found, status_then = counted(database, "prompt_submit", "a/subagent_start", *tools, words)
    assert (found[-2:], status_then) == ([1, left], then)


def test_a_compaction_ends_no_sub_agent_of_claude_code(database):
    assert counted(database, "prompt_submit", "a/subagent_start")[0][-1] == 1
    database.record(report("session_start", source="compact", transcript_path="/t", **CLAUDE))
    assert describe_plate(database.get("s"), "p")["agents"] == 1


def test_a_sub_agent_of_claude_code_that_waits_for_the_person_is_shown_after_the_stop(database):
    started = "prompt_submit", "a/subagent_start", "a/tool_start:Bash", "a/permission_asked:Bash"
    assert counted(database, *started, "stop")[1] == "awaiting_approval"


def test_a_start_of_claude_code_that_is_reported_after_the_stop_does_not_count(database):
    assert counted(database, "prompt_submit", "stop", "a/subagent_start") == ([0, 0, 0], "idle")
