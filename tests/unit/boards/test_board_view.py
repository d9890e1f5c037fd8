"""The board's rows: order, filter, names, ages, the timeline."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from tailhook.board.rows import TONE_COLOURS, count_lines, draw_plate, draw_timeline, fit
from tailhook.board.view import (
    Piece,
    assign_columns,
    end_periods,
    format_age,
    lay_out_bars,
    list_labels,
    plate_age,
    read_details,
    read_plate,
    select_plates,
    started_waiting,
    sum_by_status,
)
from tailhook.cli.plates import ANSI_COLOURS
from tailhook.machines.plates import ATTENTION, Status
from tailhook.plates import app
from tailhook.plates.display import (
    BOARD_GROUPS,
    FILTER_FIELDS,
    STATUSES,
    ProjectNames,
    describe_event,
    describe_plate,
    describe_statuses,
    encode,
    project_folder_name,
)
from tailhook.plates.fields import DetailsOut, EventOut, PeriodOut, PlateFields, PlateOut, StatusesOut, Tone
from tailhook.plates.markdown import read_markdown
from tailhook.plates.rows import empty_plate
from tailhook.plates.tables import EVENT_COLUMNS, Plate
from tailhook.plates.timeline import find_periods

NO_DETAILS = {
    "asked": None,
    "context": None,
    "tokens": None,
    "events": [],
    "periods": [],
    "agent_lanes": [],
    "more_agents": 0,
    "tools": [],
    "last_message": None,
    "message": [],
    "no_message": "",
}
EPOCH = "1970-01-01T00:00:00.000Z"
RUNNING, IDLE, ASKING, CLOSED = Status.RUNNING, Status.IDLE, Status.AWAITING_INPUT, Status.CLOSED


def row(session="s", status=RUNNING, since=0.0, created=0.0, path="/p/x"):
    """Return a row of the daemon's table."""
    plate = empty_plate(session, path, int(created * 1000))
    plate["status"] = status.value
    plate["since"] = int(since * 1000)
    return plate


def described(session="s", *facts, **more):
    """Return a plate as the daemon sends it."""
    plate = row(session, *facts, **more)
    return json.loads(encode(describe_plate(plate, project_folder_name(plate["project_path"]))))


def plate(session, *facts, **more):
    return read_plate(described(session, *facts, **more))


def ids(plates):
    return [plate["session_id"] for plate in plates]


# ---- plates ------------------------------------------------------------------


def test_a_plate_is_read_as_the_daemon_describes_it():
    sent = described("s", IDLE, since=2, path="/home/ada/shop")
    assert sent["search"] == "/home/ada/shop\nidle\ns"
    assert read_plate(sent) == {**sent, "status": IDLE}
    assert plate_age(read_plate(sent), 9.0) == "7s"


def test_every_name_of_a_field_is_the_same_in_the_database_the_answers_and_the_boards():
    shared = set(PlateFields.__annotations__)
    sent = described()
    assert shared <= set(Plate.__annotations__)
    assert set(sent) == set(read_plate(sent)) == set(PlateOut.__annotations__)
    details = read_details({**sent, **NO_DETAILS})
    assert set(details) == set(DetailsOut.__annotations__)
    assert set(describe_event(event_row())) == set(EventOut.__annotations__)
    assert [set(period) for period in find_periods([event_row(status="idle")])] == [set(PeriodOut.__annotations__)]
    assert set(describe_statuses()) == set(StatusesOut.__annotations__)
    assert set(TONE_COLOURS) == set(ANSI_COLOURS) == set(get_args(Tone))


def test_every_field_of_the_daemon_that_the_web_board_reads_is_one_that_it_sends():
    script = "".join(path.read_text() for path in sorted((Path(app.__file__).parent / "web").glob("*.js")))
    read = set(re.findall(r"\b(?:plate|shown)\??\.([a-z_]+)\b(?!\()", script))
    assert len(read) > 10
    assert read - {"length"} <= set(PlateOut.__annotations__)


