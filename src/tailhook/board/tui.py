"""`tailhook board`: every session's status in the terminal, live.

Words that came from sessions are shown as `rich.text.Text` or with markup switched off, and without control characters.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any, ClassVar, NamedTuple

from rich.style import Style
from rich.text import Text
from textual import events, on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Input, Static

from tailhook.board import rows
from tailhook.board.alerts import Alert
from tailhook.board.rows import DIM
from tailhook.board.screens import DetailsScreen, HelpScreen
from tailhook.board.source import Source
from tailhook.board.view import (
    COLOURS,
    GROUPS,
    Plate,
    calls,
    group_of,
    names,
    ordered,
    read_plate,
)
from tailhook.errors import TailhookError
from tailhook.machines.plates import Status
from tailhook.plates.client import AwayError

REDRAW = 0.1  # seconds between two looks at what changed
RETRY = 0.5  # seconds between two tries to reach the daemon
GRACE = 5.0  # seconds for a daemon to come back by itself, before one is started
SELECTED = Style(bgcolor="#2a3140")
GROUP_COLOURS = (COLOURS[Status.AWAITING_INPUT], COLOURS[Status.RUNNING], DIM)
EMPTY = """
No sessions yet.

They appear here by themselves once the hooks are installed:

  tailhook install --with plates
