"""How plates, details and the timeline are written, as styled text of a given width.

Everything is a `rich.text.Text`, whose words are never read as markup.
"""

import time
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from tailhook.board.view import (
    COLOURS,
    SYMBOLS,
    Details,
    Event,
    Piece,
    Plate,
    Run,
    age,
    labels,
    runs,
    status_words,
    totals,
)
from tailhook.hook.answer import plain
from tailhook.machines.plates import Status

DIM = "#8a8f98"
BRANCH = "#b48ead"
TOOL = "#88c0d0"
DARK = "#14161b"  # on a status's colour
THINKING = "#2b7a57"  # running without a tool
NARROW = 72  # columns; below it a plate has two lines
TODO_BAR = 6  # columns
AGE = 4
STATUS = 19
LANES = 7  # columns, for the names of the timeline's lanes

SIGNS = [(SYMBOLS[status], status_words(status), COLOURS[status]) for status in SYMBOLS]


def fit(words: str, width: int) -> str:
    """`words` in exactly so many columns, an ellipsis in place of what is too much."""
    if cell_len(words) > width:
        return set_cell_size(words, max(0, width - 1)) + "…"[:width]
    return set_cell_size(words, width)


def height(width: int) -> int:
    """How many lines a plate has in a terminal of so many columns."""
    return 2 if width < NARROW else 1


def row(plate: Plate, name: str, now: float, width: int, lines: int) -> list[Text]:
    """A plate's lines: one with everything below each other, or two that are packed."""
    return [wide(plate, name, now, width)] if lines == 1 else narrow(plate, name, now, width)


def wide(plate: Plate, name: str, now: float, width: int) -> Text:
    """A plate on one line."""
    colour = COLOURS[plate.status]
    flexible = width - 2 - STATUS - TODO_BAR - 8 - AGE - 1
    project = flexible * 2 // 5
    branch = (flexible - project) // 2
    return Text.assemble(
        (f" {SYMBOLS[plate.status]} {fit(status_words(plate.status), STATUS - 1)}", colour),
        (fit(name, project - 1) + " ", name_style(plate)),
        (fit(plate.branch, branch - 1) + " ", BRANCH),
        (fit(plate.error or plate.tool, flexible - project - branch - 1) + " ", colour if plate.error else TOOL),
        todo(plate.todo),
        (f"{age(now - plate.since):>{AGE}} ", DIM),
    )


def narrow(plate: Plate, name: str, now: float, width: int) -> list[Text]:
    """A plate on two lines."""
    colour = COLOURS[plate.status]
    last = f"{plate.todo} {age(now - plate.since):>{AGE}} "
    first = Text.assemble(
        (f" {SYMBOLS[plate.status]}  ", colour),
        (fit(name, width - 4 - cell_len(last)), name_style(plate)),
        (last, DIM),
    )
    second = Text.assemble("    ", (status_words(plate.status), colour))
    for words, style in ((plate.branch, BRANCH), (plate.error or plate.tool, colour if plate.error else TOOL)):
        if words:
            second.append(" · ", DIM).append(words, style)
    second.truncate(max(0, width - 1), overflow="ellipsis")
    return [first, second]


def name_style(plate: Plate) -> str:
    """How a project's name is written."""
    return "dim" if plate.status is Status.CLOSED else "bold"


def todo(progress: str) -> Text:
    """A bar and the count, in so many columns."""
    done, _, of = progress.partition("/")
    if not (done.isdecimal() and of.isdecimal() and int(of)):
        return Text(" " * (TODO_BAR + 8))
    filled = min(TODO_BAR, int(done) * TODO_BAR // int(of))
    return Text.assemble(
        ("━" * filled, COLOURS[Status.RUNNING]), ("━" * (TODO_BAR - filled), "#3b4048"), " ", (fit(progress, 7), DIM)
    )


def table(lines: Iterable[tuple[str, str, str]]) -> Table:
    """Names, what they mean, and the style of the name, below each other."""
    grid = Table.grid(padding=(0, 2))
    for name, words, style in lines:
        grid.add_row(Text(name, style, no_wrap=True), Text(words))
    return grid


# ---- details -----------------------------------------------------------------


def facts(details: Details, now: float) -> Text:
    """What is known of a plate, a line each."""
    plate = details.plate
    colour = COLOURS[plate.status]
    text = Text.assemble((f"{SYMBOLS[plate.status]} {status_words(plate.status)}", f"bold {colour}"))
    text.append(f" for {age(now - plate.since)}" if plate.status is not Status.RUNNING else "", DIM)
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


def events(found: Sequence[Event]) -> Text:
    """The events, newest first."""
    text = Text("No events." if not found else "", no_wrap=True, overflow="ellipsis")
    for event in reversed(found):
        if len(text):
            text.append("\n")
        colour = COLOURS[event.status] if event.status else DIM
        symbol = SYMBOLS[event.status] if event.status else " "
        text.append(f"{clock(event.at)} ", DIM).append(f"{symbol} ", colour)
        text.append(event.kind.replace("_", " "), colour)
        text.append(f"  {event.tool}" if event.tool else "", TOOL).append(
            f"  {event.about}" if event.about else "", DIM
        )
    return text


def clock(at: float, form: str = "%H:%M:%S") -> str:
    """The time of the day here."""
    return time.strftime(form, time.localtime(at))


# ---- the timeline ------------------------------------------------------------


def picture(pieces: Sequence[Piece], now: float, width: int) -> Text:
    """The timeline: the agent's lane, the person's, and the times."""
    if not pieces:
        return Text("Nothing to draw yet.", DIM)
    found = runs(pieces, width - LANES)
    if not found:
        return Text()
    agent, person = Text(f"{'agent':<{LANES}}", DIM), Text(f"{'you':<{LANES}}", DIM)
    for run in found:
        mine, other = (agent, person) if run.piece.status in (Status.RUNNING, Status.STARTING) else (person, agent)
        mine.append(written(run), f"{DARK} on {colour_of(run.piece)}")
        other.append("·" * run.width, "#3b4048")
    return Text("\n").join([agent, person, times(found, now, width)])


def sums(pieces: Sequence[Piece]) -> Columns:
    """What it came to: the time in each status, in as many columns as there is room for."""
    return Columns(
        [
            Text.assemble((f"{SYMBOLS[status]} ", COLOURS[status]), (f"{status_words(status)} {age(seconds)}", DIM))
            for status, seconds in totals(pieces).items()
        ],
        padding=(0, 3),
    )


def written(run: Run) -> str:
    """The longest label for which a piece has the room."""
    fitting = (f" {label}" for label in labels(run.piece) if cell_len(label) + 2 <= run.width)
    return set_cell_size(next(fitting, ""), run.width)


def colour_of(piece: Piece) -> str:
    """The colour of a piece of the timeline: an agent at work without a tool is thinking."""
    if piece.status is Status.RUNNING and not piece.tool:
        return THINKING
    return COLOURS[piece.status]


def times(found: Sequence[Run], now: float, width: int) -> Text:
    """The line below the lanes: when what is above began, where there is room, and the end."""
    end = found[-1].piece.end
    last = "now" if end >= now else clock(end, "%H:%M")
    line = [" "] * width
    free = LANES
    for run in found:
        left = LANES + run.left
        if free <= left <= width - len(last) - 7:
            line[left : left + 5] = clock(run.piece.start, "%H:%M")
            free = left + 7
    line[width - len(last) :] = last
    return Text("".join(line), DIM)
