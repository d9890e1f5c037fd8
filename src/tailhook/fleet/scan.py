"""A question about many transcripts. Nothing is read before it is iterated or handed to an engine."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

from tailhook._core import ArrowBatch, arrow_stream, make_batch
from tailhook.fleet import program as programs
from tailhook.fleet.answer import Conditions, answer_question
from tailhook.fleet.columns import CONTEXT_CHARS, LARGE, MAX_CONTEXT_CHARS, ROLES, TABLE_COLUMNS, MatchOptions, Table
from tailhook.fleet.listing import ScanSource, default_folders, find_source_files, is_utf8
from tailhook.fleet.local import run_tasks
from tailhook.fleet.plan import SourceFile, files_since, make_tasks
from tailhook.fleet.question import Question
from tailhook.fleet.redact import SURROGATE
from tailhook.fleet.report import ScanNotes, ScanReport, Watch
from tailhook.fleet.typed_rows import row_type
from tailhook.patterns.sets import PatternSet
from tailhook.transcripts.arguments import check_booleans, check_path, check_strings, check_whole_number
from tailhook.transcripts.urls import is_url, without_credentials

Sources: TypeAlias = ScanSource | Iterable[ScanSource] | None
Patterns: TypeAlias = PatternSet | Mapping[str, str | Sequence[str]] | Iterable[str]
OTHER_SYSTEM = re.compile(r"[A-Za-z]:[\\/]|\\\\")  # the beginning of an absolute path of Windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import daft  # pyright: ignore[reportMissingImports]
    import ray.data  # pyright: ignore[reportMissingImports]
    import typing_extensions
    from typing_extensions import Unpack

    from tailhook.fleet.engines import MissingSources, OnError
    from tailhook.fleet.typed_rows import RowOfMatches, RowOfRecords, RowOfSessions, RowOfTools, RowOfUsage, ScanOptions

    Row = typing_extensions.TypeVar("Row", default=Any)  # of its table; so `Scan` without a table is a type, too
else:
    Row = TypeVar("Row")


class Scan(Generic[Row]):
    """A question about many transcripts, and its rows as Arrow record batches. `tailhook.scan` makes it.

    Nothing is read until it is iterated, or handed to `pyarrow.table`, polars, duckdb or an engine. Each iteration
    reads the sources again. An unreadable source raises nothing: it is in `report`. Engines raise by default.

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
        sources: Sequence[ScanSource] | None,
        question: Question,
        workers: int,
        resume: Path | None = None,
        progress: Watch | None = None,
    ) -> None:
        """sources: None for the transcripts of all installed hosts.

        workers: threads. resume: a folder of Parquet files. progress: called before the first task and after each.
        """
        self.sources = sources
        self.table, self.columns = question.table, question.columns
        self.resume = resume
        self._question = question
        self._programs = question.programs()
        self._workers = workers
        self._progress = progress
        self._newest = self._new_run()

    def _with_columns(self, names: tuple[str, ...]) -> Scan[Row]:
        """Return the same question with columns that are not in its table: for the commands only.

        names: PRICE_COLUMNS (columns.py), for the table usage.
        """
        question = self._question._replace(columns=(*self.columns, *names))
        return Scan(self.sources, question, self._workers, self.resume, self._progress)

    def _new_run(self, missing: MissingSources | None = None) -> ScanNotes:
        """Return the notes of a new iteration: several may run at the same time. missing: as for ScanNotes."""
        return ScanNotes(self.table, self._progress, missing)

    def __repr__(self) -> str:
        """Return the question in one line; long parts are cut, and web addresses are without credentials."""
        sources = [without_credentials(one) if isinstance(one, str) else one for one in self.sources or ()]
        conditions = self._question.conditions._asdict()
        asked = {
            "sources": sources,
            "patterns": [name for one in self._question.sets for name in one.patterns],
            **{name: str(value) if isinstance(value, datetime) else value for name, value in conditions.items()},
            "columns": self.columns,
            "resume": None if self.resume is None else str(self.resume),
        }
        shown = [f", {name}={reprlib.repr(value)}" for name, value in asked.items() if value or value == ()]
        return f"Scan({self.table!r}{''.join(shown)})"

    def __iter__(self) -> Iterator[ArrowBatch]:
        """Yield the rows as batches, in the order of the files and of their lines.

        With `resume`, the folder is brought up to date first; the rows come in the order in which they were found.
        """
        run = self._newest = self._new_run()
        with run.timed():
            if self.resume is not None:
                from tailhook.fleet.resume import read_parts

                yield from read_parts(self.table, self._update(self.resume, run))
                return
            files = self._find_files(run)
            run.begin(*[files] * len(self._programs))
            columns = self._question.read_columns()
            found = answer_question(
                table=self.table,
                columns=columns,
                conditions=self._question.conditions,
                read=lambda table: self._read(table, files, run),
                is_sorted=True,
            )
            yield from self._question.masked(self.table, found, self.columns)

    def _find_files(self, run: ScanNotes) -> Sequence[SourceFile]:
        """Return the files to scan. run: gets the sources that cannot be listed."""
        sources = default_folders(run.problems) if self.sources is None else self.sources
        found = find_source_files(sources, run.problems)
        files = files_since(found, self.table, self._question.conditions.since)
        run.counts["older_files"] = len(found) - len(files)
        return files

    def _find_engine_files(self, missing: MissingSources | None) -> Sequence[SourceFile]:
        """Return the files to scan.

        missing: collects the unreadable sources for the report; None: one of them raises SourceError.
        """
        from tailhook.fleet.engines import note_problems

        run = self._newest = self._new_run(missing)
        files = self._find_files(run)
        note_problems(run.problems, missing)
        return find_from_anywhere(files)

    def update(self) -> list[Path]:
        """Bring the folder of `resume` up to date, and return its Parquet files. They have all rows.

        Reads only new parts of the sources. The rows of removed files stay. Raises ResumeError if the folder is of
        another question or in use, MissingExtraError and OSError.
        """
        if self.resume is None:
            raise ValueError("there is nothing to bring up to date: give a folder, resume=DIR")
        run = self._newest = self._new_run()
        with run.timed():
            return self._update(self.resume, run)

    def _update(self, folder: Path, run: ScanNotes) -> list[Path]:
        from tailhook.fleet.resume import update_folder

        return update_folder(folder, self._question, self._find_files(run), self._workers, run.begin, run.note)

    def to_daft(self, errors: OnError = "raise") -> daft.DataFrame:
        """Return the rows as a data frame of Daft, on its current runner. Lists the sources.

        errors: with "raise", an unreadable source ends the query. With "report", the rows of all others come, and after
            the query `report.skipped` has the missing sources.

        Raises MissingExtraError without Daft, ValueError for a scan with `resume` or `progress`, and SourceError if a
        source cannot be listed. The query raises Daft's error with the words of a SourceError.
        """
        self._check_engine("Daft", errors)
        from tailhook.fleet.daft import collect_daft_missing, to_daft

        missing = collect_daft_missing() if errors == "report" else None
        return to_daft(self._question, self._find_engine_files(missing), missing)

    def to_ray(self, errors: OnError = "raise") -> ray.data.Dataset:
        """Return the rows as a dataset of Ray Data. Lists the sources.

        errors: as for `to_daft`.

        Raises MissingExtraError without Ray Data, ValueError for a scan with `resume` or `progress`, and SourceError if
        a source cannot be listed. The query raises Ray's error with the words of a SourceError.
        """
        self._check_engine("Ray Data", errors)
        from tailhook.fleet.ray import collect_ray_missing, to_ray

        missing = collect_ray_missing() if errors == "report" else None
        return to_ray(self._question, self._find_engine_files(missing), missing)

    def _check_engine(self, engine: str, errors: OnError) -> None:
        """Raise ValueError if the scan has options of the local engine only, or for unknown `errors`."""
        if errors not in ("raise", "report"):
            raise ValueError(f'errors is {errors!r}: give "raise" or "report"')
        if self.resume is not None:
            raise ValueError(f"{engine} keeps no rows for a later run: leave out resume, or read its Parquet files")
        if self._progress is not None:
            raise ValueError(f"{engine} shows its own progress: leave out progress")

    def _read(self, table: str, files: Sequence[SourceFile], run: ScanNotes) -> Iterator[ArrowBatch]:
        """Yield the results of the files' ranges for a table: rows, or halves to join afterwards."""
        with closing(run_tasks(self._programs[table], make_tasks(files), self._workers)) as runs:
            for found in runs:
                yield from (batch for batch in found.batches() if len(batch))
                run.note(found.result(), table, found.task)

    @property
    def report(self) -> ScanReport:
        """The report of the newest iteration so far."""
        return self._newest.report()

    def rows(self) -> Iterator[Row]:
        """Yield the rows as named tuples, with the columns' names. A timestamp is an aware datetime in UTC."""
        return named_rows(self.columns, self)

    def __arrow_c_schema__(self) -> object:
        """Return the schema of the rows as an Arrow PyCapsule."""
        return make_batch(self.table, self.columns, []).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow PyCapsule, for `pyarrow.table`, polars and duckdb."""
        return arrow_stream(make_batch(self.table, self.columns, []), self)


@overload
def scan(  # pyright: ignore[reportOverlappingOverload] - without a table, this one counts
    sources: Sources = ..., table: Literal["matches"] = ..., **options: Unpack[ScanOptions]
) -> Scan[RowOfMatches]: ...
@overload
def scan(
    sources: Sources = ..., table: Literal["records"] = ..., **options: Unpack[ScanOptions]
) -> Scan[RowOfRecords]: ...
@overload
def scan(sources: Sources = ..., table: Literal["tools"] = ..., **options: Unpack[ScanOptions]) -> Scan[RowOfTools]: ...
@overload
def scan(sources: Sources = ..., table: Literal["usage"] = ..., **options: Unpack[ScanOptions]) -> Scan[RowOfUsage]: ...
@overload
def scan(
    sources: Sources = ..., table: Literal["sessions"] = ..., **options: Unpack[ScanOptions]
) -> Scan[RowOfSessions]: ...
@overload
def scan(sources: Sources = ..., table: Table = ..., **options: Unpack[ScanOptions]) -> Scan: ...
def scan(
    sources: Sources = None,
    table: Table = "matches",
    *,
    patterns: Patterns = (),
    signals: bool = False,
    categories: bool = False,
    roles: Iterable[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    project: str | os.PathLike[str] | None = None,
    sessions: Iterable[str] | None = None,
    columns: Sequence[str] | None = None,
    in_code: bool | None = False,
    context: int = CONTEXT_CHARS,
    all_text: bool = False,
    sidechains: bool = False,
    workers: int | None = None,
    progress: Watch | None = None,
    resume: str | os.PathLike[str] | None = None,
    redact: bool = False,
) -> Scan:
    """Return a question about transcripts. Reads nothing; the rows come when the Scan is iterated.

    sources: one or several files, folders, globs or URLs; None for the transcripts of all installed hosts.
    table: "matches", "records", "tools", "usage" or "sessions": what a row is (docs/scan-rows.md).
    patterns: for matches: a PatternSet, texts, or texts by the name of their matches. `in_code` decides about code: a
        set with outside_code=False needs in_code=None.
    signals: for matches: also find the texts that end an idle loop.
    categories: for matches: also find the keywords of the memory machine.
    roles: for matches and records: only rows of these roles, "user", "assistant" and "human"; None for all.
    since, until: aware times: only rows at or after `since` and before `until`. For matches, records and tools, files
        that were last modified more than a day before `since` are not opened.
    project: only rows of this folder and those below it. A relative path begins at the current folder, as for the
        command.
    sessions: only rows of the sessions with these ids; None for all.
    columns: in this order, at least one and none twice; None for all except `text` and `input`: these can be large.
    in_code: for matches: False outside code, True in code, None for both.
    context: for matches: how many characters before and after one.
    all_text: for matches: search the text of every record instead of own words only.
    sidechains: for matches: search the words of sub-agents, too.
    workers: threads; None for one per processor.
    progress: called with a Progress before the first file is read and after each task of about 64 MiB. Not for Daft and
        Ray.
    resume: a folder for the rows as Parquet files, so that the next run reads only new lines: see `update`.
    redact: mask secrets in the columns `context`, `text`, `command` and `input`.

    Raises ValueError if the arguments do not fit together, for example a column of another table or patterns for
    another table than matches, and TypeError for a wrong type, such as a time without a zone or a str for several.

    >>> scan("sessions", "tools", columns=["name", "duration_ms"]).columns
    ('name', 'duration_ms')
    """
    check_table(table)
    check_booleans(signals=signals, categories=categories, redact=redact)
    options = checked_options(MatchOptions(in_code, context, all_text, sidechains))
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is {progress!r}: give a function")
    source_list = None if sources is None else list_sources(sources)
    roles = None if roles is None else check_strings("roles", roles)
    sessions = None if sessions is None else check_strings("sessions", sessions)
    chosen = check_columns(table, columns)
    sets = [user_set(patterns, in_code)] if patterns else []
    find = {"patterns": bool(patterns), "signals": signals, "categories": categories}
    check_fit(table, [*(name for name, is_given in find.items() if is_given), *options.given()], roles)
    sets += [programs.SIGNAL_SET] * signals + [programs.CATEGORY_SET] * categories
    check_times(since=since, until=until)
    threads = (os.cpu_count() or 1) if workers is None else check_whole_number("workers", workers, 1)
    conditions = Conditions(roles, since, until, None if project is None else project_folder(project), sessions)
    question = Question(table, chosen, tuple(sets), programs.compile_sets(sets), conditions, options, redact)
    folder = None if resume is None else resume_folder(resume, table, chosen)
    return Scan(source_list, question, threads, folder, progress)


def check_table(table: str) -> None:
    """Raise ValueError if there is no such table, and TypeError if it is not a str."""
    if not isinstance(table, str):
        raise TypeError(f"table is {table!r}: give one of {', '.join(TABLE_COLUMNS)}")
    if table not in TABLE_COLUMNS:
        raise ValueError(f"there is no table {table!r}: choose one of {', '.join(TABLE_COLUMNS)}")


def checked_options(options: MatchOptions) -> MatchOptions:
    """Return options. Raises TypeError for a flag that is not a bool, and TypeError or ValueError for a context."""
    flags = options._asdict()
    context = check_whole_number("context", flags.pop("context"), 0)
    if flags["in_code"] is None:
        del flags["in_code"]
    check_booleans(**flags)
    if context > MAX_CONTEXT_CHARS:
        raise ValueError(f"context is {context}: give at most {MAX_CONTEXT_CHARS:,}")
    return options._replace(context=context)


def check_fit(table: str, for_matches: Sequence[str], roles: Sequence[str] | None) -> None:
    """Raise ValueError if a table does not take the arguments, if there is nothing to find, or for an unknown role.

    for_matches: the names of the given arguments that only the table matches takes.
    """
    if table == "matches" and not {"patterns", "signals", "categories"}.intersection(for_matches):
        raise ValueError("nothing to find: give patterns, signals=True or categories=True")
    if table != "matches" and for_matches:
        raise ValueError(f"only the table matches takes {', '.join(for_matches)}")
    if table not in ("matches", "records") and roles is not None:
        raise ValueError(f"rows of the table {table} have no role")
    if unknown := [role for role in roles or () if role not in ROLES]:
        raise ValueError(f"there is no role {unknown[0]!r}: choose among {', '.join(ROLES)}")


def check_times(**times: datetime | None) -> None:
    """Raise TypeError if an argument is not an aware time.  times: by the name of the argument."""
    for name, time in times.items():
        if time is not None and not isinstance(time, datetime):
            raise TypeError(f"{name} is {time!r}, which is not a datetime: give an aware datetime")
        if time is not None and time.utcoffset() is None:
            raise TypeError(f"{name} is {time!r}, which has no time zone: give an aware datetime")


def resume_folder(resume: str | os.PathLike[str], table: str, columns: Sequence[str]) -> Path:
    """Return the folder for the rows.

    Raises ValueError if its name is empty or a URL, or if the needed column is missing.
    """
    if table in ("matches", "records") and "path" not in columns:
        raise ValueError("resume needs the column path, by which it knows the rows of a file")
    if not check_path("resume", resume):
        raise ValueError("resume is an empty name: give a folder")
    if is_url(os.fspath(resume)):
        raise ValueError(f"resume is a URL ({resume}): rows are kept in a folder of this computer")
    return Path(resume)


def list_sources(sources: ScanSource | Iterable[ScanSource]) -> list[ScanSource]:
    """Return sources as a list. Raises TypeError if one is not a path or URL, and ValueError if one is empty."""
    if isinstance(sources, bytes) or not isinstance(sources, str | os.PathLike | Iterable):
        raise TypeError(f"sources is {sources!r}: give paths")
    found = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if "" in [check_path("a source", source) for source in found]:
        raise ValueError("a source is an empty name: give a file, a folder, a glob or a URL")
    return found


def find_from_anywhere(files: Sequence[SourceFile]) -> Sequence[SourceFile]:
    """Return files with absolute paths to open: a worker may run in another folder. Their rows keep the given paths."""
    if all(map(is_found_from_anywhere, files)) or not is_utf8(here := os.path.join(os.getcwd(), "")):  # noqa: PTH109, PTH118
        return files
    return [file if is_found_from_anywhere(file) else file._replace(url=here + file.path) for file in files]


def is_found_from_anywhere(file: SourceFile) -> bool:
    """Return whether a file is an object or has an absolute path."""
    return file.etag is not None or os.path.isabs(file.path)  # noqa: PTH117 - see listing.py


def project_folder(project: str | os.PathLike[str]) -> str:
    """Return a project in the records' form: absolute. A path of another system stays as it is.

    Raises TypeError, and ValueError for an empty name.
    """
    name = check_path("project", project)
    if not name:
        raise ValueError("project is an empty name: give a folder")
    if not OTHER_SYSTEM.match(name):
        name = os.path.abspath(Path(name).expanduser())  # noqa: PTH100 - no links
    return name.rstrip("/\\") or "/"


def named_rows(columns: tuple[str, ...], batches: Iterable[ArrowBatch]) -> Iterator[Any]:
    """Yield the rows of batches as named tuples.  columns: of the batches."""
    row = row_type(columns)
    for batch in batches:
        yield from map(row._make, zip(*batch.columns(), strict=True))


def user_set(patterns: Patterns, in_code: bool | None) -> PatternSet:
    """Return a user's patterns as a set.

    Raises TypeError or ValueError if they are not a set of patterns. Raises ValueError for a lone surrogate, and if the
    scan excludes code but the set does not.
    """
    found = patterns if isinstance(patterns, PatternSet) else PatternSet(patterns)
    if not found.outside_code and in_code is not None:
        raise ValueError("the set has outside_code=False: give in_code=None, too, to find matches in code")
    for name, texts in found.patterns.items():
        for text in (name, *texts):
            if SURROGATE.search(text):
                raise ValueError(f"the pattern {text!r} has a lone surrogate, which no text of a transcript has")
    return found


def check_columns(table: str, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns to build.

    Raises ValueError if there are none, if one is named twice or if the table lacks one, and TypeError for a single
    str.
    """
    known = TABLE_COLUMNS[table]
    if columns is None:
        return tuple(name for name in known if name not in LARGE)
    columns = check_strings("columns", columns)
    if not columns:
        raise ValueError("columns names no column")
    if unknown := [name for name in columns if name not in known]:
        raise ValueError(f"the table {table} has no column {unknown[0]!r}. It has {', '.join(known)}")
    if len(set(columns)) < len(columns):
        raise ValueError("a column is named twice")
    return columns
