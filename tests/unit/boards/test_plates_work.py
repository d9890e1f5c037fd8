"""The lanes of sub-agents in a timeline, and the list of tools."""

from support.cases import in_one_test

from tailhook.board.rows import draw_timeline, draw_tools
from tailhook.board.view import end_periods
from tailhook.plates.timeline import IN_BACKGROUND, MAX_TOOLS, find_agents, find_periods, find_tools


def row(ts, kind, tool=None, agent=None, *, status=None, use=None, error=None, about=None):
    """Return a row of the table `events`."""
    return {
        "ts": ts,
        "event_type": kind,
        "tool_name": tool,
        "agent_id": agent,
        "status": status,
        "tool_use_id": use,
        "error": error,
        "tool_params": about and {"command": about},
    }


def lanes(*rows):
    """Return the lanes of sub-agents: of each period the start, the end and the label."""
    return [[(one["start"], one["end"], one["label"]) for one in lane] for lane in find_agents(rows).lanes]


def uses(*rows):
    """Return of each use of a tool its name, start, end and error."""
    return [(one["name"], one["start"], one["end"], one["error"]) for one in find_tools(rows)]


START, STOP = "subagent_start", "subagent_stop"


@in_one_test(
    ("rows", "expected"),
    [
        ([row(1, "tool_start", "Bash")], []),
        ([row(1, START, agent="a")], [[(1, None, "thinking")]]),
        (
            [
                row(1, START, agent="a"),
                row(2, "tool_start", "Bash", "a"),
                row(4, "tool_call", "Bash", "a"),
                row(9, STOP, agent="a"),
            ],
            [[(1, 2, "thinking"), (2, 4, "Bash"), (4, 9, "thinking")]],
        ),
        (
            [row(1, START, agent="a"), row(2, STOP, agent="a"), row(3, START, agent="b")],
            [[(1, 2, "thinking"), (3, None, "thinking")]],
        ),
        (
            [row(1, START, agent="a"), row(2, START, agent="b"), row(3, STOP, agent="a")],
            [[(2, None, "thinking")], [(1, 3, "thinking")]],
        ),
        ([row(1, START, agent="a"), row(5, "stop", status="idle")], [[(1, 5, "thinking")]]),
        ([row(1, START, agent="a"), row(5, "stop", status="running")], [[(1, None, "thinking")]]),
        ([row(1, START, agent="a"), row(5, "interrupted", status="idle")], [[(1, 5, "thinking")]]),
        ([row(1, START, agent="a"), row(5, "session_end", status="closed")], [[(1, 5, "thinking")]]),
        ([row(5, START, agent="a"), row(3, STOP, agent="a")], [[(5, 5, "thinking")]]),
        ([row(1, STOP, agent="a")], []),
    ],
)
def test_lanes_of_sub_agents(rows, expected):
    assert lanes(*rows) == expected


def test_the_number_of_lanes_has_a_limit_and_the_others_are_counted():
    found = find_agents([row(at, START, agent=str(at)) for at in range(1, 20)])
    assert (len(found.lanes), found.more) == (6, 13)
    assert {lane[0]["start"] for lane in found.lanes} == set(range(14, 20))  # the newest
    one_by_one = [row(at, (START, STOP)[at % 2], agent=str(at // 2)) for at in range(2, 99)]
    found = find_agents(one_by_one)
    assert (len(found.lanes), found.more) == (1, 0)


def test_after_a_stop_with_sub_agents_the_agents_lane_shows_that_they_go_on():
    periods = find_periods([row(1, "prompt_submit", status="running"), row(2, "stop", status="running")])
    assert [(one["label"], one["end"]) for one in periods] == [("thinking", 2), (IN_BACKGROUND, None)]


@in_one_test(
    ("rows", "expected"),
    [
        ([row(1, "tool_start", "Bash"), row(4, "tool_call", "Bash")], [("Bash", 1, 4, "")]),
        ([row(1, "tool_start", "Bash"), row(4, "tool_call", "Bash", error="no")], [("Bash", 1, 4, "no")]),
        ([row(1, "tool_start", "Bash")], [("Bash", 1, None, "")]),
        (
            [
                row(1, "tool_start", "Bash", use="a"),
                row(2, "tool_start", "Bash", use="b"),
                row(4, "tool_call", "Bash", use="a"),
            ],
            [("Bash", 2, None, ""), ("Bash", 1, 4, "")],
        ),
        (
            [row(1, "tool_start", "Bash"), row(2, "tool_start", "Bash", "a"), row(4, "tool_call", "Bash", "a")],
            [("Bash", 2, 4, ""), ("Bash", 1, None, "")],
        ),
        ([row(1, "tool_start", "Bash"), row(4, "interrupted")], [("Bash", 1, 4, "")]),
        ([row(1, "tool_start", "Bash"), row(4, "stop", agent="a")], [("Bash", 1, None, "")]),
        (
            [row(1, "tool_start", "Bash"), row(2, "tool_start", "Edit", "a"), row(4, STOP, agent="a")],
            [("Edit", 2, 4, ""), ("Bash", 1, None, "")],
        ),
        ([row(1, "tool_start", "Bash"), row(4, STOP)], [("Bash", 1, None, "")]),
        ([row(4, "tool_call", "Bash")], []),
        ([row(4, "tool_start", "Bash"), row(3, "tool_call", "Bash")], [("Bash", 4, 4, "")]),
    ],
)
def test_uses_of_tools(rows, expected):
    assert uses(*rows) == expected


def test_the_newest_tools_are_listed_and_their_number_has_a_limit():
    found = find_tools([row(at, "tool_start", str(at)) for at in range(1, 999)])
    assert (found[0]["name"], len(found)) == ("998", MAX_TOOLS)


def test_the_terminal_draws_a_sub_agents_bar_below_the_work_of_the_same_time():
    rows = [
        row(0, "tool_start", "Task", status="running"),
        row(50_000, START, agent="a"),
        row(75_000, STOP, agent="a"),
        row(100_000, "stop", status="idle"),
    ]
    pieces = end_periods(find_periods(rows), 100.0)
    lines = draw_timeline(pieces, 100.0, 47, find_agents(rows).lanes).plain.split("\n")
    assert [len(line) for line in lines] == [47] * 4
    assert lines[1] == "└ sub  " + "·" * 20 + " thinking " + "·" * 10


def test_the_terminal_lists_the_tools_with_durations_and_errors():
    found = find_tools(
        [
            row(0, "tool_start", "Bash", about="make"),
            row(61_000, "tool_call", "Bash", error="[b]failed[/b]"),
            row(62_000, "tool_start", "Read", "a"),
        ]
    )
    first, second = draw_tools(found, 65.0).plain.split("\n")
    assert first.endswith("●   3s  Read  sub-agent")
    assert second.endswith("✗   1m  Bash  make  [b]failed[/b]")