"""


class Line(NamedTuple):
    """What is on a line: a part of a plate, the heading of a group, or nothing."""

    plate: int = -1
    part: int = 0
    group: int = -1


class PlateList(ScrollView, can_focus=True):
    """The plates below the headings of their groups, one of them chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "up", show=False),
        Binding("down", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "move(-1000000)", "first", show=False),
        Binding("end", "move(1000000)", "last", show=False),
        Binding("enter", "open", "details"),
    ]

    class Opened(Message):
        """The details of a plate are wanted."""

        def __init__(self, plate: Plate) -> None:
            super().__init__()
            self.plate = plate

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self.now = now
        self.plates: list[Plate] = []
        self.named: dict[str, str] = {}
        self.lines: list[Line] = []
        self.tops: list[int] = []  # of each plate, its first line
        self.height_of_each = 1
        self.at = 0  # the chosen plate
        self.hint = ""

    @property
    def chosen(self) -> Plate | None:
        """The plate that the cursor is on."""
        return self.plates[self.at] if self.at < len(self.plates) else None

    def show(self, plates: list[Plate], named: dict[str, str], hint: str) -> None:
        """Show these plates, or the hint where there are none; what was chosen stays chosen."""
        kept = self.chosen
        self.plates, self.named, self.hint = plates, named, hint
        ids = [plate.session_id for plate in plates]
        if kept and kept.session_id in ids:
            self.at = ids.index(kept.session_id)
        self.at = max(0, min(self.at, len(plates) - 1))
        self.lay_out()

    def lay_out(self) -> None:
        """Find out what is on which line."""
        self.lines, self.tops = [], []
        self.height_of_each = rows.height(self.size.width)
        group = -1
        for index, plate in enumerate(self.plates):
            if group_of(plate) != group:
                group = group_of(plate)
                self.lines += [Line(), Line(group=group)] if self.lines else [Line(group=group)]
            self.tops.append(len(self.lines))
            self.lines += [Line(index, part) for part in range(self.height_of_each)]
        self.virtual_size = Size(self.size.width, len(self.lines) or len(self.hint.splitlines()))
        self.refresh()

    def on_resize(self) -> None:
        """A narrow terminal has other lines."""
        self.lay_out()
        self.reveal()

    def action_move(self, by: int) -> None:
        """Choose another plate."""
        self.at = max(0, min(self.at + by, len(self.plates) - 1))
        self.reveal()

    def action_page(self, by: int) -> None:
        """Choose a plate a screen away."""
        self.action_move(by * max(1, self.size.height // self.height_of_each - 2))

    def action_open(self) -> None:
        """Ask for the details."""
        if self.chosen:
            self.post_message(self.Opened(self.chosen))

    def on_click(self, event: events.Click) -> None:
        """Choose a plate; with a second click, open it."""
        where = event.get_content_offset(self)
        line = where.y + self.scroll_offset.y if where else len(self.lines)
        if line < len(self.lines) and self.lines[line].plate >= 0:
            self.at = self.lines[line].plate
            self.refresh()
            if event.chain == 2:
                self.action_open()

    def reveal(self) -> None:
        """Scroll to the chosen plate; with the first one, to the heading above."""
        if self.tops:
            top = self.tops[self.at] if self.at else 0
            bottom = self.tops[self.at] + self.height_of_each
            self.scroll_to_region(Region(0, top, 1, bottom - top), animate=False, force=True, x_axis=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of what is seen."""
        y += self.scroll_offset.y
        if not self.lines:
            hint = self.hint.splitlines()
            return self.strip(Text(f"  {hint[y]}" if y < len(hint) else "", DIM))
        line = self.lines[y] if y < len(self.lines) else Line()
        if line.group >= 0:
            count = sum(group_of(plate) == line.group for plate in self.plates)
            return self.strip(
                Text.assemble((f" {GROUPS[line.group]} ", f"bold {GROUP_COLOURS[line.group]}"), (str(count), DIM))
            )
        if line.plate < 0:
            return self.strip(Text())
        plate = self.plates[line.plate]
        name = self.named.get(plate.path, plate.name)
        text = rows.row(plate, name, self.now(), self.size.width, self.height_of_each)[line.part]
        return self.strip(text, SELECTED if line.plate == self.at else Style())

    def strip(self, text: Text, style: Style = Style.null()) -> Strip:  # noqa: B008 - a constant
        """A line of text as wide as the list."""
        segments = text.render(self.app.console, end="")
        return Strip(segments).adjust_cell_length(self.size.width).apply_style(self.rich_style + style)


# ---- details -----------------------------------------------------------------


class FilterField(Input):
    """Where the words of the filter are typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "keep"),
        Binding("escape", "app.clear", "show all"),
    ]


# ---- the board ---------------------------------------------------------------


class Board(App[None]):
    """The board.

    source: where plates come from.  now: the clock, in Unix seconds.  alerts: what is called with each plate that
    begins to wait for a person.
    """

    TITLE = "tailhook"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter"),
        Binding("question_mark", "help", "help"),
        Binding("q", "quit", "quit"),
        Binding("d", "dismiss", "dismiss"),
        Binding("c", "closed", "closed"),
        Binding("escape", "clear", "no filter", show=False),
    ]
    CSS = """
    #summary { height: 1; padding: 0 1; background: $panel; }
    PlateList { height: 1fr; padding: 1 0 0 0; overflow-x: hidden; scrollbar-gutter: stable;
        scrollbar-size-vertical: 1; }
    #filter { display: none; height: 1; border: none; padding: 0 1; }
    #filter.shown { display: block; }
    DetailsScreen VerticalScroll { padding: 1 2; scrollbar-size-vertical: 1; }
    DetailsScreen .heading { color: $text-muted; text-style: bold; margin: 1 0 0 0; }
    Timeline { height: 3; margin: 0 1 1 0; }
    HelpScreen { align: center middle; }
    Footer { padding: 0 1; }
    HelpScreen VerticalScroll { width: 64; max-width: 100%; height: auto; max-height: 100%; padding: 1 2;
        background: $panel; border: round $primary; }
    """

    def __init__(
        self,
        source: Source,
        now: Callable[[], float] = time.time,
        alerts: Iterable[Alert] = (),
    ) -> None:
        super().__init__()
        self.source = source
        self.now = now
        self.alerts = tuple(alerts)
        self.plates: dict[str, Plate] = {}
        self.known = False  # whether all plates have come once
        self.closed = False
        self.away_since: float | None = None
        self.connected = False
        self.changed = False
        # Kept, not searched for: a timer may still run while the screen loses its widgets.
        self.first_line = Static(markup=False, id="summary")
        self.list = PlateList(self.now)
        self.filter = FilterField(placeholder="project, branch, status, tool …", id="filter", select_on_focus=False)

    def compose(self) -> ComposeResult:
        """The parts, from top to bottom."""
        yield self.first_line
        yield self.list
        yield self.filter
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Follow the daemon."""
        self.follow()
        self.set_interval(REDRAW, self.redraw)
        self.set_interval(1, self.pass_time)
        self.show()

    # ---- what comes from the daemon ----

    @work
    async def follow(self) -> None:
        """Take what the daemon tells; where there is none, try again until there is."""
        while True:
            try:
                async with aclosing(self.source.changes()) as changes:
                    async for name, fields in changes:
                        self.take(name, fields)
            except AwayError:
                pass
            self.lost()
            await asyncio.sleep(RETRY)
            if self.away_since is not None and time.monotonic() - self.away_since > GRACE:
                await self.wake()

    def take(self, name: str, fields: Any) -> None:
        """The daemon told something."""
        self.connected, self.away_since = True, None
        if name == "plates":
            before, self.plates = self.plates, {}
            for plate in map(read_plate, fields):
                self.put(plate, before.get(plate.session_id))
            self.known = True
        elif name == "plate":
            plate = read_plate(fields)
            self.put(plate, self.plates.get(plate.session_id))
        elif name == "removed":
            self.plates.pop(fields["session_id"], None)
        self.changed = True

    def put(self, plate: Plate, before: Plate | None) -> None:
        """A plate is as it is now."""
        self.plates[plate.session_id] = plate
        if self.known and calls(before, plate):
            for alert in self.alerts:
                alert(self, plate)
        for screen in self.screen_stack:
            if isinstance(screen, DetailsScreen) and screen.plate.session_id == plate.session_id:
                screen.stale = True

    def lost(self) -> None:
        """The daemon does not answer."""
        self.connected = False
        if self.away_since is None:
            self.away_since = time.monotonic()
        self.changed = True

    async def wake(self) -> None:
        """Start the daemon, where that is wanted."""
        try:
            await self.source.wake()
        except TailhookError:
            self.away_since = time.monotonic()

    # ---- what is seen ----

    def redraw(self) -> None:
        """Show what changed since the last time."""
        if self.changed:
            self.changed = False
            self.show()

    def pass_time(self) -> None:
        """Ages grow."""
        self.list.refresh()

    def show(self) -> None:
        """Show the plates as they are."""
        wanted = self.filter.value
        plates = ordered(self.plates.values(), wanted, self.closed)
        hint = "\nNothing matches. Esc shows all.\n" if self.plates and wanted else EMPTY if self.connected else ""
        if self.plates and not wanted:
            hint = "\nAll sessions are closed. Press c to see them.\n"
        self.list.show(plates, names(self.plates.values()), hint)
        self.first_line.update(self.summary())

    def summary(self) -> Text:
        """The first line: how many of each group, and whether the daemon is there."""
        width = self.size.width - 2
        if self.connected:
            state = Text.assemble(("● ", COLOURS[Status.RUNNING]), ("live", DIM))
        elif self.away_since is None:
            state = Text("connecting …", DIM)
        else:
            state = Text("✗ daemon away, reconnecting …", COLOURS[Status.ERROR])
        groups = [group_of(plate) for plate in self.plates.values() if plate.status is not Status.CLOSED]
        left = Text("tailhook  " if width > 60 else "", "bold")
        for group, word in enumerate(("waiting", "running", "other")):
            count = groups.count(group)
            left.append(f"{count} {word}  ", GROUP_COLOURS[group] if count else DIM)
        if self.closed:
            left.append("closed too  ", DIM)
        left.truncate(max(0, width - state.cell_len - 1), pad=True)
        return Text.assemble(left, " ", state)

    # ---- keys ----

    @on(PlateList.Opened)
    def open(self, message: PlateList.Opened) -> None:
        """Show a plate's details."""
        self.push_screen(DetailsScreen(message.plate, self.source, self.now))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """The list's keys are the list's alone."""
        if action == "filter" and isinstance(self.focused, FilterField):
            return False
        return len(self.screen_stack) == 1 or action not in ("filter", "dismiss", "closed", "clear")

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen())

    def action_closed(self) -> None:
        """Show the closed ones, or no longer."""
        self.closed = not self.closed
        self.show()

    @work
    async def action_dismiss(self) -> None:
        """Remove the chosen plate."""
        plate = self.list.chosen
        if plate is None:
            return
        try:
            await self.source.dismiss(plate.session_id)
        except TailhookError as error:
            self.notify(f"{plate.name} stays: {error}", severity="warning", markup=False)

    def action_filter(self) -> None:
        """Ask for a filter."""
        self.filter.add_class("shown")
        self.filter.focus()

    def action_clear(self) -> None:
        """Show all again."""
        self.filter.value = ""
        self.filter.remove_class("shown")
        self.list.focus()

    @on(Input.Changed)
    def filter_changed(self) -> None:
        """Another filter."""
        self.show()

    @on(Input.Submitted)
    def filter_done(self) -> None:
        """The filter stays; the keys are the list's again."""
        if not self.filter.value:
            self.action_clear()
        self.list.focus()
