"""Common parts of Daft and Ray Data: the rows of a task, and the halves of rows, gathered by key and joined.

An engine's own group-by cannot count a response once: two records decide which one counts (the first one and the one
with the most output tokens), and a third one may decide whether two request ids are one response. So each task sorts
its halves into buckets by key, the engine gathers the buckets with its group-by, and the local engine's function joins
each bucket.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary
from zlib import crc32

from tailhook._core import ArrowBatch, ScanProgram, make_batch
from tailhook.errors import SourceError
from tailhook.fleet.answer import answer_question, count_usage
from tailhook.fleet.local import scan_task
from tailhook.fleet.output import from_pyarrow, import_pyarrow
from tailhook.fleet.plan import FileRange, ScanProblem, SourceFile, make_tasks
from tailhook.fleet.question import Question
from tailhook.fleet.reduce import HALVES, USAGE_HALF

if TYPE_CHECKING:
    from tailhook.fleet.scan import Scan

pyarrow = import_pyarrow()
BUCKET_BYTES = 1 << 28  # bytes of transcripts for each bucket; one join takes all halves of a bucket
MAX_JOIN_BUCKETS = 4096
BY_SESSION = "usage by session"  # the name of the halves for responses, counted once, in buckets by session
# The key of a half is the first of these columns with a value: see `half_keys`.
HALF_KEYS: Mapping[str, Sequence[str]] = {
    "usage": ("message_id", "request_id", "uuid", "path"),
    "tools": ("tool_use_id", "path"),
    "sessions": ("session_id",),
    BY_SESSION: ("session_id",),
}
# A row for each bucket of a task, with its halves in Arrow's IPC format.
PACKED_SCHEMA = pyarrow.schema([("bucket", pyarrow.int32()), ("table", pyarrow.string()), ("halves", pyarrow.binary())])
RAY_HAS_ENDED = (
    "Ray or one of its workers has ended, and with it the list of the sources that could not be read: read the report "
    "before ray.shutdown()"
)
ENGINE_LOG = logging.getLogger("tailhook")
OnError = Literal["raise", "report"]  # the effect of an unreadable source on a query
EngineFrame = TypeVar("EngineFrame")


class Comparison(NamedTuple):
    """A condition of an engine on rows: a column, "in", ">=", ">", "<" or "<=", and values."""

    column: str
    operator: str
    values: tuple[Any, ...]


class TaskReader(NamedTuple):
    """Reads the tasks of a question. It can be pickled, and its worker compiles nothing.

    program: of the rows or halves to read.
    buckets: for the sorted halves.
    halves: the table of the packed halves to read; None for the rows of the question.
    missing: gets the unreadable sources; None if such a source ends the query.
    """

    question: Question
    program: ScanProgram
    buckets: int
    halves: str | None = None
    missing: MissingSources | None = None

    @property
    def table(self) -> str:
        """The table whose rows or halves are read."""
        return self.halves or self.question.table

    def schema(self) -> Any:
        """Return the schema of `tables`."""
        return PACKED_SCHEMA if self.halves else row_schema(self.question.table, self.question.columns)

    def tables(self, task: Sequence[FileRange], limit: int | None = None) -> Iterator[Any]:
        """Yield the rows or halves of a task as tables of pyarrow, at least one. limit: how many rows are enough."""
        yield self.schema().empty_table()
        found = self.rows(task, None if self.halves else limit)
        if self.halves:
            yield pack(self.halves, found, self.buckets)
        else:
            yield from found

    def narrowed(self, columns: Iterable[str] | None, wanted: Iterable[Comparison]) -> TaskReader:
        """Return a reader of an engine's columns and of all rows that it keeps; a reader of halves stays as it is."""
        return self if self.halves else make_reader(narrow(self.question, columns, wanted), missing=self.missing)

    def with_columns(self, columns: Iterable[str]) -> TaskReader:
        """Return a reader of the rows with these columns, in this order; without columns, with the first one."""
        question = self.question._replace(columns=tuple(columns) or self.question.columns[:1])
        return make_reader(question, missing=self.missing)

    def rows(self, task: Sequence[FileRange], limit: int | None = None) -> Iterator[Any]:
        """Yield the rows or halves of a task as tables of pyarrow.  limit: how many are enough.

        Raises SourceError if a file cannot be read and there is no collector.
        """
        result = scan_task(self.program, list(task))
        note_problems(result.problems, self.missing)
        for batch in self.question.masked(self.table, result.batches, self.question.task_columns(self.table)):
            found = pyarrow.table(batch).slice(0, limit)
            limit = None if limit is None else limit - len(found)
            if len(found):
                yield found.cast(plain_schema(found.schema))


class MissingSources(Protocol):
    """Collects the sources that the tasks of a query cannot read. It can be pickled."""

    def add(self, problems: Sequence[ScanProblem]) -> None:
        """Add sources, in any process that runs a task."""
        ...

    def found(self) -> Sequence[ScanProblem]:
        """Return all added sources. Called in the process of the question."""
        ...


