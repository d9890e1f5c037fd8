"""How the tools and waits of sub-agents change the status of their session."""

import pytest
from support.plate_situations import APPROVAL, IDLE, INPUT, RUNNING, happen, play


def test_a_subagents_tools_move_nothing():
    situation = play(("tool_start:AskUserQuestion=a", INPUT))
    for words in ("sub/tool_start:Bash=b", "sub/tool_call:Bash=b", "sub/tool_start:AskUserQuestion=c"):
        situation, reaches = happen(situation, words)
        assert (situation.status, reaches) == (INPUT, False)


def test_a_subagents_tool_with_the_same_name_does_not_end_the_wait():
    play(
        ("tool_start:Bash", RUNNING),
        ("permission_asked:Bash", APPROVAL),
        ("sub/tool_start:Bash", APPROVAL),
        ("sub/tool_call:Bash", APPROVAL),
        ("tool_call:Bash", RUNNING),
    )


@pytest.mark.parametrize(("before", "own"), [("prompt_submit", RUNNING), ("stop", IDLE)])
def test_a_permission_for_a_subagent_waits_for_the_person_and_then_all_is_as_it_was(before, own):
    play(
        (before, own),
        ("sub/tool_start:Bash=b", own),
        ("sub/permission_asked:Bash", APPROVAL),
        ("permission_asked", APPROVAL),
        ("sub/tool_start:Read=c", APPROVAL),
        ("sub/tool_call:Read=c", APPROVAL),
        ("sub/tool_call:Bash=b", own),
    )


def test_a_notification_alone_may_be_about_a_subagents_tool():
    play(
        ("stop", IDLE),
        ("sub/tool_start:Bash=b", IDLE),
        ("permission_asked", APPROVAL),
        ("sub/tool_call:Bash=b", IDLE),
    )


def test_while_a_subagent_waits_the_session_goes_on_beneath():
    """Another sub-agent ends, the host submits a prompt of its own, and that turn ends."""
    play(
        ("sub/tool_start:Bash=b", RUNNING),
        ("sub/permission_asked:Bash", APPROVAL),
        ("stop", APPROVAL),
        ("prompt_submit by host", APPROVAL),
        ("tool_start:Read=c", APPROVAL),
        ("tool_call:Read=c", APPROVAL),
        ("stop_blocked", APPROVAL),
        ("stop", APPROVAL),
        ("sub/tool_call:Bash=b", IDLE),
    )


def test_a_tool_that_the_session_starts_while_a_subagent_waits_sets_it_running_beneath():
    play(
        ("stop", IDLE),
        ("sub/tool_start:Bash=b", IDLE),
        ("sub/permission_asked:Bash", APPROVAL),
        ("tool_start:Read=c", APPROVAL),
        ("sub/tool_call:Bash=b", RUNNING),
    )


def test_the_sessions_own_question_is_seen_before_a_subagents():
    play(
        ("sub/tool_start:Bash=b", RUNNING),
        ("sub/permission_asked:Bash", APPROVAL),
        ("tool_start:AskUserQuestion=a", INPUT),
        ("tool_call:AskUserQuestion=a", APPROVAL),
        ("sub/tool_call:Bash=b", RUNNING),
    )


@pytest.mark.parametrize("end", ["sub/subagent_stop", "sub/stop"])
def test_a_subagent_that_stops_waits_no_longer_and_another_one_does(end):
    situation = play(
        ("stop", IDLE),
        ("sub/tool_start:Bash=a", IDLE),
        ("other/tool_start:Bash=b", IDLE),
        ("sub/permission_asked:Bash", APPROVAL),
        ("other/permission_asked:Bash", APPROVAL),
        (end, APPROVAL),
    )
    assert [tool.agent_id for tool in situation.tools] == ["other"]
    play(("other/subagent_stop", IDLE), situation=situation)


@pytest.mark.parametrize("words", ["prompt_submit", "interrupted", "stop_failure", "session_start", "session_end"])
def test_if_the_person_does_something_else_no_subagent_waits(words):
    situation = play(("sub/tool_start:Bash=a", RUNNING), ("sub/permission_asked:Bash", APPROVAL))
    after, _ = happen(situation, words)
    assert after.waits == ()
    assert after.beneath is None


@pytest.mark.parametrize("words", ["session_start", "session_end", "stop_failure", "prompt_submit", "interrupted"])
def test_what_happens_to_a_subagent_alone_does_not_happen_to_the_session(words):
    situation = play(("tool_start:AskUserQuestion=a", INPUT), ("sub/tool_start:Bash=b", INPUT))
    assert happen(situation, f"sub/{words}") == (situation, False)
