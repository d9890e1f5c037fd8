"""The health check: waits that ended without an event, events meanwhile, and the bound on recovery."""

import json
import os
import random
import sqlite3

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError
from support.health_check import OWNER
from support.timed_records import call, host_record, record, result, stamp, write

from tailhook.machines.plates import MAX_RECOVERY_TIME, SETTLING_TIME, STALENESS_THRESHOLD, Look
from tailhook.plates.db import Database
from tailhook.plates.health import Health
from tailhook.plates.looks import look_at
from tailhook.plates.schemas import Report

WAITING = ["tool_start:AskUserQuestion", "tool_start:ExitPlanMode", "stop_failure", "permission_asked"]


@pytest.mark.parametrize("seed", range(5))
def test_recovery_takes_twelve_seconds_at_most_and_to_no_other_session(world, seed, report):
    """Sessions begin to wait at random times. The transcript of some goes on at a random time after that."""
    draw = random.Random(seed)
    moments = []  # when, what: an event of a session, or its transcript's advance
    advanced = {}
    for number in range(60):
        session = f"s{number}"
        start = draw.uniform(0, 100)
        moments.append((start, "event", session, draw.choice(WAITING)))
        if draw.random() < 0.7:
            gap = draw.choice([draw.uniform(0.001, 2), draw.uniform(2, 60)])
            moments.append((start + gap, "advance", session, None))
            advanced[session] = world.now + start + gap
    first = draw.uniform(0, 1)
    moments += [(first + number, "check", "", None) for number in range(200)]
    begin, recovered = world.now, {}
    for after, what, session, kind in sorted(moments):
        world.now = begin + after
        if what == "event":
            world.event(session, kind)
        elif what == "advance":
            world.looks[session] = Look(world.now, at=world.now)
        elif world.health.take_news():
            world.health.check()
            for one in advanced:
                if one not in recovered and world.database.get(one) and world.status(one) == "idle":
                    recovered[one] = world.now - advanced[one]
    assert recovered.keys() == advanced.keys()
    assert max(recovered.values()) <= MAX_RECOVERY_TIME
    waiting = {plate["session_id"] for plate in world.database.all() if plate["status"] != "idle"}
    assert waiting == {f"s{number}" for number in range(60)} - advanced.keys()
    report(f"plates: {len(recovered)} of 60 sessions went on, recovered after {max(recovered.values()):.1f} s at most")


def test_a_session_that_cannot_be_checked_is_logged_once_for_each_failure(world, caplog):
    world.event("s", "tool_start:AskUserQuestion")
    failures = ["one", "one", "two"]

    def look(path, size):
        raise OSError(failures.pop(0))

    world.health.look = look
    for _ in range(3):
        world.now += 10
        world.health.check()
    assert [one.args[1] for one in caplog.records] == ["OSError('one')", "OSError('two')"]


# New records while the session waits for the tool a, as functions of the time, and whether they are the person's
# answer.
WRITTEN = {
    "its result": (lambda at: [result("a", at=at)], True),
    "a message by the agent": (lambda at: [record("assistant", "On.", at, message={"id": "m2"})], True),
    "a prompt": (lambda at: [record("user", "Stop that.", at)], True),
    "an interruption": (lambda at: [record("user", "[Request interrupted by user]", at)], True),
    "the other tool's result": (lambda at: [result("b", at=at), host_record("mode")], False),
    "a sub-agent's message": (
        lambda at: [record("assistant", "sub", at, message={"id": "m2"}, isSidechain=True)],
        False,
    ),
    "the host's bookkeeping": (lambda at: [host_record("mode"), host_record("last-prompt")], False),
}


# The same with a transcript without the wait.
WRITTEN_FOR_UNKNOWN = {
    "a record by the host": (lambda at: [host_record("system", at)], True),
    "words of the host": (lambda at: [record("user", "feedback", at, isMeta=True)], True),
    "an error of the API": (lambda at: [record("assistant", "API Error", at, isApiErrorMessage=True)], True),
    "a result": (lambda at: [result("z", at=at)], True),
    "a flat message": (lambda at: ['{"type":"human","content":"yes"}'], True),
    "a summary": (lambda at: ['{"type":"summary","summary":"x"}'], False),
    "a sub-agent's message": (lambda at: [record("assistant", "sub", at, isSidechain=True)], False),
    "what had happened before": (lambda at: [host_record("mode")], False),
}


BEFORE = {"user": lambda at: record("user", "Go.", at - 1), "call": lambda at: call("a", "b", at=at - 0.05)}


