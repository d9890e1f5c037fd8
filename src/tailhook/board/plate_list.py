"""The list of the terminal board: the sessions below the headings of their groups or projects, folds and the cursor."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import ClassVar, NamedTuple

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tailhook.board import rows
from tailhook.board.rows import DIM, TONE_COLOURS
from tailhook.board.view import is_long_wait
from tailhook.machines.plates import Status
from tailhook.plates.fields import RUN_WORDS, BoardGroup, GroupOut, PlateOut

MIN_SPACED_HEIGHT = 31  # of the list; below it no blank line stands between its sections
SELECTED = Style(bgcolor="#2a3140")


class ListLine(NamedTuple):
    """A line of the list: a line of a plate, or a heading.

    plate: its index, or -1.
    part: the number of the plate's line.
    height: the number of the plate's lines.
    heading: its text, if it is one.
    """

    plate: int = -1
    part: int = 0
    height: int = 0
    heading: Text | None = None


class Section(NamedTuple):
    """A section of the list.

    folds: whether the plates are folded into the heading.
    joins: whether it belongs to the section before.
    """

    heading: Text
    plates: list[PlateOut]
    folds: bool = False
    joins: bool = False


def group_in(plate: PlateOut) -> BoardGroup:
    """Return the group of a plate."""
    return plate["group"]


def urgency_of(plate: PlateOut) -> int:
    """Return a session's rank, for a small screen. What the session with the smallest rank asks is shown first."""
    activity = plate["activity"]
    if plate["status"] is Status.ERROR:
        return 3
    if activity["words"] == RUN_WORDS:
        return 0
    return 1 if activity["choices"] or activity["tool"] else 2