class LocalMissing:
    """Collects the sources that tasks in this process cannot read."""

    def __init__(self) -> None:
        self.problems: list[ScanProblem] = []
        LOCAL_MISSING[id(self)] = self

    def add(self, problems: Sequence[ScanProblem]) -> None:
        self.problems += problems

    def found(self) -> Sequence[ScanProblem]:
        return self.problems

    def __reduce__(self) -> tuple[Callable[[int], LocalMissing], tuple[int]]:
        """Return a function that finds this object again: an engine may pickle objects for its own process."""
        return LOCAL_MISSING.__getitem__, (id(self),)


LOCAL_MISSING: WeakValueDictionary[int, LocalMissing] = WeakValueDictionary()


class RayMissing:
    """Collects the sources that tasks on Ray cannot read, in an actor. It ends with its scan."""

    def __init__(self) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        self.actor = ray.remote(num_cpus=0)(LocalMissing).remote()

    def add(self, problems: Sequence[ScanProblem]) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        ray.get(self.actor.add.remote(problems))

    def found(self) -> Sequence[ScanProblem]:
        import ray  # pyright: ignore[reportMissingImports]

        try:
            if not ray.is_initialized():  # it would be started again
                raise ray.exceptions.RayError
            found: Sequence[ScanProblem] = ray.get(self.actor.found.remote())
        except Exception as error:
            raise SourceError(RAY_HAS_ENDED) from error
        return found


def note_problems(problems: Sequence[ScanProblem], missing: MissingSources | None) -> None:
    """Log unreadable sources, and collect them. Raises SourceError if there is no collector."""
    for problem in problems:
        ENGINE_LOG.warning("tailhook: %s: %s", problem.path, problem.reason)
    if not problems:
        return
    if missing is not None:
        missing.add(problems)
        return
    path, reason = problems[0]
    others = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
    raise SourceError(f'{path}: {reason}{others}. errors="report" gives the rows of all other sources')


def make_reader(
    question: Question, halves: str | None = None, buckets: int = 1, missing: MissingSources | None = None
) -> TaskReader:
    """Return a reader of the tasks of a question, with the finished program. missing: as in TaskReader."""
    return TaskReader(question, question.programs()[halves or question.table], buckets, halves, missing)


def plan_scan(scan: Scan) -> tuple[TaskReader, list[list[FileRange]]]:
    """Return a reader for an engine, and its tasks, for a scan of matches or records.

    Raises ValueError for the other tables, and SourceError if a source cannot be listed. A source that cannot be read
    ends the query with SourceError.
    """
    if scan.table in HALVES:
        advice = "use to_daft, to_ray or engines.build"
        raise ValueError(f"rows of the table {scan.table} are joined from several tasks: {advice}")
    return make_reader(scan._question), list(make_tasks(scan._find_engine_files(None)))


