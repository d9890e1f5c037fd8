"""Draws plates, details and the timeline as styled text of a given width.

All text is `rich.text.Text`, in which no markup is read.
"""

import time
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from tailhook.board.view import (
    STATUS_COLOURS,
    Bar,
    BoardPlate,
    Piece,
    PlateDetails,
    PlateEvent,
    format_age,
    lay_out_bars,
    list_labels,
    sum_by_status,
)
from tailhook.hook.answer import plain
from tailhook.machines.plates import Status
from tailhook.plates.display import STATUSES

DIM = "#8a8f98"
BRANCH = "#b48ead"
TOOL = "#88c0d0"
DARK = "#14161b"  # on a status's colour
THINKING = "#2b7a57"  # running without a tool
# Widths in columns.
MIN_WIDE_WIDTH = 72  # of a terminal in which a plate has one line
TODO_BAR_WIDTH = 6
AGE_WIDTH = 4
STATUS_WIDTH = 19
LANE_NAME_WIDTH = 7  # of the timeline

SYMBOLS = [(display.symbol, display.words, STATUS_COLOURS[status]) for status, display in STATUSES.items()]


def fit(words: str, width: int) -> str:
    """Return `words` in exactly `width` columns; an ellipsis replaces what does not fit."""
    if cell_len(words) > width:
        return set_cell_size(words, max(0, width - 1)) + "…"[:width]
    return set_cell_size(words, width)


def count_lines(width: int) -> int:
    """Return how many lines a plate has in a terminal of `width` columns."""
    return 2 if width < MIN_WIDE_WIDTH else 1


def draw_plate(plate: BoardPlate, now: float, width: int, lines: int) -> list[Text]:
    """Return a plate's lines: one with columns, or two packed ones."""
    return [draw_wide(plate, now, width)] if lines == 1 else draw_narrow(plate, now, width)


def draw_wide(plate: BoardPlate, now: float, width: int) -> Text:
    """Return a plate on one line."""
    colour = STATUS_COLOURS[plate.status]
    flexible = width - 2 - STATUS_WIDTH - TODO_BAR_WIDTH - 8 - AGE_WIDTH - 1
    project = flexible * 2 // 5
    branch = (flexible - project) // 2
    return Text.assemble(
        (f" {plate.symbol} {fit(plate.words, STATUS_WIDTH - 1)}", colour),
        (fit(plate.name, project - 1) + " ", style_of_name(plate)),
        (fit(plate.branch, branch - 1) + " ", BRANCH),
        (fit(plate.error or plate.tool, flexible - project - branch - 1) + " ", colour if plate.error else TOOL),
        draw_todo(plate.todo),
        (f"{format_age(now - plate.since):>{AGE_WIDTH}} ", DIM),
    )


def draw_narrow(plate: BoardPlate, now: float, width: int) -> list[Text]:
    """Return a plate on two lines."""
    colour = STATUS_COLOURS[plate.status]
    last = f"{plate.todo} {format_age(now - plate.since):>{AGE_WIDTH}} "
    first = Text.assemble(
        (f" {plate.symbol}  ", colour),
        (fit(plate.name, width - 4 - cell_len(last)), style_of_name(plate)),
        (last, DIM),
    )
    second = Text.assemble("    ", (plate.words, colour))
    for words, style in ((plate.branch, BRANCH), (plate.error or plate.tool, colour if plate.error else TOOL)):
        if words:
            second.append(" · ", DIM).append(words, style)
    second.truncate(max(0, width - 1), overflow="ellipsis")
    return [first, second]


def style_of_name(plate: BoardPlate) -> str:
    """Return the style of a project's name."""
    return "dim" if plate.status is Status.CLOSED else "bold"


