"""What a scan reports of itself: how far it is, and at the end what it read and what it could not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tailhook.fleet.plan import ScanProblem


class ScanReport(NamedTuple):
    """What a scan read.

    files, bytes: that were read; the bytes are those of the transcripts, decompressed.
    records, broken_lines: of the lines that were decoded. The tables records and sessions decode all lines; the others
        only those that could give a row.
    long_lines: lines that were skipped because they are longer than 16 MiB.
    seconds: None while it runs.
    skipped: sources that could not be read, each with the reason.
    unknown_types: how many of the decoded records have a type that tailhook does not know, by (type, host version).
    older_files: that were not opened, because they were last modified more than a day before `since`.
    unchanged_files: files that were not opened, because `resume` has their rows.
    """

    files: int
    bytes: int
    records: int
    broken_lines: int
    long_lines: int
    seconds: float | None
    skipped: tuple[ScanProblem, ...]
    unknown_types: dict[tuple[str, str], int]
    older_files: int
    unchanged_files: int


class Progress(NamedTuple):
    """How far a scan is.

    files, bytes: that are done, compressed files with the size that they have on disk.
    all_files, all_bytes: that there are to read; with `resume`, what is new.

    A table that reads all files twice counts each half after the first time.
    """

    files: int
    bytes: int
    all_files: int
    all_bytes: int


Watch = Callable[[Progress], object]  # a function that is called while a scan runs; what it returns is not used
