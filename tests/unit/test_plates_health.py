"""What no hook told: the judgement on a transcript, processes that are gone, and the bound on recovery."""

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys

import pytest
from host import assistant
from sqlalchemy.exc import IntegrityError, OperationalError

from tailhook.hook.process import FARTHEST, LONGEST_LINE
from tailhook.machines.plates import MAX_RECOVERY_TIME, Look, Status, examine, parse_event
from tailhook.plates import health
from tailhook.plates.db import Database
from tailhook.plates.health import MAX_DECODED_BYTES, MAX_SHOWN, Health, Looks, last_words, look_at, process_start
from tailhook.plates.report import Report

KEEPER = "this daemon"

# ---- the judgement -----------------------------------------------------------

# The status, when the transcript was written, its newest record, and what that tells; the last event was at 100.
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
]


@pytest.mark.parametrize(("status", "look", "told"), JUDGED)
def test_what_a_transcript_tells(status, look, told):
    event = examine(Status(status), 100, look, now=120)
    assert event == (parse_event(told) if told else None)


# The same where the clock was set back, so that the event is still to come: what the transcript showed at the first
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


@pytest.mark.parametrize(("status", "first", "look", "told"), SET_BACK)
def test_what_a_transcript_tells_when_the_clock_was_set_back(status, first, look, told):
    event = examine(Status(status), 100, look, now=50, first=first)
    assert event == (parse_event(told) if told else None)


def write(path, *records):
    path.write_text("".join(f"{one}\n" for one in records))
    return str(path)


def record(kind, text, at, **fields):
    """A transcript's record."""
    one = {**assistant(text, at=at), "type": kind, **fields}
    one["message"] |= {"role": kind, **fields.get("message", {})}
    return json.dumps(one)


def test_a_look_is_taken_at_the_newest_record_of_the_sessions_own(tmp_path):
    path = write(
        tmp_path / "t",
        record("assistant", "Done.", 1000),
        record("user", "hook feedback", 2000, isMeta=True),
        record("assistant", "sub-agent", 3000, isSidechain=True),
        record("assistant", "API Error", 4000, isApiErrorMessage=True),
        '{"type":"system","timestamp":"2030-01-01T00:00:00Z"}',
    )
    assert look_at(path)[1:] == (1000, False, False)


def test_a_look_sees_an_interruption_and_the_end_of_a_turn(tmp_path):
    path = write(tmp_path / "a", record("user", "[Request interrupted by user for tool use]", 1000))
    assert look_at(path)[1:] == (1000, True, False)
    ended = {**assistant("Done.", at=1000)}
    ended["message"]["stop_reason"] = "end_turn"
    assert look_at(write(tmp_path / "b", json.dumps(ended)))[1:] == (1000, False, True)


NO_RECORDS = ["", "\n\n", "not json\n", "{}\n", '{"type":"user","timestamp":"soon"}\n', "\0" * 100]


@pytest.mark.parametrize("content", NO_RECORDS)
def test_a_transcript_without_a_record_has_its_time_alone(tmp_path, content):
    (tmp_path / "t").write_text(content)
    assert look_at(str(tmp_path / "t")) == Look((tmp_path / "t").stat().st_mtime)


@pytest.mark.parametrize("path", ["", "/nowhere", "/", "/dev/null/x"])
def test_where_there_is_no_transcript_nothing_is_seen(path):
    assert look_at(path) is None
    assert last_words(path) is None


@pytest.mark.parametrize("read", [look_at, last_words])
def test_a_transcript_that_is_no_file_keeps_nobody_waiting(tmp_path, read):
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name in ("fifo", "socket"):
            assert read(str(tmp_path / name)) is None
    assert read("/dev/zero") is None


def test_last_words_have_nothing_in_them_that_steers_a_terminal(tmp_path):
    path = write(tmp_path / "t", record("assistant", "a\x1b[31mb\u202ec\nd", 1))
    assert last_words(path) == "a\ufffd[31mb\ufffdc\nd"


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
            KEEPER,
            lambda: self.is_drained(),
            lambda: self.now + self.set_forward,
            lambda: self.now,
            self.looks.get,
            self.processes.get,
        )

    def event(self, session, kind, keeper=KEEPER, **fields):
        """Something happens, and its hook tells of it.  keeper: the daemon that its plate is left to."""
        word, _, rest = kind.partition(":")
        self.database.record(
            Report(
                session_id=session,
                project_path="/p",
                event_type=word,
                tool_name=rest or None,
                transcript_path=session,
                ts=int(self.now * 1000),
                **fields,
            ),
            keeper=keeper,
        )

    def status(self, session):
        return self.database.get(session)["status"]


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.database.close()


WAITING = ["tool_start:AskUserQuestion", "tool_start:ExitPlanMode", "stop_failure", "permission_asked"]