@pytest.mark.parametrize("seed", range(8))
def test_a_wait_ends_within_four_seconds_of_its_answer_and_by_nothing_else(world, tmp_path, seed, report):
    """Real transcripts, written at random times: within the first two seconds of a wait as well as later."""
    world.health.look = world.health.looks
    draw = random.Random(seed)
    moments, begin, answered = [], world.now, {}
    for number in range(40):
        session = str(tmp_path / f"{number}.jsonl")
        is_known = draw.random() < 0.6
        words, (written, is_answer) = draw.choice(list((WRITTEN if is_known else WRITTEN_FOR_UNKNOWN).items()))
        start = draw.uniform(0, 60)
        gap = draw.uniform(0.1, 1.9) if not is_known or draw.random() < 0.5 else draw.uniform(2, 40)
        moments.append((start, "wait", session, is_known))
        moments.append((start + gap, "write", session, written))
        if is_answer:
            answered[session] = (begin + start + gap, words)
    first = draw.uniform(0, 1)
    moments += [(first + number, "check", "", None) for number in range(200)]
    recovered = {}
    for after, what, session, more in sorted(moments, key=lambda moment: moment[0]):
        world.now = begin + after
        if what == "check" and not world.health.take_news():
            continue
        if what == "check":
            world.health.check()
            for one in answered:
                if one not in recovered and world.database.get(one) and world.status(one) == "idle":
                    recovered[one] = world.now - answered[one][0]
            continue
        with open(session, "a") as transcript:
            if what == "write":
                transcript.writelines(f"{line}\n" for line in more(world.now))
            else:
                transcript.write(BEFORE["user"](world.now) + "\n")
                size = transcript.tell()
                transcript.write(BEFORE["call"](world.now) + "\n")  # the host writes it after the hook has started
        os.utime(session, (world.now, world.now))
        if what == "wait":
            kind = "tool_start:AskUserQuestion" if more else draw.choice(["permission_asked", "stop_failure"])
            world.event(session, kind, transcript_size=size, tool_use_id="a" if more else None)
    assert {answered[one][1] for one in answered.keys() - recovered.keys()} == set()
    assert max(recovered.values()) <= STALENESS_THRESHOLD + SETTLING_TIME + 1
    waiting = {plate["session_id"] for plate in world.database.all() if plate["status"] != "idle"}
    assert waiting == {plate["session_id"] for plate in world.database.all()} - answered.keys()
    report(
        f"plates: {len(recovered)} of 40 waits were answered and ended after {max(recovered.values()):.1f} s at most"
    )


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"type": "task_complete", "error": {"message": "no"}}, "error"),
        ({"type": "task_complete", "error": None}, "idle"),
        ({"type": "turn_aborted", "reason": "interrupted"}, "idle"),
        ({"type": "task_started"}, "running"),
    ],
)
def test_a_rollout_of_codex_shows_what_ended_the_turn(world, tmp_path, payload, expected):
    """0.171.0. The person has not pressed Escape, and no sub-agent works."""
    world.health.look = look_at
    lines = [{"type": "task_complete", "error": {"message": "of the turn before"}}, {"type": "task_started"}, payload]
    records = [
        record("event_msg", "", world.now + at, payload=one) for at, one in zip((-1, 0.1, 0.2), lines, strict=True)
    ]
    path = write(tmp_path / "rollout.jsonl", *records[:2])
    os.utime(path, (world.now, world.now))
    world.event(path, "prompt_submit")
    world.now += 10
    world.health.check()
    assert world.status(path) == "running"
    write(tmp_path / "rollout.jsonl", *records)
    os.utime(path, (world.now - 9, world.now - 9))
    world.health.check()
    assert world.status(path) == expected


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        (["session.error", "hook.start"], "error"),
        (["assistant.turn_start"], "running"),
        (["abort", "hook.start"], "idle"),
        (["abort", "assistant.turn_start"], "running"),
    ],
)
def test_a_transcript_of_copilot_shows_what_ended_the_turn(world, tmp_path, newest, expected):
    """1.0.102."""
    world.health.look = look_at
    types = ["session.error", "user.message", "assistant.turn_start", "assistant.turn_end", *newest]
    records = [
        json.dumps({"type": kind, "data": {}, "timestamp": stamp(world.now - 0.2 + at / 5)})
        for at, kind in enumerate(types)
    ]
    path = write(tmp_path / "events.jsonl", *records)
    os.utime(path, (world.now, world.now))
    world.event(path, "prompt_submit")
    world.now += 10
    world.health.check()
    assert world.status(path) == expected


