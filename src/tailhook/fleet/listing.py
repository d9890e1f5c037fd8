"""Which files a scan reads: what its sources are, in folders and at URLs."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from tailhook.fleet.objects import find_objects
from tailhook.fleet.plan import ENDINGS, ScanProblem, SourceFile
from tailhook.sources import is_url

ScanSource: TypeAlias = str | os.PathLike[str]  # a file, a folder, a glob or a URL


def default_folders() -> list[str]:
    """Return the transcript folders of the installed hosts that exist."""
    home = Path.home()
    claude = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    folders = (claude / "projects", codex / "sessions", home / ".gemini" / "tmp", home / ".copilot" / "session-state")
    return [str(folder) for folder in folders if folder.is_dir()]


def find_source_files(sources: Iterable[ScanSource], problems: list[ScanProblem]) -> list[SourceFile]:
    """Return the files of all sources, each once, sorted by path.

    sources: files, folders (all transcripts below them), globs, and URLs of objects and of prefixes.
    problems: gets the sources that cannot be read.
    """
    found: dict[str, SourceFile] = {}
    for source in [os.fspath(source) for source in sources]:
        if is_url(source):
            found.update((file.path, file) for file in find_objects(source, problems))
            continue
        for path in paths_of(source, problems):
            try:
                facts = os.stat(path)  # noqa: PTH116 - of 10,000 files, Path objects would take most of the time
            except OSError as error:
                problems.append(ScanProblem(path, error.strerror or str(error)))
                continue
            if stat.S_ISREG(facts.st_mode):
                found[path] = SourceFile(path, facts.st_size, facts.st_mtime)
            else:
                problems.append(ScanProblem(path, "it is not a regular file"))
    return sorted(found.values())


def paths_of(source: str, problems: list[ScanProblem]) -> Iterator[str]:
    """Yield the paths of a source's files."""
    path = Path(source)
    if path.is_dir():
        yield from files_below(path, problems)
    elif glob.has_magic(source) and not os.path.lexists(source):
        paths = sorted(glob.glob(source, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not paths:
            problems.append(ScanProblem(source, "no file matches"))
        for found in map(Path, paths):
            yield from files_below(found, problems) if found.is_dir() else (str(found),)
    else:
        yield str(path)


def files_below(folder: Path, problems: list[ScanProblem]) -> Iterator[str]:
    """Yield the transcripts in a folder and the folders below it. Links to folders are not followed."""

    def note(error: OSError) -> None:
        problems.append(ScanProblem(str(error.filename), error.strerror or str(error)))

    for parent, folders, names in os.walk(folder, onerror=note):
        folders.sort()
        first = str(Path(parent, "_"))[:-1]
        yield from (first + name for name in sorted(names) if name.endswith(ENDINGS))
