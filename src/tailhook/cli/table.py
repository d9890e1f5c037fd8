"""Draws rows as a table for a person, with colours, links and highlighted matches on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tailhook._core import ArrowBatch
from tailhook.cli.local_time import in_zone
from tailhook.fleet.columns import TOKEN_COLUMNS
from tailhook.machines import is_visible
from tailhook.pictures.terminal import count_cells

# The columns to show if none are chosen. On a narrow terminal, some of OPTIONAL are left out.
SHOWN: Mapping[str, tuple[str, ...]] = {
    "matches": ("timestamp", "path", "role", "name", "context"),
    "records": ("timestamp", "path", "type", "role", "model", "text_bytes", "tools"),
    "tools": ("started", "path", "name", "duration_ms", "is_error", "file", "command"),
    "usage": (
        *("timestamp", "session_id", "model"),
        *TOKEN_COLUMNS,
    ),
    "sessions": (
        *("start", "session_id", "project", "prompts", "messages", "tool_calls"),
        *("input_tokens", "output_tokens", "errors"),
    ),
}
OPTIONAL = (  # in the order of leaving them out
    *("errors", "cache_creation_tokens", "tool_calls", "is_error", "tools", "text_bytes", "cache_read_tokens"),
    "messages",
)
LEFT_OUT_FOR_LONG = ("role", "file", "duration_ms", "started", "timestamp", "path")  # too, if a long column needs room
SHORT_HEADS = {  # on a terminal; other columns have their names
    "session_id": "session",
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_tokens": "cache read",
    "cache_creation_tokens": "cache creation",
    "duration_ms": "ms",
    "tool_calls": "tool calls",
    "text_bytes": "bytes",
    "is_error": "error",
}
# Widths of columns of text on a terminal with room. The first rows may need less, but later rows may need it. Other
# columns are as wide as the first rows need.
USUAL_CELLS = {
    **dict.fromkeys(("path", "project", "file", "session_id"), 36),
    **dict.fromkeys(("timestamp", "started", "ended", "start", "end"), len("2026-11-22 09:00:00")),
    "model": 24,
    "tools": 16,
    "name": 12,
    "role": 9,
}
NUMBER_CELLS = 7  # at least, for later numbers: 999,999
HIGHLIGHT = ("start", "end")  # the columns needed to highlight a match in its context
LONG = ("context", "text", "command", "input")  # columns that get the remaining room
ENDS = ("path", "project", "file")  # show the end of these if they are too long
MAX_CELL = 36  # of other columns with text, unless there is room for more
MIN_CELL = 12  # of columns with text, if there is little room
MIN_SESSION_CELL = 8  # the beginning of an id is enough to distinguish it
MIN_LONG_CELL = 24
SHORTEST_LONG_CELL = 12  # before other columns are left out or cut to SHORTEST_CELL
SHORTEST_CELL = 4
MIN_SIDE = 8  # characters to keep before a match if its context is cut
COLUMN_COLOURS = {"path": 35, "name": 32, "role": 36, "type": 36, "model": 36}
MATCH_COLOUR = "1;31"
HEAD_COLOUR = "1"
BLANK_RUN = re.compile(r"\s+")


class TableLook(NamedTuple):
    """The look of a table.

    width: of the terminal in cells; None: nothing is cut.
    colours: whether ANSI colours are written.
    links: whether paths are hyperlinks (OSC 8).
    """

    width: int | None = None
    colours: bool = False
    links: bool = False

    def colour(self, text: str, code: object) -> str:
        """Return a text in an ANSI colour."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours and text else text


PLAIN_LOOK = TableLook()


