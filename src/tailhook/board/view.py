"""What a board shows of the daemon's plates: their order, their words, and the timeline.  Pure: no I/O, no clock.

Everything here that came from a session is on one line and free of control characters.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from tailhook.hook.answer import plain, plain_lines
from tailhook.machines.plates import ATTENTION, Kind, Status

SYMBOLS = {
    Status.AWAITING_INPUT: "?",
    Status.AWAITING_APPROVAL: "!",
    Status.ERROR: "✗",
    Status.RUNNING: "●",
    Status.STARTING: "◌",
    Status.IDLE: "○",
    Status.CLOSED: "·",
}
COLOURS = {
    Status.AWAITING_INPUT: "#f5c242",
    Status.AWAITING_APPROVAL: "#ff9f43",
    Status.ERROR: "#ff6b6b",
    Status.RUNNING: "#4cc38a",
    Status.STARTING: "#56b6c2",
    Status.IDLE: "#7aa2f7",
    Status.CLOSED: "#8a8f98",
}
GROUPS = ("Needs attention", "Running", "The rest")
YOURS = {Status.AWAITING_INPUT: "answer", Status.AWAITING_APPROVAL: "approve"}  # what a person is to do
MINUTE, HOUR, DAY = 60, 3600, 86400


# ---- plates ------------------------------------------------------------------


class Plate(NamedTuple):
    """A session.

    session_id: as the daemon knows it. It may hold characters that steer a terminal.
    created: when its first event came, in Unix seconds.
    since: when its status last changed, in Unix seconds.
    """

    session_id: str
    path: str
    name: str
    branch: str
    status: Status
    tool: str
    todo: str
    error: str
    created: float
    since: float


def read_plate(fields: dict[str, Any]) -> Plate:
    """A plate as the daemon tells it."""
    path = plain(fields["project_path"])
    return Plate(
        session_id=fields["session_id"],
        path=path,
        name=PurePosixPath(path).name or path,
        branch=plain(fields["git_branch"] or ""),
        status=Status(fields["status"]),
        tool=plain(fields["last_tool"] or ""),
        todo=plain(fields["todo_progress"] or ""),
        error=plain(fields["error"] or ""),
        created=unix_time(fields["created_at"]),
        since=unix_time(fields["since"]),
    )


def unix_time(iso: str) -> float:
    """ISO 8601 as the daemon writes it, as Unix seconds."""
    return datetime.fromisoformat(iso.replace("Z", "+00:00")).timestamp()


def group_of(plate: Plate) -> int:
    """Which of GROUPS the plate is in."""
    if plate.status in ATTENTION:
        return 0
    return 1 if plate.status is Status.RUNNING else 2


def ordered(plates: Iterable[Plate], wanted: str = "", closed: bool = False) -> list[Plate]:
    """Return the plates to be shown, in their order.

    First come the sessions that need attention, the one that has waited longest first. Running ones keep their places
    whatever they do, by project and age. Of the rest, the one whose status changed last comes first.

    wanted: words that each must occur in a plate.
    """
    words = wanted.casefold().split()
    shown = [plate for plate in plates if (closed or plate.status is not Status.CLOSED) and matches(plate, words)]
    return sorted(shown, key=place)


def place(plate: Plate) -> "tuple[int, float, str, float, str]":
    """Return what a plate is sorted by."""
    group = group_of(plate)
    since = (plate.since, 0.0, -plate.since)[group]
    name = plate.name if group == 1 else ""
    return group, since, name, plate.created, plate.session_id


def matches(plate: Plate, words: Iterable[str]) -> bool:
    """Whether each of the words, in small letters, occurs in the plate."""
    text = f"{plate.path} {plate.branch} {status_words(plate.status)} {plate.tool} {plate.session_id}".casefold()
    return all(word in text for word in words)


def names(plates: Iterable[Plate]) -> dict[str, str]:
    """What each project is called, by its path: its folder's name, with its parent's where two are called the same."""
    paths: dict[str, set[str]] = {}
    for plate in plates:
        paths.setdefault(plate.name, set()).add(plate.path)
    return {
        path: name if len(same) == 1 else "/".join(PurePosixPath(path).parts[-2:])
        for name, same in paths.items()
        for path in same
    }


def calls(before: Plate | None, after: Plate) -> bool:
    """Whether the session needs attention, and did not until now.  before: None for one that appears."""
    return after.status in ATTENTION and (before is None or before.status not in ATTENTION)


def status_words(status: Status) -> str:
    """A status for people."""
    return status.value.replace("_", " ")


def age(seconds: float) -> str:
    """How long something took or is ago, in its largest unit.

    >>> age(7), age(61), age(7300), age(-1)
    ('7s', '1m', '2h', '0s')
    """
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if seconds >= unit:
            return f"{int(seconds // unit)}{letter}"
    return f"{max(0, int(seconds))}s"


# ---- details -----------------------------------------------------------------


class Event(NamedTuple):
    """Something that happened to a session.  at: Unix seconds.  status: after it, None where it changed nothing."""

    kind: str
    at: float
    tool: str
    about: str
    status: Status | None


def read_event(fields: dict[str, Any]) -> Event:
    """An event as the daemon tells it."""
    params = fields["tool_params"] or {}
    about = fields["error"] or ", ".join(str(value) for name, value in params.items() if not name.startswith("todos"))
    return Event(
        kind=plain(fields["event_type"]),
        at=fields["ts"] / 1000,
        tool=plain(fields["tool_name"] or ""),
        about=plain(about),
        status=Status(fields["status"]) if fields["status"] else None,
    )


class Details(NamedTuple):
    """A plate, its last events, oldest first, and the agent's last words."""

    plate: Plate
    events: list[Event]
    last_message: str