def test_words_of_a_session_are_on_one_line_without_control_characters():
    odd = "a\x1b[2J\n\u202eb"
    kept = {"session_id", "search", "status", "activity"}
    activity = {"words": odd, "tool": odd, "text": odd, "choices": [odd], "is_code": False}
    sent = {**described(), **dict.fromkeys(PlateOut.__annotations__.keys() - kept, odd), "activity": activity}
    read = read_plate(sent)
    shown = "a\\x1b[2J\\n\\u202eb"
    assert read["activity"] == {"words": shown, "tool": shown, "text": shown, "choices": [shown], "is_code": False}
    assert {read[name] for name in sent.keys() - kept} == {"a\\x1b[2J\\n\\u202eb"}
    event = {**describe_event(event_row(event_type=odd, tool_name=odd, tool_params={"command": odd})), "status": None}
    period = {
        **find_periods([event_row(status="running", event_type="tool_start", tool_name=odd)])[0],
        "status": "idle",
    }
    asked = {"words": odd, "tool": odd, "questions": [], "inputs": [{"name": odd, "text": odd}], "plan": []}
    message = read_markdown(f"{odd}\n")
    details = read_details(
        {**sent, **NO_DETAILS, "events": [event], "periods": [period], "asked": asked, "message": message}
    )
    lines = "a\\x1b[2J\n\\u202eb"
    assert details["message"][0]["texts"] == [{"kind": "text", "text": lines}]
    assert details["asked"]["inputs"] == [{"name": lines, "text": lines}]
    [shown], [drawn] = details["events"], details["periods"]
    assert {shown["words"], shown["tool_name"], shown["about"], drawn["label"]} == {"a\\x1b[2J\\n\\u202eb"}


def test_the_longest_wait_comes_first_then_the_running_by_project_then_the_newest_of_the_rest():
    found = select_plates(
        [
            plate("idle long ago", IDLE, since=1),
            plate("idle now", IDLE, since=9),
            plate("b", path="/p/b", since=9),
            plate("a", path="/p/a", since=1),
            plate("error now", Status.ERROR, since=9),
            plate("asking for long", ASKING, since=1),
        ]
    )
    assert ids(found) == ["asking for long", "error now", "a", "b", "idle now", "idle long ago"]


def test_a_running_session_keeps_its_place_whatever_it_does():
    before = [plate("1", created=1, since=5), plate("2", created=2, since=6)]
    after = [plate("1", created=1, since=8), plate("2", created=2, since=7)]
    assert ids(select_plates(before)) == ids(select_plates(after)) == ["1", "2"]


def test_closed_ones_are_shown_when_they_are_wanted():
    plates = [plate("open"), plate("closed", CLOSED)]
    assert ids(select_plates(plates)) == ["open"]
    assert ids(select_plates(plates, closed=True)) == ["open", "closed"]


def test_every_word_of_the_filter_must_occur():
    plates = [plate("1", ASKING, path="/p/Shop"), plate("2", path="/p/shop")]
    assert ids(select_plates(plates, "SHOP awaiting")) == ["1"]
    assert ids(select_plates(plates, " shop ")) == ["1", "2"]
    assert select_plates(plates, "mail") == []


def test_a_closed_session_stands_where_its_status_changed():
    plates = [plate("before", IDLE, since=1), plate("closed", CLOSED, since=2), plate("after", IDLE, since=3)]
    assert ids(select_plates(plates, closed=True)) == ["after", "closed", "before"]


def test_a_rank_is_ascii_whatever_the_names_are():
    plates = [plate(f"{name}\U0001f980", path=f"/p/{name}") for name in ("\uff5e", "\U0001f980", "é", "z", "")]
    assert all(one["rank"].isascii() for one in plates)
    assert [one["name"] for one in select_plates(plates)] == ["p", "z", "é", "\uff5e", "\U0001f980"]


def test_a_filter_searches_the_host_and_the_user():
    one = row("1")
    one["host"], one["user"], one["git_branch"] = "Ark", "Noah", "Dove"
    plates = [read_plate(describe_plate(one, "x")), plate("2")]
    assert ids(select_plates(plates, "ARK noah dove")) == ["1"]


def test_each_status_has_a_symbol_of_its_own():
    assert set(STATUSES) == set(Status)
    assert len({display["symbol"] for display in STATUSES.values()}) == len(Status)
    assert {status for status, display in STATUSES.items() if display["group"] == "waits"} == set(ATTENTION)


def test_projects_with_the_same_folder_name_are_called_by_their_parents_too():
    names = ProjectNames()
    assert names.put("1", "/a/web") == {}
    assert names.put("2", "/b/web") == {"1": "a/web"}
    assert names.put("3", "/b/web") == names.put("4", "/b/api") == {}
    assert [names.name_of(path) for path in ("/a/web", "/b/web", "/b/api")] == ["a/web", "b/web", "api"]
    assert names.put("1", "/a/web") == {}
    assert names.remove("2") == {}
    assert names.remove("1") == {"3": "web"}
    assert names.remove("1") == {}
    assert names.put("3", "/c/api") == {"4": "b/api"}
    assert names.put("4", "/c/api") == {"3": "api"}
    assert names.remove("4") == {}  # the other session keeps its name


