"""Draws rows as a table for a person, with colours, links and highlighted matches on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tailhook._core import ArrowBatch
from tailhook.fleet.columns import TOKEN_COLUMNS
from tailhook.machines import is_visible
from tailhook.terminal import count_cells

# The columns that are shown if none are chosen: those that fit on a line.
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
HIGHLIGHT = ("start", "end")  # the columns that are needed to highlight a match in its context
LONG = ("context", "text", "command", "input")  # columns that get the room that others leave
ENDS = ("path", "project", "file")  # of which the end is shown if they are too long
MAX_CELL = 36  # of other columns with text; on a narrow terminal a quarter of it
MIN_LAST_CELL = 24
MIN_SIDE = 8  # characters before a match that stay if its context is cut
COLUMN_COLOURS = {"path": 35, "name": 32, "role": 36, "type": 36, "model": 36}
MATCH_COLOUR = "1;31"
HEAD_COLOUR = "1"
BLANK_RUN = re.compile(r"\s+")


class TableLook(NamedTuple):
    """How a table is drawn.

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
    """Writes batches as a table. The first batch decides how wide the columns are."""

    def __init__(self, shown: Sequence[str], look: TableLook = PLAIN_LOOK, context: int | None = None) -> None:
        """shown: the columns; a batch may have more of them.

        context: how many characters of contexts are before a match, if there are so many; None: nothing is highlighted.
        """
        self.shown = list(shown)
        self.look = look
        self.context = context
        self.widths: dict[str, int] = {}
        self.is_right: dict[str, bool] = {}

    def lines(self, batch: ArrowBatch) -> Iterator[str]:
        """Yield the lines of a batch, with the names of the columns before the first."""
        rows = [dict(zip(batch.names, row, strict=True)) for row in zip(*batch.columns(), strict=True)]
        if not rows:
            return
        if not self.widths:
            self.decide_widths(rows)
            names = [self.pad(name, name, name) for name in self.shown]
            yield self.look.colour(" ".join(names).rstrip(), HEAD_COLOUR)
        for row in rows:
            yield " ".join(self.cell(name, row) for name in self.shown).rstrip()

    def decide_widths(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Set how wide each column is."""
        for name in self.shown:
            texts = [text_of(row[name]) for row in rows]
            widest = max(map(count_cells, texts))
            self.is_right[name] = any(isinstance(row[name], int) and not isinstance(row[name], bool) for row in rows)
            has_text = any(isinstance(row[name], str | list) for row in rows)
            if self.look.width is not None and has_text and name not in LONG:
                widest = min(widest, MAX_CELL, self.look.width // 4)
            self.widths[name] = max(len(name), widest)
        if self.look.width is None:
            return
        long = [name for name in self.shown if name in LONG]
        taken = sum(self.widths[name] + 1 for name in self.shown if name not in long)
        for name in long:
            room = (self.look.width - taken - len(long) + 1) // len(long)
            self.widths[name] = max(len(name), MIN_LAST_CELL, min(self.widths[name], room))

    def cell(self, name: str, row: Mapping[str, Any]) -> str:
        """Return a row's value, as wide as its column."""
        width = self.widths[name] if self.look.width is not None else None
        if name == "context" and self.context is not None:
            return self.highlighted(row[name], min(row["start"], self.context), row["end"] - row["start"], width)
        text = text_of(row[name])
        if width is not None:
            text = cut_start(text, width) if name in ENDS else cut_end(text, width)
        shown = self.look.colour(text, COLUMN_COLOURS[name]) if name in COLUMN_COLOURS else text
        if name == "path" and self.look.links and row[name]:
            shown = f"\x1b]8;;{link_of(row[name])}\x1b\\{shown}\x1b]8;;\x1b\\"
        return self.pad(name, text, shown)

    def pad(self, name: str, text: str, shown: str) -> str:
        """Return what is shown of a text with blanks around it."""
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
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return one_line(", ".join(value) if isinstance(value, list) else str(value))


def one_line(text: str) -> str:
    """Return a text on one line, with runs of blank space as one blank and escapes for what steers a terminal."""
    text = BLANK_RUN.sub(" ", text)
    return text if text.isprintable() else "".join(one if is_visible(one) else ascii(one)[1:-1] for one in text)


def cut_end(text: str, width: int) -> str:
    """Return the beginning of a text, as many cells as there are.

    >>> cut_end("transcript", 6)
    'trans…'
    """
    if count_cells(text) <= width:
        return text
    while text and count_cells(text) >= width:
        text = text[: -max(1, (count_cells(text) - width) // 2)]
    return f"{text}…" if width > 0 else ""


def cut_start(text: str, width: int) -> str:
    """Return the end of a text, as many cells as there are."""
    if count_cells(text) <= width:
        return text
    while text and count_cells(text) >= width:
        text = text[max(1, (count_cells(text) - width) // 2) :]
    return f"…{text}" if width > 0 else ""


def link_of(path: str) -> str:
    """Return the URL of a path."""
    return path if "://" in path else Path(path).absolute().as_uri()
