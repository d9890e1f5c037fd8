"""Which events reach the table of statuses: a session's waits, and the events that end them."""

from pathlib import Path

from support.plate_situations import APPROVAL, INPUT, RUNNING, happen, play

from tailhook.machines.plates import MAX_OPEN_TOOLS, Situation

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
    page = Path(__file__).parents[3] / "docs/machines/plates.md"
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
