"""Writes the rows of a scan as JSON lines, CSV, Parquet or Arrow, to a stream or to a file that appears whole.

tailhook/cli/table.py draws them as a table.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from tailhook._core import ArrowBatch, make_batch
from tailhook.errors import MissingExtraError, TailhookError, install_command
from tailhook.transcripts.orjson_import import orjson

ENCODED_ROWS = 500  # at once, as JSON
ACL = "system.posix_acl_access"  # the extended attribute of an access control list (Linux)
CSV_SPECIAL = re.compile(r'[",\r\n]')


class OutputError(TailhookError, OSError):
    """A file cannot be written."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a binary file, and rename it to `path` when the block ends; after an exception nothing is left of it.

    A replaced file keeps its permissions and its group. If it cannot keep the group, it gets no permissions for one. A
    new file has the umask's permissions. If `path` is a link, its target is replaced.

    Raises OSError, also if the disk is full, and if `path` is a folder, a device or a pipe.
    """
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is not a regular file: rows are only written to one")
    target = Path(os.path.realpath(path))
    # Another process with this one's id may write the same file: from another container, or before this one began.
    part = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        with naming(path):
            old = target.stat() if target.exists() else None
            file = open_new(part, 0o666 if old is None else 0o600)
        with file:
            if old is not None:
                keep_access(file.fileno(), target, old)
            yield file
            file.flush()
            os.fsync(file.fileno())
        with naming(path):
            part.replace(target)
    finally:
        with suppress(OSError):  # an error of the block is the one that counts
            part.unlink()


def keep_access(fd: int, replaced: Path, old: os.stat_result) -> None:
    """Give a new file the permissions and the group of the old one, but no set-user-ID bit.

    The group's permissions are removed in two cases. If the old group cannot be kept, another group would have them. If
    the old file has an access control list, they are the maximum for everyone on that list (acl(5)). The list is lost.
    """
    mode = old.st_mode & 0o777
    if hasattr(os, "listxattr") and ACL in os.listxattr(replaced):
        mode &= 0o707
    if os.fstat(fd).st_gid != old.st_gid:
        try:
            os.fchown(fd, -1, old.st_gid)
        except OSError:  # not permitted, or unknown where this process runs
            mode &= 0o707
    os.fchmod(fd, mode)


def open_new(path: Path, mode: int) -> BinaryIO:
    """Make a file and open it for writing. Raises OSError, also if it exists. mode: before the umask."""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError name this path, and no other."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def write_jsonl(batches: Iterable[ArrowBatch], columns: Sequence[str], file: BinaryIO) -> None:
    """Write an object for each row, and flush after each batch. Times are ISO 8601 in UTC with microseconds."""
    names = tuple(columns)
    # One call for many rows is several times as fast as one for each. The mark is never in a value: a quote in a string
    # is escaped, no value is an object, and no name follows the end of a string.
    mark = b"," + orjson.dumps({names[0]: 0})[:-2]
    for batch in batches:
        rows = zip(*batch.columns(times_as_text=True), strict=True)
        while some := [dict(zip(names, row, strict=True)) for row in islice(rows, ENCODED_ROWS)]:
            file.write(orjson.dumps(some)[1:-1].replace(b"}" + mark, b"}\n" + mark[1:]) + b"\n")
        file.flush()


def write_csv(batches: Iterable[ArrowBatch], columns: Sequence[str], file: BinaryIO) -> None:
    """Write a line with the names, and one for each row. A list is JSON, times are as in JSON lines.

    As in RFC 4180, but lines end with LF: other commands of a shell would take CR for a part of the last cell.
    """
    file.write(f"{','.join(columns)}\n".encode())
    for batch in batches:
        cells = [csv_cells(values) for values in batch.columns(times_as_text=True)]
        if len(cells) == 1:
            cells = [[cell or '""' for cell in cells[0]]]  # readers skip an empty line
        file.write("".join([f"{','.join(row)}\n" for row in zip(*cells, strict=True)]).encode())
        file.flush()


def csv_cells(values: list[Any]) -> list[str]:
    """Return the cells of a column's values, with quotes if needed.

    >>> csv_cells(["a", None, "b,c"])
    ['a', '', '"b,c"']
    """
    kinds = set(map(type, values))
    if list in kinds:
        values = [None if value is None else orjson.dumps(value).decode() for value in values]
    elif not kinds <= {str, type(None)}:
        values = [None if value is None else str(value) for value in values]
    cells = ["" if value is None else value for value in values]
    if CSV_SPECIAL.search("".join(cells)):  # most columns have none
        return ['"{}"'.format(cell.replace('"', '""')) if CSV_SPECIAL.search(cell) else cell for cell in cells]
    return cells


def write_arrow(batches: Iterable[ArrowBatch], schema: ArrowBatch, file: BinaryIO) -> None:
    """Write Arrow's IPC file format. Raises MissingExtraError without pyarrow, and OutputError.

    In this format a column has one dictionary, but each batch has dictionaries of its own. (Additions to a dictionary
    are allowed; polars 2.1 does not read them.) So the batches wait in a temporary file beside `file`, with indices
    into dictionaries that grow until the last batch.
    """
    pyarrow = import_pyarrow()
    arrow_schema = pyarrow.schema(schema)
    fields = [
        field.with_type(pyarrow.int32()) if pyarrow.types.is_dictionary(field.type) else field for field in arrow_schema
    ]
    indexed = pyarrow.schema(fields)
    # The index of each value, by column.
    known: dict[str, dict[str, int]] = {
        field.name: {} for field in arrow_schema if pyarrow.types.is_dictionary(field.type)
    }
    name = getattr(file, "name", "")  # a stream may have none; for a file without a name it is its descriptor
    folder = os.path.dirname(name) or None if isinstance(name, str) else None  # noqa: PTH120
    with output_errors(pyarrow), tempfile.TemporaryFile(dir=folder) as waiting:
        with pyarrow.ipc.new_stream(waiting, indexed) as writer:
            for batch in batches:
                values = pyarrow.record_batch(batch)
                columns = [
                    indices_of(pyarrow, column, known[name]) if name in known else column
                    for name, column in zip(arrow_schema.names, values.columns, strict=True)
                ]
                writer.write_batch(pyarrow.record_batch(columns, schema=indexed))
        waiting.seek(0)
        dictionaries = {name: pyarrow.array(list(values), "string") for name, values in known.items()}
        with pyarrow.ipc.open_stream(waiting) as reader, pyarrow.ipc.new_file(file, arrow_schema) as writer:
            for indices in reader:
                columns = [
                    pyarrow.DictionaryArray.from_arrays(column, dictionaries[name]) if name in known else column
                    for name, column in zip(arrow_schema.names, indices.columns, strict=True)
                ]
                writer.write_batch(pyarrow.record_batch(columns, schema=arrow_schema))


def indices_of(pyarrow: Any, column: Any, known: dict[str, int]) -> Any:
    """Return the indices of a column's values in the dictionary of all batches.

    known: the index of each value in that dictionary. Gets the new ones.
    """
    places = [known.setdefault(value, len(known)) for value in column.dictionary.to_pylist()]
    return pyarrow.array(places, "int32").take(column.indices)


def write_parquet(
    batches: Iterable[ArrowBatch], schema: ArrowBatch, file: BinaryIO, metadata: Mapping[bytes, bytes] | None = None
) -> None:
    """Write Parquet. Raises MissingExtraError without pyarrow, and OutputError.  metadata: of the file."""
    pyarrow = import_pyarrow()
    arrow_schema = pyarrow.schema(schema)
    arrow_schema = arrow_schema.with_metadata({**arrow_schema.metadata, **(metadata or {})})
    with output_errors(pyarrow), pyarrow.parquet.ParquetWriter(file, arrow_schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(pyarrow.record_batch(batch))


@contextmanager
def output_errors(pyarrow: Any) -> Iterator[None]:
    """Raise OutputError if pyarrow cannot write the rows. An OSError, such as that of a full disk, stays as it is."""
    try:
        yield
    except pyarrow.ArrowException as error:
        reason = str(error).partition("\n")[0]  # the rest lists columns
        raise OutputError(f"pyarrow cannot write the rows: {reason}") from error


def from_pyarrow(table: str, batch: Any) -> ArrowBatch:
    """Return columns of a table, or of its halves, from pyarrow's record batch as a batch of the core."""
    is_time = import_pyarrow().types.is_timestamp
    # Datetimes would take a hundred times as long as their microseconds.
    columns = [(column.cast("int64") if is_time(column.type) else column).to_pylist() for column in batch.columns]
    return make_batch(table, tuple(batch.schema.names), list(zip(*columns, strict=True)))


def import_pyarrow() -> Any:
    """Return the module. Raises MissingExtraError."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        command = install_command("tailhook[scan]")
        message = f"Parquet and Arrow files need pyarrow ({error}). Install it:  {command}"
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