def test_a_project_without_a_parent_or_a_folder_has_a_name():
    names = ProjectNames()
    names.load([("1", "/web"), ("2", "/b/web"), ("3", "/")])
    assert [names.name_of(path) for path in ("/web", "/b/web", "/")] == ["/web", "b/web", "/"]
    assert names.name_of("/new/web") == "new/web"


def test_a_change_to_attention_calls_and_nothing_else_does():
    for before in Status:
        for after in Status:
            wanted = before not in ATTENTION and after in ATTENTION
            assert started_waiting(plate("s", before), plate("s", after)) == wanted


def test_a_session_that_appears_calls_if_it_needs_attention():
    assert [status for status in Status if started_waiting(None, plate("s", status))] == [
        *filter(ATTENTION.__contains__, Status)
    ]


def test_an_age_is_reported_in_its_largest_unit():
    assert [format_age(seconds) for seconds in (-5, 0, 59.9, 60, 3599, 3600, 86399, 86400, 10**7)] == [
        "0s", "0s", "59s", "1m", "59m", "1h", "23h", "1d", "115d"
    ]  # fmt: skip


# ---- the timeline ------------------------------------------------------------


def event_row(**fields):
    """A row of the table of events."""
    common = {**dict.fromkeys(EVENT_COLUMNS), "event_type": "prompt_submit", "ts": 1000}
    return {**common, **fields}


def event(at, status, kind="prompt_submit", tool=""):
    return event_row(event_type=kind, ts=int(at * 1000), tool_name=tool or None, status=status and status.value)


def timeline(events, now):
    """The pieces of a timeline, each with its name."""
    found = end_periods(find_periods(events), now)
    return [(piece.start, piece.end, piece.period["lane"], piece.period["label"]) for piece in found]


def piece(start, end, status, tool=""):
    [period] = find_periods([event(start, status, "tool_start" if tool else "prompt_submit", tool)])
    return Piece(start, end, period)


def test_a_timeline_has_a_piece_for_each_status_and_each_tool():
    events = [
        event(10, RUNNING, "prompt_submit"),
        event(20, RUNNING, "tool_start", "Bash"),
        event(25, None, "coffee_break"),
        event(30, RUNNING, "tool_call", "Bash"),
        event(35, RUNNING, "tool_call", "Bash"),
        event(40, ASKING, "tool_start", "AskUserQuestion"),
        event(60, IDLE),
    ]
    assert timeline(events, 100.0) == [
        (10, 20, "agent", "thinking"),
        (20, 30, "agent", "Bash"),
        (30, 40, "agent", "thinking"),
        (40, 60, "you", "answer"),
        (60, 100, "you", "idle"),
    ]
    assert [period["end"] for period in find_periods(events)] == [20_000, 30_000, 40_000, 60_000, None]


def test_a_timeline_ends_where_its_session_was_closed():
    assert timeline([event(10, RUNNING), event(20, CLOSED)], 100.0) == [(10, 20, "agent", "thinking")]
    assert timeline([event(10, CLOSED), event(20, RUNNING)], 30.0) == [
        (10, 20, "you", "closed"),
        (20, 30, "agent", "thinking"),
    ]


def test_a_late_event_begins_no_period_before_the_last_one():
    assert timeline([event(10, RUNNING), event(20, IDLE), event(15, ASKING)], 30.0) == [
        (10, 20, "agent", "thinking"),
        (20, 30, "you", "answer"),
    ]


@pytest.mark.parametrize(
    ("fields", "words", "about"),
    [
        ({"event_type": "tool_start", "tool_params": {"command": "make"}}, "tool starts", "make"),
        ({"event_type": "tool_call", "tool_params": {"file_path": "/a.py"}}, "tool ends", "/a.py"),
        ({"event_type": "tool_call", "tool_params": {"todos_done": 2, "todos": 9}}, "tool ends", "2/9 done"),
        ({"event_type": "stop", "error": "529", "tool_params": {"command": "make"}}, "stop", "529"),
        ({"event_type": "prompt_submit", "tool_params": {"other": "x"}}, "prompt submit", ""),
    ],
)
def test_an_event_has_words_and_what_it_is_about(fields, words, about):
    found = describe_event(event_row(**fields))
    assert (found["words"], found["about"]) == (words, about)


