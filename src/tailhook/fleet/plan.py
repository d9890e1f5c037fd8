"""Which files a scan reads, and the tasks into which they are cut."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tailhook._core import parse_record

TASK_BYTES = 64 << 20  # of a task: a larger file is cut, smaller ones are packed together
HEAD_BYTES = 1 << 20  # in which a file's session is looked for
FIRST_HEAD_BYTES = 1 << 15  # that are read at first
ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")


class SourceFile(NamedTuple):
    """A file to scan.

    path: as it is shown in rows.
    size: in bytes.
    modified: Unix seconds.
    """

    path: str
    size: int
    modified: float


class FileRange(NamedTuple):
    """A part of a file: the lines whose first byte is in [start, end).

    end: None for the end of the file, whatever it is when it is read.
    """

    path: str
    start: int
    end: int | None


class Problem(NamedTuple):
    """A source that could not be read, and why."""

    path: str
    reason: str


def default_folders() -> list[str]:
    """Return the transcript folders of the installed hosts that exist."""
    home = Path.home()
    claude = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    folders = (claude / "projects", codex / "sessions", home / ".gemini" / "tmp", home / ".copilot" / "session-state")
    return [str(folder) for folder in folders if folder.is_dir()]


def find_files(sources: Iterable[str | os.PathLike[str]], problems: list[Problem]) -> list[SourceFile]:
    """Return the files of all sources, each once, sorted by path.

    sources: files, folders (all transcripts below them) and globs.
    problems: gets the sources that cannot be read.
    """
    found: dict[str, SourceFile] = {}
    for source in sources:
        for path in paths_of(os.fspath(source), problems):
            try:
                facts = path.stat()
            except OSError as error:
                problems.append(Problem(str(path), error.strerror or str(error)))
                continue
            if stat.S_ISREG(facts.st_mode):
                found[str(path)] = SourceFile(str(path), facts.st_size, facts.st_mtime)
            else:
                problems.append(Problem(str(path), "it is not a regular file"))
    return sorted(found.values())


def paths_of(source: str, problems: list[Problem]) -> Iterator[Path]:
    """Yield the paths of a source's files."""
    path = Path(source)
    if path.is_dir():
        yield from files_below(path, problems)
    elif glob.has_magic(source) and not os.path.lexists(source):
        paths = sorted(glob.glob(source, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not paths:
            problems.append(Problem(source, "no file matches"))
        for found in map(Path, paths):
            yield from files_below(found, problems) if found.is_dir() else (found,)
    else:
        yield path


def files_below(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yield the transcripts in a folder and the folders below it. Links to folders are not followed."""

    def note(error: OSError) -> None:
        problems.append(Problem(str(error.filename), error.strerror or str(error)))

    for parent, folders, names in os.walk(folder, onerror=note):
        folders.sort()
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(ENDINGS))


def make_tasks(files: Sequence[SourceFile], task_bytes: int = TASK_BYTES) -> Iterator[list[FileRange]]:
    """Yield tasks of about `task_bytes` each, in the order of the files."""
    task: list[FileRange] = []
    size = 0
    for file in files:
        if size + file.size > task_bytes and task:
            yield task
            task, size = [], 0
        if file.path.endswith((".gz", ".zst")) or file.size <= task_bytes:
            task.append(FileRange(file.path, 0, None))
            size += file.size
            continue
        starts = range(0, file.size, task_bytes)
        for start in starts:
            yield [FileRange(file.path, start, None if start == starts[-1] else start + task_bytes)]
    if task:
        yield task


def session_of(data: bytes) -> str | None:
    """Return the session that the first whole lines of a file name, or None."""
    for line in data.split(b"\n")[:-1]:
        if b"sessionId" in line or b"\\u" in line:
            record = parse_record(line)
            if record is not None and record.session_id:
                return str(record.session_id)
    return None


def name_of(path: str) -> str:
    """Return the name of a file without its ending: the session of records that name none.

    >>> name_of("/home/me/.claude/projects/p/0a1b.jsonl.gz")
    '0a1b'
    """
    name = Path(path).name
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)