def build(
    question: Question,
    files: Sequence[SourceFile],
    missing: MissingSources | None,
    read: Callable[[TaskReader, list[list[FileRange]]], EngineFrame],
    gather: Callable[[EngineFrame, Any, Callable[..., Any]], EngineFrame],
    union: Callable[[EngineFrame, EngineFrame], EngineFrame],
) -> EngineFrame:
    """Return the rows of a question in an engine's form.

    missing: as in TaskReader.
    read: takes a reader and tasks. Returns a frame of their rows or packed halves.
    gather: takes a frame of packed halves, a schema and a function. Groups the frame by `bucket`, calls
        `function(tables, halves)` with two lists for each group, and returns a frame of all tables that it returned.
        They have the schema.
    union: takes two frames. Returns a frame with the rows of both.
    """
    tasks = list(make_tasks(files))
    buckets = max(1, min(MAX_JOIN_BUCKETS, sum(file.size for file in files) // BUCKET_BYTES))
    if question.table not in HALVES:
        return read(make_reader(question, missing=missing), tasks)
    halves = read(make_reader(question, question.table, buckets, missing), tasks)
    if question.table == "sessions":
        usage = read(make_reader(question, "usage", buckets, missing), tasks)
        halves = union(halves, gather(usage, PACKED_SCHEMA, partial(by_session, buckets=buckets)))
    return gather(halves, row_schema(question.table, question.columns), partial(join, question))


def row_schema(table: str, columns: Sequence[str]) -> Any:
    """Return the schema of rows as one of pyarrow, without dictionaries: not every engine has them."""
    return plain_schema(pyarrow.schema(make_batch(table, tuple(columns), [])))


def plain_schema(schema: Any) -> Any:
    """Return a schema of pyarrow in which columns with dictionaries are plain columns of their values."""
    return pyarrow.schema(
        field.with_type(field.type.value_type) if pyarrow.types.is_dictionary(field.type) else field for field in schema
    )


def half_keys(table: str, found: Any) -> Iterator[str]:
    """Yield the key of each half. All halves that make a row have the same key.  found: halves, a table of pyarrow."""
    columns = [found.column(name).to_pylist() for name in HALF_KEYS[table]]
    copies = found.column("copies").to_pylist() if table == "usage" else [None] * len(found)
    for copy, *values in zip(copies, *columns, strict=True):
        yield next(filter(None, values), "") if copy is None else response_key(copy, values[2])


def response_key(copies: str, uuid: str | None) -> str:
    """Return the key of a half of another host's response.

    copies: the column of that name. A single line names the run with the response in its sums. Several lines name
        responses of other threads, and each of these may be a copy of a third one: all such halves have one key.
    uuid: the response's identity if there is no other.
    """
    if not copies:
        return uuid or ""
    return "copies" if "\n" in copies else copies[1:]


def pack(table: str, halves: Iterable[Any], buckets: int) -> Any:
    """Return halves as a table with PACKED_SCHEMA.  halves: tables of pyarrow.

    Without any, there is an empty bucket: an engine knows the columns of the rows only if it joins at least one.
    """
    rows = []
    for found in halves:
        places = defaultdict(list)
        for place, key in enumerate(half_keys(table, found)):
            places[crc32(key.encode("utf-8", "replace")) % buckets].append(place)
        for bucket, chosen in places.items():
            rows.append({"bucket": bucket, "table": table, "halves": encode_halves(found.take(chosen))})
    if not rows:
        rows.append({"bucket": 0, "table": table, "halves": encode_halves(pyarrow.table({}))})
    return pyarrow.Table.from_pylist(rows, schema=PACKED_SCHEMA)


def encode_halves(found: Any) -> bytes:
    """Return a table of pyarrow in Arrow's IPC format."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, found.schema) as writer:
        writer.write_table(found)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def unpack(tables: Iterable[str], halves: Iterable[bytes]) -> Callable[[str], Iterator[ArrowBatch]]:
    """Return a reader of packed halves for `answer_question`. tables, halves: columns of packed rows."""
    found = defaultdict(list)
    for table, data in zip(tables, halves, strict=True):
        found["usage" if table == BY_SESSION else table].append(data)

    def read(table: str) -> Iterator[ArrowBatch]:
        for data in found[table]:
            for batch in pyarrow.ipc.open_stream(data):
                yield from_pyarrow(table, batch)

    return read


def join(question: Question, tables: Iterable[str], halves: Iterable[bytes]) -> Any:
    """Return the rows of a bucket as a table of pyarrow."""
    schema = row_schema(question.table, question.columns)
    rows = answer_question(question.table, question.columns, question.conditions, unpack(tables, halves))
    return pyarrow.concat_tables([schema.empty_table(), *(pyarrow.table(batch).cast(schema) for batch in rows)])


def by_session(tables: Iterable[str], halves: Iterable[bytes], buckets: int) -> Any:
    """Return the responses of a bucket, each once, packed by the session of their first record."""
    return pack(BY_SESSION, map(pyarrow.table, count_usage(unpack(tables, halves)).rows(USAGE_HALF)), buckets)


# ---- conditions that an engine hands down ------------------------------------


def narrow(question: Question, columns: Iterable[str] | None, wanted: Iterable[Comparison]) -> Question:
    """Return a question with an engine's columns, and with all rows that the engine keeps.

    columns: None for all.
    wanted: comparisons; all are true for every row that the engine keeps. Unusable ones are ignored, because the engine
        filters the rows again.
    """
    found = question.conditions
    for column, operator, values in wanted:
        are_texts = operator == "in" and all(isinstance(value, str) for value in values)
        are_times = all(isinstance(value, datetime) and value.tzinfo is not None for value in values)
        if column == "role" and are_texts:
            found = found._replace(roles=common(found.roles, values))
        elif column == "session_id" and are_texts:
            found = found._replace(sessions=common(found.sessions, values))
        elif column == "project" and are_texts and len(values) == 1 and found.project is None:
            folder = values[0].rstrip("/\\")
            found = found._replace(project=folder or None)  # "" and "\\" are not below any folder
        elif column == "timestamp" and values and are_times:
            if operator in ("in", ">=", ">"):
                found = found._replace(since=max(filter(None, (found.since, min(values)))))
            if operator in ("in", "<=", "<"):
                found = found._replace(until=end_after(max(values), found.until))
    kept = question.columns if columns is None else tuple(name for name in question.columns if name in set(columns))
    return question._replace(columns=kept, conditions=found)


def end_after(last: datetime, until: datetime | None) -> datetime | None:
    """Return the end of the times before `until` and up to `last`. until: None for all times."""
    try:
        end = last + timedelta(microseconds=1)
    except OverflowError:  # the last time of the year 9999
        return until
    return end if until is None else min(end, until)


def common(known: tuple[str, ...] | None, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the values that both conditions allow; the known ones if there are none. known: None for all."""
    return tuple(value for value in values if known is None or value in known) or known
