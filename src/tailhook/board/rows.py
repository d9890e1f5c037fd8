"""Draws plates, details and the timeline as styled text of a given width.

All text is `rich.text.Text`: markup in it has no effect.
"""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from tailhook.board.view import (
    Bar,
    Piece,
    format_age,
    is_on_board,
    lay_out_bars,
    lay_out_lane,
    list_labels,
    parse_time,
    plate_age,
    row_age,
    status_words,
    sum_by_status,
    time_columns,
)
from tailhook.hook.answer import plain
from tailhook.machines.plates import COMMAND_TOOLS, Status
from tailhook.plates.fields import DetailsOut, EventOut, PeriodOut, PlateOut, StatusOut, Tone, ToolOut

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
GAP = "#3b4048"
THINKING = "#2b7a57"  # running without a tool
# Widths in columns.
MIN_WIDE_WIDTH = 60  # of a terminal; below it what a session does stands on a second line
MIN_BRANCH_WIDTH = 120  # of a terminal; below it a line that shows what a session does has no branch
MIN_NAME_WIDTH, MAX_NAME_WIDTH = 14, 22  # of the column of the projects
BRANCH_WIDTH = 24  # at most
TODO_BAR_WIDTH = 6
TODO_WIDTH = TODO_BAR_WIDTH + 9
AGE_WIDTH = 5
AGO_WORD = " ago"
ROW_INDENT = 3  # the sign, and the lines below it
MAX_ASK_LINES = 3  # that show what a session asks
LANE_NAME_WIDTH = 7  # of the timeline


def fit(words: str, width: int) -> str:
    """Return `words` in exactly `width` columns; an ellipsis replaces the end if it does not fit."""
    if cell_len(words) > width:
        return set_cell_size(words, max(0, width - 1)) + "…"[:width]
    return set_cell_size(words, width)


def draw_heading(title: str, count: int, more: str, colour: str, folds: bool = False) -> Text:
    """Return the heading of a section, with the number of its plates.

    more: what follows.
    folds: whether the plates are folded into it.
    """
    text = Text(f" {title.upper()} ", f"bold {colour}").append(f"{count}{' ▸' if folds else ''}", DIM)
    return text.append(f"   {more}", f"bold {DIM}") if more else text


def count_lines(plate: PlateOut, width: int) -> int:
    """Return how many lines a plate has at least in a terminal of `width` columns."""
    if plate["group"] == "working":
        return 2 if width < MIN_WIDE_WIDTH else 1
    return 1 if plate["group"] == "rest" else 2


def count_ask_lines(plate: PlateOut, now: float, width: int) -> int:
    """Return how many lines show all that a session asks, at most MAX_ASK_LINES."""
    return sum(map(bool, wrap_activity(plate, now, width, MAX_ASK_LINES))) or 1


class Needs(NamedTuple):
    """What the shown rows of one line need. Room that a column does not need goes to the other columns.

    progress: whether one of them has progress or tokens.
    branch, headline: the columns of the longest one.
    """

    progress: bool
    branch: int
    headline: int


NO_NEEDS = Needs(progress=False, branch=0, headline=0)


def find_needs(plates: Iterable[PlateOut]) -> Needs:
    """Return what these plates need. All of them have one line."""
    shown = list(plates)
    return Needs(
        progress=any(has_words(draw_progress_or_tokens(plate)) for plate in shown),
        branch=max((draw_branch(plate).cell_len for plate in shown), default=0),
        headline=max((cell_len(headline_of(plate)) for plate in shown), default=0),
    )


def draw_age(plate: PlateOut, now: float, width: int) -> Text:
    """Return a plate's age. If the row also shows how long its session has worked, AGO_WORD marks the age."""
    ago = AGO_WORD if width >= MIN_WIDE_WIDTH and is_worked_shown(plate) else ""
    return Text(f"{row_age(plate, now):>{AGE_WIDTH}}{ago} ", DIM)


def has_words(text: Text) -> bool:
    """Return whether a text has more than blanks."""
    return bool(text.plain.strip())


