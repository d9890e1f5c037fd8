"""Writes the rows of a scan by a command's flags: counted, limited, sorted, in a format, to stdout or a file."""

import argparse
import io
import os
import select
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tailhook.cli.output import coloured, naming_output, print_facts
from tailhook.fleet.columns import CONTEXT_CHARS

LINE_END_S = 1.0  # for the reader of a pipe to take the end of a long line after Ctrl-C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

    from tailhook._core import ArrowBatch
    from tailhook.cli.table import TableLook
    from tailhook.fleet.scan import Scan


def write_chosen(
    arguments: argparse.Namespace, scan: "Scan", columns: "Iterable[str]", batches: "Iterable[ArrowBatch]"
) -> int | None:
    """Write the rows by the flags, and return their number; None with --count: then the number is printed.

    Raises CommandError or OSError if the output cannot be written.
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
            with whole_lines(sys.stdout.buffer) as file:
                write_rows(arguments, scan, tuple(columns), chosen, file)
    return counter.rows


@contextmanager
def whole_lines(file: BinaryIO) -> "Iterator[BinaryIO]":
    """Yield a file that gets whole lines, even if Ctrl-C ends the block while the reader of a pipe is slow."""
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    except OSError:  # it has no descriptor
        is_pipe = False
    if not is_pipe or threading.current_thread() is not threading.main_thread():
        yield file
        return
    file.flush()
    pipe = LinePipe(file)
    usual = signal.signal(signal.SIGINT, pipe.interrupt)
    try:
        yield cast("BinaryIO", pipe)
    except KeyboardInterrupt:
        pipe.end_line()
        raise
    finally:
        signal.signal(signal.SIGINT, usual)


class LinePipe(io.RawIOBase):
    """Writes to a pipe as many whole lines as it takes at once, so that Ctrl-C does not cut a line.

    Only a longer line is written in parts.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.fd = file.fileno()
        self.rest = memoryview(b"")  # not written yet
        self.is_in_line = False  # a part of a line is written
        self.is_writing = self.was_interrupted = False

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def interrupt(self, *_: object) -> None:
        """Raise KeyboardInterrupt, except while it is unknown how much was written."""
        self.was_interrupted = True
        if not self.is_writing:
            raise KeyboardInterrupt

    def write(self, data: "Buffer") -> int:
        self.rest = memoryview(data).cast("B")
        size = len(self.rest)
        while self.rest:
            select.select([], [self.fd], [])
            self._write_some()
        return size

    def _write_some(self) -> None:
        """Write as much as a pipe with room takes without waiting: PIPE_BUF bytes (pipe(7))."""
        some = bytes(self.rest[: select.PIPE_BUF])
        end = some.find(b"\n") + 1 if self.is_in_line else some.rfind(b"\n") + 1
        self.is_writing = True
        try:
            done = os.write(self.fd, some[: end or len(some)])
            self.is_in_line = done < end or not end
            self.rest = self.rest[done:]
        finally:
            self.is_writing = False
        if self.was_interrupted:
            raise KeyboardInterrupt

    def end_line(self) -> None:
        """Write the rest of a partly written line, if the reader takes it soon."""
        self.was_interrupted = False
        until = time.monotonic() + LINE_END_S
        while self.is_in_line and self.rest and (left := until - time.monotonic()) > 0:
            if select.select([], [self.fd], [], left)[1]:
                self._write_some()


class RowCounter:
    """Counts the rows of batches during reading, and ends after `limit` of them."""

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
    """Write batches to a file in the chosen format."""
    from tailhook._core import make_batch
    from tailhook.cli.table import OPTIONAL, TableWriter, write_table
    from tailhook.fleet.output import FILE_WRITERS, TEXT_WRITERS

    if arguments.format == "table":
        context = CONTEXT_CHARS if arguments.context is None else arguments.context
        optional = OPTIONAL if arguments.columns is None else ()
        write_table(batches, TableWriter(columns, look(file), None if arguments.redact else context, optional), file)
        return
    kept = (batch.select(columns) for batch in batches)  # without columns needed only for the order
    if arguments.format in TEXT_WRITERS:
        TEXT_WRITERS[arguments.format](kept, columns, file)
    else:
        FILE_WRITERS[arguments.format](kept, make_batch(scan.table, columns, []), file)


def look(file: BinaryIO) -> "TableLook":
    """Return how a table is drawn in a file: with colours, links and cut lines on a terminal."""
    from tailhook.cli.table import TableLook

    if not file.isatty():
        return TableLook(None, coloured("x", 1) != "x" and file is sys.stdout.buffer)
    is_simple = os.environ.get("TERM") == "dumb"
    return TableLook(shutil.get_terminal_size().columns, coloured("x", 1) != "x", not is_simple)
