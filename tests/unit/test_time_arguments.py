"""Times among a command's arguments."""

import argparse
import time
from datetime import datetime, timedelta, timezone

import pytest

from tailhook.cli.times import FORMS, UNITS, resolve_time, time_argument

UTC = timezone.utc
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
        "999999w",
        "9:30",
        "0001-01-01",
    ],
)
def test_another_word_is_not(word):
    assert resolve_time(word, NOW) is None
    with pytest.raises(argparse.ArgumentTypeError, match=r"is not a time\. Write it as 2026-11-01"):
        time_argument(word)


def test_the_forms_that_the_help_shows_are_times_and_have_every_unit():
    words = FORMS.replace(" or ", ", ").replace(" (minutes)", "").split(", ")
    assert all(resolve_time(word, NOW) for word in words)
    assert {word[-1] for word in words if word[:-1].isdecimal() and word[-1].isalpha()} == UNITS.keys()
