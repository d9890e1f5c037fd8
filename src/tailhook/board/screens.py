"""The board's other screens: the details of a session, and the help."""

from collections.abc import Callable
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Footer, Static
from textual.widgets._footer import FooterKey

from tailhook.board import blocks, rows
from tailhook.board.source import Source
from tailhook.board.view import Piece, end_periods, read_details
from tailhook.errors import TailhookError
from tailhook.machines.plates import Status
from tailhook.plates.client import AwayError, MissingError
from tailhook.plates.fields import DetailsOut, PeriodOut, PlateOut, StatusesOut

RELOAD_INTERVAL_S = 0.5  # between two checks for new details
LASTING_KEYS = ("question_mark", "q")  # of the footer, in every width
KEY_GAP = "  "  # after each; the last one needs none
# For a footer in which not all keys fit: used one after the other, until they do. The word "copy" alone would read like
# an answer: the key is `y`, and it stands below a question.
SHORT_KEY_WORDS = {
    "copy command to resume": "copy resume",
    "show folded": "all",
    "projects": "group",
    "details": "view",
}
FILTER_KEY = "/"  # its meaning ends with the fields that a filter searches
HELP = (
    ("↑ ↓", "choose a session; PgUp, PgDn, Home and End too"),
    ("Enter", "its details: what it asks, timeline, last message, tools; e: the raw events"),
    ("o", "go there: show the terminal in which it runs"),
    ("y", "copy the command that resumes it"),
    (FILTER_KEY, "filter: words that must all occur in"),
    ("Esc", "clear the filter; back from the details"),
    ("?", "this help"),
    ("q", "quit"),
    ("d", "hide the session until its next prompt; show a hidden one"),
    ("u", "undo that, within 10 seconds"),
    ("g", "group by project, or by what the sessions need"),
    ("a", "show the sessions that are folded into a line, or fold them"),
    ("c", "show closed and hidden sessions, or leave them out"),
)


def footer_width(key: FooterKey) -> int:
    """Return the columns that a key takes in the footer, with the gap after it."""
    return cell_len(f"{key.key_display} {key.description}{KEY_GAP}")


class WholeFooter(Footer):
    """The keys that fit into the line.

    If there are too many, they get SHORT_KEY_WORDS, as many as needed. If that is not enough, the last ones are left
    out, but for LASTING_KEYS.
    """

    chosen_from: object = None  # what the keys that are shown were chosen from

    def compose(self) -> ComposeResult:
        """Yield the keys from the left."""
        keys = [key for key in super().compose() if isinstance(key, FooterKey)]
        left = self.app.size.width - 2 + len(KEY_GAP)
        for words, short in SHORT_KEY_WORDS.items():
            if sum(map(footer_width, keys)) <= left:
                break
            for key in keys:
                key.description = key.description.replace(words, short)
        fitting = []
        for key in sorted(keys, key=lambda key: key.key not in LASTING_KEYS):
            left -= footer_width(key)
            if left < 0:
                break
            fitting.append(key)
        yield from (key for key in keys if key in fitting)

    def on_resize(self) -> None:
        """Choose the keys again."""
        self.call_after_refresh(self.recompose)

    async def recompose(self) -> None:
        """Show the keys again if others are to be shown: the screen asks for that at each change of the focus."""
        if not self.is_attached:
            return
        bindings = [(one.binding, one.enabled) for one in self.screen.active_bindings.values()]
        chosen_from = (self._bindings_ready, self.app.size.width, bindings)
        if chosen_from != self.chosen_from:
            self.chosen_from = chosen_from
            await super().recompose()


