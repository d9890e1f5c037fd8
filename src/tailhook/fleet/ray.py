"""A scan as a dataset of Ray Data: one read task for each task of the plan."""

# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tailhook.errors import MissingExtraError
from tailhook.fleet import engines
from tailhook.fleet.plan import FileRange, SourceFile
from tailhook.fleet.program import HALVES
from tailhook.fleet.question import Question

try:
    import ray.data
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata
except ImportError as error:
    raise MissingExtraError(f"to_ray needs Ray Data ({error}). Install it:  pip install 'tailhook[ray]'") from error


def to_ray(question: Question, files: Sequence[SourceFile]) -> ray.data.Dataset:
    """Return the rows of a question as a dataset. Ray reads the files when it needs the rows."""
    plan = engines.make_plan(files)
    if question.table not in HALVES:
        return make_dataset(question, plan)
    halves = make_dataset(question, plan, question.table)
    if question.table == "sessions":
        usage = make_dataset(question, plan, "usage")
        halves = halves.union(map_ray_buckets(usage, partial(engines.by_session, buckets=plan.buckets)))
    return map_ray_buckets(halves, partial(engines.join, question))


def make_dataset(question: Question, plan: engines.Plan, halves: str | None = None) -> ray.data.Dataset:
    """Return the rows, or packed halves of a table, of all tasks."""
    return ray.data.read_datasource(RaySource(question, plan, halves), override_num_blocks=max(1, len(plan.tasks)))


def map_ray_buckets(halves: ray.data.Dataset, function: Any) -> ray.data.Dataset:
    """Return what a function makes of each bucket."""

    def of_bucket(packed: Any) -> Any:
        return function(packed["table"].to_pylist(), packed["halves"].to_pylist())

    return halves.groupby("bucket").map_groups(of_bucket, batch_format="pyarrow")


class RaySource(Datasource):
    """The rows of a scan, or packed halves of a table. Ray asks several times for its tasks; they are listed once."""

    def __init__(self, question: Question, plan: engines.Plan, halves: str | None) -> None:
        super().__init__()
        self.question, self.plan, self.halves = question, plan, halves

    def estimate_inmemory_data_size(self) -> None:
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        schema = (
            engines.packed_schema() if self.halves else engines.row_schema(self.question.table, self.question.columns)
        )
        return [
            ReadTask(
                partial(read_task, self.question, task, self.plan.buckets, self.halves, per_task_row_limit),
                BlockMetadata(
                    num_rows=None, size_bytes=None, exec_stats=None, input_files=[part.path for part in task]
                ),
                schema=schema,
                per_task_row_limit=per_task_row_limit,
            )
            for task in self.plan.tasks
        ]


def read_task(
    question: Question, task: Sequence[FileRange], buckets: int, halves: str | None, limit: int | None
) -> Iterator[Any]:
    """Yield the rows of a task as tables of pyarrow. At least one, which may be empty."""
    if halves is not None:
        yield engines.task_halves(question, halves, task, buckets)
        return
    yield engines.row_schema(question.table, question.columns).empty_table()
    yield from engines.task_rows(question, question.table, task, limit)
