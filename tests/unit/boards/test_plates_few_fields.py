"""Events of hosts that send no ids or no names."""

import pytest
from support.plate_situations import APPROVAL, IDLE, INPUT, RUNNING, play


def test_without_ids_the_name_decides():
    play(
        ("tool_start:ExitPlanMode", APPROVAL),
        ("tool_start:Bash", APPROVAL),
        ("tool_call:Bash", APPROVAL),
        ("tool_call:ExitPlanMode", RUNNING),
    )


def test_without_ids_an_end_closes_the_tool_of_that_name():
    situation = play(("tool_start:Bash", RUNNING), ("tool_start:Read", RUNNING), ("tool_call:Bash", RUNNING))
    assert [tool.name for tool in situation.tools] == ["Read"]


def test_an_end_without_an_id_ends_the_use_that_waits():
    play(
        ("tool_start:Bash=a(make)", RUNNING),
        ("tool_start:Bash=b(ls)", RUNNING),
        ("permission_asked:Bash(ls)", APPROVAL),
        ("tool_call:Bash", RUNNING),
    )


def test_an_end_with_an_id_ends_a_start_without_one_by_its_name():
    play(("tool_start:AskUserQuestion", INPUT), ("tool_call:Bash=b", INPUT), ("tool_call:AskUserQuestion=a", RUNNING))


@pytest.mark.parametrize("words", ["tool_call=b", "sub/tool_call", "sub/tool_call=a"])
def test_the_end_of_another_tool_or_of_a_subagents_tool_ends_nothing_however_few_fields_it_has(words):
    play(("tool_start:AskUserQuestion=a", INPUT), (words, INPUT), ("tool_call=a", RUNNING))


def test_an_end_with_neither_id_nor_name_ends_every_wait_as_in_the_seed():
    situation = play(("tool_start:AskUserQuestion=a", INPUT), ("tool_start:Bash=b", INPUT), ("tool_call", RUNNING))
    assert situation.tools == ()


@pytest.mark.parametrize("words", ["tool_start:Bash=a", "tool_start", "tool_call:Bash=a", "tool_call"])
def test_a_permission_without_any_tool_ends_with_the_next_tool_event_as_in_the_seed(words):
    play(("permission_asked", APPROVAL), (words, RUNNING))


def test_a_start_without_a_name_ends_a_wait_as_in_the_seed():
    play(("tool_start:AskUserQuestion=a", INPUT), ("tool_start", RUNNING))


def test_a_start_without_a_name_ends_no_wait_of_a_subagents_and_no_other_tool():
    situation = play(
        ("tool_start:Bash=b", RUNNING),
        ("sub/tool_start:Read=r", RUNNING),
        ("sub/permission_asked:Read", APPROVAL),
        ("tool_start", APPROVAL),
    )
    assert [tool.tool_use_id for tool in situation.tools] == ["b", "r", ""]


@pytest.mark.parametrize("tool", ["", ":Bash"])
def test_a_start_of_a_subagents_tool_does_not_end_that_agents_own_wait(tool):
    play((f"sub/permission_asked{tool}", APPROVAL), (f"sub/tool_start{tool}", APPROVAL))


def test_the_end_of_a_tool_ends_no_other_one_however_little_is_known_of_it():
    situation = play(("tool_start", RUNNING), ("tool_start:Bash=b", RUNNING), ("tool_call:Bash=b", RUNNING))
    assert [tool.name for tool in situation.tools] == [""]
    play(("sub/permission_asked", APPROVAL), ("tool_call:Bash=b", APPROVAL), ("sub/subagent_stop", RUNNING))


def test_the_end_of_a_tool_of_a_finished_turn_sets_it_running_as_in_the_seed():
    play(("stop", IDLE), ("tool_call:Bash=b", RUNNING))


def test_a_tool_that_asks_twice_without_an_id_waits_once():
    play(
        ("tool_start:ExitPlanMode", APPROVAL),
        ("tool_start:ExitPlanMode", APPROVAL),
        ("tool_call:ExitPlanMode", RUNNING),
    )
