"""Times as a person reads them: in a time zone."""

from __future__ import annotations

from datetime import datetime, tzinfo


def in_zone(time: datetime, zone: tzinfo | None = None) -> datetime:
    """Return an aware time in a zone, or as it is if it then would not be in the years 1 to 9999.

    zone: None for this computer's.
    """
    try:
        return time.astimezone(zone)
    except (OverflowError, ValueError):
        return time
