"""Which events reach the table of statuses: what a session waits for, and what ends that."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plate_events import parse_event

from tailhook.machines.plates import MAX_OPEN_TOOLS, Detail, EventKind, Situation, Status, admits, follow

RUNNING, IDLE, INPUT, APPROVAL, ERROR, CLOSED = (
    Status.RUNNING,
    Status.IDLE,
    Status.AWAITING_INPUT,
    Status.AWAITING_APPROVAL,
    Status.ERROR,
    Status.CLOSED,
)


def happen(situation, words):
    """Apply an event that is written in words: `[AGENT/]KIND[:TOOL][=ID][(ABOUT)][ by host][ late]`."""
    words, is_late, _ = words.partition(" late")
    words, is_hosts, _ = words.partition(" by host")
    words, _, about = words.rstrip(")").partition("(")
    words, _, tool_use_id = words.partition("=")
    agent_id, _, words = words.rpartition("/")
    kind, _, tool = words.partition(":")
    short = words if kind in ("tool_start", "stop") and tool else kind
    event = parse_event(short) if short != "tool_start" else parse_event("tool_start: ")._replace(tool="")
    detail = Detail(tool_use_id, tool, about, agent_id, bool(is_hosts))
    return follow(situation, event, detail, bool(is_late))


def play(*steps, situation=None):
    """Apply events to a running session and check the status after each; returns the last situation."""
    situation = situation or Situation(RUNNING)
    for number, (words, expected) in enumerate(steps, 1):
        situation, _ = happen(situation, words)
        assert situation.status is expected, f"step {number}: {words}"
    return situation


# ---- tools beside the one that is waited for ---------------------------------


def test_the_end_of_a_parallel_tool_does_not_end_a_permission():
    play(
        ("tool_start:Read=a", RUNNING),
        ("tool_start:Bash=b", RUNNING),
        ("permission_asked:Bash", APPROVAL),
        ("tool_call:Read=a", APPROVAL),
        ("tool_call:Bash=b", RUNNING),
    )


def test_the_start_of_a_parallel_tool_does_not_end_a_question():
    play(
        ("tool_start:AskUserQuestion=a", INPUT),
        ("tool_start:Bash=b", INPUT),
        ("tool_call:Bash=b", INPUT),
        ("tool_call:AskUserQuestion=a", RUNNING),
    )


def test_of_several_sub_agents_waits_the_person_sees_the_newest():
    play(
        ("A/tool_start:Bash=a", RUNNING),
        ("A/permission_asked:Bash", APPROVAL),
        ("input_asked:mcp__x", INPUT),
    )


def test_the_end_of_a_tool_without_an_id_ends_the_first_one_of_its_name():
    situation = play(("tool_start:Bash=a", RUNNING), ("tool_start:Bash=b", RUNNING), ("tool_call:Bash", RUNNING))
    assert [tool.tool_use_id for tool in situation.tools] == ["b"]


def test_an_mcp_server_asks_for_its_newest_tool():
    play(
        ("tool_start:mcp__x__one=a", RUNNING),
        ("tool_start:mcp__x__two=b", RUNNING),
        ("input_asked:mcp__x", INPUT),
        ("tool_call:mcp__x__one=a", INPUT),
        ("tool_call:mcp__x__two=b", RUNNING),
    )


def test_the_machines_page_names_how_many_tools_are_kept():
    page = Path(__file__).parents[2] / "docs/machines/plates.md"
    assert f"at most {MAX_OPEN_TOOLS} tools of a session" in page.read_text()


def test_only_a_tool_beside_a_wait_does_not_reach_the_table():
    situation = play(("tool_start:Read=a", RUNNING))
    situation, reaches = happen(situation, "tool_start:Bash=b")
    assert reaches
    situation = play(("permission_asked:Bash", APPROVAL), situation=situation)
    assert [happen(situation, words)[1] for words in ("tool_start:Edit=c", "tool_call:Read=a", "tool_call:Bash=b")] == [
        False,
        False,
        True,
    ]


def test_a_question_while_a_permission_is_open_is_what_is_shown():
    play(
        ("tool_start:Bash=a", RUNNING),
        ("permission_asked:Bash", APPROVAL),
        ("tool_start:AskUserQuestion=b", INPUT),
        ("tool_call:Bash=a", INPUT),
        ("tool_call:AskUserQuestion=b", RUNNING),
    )


def test_a_plan_waits_until_it_is_approved():
    play(
        ("tool_start:ExitPlanMode=a", APPROVAL),
        ("permission_asked:ExitPlanMode", APPROVAL),
        ("permission_asked", APPROVAL),
        ("tool_call:ExitPlanMode=a", RUNNING),
    )


def test_a_question_stays_a_question_when_its_permission_is_asked_and_notified():
    """Claude Code 2.1.329 sends all three for one question."""
    play(
        ("tool_start:AskUserQuestion=a", INPUT),
        ("permission_asked:AskUserQuestion", INPUT),
        ("permission_asked", INPUT),
        ("tool_call:AskUserQuestion=a", RUNNING),
    )


def test_a_permission_of_a_question_whose_start_was_missed_is_a_question():
    play(("permission_asked:AskUserQuestion", INPUT), ("tool_call:AskUserQuestion=a", RUNNING))


def test_a_notification_without_a_tool_is_about_the_newest_tool_that_has_not_ended():
    play(
        ("tool_start:Read=a", RUNNING),
        ("tool_start:Bash=b", RUNNING),
        ("tool_start:Edit=c", RUNNING),
        ("tool_call:Edit=c", RUNNING),
        ("permission_asked", APPROVAL),
        ("tool_call:Read=a", APPROVAL),
        ("tool_call:Bash=b", RUNNING),
    )


def test_a_notification_after_the_request_asks_for_nothing_more():
    play(
        ("tool_start:Read=a", RUNNING),
        ("tool_start:Bash=b", RUNNING),
        ("permission_asked:Read", APPROVAL),
        ("permission_asked", APPROVAL),
        ("tool_call:Read=a", RUNNING),
    )


def test_a_notification_while_a_permission_is_open_is_about_no_newer_tool():
    play(
        ("tool_start:Read=a", RUNNING),
        ("permission_asked:Read", APPROVAL),
        ("tool_start:Bash=b", APPROVAL),
        ("permission_asked", APPROVAL),
        ("tool_call:Read=a", RUNNING),
    )


def test_two_uses_of_one_tool_are_distinguished_by_what_they_work_on():
    play(
        ("tool_start:Bash=a(make)", RUNNING),
        ("tool_start:Bash=b(ls)", RUNNING),
        ("permission_asked:Bash(make)", APPROVAL),
        ("tool_call:Bash=b", APPROVAL),
        ("tool_call:Bash=a", RUNNING),
    )


def test_a_use_that_was_asked_about_in_other_words_is_the_newest_of_that_tool():
    play(
        ("tool_start:Bash=a(make)", RUNNING),
        ("tool_start:Bash=b(ls)", RUNNING),
        ("permission_asked:Bash(cd /x; ls)", APPROVAL),
        ("tool_call:Bash=a", APPROVAL),
        ("tool_call:Bash=b", RUNNING),
    )


# ---- one wait while another one is open --------------------------------------


def test_two_permissions_are_two_waits():
    play(
        ("tool_start:Read=a(/a)", RUNNING),
        ("tool_start:Read=b(/b)", RUNNING),
        ("permission_asked:Read(/b)", APPROVAL),
        ("permission_asked:Read(/a)", APPROVAL),
        ("tool_call:Read=a", APPROVAL),
        ("tool_call:Read=b", RUNNING),
    )


def test_the_status_is_that_of_the_newest_wait_that_is_left():
    play(
        ("tool_start:AskUserQuestion=a", INPUT),
        ("tool_start:Bash=b", INPUT),
        ("permission_asked:Bash", APPROVAL),
        ("tool_call:Bash=b", INPUT),
        ("tool_call:AskUserQuestion=a", RUNNING),
    )
    play(
        ("tool_start:AskUserQuestion=a", INPUT),
        ("tool_start:Bash=b", INPUT),
        ("permission_asked:Bash", APPROVAL),
        ("tool_call:AskUserQuestion=a", APPROVAL),
        ("tool_call:Bash=b", RUNNING),
    )


def test_the_same_permission_is_asked_one_after_the_other():
    play(
        ("tool_start:Bash=a", RUNNING),
        ("permission_asked:Bash", APPROVAL),
        ("tool_call:Bash=a", RUNNING),
        ("tool_start:Bash=b", RUNNING),
        ("permission_asked:Bash", APPROVAL),
        ("tool_call:Bash=b", RUNNING),
    )


# ---- a prompt, a stop, an interruption ---------------------------------------


@pytest.mark.parametrize(
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
@pytest.mark.parametrize(
    "asked", ["tool_start:AskUserQuestion=a", "tool_start:ExitPlanMode=a", "permission_asked:Bash"]
)
def test_what_ends_the_turn_ends_the_wait_and_nothing_of_it_is_left(asked, words, status):
    situation, _ = happen(Situation(RUNNING), asked)
    situation = play((words, status), situation=situation)
    assert situation == Situation(status)


# What stays open of a session's own tool, a sub-agent's tool, and a sub-agent's tool that waits.
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


@pytest.mark.parametrize(("words", "left"), LEFT_OPEN.items())
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


# ---- sub-agents --------------------------------------------------------------


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


# ---- MCP servers -------------------------------------------------------------


def test_an_elicitation_waits_for_input_until_it_is_answered():
    play(
        ("tool_start:mcp__db__query=a", RUNNING),
        ("tool_start:Bash=b", RUNNING),
        ("input_asked:mcp__db", INPUT),
        ("input_asked", INPUT),
        ("tool_call:Bash=b", INPUT),
        ("input_given:mcp__db", RUNNING),
        ("input_given", RUNNING),
        ("input_asked:mcp__db", INPUT),
        ("tool_call:mcp__db__query=a", RUNNING),
    )


def test_an_elicitation_outside_of_any_tool_leaves_the_session_as_it_was():
    play(("stop", IDLE), ("input_asked:mcp__db", INPUT), ("input_given:mcp__db", IDLE))
    play(("input_asked", INPUT), ("stop", INPUT), ("input_given", IDLE))
    play(("input_asked:mcp__db", INPUT), ("prompt_submit", RUNNING), ("input_given:mcp__db", RUNNING))


def test_the_answer_to_one_of_two_servers_leaves_the_other_one_waiting():
    situation = play(
        ("tool_start:mcp__a__x=1", RUNNING),
        ("tool_start:mcp__b__x=2", RUNNING),
        ("input_asked:mcp__a", INPUT),
        ("input_asked:mcp__b", INPUT),
        ("input_given", INPUT),  # by one of them, and not by which
        ("input_given:mcp__a", INPUT),
    )
    play(("input_given", RUNNING), situation=situation)


def test_a_notification_while_a_server_asks_is_about_no_other_server():
    play(
        ("tool_start:mcp__a__x=1", RUNNING),
        ("input_asked:mcp__a", INPUT),
        ("tool_start:mcp__b__y=2", INPUT),
        ("input_asked", INPUT),
        ("input_given:mcp__a", RUNNING),
    )


def test_an_answer_outside_of_any_tool_leaves_the_tools_open():
    situation = play(
        ("tool_start:Bash=b", RUNNING),
        ("input_asked:mcp__a", INPUT),
        ("input_given:mcp__a", RUNNING),
    )
    assert [tool.tool_use_id for tool in situation.tools] == ["b"]
    situation = play(("tool_start:mcp__a__x=1", RUNNING), ("input_asked:mcp__a", INPUT), ("input_given", RUNNING))
    assert [(tool.tool_use_id, tool.wait) for tool in situation.tools] == [("1", None)]


def test_an_answer_that_nothing_waits_for_does_not_reach_the_table():
    situation = play(("tool_start:mcp__a__x=1", RUNNING))
    assert happen(situation, "input_given:mcp__a") == (situation, False)
    assert happen(situation, "input_given") == (situation, False)


def test_an_answer_to_a_server_gives_no_permission():
    play(
        ("tool_start:mcp__a__x=1", RUNNING),
        ("permission_asked:mcp__a__x", APPROVAL),
        ("input_given:mcp__a", APPROVAL),
        ("input_given", APPROVAL),
        ("tool_call:mcp__a__x=1", RUNNING),
    )


def test_a_server_whose_name_begins_like_anothers_is_another_one():
    play(("tool_start:mcp__dbx__q=1", RUNNING), ("input_asked:mcp__db", INPUT), ("input_given:mcp__dbx", INPUT))


def test_an_answer_that_nothing_waits_for_changes_nothing():
    play(("tool_start:AskUserQuestion=a", INPUT), ("input_given", INPUT), ("input_given:mcp__a", INPUT))


# ---- hosts that send less ----------------------------------------------------


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


# ---- out of order ------------------------------------------------------------


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


# ---- bounds ------------------------------------------------------------------


def test_the_open_tools_are_bounded_and_what_waits_is_kept():
    situation = play(("tool_start:AskUserQuestion=q", INPUT))
    for number in range(MAX_OPEN_TOOLS):
        situation, _ = happen(situation, f"tool_start:Bash={number}")
    assert len(situation.tools) == MAX_OPEN_TOOLS
    assert [tool.tool_use_id for tool in situation.tools[:2]] == ["q", "1"]
    play(("tool_call:Bash=7", INPUT), ("tool_call:AskUserQuestion=q", RUNNING), situation=situation)


def test_waits_are_bounded_too():
    situation = Situation(RUNNING)
    for number in range(MAX_OPEN_TOOLS + 3):
        situation, _ = happen(situation, f"tool_start:AskUserQuestion={number}")
    assert [tool.tool_use_id for tool in situation.tools] == [str(number) for number in range(3, MAX_OPEN_TOOLS + 3)]


def test_a_start_that_comes_twice_is_one_open_tool():
    assert len(play(("tool_start:Bash=a", RUNNING), ("tool_start:Bash=a", RUNNING)).tools) == 1


# ---- in general --------------------------------------------------------------

NAMES = ["AskUserQuestion", "ExitPlanMode", "Bash", "mcp__a__x"]
details = st.builds(
    Detail,
    tool_use_id=st.sampled_from(["", "1", "2"]),
    tool=st.sampled_from(["", "mcp__a", *NAMES]),
    about=st.sampled_from(["", "x"]),
    agent_id=st.sampled_from(["", "", "s"]),
    is_hosts=st.booleans(),
)
SHORT = [kind.value for kind in EventKind if kind is not EventKind.TOOL_START] + [
    "stop:error",
    *map("tool_start:{}".format, NAMES),
]
happenings = st.lists(st.tuples(st.sampled_from(SHORT).map(parse_event), details, st.booleans()), max_size=12)


def situation_after(events):
    situation = Situation(Status.STARTING)
    for event, detail, is_late in events:
        if admits(situation.status, event):
            situation, _ = follow(situation, event, detail, is_late)
    return situation


@given(happenings)
def test_whatever_happens_the_status_is_one_that_its_waits_allow(events):
    situation = situation_after(events)
    assert situation.status in Status
    assert len(situation.tools) <= MAX_OPEN_TOOLS
    own = [tool.wait for tool in situation.tools if tool.wait and not tool.agent_id]
    if own:
        assert situation.own is own[-1]
    assert situation.beneath in (None, RUNNING, IDLE)
    if situation.beneath:
        assert situation.status in {tool.wait for tool in situation.waits}


@given(happenings, st.sampled_from(["tool_start:AskUserQuestion", "tool_start:Bash"]), details)
def test_the_start_of_a_subagents_tool_never_changes_the_status(events, words, detail):
    situation = situation_after(events)
    after, reaches = follow(situation, parse_event(words), detail._replace(agent_id="s"))
    assert (after.status, after.beneath, reaches) == (situation.status, situation.beneath, False)


@given(happenings)
def test_a_prompt_of_a_person_always_sets_the_session_running(events):
    after, _ = follow(situation_after(events), parse_event("prompt_submit"), Detail())
    assert (after.status, after.waits) == (RUNNING, ())


@given(happenings)
def test_after_a_recovery_nothing_waits(events):
    after, _ = follow(situation_after(events), parse_event("health_check_recovery"), Detail())
    assert after.waits == ()
    assert after.status not in (INPUT, APPROVAL, ERROR)
