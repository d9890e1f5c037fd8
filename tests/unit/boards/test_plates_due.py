"""When the health check is due: soon after a change, and otherwise every ten seconds."""

import os

import pytest
from support.health_check import World

from tailhook.machines.plates import HEALTH_CHECK_INTERVAL, STALENESS_THRESHOLD
from tailhook.plates.health import MAX_SHARE, RESTLESS_S


def due_after(world: World, seconds: int) -> list[int]:
    """Return the seconds from now at which a check is due, and run those checks."""
    found = []
    for second in range(1, seconds + 1):
        world.now += 1
        if world.health.take_news():
            world.health.check()
            found.append(second)
    return found


@pytest.fixture
def transcript(tmp_path):
    """Return the path of a transcript."""
    path = tmp_path / "t.jsonl"
    path.write_text("{}\n")
    return path


@pytest.fixture
def resting(world, transcript):
    """Return a world with a running session whose last change is long ago. It reads real transcripts."""
    world.health.look = world.health.looks
    world.processes[5] = 1234
    world.event("s", "prompt_submit", transcript_path=str(transcript), pid=5, pid_started=1234)
    due_after(world, 2 * HEALTH_CHECK_INTERVAL)
    world.health.check()
    return world


def test_at_rest_a_check_is_due_every_ten_seconds(resting):
    assert due_after(resting, 35) == [10, 20, 30]


def test_a_change_makes_checks_due_until_it_has_settled(resting, transcript):
    soon = list(range(1, RESTLESS_S + 1))
    assert soon[-1] > STALENESS_THRESHOLD
    os.utime(transcript, (1, 1))
    assert due_after(resting, 8) == soon
    resting.event("s", "tool_start:Read")
    assert due_after(resting, 8) == soon


def test_the_end_of_a_process_closes_its_session_at_the_next_second(resting):
    del resting.processes[5]
    assert due_after(resting, 1) == [1]
    assert resting.status("s") == "closed"


def test_a_transcript_that_is_gone_is_a_change_once(resting, transcript):
    transcript.unlink()
    due_after(resting, 2 * HEALTH_CHECK_INTERVAL)
    resting.health.check()
    assert due_after(resting, 9) == []


def test_checks_that_take_long_come_rarely(resting):
    resting.health.duration = 5 * MAX_SHARE
    resting.event("s", "tool_start:Read")
    resting.health.check, checked = lambda: None, resting.health.check
    resting.health.last = resting.now
    assert due_after(resting, 5) == []  # it is restless for four of them
    resting.health.check = checked
    assert due_after(resting, 5) == [5]


def test_of_ten_thousand_sessions_a_question_looks_at_few(world):
    asked = []
    world.health.started = lambda pid: asked.append(pid) or 1
    for number in range(400):
        world.event(f"s{number}", "stop", pid=number + 1, pid_started=1)
    world.health.check()
    world.health.take_news()  # this one knows of the events
    asked.clear()
    world.health.take_news()
    assert len(asked) == 200