class TableWriter:
    """Writes batches as a table.

    The terminal and the first rows decide the widths of the columns; without a terminal the first batch does.
    """

    def __init__(
        self,
        shown: Sequence[str],
        look: TableLook = PLAIN_LOOK,
        context: int | None = None,
        optional: Sequence[str] = (),
    ) -> None:
        """shown: the columns; a batch may have more.

        context: the number of characters before a match in a context, at most; None: nothing is highlighted.
        optional: columns to leave out on a narrow terminal, the first one first.
        """
        self.shown = list(shown)
        self.look = look
        self.context = context
        self.optional = optional
        self.widths: dict[str, int] = {}
        self.is_right: dict[str, bool] = {}

    def lines(self, batch: ArrowBatch) -> Iterator[str]:
        """Yield the lines of a batch, with the names of the columns before the first."""
        rows = [dict(zip(batch.names, row, strict=True)) for row in zip(*batch.columns(), strict=True)]
        if not rows:
            return
        if not self.widths:
            self.decide_widths(rows)
            heads = [(name, cut_end(self.head(name), self.widths[name])) for name in self.shown]
            yield self.look.colour(" ".join(self.pad(name, head, head) for name, head in heads).rstrip(), HEAD_COLOUR)
        for row in rows:
            yield " ".join(self.cell(name, row) for name in self.shown).rstrip()

    def head(self, name: str) -> str:
        """Return the head of a column."""
        return name if self.look.width is None else SHORT_HEADS.get(name, name)

    def decide_widths(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Set the width of each column, and leave out columns on a narrow terminal."""
        for name in self.shown:
            widest = max(count_cells(text_of(row[name])) for row in rows)
            kinds = {type(row[name]) for row in rows}
            self.is_right[name] = int in kinds
            if self.look.width is not None:
                widest = max(widest, NUMBER_CELLS if int in kinds else USUAL_CELLS.get(name, 0))
                if kinds & {str, list} and name not in LONG:
                    widest = min(widest, MAX_CELL)
            self.widths[name] = max(count_cells(self.head(name)), widest)
        if self.look.width is not None:
            has_text = [name for name in self.shown if any(isinstance(row[name], str | list) for row in rows)]
            self.fit(self.look.width, has_text)

    def fit(self, width: int, texts: Sequence[str]) -> None:
        """Make the columns as wide as the terminal: cut texts, then leave out columns, then cut the rest.

        A part of a long column, such as a match, stays visible as long as there is room for anything.

        width: of the terminal.  texts: the columns with texts.
        """
        wanted = dict(self.widths)
        long = [name for name in self.shown if name in LONG]
        for name in long:
            self.widths[name] = MIN_LONG_CELL
        short = [name for name in texts if name not in (*long, "session_id")]
        for name in sorted(short, key=wanted.__getitem__, reverse=True):
            self.narrow(name, MIN_CELL, width)
        self.leave_out(self.optional, width)
        for name in long:
            self.narrow(name, SHORTEST_LONG_CELL, width)
        if long and self.optional:
            self.leave_out(LEFT_OUT_FOR_LONG, width)
        others = [name for name in reversed(self.shown) if name not in long]
        for name, least in (
            ("session_id", MIN_SESSION_CELL),
            *((name, SHORTEST_CELL) for name in others if long),
            *((name, 0) for name in (*others, *long)),
        ):
            if name in self.shown:
                self.narrow(name, least, width)
        for name in long:
            self.widths[name] += max(0, min(MIN_LONG_CELL - self.widths[name], -self.excess_cells(width)))
        for name in (name for name in short if name in self.shown):  # the room of the left out columns
            self.widths[name] += min(wanted[name] - self.widths[name], max(0, -self.excess_cells(width)))
        growing = long or [name for name in self.shown if name in ENDS]
        room = max(0, -self.excess_cells(width))
        for place, name in enumerate(growing):
            more = room // (len(growing) - place)
            self.widths[name] += more
            room -= more

    def leave_out(self, names: Sequence[str], width: int) -> None:
        """Leave out columns until the table is as wide as the terminal."""
        for name in names:
            if self.excess_cells(width) > 0 and name in self.shown:
                self.shown.remove(name)

    def narrow(self, name: str, least: int, width: int) -> None:
        """Narrow a column until the table fits, but not below `least` cells."""
        if (excess := self.excess_cells(width)) > 0:
            self.widths[name] = min(self.widths[name], max(least, self.widths[name] - excess))

    def excess_cells(self, width: int) -> int:
        """Return by how many cells the table is wider than the terminal; negative if it is narrower."""
        return sum(self.widths[name] + 1 for name in self.shown) - 1 - width

    def cell(self, name: str, row: Mapping[str, Any]) -> str:
        """Return a row's value, as wide as its column."""
        width = self.widths[name] if self.look.width is not None else None
        if name == "context" and self.context is not None:
            return self.highlighted(row[name], min(row["start"], self.context), row["end"] - row["start"], width)
        text = text_of(row[name])
        if width is not None:
            value = row[name]
            if isinstance(value, int) and count_cells(text) > width:
                text = rounded(value)
            text = cut_start(text, width) if name in ENDS else cut_end(text, width)
        shown = self.look.colour(text, COLUMN_COLOURS[name]) if name in COLUMN_COLOURS else text
        if name == "path" and self.look.links and text:
            shown = f"\x1b]8;;{link_of(row[name])}\x1b\\{shown}\x1b]8;;\x1b\\"
        return self.pad(name, text, shown)

    def pad(self, name: str, text: str, shown: str) -> str:
        """Return the shown part of a text, with blanks around it."""
        blanks = " " * (self.widths[name] - count_cells(text))
        return blanks + shown if self.is_right[name] else shown + blanks

    def highlighted(self, text: str, start: int, length: int, width: int | None) -> str:
        """Return a context with its match highlighted; if it is too long, the part around the match."""
        before, match, after = map(one_line, (text[:start], text[start : start + length], text[start + length :]))
        if width is not None:
            match = cut_end(match, width)
            room = width - count_cells(match)
            side = max(room // 2, room - count_cells(after)) if room > MIN_SIDE else 0
            before = cut_start(before, side)
            after = cut_end(after, room - count_cells(before))
        return f"{before}{self.look.colour(match, MATCH_COLOUR)}{after}"


def write_table(batches: Iterable[ArrowBatch], writer: TableWriter, file: BinaryIO) -> None:
    """Write batches as a table, and flush after each."""
    for batch in batches:
        lines = "".join(f"{line}\n" for line in writer.lines(batch))
        file.write(lines.encode("utf-8", "backslashreplace"))
        file.flush()


def text_of(value: object) -> str:
    """Return a value on one line, for a person: times in this computer's zone, nothing for a null."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return in_zone(value).replace(tzinfo=None).isoformat(" ", "seconds")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return one_line(", ".join(value) if isinstance(value, list) else str(value))


def rounded(number: int) -> str:
    """Return a number in few characters.

    >>> rounded(1234567), rounded(98765)
    ('1.2M', '98.8k')
    """
    for unit, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if abs(number) >= unit:
            return f"{number / unit:.1f}{letter}"
    return str(number)


def one_line(text: str) -> str:
    """Return a text on one line, with runs of blank space as one blank and control characters as escapes."""
    text = BLANK_RUN.sub(" ", text)
    return text if text.isprintable() else "".join(one if is_visible(one) else ascii(one)[1:-1] for one in text)


def cut_end(text: str, width: int) -> str:
    """Cut the end of a text so that it fits into `width` cells.

    >>> cut_end("transcript", 6)
    'trans…'
    """
    if count_cells(text) <= width:
        return text
    while text and count_cells(text) >= width:
        text = text[: -max(1, (count_cells(text) - width) // 2)]
    return f"{text}…" if width > 0 else ""


def cut_start(text: str, width: int) -> str:
    """Cut the beginning of a text so that it fits into `width` cells."""
    if count_cells(text) <= width:
        return text
    while text and count_cells(text) >= width:
        text = text[max(1, (count_cells(text) - width) // 2) :]
    return f"…{text}" if width > 0 else ""


def cut_middle(text: str, width: int) -> str:
    """Return the beginning and the end of a text, as many cells as there are.

    >>> cut_middle("transcript", 7)
    'tra…ipt'
    """
    if count_cells(text) <= width:
        return text
    return cut_end(text, width - width // 2) + cut_start(text, width // 2 + 1)[1:]


def link_of(path: str) -> str:
    """Return the URL of a path."""
    return path if "://" in path else Path(path).absolute().as_uri()