def draw_plate(plate: PlateOut, now: float, width: int, count: int = 0, needs: Needs = NO_NEEDS) -> list[Text]:
    """Return a plate's lines, each exactly `width` columns wide.

    count: of the lines; at least `count_lines`.
    needs: of all plates of one line, if this is one.
    """
    below = max(count, count_lines(plate, width)) - 1
    line = Text.assemble((f" {plate['symbol']} ", TONE_COLOURS[plate["tone"]]))
    age = draw_age(plate, now, width)
    mark = draw_progress_or_tokens(plate) if width >= MIN_WIDE_WIDTH else Text()
    room = max(0, width - ROW_INDENT - mark.cell_len - age.cell_len)
    name = min(MAX_NAME_WIDTH, max(MIN_NAME_WIDTH, room // 4), room)
    if width < MIN_WIDE_WIDTH:
        name = min(cell_len(plate["name"]) + 1, room // 2)
    line.append(fit(plate["name"], max(0, name - 1)) + " "[:name], style_of_name(plate))
    room -= name
    spare = 0
    if not (has_words(mark) if below else needs.progress):
        spare, mark = mark.cell_len, Text()
    if below:
        line.append(fit(headline_of(plate), room + spare))
    else:
        branch = BRANCH_WIDTH if width >= MIN_BRANCH_WIDTH else 0
        headline = (room - branch) * 9 // 20
        activity = room - branch - headline
        if branch:
            needed = min(branch, needs.branch + 1) if needs.branch else 0
            spare, branch = spare + branch - needed, needed
        headline, left = min(headline + spare, needs.headline + 1), headline + spare
        activity += left - headline
        line.append(fit(headline_of(plate), max(0, headline - 1)) + " "[:headline])
        shown = add_figures(describe_activity(plate, now, activity), plate, activity, width)
        line.append_text(fit_text(shown, activity))
        if branch:
            line.append(" ").append_text(fit_text(draw_branch(plate), branch - 1))
    line.append_text(mark).append_text(age)
    return [fit_text(line, width), *(draw_below(plate, now, width, below) if below else ())]


def draw_below(plate: PlateOut, now: float, width: int, count: int) -> list[Text]:
    """Return the other lines of a plate: what its session asks, does or did last, and the branch if there is room."""
    lines = wrap_activity(plate, now, width, count)
    branch = draw_branch(plate)
    room = width - ROW_INDENT - 1 - branch.cell_len
    if len(lines) == 1:
        add_figures(lines[0], plate, room - 2, width)
    if lines[-1].cell_len + 2 <= room:
        lines[-1] = fit_text(lines[-1], room).append_text(branch)
    return [fit_text(Text(" " * ROW_INDENT).append_text(line), width) for line in lines]


def draw_branch(plate: PlateOut) -> Text:
    """Return the branch of a session. A word before it sets it apart from the command on its line."""
    branch = plate["git_branch"]
    return Text.assemble(("on ", DIM), (cut_right(branch, BRANCH_WIDTH), BRANCH)) if branch else Text()


def wrap_activity(plate: PlateOut, now: float, width: int, count: int) -> list[Text]:
    """Return what a session asks, does or did last in `count` lines of a plate. The last ones may be empty."""
    room = max(1, width - ROW_INDENT - 1)
    text = describe_activity(plate, now, room * count)
    lines = []
    for _ in range(count - 1):
        first, text = break_text(text, room)
        lines.append(first)
    text.truncate(room, overflow="ellipsis")
    return [*lines, text]


def break_text(text: Text, width: int) -> tuple[Text, Text]:
    """Return the beginning of a text that fits, and the rest.

    The text breaks between two choices if that leaves no more than half of the line empty, otherwise at a blank. A word
    that is longer than a line breaks anywhere.
    """
    if text.cell_len <= width:
        return text, Text()
    words = text.plain
    end = len(chop_cells(words, width)[0])
    at = words.rfind("  ", 0, end + 2)
    if at <= end // 2:
        at = words.rfind(" ", 0, end + 1)
    if at < 0 or cell_len(words[at:].strip().partition(" ")[0]) > width:
        at = end
    rest = words[at:].lstrip()
    return text[:at], text[len(words) - len(rest) :]


def add_figures(text: Text, plate: PlateOut, room: int, width: int) -> Text:
    """Add to an activity how full the session's context is, and its tokens, as far as they fit. Return the activity.

    The tokens are left out if they stand in the place of the progress.

    width: of the terminal.
    """
    context = f"{plate['context_used']} context" if plate["context_used"] and plate["group"] != "rest" else ""
    tokens = tokens_of(plate) if width < MIN_WIDE_WIDTH or draw_progress(plate) else ""
    for words in filter(None, (context, tokens)):
        if text.cell_len + len(words) + 3 > room:
            break
        text.append(f"{' · ' if text else ''}{words}", DIM)
    return text


def tokens_of(plate: PlateOut) -> str:
    """Return how many tokens a session has used, "" if that is not known or the session rests."""
    return f"{plate['tokens_used']} tokens" if plate["tokens_used"] and plate["group"] != "rest" else ""


def fit_text(text: Text, width: int) -> Text:
    """Return a styled text in exactly `width` columns, like `fit`."""
    text.truncate(max(0, width), overflow="ellipsis", pad=True)
    return text


def headline_of(plate: PlateOut) -> str:
    """Return what distinguishes a session from others of its project: its headline, otherwise its branch."""
    return plate["headline"] or plate["git_branch"] or ""


def describe_activity(plate: PlateOut, now: float, room: int) -> Text:
    """Return what a session asks, does or did last, or since when nothing has come from it.

    now: Unix seconds.
    room: the columns in which it should fit. A path loses its beginning, a question its end. Up to a third of the room
        is kept for its choices.
    """
    activity = plate["activity"]
    text = Text(no_wrap=True)
    if plate["hidden"] or plate["status"] is Status.CLOSED:
        return text.append("hidden" if plate["hidden"] else "closed", DIM)
    if plate["quiet_since"] and plate["group"] == "stuck":
        at = format_clock(parse_time(plate["quiet_since"]), "%H:%M")
        text.append(f"quiet since {at}{' in' if activity['tool'] else ','}", TONE_COLOURS["error"])
    elif plate["silent_since"]:
        text.append(status_words(plate, now), DIM)
    text_style = TONE_COLOURS["error"] if plate["status"] is Status.ERROR else TOOL if activity["is_code"] else ""
    shown = "" if activity["words"] == "asks" and activity["text"] else activity["words"]  # the sign shows it
    for words, style in ((shown, DIM), (activity["tool"], TOOL)):
        if words:
            text.append(" " if len(text) else "").append(words, style)
    is_path = activity["is_code"] and activity["tool"] not in ("", *COMMAND_TOOLS)
    choices = Text()
    for number, choice in enumerate(activity["choices"], 1):
        choices.append(f"  {number})", f"bold {TONE_COLOURS['attention']}").append(f" {choice}")
    agents = f"{plate['agents']} sub-agent{'s' if plate['agents'] > 1 else ''}" if plate["agents"] else ""
    if agents and (text or activity["text"] or choices):
        agents = f" · {agents}"
    left = room - text.cell_len - bool(text) - cell_len(agents) - min(choices.cell_len, room // 3)
    if activity["text"]:
        words = (cut_left if is_path else cut_right)(activity["text"], left)
        text.append(" " if len(text) else "").append(words, text_style)
    text.append_text(choices)
    if agents:
        text.truncate(max(0, room - cell_len(agents)), overflow="ellipsis")
    return text.append(agents, DIM)


def cut_right(words: str, width: int) -> str:
    """Return `words` in at most `width` columns; an ellipsis replaces the end if it does not fit."""
    return fit(words, min(cell_len(words), width))


def cut_left(path: str, width: int) -> str:
    """Return a path in at most `width` columns; an ellipsis replaces its beginning, as its end distinguishes files.

    >>> cut_left("src/tailhook/board/rows.py", 14)
    '…board/rows.py'
    """
    if cell_len(path) <= width:
        return path
    while path and cell_len(path) > width - 1:
        path = path[1:]
    return f"…{path}"[: max(0, width)]


def draw_progress_or_tokens(plate: PlateOut) -> Text:
    """Return the progress of a session, otherwise how many tokens it has used, in the same width for all."""
    return Text(" ").append_text(draw_progress(plate) or Text(f"{tokens_of(plate):>{TODO_WIDTH}}", DIM))


def draw_progress(plate: PlateOut) -> Text:
    """Return how long a finished session has worked, otherwise the progress of its to-do list, if it has one."""
    if is_worked_shown(plate):
        lasted = parse_time(plate["turn_until"] or "") - parse_time(plate["turn_since"] or "")
        return Text(fit(f"worked {format_age(lasted)}", TODO_WIDTH - len(AGO_WORD)), DIM)
    return draw_todo(plate["todo_progress"] or "")


def is_worked_shown(plate: PlateOut) -> bool:
    """Return whether a row shows how long its finished session has worked."""
    return plate["group"] == "finished" and bool(plate["turn_since"] and plate["turn_until"])


def style_of_name(plate: PlateOut) -> str:
    """Return the style of a project's name."""
    return "bold" if is_on_board(plate) else "dim"


def draw_todo(progress: str) -> Text:
    """Return the count of things to do and a bar, or nothing if there is none."""
    done, _, of = progress.partition("/")
    if not (done.isdecimal() and of.isdecimal() and int(of)):
        return Text()
    filled = min(TODO_BAR_WIDTH, int(done) * TODO_BAR_WIDTH // int(of))
    return Text.assemble(
        (fit(f"{done} of {of}".rjust(8), 8) + " ", DIM),
        ("▰" * filled, TONE_COLOURS["running"]),
        ("▱" * (TODO_BAR_WIDTH - filled), "#5a616b"),
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
        ("title", details["title"], "bold"),
        ("prompt", details["prompt"], ""),
        ("project", details["project_path"], "bold"),
        ("folder", details["folder"], ""),
        ("branch", details["git_branch"], BRANCH),
        ("tool", details["last_tool"], TOOL),
        ("todo", details["todo_progress"], ""),
        ("context", details["context"] and details["context"]["words"], ""),
        ("tokens", details["tokens"] and details["tokens"]["words"], ""),
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


def draw_timeline(pieces: Sequence[Piece], now: float, width: int, lanes: Sequence[Sequence[PeriodOut]] = ()) -> Text:
    """Return the timeline: the agent's lane, those of its sub-agents, the person's lane, and the times.

    lanes: of the sub-agents.
    """
    if not pieces:
        return Text("Nothing to draw yet.", DIM)
    found = lay_out_bars(pieces, width - LANE_NAME_WIDTH)
    if not found:
        return Text()
    agent, person = Text(f"{'agent':<{LANE_NAME_WIDTH}}", DIM), Text(f"{'you':<{LANE_NAME_WIDTH}}", DIM)
    for bar in found:
        mine, other = (agent, person) if bar.piece.period["lane"] == "agent" else (person, agent)
        mine.append(label_of(bar), f"{DARK} on {colour_of(bar.piece)}")
        other.append("·" * bar.width, GAP)
    times = time_columns(pieces, width - LANE_NAME_WIDTH) if lanes else []
    below = [draw_lane(lay_out_lane(lane, times, now)) for lane in lanes]
    return Text("\n").join([agent, *below, person, draw_times(found, now, width)])


def draw_lane(bars: Iterable[Bar | int]) -> Text:
    """Return the lane of sub-agents.

    bars: a number is the width of a gap.
    """
    text = Text(f"{'└ sub':<{LANE_NAME_WIDTH}}", DIM)
    for bar in bars:
        if isinstance(bar, int):
            text.append("·" * bar, GAP)
        else:
            text.append(label_of(bar), f"{DARK} on {colour_of(bar.piece)}")
    return text


def draw_tools(found: Sequence[ToolOut], now: float) -> Text:
    """Return the uses of tools, newest first: when each began, how long it took, and its error.

    now: Unix seconds.
    """
    text = Text("No tools." if not found else "", no_wrap=True, overflow="ellipsis")
    for number, tool in enumerate(found):
        lasted = (now if tool["end"] is None else tool["end"] / 1000) - tool["start"] / 1000
        sign, colour = ("✗", TONE_COLOURS["error"]) if tool["error"] else ("✓", DIM)
        if tool["end"] is None:
            sign, colour = "●", TONE_COLOURS["running"]
        text.append("\n" if number else "").append(f"{format_clock(tool['start'] / 1000)} ", DIM)
        text.append(f"{sign} ", colour).append(f"{format_age(lasted):>4}  ", colour).append(tool["name"], TOOL)
        text.append("  sub-agent" if tool["agent_id"] else "", DIM)
        text.append(f"  {tool['about']}" if tool["about"] else "")
        text.append(f"  {tool['error']}" if tool["error"] else "", TONE_COLOURS["error"])
    return text


def draw_sums(pieces: Sequence[Piece], statuses: Iterable[StatusOut], more_agents: int) -> Columns:
    """Return the time in each status, in as many columns as fit.

    more_agents: how many sub-agents have no lane.
    """
    sums = sum_by_status(pieces)
    more = [Text(f"+ {more_agents} sub-agents at the same time", DIM)] if more_agents else []
    return Columns(
        [
            Text.assemble(
                (f"{status['symbol']} ", TONE_COLOURS[status["tone"]]),
                (f"{status['words']} {format_age(sums[status['status']])}", DIM),
            )
            for status in statuses
            if status["status"] in sums
        ]
        + more,
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
