"""`tailhook usage`: tokens by day, model, project and so on; their cost, with a price list."""

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tailhook.cli.output import (
    Commands,
    UsageError,
    add_json,
    check_stdout,
    coloured,
    command,
    counted,
    print_json,
    print_lines,
)
from tailhook.cli.scan import add_conditions, add_sources, add_workers, make_scan, missing_lines, run
from tailhook.fleet.columns import PRICE_COLUMNS, TOKEN_COLUMNS, USAGE_GROUPINGS
from tailhook.hook.answer import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook._core import ArrowBatch
    from tailhook.cli.prices import PriceList
    from tailhook.cli.totals import Total
    from tailhook.fleet.scan import Scan

NO_NAME = {"agent": "main conversation"}  # words for a group without a name
NO_COST = "\N{EN DASH}"
HEADS = ("responses", "input", "output", "cache read", "cache creation", "all tokens")
OPTIONAL_HEADS = (
    "cache creation",
    "cache read",
    "responses",
    "input",
    "output",
    "all tokens",
)  # in the order of leaving them out
MIN_NAME_CELLS = 10
MIN_COLUMNS = 2  # shown beside the names in any case


def add(commands: Commands) -> None:
    """Declare the command."""
    about = "add up the tokens of all sessions, each response counted once"
    parser = command(commands, "usage", usage, about, "tailhook usage --by model --since 30d")
    add_sources(parser)
    parser.add_argument("--by", choices=USAGE_GROUPINGS, default="day", help="what each line adds up (default: day)")
    add_conditions(parser)
    parser.add_argument("--prices", metavar="FILE", help="a price list of LiteLLM: adds the cost")
    add_workers(parser)
    add_json(parser)


def usage(arguments: argparse.Namespace) -> int:
    """Print the totals. Return 1 if a source could not be read."""
    from tailhook.cli.prices import read_prices
    from tailhook.cli.progress import ProgressView
    from tailhook.cli.totals import total_columns

    check_stdout("redirect it to a file")
    if arguments.prices == "":
        raise UsageError("--prices is an empty name: give a file")
    prices = None if arguments.prices is None else read_prices(arguments.prices)
    view = ProgressView()
    scan = make_scan(arguments, table="usage", columns=total_columns(arguments.by), progress=view)
    if prices is not None:
        scan = scan._with_columns(PRICE_COLUMNS)
    return run(scan, view, lambda batches: print_totals(arguments, scan, prices, batches), "responses")


def print_totals(
    arguments: argparse.Namespace, scan: "Scan", prices: "PriceList | None", batches: "Iterable[ArrowBatch]"
) -> int:
    """Add up and print. Return the number of responses."""
    from tailhook.cli.totals import add_up

    groups, whole, unpriced = add_up(batches, arguments.by, prices)
    if arguments.json:
        print_json(
            {
                "by": arguments.by,
                "groups": [{arguments.by: name, **total_facts(total, prices)} for name, total in groups.items()],
                "total": total_facts(whole, prices),
                "responses_without_input": whole.without_input,
                "unpriced_models": [{"model": name, "responses": one.responses} for name, one in unpriced.items()],
                "skipped": [problem._asdict() for problem in scan.report.skipped],
            }
        )
        warn_of_old_chats(scan)
        return whole.responses
    if groups:
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print_lines(*table_lines(arguments.by, groups, whole, prices, room))
    elif not missing_lines(scan):  # otherwise these are printed
        given = [f"--{name}" for name in ("since", "until") if getattr(arguments, name) is not None]
        fits = f" fits {' and '.join(given)}" if given else ""
        sys.stderr.write(f"tailhook: no response with tokens in {counted(scan.report.files, 'files')}{fits}\n")
    warn_of_old_chats(scan)
    if whole.without_input:
        count = counted(whole.without_input, "responses")
        sys.stderr.write(f"tailhook: the input tokens of {count} are not counted: the transcripts lack them\n")
    for name, total in unpriced.items():
        count = counted(total.responses, "responses")
        print_lines(plain(f"No price for {name or 'a response without a model'}: {count} without a cost."))
    return whole.responses


def warn_of_old_chats(scan: "Scan") -> None:
    """Print on stderr how many chats of Gemini CLI are not counted, if there are any."""
    if old := count_old_chats(scan):
        are = "is" if old == 1 else "are"
        sys.stderr.write(
            f"tailhook: {counted(old, 'chats')} of older versions of Gemini CLI (.json) {are} not counted\n"
        )


