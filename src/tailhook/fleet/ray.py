"""A scan as a dataset of Ray Data: one read task for each task of the plan."""

# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tailhook.errors import MissingExtraError, install_command
from tailhook.fleet.plan import FileRange, SourceFile
from tailhook.fleet.question import Question

try:
    import ray
    import ray.data
    from ray.data import Dataset, Datasource, ReadTask
    from ray.data.block import BlockMetadata

    from tailhook.fleet import engines
except ImportError as error:
    command = install_command("tailhook[ray]")
    raise MissingExtraError(f"to_ray needs Ray Data ({error}). Install it:  {command}") from error


def collect_ray_missing() -> engines.MissingSources:
    """Return a collector of the sources that workers cannot read. Starts Ray like its data sets."""
    if not ray.is_initialized():
        ray.init()
    return engines.RayMissing()


def to_ray(question: Question, files: Sequence[SourceFile], missing: engines.MissingSources | None) -> Dataset:
    """Return the rows of a question as a dataset. Ray reads the files when it needs the rows."""
    return engines.build(question, files, missing, make_dataset, map_ray_buckets, Dataset.union)


def make_dataset(reader: engines.TaskReader, tasks: Sequence[Sequence[FileRange]]) -> Dataset:
    """Return a dataset with the rows or halves of all tasks. Without a task, an empty one names the columns."""
    return ray.data.read_datasource(RaySource(reader, tasks or [[]]), override_num_blocks=max(1, len(tasks)))


def map_ray_buckets(halves: Dataset, _schema: Any, function: Callable[..., Any]) -> Dataset:
    """Return the results of a function for each bucket: the `gather` of `engines.build`."""

    def of_bucket(packed: Any) -> Any:
        return function(packed["table"].to_pylist(), packed["halves"].to_pylist())

    return halves.groupby("bucket").map_groups(of_bucket, batch_format="pyarrow")


class RaySource(Datasource):
    """A data source of Ray Data: the rows or halves of all tasks.

    Ray asks several times for its read tasks; the files are listed once.
    """

    def __init__(self, reader: engines.TaskReader, tasks: Sequence[Sequence[FileRange]]) -> None:
        super().__init__()
        self.reader, self.tasks = reader, tasks

    def estimate_inmemory_data_size(self) -> None:
        return None

    def supports_projection_pushdown(self) -> bool:
        """Return whether columns are handed down. Halves need all their columns."""
        return self.reader.halves is None

    def apply_projection(self, projection_map: Mapping[str, str] | None) -> RaySource:
        """Return a source of these columns only, in this order.  projection_map: None for all columns."""
        return self if projection_map is None else RaySource(self.reader.with_columns(projection_map), self.tasks)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        return [
            ReadTask(
                partial(self.reader.tables, task, per_task_row_limit),
                BlockMetadata(
                    num_rows=None, size_bytes=None, exec_stats=None, input_files=[part.path for part in task]
                ),
                schema=self.reader.schema(),
                per_task_row_limit=per_task_row_limit,
            )
            for task in self.tasks
        ]