def draw_todo(progress: str) -> Text:
    """Return a bar and the count of things to do, or blanks of the same width."""
    done, _, of = progress.partition("/")
    if not (done.isdecimal() and of.isdecimal() and int(of)):
        return Text(" " * (TODO_BAR_WIDTH + 8))
    filled = min(TODO_BAR_WIDTH, int(done) * TODO_BAR_WIDTH // int(of))
    return Text.assemble(
        ("━" * filled, STATUS_COLOURS[Status.RUNNING]),
        ("━" * (TODO_BAR_WIDTH - filled), "#3b4048"),
        " ",
        (fit(progress, 7), DIM),
    )


def draw_help(lines: Iterable[tuple[str, str, str]]) -> Table:
    """Return a table of keys or symbols.

    lines: the key, its meaning, and the key's style.
    """
    grid = Table.grid(padding=(0, 2))
    for name, words, style in lines:
        grid.add_row(Text(name, style, no_wrap=True), Text(words))
    return grid


# ---- details -----------------------------------------------------------------


def draw_facts(details: PlateDetails, now: float) -> Text:
    """Return what is known about a plate, one line for each fact."""
    plate = details.plate
    colour = STATUS_COLOURS[plate.status]
    text = Text.assemble((f"{plate.symbol} {plate.words}", f"bold {colour}"))
    text.append(f" for {format_age(now - plate.since)}" if plate.status is not Status.RUNNING else "", DIM)
    lines = (
        ("error", plate.error, colour),
        ("project", plate.path, "bold"),
        ("branch", plate.branch, BRANCH),
        ("tool", plate.tool, TOOL),
        ("todo", plate.todo, ""),
        ("session", plain(plate.session_id), DIM),
    )
    for name, words, style in lines:
        if words:
            text.append(f"\n{name:<9}", DIM).append(words, style)
    return text


def draw_events(found: Sequence[PlateEvent]) -> Text:
    """Return the events, newest first."""
    text = Text("No events." if not found else "", no_wrap=True, overflow="ellipsis")
    for event in reversed(found):
        if len(text):
            text.append("\n")
        colour = STATUS_COLOURS[event.status] if event.status else DIM
        symbol = event.symbol or " "
        text.append(f"{format_clock(event.at)} ", DIM).append(f"{symbol} ", colour)
        text.append(event.kind.replace("_", " "), colour)
        text.append(f"  {event.tool}" if event.tool else "", TOOL).append(
            f"  {event.about}" if event.about else "", DIM
        )
    return text


def format_clock(at: float, form: str = "%H:%M:%S") -> str:
    """Return a time of day in the local time zone.

    at: Unix seconds.
    """
    return time.strftime(form, time.localtime(at))


# ---- the timeline ------------------------------------------------------------


def draw_timeline(pieces: Sequence[Piece], now: float, width: int) -> Text:
    """Return the timeline: the agent's lane, the person's lane, and the times."""
    if not pieces:
        return Text("Nothing to draw yet.", DIM)
    found = lay_out_bars(pieces, width - LANE_NAME_WIDTH)
    if not found:
        return Text()
    agent, person = Text(f"{'agent':<{LANE_NAME_WIDTH}}", DIM), Text(f"{'you':<{LANE_NAME_WIDTH}}", DIM)
    for bar in found:
        mine, other = (agent, person) if bar.piece.status in (Status.RUNNING, Status.STARTING) else (person, agent)
        mine.append(label_of(bar), f"{DARK} on {colour_of(bar.piece)}")
        other.append("·" * bar.width, "#3b4048")
    return Text("\n").join([agent, person, draw_times(found, now, width)])


def draw_sums(pieces: Sequence[Piece]) -> Columns:
    """Return the time in each status, in as many columns as there is room for."""
    return Columns(
        [
            Text.assemble(
                (f"{STATUSES[status].symbol} ", STATUS_COLOURS[status]),
                (f"{STATUSES[status].words} {format_age(seconds)}", DIM),
            )
            for status, seconds in sum_by_status(pieces).items()
        ],
        padding=(0, 3),
    )


def label_of(bar: Bar) -> str:
    """Return the longest label that fits a bar, padded to the bar's width."""
    fitting = (f" {label}" for label in list_labels(bar.piece) if cell_len(label) + 2 <= bar.width)
    return set_cell_size(next(fitting, ""), bar.width)


def colour_of(piece: Piece) -> str:
    """Return the colour of a piece of the timeline. An agent that runs no tool is thinking."""
    if piece.status is Status.RUNNING and not piece.tool:
        return THINKING
    return STATUS_COLOURS[piece.status]


def draw_times(found: Sequence[Bar], now: float, width: int) -> Text:
    """Return the line below the lanes: when the bars above it began, if there is room, and the end."""
    end = found[-1].piece.end
    last = "now" if end >= now else format_clock(end, "%H:%M")
    line = [" "] * width
    free = LANE_NAME_WIDTH
    for bar in found:
        left = LANE_NAME_WIDTH + bar.left
        if free <= left <= width - len(last) - 7:
            line[left : left + 5] = format_clock(bar.piece.start, "%H:%M")
            free = left + 7
    line[width - len(last) :] = last
    return Text("".join(line), DIM)
