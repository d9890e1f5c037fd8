"""Events that arrive out of order."""

import pytest
from support.plate_situations import APPROVAL, ERROR, IDLE, INPUT, RUNNING, happen, play

from tailhook.machines.plates import Situation


def test_a_late_notification_does_not_replace_a_running_status():
    play(("tool_start:Bash=a", RUNNING), ("tool_call:Bash=a", RUNNING), ("permission_asked:Bash late", RUNNING))
    play(("tool_start:Bash=a", RUNNING), ("permission_asked late", RUNNING))
    play(("input_asked late", RUNNING), ("input_asked:mcp__a late", RUNNING))


def test_a_late_request_for_a_tool_that_is_still_open_waits():
    """The hook of a parallel tool's end was faster."""
    play(
        ("tool_start:Read=a", RUNNING),
        ("tool_start:Bash=b", RUNNING),
        ("tool_call:Bash=b", RUNNING),
        ("permission_asked:Read late", APPROVAL),
        ("tool_call:Read=a", RUNNING),
    )
    play(("tool_start:mcp__a__x=1", RUNNING), ("input_asked:mcp__a late", INPUT), ("input_given:mcp__a late", RUNNING))


def test_a_late_end_of_the_tool_that_is_waited_for_ends_the_wait():
    play(
        ("tool_start:Read=a", RUNNING),
        ("tool_start:Bash=b", RUNNING),
        ("permission_asked:Bash", APPROVAL),
        ("tool_call:Read=a", APPROVAL),
        ("tool_call:Bash=b late", RUNNING),
    )


@pytest.mark.parametrize("words", ["tool_call late", "tool_call:Bash late", "tool_call:Read=x late", "stop late"])
def test_a_late_event_that_is_not_about_the_open_wait_does_not_end_it(words):
    situation = play(("tool_start:AskUserQuestion=a", INPUT))
    assert happen(situation, words) == (situation, False)


@pytest.mark.parametrize(
    "words", ["tool_start:AskUserQuestion=a late", "tool_start:Bash=a late", "tool_call:Bash late"]
)
@pytest.mark.parametrize("status", [IDLE, ERROR, RUNNING])
def test_a_late_tool_changes_no_status(words, status):
    situation, reaches = happen(Situation(status), words)
    assert (situation.status, reaches) == (status, False)


def test_a_late_start_is_known_when_its_permission_is_asked():
    situation = play(("tool_start:Bash=b", RUNNING), ("tool_start:Read=a late", RUNNING))
    assert [tool.tool_use_id for tool in situation.tools] == ["b", "a"]
    play(
        ("permission_asked:Read", APPROVAL),
        ("tool_call:Bash=b", APPROVAL),
        ("tool_call:Read=a", RUNNING),
        situation=situation,
    )


def test_a_late_start_of_a_turn_that_is_over_opens_nothing():
    assert play(("stop", IDLE), ("tool_start:Bash=a late", IDLE)).tools == ()
