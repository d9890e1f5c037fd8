"""Lists the files of a scan: its sources, in folders and at URLs."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from tailhook._core import FoundFiles
from tailhook.fleet.objects import find_objects
from tailhook.fleet.plan import ScanProblem, SourceFile, problem_of
from tailhook.hosts import NAMES, find_host
from tailhook.transcripts.urls import is_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.hosts.protocols import Host

# A row's path is a text in UTF-8, and must open the file. Two paths with a replaced byte could be the same.
NOT_UTF8 = "its path is not UTF-8, so no row can name it: rename it"
ScanSource: TypeAlias = str | os.PathLike[str]  # a file, a folder, a glob or a URL


def default_folders(problems: list[ScanProblem]) -> list[str]:
    """Return the installed hosts' existing transcript folders, each once. Environment variables may move them.

    problems: gets the folders that cannot be reached, and links to missing ones.
    """
    folders: dict[tuple[int, int], str] = {}  # by device and inode: one folder may have several names
    for host in map(find_host, NAMES):
        for parent in host_folders(host, problems):
            for folder in [str(parent / name) for name in host.TRANSCRIPT_FOLDERS]:
                try:
                    facts = os.stat(folder)  # noqa: PTH116 - see stat_source
                except (FileNotFoundError, NotADirectoryError):
                    problems += map(problem_of_link, filter(is_broken_link, (str(parent), folder)))
                    continue
                except (OSError, ValueError) as error:
                    problems.append(problem_of(folder, error))
                    break  # the parent cannot be reached
                if stat.S_ISDIR(facts.st_mode):
                    folders.setdefault((facts.st_dev, facts.st_ino), folder)
    return list(folders.values())


def is_broken_link(path: str) -> bool:
    """Return whether a path is a link to a missing file or folder, such as one of an unmounted disk."""
    return os.path.islink(path) and not os.path.exists(path)  # noqa: PTH110, PTH114 - see stat_source


def problem_of_link(path: str) -> ScanProblem:
    """Return why nothing below a broken link can be scanned."""
    return ScanProblem(path, f"it is a link to {os.readlink(path)}, which does not exist")  # noqa: PTH115


def host_folders(host: Host, problems: list[ScanProblem]) -> list[Path]:
    """Return the folders of a host's files: the one in its environment variable, or those below the home.

    problems: gets the named one if it cannot be reached.
    """
    variable = host.HOOKS_FILE.get("folder_variable", "")
    named = os.environ.get(variable)
    if not named:
        return [Path.home() / name for name in (host.HOOKS_FILE["folder"], *host.FORMER_FOLDERS)]
    try:
        os.stat(os.path.join(named, "."))  # noqa: PTH116, PTH118 - an error for a file, too
    except OSError as error:
        reason = problem_of(named, error).reason
        problems.append(ScanProblem(named, f"{reason}; {variable} names it"))
        return []
    return [Path(named)]


def find_source_files(sources: Iterable[ScanSource], problems: list[ScanProblem]) -> Sequence[SourceFile]:
    """Return the files of all sources, each once, sorted by path.

    sources: files, folders (all transcripts below them), globs, and URLs of objects and of prefixes.
    problems: gets the unreadable sources.
    """
    found = FoundFiles(SourceFile)
    objects: dict[str, SourceFile] = {}
    unreachable: set[str] = set()
    noted = len(problems)
    for source in [os.fspath(source) for source in sources]:
        if is_url(source):
            for file in find_objects(source, problems, unreachable):
                same = objects.setdefault(file.path, file)
                if same._replace(url=file.url) != file:
                    reason = "two sources have this path in the rows, but are different files: scan each by itself"
                    problems.append(ScanProblem(file.path, reason))
        else:
            add_source(source, found, problems)
    problems[noted:] = dict.fromkeys(problems[noted:])  # a folder may be in several sources
    found.sort()
    return sorted([*found, *objects.values()], key=attrgetter("path")) if objects else found


def is_read(path: str, sources: Iterable[ScanSource] | None) -> bool:
    """Return whether a scan of these sources reads a file, by any of its names.

    sources: None for the transcripts of all installed hosts.
    """
    facts = stat_source(path, [])
    if facts is None:
        return False
    local = default_folders([]) if sources is None else [one for one in sources if not is_url(os.fspath(one))]
    read = (stat_source(file.path, []) for file in find_source_files(local, []))
    return any(one is not None and os.path.samestat(one, facts) for one in read)


def is_utf8(path: str) -> bool:
    """Return whether the bytes of a path are UTF-8."""
    if path.isascii():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def stat_source(path: str, problems: list[ScanProblem]) -> os.stat_result | None:
    """Return the system's facts about a file or folder, or None if it cannot be reached.

    `Path.is_dir` raises, before Python 3.14, if a folder above it has no permission or if the name is too long.
    problems: gets the reason.
    """
    try:
        return os.stat(path)  # noqa: PTH116 - of 10,000 files, Path objects would take most of the time
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        problems.append(problem_of(path, error))
        return None


def paths_of(source: str, problems: list[ScanProblem]) -> list[str]:
    """Return the files and folders of a source other than a URL: those that it matches if it is a glob."""
    if not glob.has_magic(source) or "\0" in source or os.path.lexists(source):
        return [str(Path(source))]
    unread: list[ScanProblem] = []
    paths = sorted(matches_of(source, unread))
    problems += unread or ([] if paths else [ScanProblem(source, "no file matches")])
    return paths


def add_source(source: str, found: FoundFiles[SourceFile], problems: list[ScanProblem]) -> None:
    """Add the files of a source other than a URL."""
    for path in paths_of(source, problems):
        facts = stat_source(path, problems)
        if facts is None:
            continue
        if stat.S_ISDIR(facts.st_mode):
            add_files_below(path, found, problems)
        elif is_utf8(path) and stat.S_ISREG(facts.st_mode):
            found.add(path, facts.st_size, facts.st_mtime)
        else:
            problems.append(problem_of_name(path))


def matches_of(pattern: str, problems: list[ScanProblem]) -> set[str]:
    """Return the paths that a glob matches.

    `glob.glob` does not report unreadable folders. Here `**` stands for folders that are not links: otherwise a link to
    a parent would never end.

    problems: gets the folders that cannot be read.
    """
    path = Path(pattern)
    found = {path.anchor}
    for part in path.parts[1 if path.anchor else 0 :]:
        found = {match for base in sorted(found) for match in matches_below(base, part, problems)}
    found = {match or "." for match in found}
    return {match for match in found if os.path.isdir(match)} if pattern.endswith("/") else found  # noqa: PTH112


def matches_below(base: str, part: str, problems: list[ScanProblem]) -> Iterator[str]:
    """Yield the paths that one part of a glob matches in a folder. base, and a path: "" for the current folder."""

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            problems.append(problem_of(str(error.filename), error))

    if part == "**":
        for folder, folders, _ in os.walk(base or ".", onerror=note):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            yield "" if folder == "." and not base else str(Path(folder))
    elif glob.has_magic(part):
        try:
            names = os.listdir(base or ".")  # noqa: PTH208 - see stat_source
        except OSError as error:
            note(error)
            return
        is_shown = part.startswith(".")
        yield from (os.path.join(base, name) for name in fnmatch.filter(names, part) if is_shown or name[0] != ".")  # noqa: PTH118
    else:
        path = os.path.join(base, part)  # noqa: PTH118
        try:
            os.lstat(path)
        except PermissionError as error:
            note(error)
        except OSError:  # such as a too long name
            return
        else:
            yield path


def add_files_below(folder: str, found: FoundFiles[SourceFile], problems: list[ScanProblem]) -> None:
    """Add the transcripts in a folder and the folders below it. Links are not followed, as in ripgrep."""
    waiting = [folder]
    while waiting:
        parent = waiting.pop()
        try:
            folders, faults = found.add_folder(parent, str(Path(parent, "_"))[:-1])
        except OSError as error:
            problems.append(problem_of(str(Path(parent)), error))
            continue
        problems += [
            problem_of(path, OSError(error, os.strerror(error))) if error else problem_of_name(path)
            for path, error in faults
        ]
        waiting += reversed(folders)


def problem_of_name(path: str) -> ScanProblem:
    """Return why the file of a path cannot be scanned."""
    return ScanProblem(path, "it is not a regular file" if is_utf8(path) else NOT_UTF8)
