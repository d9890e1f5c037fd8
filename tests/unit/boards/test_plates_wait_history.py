"""How long sessions waited for a person: the sums, the days of the person, and what the database keeps of it."""

import time
from datetime import date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from alembic import command
from hypothesis import given
from hypothesis import strategies as st
from support.plate_reports import asked, ended, report

from tailhook.cli.waits import day_edges
from tailhook.machines.plates import Event, EventKind
from tailhook.plates.db import SELECT_WAITS, Database, Moment
from tailhook.plates.display import project_folder_name
from tailhook.plates.tables import migration_config, waits
from tailhook.plates.waits import Wait, is_of_project, join_waits, sum_waits

NOW = 10_000_000


def kept(database, since=0):
    """Return the start and the end of each wait, joined as the figures join them."""
    return [(wait.start, wait.end) for wait in join_waits(database.waits_since(since, NOW))]


# ---- the sums ----

lengths = st.integers(0, 40)
made_waits = st.builds(Wait, st.sampled_from("ab"), st.sampled_from(["/p", "/q"]), lengths, lengths)


@given(st.lists(made_waits, max_size=8), st.lists(lengths, max_size=5, unique=True).map(sorted))
def test_the_sums_are_the_moments_in_which_each_session_waited(found, edges):
    found = [wait._replace(project_path={"a": "/p", "b": "/q"}[wait.session_id]) for wait in found]
    answer = sum_waits(found, edges, project_folder_name)
    moments = {(wait.session_id, at) for wait in found for at in range(wait.start, wait.end)}
    for (start, end), interval in zip(pairwise(edges), answer["intervals"], strict=True):
        inside = {(session, at) for session, at in moments if start <= at < end}
        begun = {(session, at) for session, at in inside if (session, at - 1) not in inside}
        assert (interval["start"], interval["end"]) == (start, end)
        assert (interval["waited_ms"], interval["waits"]) == (len(inside), len(begun))
        assert interval["waited_ms"] == sum(project["waited_ms"] for project in interval["projects"])
        assert [project["name"] for project in interval["projects"]] == sorted(
            {{"a": "p", "b": "q"}[session] for session, _ in inside},
            key=lambda name: (-len([0 for session, _ in inside if {"a": "p", "b": "q"}[session] == name]), name),
        )
    if len(edges) > 1:
        assert answer["total"]["waited_ms"] == sum(interval["waited_ms"] for interval in answer["intervals"])
    else:
        assert answer == {"intervals": [], "total": None}


def test_a_wait_over_midnight_is_in_both_days_and_once_in_their_sum():
    answer = sum_waits([Wait("s", "/p", 80, 150), Wait("s", "/p", 160, 170)], [0, 100, 200], project_folder_name)
    assert [(one["waited_ms"], one["waits"], one["median_ms"]) for one in answer["intervals"]] == [
        (20, 1, 20),
        (60, 2, 30),
    ]
    assert (answer["total"]["waited_ms"], answer["total"]["waits"], answer["total"]["longest_ms"]) == (80, 2, 70)


def test_waits_of_one_session_without_a_gap_are_one_beside_those_of_another_session():
    found = [Wait("a", "/p", 0, 5), Wait("b", "/q", 1, 4), Wait("b", "/q", 4, 9), Wait("b", "/q", 10, 10)]
    assert join_waits(found) == [Wait("a", "/p", 0, 5), Wait("b", "/q", 1, 9)]


def test_an_interval_without_waits_has_no_lengths():
    total = sum_waits([], [0, 100], project_folder_name)["total"]
    assert (total["waited_ms"], total["waits"], total["median_ms"], total["longest_ms"]) == (0, 0, 0, 0)


def test_a_wait_until_midnight_is_not_in_the_next_day():
    answer = sum_waits([Wait("s", "/p", 80, 100), Wait("t", "/q", 100, 120)], [0, 100, 200], project_folder_name)
    assert [(one["waits"], one["projects"][0]["name"]) for one in answer["intervals"]] == [(1, "p"), (1, "q")]


def test_projects_that_waited_equally_long_are_in_the_order_of_their_paths():
    found = [Wait("1", "/b", 0, 5), Wait("2", "/c", 0, 7), Wait("3", "/a", 0, 5)]
    answer = sum_waits(found, [0, 9], project_folder_name)
    assert [one["name"] for one in answer["total"]["projects"]] == ["c", "a", "b"]


