"""The daemon's plates and events as the terminal shows them, and the timeline. Pure: no I/O, no clock.

All text of a session in these records is on one line and free of control characters.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, cast

from tailhook._core import unix_time
from tailhook.hook.answer import plain, plain_lines
from tailhook.machines.plates import ATTENTION, Status
from tailhook.plates.fields import DetailsOut, EventOut, PeriodOut, PlateOut, StatusesOut, StatusOut, activity_lines

RAW = ("session_id", "search")  # unchanged from the daemon: they may hold control characters
MINUTE, HOUR, DAY = 60, 3600, 86400


# ---- plates ------------------------------------------------------------------


def clean(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of the daemon's JSON, with text safe to show. A status becomes a Status."""
    shown = {name: clean_value(value) for name, value in fields.items()}
    raw = {name: fields[name] for name in RAW if name in fields}
    return {**shown, **raw, "status": Status(fields["status"]) if fields["status"] else None}


def clean_value(value: Any, shown: Callable[[str], str] = plain) -> Any:
    """Return a JSON value with its strings safe to show.

    shown: returns a safe string.
    """
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list):
        return [clean_value(one, shown) for one in value]
    return {name: clean_value(one, shown) for name, one in value.items()} if isinstance(value, dict) else value


def clean_lines(text: str) -> str:
    """Return a text of several lines safe to show."""
    return plain_lines(text.expandtabs(4))


def read_plate(fields: Mapping[str, Any]) -> PlateOut:
    """Return a plate from the daemon's JSON."""
    return cast("PlateOut", clean(fields))


def read_statuses(fields: Mapping[str, Any]) -> StatusesOut:
    """Return the groups, the statuses, the marks and the fields of the filter from the daemon's JSON."""
    statuses, marks = ([cast("StatusOut", clean(sign)) for sign in fields[name]] for name in ("statuses", "marks"))
    return {
        "groups": fields["groups"],
        "statuses": statuses,
        "marks": marks,
        "filter_fields": fields["filter_fields"],
        "long_wait_hours": fields["long_wait_hours"],
    }


def parse_time(iso: str) -> float:
    """Return the Unix seconds of an ISO 8601 time as the daemon writes it."""
    return unix_time(iso) or 0.0


def select_plates(plates: Iterable[PlateOut], wanted: str = "", closed: bool = False) -> list[PlateOut]:
    """Return the plates to show, in the daemon's order.

    wanted: words; each must occur in a plate.
    closed: whether closed and hidden sessions are shown.
    """
    words = wanted.lower().split()
    found = [plate for plate in plates if closed or is_on_board(plate)]
    matching = [plate for plate in found if all(word in plate["search"] for word in words)]
    return sorted(matching, key=lambda plate: plate["rank"])


def is_on_board(plate: PlateOut) -> bool:
    """Return whether a board shows the plate without being asked for closed and hidden ones."""
    return plate["status"] is not Status.CLOSED and not plate["hidden"]


def started_waiting(before: PlateOut | None, after: PlateOut) -> bool:
    """Return whether the session needs attention and did not before.

    before: None for a session that was not there.
    """
    return after["group"] == "waits" and (before is None or before["group"] != "waits")


def status_words(plate: PlateOut, now: float) -> str:
    """Return the words for a plate's status, or for how long there was no sign of its session.

    now: Unix seconds.
    """
    silent_since = plate["silent_since"]
    words = plate["status_words"]
    return words if silent_since is None else f"{words} for {format_age(now - parse_time(silent_since))}"


def activity_words(plate: PlateOut) -> str:
    """Return what a session asks, does or did last, on one line."""
    return "hidden" if plate["hidden"] else "  ".join(activity_lines(plate["activity"]))


def plate_age(plate: PlateOut, now: float) -> str:
    """Return how long a plate has had its status.

    now: Unix seconds.
    """
    return format_age(now - parse_time(plate["since"]))


def row_age(plate: PlateOut, now: float) -> str:
    """Return the age that a row shows: how long a session has waited, rested, worked on its turn or been quiet.

    now: Unix seconds.
    """
    since = {"stuck": plate["quiet_since"], "working": plate["turn_since"]}.get(plate["group"]) or plate["since"]
    return format_age(now - parse_time(since))


def is_long_wait(plate: PlateOut, now: float, hours: int) -> bool:
    """Return whether a session has waited for longer than some hours, so that newer waits come before it.

    now: Unix seconds.
    """
    return plate["group"] == "waits" and now - parse_time(plate["since"]) > hours * HOUR


def format_age(seconds: float) -> str:
    """Return a duration in its largest unit.

    >>> format_age(7), format_age(61), format_age(7300), format_age(-1)
    ('7s', '1m', '2h', '0s')
    """
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if seconds >= unit:
            return f"{int(seconds // unit)}{letter}"
    return f"{max(0, int(seconds))}s"


# ---- details -----------------------------------------------------------------


