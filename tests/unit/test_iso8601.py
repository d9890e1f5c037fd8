"""Dates and times of ISO 8601, against Python's calendar."""

import datetime

import pytest
from support.cases import in_one_test

from tailhook._core import iso_time, unix_time

DAY = datetime.timedelta(days=1)
UTC = datetime.UTC


@in_one_test(
    ("stamp", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2024-12-21T10:30:00Z", 1734777000),
        ("2024-12-21T10:30:00+00:00", 1734777000),
        ("2024-12-21T10:30:00-00:00", 1734777000),
        ("2024-12-21T16:00:00+05:30", 1734777000),
        ("2024-12-21T02:30:00-0800", 1734777000),
        ("2024-12-21T02:30:00-08", 1734777000),
        ("2024-12-21T10:30:00.250Z", 1734777000.25),
        ("2024-12-21T10:30:00,250Z", 1734777000.25),
        ("2024-12-21T10:30:00", 1734777000),
        ("2024-12-21T10:30Z", 1734777000),
        ("2024-12-21T10:30.5Z", 1734777030),
        ("2024-12-21T10.5Z", 1734777000),
        ("2024-12-21T10Z", 1734775200),
        ("2024-12-21T10", 1734775200),
        ("2024-12-21T10+05:30", 1734755400),
        ("2024-12-21t10:30:00z", 1734777000),
        ("2024-12-21 10:30:00Z", 1734777000),
        ("2024-12-21 10:30:00", 1734777000),
        ("20241221T103000Z", 1734777000),
        ("20241221T1030Z", 1734777000),
        ("20241221T10", 1734775200),
        ("20241221T103000.5+0530", 1734757200.5),
        ("2024-356T10:30:00Z", 1734777000),
        ("2024356T103000Z", 1734777000),
        ("2024-W51-6T10:30:00Z", 1734777000),
        ("2024W516T103000Z", 1734777000),
        ("2024-12-21", 1734739200),
        ("20241221", 1734739200),
        ("2024-02-29T00:00:00Z", 1709164800),
        ("2024-12-20T24:00:00Z", 1734739200),
        ("2016-12-31T23:59:60Z", 1483228800),
        ("0001-01-01T00:00:00Z", -62135596800),
        ("9999-12-31T23:59:59Z", 253402300799),
    ],
)
def test_a_date_and_time_is_read_in_every_format(stamp, seconds):
    assert unix_time(stamp) == pytest.approx(seconds, abs=1e-6)


@in_one_test(
    "stamp",
    [
        "",
        "T",
        "-",
        "W",
        "now",
        "2024",
        "2024-",
        "2024-12",
        "2024-12-",
        "202412",
        "24-01-01T00:00:00Z",
        "1734777000",
        "2023-02-29T00:00:00Z",
        "2023-366T00:00:00Z",
        "2024-367T00:00:00Z",
        "2024-000T00:00:00Z",
        "2024-W00-1T00:00:00Z",
        "2024-W53-1T00:00:00Z",
        "2024-W01-0T00:00:00Z",
        "2024-W01-8T00:00:00Z",
        "2024-W01T00:00:00Z",
        "2024-W011T00:00:00Z",
        "2024W01-1T00:00:00Z",
        "2024-00-01T00:00:00Z",
        "2024-13-01T00:00:00Z",
        "2024-01-00T00:00:00Z",
        "2024-01-32T00:00:00Z",
        "2024-04-31T00:00:00Z",
        "2024-0101T00:00:00Z",
        "202401-01T00:00:00Z",
        "2024-1-1T00:00:00Z",
        "2024-01-01T",
        "2024-01-01TZ",
        "2024-01-01T1Z",
        "2024-01-01T24:00:01Z",
        "2024-01-01T24:01Z",
        "2024-01-01T25:00:00Z",
        "2024-01-01T00:60:00Z",
        "2024-01-01T00:00:61Z",
        "2024-01-01T00:00:Z",
        "2024-01-01T00:Z",
        "2024-01-01T00:00:0Z",
        "2024-01-01T00:0000Z",
        "2024-01-01T0000:00Z",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00.xZ",
        "2024-01-01T00:00:00.5.5Z",
        "2024-01-01T00:00:00ZZ",
        "2024-01-01T00:00:00 Z",
        "2024-01-01T00:00:00+",
        "2024-01-01T00:00:00+1",
        "2024-01-01T00:00:00+24:00",
        "2024-01-01T00:00:00+05:60",
        "2024-01-01T00:00:00+05:",
        "2024-01-01T00:00:00+05:300",
        "2024-01-01X00:00:00Z",
        "2024-01-01  00:00:00Z",
        " 2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00Z ",
        "+2024-01-01T00:00:00Z",
        "\u0662\u0660\u0662\u0664-01-01T00:00:00Z",
        "2024-01-01T00:00:00\u221205:00",
        "2024-01-01T00:00:00Z\0",
        "\ud800",
    ],
)
def test_what_is_not_a_date_and_time_is_not_read(stamp):
    assert unix_time(stamp) is None


