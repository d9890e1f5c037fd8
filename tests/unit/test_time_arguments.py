"""Times among a command's arguments."""

import argparse
import time
from datetime import UTC, datetime, timedelta

import pytest
from support.cases import in_one_test

from tailhook.cli.times import FORMS, UNITS, resolve_time, time_argument
from tailhook.cli.totals import TimeNames

UTC = UTC
NOW = datetime(2026, 11, 22, 1, 30, tzinfo=UTC)


@pytest.fixture
def west(monkeypatch):
    """Let this computer be ten hours west of Greenwich."""
    monkeypatch.setenv("TZ", "XXX+10")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("7d", NOW - timedelta(days=7)),
        ("2w", NOW - timedelta(days=14)),
        ("36h", NOW - timedelta(hours=36)),
        ("90m", NOW - timedelta(minutes=90)),
        ("5s", NOW - timedelta(seconds=5)),
        ("0d", NOW),
        ("2026-11-01", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("20261101", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01T09:30", datetime(2026, 11, 1, 19, 30, tzinfo=UTC)),
        ("2026-11-01 09:30:15.5", datetime(2026, 11, 1, 19, 30, 15, 500_000, tzinfo=UTC)),
        ("2026-11-01T09:30Z", datetime(2026, 11, 1, 9, 30, tzinfo=UTC)),
        ("2026-11-01T09:30+05:30", datetime(2026, 11, 1, 4, tzinfo=UTC)),
        ("2026-11-01T09:30-0800", datetime(2026, 11, 1, 17, 30, tzinfo=UTC)),
        ("2026-11-01T09:30-08", datetime(2026, 11, 1, 17, 30, tzinfo=UTC)),
        ("today", datetime(2026, 11, 21, 10, tzinfo=UTC)),
        ("yesterday", datetime(2026, 11, 20, 10, tzinfo=UTC)),
    ],
)
def test_a_word_is_a_time(west, word, wanted):
    found = resolve_time(word, NOW)
    assert found == wanted
    assert found.tzinfo is not None


@pytest.mark.parametrize(
    ("zone", "day", "wanted"),
    [
        ("Africa/Cairo", "2026-04-24", datetime(2026, 4, 23, 22, tzinfo=UTC)),  # from 0:00 to 1:00
        ("America/Sao_Paulo", "2018-11-04", datetime(2018, 11, 4, 3, tzinfo=UTC)),
        ("America/Sao_Paulo", "2018-02-18", datetime(2018, 2, 18, 3, tzinfo=UTC)),  # from 0:00 back to 23:00
        ("America/Havana", "2026-11-01", datetime(2026, 11, 1, 4, tzinfo=UTC)),  # from 1:00 back to 0:00
        ("Pacific/Apia", "2011-12-31", datetime(2011, 12, 30, 10, tzinfo=UTC)),  # the day before was left out
    ],
)
def test_a_date_begins_when_its_group_of_usage_begins(monkeypatch, zone, day, wanted):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert [resolve_time(word, NOW) for word in (day, f"{day}T00:00")] == [wanted, wanted]
        names = TimeNames("day", None)
        for step in (timedelta(0), timedelta(microseconds=-1)):
            moment = (wanted + step).replace(tzinfo=None).isoformat(timespec="microseconds")
            assert (names.name(f"{moment}Z") == day) is (not step)
        assert resolve_time("today", wanted + timedelta(hours=12)) == wanted
    finally:
        monkeypatch.undo()
        time.tzset()


def test_parts_of_a_second_are_exact(west):
    assert resolve_time("2026-11-01T09:30:15.123457", NOW) == datetime(2026, 11, 1, 19, 30, 15, 123_457, tzinfo=UTC)


@in_one_test(
    "word",
    [
        "",
        "soon",
        "7",
        "d",
        "-7d",
        "7 d",
        "1.5d",
        "7y",
        "2026-13-01",
        "2026-11-31",
        "tomorrow",
        "9:30",
    ],
)
def test_another_word_is_not(word):
    assert resolve_time(word, NOW) is None
    with pytest.raises(argparse.ArgumentTypeError, match=r"is not a time\. Write it as 2026-11-01"):
        time_argument(word)


@pytest.mark.parametrize("word", ["999999w", "0001-01-01T00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_a_time_outside_of_the_calendar_is_refused_with_the_reason(word):
    with pytest.raises(argparse.ArgumentTypeError, match="is not in the years 1 to 9999"):
        time_argument(word)


@pytest.mark.parametrize(
    ("word", "zone", "wanted"),
    [
        ("0001-01-01", "UTC", datetime(1, 1, 1, tzinfo=UTC)),
        ("0001-01-01", "Asia/Tokyo", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59", "UTC", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("9999-12-31T23:59:59", "America/New_York", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_local_time_at_the_edge_of_the_calendar_is_taken_as_utc(monkeypatch, word, zone, wanted):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert time_argument(word) == wanted
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_forms_that_the_help_shows_are_times_and_have_every_unit():
    words = FORMS.replace(" or ", ", ").replace(" (minutes)", "").split(", ")
    assert all(resolve_time(word, NOW) for word in words)
    assert {word[-1] for word in words if word[:-1].isdecimal() and word[-1].isalpha()} == UNITS.keys()
