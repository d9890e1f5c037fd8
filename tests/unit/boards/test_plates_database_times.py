"""Since when a status holds, and times that cannot be."""

import pytest
from support.plate_events import parse_event
from support.plate_reports import asked, ended, report, status

from tailhook.plates.db import Moment
from tailhook.plates.schemas import unix_ms


def since(database):
    return database.get("s")["since"]


def test_a_status_holds_since_the_event_that_changed_it(database):
    for at, kind, expected in [
        (1000, "prompt_submit", 1000),
        (2000, "tool_start:Bash", 1000),
        (3000, "tool_call", 1000),
        (4000, "tool_start:AskUserQuestion", 4000),
        (5000, "tool_start:Bash", 4000),
        (6000, "stop", 6000),
    ]:
        database.record(report(kind, ts=at, mono=at))
        assert since(database) == expected


def test_a_wait_that_was_spooled_for_hours_has_lasted_for_hours(database):
    hours = 3 * 3_600_000
    database.record(report("permission_asked", ts=unix_ms() - hours, mono=None))
    assert unix_ms() - since(database) >= hours


def test_a_late_event_that_fills_a_field_changes_no_age(database):
    database.record(report("stop", ts=5000, mono=5000))
    database.record(report("tool_call", ts=4000, mono=4000, git_branch="main"))
    assert (since(database), database.get("s")["git_branch"]) == (5000, "main")


def test_a_late_end_of_a_wait_counts_from_when_it_happened(database):
    database.record(asked("a", ts=1000, mono=1000))
    database.record(report("tool_start:Bash", tool_use_id="b", ts=3000, mono=3000))
    database.record(ended("AskUserQuestion", "a", ts=2000, mono=2000))
    assert (status(database), since(database)) == ("running", 2000)
    assert database.get("s")["event_ts"] == 3000


@pytest.mark.parametrize("ahead", [60_000, 10**12])
def test_no_status_begins_in_the_future(database, ahead):
    before = unix_ms()
    database.record(report("stop", ts=before + ahead, mono=5))
    assert before <= since(database) <= unix_ms()


def test_a_clock_that_was_set_back_makes_no_age_negative(database):
    database.record(report("prompt_submit", ts=10_000_000, mono=5000))
    database.record(report("stop", ts=6_000_000, mono=6000))
    assert since(database) == 6_000_000


def test_what_the_daemon_finds_counts_from_when_it_finds_it(database):
    database.record(report("tool_start:ExitPlanMode", ts=1000, mono=None))
    database.apply(database.get("s"), parse_event("health_check_recovery"), Moment(9000, None))
    assert since(database) == 9000
    database.apply(database.get("s"), parse_event("session_end"), Moment(9500, None))
    assert since(database) == 9500


def test_a_placeholder_holds_since_its_registration(database):
    placeholder = database.register("/p", "run")
    database.record(report("coffee_break", run_id="run"))
    assert database.all()[0]["since"] == placeholder["since"] == placeholder["created_at"]


END_OF_TIME = 8_640_000_000_000_000


@pytest.mark.parametrize("mono", [END_OF_TIME, None, 5])
def test_an_event_from_the_end_of_time_makes_no_later_one_an_old_one(database, mono):
    database.record(report("prompt_submit", ts=END_OF_TIME, mono=mono))
    database.record(report("stop", ts=unix_ms() + 1, mono=10))
    assert status(database) == "idle"


def test_a_time_within_a_day_is_kept_and_a_later_one_is_the_present():
    day = 86_400_000
    now = unix_ms()
    assert report("stop", ts=now + day - 10_000).ts == now + day - 10_000
    assert now <= report("stop", ts=now + day + 10_000).ts <= unix_ms()
    assert report("stop", ts=0).ts == 0


def test_no_machine_has_run_for_more_than_a_hundred_years():
    century = 100 * 366 * 86_400_000
    assert report("stop", mono=century).mono == century
    assert report("stop", mono=century + 1).mono is None
