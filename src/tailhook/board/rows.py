"""Draws plates, details and the timeline as styled text of a given width.

All text is `rich.text.Text`: markup in it has no effect.
"""

import time
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from tailhook.board.view import (
    Bar,
    Piece,
    format_age,
    is_on_board,
    lay_out_bars,
    list_labels,
    plate_age,
    status_words,
    sum_by_status,
)
from tailhook.hook.answer import plain
from tailhook.machines.plates import Status
from tailhook.plates.fields import DetailsOut, EventOut, PlateOut, StatusOut, Tone

DIM = "#8a8f98"
TONE_COLOURS: dict[Tone, str] = {
    "attention": "#f5c242",
    "error": "#ff6b6b",
    "running": "#4cc38a",
    "idle": "#7aa2f7",
    "muted": DIM,
}
BRANCH = "#b48ead"
TOOL = "#88c0d0"
DARK = "#14161b"  # on the colour of a tone
THINKING = "#2b7a57"  # running without a tool
# Widths in columns.
MIN_WIDE_WIDTH = 72  # of a terminal; below it a plate has two lines
TODO_BAR_WIDTH = 6
AGE_WIDTH = 4
STATUS_WIDTH = 19
LANE_NAME_WIDTH = 7  # of the timeline


def fit(words: str, width: int) -> str:
    """Return `words` in exactly `width` columns; an ellipsis replaces the end if it does not fit."""
    if cell_len(words) > width:
        return set_cell_size(words, max(0, width - 1)) + "…"[:width]
    return set_cell_size(words, width)


def count_lines(width: int) -> int:
    """Return how many lines a plate has in a terminal of `width` columns."""
    return 2 if width < MIN_WIDE_WIDTH else 1


def draw_plate(plate: PlateOut, now: float, width: int, lines: int) -> list[Text]:
    """Return a plate's lines: one with columns, or two packed ones."""
    return [draw_wide(plate, now, width)] if lines == 1 else draw_narrow(plate, now, width)


def draw_wide(plate: PlateOut, now: float, width: int) -> Text:
    """Return a plate on one line."""
    colour = TONE_COLOURS[plate["tone"]]
    flexible = width - 2 - STATUS_WIDTH - TODO_BAR_WIDTH - 8 - AGE_WIDTH - 1
    project = flexible * 2 // 5
    branch = (flexible - project) // 2
    return Text.assemble(
        (f" {plate['symbol']} {fit(status_words(plate, now), STATUS_WIDTH - 1)}", colour),
        *draw_headline(plate, project - 1, " "),
        (fit(plate["git_branch"] or "", branch - 1) + " ", BRANCH),
        (fit(plate["detail"], flexible - project - branch - 1) + " ", style_of_detail(plate)),
        draw_todo(plate["todo_progress"] or ""),
        (f"{plate_age(plate, now):>{AGE_WIDTH}} ", DIM),
    )


def draw_narrow(plate: PlateOut, now: float, width: int) -> list[Text]:
    """Return a plate on two lines."""
    colour = TONE_COLOURS[plate["tone"]]
    last = f"{plate['todo_progress'] or ''} {plate_age(plate, now):>{AGE_WIDTH}} "
    first = Text.assemble(
        (f" {plate['symbol']}  ", colour),
        *draw_headline(plate, width - 4 - cell_len(last)),
        (last, DIM),
    )
    second = Text.assemble("    ", (status_words(plate, now), colour))
    for words, style in ((plate["git_branch"], BRANCH), (plate["detail"], style_of_detail(plate))):
        if words:
            second.append(" · ", DIM).append(words, style)
    second.truncate(max(0, width - 1), overflow="ellipsis")
    return [first, second]


def draw_headline(plate: PlateOut, width: int, end: str = "") -> list[tuple[str, str]]:
    """Return the project's name and the session's title in exactly `width` columns, each with its style.

    end: what follows.
    """
    name, title = plate["name"], plate["title"]
    if not title:
        return [(fit(name, width) + end, style_of_name(plate))]
    shown = min(cell_len(name) + 1, width)
    return [(fit(name, shown), style_of_name(plate)), (fit(title, width - shown) + end, "")]


def style_of_name(plate: PlateOut) -> str:
    """Return the style of a project's name."""
    return "bold" if is_on_board(plate) else "dim"


def style_of_detail(plate: PlateOut) -> str:
    """Return the style of the error or of the tool."""
    return TONE_COLOURS["error"] if plate["error"] else TOOL


