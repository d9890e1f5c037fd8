"""A scan as a data frame of Daft, on its local runner or on Ray."""

# mypy: disable-error-code="misc, untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
import atexit
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from tailhook.errors import MissingExtraError, install_command
from tailhook.fleet.plan import FileRange, SourceFile
from tailhook.fleet.question import Question

try:
    import daft
    import pyarrow
    from daft.expressions import Expression, ExpressionVisitor
    from daft.io import DataSource, DataSourceTask
    from daft.io.pushdowns import Pushdowns
    from daft.recordbatch import RecordBatch

    from tailhook.fleet import engines
except ImportError as error:
    command = install_command("tailhook[daft]")
    raise MissingExtraError(f"to_daft needs Daft ({error}). Install it:  {command}") from error

# Threads of Daft drop Python objects just after its last answer. Before Python 3.14, this crashes the program if Python
# is ending (python/cpython#87135). So these threads get time to come to rest first.
DAFT_REST_S = 0.1
if sys.version_info < (3, 14):
    atexit.register(time.sleep, DAFT_REST_S)


def collect_daft_missing() -> engines.MissingSources:
    """Return a collector of sources that Daft's runner cannot read. Starts Ray if Daft runs on it."""
    if daft.get_or_infer_runner_type() != "ray":
        return engines.LocalMissing()
    daft.get_or_create_runner()
    return engines.RayMissing()


def to_daft(question: Question, files: Sequence[SourceFile], missing: engines.MissingSources | None) -> daft.DataFrame:
    """Return the rows of a question as a data frame. Daft reads the files when it needs the rows."""
    return engines.build(
        question, files, missing, lambda *of: DaftSource(*of).read(), map_daft_buckets, daft.DataFrame.concat
    )


def map_daft_buckets(halves: daft.DataFrame, schema: Any, function: Callable[..., Any]) -> daft.DataFrame:
    """Return the results of a function for each bucket: the `gather` of `engines.build`."""

    @daft.func.batch(return_dtype=daft.DataType.from_arrow_type(pyarrow.struct(schema)))
    def of_bucket(tables: daft.Series, packed: daft.Series) -> Any:
        return function(tables.to_pylist(), packed.to_pylist()).to_struct_array()

    rows = halves.groupby("bucket").map_groups(of_bucket(daft.col("table"), daft.col("halves")).alias("row"))
    return rows.select(daft.col("row").unnest())


class DaftSource(DataSource):
    """A data source of Daft: the rows or halves of all tasks."""

    def __init__(self, reader: engines.TaskReader, tasks: Sequence[Sequence[FileRange]]) -> None:
        self.reader, self.tasks = reader, tasks

    @property
    def name(self) -> str:
        return f"tailhook {self.reader.table}"

    @property
    def schema(self) -> daft.Schema:
        return daft.Schema.from_pyarrow_schema(self.reader.schema())

    async def get_tasks(self, pushdowns: Pushdowns) -> AsyncIterator[DataSourceTask]:
        """Yield the tasks, with the conditions from Daft's optimizer. Daft filters the rows again."""
        filters = FilterReader(pushdowns.filters)
        # Daft does not name the columns that only its filters need.
        columns = None if pushdowns.columns is None else {*pushdowns.columns, *filters.columns}
        reader = self.reader.narrowed(columns, filters.comparisons)
        for task in self.tasks:
            yield DaftTask(reader, task, pushdowns.limit if pushdowns.filters is None else None)


class DaftTask(DataSourceTask):
    """A task of the data source: the rows or halves of one task of the plan."""

    def __init__(self, reader: engines.TaskReader, task: Sequence[FileRange], limit: int | None) -> None:
        self.reader, self.task, self.limit = reader, task, limit

    @property
    def schema(self) -> daft.Schema:
        return daft.Schema.from_pyarrow_schema(self.reader.schema())

    async def read(self) -> AsyncIterator[RecordBatch]:
        """Yield the rows. Daft runs all reads of Python sources in one thread, so the scan has one of its own."""
        for found in await asyncio.to_thread(list, self.reader.tables(self.task, self.limit)):
            yield RecordBatch.from_arrow_table(found)


class FilterReader(ExpressionVisitor[Any]):
    """Reads a filter: its columns, and comparisons that are true for all kept rows.

    A visit returns a list of comparisons, a column, a value, or None for anything else.
    """

    def __init__(self, expr: Expression | None) -> None:
        self.columns: set[str] = set()
        self.comparisons: list[engines.Comparison] = self.visit_function("and", [] if expr is None else [expr])

    def visit_function(self, name: str, args: list[Any]) -> Any:
        parts = [part for arg in args for part in (arg if isinstance(arg, list) else [arg])]
        match name, [self.visit(part) for part in parts]:
            case "and", sides:
                return [one for side in sides if isinstance(side, list) for one in side]
            case "or", [[(column, "in", some)], [(other, "in", more)]] if column == other:  # a short `is_in`
                return [engines.Comparison(column, "in", (*some, *more))]
            case "equal" | "is_in", [Expression() as column, *values]:
                return [engines.Comparison(column.name(), "in", tuple(values))]
            case "less_than" | "less_than_or_equal", [Expression() as column, last]:
                return [engines.Comparison(column.name(), "<=", (last,))]
            case "greater_than" | "greater_than_or_equal", [Expression() as column, first]:
                return [engines.Comparison(column.name(), ">=", (first,))]
        return None

    def visit_col(self, name: str) -> Expression:
        self.columns.add(name)
        return daft.col(name)

    def visit_lit(self, value: Any) -> Any:
        return value

    def visit_alias(self, expr: Expression, alias: str) -> Any:
        return self.visit(expr)

    def visit_cast(self, expr: Expression, dtype: Any) -> Any:
        return self.visit_function("cast", [expr])

    def visit_coalesce(self, args: list[Expression]) -> Any:
        return self.visit_function("coalesce", args)
