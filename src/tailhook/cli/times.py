"""Times among a command's arguments: ISO 8601, `7d`, `yesterday`."""

import argparse
import re
from datetime import UTC, datetime, timedelta

from tailhook._core import unix_time
from tailhook.cli.local_time import from_local
from tailhook.transcripts.records import EPOCH

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGO = re.compile(r"(\d{1,6})([smhdw])")
HAS_ZONE = re.compile(r"[T ].*([Zz]|[+-]\d\d(:?\d\d)?)$")
DAYS = {"today": 0, "yesterday": 1}
FORMS = "2026-11-01, 2026-11-01T09:30, 90s, 30m (minutes), 12h, 7d, 2w, today or yesterday"


def time_argument(word: str) -> datetime:
    """Parse an argument as a time, counted from now. Raises ArgumentTypeError."""
    try:
        found = resolve_time(word, datetime.now(UTC))
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{word!r} is not in the years 1 to 9999") from None
    if found is None:
        raise argparse.ArgumentTypeError(f"{word!r} is not a time. Write it as {FORMS}")
    return found


def resolve_time(word: str, now: datetime) -> datetime | None:
    """Return the time that a word means, in UTC, or None.

    A date is its midnight. A time without a zone, a date, and the words `today` and `yesterday` are of this
    computer's time zone. If that leaves the years 1 to 9999, they are of UTC. `7d` is seven times 24 hours ago.

    now: aware.

    Raises OverflowError for any other time outside of these years.

    >>> now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    >>> print(resolve_time("2026-11-01T09:30+01:00", now), resolve_time("36h", now))
    2026-11-01 08:30:00+00:00 2026-11-21 00:00:00+00:00
    """
    if ago := AGO.fullmatch(word):
        return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
    if word in DAYS:
        day = now.astimezone().date() - timedelta(days=DAYS[word])
        return from_local(datetime(day.year, day.month, day.day))
    seconds = unix_time(word)
    if seconds is None:
        return None
    found = EPOCH + timedelta(seconds=seconds)
    if HAS_ZONE.search(word):
        return found
    try:
        return from_local(found.replace(tzinfo=None))
    except (OverflowError, ValueError):
        return found