class PlateList(ScrollView, can_focus=True):
    """The plates below the headings of their groups, or of their projects. One plate is selected.

    Sessions at rest fold into their heading if the list does not fit into the terminal otherwise, and long waits fold
    into a line. A key unfolds both.

    It is not a Textual OptionList, because all ages change each second. For 1,000 sessions an OptionList would take 0.2
    to 0.4 s to make and lay out its rows again (Textual 8.2.8). This list draws only the visible lines.
    """

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
        """The person asked for the details of a plate."""

        def __init__(self, plate: PlateOut) -> None:
            super().__init__()
            self.plate = plate

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self.now = now
        self.groups: dict[BoardGroup, GroupOut] = {}
        self.long_wait_hours = 0
        self.given: list[PlateOut] = []
        self.plates: list[PlateOut] = []  # those that are not folded
        self.lines: list[ListLine] = []
        self.tops: list[int] = []  # the first line of each plate
        self.needs = rows.NO_NEEDS
        self.width = 0  # for which the lines were computed
        self.unfolded: bool | None = None  # whether all plates are shown; None if the person has not chosen
        self.by_project = False
        self.left_out = ""  # the numbers of closed and hidden plates, in words
        self.at = 0  # the index of the selected plate
        self.aims = False  # whether the pointer was pressed on a plate
        self.hint = ""

    @property
    def chosen(self) -> PlateOut | None:
        """The selected plate, or None."""
        return self.plates[self.at] if self.at < len(self.plates) else None

    def show(self, plates: list[PlateOut], hint: str, closed: int = 0, hidden: int = 0) -> None:
        """Show these plates, or the hint if there are none. The selected plate stays selected.

        closed, hidden: how many of them are left out.
        """
        self.given, self.hint = plates, hint
        found = " · ".join(f"{words} {count}" for words, count in (("CLOSED", closed), ("HIDDEN", hidden)) if count)
        self.left_out = f"{found} ▸" if found else ""
        self.lay_out()

    def lay_out(self) -> None:
        """Compute the lines."""
        kept = self.chosen
        self.width = self.size.width
        self.plates, self.lines, self.tops = [], [], []
        heights, head = self.find_heights()
        for heading, plates, folds, joins in self.find_sections(heights, head):
            if (self.is_spaced if self.lines else head > 1) and not joins:
                self.lines.append(ListLine())
            if self.lines or head or joins:
                self.lines.append(ListLine(heading=heading))
            for plate in () if folds else plates:
                self.tops.append(len(self.lines))
                height = heights[plate["session_id"]]
                self.lines += [ListLine(len(self.plates), part, height) for part in range(height)]
                self.plates.append(plate)
        ids = [plate["session_id"] for plate in self.plates]
        self.needs = rows.find_needs(plate for plate in self.plates if heights[plate["session_id"]] == 1)
        if kept and kept["session_id"] in ids:
            self.at = ids.index(kept["session_id"])
        self.at = max(0, min(self.at, len(ids) - 1))
        self.virtual_size = Size(self.size.width, len(self.lines) or len(self.hint.splitlines()))
        self.refresh()

    @property
    def is_spaced(self) -> bool:
        """Whether a blank line stands between two sections."""
        return self.size.height >= MIN_SPACED_HEIGHT

    def find_heights(self) -> tuple[dict[str, int], int]:
        """Return the number of lines of each plate, by session, and of the lines above the first plate.

        What a session asks has more than one line only if all sessions that wait fit into the terminal. Shell commands
        get theirs first, then files and choices, errors last. Of the same kind, the longest wait is first.
        """
        now = self.now()
        heights = {plate["session_id"]: rows.count_lines(plate, self.width) for plate in self.given}
        waiting = [
            plate
            for plate in self.given
            if plate["group"] == "waits" and (self.unfolded or not is_long_wait(plate, now, self.long_wait_hours))
        ]
        least = sum(heights[plate["session_id"]] for plate in waiting)
        wanted = {plate["session_id"]: rows.count_ask_lines(plate, now, self.width) - 1 for plate in waiting}
        head = self.find_head(least, least + sum(wanted.values()))
        spare = self.size.height - head - least
        for plate in sorted(waiting, key=urgency_of):
            more = max(0, min(spare, wanted[plate["session_id"]]))
            heights[plate["session_id"]] += more
            spare -= more
        return heights, head

    def find_head(self, least: int, wanted: int) -> int:
        """Return the number of lines above the first plate: a blank line and a heading, as far as there is room.

        least: the lines of the sessions that wait, with one for what each asks.
        wanted: their lines with all that they ask.
        """
        height = self.size.height
        if wanted + 2 <= height:
            return 2
        return 0 if least <= height < wanted + 1 and not self.by_project else 1

    def find_sections(self, heights: Mapping[str, int], head: int) -> list[Section]:
        """Return the sections of the list.

        heights, head: as of `find_heights`.
        """
        now = self.now()
        if self.by_project:
            projects: dict[str, list[PlateOut]] = {}
            for plate in self.given:
                projects.setdefault(plate["name"], []).append(plate)
            return [Section(rows.draw_heading(name, len(same), "", DIM), same) for name, same in projects.items()]
        long = [plate for plate in self.given if is_long_wait(plate, now, self.long_wait_hours)]
        others = [plate for plate in self.given if not is_long_wait(plate, now, self.long_wait_hours)]
        height = sum(heights[plate["session_id"]] for plate in others)
        headings = len(self.groups) * 2 if self.is_spaced else len(self.groups) + (head > 1)
        fits = height + headings + bool(long) <= self.size.height
        found = []
        for group, same in groupby(others, group_in):
            plates, is_rest = list(same), group == "rest"
            folds = is_rest and not (fits if self.unfolded is None else self.unfolded)
            title, colour = self.groups[group]["title"], TONE_COLOURS[self.groups[group]["tone"]]
            more = self.groups[group]["note"] if group == "stuck" else ""
            if is_rest and self.left_out:
                more = self.left_out
            found.append(Section(rows.draw_heading(title, len(plates), more, colour, folds), plates, folds))
        if long:
            line = Text(
                f" {len(long)} older than {self.long_wait_hours} h{'' if self.unfolded else ' ▸'}",
                TONE_COLOURS["attention"],
            )
            at = sum(group == "waits" for group, _ in groupby(others, group_in))
            found.insert(at, Section(line, long, not self.unfolded, joins=True))
        if self.left_out and not any(plate["group"] == "rest" for plate in others) and found:
            found.append(Section(Text(f" {self.left_out}", f"bold {DIM}"), []))
        return found

    def toggle_folds(self) -> None:
        """Unfold all plates. If all are unfolded, fold those that may be folded."""
        self.unfolded = len(self.plates) < len(self.given)
        self.lay_out()

    def on_resize(self) -> None:
        """Lay the lines out again: a narrow terminal needs more of them."""
        self.lay_out()
        self.reveal()

    def action_move(self, by: int) -> None:
        """Select another plate."""
        self.at = max(0, min(self.at + by, len(self.plates) - 1))
        self.reveal()

    def action_page(self, by: int) -> None:
        """Select a plate one screen away."""
        if self.tops:
            wanted = self.tops[self.at] + by * max(1, self.size.height - 2)
            nearest = max(0, bisect_right(self.tops, wanted) - 1)
            self.action_move(by * max(1, abs(nearest - self.at)))

    def action_open(self) -> None:
        """Open the details of the selected plate."""
        if self.chosen:
            self.post_message(self.Opened(self.chosen))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Select the plate under the pointer: it may move before the button is released."""
        where = event.get_content_offset(self)
        line = where.y + self.scroll_offset.y if where else len(self.lines)
        self.aims = line < len(self.lines) and self.lines[line].plate >= 0
        if self.aims:
            self.at = self.lines[line].plate
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Open the details of the selected plate at a second click."""
        if self.aims and event.chain == 2:
            self.action_open()

    def reveal(self) -> None:
        """Scroll to the selected plate; if it is the first one, to the heading above it."""
        if self.tops:
            top = self.tops[self.at] if self.at else 0
            bottom = self.tops[self.at] + self.lines[self.tops[self.at]].height
            self.scroll_to_region(Region(0, top, 1, bottom - top), animate=False, force=True, x_axis=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one visible line."""
        y += self.scroll_offset.y
        if not self.lines:
            hint = self.hint.splitlines()
            return self.make_strip(Text(f"  {hint[y]}" if y < len(hint) else "", DIM))
        line = self.lines[y] if y < len(self.lines) else ListLine()
        if line.plate < 0:
            return self.make_strip(line.heading or Text())
        plate = self.plates[line.plate]
        text = rows.draw_plate(plate, self.now(), self.width, line.height, self.needs)[line.part]
        return self.make_strip(text, SELECTED if line.plate == self.at else Style())

    def make_strip(self, text: Text, style: Style = Style.null()) -> Strip:  # noqa: B008 - a constant
        """Return a line of text as wide as the list."""
        segments = text.render(self.app.console, end="")
        return Strip(segments).adjust_cell_length(self.size.width).apply_style(self.rich_style + style)
