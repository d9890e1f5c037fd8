"""A scan as a data frame of Daft, on its local runner or on Ray."""

# mypy: disable-error-code="misc, untyped-decorator"
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from tailhook.errors import MissingExtraError
from tailhook.fleet import engines
from tailhook.fleet.plan import FileRange, SourceFile
from tailhook.fleet.program import HALVES
from tailhook.fleet.question import Question

try:
    import daft
    from daft.expressions.visitor import ExpressionVisitor
    from daft.io.pushdowns import Pushdowns
    from daft.io.source import DataSource, DataSourceTask
    from daft.recordbatch import RecordBatch
    from daft.schema import Schema
except ImportError as error:
    raise MissingExtraError(f"to_daft needs Daft ({error}). Install it:  pip install 'tailhook[daft]'") from error

COMPARISONS = {
    "equal": "==",
    "less_than": "<",
    "less_than_or_equal": "<=",
    "greater_than": ">",
    "greater_than_or_equal": ">=",
}


def to_daft(question: Question, files: Sequence[SourceFile]) -> daft.DataFrame:
    """Return the rows of a question as a data frame. Daft reads the files when it needs the rows."""
    plan = engines.make_plan(files)
    if question.table not in HALVES:
        return DaftSource(question, plan).read()
    halves = DaftSource(question, plan, question.table).read()
    if question.table == "sessions":
        usage = DaftSource(question, plan, "usage").read()
        halves = halves.concat(
            map_daft_buckets(usage, engines.packed_schema(), partial(engines.by_session, buckets=plan.buckets))
        )
    schema = engines.row_schema(question.table, question.columns)
    return map_daft_buckets(halves, schema, partial(engines.join, question))


def map_daft_buckets(halves: daft.DataFrame, schema: Any, function: Any) -> daft.DataFrame:
    """Return what a function makes of each bucket.  schema: of its tables.  function: of two columns as lists."""
    columns = Schema.from_pyarrow_schema(schema)
    row = daft.DataType.struct({field.name: field.dtype for field in columns})

    @daft.func.batch(return_dtype=row)
    def of_bucket(tables: daft.Series, packed: daft.Series) -> daft.Series:
        found = function(tables.to_pylist(), packed.to_pylist()).combine_chunks()
        return daft.Series.from_arrow(found.to_struct_array().combine_chunks(), "row").cast(row)

    rows = halves.groupby("bucket").map_groups(of_bucket(daft.col("table"), daft.col("halves")).alias("row"))
    return rows.select(daft.col("row").unnest())


class DaftSource(DataSource):
    """The rows of a scan, or packed halves of a table."""

    def __init__(self, question: Question, plan: engines.Plan, halves: str | None = None) -> None:
        self.question, self.plan, self.halves = question, plan, halves

    @property
    def name(self) -> str:
        return f"tailhook {self.halves or self.question.table}"

    @property
    def schema(self) -> Schema:
        return DaftTask(self.question, [], self.plan.buckets, self.halves, None).schema

    async def get_tasks(self, pushdowns: Pushdowns) -> AsyncIterator[DataSourceTask]:
        """Yield a task for each of the plan, with what Daft's optimizer pushes down."""
        question = self.question
        if self.halves is None:
            filters = FilterReader()
            conditions = [] if pushdowns.filters is None else filters.comparisons(pushdowns.filters)
            # Daft filters the rows again, but asks without the columns that only the filters need.
            columns = None if pushdowns.columns is None else {*pushdowns.columns, *filters.columns}
            question = engines.narrow(question, columns, conditions)
        limit = pushdowns.limit if pushdowns.filters is None else None
        for task in self.plan.tasks:
            yield DaftTask(question, task, self.plan.buckets, self.halves, limit)


class DaftTask(DataSourceTask):
    """A task of the plan."""

    def __init__(
        self, question: Question, task: Sequence[FileRange], buckets: int, halves: str | None, limit: int | None
    ) -> None:
        self.question, self.task, self.buckets, self.halves, self.limit = question, task, buckets, halves, limit

    @property
    def schema(self) -> Schema:
        found = (
            engines.packed_schema() if self.halves else engines.row_schema(self.question.table, self.question.columns)
        )
        return Schema.from_pyarrow_schema(found)

    async def read(self) -> AsyncIterator[RecordBatch]:
        """Yield the rows. Daft runs all reads of Python sources in one thread, so the scan has one of its own."""
        for found in await asyncio.to_thread(self.tables):
            yield RecordBatch.from_arrow_table(found)

    def tables(self) -> list[Any]:
        """Return the rows as tables of pyarrow."""
        if self.halves is not None:
            return [engines.task_halves(self.question, self.halves, self.task, self.buckets)]
        return list(engines.task_rows(self.question, self.question.table, self.task, self.limit))


class FilterColumn(NamedTuple):
    """A column in a filter, in contrast to a value."""

    name: str


class FilterReader(ExpressionVisitor[Any]):
    """Finds the columns of a filter, and comparisons that all hold for its rows, as `engines.narrow` takes them.

    Visits return a list of comparisons, a FilterColumn, a value, or None for anything else.
    """

    def __init__(self) -> None:
        self.columns: set[str] = set()

    def comparisons(self, expr: daft.Expression) -> list[tuple[str, str, Any]]:
        """Return the comparisons of an expression, [] if it is something else."""
        found = self.visit(expr)
        return found if isinstance(found, list) else []

    def compared(self, expr: daft.Expression, operator: str, value: Any) -> Any:
        """Return the comparison of a column with a value."""
        column = self.visit(expr)
        return [(column.name, operator, value)] if isinstance(column, FilterColumn) else None

    def visit_and(self, left: daft.Expression, right: daft.Expression) -> Any:
        return [*self.comparisons(left), *self.comparisons(right)]

    def visit_or(self, left: daft.Expression, right: daft.Expression) -> Any:
        """Return one comparison if each side is one with the same column. Daft writes a short `is_in` like this."""
        sides = [self.comparisons(left), self.comparisons(right)]
        if any(len(side) != 1 or side[0][1] not in ("==", "in") for side in sides):
            return None
        values = [one for ((_, operator, value),) in sides for one in (value if operator == "in" else [value])]
        return [(sides[0][0][0], "in", values)] if sides[0][0][0] == sides[1][0][0] else None

    def visit_is_in(self, expr: daft.Expression, items: list[daft.Expression]) -> Any:
        return self.compared(expr, "in", [self.visit(item) for item in items])

    def visit_function(self, name: str, args: list[Any]) -> Any:
        found = [self.visit_coalesce(one) if isinstance(one, list) else self.visit(one) for one in args]
        if name in COMPARISONS and len(found) == 2:
            return self.compared(args[0], COMPARISONS[name], found[1])
        return None

    def visit_col(self, name: str) -> Any:
        self.columns.add(name)
        return FilterColumn(name)

    def visit_lit(self, value: Any) -> Any:
        return value

    def visit_alias(self, expr: daft.Expression, alias: str) -> Any:
        return self.visit(expr)

    def visit_cast(self, expr: daft.Expression, dtype: Any) -> Any:
        self.visit(expr)

    def visit_coalesce(self, args: list[daft.Expression]) -> Any:
        for one in args:
            self.visit(one)