def read_details(fields: Mapping[str, Any]) -> DetailsOut:
    """Return a plate's details from the daemon's JSON. The last message has lines, and what the session asks too."""
    return cast(
        "DetailsOut",
        {
            **clean(fields),
            "events": [cast("EventOut", clean(event)) for event in fields["events"]],
            "periods": read_periods(fields["periods"]),
            "agent_lanes": [read_periods(lane) for lane in fields["agent_lanes"]],
            "asked": clean_value(fields["asked"], clean_lines),
            "message": clean_value(fields["message"], clean_lines),
        },
    )


def read_periods(periods: Iterable[Mapping[str, Any]]) -> list[PeriodOut]:
    """Return a lane of the timeline from the daemon's JSON."""
    return [cast("PeriodOut", clean(period)) for period in periods]


# ---- the timeline ------------------------------------------------------------


class Piece(NamedTuple):
    """A period with an end: a period that has not ended ends now.

    start, end: Unix seconds.
    """

    start: float
    end: float
    period: PeriodOut


def end_periods(periods: Iterable[PeriodOut], now: float) -> list[Piece]:
    """Return the pieces of a timeline, without gaps between them.

    now: Unix seconds, the end of a period that has not ended.
    """
    pieces = []
    for period in periods:
        end = now if period["end"] is None else period["end"] / 1000
        if end > period["start"] / 1000:
            pieces.append(Piece(period["start"] / 1000, end, period))
    return pieces


def is_work(piece: Piece) -> bool:
    """Return whether the agent worked."""
    return piece.period["status"] is Status.RUNNING


def assign_columns(pieces: Sequence[Piece], width: int) -> list[int]:
    """Return the index of the piece to draw, for each of `width` columns.

    Work is drawn to scale. A wait is at most half as wide as all work together: otherwise a night would leave one
    column for a day's work. If several pieces share a column, a wait for a person is drawn.
    """
    work = sum(piece.end - piece.start for piece in pieces if is_work(piece))
    max_wait = work / 2 or float("inf")
    sizes = [piece.end - piece.start if is_work(piece) else min(piece.end - piece.start, max_wait) for piece in pieces]
    column = sum(sizes) / width if width > 0 else 0.0
    columns: list[int] = []
    first, start = 0, 0.0  # the first piece in the column, and its start
    for number in range(width if pieces else 0):
        left, right = number * column, (number + 1) * column
        while first < len(sizes) - 1 and start + sizes[first] <= left:
            start += sizes[first]
            first += 1
        best, best_weight, begin = first, (False, -1.0), start
        for index in range(first, len(sizes)):
            if begin >= right:
                break
            share = min(right, begin + sizes[index]) - max(left, begin)
            weight = (pieces[index].period["status"] in ATTENTION, share)
            if weight > best_weight:
                best, best_weight = index, weight
            begin += sizes[index]
        columns.append(best)
    return columns


class Bar(NamedTuple):
    """Adjacent columns in which the same piece is drawn."""

    left: int
    width: int
    piece: Piece


def lay_out_bars(pieces: Sequence[Piece], width: int) -> list[Bar]:
    """Return the bars of a timeline that is `width` columns wide."""
    found: list[Bar] = []
    left = 0
    for index, same in groupby(assign_columns(pieces, width)):
        size = len(list(same))
        found.append(Bar(left, size, pieces[index]))
        left += size
    return found


def time_columns(pieces: Sequence[Piece], width: int) -> list[float]:
    """Return the time in the middle of each column of a timeline, in Unix seconds."""
    times = []
    for _, size, piece in lay_out_bars(pieces, width):
        column = (piece.end - piece.start) / size
        times += [piece.start + (number + 0.5) * column for number in range(size)]
    return times


def lay_out_lane(periods: Iterable[PeriodOut], times: Sequence[float], now: float) -> list[Bar | int]:
    """Return a lane with gaps: bars, and the widths of the gaps.

    times: of the columns, as of `time_columns`.
    """
    pieces = end_periods(periods, now)
    indexes = [next((n for n, one in enumerate(pieces) if one.start <= at <= one.end), -1) for at in times]
    found: list[Bar | int] = []
    left = 0
    for index, same in groupby(indexes):
        size = len(list(same))
        found.append(size if index < 0 else Bar(left, size, pieces[index]))
        left += size
    return found


def list_labels(piece: Piece) -> tuple[str, ...]:
    """Return the possible texts on a piece, the longest first: its label, and a wait's duration."""
    label = piece.period["label"]
    if is_work(piece):
        return (label,)
    lasted = format_age(piece.end - piece.start)
    return f"{label} {lasted}", lasted


def sum_by_status(pieces: Iterable[Piece]) -> dict[Status, float]:
    """Return the seconds in each status."""
    sums: dict[Status, float] = {}
    for piece in pieces:
        status = piece.period["status"]
        sums[status] = sums.get(status, 0.0) + piece.end - piece.start
    return sums