def read_details(fields: dict[str, Any]) -> Details:
    """The details as the daemon tells them."""
    words = plain_lines((fields["last_message"] or "").strip().expandtabs(4))
    return Details(read_plate(fields), [read_event(event) for event in fields["events"]], words)


# ---- the timeline ------------------------------------------------------------


class Piece(NamedTuple):
    """A time in which one thing went on.  start, end: Unix seconds.  tool: that ran, empty for none."""

    start: float
    end: float
    status: Status
    tool: str = ""


def timeline(events: Sequence[Event], now: float) -> list[Piece]:
    """What a session was doing when: pieces without a gap between them, up to now or to its end."""
    marks: list[Piece] = []
    for event in events:
        if event.status is None:
            continue
        tool = event.tool if event.kind == Kind.TOOL_START.value and event.status is Status.RUNNING else ""
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


def drawn(pieces: Sequence[Piece], width: int) -> list[int]:
    """For each of `width` columns, the piece that is drawn there.

    Work is drawn to scale; a wait is drawn half as wide as all work at the most, so that a night does not leave a day's
    work in one column. Where pieces share a column, the one that waits for a person is seen.
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


class Run(NamedTuple):
    """Columns next to each other in which the same piece is drawn."""

    left: int
    width: int
    piece: Piece


def runs(pieces: Sequence[Piece], width: int) -> list[Run]:
    """The timeline, laid out in `width` columns."""
    found: list[Run] = []
    left = 0
    for index, same in groupby(drawn(pieces, width)):
        size = len(list(same))
        found.append(Run(left, size, pieces[index]))
        left += size
    return found


def labels(piece: Piece) -> "tuple[str, ...]":
    """What can be written on a piece, the longest first: the tool, or what a person is to do, and for how long."""
    if piece.status is Status.RUNNING:
        return (piece.tool,)
    lasted = age(piece.end - piece.start)
    return f"{YOURS.get(piece.status, status_words(piece.status))} {lasted}", lasted


def totals(pieces: Iterable[Piece]) -> dict[Status, float]:
    """Seconds in each status, in the order in which statuses are declared."""
    sums = dict.fromkeys(Status, 0.0)
    for piece in pieces:
        sums[piece.status] += piece.end - piece.start
    return {status: seconds for status, seconds in sums.items() if seconds}
