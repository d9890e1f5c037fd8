"""The health check: what transcripts show, processes that have ended, and the bound on recovery."""

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import time
from datetime import datetime, timezone

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError
from support.host import assistant
from support.host_records import RECORDS
from support.plate_events import parse_event
from support.usual_secrets import SECRETS, is_shown, written

from tailhook.hook.event import MAX_RECORD_BYTES, MAX_RECORDS, MAX_TRANSCRIPT_BYTES
from tailhook.machines.plates import MAX_RECOVERY_TIME, Look, Status, examine
from tailhook.plates import health
from tailhook.plates.db import Database
from tailhook.plates.health import (
    MAX_DECODED_BYTES,
    MAX_MESSAGE_CHARS,
    Health,
    LookBuilder,
    LookCache,
    Since,
    find_process_start,
    last_words,
    look_at,
    transcript_of_agent,
)
from tailhook.plates.schemas import Report

OWNER = "this daemon"

# ---- the judgement -----------------------------------------------------------

# The status, when the transcript was written, its newest record, and what follows; the last event was at 100.
JUDGED = [
    ("awaiting_input", Look(101), None),
    ("awaiting_input", Look(102), None),
    ("awaiting_input", Look(102.1), "health_check_recovery"),
    ("awaiting_approval", Look(110), "health_check_recovery"),
    ("error", Look(110), "health_check_recovery"),
    ("awaiting_input", Look(100.5, at=100.4), "health_check_recovery"),  # within the two seconds
    ("awaiting_input", Look(100.5, at=99.9), None),  # the event's own record, written late
    ("awaiting_approval", Look(110, at=109, interrupted=True), "interrupted"),
    ("awaiting_approval", Look(110, at=99, interrupted=True), "health_check_recovery"),  # by an older one
    ("running", Look(110), None),
    ("running", Look(110, at=109), None),
    ("running", Look(110, at=109, turn_over=True), "turn_ended"),
    ("running", Look(119, at=109, turn_over=True), None),  # it is being written
    ("running", Look(110, at=99, turn_over=True), None),  # a prompt came since
    ("running", Look(119, at=119, interrupted=True), "interrupted"),
    ("idle", Look(110, at=109, turn_over=True), None),
    ("starting", Look(110, at=109, turn_over=True), None),
    ("closed", Look(110, at=109), None),
    # A record without own words, such as the host's, may be the newest one.
    ("awaiting_input", Look(100.5, at=99.9, newest=100.4), "health_check_recovery"),
    ("error", Look(100.5, at=99.9, newest=100.4), "health_check_recovery"),
    ("awaiting_input", Look(100.5, at=99.9, newest=100), None),
    ("awaiting_input", Look(100.5, at=99.9, has_grown=True), "health_check_recovery"),
    ("running", Look(110, at=99.9, newest=109, has_grown=True, turn_over=True), None),
    ("running", Look(100, at=100, interrupted=True), None),  # at the very time of the event
    ("running", Look(110, at=99, interrupted=True), None),  # of an older turn
    ("running", Look(118, at=109, turn_over=True), None),  # two seconds ago
    ("idle", Look(110, at=109, interrupted=True), None),
    ("starting", Look(110, at=109, interrupted=True), None),
    # What other tools or sub-agents wrote is not an answer, however late.
    ("awaiting_input", Look(110, at=99.9, newest=99.9, is_others=True), None),
    ("awaiting_input", Look(110, at=99.9, newest=104, is_others=True), "health_check_recovery"),
]


@pytest.mark.parametrize(("status", "look", "expected"), JUDGED)
def test_what_a_transcript_shows(status, look, expected):
    event = examine(Status(status), 100, look, now=120)
    assert event == (parse_event(expected) if expected else None)


# The same with a clock that was set back, so that the event lies in the future: what the transcript showed at the first
# look since the event counts.
SET_BACK = [
    ("awaiting_input", None, Look(110, at=109), None),
    ("awaiting_input", Look(110, at=109), Look(110, at=109), None),
    ("awaiting_input", Look(110, at=109), Look(30, at=29), "health_check_recovery"),
    ("awaiting_input", Look(110, at=109), Look(30, at=109), "health_check_recovery"),
    ("error", Look(110, at=109), Look(30, at=29, interrupted=True), "interrupted"),
    ("running", Look(110, at=109), Look(30, at=29, turn_over=True), "turn_ended"),
    ("running", Look(110, at=109), Look(49, at=49, turn_over=True), None),  # it is being written
    ("running", Look(30, at=29, turn_over=True), Look(30, at=29, turn_over=True), None),
]


def test_an_event_of_this_very_moment_is_not_still_to_come():
    reported = examine(Status.RUNNING, 100, Look(100, at=100.0, interrupted=True), now=100, first=Look(99))
    assert reported is None


@pytest.mark.parametrize(("status", "first", "look", "expected"), SET_BACK)
def test_what_a_transcript_shows_when_the_clock_was_set_back(status, first, look, expected):
    event = examine(Status(status), 100, look, now=50, first=first)
    assert event == (parse_event(expected) if expected else None)