def test_the_fields_that_the_filter_searches_are_named_in_the_documentation():
    page = Path(__file__).parents[3] / "docs" / "board.md"
    if not page.exists():
        pytest.skip("the documentation is in the source tree")
    assert f"words that must all occur in {FILTER_FIELDS};" in page.read_text()


def test_the_titles_of_the_groups_are_in_the_documentation():
    page = Path(__file__).parents[3] / "docs" / "board.md"
    if not page.exists():
        pytest.skip("the documentation is in the source tree")
    assert all(f"**{group['title']}**" in page.read_text() for group in BOARD_GROUPS.values())


def test_without_events_there_is_no_timeline():
    assert timeline([], 100.0) == find_periods([event(1, None)]) == assign_columns([], 10) == []
    assert draw_timeline([], 0.0, 10).plain == "Nothing to draw yet."


def test_work_is_drawn_to_scale_and_a_night_no_wider_than_half_of_it():
    work, more, night = piece(0, 30, RUNNING), piece(50_030, 50_060, RUNNING, "Bash"), piece(30, 50_030, IDLE)
    bars = [(bar.width, bar.piece) for bar in lay_out_bars([work, night, more], 60)]
    assert bars == [
        (20, work),
        (20, night),
        (20, more),
    ]


def test_a_short_wait_for_a_person_is_seen_among_much_work():
    pieces = [piece(0, 1000, RUNNING), piece(1000, 1001, ASKING), piece(1001, 2000, RUNNING)]
    assert assign_columns(pieces, 10).count(1) == 1


def test_a_label_shows_what_a_person_must_do_and_for_how_long():
    assert list_labels(piece(0, 300, ASKING)) == ("answer 5m", "5m")
    assert list_labels(piece(0, 300, Status.AWAITING_APPROVAL)) == ("approve 5m", "5m")
    assert list_labels(piece(0, 300, IDLE)) == ("idle 5m", "5m")
    assert list_labels(piece(0, 300, RUNNING, "Bash")) == ("Bash",)
    assert list_labels(piece(0, 300, RUNNING)) == ("thinking",)


MARKS = st.tuples(st.floats(0, 10**6), st.sampled_from([None, *Status]), st.sampled_from(["", "Bash"]))


@given(st.lists(MARKS, max_size=50), st.floats(0, 10**7), st.integers(-5, 200))
@example([(10.0, RUNNING, ""), (10.0, IDLE, "")], 5.0, 2)  # events at one time, and a clock that was set back
@example([(0.0, Status.STARTING, "")], 5e-324, 2)  # the shortest time there is: a column of it is 0 s
def test_every_timeline_can_be_drawn_in_every_width(marks, now, width):
    pieces = end_periods(find_periods([event(at, status, "tool_start", tool) for at, status, tool in marks]), now)
    assert all(piece.start < piece.end for piece in pieces)
    assert all(one.end == other.start for one, other in pairwise(pieces))
    span = max([now, *(at for at, _, _ in marks)])
    assert sum(sum_by_status(pieces).values()) <= span * (1 + 1e-9)  # a sum of floats
    columns = assign_columns(pieces, width)
    assert columns == sorted(columns)
    assert len(columns) == (max(0, width) if pieces else 0)
    lines = draw_timeline(pieces, now, width + 7).plain.split("\n")
    assert len(lines) == (3 if columns else 1)


# ---- rows --------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=("C", "Z", "M")), max_size=40), st.integers(0, 40))
def test_words_fit_in_exactly_their_columns(words, width):
    assert cell_len(fit(words, width)) == width


@given(
    st.sampled_from(Status),
    st.text("ab 漢字", max_size=60),
    st.sampled_from(["", "3/7", "0/0", "x", "9/3"]),
    st.integers(1, 200),
    st.integers(1, 3),
)
def test_a_row_is_as_wide_as_the_terminal(status, words, progress, width, asked):
    activity = {"words": words, "tool": words, "text": words, "choices": [words], "is_code": True}
    one = {**plate("s", status), "name": words, "git_branch": words, "headline": words, "activity": activity}
    for group in BOARD_GROUPS:
        facts = {"group": group, "todo_progress": progress, "turn_since": EPOCH, "turn_until": EPOCH, "agents": 2}
        drawn = {**one, **facts, "quiet_since": EPOCH if group == "stuck" else None}
        count = count_lines(drawn, width) + asked - 1
        assert [line.cell_len for line in draw_plate(drawn, 5.0, width, count)] == [width] * count
