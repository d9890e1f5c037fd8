"""An explained message as lines of a terminal: each line of the text, and under it its marks with their reasons."""

import textwrap
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tailhook.hook.answer import plain
from tailhook.pictures.explanation import Explanation, TextMark
from tailhook.pictures.explanation_lines import ShownLine, TextRun, cut_lines, format_note
from tailhook.pictures.terminal import count_cells

MIN_WIDTH, MAX_WIDTH = 40, 160  # columns
MIN_NOTE_COLUMNS = 28  # behind a mark; with less room, the note begins on a new row
TAB = "    "
PROSE_BAR, CODE_BAR = "│", "┊"
CARETS = {"signal": "^", "keyword": "~", "booster": "-", "negation": "-"}

Paint = Callable[[str, str], str]  # returns words in a style: "code", "counts", "ignored" or "faint"


class Letter(NamedTuple):
    """A character in its form for the terminal.

    place: in the text.  words: the printed text. columns: its width.
    """

    place: int
    words: str
    columns: int


def draw_explanation(explanation: Explanation, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of the picture.

    width: of the terminal, in columns.
    """
    lines = list(cut_lines(explanation))
    gutter = len(str(lines[-1].number)) if lines else 1
    room = min(max(width, MIN_WIDTH), MAX_WIDTH) - gutter - 3
    for line in lines:
        label = f"{line.number:>{gutter}}"
        rows = wrap_letters(spell_letters(explanation.text, line), room)
        waiting = deque(line.marks)
        for row in rows:
            bar = CODE_BAR if line.is_code else PROSE_BAR
            yield f"{paint(f'{label} {bar}', 'faint')} {paint_row(row, line, paint)}".rstrip()
            label = " " * gutter
            last = row[-1].place + 1 if row else line.end
            going_on = []
            while waiting and waiting[0].start < last:
                mark = waiting.popleft()
                ends_here = mark.end <= last or row is rows[-1]
                for words in draw_mark(mark, row, room, ends_here):
                    style = "counts" if mark.counts else "ignored"
                    yield f"{paint(f'{label} {PROSE_BAR}', 'faint')} {paint(words, style)}"
                if not ends_here:
                    going_on.append(mark)
            waiting.extendleft(reversed(going_on))


def spell_letters(text: str, line: ShownLine) -> list[Letter]:
    """Return the characters of a line in their printed form."""
    letters = []
    for place in range(line.start, line.end):
        letter = text[place]
        words = TAB if letter == "\t" else letter if letter.isprintable() else plain(letter)
        letters.append(Letter(place, words, count_cells(words)))
    return letters


def wrap_letters(letters: list[Letter], room: int) -> list[list[Letter]]:
    """Return the rows of a line: broken behind a blank if one is in the last third of a row. At least one row."""
    rows: list[list[Letter]] = []
    row: list[Letter] = []
    columns = 0
    for letter in letters:
        if columns + letter.columns > room and row:
            blank = next((i for i in range(len(row) - 1, 2 * len(row) // 3, -1) if row[i].words == " "), len(row) - 1)
            rows.append(row[: blank + 1])
            row = row[blank + 1 :]
            columns = sum(one.columns for one in row)
        row.append(letter)
        columns += letter.columns
    return [*rows, row] if row or not rows else rows


def paint_row(row: list[Letter], line: ShownLine, paint: Paint) -> str:
    """Return a row of the text, each run in its style."""
    painted = []
    place = 0
    first = bisect_right(line.runs, row[0].place, key=run_end) if row else 0
    for run in islice(line.runs, first, None):
        if place == len(row):
            break
        words = ""
        while place < len(row) and row[place].place < run.end:
            if row[place].place >= run.start:
                words += row[place].words
            place += 1
        if words:
            style = ("counts" if run.mark.counts else "ignored") if run.mark else "code" if run.is_code else ""
            painted.append(paint(words, style) if style else words)
    return "".join(painted)


def run_end(run: TextRun) -> int:
    """Return the end of a run."""
    return run.end


def draw_mark(mark: TextMark, row: list[Letter], room: int, ends_here: bool) -> Sequence[str]:
    """Return the rows under a row of the text: a mark, and its note if the mark ends here."""
    before = sum(letter.columns for letter in row if letter.place < mark.start)
    under = sum(letter.columns for letter in row if mark.start <= letter.place < mark.end)
    carets = " " * before + CARETS[mark.kind] * max(under, 1)
    if not ends_here:
        return [carets]
    note = f"{'✓' if mark.counts else '✗'} {format_note(mark)}"
    left = room - len(carets) - 1
    if len(note) <= left:
        return [f"{carets} {note}"]
    if left >= MIN_NOTE_COLUMNS:
        rows = textwrap.wrap(note, left, subsequent_indent="  ")
        return [f"{carets} {rows[0]}", *(f"{' ' * len(carets)} {row}" for row in rows[1:])]
    return [carets, *textwrap.wrap(note, room, initial_indent="  ", subsequent_indent="    ")]
