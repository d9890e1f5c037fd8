"""Writes the rows of a scan as JSON lines, CSV, Parquet or Arrow, to a stream or to a file that appears whole.

tailhook/fleet/table.py draws them as a table.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from tailhook._core import ArrowBatch, make_batch
from tailhook.errors import MissingExtraError, TailhookError


class OutputError(TailhookError, OSError):
    """A file cannot be written."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a binary file that is renamed to `path` when the block ends; after an exception nothing is left of it.

    Raises OSError, also if the disk is full, and if `path` is a folder, a device or a pipe.
    """
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is not a regular file: rows are only written to one")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        if error.filename == str(part):
            error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def plain_value(value: object) -> object:
    """Return a value as JSON and CSV have it: a time as ISO 8601 in UTC."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


def write_jsonl(batches: Iterable[ArrowBatch], columns: Sequence[str], file: BinaryIO) -> None:
    """Write an object for each row, and flush after each batch."""
    for batch in batches:
        for row in zip(*batch.columns(), strict=True):
            fields = dict(zip(columns, map(plain_value, row), strict=True))
            file.write(orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE))
        file.flush()


def write_csv(batches: Iterable[ArrowBatch], columns: Sequence[str], file: BinaryIO) -> None:
    """Write a line with the names, and one for each row (RFC 4180). A list is JSON."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(columns)
    for batch in batches:
        for row in zip(*batch.columns(), strict=True):
            writer.writerow(
                orjson.dumps(value).decode() if isinstance(value, list) else plain_value(value) for value in row
            )
        text.flush()
    text.detach()


def write_arrow(batches: Iterable[ArrowBatch], schema: ArrowBatch, file: BinaryIO) -> None:
    """Write Arrow's IPC file format. Raises MissingExtraError without pyarrow."""
    pyarrow = import_pyarrow()
    found = pyarrow.schema(schema)
    with pyarrow.ipc.new_file(file, found) as writer:
        for batch in batches:
            writer.write_batch(pyarrow.record_batch(batch))


def write_parquet(
    batches: Iterable[ArrowBatch], schema: ArrowBatch, file: BinaryIO, metadata: Mapping[bytes, bytes] | None = None
) -> None:
    """Write Parquet. Raises MissingExtraError without pyarrow.  metadata: of the file."""
    pyarrow = import_pyarrow()
    found = pyarrow.schema(schema).with_metadata(metadata)
    with pyarrow.parquet.ParquetWriter(file, found, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(pyarrow.record_batch(batch))


def from_pyarrow(table: str, batch: Any) -> ArrowBatch:
    """Return a record batch of pyarrow with columns of a table, or of its halves, as one of the core."""
    rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return make_batch(table, tuple(batch.schema.names), rows)


def import_pyarrow() -> Any:
    """Return the module. Raises MissingExtraError."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        message = f"Parquet and Arrow files need pyarrow ({error}). Install it:  pip install 'tailhook[scan]'"
        raise MissingExtraError(message) from error
    return pyarrow


TEXT_WRITERS: dict[str, Callable[[Iterable[ArrowBatch], Sequence[str], BinaryIO], None]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
}
FILE_WRITERS: dict[str, Callable[[Iterable[ArrowBatch], ArrowBatch, BinaryIO], None]] = {
    "arrow": write_arrow,
    "parquet": write_parquet,
}