@pytest.mark.parametrize("text", [None, 5, b"2024-01-01", ["2024-01-01"]])
def test_what_is_not_a_str_is_a_type_error(text):
    with pytest.raises(TypeError):
        unix_time(text)


def test_every_day_of_the_first_years_is_one_after_the_day_before():
    """`datetime` begins with the year 1; the year 0 is a leap year, as it is in ISO 8601."""
    first = datetime.datetime(1, 1, 1, tzinfo=UTC).timestamp()
    days = [f"0000-{number:03}" for number in range(1, 367)] + [f"0001-{number:03}" for number in range(1, 366)]
    assert [unix_time(day) for day in days] == [first + 86400 * number for number in range(-366, 365)]
    assert [unix_time(f"0000-{day}") for day in ("01-01", "02-29", "03-01")] == [
        first - 86400 * number for number in (366, 307, 306)
    ]


def test_every_day_of_four_centuries_is_read_in_its_three_forms():
    day = datetime.datetime(1896, 1, 1, tzinfo=UTC)
    while day.year < 2300:
        seconds = day.timestamp()
        year, week, weekday = day.isocalendar()
        ordinal = day.timetuple().tm_yday
        assert unix_time(f"{day:%Y-%m-%d}") == seconds
        assert unix_time(f"{day:%Y%m%d}T00") == seconds
        assert unix_time(f"{day.year}-{ordinal:03}") == seconds
        assert unix_time(f"{year}-W{week:02}-{weekday}") == seconds
        assert unix_time(f"{year}W{week:02}{weekday}T0000") == seconds
        day += DAY


def test_a_53rd_week_is_there_in_long_years_only():
    for year in range(1900, 2300):
        is_long = datetime.date(year, 12, 28).isocalendar()[1] == 53
        assert (unix_time(f"{year}-W53-7") is not None) is is_long


def test_a_month_ends_with_its_last_day():
    for year in (1900, 2000, 2023, 2024):
        for month in range(1, 13):
            last = (datetime.date(year + month // 12, month % 12 + 1, 1) - DAY).day
            assert unix_time(f"{year}-{month:02}-{last}") is not None
            assert unix_time(f"{year}-{month:02}-{last + 1}") is None


@in_one_test("year", [0, 1, 4, 100, 399, 400, 1600, 1900, 1969, 1970, 1999, 2000, 2024, 2026, 2100, 9999])
def test_every_day_of_a_year_is_written_as_it_is_read(year):
    first = unix_time(f"{year:04d}-01-01")
    for day in range(365):
        at = first + 86400 * day + 3661.25
        stamp = iso_time(at, milliseconds=True)
        assert unix_time(stamp) == at
        assert iso_time(at) == f"{stamp[:19]}Z"
        if year:
            moment = datetime.datetime(1, 1, 1, tzinfo=UTC) + datetime.timedelta(seconds=at - unix_time("0001-01-01"))
            assert stamp == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_a_whole_millisecond_is_written_as_it_is_and_what_is_beyond_is_cut_off():
    for millisecond in range(1000):
        assert iso_time((1_767_312_245_000 + millisecond) / 1000, True) == f"2026-01-02T00:04:05.{millisecond:03d}Z"
    assert iso_time(1.9999, True) == "1970-01-01T00:00:01.999Z"
    assert iso_time(-0.25, True) == "1969-12-31T23:59:59.750Z"


@pytest.mark.parametrize("seconds", [-62167219201, 253402300800, float("inf"), float("nan"), 1e300])
def test_a_time_outside_of_four_digits_of_years_is_refused(seconds):
    with pytest.raises(ValueError, match="years 0 to 9999"):
        iso_time(seconds)
