"""`tailhook board`: every session's status in the terminal, live.

Text of a session is shown as `rich.text.Text` or with markup switched off, and without control characters.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from tailhook.board.alerts import Alert
from tailhook.board.plate_list import PlateList
from tailhook.board.rows import DIM, TONE_COLOURS
from tailhook.board.screens import DetailsScreen, HelpScreen, WholeFooter
from tailhook.board.source import Source
from tailhook.board.terminals import show_terminal
from tailhook.board.view import (
    clean_value,
    is_on_board,
    read_plate,
    read_statuses,
    select_plates,
    started_waiting,
)
from tailhook.errors import TailhookError
from tailhook.hook.answer import plain
from tailhook.machines.plates import Status
from tailhook.plates.client import AwayError, VersionError
from tailhook.plates.fields import PlateOut, StatusesOut

REDRAW_INTERVAL_S = 0.1
RECONNECT_DELAY_S = 0.5  # between two attempts to reach the daemon
UNDO_S = 10.0  # to show a hidden session again with one key
RESTART_DELAY_S = 5.0  # for a daemon to come back by itself, before one is started
MAX_CLOSED_PAGES = 5  # of closed sessions, at most; `tailhook plates list` has all
KEYS_OF_LIST = ("filter", "dismiss", "undo", "projects", "all", "closed", "clear")  # the actions of its keys
EMPTY = """
No sessions yet.

They appear here by themselves once the hooks are installed:

  tailhook install --with plates

Sessions that were already open appear after a restart.
"""


class FilterField(Input):
    """The input field of the filter."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "keep"),
        Binding("escape", "app.clear", "show all"),
    ]


# ---- the board ---------------------------------------------------------------


