"""A prompt, a stop or an interruption ends what a session waits for."""

from support.cases import in_one_test
from support.plate_situations import APPROVAL, CLOSED, ERROR, IDLE, INPUT, RUNNING, happen, play

from tailhook.machines.plates import Situation


@in_one_test(
    ("words", "status"),
    [
        ("prompt_submit", RUNNING),
        ("stop", IDLE),
        ("stop:error", ERROR),
        ("stop_failure", ERROR),
        ("stop_blocked", RUNNING),
        ("interrupted", IDLE),
        ("session_start", RUNNING),
        ("session_end", CLOSED),
        ("health_check_recovery", IDLE),
    ],
)
@in_one_test("asked", ["tool_start:AskUserQuestion=a", "tool_start:ExitPlanMode=a", "permission_asked:Bash"])
def test_what_ends_the_turn_ends_the_wait_and_nothing_of_it_is_left(asked, words, status):
    situation, _ = happen(Situation(RUNNING), asked)
    situation = play((words, status), situation=situation)
    assert situation == Situation(status)


# Which stay open of: a session's own tool, a sub-agent's tool, a waiting tool of a sub-agent.
LEFT_OPEN = {
    "prompt_submit": ["theirs"],
    "interrupted": ["theirs"],
    "prompt_submit by host": ["theirs", "asked"],
    "session_start by host": ["theirs", "asked"],
    "stop": ["theirs", "asked"],
    "stop_blocked": ["theirs", "asked"],
    "turn_ended": ["theirs", "asked"],
    "health_check_recovery": ["own", "theirs"],
    "subagent_stop": ["own", "theirs", "asked"],  # of an agent that it does not name
    "stop:error": [],
    "stop_failure": [],
    "session_start": [],
    "session_end": [],
}


@in_one_test(("words", "left"), LEFT_OPEN.items())
def test_what_stays_open(words, left):
    situation = play(
        ("tool_start:Bash=own", RUNNING),
        ("sub/tool_start:Read=theirs", RUNNING),
        ("other/tool_start:Edit=asked", RUNNING),
        ("other/permission_asked:Edit", APPROVAL),
    )
    after, reaches = happen(situation, words)
    assert ([tool.tool_use_id for tool in after.tools], reaches) == (left, True)


def test_a_turn_that_seems_to_have_ended_leaves_a_question_open():
    """The row of `turn_ended` changes a running session alone."""
    situation = play(("tool_start:AskUserQuestion=a", INPUT), ("turn_ended", INPUT))
    play(("tool_start:Bash=b", INPUT), ("tool_call:AskUserQuestion=a", RUNNING), situation=situation)


def test_a_subagents_stop_and_its_late_tools_change_nothing_of_a_finished_turn():
    play(("stop", IDLE), ("sub/tool_start:Bash=b", IDLE), ("sub/tool_call:Bash=b", IDLE), ("sub/subagent_stop", IDLE))
