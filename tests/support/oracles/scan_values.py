"""Values of records for the oracle of the scan: names, counts, times."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

MAX_TOKENS = 2**63 - 1
MAX_NAME_BYTES = 4096
MIN_TIME = datetime.min.replace(tzinfo=UTC)


def whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) < 1000 else float("inf")


def short_string(value: Any) -> str | None:
    """Return a name or an id: a string of at most 4,096 bytes."""
    found = string(value)
    return None if found is None or len(found.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES else found


def string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def tokens(value: Any) -> int | None:
    """Return a number of tokens: a whole number from 0 to 2^63 - 1, written without fraction and exponent."""
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None


def sortable_time(time: datetime | None) -> datetime:
    return MIN_TIME if time is None else time


CALENDAR = r"(?P<year>\d{4})(?:-(?P<month>\d\d)-(?P<day>\d\d)|-(?P<yearday>\d{3})|-W(?P<week>\d\d)-(?P<weekday>\d))"
SECOND = r"(?P<second>\d\d)(?:[.,](?P<seconds>\d+))?"
CLOCK = rf"(?P<hour>\d\d)(?:[.,](?P<hours>\d+)|:(?P<minute>\d\d)(?:[.,](?P<minutes>\d+)|:{SECOND})?)?"
ZONE = r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?"
ISO_TIMES = [
    re.compile(rf"{calendar}(?:[T ]{clock}{ZONE})?", re.IGNORECASE | re.ASCII)
    for calendar in (CALENDAR, CALENDAR.replace("-(", "(").replace("-W", "W"))
    for clock in (CLOCK, CLOCK.replace(":(?P", "(?P"))
]


def parse_time(value: Any) -> datetime | None:
    """Return an ISO 8601 date and time as a datetime in UTC, None for anything else.

    Without a zone it counts as UTC, a date alone as its midnight. Digits beyond microseconds are cut off. 23:59:60 is
    the next day's midnight. A time outside of the years 1 to 9999 is None.
    """
    match = next((it for it in (regex.fullmatch(value) for regex in ISO_TIMES) if it), None) if string(value) else None
    if match is None:
        return None
    part = {name: int(digits) for name, digits in match.groupdict().items() if digits and name != "zone"}
    try:
        if "month" in part:
            day = date(part["year"], part["month"], part["day"])
        elif "yearday" in part:
            day = date(part["year"], 1, 1) + timedelta(days=part["yearday"] - 1)
            if day.year != part["year"]:
                return None
        else:
            day = date.fromisocalendar(part["year"], part["week"], part["weekday"])
        hour, minute, second = (part.get(name, 0) for name in ("hour", "minute", "second"))
        after = Fraction(0)
        for name, unit in (("hours", 3600), ("minutes", 60), ("seconds", 1)):
            if match[name]:
                after = Fraction(int(match[name]), 10 ** len(match[name])) * unit
        if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second or after)):
            return None
        clock = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=int(after * 1_000_000))
        zone = match["zone"] or "Z"
        offset = timedelta()
        if zone.upper() != "Z":
            hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
            if hours > 23 or minutes > 59:
                return None
            offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + clock - offset
    except (ValueError, OverflowError):
        return None


def joined(texts: list[Any]) -> str:
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip())