class Board(App[None]):
    """The board.

    source: of the plates.
    now: returns Unix seconds.
    alerts: called with each plate that starts to need attention.
    """

    TITLE = "tailhook"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "go", "go there"),
        Binding("y", "copy", "copy command to resume"),
        Binding("d", "dismiss", "hide"),
        Binding("u", "undo", "undo", show=False),
        Binding("g", "projects", "projects"),
        Binding("slash", "filter", "filter"),
        Binding("a", "all", "show folded"),
        Binding("c", "closed", "closed"),
        Binding("question_mark", "help", "help"),
        Binding("q", "quit", "quit"),
        Binding("escape", "clear", "no filter", show=False),
    ]
    CSS = """
    #summary { height: 1; padding: 0 1; background: $panel; }
    PlateList { height: 1fr; overflow-x: hidden; scrollbar-gutter: stable;
        scrollbar-size-vertical: 1; }
    #filter { display: none; height: 1; border: none; padding: 0 1; }
    #filter.shown { display: block; }
    DetailsScreen VerticalScroll { padding: 1 2; scrollbar-size-vertical: 1; }
    DetailsScreen .heading { color: $text-muted; text-style: bold; margin: 1 0 0 0; }
    Timeline { height: 3; margin: 0 1 1 0; }
    HelpScreen { align: center middle; }
    Footer { padding: 0 1; }
    Footer FooterKey { margin-right: 2; }
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
        self.statuses = StatusesOut(groups=[], statuses=[], marks=[], filter_fields="", long_wait_hours=0)
        self.plates: dict[str, PlateOut] = {}
        self.failure: TailhookError | None = None  # why it ended by itself
        self.arriving: dict[str, PlateOut] | None = None  # all open plates while the daemon sends them
        self.known = False  # whether all open plates have been received once
        self.closed = False  # whether closed and hidden plates are shown
        self.closed_count = 0  # closed plates that the daemon has
        self.lacks_closed = False  # whether the last request for the closed ones has failed
        self.removed: set[str] = set()  # the sessions removed since the closed ones were asked for
        self.backlog = 0  # events that the daemon has yet to store
        # Hidden sessions, each with the end of its time to undo, and with whether the daemon has hidden it.
        self.undoable: list[tuple[PlateOut, float, asyncio.Task[bool]]] = []
        self.away_since: float | None = None
        self.connected = False
        self.changed = False
        self.terminal_title = ""
        # Kept, not searched for: a timer may still run while the screen loses its widgets.
        self.first_line = Static(markup=False, id="summary")
        self.list = PlateList(self.now)
        self.filter = FilterField(id="filter", select_on_focus=False)

    def compose(self) -> ComposeResult:
        """Yield the widgets, from top to bottom."""
        yield self.first_line
        yield self.list
        yield self.filter
        yield WholeFooter(compact=True)

    def on_mount(self) -> None:
        """Start to follow the daemon."""
        self.follow()
        self.set_interval(REDRAW_INTERVAL_S, self.redraw)
        self.set_interval(1, self.pass_time)
        self.show()

    # ---- what comes from the daemon ----

    @work
    async def follow(self) -> None:
        """Handle the daemon's events for ever. If no daemon answers, try again.

        If a daemon of another version answers, set `failure` and end the board.
        """
        while True:
            try:
                async with aclosing(self.source.changes()) as changes:
                    async for name, fields in changes:
                        self.handle(name, fields)
            except VersionError as error:
                self.failure = error
                self.exit(return_code=1)
                return
            except AwayError:
                pass
            self.note_loss()
            await asyncio.sleep(RECONNECT_DELAY_S)
            if self.away_since is not None and time.monotonic() - self.away_since > RESTART_DELAY_S:
                await self.wake()

    def handle(self, name: str, fields: Any) -> None:
        """Handle one event of the daemon's stream."""
        if name == "statuses":
            self.statuses = read_statuses(fields)
            self.list.groups = {group["id"]: group for group in self.statuses["groups"]}
            self.list.long_wait_hours = self.statuses["long_wait_hours"]
            self.filter.placeholder = self.statuses["filter_fields"]
            return
        self.connected, self.away_since = True, None
        if name in ("plates", "more"):
            if name == "plates" or self.arriving is None:
                self.arriving, self.backlog = {}, 0
            found = {plate["session_id"]: plate for plate in map(read_plate, fields)}
            self.arriving |= found
            if not self.known:  # those of the first time are shown at once
                self.plates |= found
        elif name == "closed":
            self.closed_count = fields["sessions"]
            if self.arriving is not None:
                self.replace_plates(self.arriving.values())
            elif self.closed and self.lacks_closed:
                self.load_closed()
            self.arriving, self.known = None, True
        elif name == "catching_up":
            self.backlog = fields["events"]
        elif name == "plate":
            plate = read_plate(fields)
            self.put(plate, self.plates.get(plate["session_id"]))
        elif name == "removed":
            self.plates.pop(fields["session_id"], None)
            self.removed.add(fields["session_id"])
            self.refresh_details(fields["session_id"])
        elif name == "names":
            for session_id in fields.keys() & self.plates.keys():
                self.plates[session_id] = {**self.plates[session_id], "name": plain(fields[session_id])}
        elif name == "tokens":
            for session_id in fields.keys() & self.plates.keys():
                self.plates[session_id] = {**self.plates[session_id], "tokens_used": clean_value(fields[session_id])}
                if fields[session_id]:  # otherwise the details keep the last ones
                    self.refresh_details(session_id)
        self.changed = True

    def replace_plates(self, every: Iterable[PlateOut]) -> None:
        """Show these open plates in place of the ones before. Closed ones that are shown stay until they are loaded."""
        before = self.plates
        self.plates = {name: one for name, one in before.items() if one["status"] is Status.CLOSED}
        for plate in every:
            self.put(plate, before.get(plate["session_id"]))
        for session_id in before.keys() - self.plates.keys():
            self.refresh_details(session_id)  # it has closed or is gone
        if self.closed:
            self.load_closed()

    def put(self, plate: PlateOut, before: PlateOut | None) -> None:
        """Store a plate that is shown, and call the alerts if it started to need attention.

        before: the plate as it was, or None.
        """
        if self.closed or plate["status"] is not Status.CLOSED:
            self.plates[plate["session_id"]] = plate
        else:
            self.plates.pop(plate["session_id"], None)
        if self.known and started_waiting(before, plate):
            for alert in self.alerts:
                alert(self, plate)
        self.refresh_details(plate["session_id"])

    def refresh_details(self, session_id: str) -> None:
        """Have the details of a session loaded again, if they are shown."""
        for screen in self.screen_stack:
            if isinstance(screen, DetailsScreen) and screen.plate["session_id"] == session_id:
                screen.stale = True

    def note_loss(self) -> None:
        """Note that the daemon does not answer."""
        self.connected = False
        if self.away_since is None:
            self.away_since = time.monotonic()
        self.changed = True

    async def wake(self) -> None:
        """Start the daemon if the user allows that."""
        try:
            await self.source.wake()
        except TailhookError:
            self.away_since = time.monotonic()

    # ---- what is seen ----

    def redraw(self) -> None:
        """Draw the board if something changed."""
        if self.changed:
            self.changed = False
            self.show()

    def on_resize(self) -> None:
        """Draw the first line again: another number of counts fits."""
        self.changed = True

    def pass_time(self) -> None:
        """Draw the list again, because the ages have changed."""
        self.list.refresh()

    def show(self) -> None:
        """Draw the plates as they are now."""
        wanted = self.filter.value
        plates = select_plates(self.plates.values(), wanted, self.closed)
        is_some = bool(self.plates or self.closed_count)
        hint = "\nNothing matches. Esc shows all.\n" if is_some and wanted else EMPTY if self.known else ""
        if is_some and not wanted:
            hint = f"\nAll sessions are closed or hidden.{'' if self.closed else ' Press c to see them.'}\n"
        hidden = sum(plate["hidden"] for plate in self.plates.values())
        left_out = (0, 0) if wanted or self.closed else (self.closed_count, hidden)
        self.list.show(plates, hint, *left_out)
        self.first_line.update(self.summary())
        self.set_terminal_title()

    def set_terminal_title(self) -> None:
        """Show in the terminal's tab how many sessions wait."""
        waiting = sum(plate["group"] == "waits" for plate in self.plates.values())
        title = f"({waiting}) tailhook" if waiting else "tailhook"
        if title != self.terminal_title:
            self.terminal_title = title
            self.write_title(title)

    def write_title(self, title: str) -> None:
        """Set the title of the terminal's tab (OSC 2 of xterm)."""
        if self._driver:
            self._driver.write(f"\x1b]2;{title}\x1b\\")

    def summary(self) -> Text:
        """Return the first line: the number of sessions in each group, and whether the daemon answers.

        The counts that do not fit are left out, from the right.
        """
        if self.connected and self.backlog:
            state = Text(
                f"catching up: {self.backlog:,} event{'s' if self.backlog > 1 else ''}", TONE_COLOURS["attention"]
            )
        elif self.connected:
            state = Text()
        elif self.away_since is None:
            state = Text("connecting …", DIM)
        else:
            state = Text("✗ no answer from the daemon, reconnecting …", TONE_COLOURS["error"])
        room = max(0, self.size.width - 2 - state.cell_len - 1)
        groups = [plate["group"] for plate in self.plates.values() if is_on_board(plate)]
        left = Text("" if groups else "tailhook  ", DIM)
        for group in self.statuses["groups"] if groups else ():
            count = groups.count(group["id"])
            if not count and group["id"] == "rest":
                continue
            words = f"{count} {group['summary_of_one'] if count == 1 else group['summary']}"
            if left.cell_len + cell_len(words) > room:
                break
            left.append(f"{words}   ", TONE_COLOURS[group["tone"]] if count else DIM)
        if self.closed:
            found = sum(plate["status"] is Status.CLOSED for plate in self.plates.values())
            is_all = found >= self.closed_count
            left.append("closed too  " if is_all else f"{found:,} of {self.closed_count:,} closed  ", DIM)
        left.truncate(room, pad=True)
        return Text.assemble(left, " ", state)

    # ---- keys ----

    @on(PlateList.Opened)
    def open(self, message: PlateList.Opened) -> None:
        """Show a plate's details, unless another screen is shown since the key was pressed."""
        if len(self.screen_stack) == 1:
            self.push_screen(DetailsScreen(message.plate, self.statuses, self.source, self.now))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Return whether a key works now: the keys of the list do not work on the other screens."""
        if action in ("go", "copy") and isinstance(self.screen, HelpScreen):
            return False
        if action == "filter" and isinstance(self.focused, FilterField):
            return False
        return len(self.screen_stack) == 1 or action not in KEYS_OF_LIST

    @property
    def plate(self) -> PlateOut | None:
        """The plate whose details are shown, otherwise the selected one; None if there is none."""
        if isinstance(self.screen, DetailsScreen):
            return self.screen.details or self.screen.plate
        return self.list.chosen

    @work
    async def action_go(self) -> None:
        """Show the terminal in which a session runs."""
        if not (plate := self.plate):
            return
        resume = "y: copy the command that resumes it" if plate["resume"] else ""
        if plate["status"] is Status.CLOSED:
            self.notify(resume, title=f"{plate['name']} has ended", severity="warning", markup=False)
            return
        try:
            shown = await show_terminal(plate, await self.source.terminal(plate["session_id"]))
        except TailhookError as error:
            words = "\n".join(filter(None, (str(error), resume)))
            self.notify(words, title=f"Not shown: {plate['name']}", severity="warning", markup=False)
        else:
            self.notify(shown, title=f"Shown: {plate['name']}", markup=False)

    def action_copy(self) -> None:
        """Copy the command that resumes a session, by the terminal's own clipboard (OSC 52 of xterm)."""
        if not (plate := self.plate):
            return
        if not plate["resume"]:
            self.notify("No command that resumes it is known", severity="warning", markup=False)
            return
        self.copy_to_clipboard(plate["resume"])
        is_open = plate["status"] is not Status.CLOSED
        hint = "\nIt is still open: end it there first." if is_open else ""
        self.notify(f"{plate['resume']}{hint}", title="Copied", markup=False)

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen(self.statuses))

    def action_projects(self) -> None:
        """Group the sessions by project, or by what they need."""
        self.list.by_project = not self.list.by_project
        self.list.lay_out()

    def action_all(self) -> None:
        """Show the sessions that are folded into a line, or fold them."""
        self.list.toggle_folds()

    def action_closed(self) -> None:
        """Show or hide closed sessions."""
        self.closed = not self.closed
        if self.closed:
            if self.known:  # otherwise the end of all open plates does
                self.load_closed()
        else:
            self.plates = {name: one for name, one in self.plates.items() if one["status"] is not Status.CLOSED}
        self.show()

    @work(exclusive=True, group="closed")
    async def load_closed(self) -> None:
        """Ask the daemon for the newest closed sessions, page by page, and show them in place of those before.

        What the stream has sent meanwhile is newer, and stays.
        """
        self.removed.clear()
        self.lacks_closed = False
        before = {name: plate for name, plate in self.plates.items() if plate["status"] is Status.CLOSED}
        page = ""
        for _ in range(MAX_CLOSED_PAGES):
            try:
                found, page = await self.source.closed(page)
            except TailhookError as error:
                self.lacks_closed = True
                self.notify(str(error), title="Closed sessions are not shown", severity="warning", markup=False)
                return
            if not self.closed:
                return
            for plate in map(read_plate, found):
                session_id = plate["session_id"]
                if session_id not in self.removed and self.plates.get(session_id) is before.get(session_id):
                    self.plates[session_id] = plate
            self.changed = True
            if not page:
                break
        for session_id, plate in before.items():
            if self.plates.get(session_id) is plate:
                del self.plates[session_id]

    @work
    async def action_dismiss(self) -> None:
        """Hide the selected plate, or show it again if it is hidden. Nothing is deleted."""
        plate = self.list.chosen
        if plate is None:
            return
        is_done = asyncio.create_task(self.hide(plate, not plate["hidden"]))
        if plate["hidden"]:
            await is_done
            return
        one = (plate, self.now() + UNDO_S, is_done)
        self.undoable.append(one)  # before the answer: the stream may remove its row earlier
        if await is_done:
            self.notify("u: undo", title=f"Hidden: {plate['name']}", timeout=UNDO_S, markup=False)
        elif one in self.undoable:
            self.undoable.remove(one)

    @work
    async def action_undo(self) -> None:
        """Show the last hidden session again, if it was hidden a short time ago."""
        if not self.undoable:
            return
        plate, until, is_done = self.undoable.pop()
        if self.now() <= until and await is_done:
            self.clear_notifications()
            await self.hide(plate, False)

    async def hide(self, plate: PlateOut, hidden: bool) -> bool:
        """Hide a plate or show it. Returns whether the daemon did that."""
        try:
            await self.source.mark(plate["session_id"], hidden=hidden)
        except TailhookError as error:
            self.notify(f"{plate['name']} stays: {error}", severity="warning", markup=False)
            return False
        return True

    def action_filter(self) -> None:
        """Open the input field of the filter."""
        self.filter.add_class("shown")
        self.filter.focus()

    def action_clear(self) -> None:
        """Clear the filter."""
        self.filter.value = ""
        self.filter.remove_class("shown")
        self.list.focus()

    @on(Input.Changed)
    def filter_changed(self) -> None:
        """Apply the filter while it is typed."""
        self.show()

    @on(Input.Submitted)
    def filter_done(self) -> None:
        """Keep the filter and return the keys to the list."""
        if not self.filter.value:
            self.action_clear()
        self.list.focus()