# The tools that a session waits for since 100, what its transcript shows of them, and what follows.
WAITED_FOR = [
    ("a", Look(100.1, at=99, newest=99, pending=frozenset("a")), None),
    ("a", Look(110, at=109, newest=109, has_grown=True, pending=frozenset("a")), None),
    ("a", Look(100.1, at=99, newest=99, ended=frozenset("a")), "health_check_recovery"),
    ("a", Look(110, at=109, interrupted=True, ended=frozenset("a")), "interrupted"),
    ("ab", Look(110, at=109, ended=frozenset("a"), pending=frozenset("b")), None),
    ("ab", Look(100.1, at=99, ended=frozenset("ab")), "health_check_recovery"),
    ("ab", Look(100.1, at=99, ended=frozenset("a")), None),  # of the other one the transcript shows nothing yet
    ("ab", Look(110, at=99, ended=frozenset("a")), "health_check_recovery"),
    ("a", Look(110, at=109), "health_check_recovery"),  # in a shape that cannot be read
    ("a", Look(100.1, at=99), None),
]


@pytest.mark.parametrize(("waits", "look", "expected"), WAITED_FOR)
def test_what_a_transcript_shows_about_tools_that_are_waited_for(waits, look, expected):
    event = examine(Status.AWAITING_APPROVAL, 100, look, now=120, waits=frozenset(waits))
    assert event == (parse_event(expected) if expected else None)


def test_a_tool_that_is_waited_for_needs_no_clock():
    pending, ended = (Look(110, at=109, **{name: frozenset("a")}) for name in ("pending", "ended"))
    other = Look(30, at=29, pending=frozenset("a"))
    assert examine(Status.AWAITING_INPUT, 100, other, now=50, first=pending, waits=frozenset("a")) is None
    reported = examine(Status.AWAITING_INPUT, 100, ended, now=50, first=ended, waits=frozenset("a"))
    assert reported == parse_event("health_check_recovery")


def write(path, *records):
    path.write_text("".join(f"{one}\n" for one in records))
    return str(path)


def stamp(at):
    """Return Unix seconds in the form of a record's timestamp."""
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds")


def record(kind, text, at, **fields):
    """Return a record of a transcript."""
    one = {**assistant(text), "timestamp": stamp(at), "type": kind, **fields}
    one["message"] |= {"role": kind, **fields.get("message", {})}
    return json.dumps(one)


def test_a_look_reads_the_newest_record_of_the_session_itself(tmp_path):
    path = write(
        tmp_path / "t",
        record("assistant", "Done.", 1000),
        record("user", "hook feedback", 2000, isMeta=True),
        record("assistant", "sub-agent", 3000, isSidechain=True),
        record("assistant", "API Error", 4000, isApiErrorMessage=True),
        '{"type":"system","timestamp":"2030-01-01T00:00:00Z"}',
    )
    assert look_at(path)[1:4] == (1000, False, False)


def test_the_newest_own_record_with_a_time_counts(tmp_path):
    older, newer = record("user", "[Request interrupted by user]", 1000), record("assistant", "Go on.", 1005)
    assert look_at(write(tmp_path / "t", older, newer))[1:4] == (1005, False, False)
    assert look_at(write(tmp_path / "t", newer, older))[1:4] == (1000, True, False)
    flat = '{"type":"human","content":"yes"}'
    assert look_at(write(tmp_path / "t", older, flat))[1:4] == (1000, True, False)


def test_a_look_sees_an_interruption_and_the_end_of_a_turn(tmp_path):
    path = write(tmp_path / "a", record("user", "[Request interrupted by user for tool use]", 1000))
    assert look_at(path)[1:4] == (1000, True, False)
    ended = {**assistant("Done.", at=1000)}
    ended["message"]["stop_reason"] = "end_turn"
    assert look_at(write(tmp_path / "b", json.dumps(ended)))[1:4] == (1000, False, True)


def call(*ids, message="m1", at=1000, **fields):
    """Return a record in which the agent calls tools."""
    one = {**assistant(id=message), "timestamp": stamp(at), **fields}
    one["message"]["content"] = [{"type": "tool_use", "id": name, "name": "Bash", "input": {}} for name in ids]
    return json.dumps(one)


def result(*ids, at=1001, words=None, **fields):
    """Return a record with the results of tools, and perhaps text of the host."""
    one = {**assistant(), "timestamp": stamp(at), "type": "user", **fields}
    content = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in ids]
    one["message"] = {"role": "user", "content": [*content, *([{"type": "text", "text": words}] if words else [])]}
    return json.dumps(one)


def host_record(kind, at=None, **fields):
    """Return a bookkeeping record of the host, with or without a time."""
    time = {} if at is None else {"timestamp": stamp(at)}
    return json.dumps({"type": kind, **time, **fields})


