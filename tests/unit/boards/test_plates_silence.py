"""A session that should work, but shows no sign of it. The boards do not claim that it runs."""

import os
import signal
import subprocess

import pytest
from support.cases import in_one_test
from support.health_check import OWNER
from support.host import wait_until

from tailhook.board.view import read_plate, status_words
from tailhook.machines.plates import (
    HEALTH_CHECK_INTERVAL,
    SIGN_TIMEOUT,
    STUCK_TIMEOUT,
    HostStatus,
    Look,
    Status,
    is_silent,
)
from tailhook.plates.display import describe_plate
from tailhook.plates.schemas import unix_ms
from tailhook.plates.signs import is_suspended, last_write

SILENT = [
    (Status.RUNNING, 40, False),
    (Status.RUNNING, 39, True),
    (Status.RUNNING, 101, False),  # the clock was set back
    (Status.STARTING, 39, True),
    (Status.IDLE, 39, False),
    (Status.AWAITING_INPUT, 39, False),
    (Status.AWAITING_APPROVAL, 39, False),
    (Status.ERROR, 39, False),
    (Status.CLOSED, 39, False),
]


@in_one_test(("status", "last_sign", "expected"), SILENT)
def test_a_session_is_silent_a_minute_after_its_last_sign(status, last_sign, expected):
    assert is_silent(status, last_sign, 100) is expected


def shown(world, session="s"):
    """Return the words that a board shows for a session."""
    plate = describe_plate(world.database.get(session), "p")
    return status_words(read_plate({**plate, "status": plate["status"].value}), world.now)


def let_pass(world, seconds):
    """Let time pass, with the daemon's checks."""
    end = world.now + seconds
    while world.now < end:
        world.now = min(end, world.now + HEALTH_CHECK_INTERVAL)
        world.health.check()


@pytest.mark.parametrize("kind", ["prompt_submit", "tool_start:WebFetch", "tool_call", "stop_blocked"])
def test_a_running_session_without_a_sign_is_shown_as_such_until_the_next_event(world, kind):
    world.event("s", kind)
    let_pass(world, SIGN_TIMEOUT)
    assert shown(world) == "running"
    let_pass(world, 1)
    assert shown(world) == "no sign for 1m"
    before = world.database.get("s")
    let_pass(world, 180)
    assert shown(world) == "no sign for 4m"
    assert world.database.get("s") == before  # it is stored once
    assert (world.status("s"), describe_plate(before, "p")["tone"]) == ("running", "muted")
    world.event("s", "tool_call")
    assert shown(world) == "running"


def test_silence_changes_neither_the_age_nor_the_place_of_a_session(world):
    world.event("s", "prompt_submit")
    before = world.database.get("s")
    let_pass(world, SIGN_TIMEOUT + 1)
    after = world.database.get("s")
    assert {name for name in after if after[name] != before[name]} == {"silent_since", "version"}


@pytest.mark.parametrize("kind", ["stop", "tool_start:AskUserQuestion", "permission_asked:Bash", "stop_failure"])
def test_a_session_that_waits_for_a_person_needs_no_sign(world, kind):
    world.event("s", "prompt_submit")
    let_pass(world, SIGN_TIMEOUT + 1)
    world.event("s", kind)
    let_pass(world, 3600)
    assert "no sign" not in shown(world)


def test_an_end_that_the_daemon_finds_is_a_sign(world):
    world.event("s", "prompt_submit")
    let_pass(world, SIGN_TIMEOUT + 1)
    world.looks["s"] = Look(world.now - 5, world.now - 5, interrupted=True)
    world.health.check()
    assert shown(world) == "idle"


@pytest.mark.parametrize("fields", [{}, {"agent_id": "a"}])
def test_an_event_is_a_sign_and_so_is_one_of_a_sub_agent(world, fields):
    world.event("s", "prompt_submit")
    for _ in range(5):
        let_pass(world, SIGN_TIMEOUT - 1)
        world.event("s", "tool_start:Read", tool_use_id="a", **fields)
    assert shown(world) == "running"


def test_a_write_to_a_transcript_is_a_sign(world):
    world.event("s", "prompt_submit")
    let_pass(world, SIGN_TIMEOUT + 1)
    world.written["s"] = world.now - 50
    world.health.check()
    assert shown(world) == "running"
    let_pass(world, 11)
    assert shown(world) == "no sign for 1m"


def test_a_host_that_is_busy_by_its_own_file_is_a_sign(world):
    world.event("s", "prompt_submit", pid=5)
    world.processes[5] = 1.0
    world.hosts["s"] = HostStatus("busy", world.now)
    let_pass(world, STUCK_TIMEOUT)
    assert shown(world) == "running"
    world.stopped.add(5)  # the person pressed Ctrl-Z
    world.health.check()
    assert shown(world) == "no sign for 10m"
    world.stopped.clear()
    world.health.check()
    assert shown(world) == "running"


