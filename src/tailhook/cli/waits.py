"""`tailhook plates waits`: how long agents waited for the person, by day and project."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from tailhook.cli.output import coloured, counted
from tailhook.hook.answer import plain
from tailhook.pictures.axis import format_duration
from tailhook.pictures.terminal import count_cells

WAIT_COLUMNS = ("DAY", "PROJECT", "WAITED", "WAITS", "MEDIAN", "MAX")
ALL = "all"  # projects
NOTHING = "-"
BOLD = 1
NOTHING_KEPT = (
    "Nothing is known yet, because no event is stored. To let the hooks report them:  tailhook install --with plates"
)
WHAT_IT_IS = (
    "How long agents waited for your answers and approvals, at night too. Agents that wait at the same time add up.",
    "A wait over midnight is counted in both days. A wait that has not ended is counted until now.",
)


def day_edges(today: date, days: int) -> list[int]:
    """Return the local midnights of the last days, and the one at the end of today, in Unix milliseconds."""
    dates = [today - timedelta(days=back) for back in range(days - 1, -2, -1)]
    return [int(datetime(day.year, day.month, day.day).timestamp() * 1000) for day in dates]


def day_of(interval: "dict[str, Any]") -> date:
    """Return the local day that begins with an interval."""
    return datetime.fromtimestamp(interval["start"] / 1000).date()


def waits_facts(answer: "dict[str, Any]") -> "dict[str, Any]":
    """Return the daemon's answer to `GET /waits` for programs: with the date of each day."""
    days = [{"day": day_of(interval).isoformat(), **interval} for interval in answer["intervals"]]
    return {"days": days, "total": answer["total"]}


def waits_lines(answer: "dict[str, Any]", days: int, project: str | None) -> list[str]:
    """Return the daemon's answer to `GET /waits` as a table, or one line that there is nothing.

    days, project: that were asked for.
    """
    intervals, total = answer["intervals"], answer["total"]
    if total is None:
        return [NOTHING_KEPT]
    since = f"{day_of(total):%a %d %b}"
    if not total["waits"]:
        sessions = "No session" if project is None else f"No session of {plain(project)}"
        return [f"{sessions} has waited for you since {since}."]
    rows = [row for one in intervals for row in figure_rows(f"{day_of(one):%a %d %b}", one)]
    sums = figure_rows(counted(len(intervals), "days"), total) if len(intervals) > 1 else []
    drawn = draw_figures([WAIT_COLUMNS, *rows, *sums])
    note = [f"No event before {since} is stored."] if len(intervals) < days else []
    return [coloured(drawn[0], BOLD), *drawn[1 : len(rows) + 1], "", *drawn[len(rows) + 1 :], "", *WHAT_IT_IS, *note]


def figure_rows(label: str, interval: "dict[str, Any]") -> list[tuple[str, ...]]:
    """Return the rows of an interval: one for each project, and one for all if they are several."""
    named = [(plain(one["name"]), one) for one in interval["projects"]]
    if len(named) != 1:
        named.append((ALL if named else NOTHING, interval))
    return [("" if at else label, name, *figure_cells(of)) for at, (name, of) in enumerate(named)]


def figure_cells(figures: "dict[str, Any]") -> tuple[str, ...]:
    """Return the cells of a row."""
    if not figures["waits"]:
        return (NOTHING,) * 4
    lengths = (figures[name] for name in ("waited_ms", "median_ms", "longest_ms"))
    waited, median, longest = (format_duration(length / 1000) for length in lengths)
    return waited, f"{figures['waits']:,}", median, longest


def draw_figures(rows: Sequence[Iterable[str]]) -> list[str]:
    """Return rows as lines: the first two columns to the left, the figures to the right."""
    widths = [max(map(count_cells, column)) for column in zip(*rows, strict=True)]
    drawn = []
    for row in rows:
        cells = []
        for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
            blanks = " " * (width - count_cells(cell))
            cells.append(blanks + cell if at > 1 else cell + blanks)
        drawn.append("  ".join(cells))
    return drawn