def draw_todo(progress: str) -> Text:
    """Return a bar and the count of things to do, or blanks of the same width."""
    done, _, of = progress.partition("/")
    if not (done.isdecimal() and of.isdecimal() and int(of)):
        return Text(" " * (TODO_BAR_WIDTH + 8))
    filled = min(TODO_BAR_WIDTH, int(done) * TODO_BAR_WIDTH // int(of))
    return Text.assemble(
        ("━" * filled, TONE_COLOURS["running"]),
        ("━" * (TODO_BAR_WIDTH - filled), "#3b4048"),
        " ",
        (fit(progress, 7), DIM),
    )


def draw_help(keys: Iterable[tuple[str, str]], statuses: Iterable[StatusOut]) -> Table:
    """Return a table of keys and symbols.

    keys: each with its meaning.
    """
    grid = Table.grid(padding=(0, 2))
    for key, words in keys:
        grid.add_row(Text(key, "bold", no_wrap=True), Text(words))
    grid.add_row("", "")
    for status in statuses:
        grid.add_row(Text(status["symbol"], TONE_COLOURS[status["tone"]], no_wrap=True), Text(status["words"]))
    return grid


# ---- details -----------------------------------------------------------------


def draw_facts(details: DetailsOut, now: float) -> Text:
    """Return the facts about a plate, one on each line."""
    colour = TONE_COLOURS[details["tone"]]
    text = Text.assemble((f"{details['symbol']} {status_words(details, now)}", f"bold {colour}"))
    text.append(f" for {plate_age(details, now)}" if details["status"] is not Status.RUNNING else "", DIM)
    lines = (
        ("error", details["error"], TONE_COLOURS["error"]),
        ("asks", details["asks"], TONE_COLOURS["attention"]),
        ("title", details["title"], "bold"),
        ("project", details["project_path"], "bold"),
        ("folder", details["folder"], ""),
        ("branch", details["git_branch"], BRANCH),
        ("tool", details["last_tool"], TOOL),
        ("todo", details["todo_progress"], ""),
        ("session", plain(details["session_id"]), DIM),
    )
    for name, words, style in lines:
        if words:
            text.append(f"\n{name:<9}", DIM).append(words, style)
    return text


def draw_events(found: Sequence[EventOut]) -> Text:
    """Return the events, newest first."""
    text = Text("No events." if not found else "", no_wrap=True, overflow="ellipsis")
    for event in reversed(found):
        if len(text):
            text.append("\n")
        colour = TONE_COLOURS[event["tone"]]
        text.append(f"{format_clock(event['ts'] / 1000)} ", DIM).append(f"{event['symbol'] or ' '} ", colour)
        text.append(event["words"], colour)
        text.append(f"  {event['tool_name']}" if event["tool_name"] else "", TOOL)
        text.append(f"  {event['about']}" if event["about"] else "", DIM)
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
        mine, other = (agent, person) if bar.piece.period["lane"] == "agent" else (person, agent)
        mine.append(label_of(bar), f"{DARK} on {colour_of(bar.piece)}")
        other.append("·" * bar.width, "#3b4048")
    return Text("\n").join([agent, person, draw_times(found, now, width)])


def draw_sums(pieces: Sequence[Piece], statuses: Iterable[StatusOut]) -> Columns:
    """Return the time in each status, in as many columns as fit."""
    sums = sum_by_status(pieces)
    return Columns(
        [
            Text.assemble(
                (f"{status['symbol']} ", TONE_COLOURS[status["tone"]]),
                (f"{status['words']} {format_age(sums[status['status']])}", DIM),
            )
            for status in statuses
            if status["status"] in sums
        ],
        padding=(0, 3),
    )


def label_of(bar: Bar) -> str:
    """Return the longest label that fits a bar, padded to the bar's width."""
    fitting = (f" {label}" for label in list_labels(bar.piece) if cell_len(label) + 2 <= bar.width)
    return set_cell_size(next(fitting, ""), bar.width)


def colour_of(piece: Piece) -> str:
    """Return the colour of a piece of the timeline. An agent that runs no tool is thinking."""
    if piece.period["status"] is Status.RUNNING and not piece.period["tool"]:
        return THINKING
    return TONE_COLOURS[piece.period["tone"]]


def draw_times(found: Sequence[Bar], now: float, width: int) -> Text:
    """Return the line below the lanes: the times of the bars' beginnings, if there is room, and of the end."""
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