# What follows the calls of the tools a and b, which a message of the agent's has made; a is waited for.
AFTER_THE_CALL = {
    "nothing": ([], False),
    "its own result": ([result("a")], True),
    "both results": ([result("a", "b")], True),
    "the other tool's result": ([result("b")], False),
    "the other tool's result with words": ([result("b", words="<system-reminder>")], False),
    "its own result with words": ([result("b", "a", words="<system-reminder>")], True),
    "a picture by the person": (
        [json.dumps({"type": "user", "message": {"role": "user", "content": [{"type": "image", "tool_use_id": "b"}]}})],
        True,
    ),
    "the other tool's result, then its own": ([result("b"), result("a")], True),
    "more of the same message": ([call("c", message="m1", at=1005)], False),
    "another message": ([record("assistant", "Go on.", 1005, message={"id": "m2"})], True),
    "a message without an id": ([record("assistant", "Go on.", 1005, message={"id": None})], True),
    "a message of a sub-agent": ([record("assistant", "Go on.", 1005, message={"id": "m2"}, isSidechain=True)], False),
    "a result of a sub-agent's": ([result("a", isSidechain=True)], False),
    "a person's prompt": ([record("user", "Do this instead.", 1005)], True),
    "an interruption": ([record("user", "[Request interrupted by user for tool use]", 1005)], True),
    "a summary of what was said": ([record("user", "This session goes on.", 1005, isCompactSummary=True)], False),
    "words of the host": ([record("user", "hook feedback", 1005, isMeta=True)], False),
    "the host's own records": (
        [
            host_record("mode"),
            host_record("system", 1005),
            host_record("attachment", 1005),
            host_record("queue-operation", 1005),
            host_record("of-a-later-version"),
        ],
        False,
    ),
    "a half record": (['{"type":"user","message":{"role":"user","content":[{"type":"tool_result"'], False),
    "contents of other shapes": (
        [
            json.dumps({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result"}, 3, None]}}),
            json.dumps(
                {"type": "user", "message": {"role": "user", "content": [{"type": "image", "tool_use_id": "a"}]}}
            ),
            json.dumps(
                {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": 3}]}}
            ),
        ],
        True,  # the person's move: these are messages to the agent, and no results
    ),
}


@pytest.mark.parametrize(("records", "is_over"), AFTER_THE_CALL.values(), ids=AFTER_THE_CALL)
def test_whether_a_tool_that_is_waited_for_has_ended(tmp_path, records, is_over):
    path = write(tmp_path / "t", record("user", "Go.", 990), call("a", "b"), *records)
    look = look_at(path, Since(1000, 0, frozenset("a")))
    assert (look.ended, look.pending) == ((frozenset("a"), frozenset()) if is_over else (frozenset(), frozenset("a")))


def test_a_result_whose_call_is_not_there_is_news(tmp_path):
    path = write(tmp_path / "t", record("user", "Go.", 990), result("a", "b", at=1001))
    look = look_at(path, Since(1000, None, frozenset("a")))
    assert (look.newest, look.is_others, look.pending, look.ended) == (1001, False, frozenset(), frozenset())
    look = look_at(path, Since(1000, None, frozenset("c")))
    assert (look.newest, look.is_others) == (990, True)


def test_messages_without_ids_are_one_record_each(tmp_path):
    path = write(tmp_path / "t", call("a", message=None))
    assert look_at(path, Since(1000, 0, frozenset("a"))).pending == {"a"}
    path = write(tmp_path / "t", call("a", message=None), record("assistant", "Go on.", 1005, message={"id": None}))
    assert look_at(path, Since(1000, 0, frozenset("a"))).ended == {"a"}


def test_the_calls_of_one_message_may_stand_in_several_records(tmp_path):
    path = write(tmp_path / "t", call("a"), call("b"), call("c"), result("b"))
    look = look_at(path, Since(1000, 0, frozenset("ab")))
    assert (look.ended, look.pending) == (frozenset("b"), frozenset("a"))


def test_a_call_that_is_far_back_is_found_and_one_that_is_too_far_is_not(tmp_path):
    noise = [host_record("progress", 1000) for _ in range(498)]
    look = look_at(write(tmp_path / "t", call("a"), *noise, result("b")), Since(1000, 0, frozenset("a")))
    assert look.pending == {"a"}
    look = look_at(write(tmp_path / "t", call("a"), *noise, *noise[:1], result("b")), Since(1000, 0, frozenset("a")))
    assert (look.pending, look.ended) == (frozenset(), frozenset())


def test_a_record_that_cannot_be_decoded_hides_no_other_one(tmp_path):
    odd = b'{"type":"user","message":{"role":"user","content":[],"x":"\xff"}}'
    path = tmp_path / "t"
    path.write_bytes(b"\n".join([call("a").encode(), result("a").encode(), odd, b""]))
    assert look_at(str(path), Since(1000, 0, frozenset("a"))).ended == {"a"}


@pytest.mark.parametrize(
    ("record", "newest", "has_grown"),
    [
        (host_record("system", 1002), 1002, False),
        (host_record("progress", 1002), 1002, False),
        (record("user", "hook feedback", 1002, isMeta=True), 1002, False),
        (record("assistant", "API Error", 1002, isApiErrorMessage=True), 1002, False),
        (result("a", at=1002), 1002, False),
        ('{"type":"human","content":"yes"}', 990, True),
        ('{"type":"assistant","content":"flat"}', 990, True),
        ('{"type":"summary","summary":"x"}', 990, True),
        ('{"type":"assistant","isSidechain":true,"content":"flat"}', 990, False),
        ('{"type":"mode","mode":"plan"}', 990, False),
        ('{"type":"file-history-snapshot"}', 990, False),
        (record("assistant", "sub-agent", 1002, isSidechain=True), 990, False),
        ("not json", 990, False),
    ],
)
def test_what_was_written_since_the_event(tmp_path, record, newest, has_grown):
    before = json.dumps({**assistant("Go.", at=990)})
    size = len(before) + 1
    look = look_at(write(tmp_path / "t", before, record), Since(1000, size))
    assert (look.newest, look.has_grown) == (newest, has_grown)
    assert look_at(str(tmp_path / "t"), Since(1000, None)).has_grown is False  # it is not known what was there


def test_what_was_there_at_the_event_is_nothing_new(tmp_path):
    flat = '{"type":"human","content":"yes"}'
    path = write(tmp_path / "t", flat)
    assert not look_at(path, Since(1000, len(flat) + 1)).has_grown
    assert look_at(path, Since(1000, len(flat))).has_grown is False  # the line had begun
    assert look_at(path, Since(1000, 0)).has_grown


def test_only_others_have_written_if_all_of_it_is_theirs(tmp_path):
    before = record("user", "Go.", 990)
    size, calls = len(before) + 1, frozenset("a")
    theirs = [record("assistant", "sub-agent", 1002, isSidechain=True), result("b", at=1003)]
    assert look_at(write(tmp_path / "t", before, *theirs), Since(1000, size, calls)).is_others
    assert look_at(write(tmp_path / "t", before, *theirs), Since(1000, None, calls)).is_others
    assert not look_at(
        write(tmp_path / "t", before, *theirs), Since(1000, size)
    ).is_others  # whose result it is, is unknown
    assert not look_at(
        write(tmp_path / "t", before, *theirs, host_record("system", 999)), Since(1000, size, calls)
    ).is_others
    assert not look_at(write(tmp_path / "t", before), Since(1000, size, calls)).is_others
    assert look_at(write(tmp_path / "t", before, theirs[0]), Since(1000, size, calls)).is_others


def test_what_was_written_before_the_event_is_looked_at_for_the_calls_and_the_newest_own_record(tmp_path):
    path = write(tmp_path / "t", call("a", at=990), call("c", at=991), host_record("system", 992))
    look = look_at(path, Since(1000, os.path.getsize(path), frozenset("a")))
    assert (look.pending, look.at, look.newest) == ({"a"}, 991, 992)
    assert look_at(path, Since(1000, os.path.getsize(path))).at == 991


def test_without_a_size_the_first_older_record_ends_what_was_written_since(tmp_path):
    theirs = record("assistant", "sub-agent", 1003, isSidechain=True)
    path = write(tmp_path / "t", host_record("system", 1002), record("user", "Go.", 990), theirs)
    assert look_at(path, Since(1000, None)).is_others
    assert not look_at(path, Since(1003, None)).is_others  # at the very time of the event


def test_of_a_long_transcript_only_the_end_since_the_event_is_read(tmp_path, monkeypatch):
    lines = [record("assistant", "x", 900)] * 1000
    path = write(tmp_path / "t", *lines, call("a"), result("b"))
    size = os.path.getsize(path) - len(call("a")) - len(result("b")) - 2
    read = []
    add = LookBuilder.add_record
    monkeypatch.setattr(LookBuilder, "add_record", lambda self, line, one: read.append(one) or add(self, line, one))
    look_at(path, Since(1000, size, frozenset("a")))
    assert len(read) == 3
    read.clear()
    look_at(path, Since(950, None))
    assert len(read) == 3
    read.clear()
    look_at(path)
    assert len(read) == 50


def test_a_subagents_transcript_is_in_a_folder_beside_the_sessions():
    path = transcript_of_agent("/home/ada/.claude/projects/-p/5f.jsonl", "a97")
    assert path == "/home/ada/.claude/projects/-p/5f/subagents/agent-a97.jsonl"
    assert transcript_of_agent("/t/5f.jsonl", "../../x/y").startswith("/t/5f/subagents/agent-y")
    assert transcript_of_agent("/", "a") == "//subagents/agent-a.jsonl"


NO_RECORDS = ["", "\n\n", "not json\n", "{}\n", '{"type":"user","timestamp":"soon"}\n', "\0" * 100]


@pytest.mark.parametrize("content", NO_RECORDS)
def test_a_transcript_without_a_record_has_its_time_alone(tmp_path, content):
    (tmp_path / "t").write_text(content)
    assert look_at(str(tmp_path / "t"))[:4] == ((tmp_path / "t").stat().st_mtime, None, False, False)


@pytest.mark.parametrize("path", ["", "/nowhere", "/", "/dev/null/x"])
def test_without_a_transcript_nothing_is_seen(path):
    assert look_at(path) is None
    assert last_words(path) is None


@pytest.mark.parametrize("read", [look_at, last_words])
def test_a_transcript_that_is_not_a_file_blocks_no_reader(tmp_path, read):
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name in ("fifo", "socket"):
            assert read(str(tmp_path / name)) is None
    assert read("/dev/zero") is None


@pytest.mark.parametrize("name", RECORDS)
def test_last_words_are_read_from_other_hosts_transcripts(tmp_path, name):
    first, records = RECORDS[name]
    path = tmp_path / "host.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in (first, *(record for record, _ in records))))
    assert last_words(str(path)).strip() == "Done."
    path.write_text(f"{json.dumps(first)}\n")
    assert last_words(str(path)) is None


def test_last_words_have_nothing_in_them_that_steers_a_terminal(tmp_path):
    path = write(tmp_path / "t", record("assistant", "a\x1b[31mb\u202ec\nd", 1))
    assert last_words(path) == "a\ufffd[31mb\ufffdc\nd"


def test_last_words_keep_ordinary_text_and_show_no_secret(tmp_path):
    persian = "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    text = f"{persian}, French\u00a0: 3\u202f000\n\nif x:\n\treturn 👩\u200d👧\u3000全角"
    assert last_words(write(tmp_path / "t", record("assistant", text, 1))) == text
    for name in SECRETS:
        words = f"I ran this:\n\n    {written(name)[1]}\n\nIt worked."
        found = last_words(write(tmp_path / "t", record("assistant", words, 1)))
        assert not is_shown(name, found), found
        assert found.startswith("I ran this:\n\n    ")


# ---- a daemon with a clock of its own ----------------------------------------


class World:
    """A database, a health check, and the time, the transcripts and the processes that they see."""

    def __init__(self, folder):
        self.now = 1_000_000.0
        self.looks = {}
        self.processes = {}
        self.database = Database(f"sqlite:///{folder}/plates.db")
        self.set_forward = 0.0
        self.is_drained = lambda: True
        self.health = Health(
            self.database,
            OWNER,
            lambda: self.is_drained(),
            lambda: self.now + self.set_forward,
            lambda: self.now,
            lambda path, _: self.looks.get(path),
            self.processes.get,
        )

    def event(self, session, kind, owner=OWNER, **fields):
        """Record an event that happens now.

        owner: the daemon that its plate is left to.
        """
        word, _, rest = kind.partition(":")
        common = {
            "session_id": session,
            "project_path": "/p",
            "event_type": word,
            "tool_name": rest or None,
            "transcript_path": session,
            "ts": int(self.now * 1000),
        }
        self.database.record(Report(**{**common, **fields}), owner=owner)

    def status(self, session):
        return self.database.get(session)["status"]


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.database.close()


WAITING = ["tool_start:AskUserQuestion", "tool_start:ExitPlanMode", "stop_failure", "permission_asked"]


@pytest.mark.parametrize("seed", range(5))
def test_recovery_takes_twelve_seconds_at_most_and_to_no_other_session(world, seed, report):
    """Sessions come to wait at random times; of some the transcript goes on at a random time after that."""
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
    first = draw.uniform(0, 10)
    moments += [(first + 10 * number, "check", "", None) for number in range(20)]
    begin, recovered = world.now, {}
    for after, what, session, kind in sorted(moments):
        world.now = begin + after
        if what == "event":
            world.event(session, kind)
        elif what == "advance":
            world.looks[session] = Look(world.now, at=world.now)
        else:
            world.health.check()
            for one in advanced:
                if one not in recovered and world.database.get(one) and world.status(one) == "idle":
                    recovered[one] = world.now - advanced[one]
    assert recovered.keys() == advanced.keys()
    assert max(recovered.values()) <= MAX_RECOVERY_TIME
    waiting = {plate["session_id"] for plate in world.database.all() if plate["status"] != "idle"}
    assert waiting == {f"s{number}" for number in range(60)} - advanced.keys()
    report(f"plates: {len(recovered)} of 60 sessions went on, recovered after {max(recovered.values()):.1f} s at most")


# What a transcript may get while its session waits for the tool a, as functions of the time, and whether that is the
# person's answer.
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
# The same with a transcript that does not show what the session waits for.
WRITTEN_FOR_UNKNOWN = {
    "a record by the host": (lambda at: [host_record("system", at)], True),
    "words of the host": (lambda at: [record("user", "feedback", at, isMeta=True)], True),
    "an error of the API": (lambda at: [record("assistant", "API Error", at, isApiErrorMessage=True)], True),
    "a result": (lambda at: [result("z", at=at)], True),
    "a flat message": (lambda at: ['{"type":"human","content":"yes"}'], True),
    "a summary": (lambda at: ['{"type":"summary","summary":"x"}'], True),
    "a sub-agent's message": (lambda at: [record("assistant", "sub", at, isSidechain=True)], False),
    "what had happened before": (lambda at: [host_record("mode")], False),
}
BEFORE = {"user": lambda at: record("user", "Go.", at - 1), "call": lambda at: call("a", "b", at=at - 0.05)}


@pytest.mark.parametrize("seed", range(8))
def test_a_wait_ends_within_twelve_seconds_of_its_answer_and_by_nothing_else(world, tmp_path, seed, report):
    """Real transcripts, written at random times: within the first two seconds of a wait as well as later."""
    world.health.look = look_at
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
    first = draw.uniform(0, 10)
    moments += [(first + 10 * number, "check", "", None) for number in range(20)]
    recovered = {}
    for after, what, session, more in sorted(moments, key=lambda moment: moment[0]):
        world.now = begin + after
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
    assert max(recovered.values()) <= MAX_RECOVERY_TIME
    waiting = {plate["session_id"] for plate in world.database.all() if plate["status"] != "idle"}
    assert waiting == {plate["session_id"] for plate in world.database.all()} - answered.keys()
    report(
        f"plates: {len(recovered)} of 40 waits were answered and ended after {max(recovered.values()):.1f} s at most"
    )


def waits_for(world, tmp_path, *ids, **fields):
    """Begin a session that waits for tools whose calls are in its transcript. Returns the transcript's path."""
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


# ---- a session without a prompt ----------------------------------------------


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "fork"])
def test_a_session_that_was_given_no_prompt_is_idle_after_two_seconds(world, source):
    world.event("s", "session_start", source=source)
    world.now += 2
    assert world.health.check() == 0
    world.now += 0.001
    assert world.health.check() == 1
    assert world.status("s") == "idle"
    assert world.health.check() == 0


def test_within_twelve_seconds_a_session_without_a_prompt_is_idle(world):
    world.event("s", "session_start", source="startup")
    world.now += 1.9
    assert world.health.check() == 0
    world.now += 10
    assert world.health.check() == 1


@pytest.mark.parametrize("source", ["compact", None, "of-a-later-version"])
def test_a_session_that_goes_on_after_a_compaction_or_without_a_known_source_is_running(world, source):
    world.event("s", "session_start", source=source)
    for _ in range(3):
        world.now += 10
        assert world.health.check() == 0
    assert world.status("s") == "running"


@pytest.mark.parametrize("kind", ["prompt_submit", "tool_start:Bash", "stop_blocked"])
def test_a_session_that_was_given_a_prompt_is_running(world, kind):
    world.event("s", "session_start", source="startup")
    world.now += 1
    world.event("s", kind)
    for _ in range(3):
        world.now += 10
        assert world.health.check() == 0


def test_a_session_without_a_prompt_in_which_a_subagent_waits_is_waiting(world):
    """The sub-agents of a resumed session may go on before a prompt comes."""
    world.event("s", "session_start", source="resume")
    world.event("s", "permission_asked:Bash", agent_id="x")
    world.now += 10
    assert world.health.check() == 0
    assert world.status("s") == "awaiting_approval"


def test_a_subagents_tool_is_not_a_prompt(world):
    world.event("s", "session_start", source="resume")
    world.now += 1
    world.event("s", "tool_start:Bash", agent_id="x")
    world.now += 2
    assert world.health.check() == 1


def test_under_a_clock_that_was_set_back_a_session_without_a_prompt_is_idle(world):
    world.event("s", "session_start", source="startup")
    world.set_forward = -3600.0
    assert world.health.check() == 1


def test_after_sleep_nothing_is_judged_for_ten_seconds(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    world.now += 3600
    assert world.health.check() == 0
    world.now += 4
    assert world.health.check() == 0
    world.now += 5.9  # ten seconds later, as exactly as a busy machine wakes a thread
    assert world.health.check() == 1


@pytest.mark.parametrize(("gap", "has_slept"), [(30, False), (30.001, True)])
def test_more_than_thirty_seconds_between_two_checks_are_sleep(world, gap, has_slept):
    world.event("s", "tool_start:ExitPlanMode")
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    world.now += gap - 5
    assert world.health.check() == (not has_slept)


def test_the_check_after_the_next_one_judges_again(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.looks["s"] = Look(world.now + 5, at=world.now + 5)
    world.now += 3600
    assert world.health.check() == 0
    world.now += 5
    assert world.health.check() == 1


def test_a_clock_that_is_set_is_not_a_sleep(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.set_forward = 3600.0
    world.looks["s"] = Look(world.now + 3600, at=world.now + 3600)
    assert world.health.check() == 1


def test_a_clock_that_is_set_back_delays_no_recovery(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.looks["s"] = Look(world.now, at=world.now)
    world.set_forward = -3600.0
    for _ in range(3):
        world.now += 10
        assert world.health.check() == 0
    world.looks["s"] = Look(world.now - 3600, at=world.now - 3600)
    world.now += 10
    assert world.health.check() == 1
    assert world.status("s") == "idle"


def test_a_new_wait_under_a_clock_that_was_set_back_is_examined_again(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.set_forward = -3600.0
    world.health.check()
    world.looks["s"] = Look(world.now, at=world.now)
    world.event("s", "tool_start:AskUserQuestion")
    assert world.health.check() == 0


@pytest.mark.parametrize("owner", ["another daemon", None])
def test_a_plate_of_another_daemon_or_of_none_is_left_to_it(world, owner):
    world.event("s", "tool_start:ExitPlanMode", owner, pid=5, pid_started=1)
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    assert world.health.check() == 0


def test_a_session_is_closed_when_the_process_that_was_seen_is_gone(world):
    world.event("s", "prompt_submit", pid=5)
    world.processes[5] = 1234.5
    world.health.check()
    assert world.status("s") == "running"
    del world.processes[5]
    assert world.health.check() == 1
    assert world.status("s") == "closed"


def test_another_process_with_the_same_number_is_not_the_session(world):
    world.event("s", "prompt_submit", pid=5)
    world.processes[5] = 1234.5
    world.health.check()
    world.processes[5] = 9999.0
    world.health.check()
    assert world.status("s") == "closed"


def test_a_process_that_was_gone_before_the_first_look_closes_its_session_when_its_start_is_known(world):
    world.event("s", "prompt_submit", pid=5, pid_started=1234)
    assert world.health.check() == 1
    assert world.status("s") == "closed"


def test_a_process_whose_start_is_known_is_the_session_while_it_lives(world):
    world.event("s", "prompt_submit", pid=5, pid_started=1234)
    world.processes[5] = 1234
    assert world.health.check() == 0
    world.event("s", "tool_call", pid=5)  # by a hook that knows less
    world.processes[5] = 999
    assert world.health.check() == 1


def test_an_older_event_does_not_change_the_process(world):
    world.event("s", "session_start", pid=6, pid_started=600)
    world.processes[6] = 600
    world.now -= 5
    world.event("s", "stop", pid=5, pid_started=500)
    world.now += 5
    assert world.health.check() == 0


def test_a_process_that_was_never_seen_closes_nothing(world):
    world.event("s", "prompt_submit", pid=5)  # a shell around the hook, gone at once
    world.health.check()
    assert world.status("s") == "running"


def test_a_guess_that_outlives_its_hook_is_the_host(world):
    world.event("s", "prompt_submit", pid=5, pid_is_guess=True)
    world.processes[5] = 1234
    world.now += 6
    assert world.health.check() == 0
    del world.processes[5]
    assert world.health.check() == 1


@pytest.mark.parametrize("later", [1, 6])
def test_a_guess_that_does_not_is_not_a_host(world, later):
    world.event("s", "prompt_submit", pid=5, pid_started=1234, pid_is_guess=True)
    world.processes[5] = 1234 if later == 1 else 9999  # there with its hook; another process, later
    world.now += later
    world.health.check()
    del world.processes[5]
    world.now += 20
    world.health.check()
    assert world.status("s") == "running"


def test_a_session_that_goes_on_in_another_process_is_open(world):
    world.event("s", "prompt_submit", pid=5)
    world.processes[5] = 1234.5
    world.health.check()
    del world.processes[5]
    world.event("s", "session_start", pid=6)
    world.processes[6] = 2345.6
    world.health.check()
    assert world.status("s") == "running"


def test_while_events_wait_in_the_spool_no_process_is_missed(world):
    world.event("s", "prompt_submit", pid=5, pid_started=1234)
    world.is_drained = lambda: False  # the session may go on in another process
    assert world.health.check() == 0
    world.is_drained = lambda: True
    assert world.health.check() == 1


def test_what_comes_after_the_look_at_a_process_opens_its_session_again(world):
    """The event is written, and taken, once the spool was found empty."""
    world.event("s", "prompt_submit", pid=5, pid_started=1234)

    def resumed():
        world.now += 0.001
        world.resumed_at = world.now
        return True

    world.is_drained = resumed
    assert world.health.check() == 1
    world.now = world.resumed_at
    world.event("s", "session_start", pid=6, pid_started=2345)
    assert world.status("s") == "running"


def test_elsewhere_than_on_linux_a_process_is_seen_by_its_start_and_a_dead_one_is_not(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(sys, "platform", "darwin")
        assert abs(find_process_start(process.pid) - time.time()) < 60
        monkeypatch.undo()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        monkeypatch.setattr(sys, "platform", "darwin")
        assert find_process_start(process.pid) is None  # a zombie: it is not waited for yet
        monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert find_process_start(process.pid) is None


def test_a_real_process_is_seen_and_missed():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert find_process_start(process.pid) == find_process_start(process.pid) > find_process_start(os.getpid())
    finally:
        process.kill()
        assert find_process_start(process.pid) is None or os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert find_process_start(process.pid) is None  # not waited for yet
        process.communicate()
    assert find_process_start(process.pid) is None


# ---- how far a transcript is read, and how often -------------------------------


def padded(path, number, *records):
    """Write records and behind them that many bytes, in lines that are not records."""
    write(path, *records)
    with path.open("ab") as out:
        out.write((b"x" * 999 + b"\n") * (number // 1000) + b"x" * (number % 1000 - 1) + b"\n" * (number % 1000 > 0))
    return str(path)


@pytest.mark.parametrize(("beyond", "at"), [(0, 1000), (1, None)])
def test_a_transcript_is_read_as_far_back_as_a_hook_reads_it(tmp_path, beyond, at):
    line = record("assistant", "Done.", 1000)
    path = padded(tmp_path / "t", MAX_TRANSCRIPT_BYTES - len(line) - 1 + beyond, line)
    assert look_at(path).at == at
    assert last_words(path) == ("Done." if at else None)


@pytest.mark.parametrize(("beyond", "at"), [(0, 2000), (1, 1000)])
def test_a_line_that_a_hook_passes_over_is_passed_over(tmp_path, beyond, at):
    own = record("user", "X", 2000)
    long = own.replace("X", "x" * (MAX_RECORD_BYTES - len(own) + 1 + beyond))
    path = write(tmp_path / "t", record("assistant", "Done.", 1000), long)
    assert look_at(path).at == at


@pytest.mark.parametrize(("beyond", "is_over"), [(0, True), (1, False)])
def test_of_a_long_record_it_is_not_known_that_it_ends_the_turn(tmp_path, beyond, is_over):
    ended = assistant("X", at=1000)
    ended["message"]["stop_reason"] = "end_turn"
    text = json.dumps(ended)
    path = write(tmp_path / "t", text.replace("X", "x" * (MAX_DECODED_BYTES - len(text) + 1 + beyond)))
    look = look_at(path)
    assert (look.at, look.interrupted, look.turn_over) == (1000, False, is_over)


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_last_words_have_a_length_at_most(tmp_path, letter):
    path = write(tmp_path / "t", record("assistant", letter * (MAX_MESSAGE_CHARS + 1), 1000))
    assert last_words(path) == letter * MAX_MESSAGE_CHARS
    assert (
        last_words(write(tmp_path / "t", record("assistant", letter * MAX_MESSAGE_CHARS, 1000)))
        == letter * MAX_MESSAGE_CHARS
    )


@pytest.fixture
def looked(monkeypatch):
    """Count the looks at transcripts."""
    paths = []
    monkeypatch.setattr(health, "look_at", lambda path, since: paths.append(path) or look_at(path, since))
    return paths


def test_a_transcript_is_looked_at_again_only_after_it_has_changed(tmp_path, looked):
    path = write(tmp_path / "t", record("assistant", "One.", 1000))
    looks = LookCache()
    assert looks(path) == looks(path) == look_at(path)
    assert looked == [path]
    with open(path, "a") as out:
        out.write(record("assistant", "Two.", 2000) + "\n")
    assert looks(path).at == 2000
    os.utime(path, (5, 5))
    assert looks(path).changed == 5
    size, other = os.path.getsize(path), tmp_path / "other"
    os.truncate(write(other, record("assistant", "Another.", 3000)), size)
    os.utime(other, (5, 5))
    os.replace(other, path)  # the same size and time, another inode
    assert looks(path).at == 3000
    assert len(looked) == 4
    looks(path)
    assert len(looked) == 4


def test_a_transcript_that_is_gone_and_comes_again_is_looked_at(tmp_path, looked):
    looks, path = LookCache(), str(tmp_path / "t")
    assert looks(path) is None
    assert looked == []
    write(tmp_path / "t", record("assistant", "One.", 1000))
    assert looks(path).at == 1000
    os.unlink(path)
    assert looks(path) is None
    assert looks("a\0b") is None


def test_what_is_remembered_of_transcripts_is_what_is_asked_for(tmp_path, looked):
    one, two = (write(tmp_path / name, record("assistant", "One.", 1000)) for name in "ab")
    looks = LookCache()
    looks(one)
    looks(two)
    looks.forget_others()
    looks(one)
    looks.forget_others()
    assert [path for path, _ in looks.seen] == [one]
    assert looked == [one, two]


def test_a_transcript_is_looked_at_again_if_another_event_has_come(tmp_path, looked):
    path = write(tmp_path / "t", record("assistant", "One.", 1000))
    looks = LookCache()
    assert not looks(path, Since(1000.0, size=os.path.getsize(path))).has_grown
    assert looks(path, Since(1000.0, size=0)) is not None
    assert len(looked) == 2


def test_more_empty_lines_than_a_hook_reads_are_passed_over(tmp_path):
    line = record("assistant", "Done.", 1000)
    for number, at in ((MAX_RECORDS - 1, 1000), (MAX_RECORDS, None)):
        path = write(tmp_path / "t", record("user", "Please.", 500), line)
        with open(path, "ab") as out:
            out.write(b"\n" * number)
        assert look_at(path).at == at
        assert last_words(path) == ("Done." if at else None)


def test_the_result_of_another_tool_is_recognised_however_large(tmp_path):
    call = assistant("", at=1000)
    call["message"]["content"] = [{"type": "tool_use", "id": "asked", "name": "AskUserQuestion", "input": {}}]
    other = {"type": "tool_result", "tool_use_id": "read", "content": '"tool_use_id":"asked" ' * MAX_DECODED_BYTES}
    result = {"type": "user", "timestamp": call["timestamp"], "message": {"role": "user", "content": [other]}}
    path = write(tmp_path / "t", json.dumps(call), json.dumps(result))
    look = look_at(path, Since(1000.0, 0, frozenset(("asked",))))
    assert look.pending == {"asked"}
    assert not look.ended


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