def test_a_question_after_an_approval_is_the_same_wait():
    assert join_waits(
        [Wait("s", "/p", 5, 9), Wait("s", "/p", 0, 5), Wait("t", "/p", 9, 10), Wait("s", "/p", 10, 12)]
    ) == [
        Wait("s", "/p", 0, 9),
        Wait("s", "/p", 10, 12),
        Wait("t", "/p", 9, 10),
    ]


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        (["shop"], True),
        (["/src/shop"], True),
        (["/src/shop/"], True),
        (["/src"], True),
        (["/"], True),
        (["api", "/src"], True),
        (["/src/sho"], False),
        (["/src/shop/web"], False),
        (["SHOP"], False),
        ([], False),
    ],
)
def test_a_project_is_meant_by_its_name_its_folder_or_a_folder_above(wanted, is_found):
    assert is_of_project("/src/shop", wanted, project_folder_name) is is_found


# ---- the days ----


@pytest.fixture
def set_zone(monkeypatch):
    """Call it with the name of a time zone: it is the process's until the test ends."""

    def set_it(zone):
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield set_it
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("Europe/Berlin", date(2026, 11, 27), 24),
        ("America/Sao_Paulo", date(2018, 11, 4), 23),  # the clock is set forward at midnight
        ("Atlantic/Azores", date(2026, 10, 25), 25),  # the clock is set back to midnight
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("Asia/Tokyo", date(2026, 3, 29), 24),
    ],
)
def test_a_day_is_the_persons_own(set_zone, zone, day, hours):
    set_zone(zone)
    for after in range(3):
        edges = day_edges(day + timedelta(days=after), 3)
        dates = [day + timedelta(days=after - 2 + number) for number in range(4)]
        midnights = [datetime(one.year, one.month, one.day, tzinfo=ZoneInfo(zone)).timestamp() for one in dates]
        assert edges == [midnight * 1000 for midnight in midnights]
        start, end = edges[2 - after : 4 - after]
        assert (end - start) / 3_600_000 == hours


# ---- what is kept ----


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["permission_asked", "permission_given"], [(1000, 2000)]),
        (["prompt_submit", "input_asked", "input_given"], [(2000, 3000)]),
        (["tool_start:AskUserQuestion", "prompt_submit"], [(1000, 2000)]),
        (["tool_start:ExitPlanMode", "session_end"], [(1000, 2000)]),
        (["permission_asked", "stop_failure"], [(1000, 2000)]),
        (["permission_asked", "interrupted", "permission_asked", "stop"], [(1000, 2000), (3000, 4000)]),
        (["permission_asked", "input_asked", "prompt_submit"], [(1000, 3000)]),
        (["permission_asked", "permission_asked", "prompt_submit"], [(1000, 3000)]),
        (["permission_asked"], [(1000, NOW)]),
        (["prompt_submit", "stop", "prompt_submit"], []),
        (["prompt_submit", "stop:error", "prompt_submit"], []),
        (["session_start", "tool_start:Bash", "tool_call"], []),
    ],
)
def test_a_question_or_an_approval_is_a_wait_until_it_ends(database, kinds, expected):
    for number, kind in enumerate(kinds, 1):
        database.record(report(kind, ts=number * 1000, mono=number * 1000))
    assert kept(database) == expected


def test_an_answer_to_one_of_two_questions_ends_no_wait(database):
    for number, one in enumerate(
        [asked("a"), asked("b"), ended("AskUserQuestion", "b"), ended("AskUserQuestion", "a")]
    ):
        database.record(one.model_copy(update={"ts": 1000 + number, "mono": 1000 + number}))
    assert kept(database) == [(1000, 1003)]


def test_an_event_during_a_wait_stores_nothing(database):
    database.record(asked("a", ts=1000, mono=1000))
    for number in range(3):
        database.record(ended("Read", "b", ts=2000 + number, mono=2000 + number))
    assert database.waits_since(0, NOW) == [Wait("s", "/p", 1000, NOW)]


def test_sessions_that_wait_at_the_same_time_have_a_wait_each(database):
    for number, session in enumerate("abab", 1):
        kind = "permission_asked" if number < 3 else "prompt_submit"
        database.record(report(kind, session, ts=number * 1000, mono=number * 1000, project_path=f"/{session}"))
    found = database.waits_since(0, NOW)
    assert sorted(found) == [Wait("a", "/a", 1000, 3000), Wait("b", "/b", 2000, 4000)]


def test_a_wait_that_the_daemon_ends_is_kept(database):
    database.record(report("permission_asked", ts=1000, mono=1000))
    database.apply(database.get("s"), Event(EventKind.HEALTH_CHECK_RECOVERY), Moment(5000, None))
    assert kept(database) == [(1000, 5000)]


def test_a_session_that_vanished_waits_until_its_end_is_noticed(database):
    database.record(report("permission_asked", ts=1000, mono=1000))
    database.close_sessions(session_id="s", at=Moment(7000, None))
    assert kept(database) == [(1000, 7000)]