@pytest.mark.parametrize("seed", range(5))
def test_recovery_takes_twelve_seconds_at_the_most_and_comes_to_nobody_else(world, seed, report):
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


def test_a_clock_that_is_set_is_no_sleep(world):
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


def test_who_waits_anew_under_a_clock_that_was_set_back_is_looked_at_anew(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.set_forward = -3600.0
    world.health.check()
    world.looks["s"] = Look(world.now, at=world.now)
    world.event("s", "tool_start:AskUserQuestion")
    assert world.health.check() == 0


@pytest.mark.parametrize("keeper", ["another daemon", None])
def test_a_plate_of_another_daemon_or_of_none_is_left_to_it(world, keeper):
    world.event("s", "tool_start:ExitPlanMode", keeper, pid=5, pid_started=1)
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


def test_an_older_event_says_nothing_of_the_process(world):
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
def test_a_guess_that_does_not_is_no_host(world, later):
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


def test_a_real_process_is_seen_and_missed():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert process_start(process.pid) == process_start(process.pid) > process_start(os.getpid())
    finally:
        process.kill()
        assert process_start(process.pid) is None or os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_start(process.pid) is None  # not waited for yet
        process.communicate()
    assert process_start(process.pid) is None


# ---- how far a transcript is read, and how often -------------------------------


def padded(path, number, *records):
    """Write records and behind them so many bytes that are no record."""
    write(path, *records)
    with path.open("ab") as out:
        out.write(b"\n" * number)
    return str(path)


@pytest.mark.parametrize(("beyond", "at"), [(0, 1000), (1, None)])
def test_a_transcript_is_read_as_far_back_as_a_hook_reads_it(tmp_path, beyond, at):
    line = record("assistant", "Done.", 1000)
    path = padded(tmp_path / "t", FARTHEST - len(line) - 1 + beyond, line)
    assert look_at(path).at == at
    assert last_words(path) == ("Done." if at else None)


@pytest.mark.parametrize(("beyond", "at"), [(0, 2000), (1, 1000)])
def test_a_line_that_a_hook_passes_over_is_passed_over(tmp_path, beyond, at):
    own = record("user", "X", 2000)
    long = own.replace("X", "x" * (LONGEST_LINE - len(own) + 1 + beyond))
    path = write(tmp_path / "t", record("assistant", "Done.", 1000), long)
    assert look_at(path).at == at


@pytest.mark.parametrize(("beyond", "is_over"), [(0, True), (1, False)])
def test_of_a_long_record_it_is_not_known_that_it_ends_the_turn(tmp_path, beyond, is_over):
    ended = assistant("X", at=1000)
    ended["message"]["stop_reason"] = "end_turn"
    text = json.dumps(ended)
    path = write(tmp_path / "t", text.replace("X", "x" * (MAX_DECODED_BYTES - len(text) + 1 + beyond)))
    assert look_at(path)[1:] == (1000, False, is_over)


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_last_words_have_a_length_at_most(tmp_path, letter):
    path = write(tmp_path / "t", record("assistant", letter * (MAX_SHOWN + 1), 1000))
    assert last_words(path) == letter * MAX_SHOWN
    assert last_words(write(tmp_path / "t", record("assistant", letter * MAX_SHOWN, 1000))) == letter * MAX_SHOWN


@pytest.fixture
def looked(monkeypatch):
    """Count the looks at transcripts."""
    paths = []
    monkeypatch.setattr(health, "look_at", lambda path: paths.append(path) or look_at(path))
    return paths


def test_a_transcript_is_looked_at_again_only_after_it_has_changed(tmp_path, looked):
    path = write(tmp_path / "t", record("assistant", "One.", 1000))
    looks = Looks()
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
    looks, path = Looks(), str(tmp_path / "t")
    assert looks(path) is None
    assert looked == []
    write(tmp_path / "t", record("assistant", "One.", 1000))
    assert looks(path).at == 1000
    os.unlink(path)
    assert looks(path) is None
    assert looks("a\0b") is None


def test_what_is_remembered_of_transcripts_is_what_is_asked_for(tmp_path, looked):
    paths = [write(tmp_path / name, record("assistant", "One.", 1000)) for name in "ab"]
    looks = Looks()
    for path in paths:
        looks(path)
    looks.forget_others({paths[0], "another"})
    assert list(looks.seen) == [paths[0]]


def test_a_database_that_is_away_is_not_one_plates_failure(tmp_path, monkeypatch):
    database = Database(f"sqlite:///{tmp_path}/plates.db")
    database.record(
        Report(session_id="s", project_path="/p", event_type="prompt_submit", transcript_path="t", ts=1), keeper=KEEPER
    )
    checked = Health(database, KEEPER, lambda: True, look=lambda path: Look(110, at=109, interrupted=True))

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
