"""Times as a person reads and writes them: in a time zone."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from tailhook.transcripts.records import EPOCH


def in_zone(time: datetime, zone: tzinfo | None = None) -> datetime:
    """Return an aware time in a zone, or as it is if it then would not be in the years 1 to 9999.

    zone: None for this computer's.
    """
    try:
        return time.astimezone(zone)
    except (OverflowError, ValueError):
        return time


def from_local(time: datetime) -> datetime:
    """Return the time, in UTC, at which this computer's clocks show a time without a zone.

    If clocks skip it, it counts as if they did not: a skipped midnight is the moment in which the next day begins.
    `time.astimezone()` gives an hour before that. If clocks show it twice, it is the first of both.

    Raises OverflowError or ValueError if it is not in the years 1 to 9999.
    """
    seconds = int(time.replace(microsecond=0).timestamp())
    return EPOCH + timedelta(seconds=seconds, microseconds=time.microsecond)
