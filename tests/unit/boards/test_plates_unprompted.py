"""The health check of a session that was given no prompt."""

import pytest

from tailhook.machines.plates import HostStatus


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "fork", "new"])
def test_a_session_that_was_given_no_prompt_is_idle_after_a_second(world, source):
    world.event("s", "session_start", source=source)
    world.now += 1
    assert world.health.check() == 0
    world.now += 0.001
    assert world.health.check() == 1
    assert world.status("s") == "idle"
    assert world.health.check() == 0


@pytest.mark.parametrize(("word", "status"), [("idle", "idle"), ("busy", "running")])
def test_a_host_that_is_idle_is_not_waited_for(world, word, status):
    world.event("s", "session_start", source="clear")
    world.hosts["s"] = HostStatus(word, world.now)
    world.health.check()
    assert world.status("s") == status


def test_a_late_check_also_finds_a_session_without_a_prompt_idle(world):
    world.event("s", "session_start", source="startup")
    world.now += 0.9
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
