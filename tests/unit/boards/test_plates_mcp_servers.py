"""Questions of MCP servers to the person, and the waits that the answers end."""

from support.plate_situations import APPROVAL, IDLE, INPUT, RUNNING, happen, play


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