@pytest.mark.parametrize("ts", [0, 999, 1000])
def test_a_clock_that_is_set_back_gives_no_negative_wait(database, ts):
    database.record(report("permission_asked", ts=1000, mono=1000))
    database.record(report("prompt_submit", ts=ts, mono=2000))
    assert database.get("s")["status"] == "running"
    assert kept(database) == []


def test_an_open_wait_in_the_future_is_not_counted(database):
    database.record(report("permission_asked", ts=NOW + 5, mono=1000))
    assert kept(database) == []


def test_a_hidden_session_waits_until_it_was_hidden(database):
    start = time.time_ns() // 1_000_000 - 60_000
    database.record(report("permission_asked", ts=start, mono=1000))
    hidden_at = database.mark("s", hidden=True)["hidden_at"]
    [wait] = database.waits_since(0, hidden_at + 900_000)
    assert (wait.start, wait.end) == (start, hidden_at)
    database.record(report("prompt_submit", ts=hidden_at + 600_000, mono=700_000))
    [wait] = database.waits_since(0, hidden_at + 900_000)
    assert (wait.start, wait.end) == (start, hidden_at)


def test_an_event_that_is_stored_already_ends_no_wait_again(database):
    database.record(report("permission_asked", ts=1000, mono=1000))
    answer = report("prompt_submit", ts=2000, mono=2000)
    for _ in range(2):
        database.record(answer)
    assert len(database.waits_since(0, NOW)) == 1


def test_waits_leave_with_their_session_and_after_the_retention(database):
    old = time.time_ns() // 1_000_000 - 3 * 86_400_000
    for session, at in (("old", old), ("new", old + 2 * 86_400_000)):
        database.record(report("permission_asked", session, ts=at, mono=1000))
        database.record(report("prompt_submit", session, ts=at + 1000, mono=2000))
    database.prune(2)
    assert {wait.session_id for wait in database.waits_since(0, NOW)} == {"new"}
    assert len(database.all()) == 2
    database.delete("new")
    assert database.waits_since(0, NOW) == []


def test_the_waits_in_the_events_of_an_earlier_version_are_kept(url):
    database = Database(url)
    kinds = [
        "permission_asked",
        "permission_asked",
        "prompt_submit",
        "input_asked",
        "input_given",
        "tool_start:ExitPlanMode",
        "stop",
    ]
    for number, kind in enumerate([*kinds, "tool_start:AskUserQuestion"], 1):
        for session, by in (("a", 0), ("b", 7)):
            database.record(report(kind, session, ts=number * 1000 + by, mono=number * 1000))
    before = join_waits(database.waits_since(0, NOW))
    assert len(before) == 8
    database.close()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        config = migration_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "0008")
    engine.dispose()
    database = Database(url)
    assert join_waits(database.waits_since(0, NOW)) == before
    database.close()


# ---- the cost ----


def insert_waits(database, number, end):
    """Store waits of the session "s" that have ended before a time."""
    rows = [{"session_id": "s", "begun_at": end - one - 2, "ended_at": end - one - 1} for one in range(number)]
    with database.engine.begin() as tx:
        tx.execute(sa.insert(waits), rows)


def steps(database, since):
    """Return how many waits end after a time, and how many instructions SQLite executes to find them."""
    counted = []

    def count(_, cursor, *given):
        cursor.connection.set_progress_handler(lambda: counted.append(0), 1)

    sa.event.listen(database.engine, "before_cursor_execute", count)
    found = database.waits_since(since, NOW)
    sa.event.remove(database.engine, "before_cursor_execute", count)
    return len(found), len(counted)


def test_what_is_older_than_the_days_that_are_asked_for_costs_nothing(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/plates.db")
    database.record(report("stop"))
    insert_waits(database, 10, 5_000_000)
    few = steps(database, 4_000_000)
    assert few[0] == 10
    insert_waits(database, 50_000, 3_000_000)
    for session in range(200):
        database.record(report("stop", f"at rest {session}"))
    assert steps(database, 4_000_000) == few
    assert steps(database, 2_000_000)[1] > 10 * few[1]
    database.close()


def test_old_waits_are_found_by_an_index(database):
    database.record(report("stop"))
    insert_waits(database, 20_000, 3_000_000)
    explain = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}[database.engine.dialect.name]
    bound = SELECT_WAITS.params(since=4_000_000)
    statement = bound.compile(database.engine, compile_kwargs={"literal_binds": True})
    with database.engine.begin() as tx:
        tx.exec_driver_sql("ANALYZE")
        plan = " ".join(str(row) for row in tx.exec_driver_sql(f"{explain} {statement}".replace("%", "%%")))
    assert "ix_waits_ended_at" in plan
    assert not any(words in plan for words in ("SCAN waits", "Seq Scan on waits"))
