"""The health check closes a session whose host's process has ended."""

import os
import subprocess
import sys
import time

import pytest
from support.host import Started

from tailhook.plates.health import find_process_start


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
    """The event is written, and taken, after the spool was found empty."""
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
    with Started([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
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
