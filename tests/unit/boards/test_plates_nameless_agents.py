"""A session runs until each of its turns has ended, although no event names its sub-agent (Kimi Code 2.1.0)."""

import pytest
from support.plate_reports import report, status
from support.plate_situations import APPROVAL, ERROR, IDLE, RUNNING, happen, play

IN_FRONT = ("tool_start:Agent=1", RUNNING), ("subagent_start", RUNNING)
BEHIND = *IN_FRONT, ("tool_call:Agent=1", RUNNING)


def test_the_stop_of_an_agent_whose_session_waits_for_it_is_not_the_sessions():
    situation = play(*IN_FRONT, ("stop", RUNNING))
    assert (situation.own, situation.agents) == (RUNNING, ())
    play(("subagent_stop", RUNNING), ("tool_call:Agent=1", RUNNING), ("stop", IDLE), situation=situation)


def test_each_of_several_agents_is_waited_for():
    both = ("tool_start:Agent=2", RUNNING), ("subagent_start", RUNNING)
    ends = ("stop", RUNNING), ("subagent_stop", RUNNING), ("stop", RUNNING), ("subagent_stop", RUNNING)
    play(*IN_FRONT, *both, *ends, ("tool_call:Agent=1", RUNNING), ("tool_call:Agent=2", RUNNING), ("stop", IDLE))


@pytest.mark.parametrize(
    "ends",
    [
        ["stop", "subagent_stop", "stop"],  # first the agent
        ["stop", "stop", "subagent_stop"],  # first the session
        ["stop", "prompt_submit", "stop", "subagent_stop", "stop"],  # a person's prompt in between
        ["stop", "prompt_submit", "stop", "stop", "subagent_stop"],
        ["stop", "prompt_submit", "tool_start:Bash=2", "stop", "subagent_stop", "tool_call:Bash=2", "stop"],
        ["stop", "tool_start:Bash=2", "tool_call:Bash=2", "stop", "subagent_stop"],  # a tool of the agent
        ["tool_start:TaskStop=2", "interrupted", "tool_call:TaskStop=2", "stop"],
        ["stop_failure", "stop"],
        ["stop", "stop_failure"],
        ["stop", "subagent_start", "stop", "stop", "subagent_stop"],  # another turn of the agent
    ],
)
def test_a_session_runs_until_it_and_its_agent_behind_it_have_ended(ends):
    last = len(ends) - 1 - (ends[-1] == "subagent_stop")
    play(*BEHIND, *((words, IDLE if number >= last else RUNNING) for number, words in enumerate(ends)))


def test_the_stop_of_the_session_is_its_own_once_that_of_an_agent_has_come():
    """The end of the agent comes after its own stop: the first stop was the session's."""
    situation = play(*BEHIND, ("subagent_start", RUNNING), ("stop", RUNNING), ("stop", RUNNING))
    situation = play(("subagent_stop", RUNNING), situation=situation)
    assert (situation.own, len(situation.agents)) == (IDLE, 1)
    play(("stop", IDLE), ("subagent_stop", IDLE), situation=situation)


def test_an_interruption_ends_the_turns_of_the_session_and_of_the_agent_that_it_waits_for():
    play(*IN_FRONT, ("interrupted", RUNNING), ("interrupted", IDLE))


def test_an_agent_behind_an_idle_session_may_wait_for_the_person():
    asked = ("tool_start:Bash=2", RUNNING), ("permission_asked:Bash=2", APPROVAL), ("permission_given=2", RUNNING)
    situation = play(*BEHIND, ("stop", RUNNING), *asked)
    assert situation.own is IDLE
    play(("tool_call:Bash=2", RUNNING), ("stop", IDLE), situation=situation)


def test_without_an_agent_each_end_is_the_sessions():
    for words, then in (("stop", IDLE), ("interrupted", IDLE), ("stop_failure", ERROR)):
        play(*BEHIND, ("stop", RUNNING), ("stop", IDLE), ("prompt_submit", RUNNING), (words, then))


def test_the_agents_keep_names_of_their_own():
    situation = play(*[("subagent_start", RUNNING)] * 3)
    situation, _ = happen(happen(situation, "tool_start:Agent=1")[0], "stop")
    situation, _ = happen(situation, "subagent_start")
    assert len({tool.agent_id for tool in situation.agents}) == 3


def test_the_stop_of_an_agent_does_not_finish_the_turn(database):
    for kind, fields in (
        ("prompt_submit", {}),
        ("tool_start", {"tool_name": "Agent", "tool_use_id": "1"}),
        ("subagent_start", {}),
        ("stop", {}),
    ):
        database.record(report(kind, **fields), owner="me")
    assert (status(database), database.get("s")["finished_at"]) == ("running", None)