class Timeline(Widget):
    """The timeline of a session, as wide as the screen."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[Piece] = []
        self.lanes: list[list[PeriodOut]] = []
        self.now = 0.0

    def show(self, pieces: list[Piece], lanes: list[list[PeriodOut]], now: float) -> None:
        """Draw these pieces.

        lanes: of the sub-agents.
        now: Unix seconds.
        """
        self.pieces, self.lanes, self.now = pieces, lanes, now
        self.styles.height = 3 + len(lanes)
        self.refresh()

    def render(self) -> Text:
        """Return the drawn timeline."""
        return rows.draw_timeline(self.pieces, self.now, self.size.width, self.lanes)


class DetailsScreen(Screen[None]):
    """The details of one session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,backspace", "back", "back"),
        Binding("e", "events", "events"),
    ]

    def __init__(self, plate: PlateOut, statuses: StatusesOut, source: Source, now: Callable[[], float]) -> None:
        super().__init__()
        self.plate = plate
        self.statuses = statuses
        self.source = source
        self.now = now
        self.details: DetailsOut | None = None
        self.stale = True  # whether the daemon has newer details
        self.is_loading = False
        self.gone_at: float | None = None  # Unix seconds: when the session was not on the board any more
        # Kept, not searched for: a timer may still run while the screen loses its widgets.
        self.facts, self.asked, self.sums, self.words, self.tools, self.events = (
            Static(markup=False) for _ in range(6)
        )
        self.events.display = False
        self.fold = Static(markup=False, classes="heading")  # the heading of the events
        self.timeline = Timeline()

    def compose(self) -> ComposeResult:
        """Yield the widgets, from top to bottom."""
        with VerticalScroll():
            yield self.facts
            yield self.asked
            yield Static("Timeline", classes="heading")
            yield self.timeline
            yield self.sums
            yield Static("Last message", classes="heading")
            yield self.words
            yield Static("Tools", classes="heading")
            yield self.tools
            yield self.fold
            yield self.events
        yield WholeFooter(compact=True)

    def on_mount(self) -> None:
        """Start to check for changes."""
        self.reload()
        self.set_interval(RELOAD_INTERVAL_S, self.reload)
        self.set_interval(1, self.show)

    def reload(self) -> None:
        """Load the details if the daemon has newer ones. A load at work ends first: changes may come all the time."""
        if self.stale and not self.is_loading:
            self.stale, self.is_loading = False, True
            self.load()

    @work
    async def load(self) -> None:
        """Get the details and show them. If that fails, the old ones stay."""
        try:
            self.details = read_details(await self.source.details(self.plate["session_id"]))
            self.show_details(self.details)
            if self.details["unseen"]:
                await self.source.mark(self.plate["session_id"], seen=True)
        except AwayError:
            self.stale = True
        except TailhookError as error:
            if isinstance(error, MissingError) and self.details:
                self.mark_gone(self.details)
                return
            self.app.notify(f"{self.plate['name']}: {error}", severity="warning", markup=False)
        finally:
            self.is_loading = False

    def show_details(self, details: DetailsOut) -> None:
        """Draw new details."""
        self.gone_at = None
        self.events.update(rows.draw_events(details["events"]))
        self.show_fold()
        asked, message = details["asked"], details["message"]
        self.asked.display = asked is not None
        self.asked.update(blocks.draw_asked(asked) if asked else "")
        self.words.update(blocks.draw_blocks(message) if message else Text(details["no_message"]))
        self.show()

    def mark_gone(self, details: DetailsOut) -> None:
        """Show that the session is not on the board any more. What is known of it stays, and no time goes on.

        details: those that are shown.
        """
        if self.gone_at is None:
            self.gone_at = self.now()
            words = f"not on the board any more; last: {details['status_words']}"
            self.details = {**details, "status": Status.CLOSED, "status_words": words, "tone": "muted", "symbol": "·"}
            self.asked.display = False
            self.show()

    def show(self) -> None:
        """Draw the parts that depend on the time."""
        if self.details:
            now = self.gone_at or self.now()
            pieces = end_periods(self.details["periods"], now)
            self.facts.update(rows.draw_facts(self.details, now))
            self.timeline.show(pieces, self.details["agent_lanes"], now)
            self.sums.update(rows.draw_sums(pieces, self.statuses["statuses"], self.details["more_agents"]))
            self.tools.update(rows.draw_tools(self.details["tools"], now))

    def show_fold(self) -> None:
        """Draw the heading of the events: their number, and the key that shows them."""
        count = len(self.details["events"]) if self.details else 0
        self.fold.update(f"Events {count}{'' if self.events.display else ' ▸  e shows them'}")

    def action_events(self) -> None:
        """Show the events, or fold them into their heading."""
        self.events.display = not self.events.display
        self.show_fold()
        if self.events.display:
            self.fold.scroll_visible(top=True)

    def action_back(self) -> None:
        """Return to the list."""
        self.dismiss()


class HelpScreen(ModalScreen[None]):
    """The keys and the symbols."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,enter", "back", "back")]

    def __init__(self, statuses: StatusesOut) -> None:
        super().__init__()
        self.statuses = statuses

    def compose(self) -> ComposeResult:
        """Yield the table."""
        searched = f" {self.statuses['filter_fields']}"
        keys = [(key, words + searched if key == FILTER_KEY else words) for key, words in HELP]
        with VerticalScroll():
            yield Static(rows.draw_help(keys, [*self.statuses["statuses"], *self.statuses["marks"]]))

    def action_back(self) -> None:
        """Return to the list."""
        self.dismiss()
