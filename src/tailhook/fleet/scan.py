"""A question about many transcripts. Nothing is read before it is iterated or handed to an engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from tailhook._core import ArrowBatch, RangeScan, ScanProgram, arrow_stream
from tailhook.fleet import program as programs
from tailhook.fleet.local import run_tasks
from tailhook.fleet.plan import Problem, default_folders, find_files, make_tasks
from tailhook.patterns import PatternSet, by_name

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
CONTEXT_CHARS = 80
Source = str | os.PathLike[str]


class Report(NamedTuple):
    """What a scan read.

    seconds: None while it runs.
    problems: sources that could not be read.
    """

    files: int
    bytes: int
    records: int
    broken_lines: int
    long_lines: int
    seconds: float | None
    problems: tuple[Problem, ...]


class Scan:
    """A question about many transcripts, and its rows as Arrow record batches.

    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> said = '{"type":"assistant","sessionId":"s","message":{"role":"assistant","content":"All done."}}'
    >>> _ = pathlib.Path(folder.name, "s.jsonl").write_text(said)
    >>> [(row.session_id, row.name, row.context) for row in scan(folder.name, patterns=["done"]).rows()]
    [('s', 'done', 'All done.')]
    """

    def __init__(
        self, sources: Sequence[Source] | None, program: ScanProgram, columns: Sequence[str], workers: int
    ) -> None:
        self.sources = sources
        self.program = program
        self.columns = tuple(columns)
        self.workers = workers
        self.counts: Counter[str] = Counter()
        self.problems: list[Problem] = []

    def __iter__(self) -> Iterator[ArrowBatch]:
        """Yield the rows as batches, in the order of the files and of their lines."""
        self.counts, self.problems = Counter(), []
        files = find_files(default_folders() if self.sources is None else self.sources, self.problems)
        for result in run_tasks(self.program, make_tasks(files), self.workers):
            self.counts.update(result.counts)
            self.problems += result.problems
            yield from (batch for batch in result.batches if len(batch))

    def rows(self) -> Iterator[Any]:
        """Yield the rows as named tuples."""
        row = NamedTuple("Row", [(name, Any) for name in self.columns])  # type: ignore[misc]
        for batch in self:
            yield from map(row._make, zip(*batch.columns(), strict=True))

    def __arrow_c_schema__(self) -> object:
        """Return the schema of the rows as an Arrow PyCapsule."""
        return empty_batch(self.program).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow PyCapsule, as `pyarrow.table`, polars and duckdb take it."""
        return arrow_stream(empty_batch(self.program), self)


def empty_batch(program: ScanProgram) -> ArrowBatch:
    """Return a batch without rows, for its schema."""
    (batch,) = RangeScan(program).finish()
    return batch


def scan(
    sources: Source | Iterable[Source] | None = None,
    table: str = "matches",
    *,
    patterns: PatternSet | Mapping[str, str | Sequence[str]] | Iterable[str] = (),
    signals: bool = False,
    categories: bool = False,
    roles: Iterable[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    project: Source | None = None,
    sessions: Iterable[str] = (),
    columns: Sequence[str] | None = None,
    in_code: bool | None = False,
    context: int = CONTEXT_CHARS,
    all_text: bool = False,
    sidechains: bool = False,
    workers: int | None = None,
) -> Scan:
    """Return a question about transcripts.

    sources: files, folders or globs; None for the transcripts of all installed hosts.
    table: "matches" or "records".
    patterns, signals, categories: for matches, what to find.
    since, until: of a row's time, with a zone; `until` itself does not count.
    project: a folder; those below it count too.
    columns: None for all but `text`.
    in_code: for matches: False for those outside code, True for those in code, None for both.
    context: for matches, how many characters around one.
    all_text, sidechains: for matches, search all text, or also what sub-agents say, instead of own words only.
    workers: threads; None for one per processor.

    Raises ValueError for what no scan can answer, and TypeError for a wrong type.
    """
    if table not in programs.COLUMNS:
        raise ValueError(f"there is no table {table!r}: choose one of {', '.join(programs.COLUMNS)}")
    chosen = check_columns(table, columns)
    searches = []
    if patterns:
        searches.append(user_search(patterns))
    searches += [programs.signals()] * signals + [programs.categories()] * categories
    if table == "matches" and not searches:
        raise ValueError("nothing to find: give patterns, signals=True or categories=True")
    program = programs.make_program(
        table,
        chosen,
        searches if table == "matches" else (),
        roles=tuple(roles),
        since=None if since is None else microseconds(since),
        until=None if until is None else microseconds(until),
        projects=() if project is None else (os.fspath(project).rstrip("/\\") or "/",),
        sessions=tuple(sessions),
        code=-1 if in_code is None else int(in_code),
        context=context,
        all_text=all_text,
        sidechains=sidechains,
    )
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    return Scan(None if sources is None else list(sources), program, chosen, workers or os.cpu_count() or 1)


def user_search(patterns: PatternSet | Mapping[str, str | Sequence[str]] | Iterable[str]) -> programs.Search:
    """Return the search for a user's patterns."""
    if isinstance(patterns, PatternSet):
        return programs.Search(patterns.patterns, patterns.own_line, patterns.ignore_case, patterns.word)
    return programs.Search(by_name(patterns))


def check_columns(table: str, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns to build. Raises ValueError if the table lacks one."""
    known = programs.COLUMNS[table]
    if columns is None:
        return tuple(name for name in known if name not in programs.LARGE)
    if unknown := [name for name in columns if name not in known]:
        raise ValueError(f"the table {table} has no column {', '.join(unknown)}. It has {', '.join(known)}")
    return tuple(columns)


def microseconds(time: datetime) -> int:
    """Return a time as microseconds since 1970. Raises ValueError if it has no zone."""
    if time.tzinfo is None:
        raise ValueError(f"{time} has no zone: add one, for example tzinfo=timezone.utc")
    return (time - EPOCH) // timedelta(microseconds=1)
