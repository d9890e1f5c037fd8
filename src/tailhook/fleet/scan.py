"""A question about many transcripts. Nothing is read before it is iterated or handed to an engine."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tailhook._core import ArrowBatch, ScanProgram, arrow_stream, make_batch
from tailhook.fleet import program as programs
from tailhook.fleet.answer import Conditions, answer
from tailhook.fleet.columns import COLUMNS, CONTEXT_CHARS, LARGE
from tailhook.fleet.local import run_tasks
from tailhook.fleet.plan import Problem, SourceFile, default_folders, find_files, make_tasks
from tailhook.fleet.redact import EXAMINED_CHARS, needed_columns, redacted
from tailhook.fleet.report import Progress, ScanReport, Watch
from tailhook.patterns import PatternSet, by_name

Source = str | os.PathLike[str]


class Scan:
    """A question about many transcripts, and its rows as Arrow record batches.

    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> said = '{"type":"assistant","sessionId":"s","message":{"role":"assistant","content":"All done."}}'
    >>> _ = pathlib.Path(folder.name, "s.jsonl").write_text(said)
    >>> [(row.session_id, row.name, row.context) for row in scan(folder.name, patterns=["done"]).rows()]
    [('s', 'done', 'All done.')]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        sources: Sequence[Source] | None,
        table: str,
        programs: Mapping[str, ScanProgram],
        columns: Sequence[str],
        conditions: Conditions,
        workers: int,
        watch: Watch | None = None,
        redacted_context: int | None = None,
    ) -> None:
        """watch: is called before the first task and after each.  redacted_context: characters; None: not redacted."""
        self.sources = sources
        self.table = table
        self.programs = programs
        self.columns = tuple(columns)
        self.conditions = conditions
        self.workers = workers
        self.watch = watch
        self.redacted_context = redacted_context
        self.counts: Counter[str] = Counter()
        self.unknown_types: Counter[tuple[str, str]] = Counter()
        self.problems: list[Problem] = []
        self.progress = Progress(0, 0, 0, 0)
        self.seconds: float | None = None

    def __iter__(self) -> Iterator[ArrowBatch]:
        """Yield the rows as batches, in the order of the files and of their lines."""
        self.counts, self.unknown_types, self.problems, self.seconds = Counter(), Counter(), [], None
        started = time.monotonic()
        try:
            files = find_files(default_folders() if self.sources is None else self.sources, self.problems)
            passes = len(self.programs)
            self.advance(Progress(0, 0, passes * len(files), passes * sum(file.size for file in files)))
            columns = self.columns if self.redacted_context is None else needed_columns(self.columns)
            found = answer(self.table, columns, self.conditions, lambda table: self.read(table, files))
            if self.redacted_context is not None:
                found = redacted(found, self.table, self.columns, self.redacted_context)
            yield from found
        finally:
            self.seconds = time.monotonic() - started

    def read(self, table: str, files: Sequence[SourceFile]) -> Iterator[ArrowBatch]:
        """Yield what the ranges of the files give for a table: rows, or their halves, which are joined afterwards."""
        sizes = {file.path: file.size for file in files}
        tasks = list(make_tasks(files))
        for result, task in zip(run_tasks(self.programs[table], tasks, self.workers), tasks, strict=True):
            if table == self.table:  # sessions read all files again for their usage, which counts once
                self.counts.update(result.counts)
                self.unknown_types.update(result.unknown_types)
            self.problems += [problem for problem in dict.fromkeys(result.problems) if problem not in self.problems]
            done = sum(part.end is None for part in task)
            size = sum((sizes[part.path] if part.end is None else part.end) - part.start for part in task)
            self.advance(self.progress._replace(files=self.progress.files + done, bytes=self.progress.bytes + size))
            yield from (batch for batch in result.batches if len(batch))

    def advance(self, progress: Progress) -> None:
        """Keep how far the scan is, and report it."""
        self.progress = progress
        if self.watch is not None:
            self.watch(progress)

    @property
    def report(self) -> ScanReport:
        """What was read so far, of the newest iteration."""
        counts = self.counts
        return ScanReport(
            *(counts["files"], counts["bytes"], counts["records"], counts["broken_lines"], counts["long_lines"]),
            *(self.seconds, tuple(self.problems), dict(self.unknown_types)),
        )

    def rows(self) -> Iterator[Any]:
        """Yield the rows as named tuples."""
        row = self.row_type()
        for batch in self:
            yield from map(row._make, zip(*batch.columns(), strict=True))

    def row_type(self) -> Any:
        """Return the class of the named tuples that `rows` yields."""
        fields: Any = [(name, Any) for name in self.columns]
        return NamedTuple("Row", fields)

    def __arrow_c_schema__(self) -> object:
        """Return the schema of the rows as an Arrow PyCapsule."""
        return make_batch(self.table, self.columns, []).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow PyCapsule, as `pyarrow.table`, polars and duckdb take it."""
        return arrow_stream(make_batch(self.table, self.columns, []), self)


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
    progress: Watch | None = None,
    redact: bool = False,
) -> Scan:
    """Return a question about transcripts.

    sources: files, folders or globs; None for the transcripts of all installed hosts.
    table: "matches", "records", "tools", "usage" or "sessions".
    patterns, signals, categories: for matches, what to find.
    since, until: of a row's time, with a zone; `until` itself does not count.
    project: a folder; those below it count too.
    columns: None for all but `text`.
    in_code: for matches: False for those outside code, True for those in code, None for both.
    context: for matches, how many characters around one.
    all_text, sidechains: for matches, search all text, or also what sub-agents say, instead of own words only.
    workers: threads; None for one per processor.
    progress: is called with a Progress before the first file is read and after each task of about 64 MiB.
    redact: mask secrets in contexts, texts, commands and tools' inputs.

    Raises ValueError for what no scan can answer, and TypeError for a wrong type.
    """
    if table not in COLUMNS:
        raise ValueError(f"there is no table {table!r}: choose one of {', '.join(COLUMNS)}")
    chosen = check_columns(table, columns)
    searches = []
    if patterns:
        searches.append(user_search(patterns))
    searches += [programs.signals()] * signals + [programs.categories()] * categories
    if table == "matches" and not searches:
        raise ValueError("nothing to find: give patterns, signals=True or categories=True")
    if table not in ("matches", "records") and roles:
        raise ValueError(f"rows of the table {table} have no role")
    conditions = Conditions(
        tuple(roles),
        since,
        until,
        None if project is None else os.fspath(project).rstrip("/\\") or "/",
        tuple(sessions),
    )
    options = {
        "code": -1 if in_code is None else int(in_code),
        "context": context + EXAMINED_CHARS * redact,
        "all_text": all_text,
        "sidechains": sidechains,
    }
    read = needed_columns(chosen) if redact else chosen
    made = {
        name: programs.make_program(name, read, searches if name == "matches" else (), conditions, **options)
        for name in (table, *(["usage"] if table == "sessions" else []))
    }
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    found = None if sources is None else list(sources)
    redacted_context = context if redact else None
    return Scan(found, table, made, chosen, conditions, workers or os.cpu_count() or 1, progress, redacted_context)


def user_search(patterns: PatternSet | Mapping[str, str | Sequence[str]] | Iterable[str]) -> programs.Search:
    """Return the search for a user's patterns."""
    if isinstance(patterns, PatternSet):
        return programs.Search(patterns.patterns, patterns.own_line, patterns.ignore_case, patterns.word)
    return programs.Search(by_name(patterns))


def check_columns(table: str, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns to build. Raises ValueError if the table lacks one."""
    known = COLUMNS[table]
    if columns is None:
        return tuple(name for name in known if name not in LARGE)
    if unknown := [name for name in columns if name not in known]:
        raise ValueError(f"the table {table} has no column {', '.join(unknown)}. It has {', '.join(known)}")
    return tuple(columns)
