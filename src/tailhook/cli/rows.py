"""Writes the rows of a scan as a command's flags ask: counted, cut off, sorted, in a format, to stdout or a file."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from tailhook.cli.output import coloured, naming_output, print_facts
from tailhook.fleet.columns import CONTEXT_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook._core import ArrowBatch
    from tailhook.fleet.scan import Scan
    from tailhook.fleet.table import TableLook


def write_chosen(
    arguments: argparse.Namespace, scan: "Scan", columns: "Iterable[str]", batches: "Iterable[ArrowBatch]"
) -> int | None:
    """Write the rows as the flags ask, and return how many there are, or None with --count, which prints the number.

    Raises CommandError and OSError for an output that cannot be written.
    """
    from tailhook.fleet.output import whole_file

    counter = RowCounter(batches)
    chosen: Iterable[ArrowBatch] = counter
    if arguments.sort:
        chosen = sorted_batches(scan, chosen, arguments.sort)
    if arguments.limit:
        chosen = counter = RowCounter(chosen, arguments.limit)
    if arguments.count:
        for _ in chosen:
            pass
        print_facts(arguments, {"rows": counter.rows}, str(counter.rows))
        return None
    with naming_output(arguments.output or "standard output"):
        if arguments.output:
            with whole_file(Path(arguments.output)) as file:
                write_rows(arguments, scan, tuple(columns), chosen, file)
        else:
            write_rows(arguments, scan, tuple(columns), chosen, sys.stdout.buffer)
    return counter.rows


class RowCounter:
    """Counts the rows of batches while they are read, and ends after `limit` of them."""

    def __init__(self, batches: "Iterable[ArrowBatch]", limit: int | None = None) -> None:
        self.batches, self.limit = batches, limit
        self.rows = 0

    def __iter__(self) -> "Iterator[ArrowBatch]":
        for batch in self.batches:
            if self.limit is not None and self.rows + len(batch) >= self.limit:
                last = batch.head(self.limit - self.rows)
                self.rows += len(last)
                yield last
                return
            self.rows += len(batch)
            yield batch


def sorted_batches(scan: "Scan", batches: "Iterable[ArrowBatch]", order: str) -> "Iterator[ArrowBatch]":
    """Yield all rows, sorted by a column; those without a value come last. Holds all rows in memory."""
    from tailhook._core import make_batch
    from tailhook.fleet.answer import BATCH_ROWS

    rows = [row for batch in batches for row in zip(*batch.columns(), strict=True)]
    place = scan.columns.index(order.removesuffix(":desc"))
    valued = [row for row in rows if row[place] is not None]
    valued.sort(key=lambda row: row[place], reverse=order.endswith(":desc"))
    valued += [row for row in rows if row[place] is None]
    for start in range(0, len(valued), BATCH_ROWS):
        yield make_batch(scan.table, scan.columns, valued[start : start + BATCH_ROWS])


def write_rows(
    arguments: argparse.Namespace,
    scan: "Scan",
    columns: tuple[str, ...],
    batches: "Iterable[ArrowBatch]",
    file: BinaryIO,
) -> None:
    """Write batches to a file in the format that was chosen."""
    from tailhook._core import make_batch
    from tailhook.fleet.output import FILE_WRITERS, TEXT_WRITERS
    from tailhook.fleet.table import OPTIONAL, TableWriter, write_table

    if arguments.format == "table":
        context = CONTEXT_CHARS if arguments.context is None else arguments.context
        optional = OPTIONAL if arguments.columns is None else ()
        write_table(batches, TableWriter(columns, look(file), None if arguments.redact else context, optional), file)
        return
    kept = (batch.select(columns) for batch in batches)  # without those that only the order needed
    if arguments.format in TEXT_WRITERS:
        TEXT_WRITERS[arguments.format](kept, columns, file)
    else:
        FILE_WRITERS[arguments.format](kept, make_batch(scan.table, columns, []), file)


def look(file: BinaryIO) -> "TableLook":
    """Return how a table is drawn in a file: with colours, links and cut lines on a terminal."""
    from tailhook.fleet.table import TableLook

    if not file.isatty():
        return TableLook(None, coloured("x", 1) != "x" and file is sys.stdout.buffer)
    is_simple = os.environ.get("TERM") == "dumb"
    return TableLook(shutil.get_terminal_size().columns, coloured("x", 1) != "x", not is_simple)