def count_old_chats(scan: "Scan") -> int:
    """Return how many chats of Gemini CLI are only in files of its old form, one JSON object. No scan reads these.

    A source that cannot be reached has none: it is in the scan's report.
    """
    from pathlib import Path

    from tailhook.fleet.listing import default_folders, paths_of
    from tailhook.transcripts.urls import is_url

    sources = default_folders([]) if scan.sources is None else [os.fspath(source) for source in scan.sources]
    named = [Path(path) for source in sources if not is_url(source) for path in paths_of(source, [])]
    old: set[Path] = set()
    for path in named:
        with suppress(OSError):  # CPython before 3.14 raises for a name that is too long
            if path.is_dir():
                for below in ("", "chats/", "*/chats/", "tmp/*/chats/"):
                    old.update(path.glob(f"{below}session-*.json"))
            elif path.match("session-*.json") and path.exists():
                old.add(path)
    return sum(not path.with_suffix(".jsonl").exists() for path in old)


def total_facts(total: "Total", prices: "PriceList | None") -> dict[str, Any]:
    """Return a total for a program. The cost is in US dollars, rounded to millionths; None if nothing has a price."""
    facts: dict[str, Any] = {"responses": total.responses, **dict(zip(TOKEN_COLUMNS, total.tokens, strict=True))}
    if prices is not None:
        cost = None if total.is_unpriced else round(float(total.cost), 6)
        facts |= {"cost": cost, "unpriced_responses": total.unpriced}
    return facts


def table_lines(
    by: str, groups: "dict[str | None, Total]", whole: "Total", prices: "PriceList | None", room: int | None = None
) -> list[str]:
    """Return the totals as a table.

    room: the width of the terminal, None without one. If it is narrow, names are cut and columns left out; more lines
        name these. Names that would look the same are cut in their middle; if they still look the same, they are not
        cut.
    """
    from tailhook.cli.table import cut_end, cut_middle, cut_start
    from tailhook.pictures.terminal import count_cells

    heads = (by, *HEADS, *(("cost",) if prices else ()))
    rows = [figures(plain(name or NO_NAME.get(by, "unknown")), total, prices) for name, total in groups.items()]
    lines = [heads, *rows, figures("total", whole, prices)]
    widths = [max(map(count_cells, column)) for column in zip(*lines, strict=True)]
    shown = list(range(len(heads)))
    cut = cut_start if by == "project" else cut_end
    if room is not None:
        names = {line[0] for line in lines}
        for head in OPTIONAL_HEADS:
            left = room - sum(widths[place] + 2 for place in shown[1:])
            are_alike = len({cut(name, left) for name in names}) < len(names)
            if left < min(widths[0], MIN_NAME_CELLS) or (are_alike and len(shown) > MIN_COLUMNS):
                shown.remove(heads.index(head))
        left = max(0, min(widths[0], room - sum(widths[place] + 2 for place in shown[1:])))
        if len({cut(name, left) for name in names}) < len(names):
            cut = cut_middle
        if left < MIN_NAME_CELLS or len({cut(name, left) for name in names}) == len(names):
            widths[0] = left
    drawn = []
    for line in lines:
        name = cut(line[0], widths[0])
        blanks = " " * (widths[0] - count_cells(name))
        drawn.append("  ".join([name + blanks, *(line[place].rjust(widths[place]) for place in shown[1:])]))
    out = [head for place, head in enumerate(heads) if place not in shown]
    notes = textwrap.wrap(f"Left out for lack of room: {', '.join(out)}. --json has all.", room or 0) if out else []
    return [coloured(drawn[0], 1), *drawn[1:-1], coloured(drawn[-1], 1), *notes]


def figures(name: str, total: "Total", prices: "PriceList | None") -> tuple[str, ...]:
    """Return the cells of a line."""
    counts = (total.responses, *total.tokens, sum(total.tokens))
    cost = (format_cost(total),) if prices else ()
    return (name, *(f"{count:,}" for count in counts), *cost)


def format_cost(total: "Total") -> str:
    """Return a cost in dollars; a lower limit if some responses have no price, a dash if all have none."""
    if total.is_unpriced:
        return NO_COST
    return f"{'≥ ' if total.unpriced else ''}${total.cost:,.2f}"