@pytest.mark.parametrize("word", ["idle", "of-a-later-version"])
def test_no_other_word_of_a_host_is_a_sign_of_work(world, word):
    world.event("s", "stop", background=1)
    world.hosts["s"] = HostStatus(word, world.now - 1)
    let_pass(world, SIGN_TIMEOUT + 1)
    assert shown(world) == "no sign for 1m"


@pytest.mark.parametrize("fields", [{}, {"agent_id": "a"}])
def test_a_command_that_still_runs_is_a_sign(world, fields):
    world.event("s", "prompt_submit", pid=5)
    world.processes[5] = 1.0
    world.event("s", "tool_start:Bash", pid=5, tool_use_id="a", tool_params={"command": "make all"}, **fields)
    world.event("s", "tool_start:Read", pid=5, tool_use_id="b", tool_params={"file_path": "/p/x"})
    world.event("s", "tool_call", pid=5, tool_use_id="b", tool_name="Read")
    world.commands.add((5, "make all"))
    let_pass(world, STUCK_TIMEOUT)
    assert shown(world) == "running"
    world.commands.clear()
    world.health.check()
    assert shown(world) == "no sign for 10m"


def test_a_command_that_outlives_its_tool_does_not_count(world):
    world.event("s", "tool_start:Bash", pid=5, tool_use_id="a", tool_params={"command": "npm run dev"})
    world.event("s", "tool_call", pid=5, tool_use_id="a", tool_name="Bash")
    world.processes[5] = 1.0
    world.commands.add((5, "npm run dev"))
    let_pass(world, SIGN_TIMEOUT + 1)
    assert shown(world) == "no sign for 1m"


def test_of_a_session_elsewhere_only_its_events_are_a_sign(world):
    world.event("s", "prompt_submit", owner=None, pid=5)
    world.written["s"] = world.now + 3600
    world.hosts["s"] = HostStatus("busy", world.now)
    let_pass(world, SIGN_TIMEOUT + 1)
    assert shown(world) == "no sign for 1m"
    world.event("s", "tool_call", owner=None)
    assert shown(world) == "running"


@pytest.mark.parametrize(
    ("owner", "mono", "words"), [(OWNER, 5, "no sign for 3h"), (OWNER, None, "running"), (None, 5, "running")]
)
def test_an_event_that_comes_late_is_a_sign_of_when_it_happened(world, owner, mono, words):
    """A daemon that did not run for hours finds old events in the spool; another computer's clock may differ."""
    world.event("s", "prompt_submit", owner=owner, ts=int(1000 * (world.now - 3 * 3600)), mono=mono)
    world.is_drained = lambda: False  # newer events may follow
    world.health.check()
    assert shown(world) == "running"
    world.is_drained = lambda: True
    world.health.check()
    assert shown(world) == words


def test_a_check_reads_the_spool_once_for_all_sessions(world):
    for number in range(20):
        world.event(f"s{number}", "prompt_submit", ts=int(1000 * (world.now - 3 * 3600)), mono=5)
    asked = []
    world.is_drained = lambda: asked.append(world.now) or True
    world.health.check()
    assert len(asked) == 1
    assert {shown(world, f"s{number}") for number in range(20)} == {"no sign for 3h"}


def test_another_daemon_looks_after_the_sign_of_its_sessions(world):
    world.event("s", "prompt_submit", owner="another")
    let_pass(world, 3600)
    assert shown(world) == "running"


def test_a_wrapped_program_that_reports_nothing_is_not_starting_for_ever(world):
    world.now = unix_ms() / 1000
    world.database.register("/p", "run", owner=OWNER)
    [plate] = world.database.all()
    let_pass(world, SIGN_TIMEOUT + 5)
    assert shown(world, plate["session_id"]).startswith("no sign for 1m")


def test_a_filter_finds_sessions_without_a_sign(world):
    world.event("s", "prompt_submit")
    let_pass(world, SIGN_TIMEOUT + 1)
    assert {"no sign", "running"} <= set(describe_plate(world.database.get("s"), "p")["search"].split("\n"))


def test_the_newest_write_is_that_of_the_session_or_of_a_sub_agent(world, tmp_path):
    path = tmp_path / "s.jsonl"
    world.event("s", "prompt_submit", transcript_path=str(path))
    plate = world.database.get("s")
    assert last_write(plate) == 0
    path.touch()
    os.utime(path, (50, 50))
    assert last_write(plate) == 50
    folder = tmp_path / "s" / "subagents"
    folder.mkdir(parents=True)
    for name, at in (("agent-a.jsonl", 70), ("agent-b.jsonl", 60)):
        (folder / name).touch()
        os.utime(folder / name, (at, at))
    assert last_write(plate) == 70
    assert last_write({**plate, "transcript_path": None}) == 0
    assert last_write({**plate, "transcript_path": "a\0b"}) == 0


def test_a_process_is_stopped_from_its_stop_until_it_goes_on():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        assert not is_suspended(process.pid)
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: is_suspended(process.pid))
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: not is_suspended(process.pid))
        process.stdin.close()
    assert not is_suspended(process.pid)
