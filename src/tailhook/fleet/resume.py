"""Keeps the rows of a scan in a folder of Parquet files, so that a later run reads only new lines.

    scan.json                      the question
    part-000001.parquet            rows, or in halves/TABLE/ their halves
    manifest.ndjson                beside the parts: the parts that count, and how far each file was read
    rows.parquet                   the joined rows of the tables tools, usage and sessions

The manifest does not end in .jsonl, because the folder may be below a scanned one. A part is complete before a line of
the manifest names it. Files without such a line are remains of a killed run.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tailhook._core import ArrowBatch, ScanProgram, make_batch
from tailhook.errors import ResumeError, TailhookError
from tailhook.fleet.answer import BATCH_ROWS, answer_question
from tailhook.fleet.folder_question import FORMAT, QUESTION, check_same_question, damage_of, read_kept_question
from tailhook.fleet.local import TaskResult, find_session, run_tasks
from tailhook.fleet.output import from_pyarrow, import_pyarrow, whole_file, write_parquet
from tailhook.fleet.plan import (
    COMPRESSED,
    HEAD_BYTES,
    MARK_BYTES,
    FileRange,
    ScanProblem,
    SourceFile,
    make_tasks,
    problem_of,
    tail_digest,
)
from tailhook.fleet.question import Question
from tailhook.fleet.reduce import HALVES
from tailhook.transcripts.host_records import name_of_host, recognize
from tailhook.transcripts.urls import fetch_range, open_store, split_url

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

STATE = b"tailhook.state"  # in the metadata of rows.parquet: the manifests of its rows


class FileState(NamedTuple):
    """How far a file was read.

    size, modified, etag: when it was read, as in SourceFile.
    mark: a digest of its last bytes; "" if unknown: then the file is read again when it has grown.
    offset: the start of the unread lines.
    """

    size: int
    modified: float
    etag: str | None
    mark: str
    offset: int


class PartFolder:
    """The parts of one table, and the manifest that names them."""

    def __init__(self, folder: Path, question: Question, table: str) -> None:
        """Read the manifest, and remove the remains of a killed run."""
        self.folder, self.question, self.table = folder, question, table
        self.columns = question.task_columns(table)
        self.schema = make_batch(table, self.columns, [])
        self.manifest = folder / "manifest.ndjson"
        self.states: dict[str, FileState] = {}
        self.parts: dict[str, list[str]] = {}  # the paths of the files with rows in a part, by its name
        self.sizes: dict[str, int] = {}  # of the parts in bytes, by name; older manifests do not have them
        self.last_number = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.read_manifest()
        for file in folder.iterdir():
            is_remains = file.match(".*.part") or file.match("part-*.parquet")
            if is_remains and file.name not in self.parts:
                file.unlink()
        self.parts = {name: paths for name, paths in self.parts.items() if paths or self.is_there(name)}
        lost = [path for name, paths in self.parts.items() if not self.is_there(name) for path in paths]
        if lost:
            self.forget(set(lost))

    def read_manifest(self) -> None:
        """Read the manifest, and remove an unfinished last line. Raises ResumeError if another line is not valid."""
        self.manifest.touch()
        data = self.manifest.read_bytes()
        end = data.rfind(b"\n") + 1
        if end != len(data):
            os.truncate(self.manifest, end)
        try:
            for line in data[:end].splitlines():
                self.apply(json.loads(line))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise damage_of(self.manifest) from error

    def is_there(self, name: str) -> bool:
        """Return whether a part exists, with its original size."""
        try:
            size = (self.folder / name).stat().st_size
        except FileNotFoundError:
            return False
        return size == self.sizes.get(name, size)

    def apply(self, entry: Mapping[str, Any]) -> None:
        """Apply a line of the manifest: invalid parts, files to read again, a new part, read files."""
        for name in entry.get("removed", ()):
            self.parts.pop(name, None)
        for path in entry.get("forgotten", ()):
            self.states.pop(path, None)
        for name, paths in entry.get("parts", {}).items():
            self.parts[name] = paths
            self.last_number = max(self.last_number, int(name[5:-8]))
        for name, size in entry.get("sizes", {}).items():
            self.sizes[name] = size
        for path, state in entry.get("files", {}).items():
            self.states[path] = FileState(*state)

    def files(self) -> list[Path]:
        """Return the parts."""
        return [self.folder / name for name in sorted(self.parts)]

    def rows(self) -> Iterator[ArrowBatch]:
        """Yield the rows of the parts."""
        return read_parts(self.table, self.files())

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the manifest, on the disk when this returns, and apply it.

        entry: without the sizes of its parts.
        """
        sizes = {name: (self.folder / name).stat().st_size for name in entry["parts"]}
        entry = {**entry, **({"sizes": sizes} if sizes else {})}
        with self.manifest.open("ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.apply(entry)

    def write_part(self, batches: Iterable[ArrowBatch]) -> str:
        """Write a part, and return its name. The manifest does not name it yet."""
        self.last_number += 1
        name = f"part-{self.last_number:06}.parquet"
        with whole_file(self.folder / name) as file:
            write_parquet(batches, self.schema, file)
        return name

    def forget(self, paths: set[str]) -> None:
        """Remove the rows of files: they will be read again from their beginning."""
        pyarrow = import_pyarrow()
        removed = [name for name, found in self.parts.items() if not paths.isdisjoint(found)]
        parts = {}
        for name in removed:
            kept = [path for path in self.parts[name] if path not in paths]
            if kept and self.is_there(name):
                gone = pyarrow.array([path.encode("utf-8", "replace").decode() for path in paths])
                parts[self.write_part(rows_of_other_files(self.folder / name, gone))] = kept
        self.append({"removed": removed, "forgotten": sorted(paths), "parts": parts})
        for name in removed:
            (self.folder / name).unlink(missing_ok=True)

    def new_files(self, files: Iterable[SourceFile], problems: list[ScanProblem]) -> list[SourceFile]:
        """Return the parts of the files to read. Forget files that have changed otherwise than by growing.

        problems: gets the unreadable files.
        """
        found = []
        replaced = set()
        for file in files:
            state = self.states.get(file.path)
            if state is None:
                found.append(file)
            elif (file.size, file.modified, file.etag) == state[:3]:
                if state.offset < file.size:
                    found.append(file._replace(start=state.offset))
            else:
                try:
                    goes_on = has_grown(file, state)
                except (OSError, TailhookError) as error:
                    problems.append(problem_of(file.path, error))
                    continue
                if not goes_on:
                    replaced.add(file.path)
                found.append(file._replace(start=state.offset if goes_on else 0))
        if replaced:
            self.forget(replaced)
        return found

    def update(
        self, files: Sequence[SourceFile], workers: int
    ) -> Iterator[tuple[TaskResult, str, Sequence[FileRange]]]:
        """Read files, write a part for each task with rows, and yield each result with its table and its task.

        If there is no row at all, a part without rows has the columns.
        """
        by_path = {file.path: file for file in files}
        tasks = list(make_tasks(files))
        program = self.question.programs()[self.table]
        with closing(run_tasks(program, tasks, workers, with_marks=True)) as runs:
            for task, run in zip(tasks, runs, strict=True):
                kept, final = self.without_failed(program, task, run.whole_result())
                has_rows = any(len(batch) for batch in final.batches)
                masked = self.question.masked(self.table, final.batches, self.columns)
                parts = {self.write_part(masked): [part.path for part in kept]} if has_rows else {}
                states = {
                    part.path: state_of(by_path[part.path], part, final.marks.get(part.path, "")) for part in kept
                }
                self.append({"parts": parts, "files": states})
                yield final, self.table, task
        if not self.parts and self.table not in HALVES:  # readers of the folder need a file with the columns
            self.append({"parts": {self.write_part([]): []}})

    def without_failed(
        self, program: ScanProgram, task: Sequence[FileRange], result: TaskResult
    ) -> tuple[Sequence[FileRange], TaskResult]:
        """Return the ranges whose rows may be saved, and their result with the problems of all.

        A range after an unreadable one waits for it. A failed file may have given some rows, so the others are scanned
        again.
        """
        problems = list(result.problems)
        while True:
            failed = {problem.path for problem in problems}
            kept = [part for part in task if part.path not in failed and part.start == self.offset_of(part)]
            if len(kept) == len(task):
                return task, result._replace(problems=problems)
            with closing(run_tasks(program, [kept], 1, with_marks=True)) as runs:
                task, result = kept, next(runs).whole_result()
            problems += result.problems

    def offset_of(self, part: FileRange) -> int:
        """Return how far the file of a range was read."""
        state = self.states.get(part.path)
        return 0 if state is None or part.end is None else state.offset


def rows_of_other_files(part: Path, paths: Any) -> Iterator[Any]:
    """Yield the batches of a part without the rows of files.  paths: an array of pyarrow."""
    pyarrow = import_pyarrow()
    compute = pyarrow.compute
    with opened_part(part) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            of_others = compute.invert(compute.is_in(batch["path"].cast(pyarrow.string()), value_set=paths))
            yield batch.filter(of_others)


def state_of(file: SourceFile, part: FileRange, mark: str) -> FileState:
    """Return how far a file is read after a range of it. Reads the end of a local file.

    mark: of an object, "" if unknown.
    """
    if file.etag is None:
        with suppress(OSError):  # it has vanished since it was read
            mark = tail_digest(read_bytes(file, max(0, file.size - MARK_BYTES), file.size))
    return FileState(file.size, file.modified, file.etag, mark, file.size if part.end is None else part.end)


def has_grown(file: SourceFile, state: FileState) -> bool:
    """Return whether the saved rows of a file are still valid.

    They are if it begins with the read bytes, these end with a whole line, and the new bytes do not reveal its session
    or host. Raises OSError and TailhookError.
    """
    if file.size <= state.size or file.path.endswith(COMPRESSED):
        return False
    if state.size == 0:
        return True
    last = read_bytes(file, max(0, state.size - MARK_BYTES), state.size)
    if not last.endswith(b"\n") or state.mark != tail_digest(last):
        return False
    if state.size >= HEAD_BYTES:
        return True
    head = read_bytes(file, 0, min(file.size, HEAD_BYTES))
    session, host = session_and_host(head[: state.size])
    return session is not None and (session, host) == session_and_host(head)


def session_and_host(head: bytes) -> tuple[str | None, str]:
    """Return the session and host in the beginning of a file. The session is None if there is none."""
    records = recognize(io.BytesIO(head))
    return (records and records.session_id) or find_session(io.BytesIO(head)), name_of_host(records)


def read_bytes(file: SourceFile, start: int, end: int) -> bytes:
    """Return the bytes of a file from `start` to `end`. Raises OSError and TailhookError."""
    if file.version is None:
        with Path(file.path).open("rb") as opened:
            opened.seek(start)
            return opened.read(end - start)
    base, name = split_url(file.url)
    store = open_store(base, file.path)
    return fetch_range(file.path, store, name, start, end - start, file.version)


# ---- the folder --------------------------------------------------------------


def update_folder(
    folder: Path,
    question: Question,
    files: Sequence[SourceFile],
    workers: int,
    begin: Callable[..., None],
    note: Callable[..., None],
) -> list[Path]:
    """Bring a folder up to date, and return its files with rows. Raises ResumeError, MissingExtraError and OSError.

    begin: gets the files to read for each table.
    note: gets each task's result, its table, and the task.
    """
    import_pyarrow()
    with opened_folder(folder, question.described()):
        tables: dict[str, PartFolder] = {}
        new: dict[str, list[SourceFile]] = {}
        for table in question.programs():
            place = folder / "halves" / table if table in HALVES else folder
            tables[table] = PartFolder(place, question, table)
            problems: list[ScanProblem] = []
            new[table] = tables[table].new_files(files, problems)
            unchanged = len(files) - len(new[table]) - len(problems)
            note(TaskResult([], Counter(unchanged_files=unchanged), problems, {}, {}), table)
        begin(*new.values())
        for table, parts in tables.items():
            for result in parts.update(new[table], workers):
                note(*result)
        if question.table not in HALVES:
            return tables[question.table].files()
        rows = folder / "rows.parquet"
        state = " ".join(f"{table}:{file_digest(parts.manifest)}" for table, parts in tables.items())
        if not is_up_to_date(rows, state):
            found = answer_question(
                question.table, question.columns, question.conditions, lambda table: tables[table].rows()
            )
            write_joined_rows(rows, state, found, make_batch(question.table, question.columns, []))
        return [rows]


@contextmanager
def opened_folder(folder: Path, question: Mapping[str, Any]) -> Iterator[None]:
    """Make a folder for the rows of a question, or check it, and lock it.

    Raises ResumeError if the folder has the rows of another question or something else, is damaged, or is in use; and
    OSError.
    """
    wanted = {"format": FORMAT, **question}
    if (known := read_kept_question(folder)) is not None:
        check_same_question(folder, known, wanted)  # before anything is written into it
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("wb") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ResumeError(f"another scan is writing to {folder}: wait until it has ended") from None
        if (known := read_kept_question(folder)) is not None:
            check_same_question(folder, known, wanted)  # another run may have written it by now
        else:
            with whole_file(folder / QUESTION) as file:
                file.write(json.dumps(wanted, indent=2).encode())
        for remains in folder.glob(".*.part"):  # of a killed run
            remains.unlink()
        yield


def file_digest(path: Path) -> str:
    """Return a digest of a file. A removed manifest may be written again with its old size. Raises OSError."""
    from hashlib import blake2b  # see tail_digest

    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def write_joined_rows(path: Path, state: str, batches: Iterable[ArrowBatch], schema: ArrowBatch) -> None:
    """Write rows.parquet. state: of its manifests."""
    with whole_file(path) as file:
        write_parquet(batches, schema, file, {STATE: state.encode()})


def is_up_to_date(path: Path, state: str) -> bool:
    """Return whether rows.parquet was made of these manifests; False if it is damaged."""
    pyarrow = import_pyarrow()
    try:
        metadata: Mapping[bytes, bytes] = pyarrow.parquet.read_schema(path).metadata or {}
    except (pyarrow.ArrowException, OSError):
        return False
    return metadata.get(STATE) == state.encode()


def read_parts(table: str, paths: Iterable[Path]) -> Iterator[ArrowBatch]:
    """Yield the rows of Parquet files. Raises ResumeError if one is damaged."""
    for path in paths:
        with opened_part(path) as file:
            for batch in file.iter_batches(BATCH_ROWS):
                yield from_pyarrow(table, batch)


@contextmanager
def opened_part(path: Path) -> Iterator[Any]:
    """Yield a Parquet file. Raises OSError, and ResumeError if its read parts are damaged."""
    pyarrow = import_pyarrow()
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except OSError as error:
        if error.errno:
            raise
        raise damage_of(path) from error
    except (pyarrow.ArrowException, ValueError, TypeError, LookupError) as error:
        raise damage_of(path) from error
