"""A scan as a data frame of Daft, on its local runner or on Ray."""

# mypy: disable-error-code="misc, untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tailhook.errors import MissingExtraError
from tailhook.fleet import engines
from tailhook.fleet.plan import FileRange, SourceFile
from tailhook.fleet.question import Question

try:
    import daft
    from daft.io.pushdowns import Pushdowns
    from daft.io.source import DataSource, DataSourceTask
    from daft.recordbatch import RecordBatch
    from daft.schema import Schema

    from tailhook.fleet.daft_filters import FilterReader
except ImportError as error:
    raise MissingExtraError(f"to_daft needs Daft ({error}). Install it:  pip install 'tailhook[daft]'") from error


def to_daft(question: Question, files: Sequence[SourceFile]) -> daft.DataFrame:
    """Return the rows of a question as a data frame. Daft reads the files when it needs the rows."""
    return engines.build(question, files, lambda *of: DaftSource(*of).read(), map_daft_buckets, daft.DataFrame.concat)


def map_daft_buckets(halves: daft.DataFrame, schema: Any, function: Callable[..., Any]) -> daft.DataFrame:
    """Return what a function makes of each bucket, as `engines.build` asks for it."""
    columns = Schema.from_pyarrow_schema(schema)
    row = daft.DataType.struct({field.name: field.dtype for field in columns})

    @daft.func.batch(return_dtype=row)
    def of_bucket(tables: daft.Series, packed: daft.Series) -> daft.Series:
        found = function(tables.to_pylist(), packed.to_pylist()).combine_chunks()
        return daft.Series.from_arrow(found.to_struct_array().combine_chunks(), "row").cast(row)

    rows = halves.groupby("bucket").map_groups(of_bucket(daft.col("table"), daft.col("halves")).alias("row"))
    return rows.select(daft.col("row").unnest())


class DaftSource(DataSource):
    """What a reader gives for all tasks."""

    def __init__(self, reader: engines.TaskReader, tasks: Sequence[Sequence[FileRange]]) -> None:
        self.reader, self.tasks = reader, tasks

    @property
    def name(self) -> str:
        return f"tailhook {self.reader.table}"

    @property
    def schema(self) -> Schema:
        return Schema.from_pyarrow_schema(self.reader.schema())

    async def get_tasks(self, pushdowns: Pushdowns) -> AsyncIterator[DataSourceTask]:
        """Yield the tasks, with what Daft's optimizer pushes down. It filters the rows again."""
        filters = FilterReader(pushdowns.filters)
        # Daft asks without the columns that only its filters need.
        columns = None if pushdowns.columns is None else {*pushdowns.columns, *filters.columns}
        reader = self.reader.narrowed(columns, filters.comparisons)
        for task in self.tasks:
            yield DaftTask(reader, task, pushdowns.limit if pushdowns.filters is None else None)


class DaftTask(DataSourceTask):
    """What a reader gives for a task."""

    def __init__(self, reader: engines.TaskReader, task: Sequence[FileRange], limit: int | None) -> None:
        self.reader, self.task, self.limit = reader, task, limit

    @property
    def schema(self) -> Schema:
        return Schema.from_pyarrow_schema(self.reader.schema())

    async def read(self) -> AsyncIterator[RecordBatch]:
        """Yield the rows. Daft runs all reads of Python sources in one thread, so the scan has one of its own."""
        for found in await asyncio.to_thread(lambda: list(self.reader.tables(self.task, self.limit))):
            yield RecordBatch.from_arrow_table(found)
