"""The daemon's plates and events as the terminal shows them, and the timeline. Pure: no I/O, no clock.

All text of a session in these records is on one line and free of control characters.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from tailhook._core import unix_time
from tailhook.hook.answer import plain, plain_lines
from tailhook.machines.plates import ATTENTION, EventKind, Status
from tailhook.plates.display import STATUSES, BoardGroup

STATUS_COLOURS = {
    Status.AWAITING_INPUT: "#f5c242",
    Status.AWAITING_APPROVAL: "#ff9f43",
    Status.ERROR: "#ff6b6b",
    Status.RUNNING: "#4cc38a",
    Status.STARTING: "#56b6c2",
    Status.IDLE: "#7aa2f7",
    Status.CLOSED: "#8a8f98",
}
TASKS = {Status.AWAITING_INPUT: "answer", Status.AWAITING_APPROVAL: "approve"}  # what the person has to do
MINUTE, HOUR, DAY = 60, 3600, 86400


# ---- plates ------------------------------------------------------------------


class BoardPlate(NamedTuple):
    """A session, as the daemon describes it (`tailhook.plates.display`).

    session_id: as the daemon knows it. It may hold characters that steer a terminal.
    since: when its status last changed, in Unix seconds.
    rank: the plates are sorted by it.
    search: what a filter searches.
    """

    session_id: str
    path: str
    name: str
    branch: str
    status: Status
    tool: str
    todo: str
    error: str
    since: float
    group: BoardGroup
    rank: str
    symbol: str
    words: str
    search: str


def read_plate(fields: dict[str, Any]) -> BoardPlate:
    """Return a plate from the daemon's JSON."""
    return BoardPlate(
        session_id=fields["session_id"],
        path=plain(fields["project_path"]),
        name=plain(fields["name"]),
        branch=plain(fields["git_branch"] or ""),
        status=Status(fields["status"]),
        tool=plain(fields["last_tool"] or ""),
        todo=plain(fields["todo_progress"] or ""),
        error=plain(fields["error"] or ""),
        since=parse_time(fields["since"]),
        group=fields["group"],
        rank=fields["rank"],
        symbol=fields["symbol"],
        words=fields["status_words"],
        search=fields["search"],
    )


def parse_time(iso: str) -> float:
    """Return the Unix seconds of an ISO 8601 time as the daemon writes it."""
    return unix_time(iso) or 0.0


def select_plates(plates: Iterable[BoardPlate], wanted: str = "", closed: bool = False) -> list[BoardPlate]:
    """Return the plates to show, in the daemon's order.

    wanted: words that each must occur in a plate.
    closed: whether closed sessions are shown.
    """
    words = wanted.lower().split()
    found = [plate for plate in plates if closed or plate.status is not Status.CLOSED]
    return sorted((plate for plate in found if all(word in plate.search for word in words)), key=lambda one: one.rank)


def started_waiting(before: BoardPlate | None, after: BoardPlate) -> bool:
    """Return whether the session needs attention and did not before.

    before: None for a session that was not there.
    """
    return after.group == "attention" and (before is None or before.group != "attention")


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


class PlateEvent(NamedTuple):
    """An event of a session.

    at: Unix seconds.
    status: of the session after it, or None if the event changed nothing.
    symbol: how that status is shown, or "".
    """

    kind: str
    at: float
    tool: str
    about: str
    status: Status | None
    symbol: str


def read_event(fields: dict[str, Any]) -> PlateEvent:
    """Return an event from the daemon's JSON."""
    params = fields["tool_params"] or {}
    about = fields["error"] or ", ".join(str(value) for name, value in params.items() if not name.startswith("todos"))
    return PlateEvent(
        kind=plain(fields["event_type"]),
        at=fields["ts"] / 1000,
        tool=plain(fields["tool_name"] or ""),
        about=plain(about),
        status=Status(fields["status"]) if fields["status"] else None,
        symbol=fields["symbol"],
    )


class PlateDetails(NamedTuple):
    """A plate, its last events, oldest first, and the agent's last message."""

    plate: BoardPlate
    events: list[PlateEvent]
    last_message: str


def read_details(fields: dict[str, Any]) -> PlateDetails:
    """Return a plate's details from the daemon's JSON."""
    words = plain_lines((fields["last_message"] or "").strip().expandtabs(4))
    return PlateDetails(read_plate(fields), [read_event(event) for event in fields["events"]], words)


# ---- the timeline ------------------------------------------------------------


class Piece(NamedTuple):
    """A time in which a session did one thing.

    start, end: Unix seconds.
    tool: the tool that ran, or "".
    """

    start: float
    end: float
    status: Status
    tool: str = ""


def timeline(events: Sequence[PlateEvent], now: float) -> list[Piece]:
    """Return what a session did when: pieces without gaps between them, until now or until its end."""
    marks: list[Piece] = []
    for event in events:
        if event.status is None:
            continue
        tool = event.tool if event.kind == EventKind.TOOL_START.value and event.status is Status.RUNNING else ""
        at = max(event.at, marks[-1].start) if marks else event.at
        if marks and marks[-1][2:] == (event.status, tool):
            continue
        marks.append(Piece(at, at, event.status, tool))
    if not marks:
        return []
    ends = [*(mark.start for mark in marks[1:]), max(now, marks[-1].start)]
    pieces = [mark._replace(end=end) for mark, end in zip(marks, ends, strict=True) if end > mark.start]
    if pieces and pieces[-1].status is Status.CLOSED:
        pieces.pop()
    return pieces


def assign_columns(pieces: Sequence[Piece], width: int) -> list[int]:
    """Return for each of `width` columns the index of the piece that is drawn there.

    Work is drawn to scale. A wait is at most half as wide as all work together: otherwise a night would leave one
    column for a day's work. If several pieces share a column, one that waits for a person is drawn.
    """
    work = sum(piece.end - piece.start for piece in pieces if piece.status is Status.RUNNING)
    longest = work / 2 or float("inf")
    sizes = [
        piece.end - piece.start if piece.status is Status.RUNNING else min(piece.end - piece.start, longest)
        for piece in pieces
    ]
    column = sum(sizes) / width if width > 0 else 0.0
    columns: list[int] = []
    first, start = 0, 0.0  # the first piece that reaches into the column, and where that begins
    for number in range(width if column else 0):
        left, right = number * column, (number + 1) * column
        while first < len(sizes) - 1 and start + sizes[first] <= left:
            start += sizes[first]
            first += 1
        best, most, begin = first, (False, -1.0), start
        for index in range(first, len(sizes)):
            if begin >= right:
                break
            share = min(right, begin + sizes[index]) - max(left, begin)
            weight = (pieces[index].status in ATTENTION, share)
            if weight > most:
                best, most = index, weight
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


def list_labels(piece: Piece) -> "tuple[str, ...]":
    """Return the texts that fit a piece, longest first: the tool, or what the person has to do and for how long."""
    if piece.status is Status.RUNNING:
        return (piece.tool,)
    lasted = format_age(piece.end - piece.start)
    return f"{TASKS.get(piece.status, STATUSES[piece.status].words)} {lasted}", lasted


def sum_by_status(pieces: Iterable[Piece]) -> dict[Status, float]:
    """Return the seconds in each status, in the order in which statuses are declared."""
    sums = dict.fromkeys(Status, 0.0)
    for piece in pieces:
        sums[piece.status] += piece.end - piece.start
    return {status: seconds for status, seconds in sums.items() if seconds}