def test_what_copilot_writes_of_its_hooks_ends_no_wait(world, tmp_path):
    """1.0.102: it writes the end of the hook that reports the wait, and of a slower hook of the person."""

    def line(kind, at):
        return json.dumps({"type": kind, "data": {}, "timestamp": stamp(at)})

    world.health.look = look_at
    asked = world.now
    lines = [line("permission.requested", asked - 0.01), line("hook.start", asked - 0.003), line("hook.end", asked + 5)]
    path = write(tmp_path / "events.jsonl", *lines)
    os.utime(path, (asked + 5, asked + 5))
    world.event(path, "prompt_submit")
    world.event(path, "permission_asked")
    for _ in range(3):
        world.now += 10
        assert world.health.check() == 0
    assert world.status(path) == "awaiting_approval"
    write(tmp_path / "events.jsonl", *lines, line("permission.completed", world.now - 5))
    world.health.check()
    assert world.status(path) == "idle"


def waits_for(world, tmp_path, *ids, **fields):
    """Begin a session that waits for tools, with their calls in its transcript. Returns the transcript's path."""
    world.health.look = look_at
    path = write(tmp_path / "t.jsonl", record("user", "Go.", world.now - 1), call(*ids, at=world.now - 0.05))
    for name in ids:
        world.event(path, "tool_start:Read", tool_use_id=name, tool_params={"file_path": name}, **fields)
        world.event(path, "permission_asked:Read", tool_params={"file_path": name}, **fields)
    return path


def test_a_parallel_tool_that_writes_for_minutes_ends_no_wait(world, tmp_path):
    path = waits_for(world, tmp_path, "a")
    for number in range(12):
        world.now += 10
        with open(path, "a") as transcript:
            transcript.write(result(f"b{number}", at=world.now) + "\n" + host_record("progress", world.now) + "\n")
        os.utime(path, (world.now, world.now))
        assert world.health.check() == 0
    assert world.status(path) == "awaiting_approval"


def test_of_two_questions_the_answered_one_ends_and_the_other_one_stays(world, tmp_path):
    path = waits_for(world, tmp_path, "a", "b")
    world.now += 10
    with open(path, "a") as transcript:
        transcript.write(result("b", at=world.now) + "\n")
    assert world.health.check() == 1
    assert world.status(path) == "awaiting_approval"
    assert [tool[0] for tool in world.database.get(path)["tools"]] == ["a"]
    last = world.database.events_of(path, 1)[0]
    assert (last["event_type"], last["tool_use_id"], last["tool_name"]) == ("tool_call", "b", "Read")
    with open(path, "a") as transcript:
        transcript.write(result("a", at=world.now) + "\n")
    world.now += 2
    assert world.health.check() == 1
    assert world.status(path) == "idle"


def test_a_subagents_wait_ends_by_its_own_transcript_and_not_by_the_sessions(world, tmp_path):
    world.health.look = look_at
    path = write(tmp_path / "t.jsonl", record("user", "Go.", world.now - 1))
    (tmp_path / "t" / "subagents").mkdir(parents=True)
    theirs = tmp_path / "t" / "subagents" / "agent-x.jsonl"
    write(theirs, call("a", at=world.now, isSidechain=True))
    world.event(path, "stop")
    world.event(path, "tool_start:Bash", tool_use_id="a", agent_id="x")
    world.event(path, "permission_asked:Bash", agent_id="x")
    world.now += 20
    write(tmp_path / "t.jsonl", record("assistant", "Done.", world.now, message={"id": "m9"}))
    os.utime(path, (world.now, world.now))
    assert world.health.check() == 0
    with theirs.open("a") as transcript:
        transcript.write(result("a", at=world.now, isSidechain=True) + "\n")
    world.now += 2
    assert world.health.check() == 1
    assert world.status(path) == "idle"


def test_a_subagents_own_transcript_alone_ends_its_wait(world, tmp_path):
    world.health.look = look_at
    path = write(tmp_path / "t.jsonl", record("user", "Go.", world.now - 1))
    os.utime(path, (world.now, world.now))
    (tmp_path / "t" / "subagents").mkdir(parents=True)
    words = [call("a", at=world.now, isSidechain=True), result("a", at=world.now + 1, isSidechain=True)]
    world.event(path, "tool_start:Bash", tool_use_id="a", agent_id="x")
    world.event(path, "permission_asked:Bash", agent_id="x")
    world.event(path, "prompt_submit", by_host=True)
    world.now += 5
    write(tmp_path / "t" / "subagents" / "agent-x.jsonl", *words[:1])
    assert world.health.check() == 0
    write(tmp_path / "t" / "subagents" / "agent-x.jsonl", *words)
    assert world.health.check() == 1
    assert world.status(path) == "running"


def test_only_transcripts_that_can_change_a_status_are_read(world):
    read = []
    world.health.look = lambda path, _: read.append(path)
    for number, kind in enumerate(["stop", "session_end", "prompt_submit", "tool_start:ExitPlanMode", "stop_failure"]):
        world.event(f"s{number}", kind)
        world.event(f"without-{number}", kind, transcript_path=None)
    world.event("mcp", "stop")
    world.event("mcp", "input_asked:mcp__db")  # outside of any tool: no sub-agent's either
    world.now += 20
    assert world.health.check() == 0
    assert sorted(read) == ["mcp", "s2", "s3", "s4"]


def test_a_subagents_wait_whose_transcript_is_missing_stays(world, tmp_path):
    world.health.look = look_at
    path = write(tmp_path / "t.jsonl", record("user", "Go.", world.now - 1))
    world.event(path, "tool_start:Bash", tool_use_id="a", agent_id="x")
    world.event(path, "permission_asked:Bash", agent_id="x")
    world.event(path, "prompt_submit", by_host=True)
    world.now += 20
    os.utime(path, (world.now, world.now))
    assert world.health.check() == 0
    os.unlink(path)
    assert world.health.check() == 0
    assert world.status(path) == "awaiting_approval"


@pytest.mark.parametrize("events", [1, 2, 5])
def test_events_of_a_subagent_meanwhile_delay_no_recovery(world, events):
    world.event("s", "tool_start:ExitPlanMode")
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    world.now += 2
    left = [None] * events

    def busy(path, _):
        if left:
            left.pop()
            world.event("s", "tool_start:Bash", agent_id="x", tool_use_id=str(len(left)))
        return world.looks[path]

    world.health.look = busy
    assert world.health.check() == (events < 3)  # it is tried three times
    assert world.health.check() == (events >= 3)
    assert world.status("s") == "idle"


def test_a_newer_event_meanwhile_is_not_overwritten(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)

    def answered(path, _):
        world.now += 0.001
        world.event("s", "prompt_submit")
        return world.looks[path]

    world.health.look = answered
    assert world.health.check() == 0
    assert world.status("s") == "running"


def test_a_plate_that_is_closed_meanwhile_is_closed_once(world):
    world.event("s", "prompt_submit", pid=5, pid_started=1234)

    def ended():
        world.now += 0.001
        world.event("s", "session_end")
        return True

    world.is_drained = ended
    assert world.health.check() == 0
    assert [event["event_type"] for event in world.database.events_of("s", 9)] == ["prompt_submit", "session_end"]


def test_what_is_found_happened_when_the_check_began(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    world.now += 2
    world.health.check()
    assert world.database.get("s")["since"] == int(world.now * 1000)
    world.event("s", "prompt_submit", pid=5, pid_started=1234)
    world.now += 5
    world.health.check()
    plate = world.database.get("s")
    assert (plate["status"], plate["event_ts"], plate["event_mono"]) == ("closed", *[int(world.now * 1000)] * 2)


def test_a_plate_that_is_dismissed_meanwhile_is_gone(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    world.health.look = lambda path, _: world.database.delete(path) and world.looks[path]
    assert world.health.check() == 0
    assert world.database.all() == []


@pytest.mark.parametrize("owner", ["another daemon", None])
def test_a_plate_of_another_daemon_or_of_none_is_left_to_it(world, owner):
    world.event("s", "tool_start:ExitPlanMode", owner, pid=5, pid_started=1)
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    assert world.health.check() == 0


def test_a_database_that_is_away_is_not_one_plates_failure(tmp_path, monkeypatch):
    database = Database(f"sqlite:///{tmp_path}/plates.db")
    database.record(
        Report(session_id="s", project_path="/p", event_type="prompt_submit", transcript_path="t", ts=1),
        owner=OWNER,
    )
    checked = Health(database, OWNER, lambda: True, look=lambda *_: Look(110, at=109, interrupted=True))

    def fail(error):
        def apply(*_):
            raise error

        monkeypatch.setattr(database, "apply", apply)

    fail(OperationalError("UPDATE", {}, sqlite3.OperationalError("database is locked")))
    with pytest.raises(OperationalError):
        checked.check()
    fail(IntegrityError("UPDATE", {}, sqlite3.IntegrityError("a row that cannot be")))
    assert checked.check() == 0
    database.close()


@pytest.mark.parametrize("kind", ["tool_start:ExitPlanMode", "prompt_submit"])
def test_while_an_event_is_still_to_come_nothing_is_concluded(world, kind):
    world.processes[5] = 1234
    world.event("s", kind, pid=5, pid_started=1234)
    before = world.status("s")
    world.now += 5
    world.looks["s"] = Look(world.now - 3, at=world.now - 3, turn_over=True)
    world.reporting.add(5)
    assert world.health.check() == 0
    world.reporting.clear()
    world.is_drained = lambda: False
    assert world.health.check() == 0
    assert world.status("s") == before
    world.is_drained = lambda: True
    assert world.health.check() == 1
    assert world.status("s") == "idle"
