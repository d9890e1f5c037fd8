"""The folders that the commands search for a loop: they find the hook's loop from any folder of the agent."""

import os
import posix
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tailhook.cli.output import CommandError
from tailhook.hook.answer import plain
from tailhook.hook.payload import exists, folder_of, project_folders, walk_up, working_folder
from tailhook.hook.plates import read_git_file
from tailhook.hosts import DEFAULT, current_host, current_session
from tailhook.hosts.nesting import ancestors
from tailhook.machines.notices import known_session

LoopT = TypeVar("LoopT", bound="FoundLoop | None")

MAX_WORKTREES = 1000  # of a repository, at most
HOST_PID = "CLAUDE_PID"  # Claude Code 2.1.329 names its process in its shells
REMOVED = " (deleted)"  # behind the path of a removed folder (proc_pid_cwd(5))


class FoundLoop(Protocol):
    """A loop as its store gives it.

    path: of its store or state file.
    """

    path: str


def enter_session_project() -> None:
    """Let this process find the project that the hooks of its session find, if the session is one of Claude Code.

    The agent may be in another repository, and its shell has no CLAUDE_PROJECT_DIR. In Claude Code's hooks, that is the
    folder of the host's own process. If it was removed, that is the folder at its path now: the hooks know the path.
    Sets the variable for this process.
    """
    host = os.environ.get(HOST_PID, "")
    session = current_session() if current_host().NAME == DEFAULT else ""
    if session and b"CLAUDE_PROJECT_DIR" not in posix.environ and host in map(str, ancestors()):
        with suppress(OSError):
            name = posix.readlink(f"/proc/{host}/cwd")
            if folder := next(filter(os.path.isdir, (name, name.removesuffix(REMOVED))), ""):
                posix.environ[b"CLAUDE_PROJECT_DIR"] = os.fsencode(folder)


def loop_folders() -> Iterator[str]:
    """Yield the folders to search for a loop, in order, each once.

    First the folders of the hook in the agent's folder; then the main worktree or the superproject of its repository,
    and its linked worktrees; then the folders around them, up to the home folder. (A host starts its hooks in the
    project's folder. The agent may have gone to a repository in it, and its shell need not know the project.)
    """
    seen: set[str] = set()
    here = working_folder({})
    top = next((folder for folder in walk_up(here) if exists(f"{folder}/.git")), here)
    for folder in (*project_folders({}), *relatives_of(top), *folders_up_to_home(here)):
        if folder not in seen:
            seen.add(folder)
            yield folder


def folders_up_to_home(folder: str) -> Iterator[str]:
    """Yield a folder and its parents up to the home folder; outside of the home folder, only those of the same user."""
    home = folder_of(b"HOME")
    is_inside = f"{folder}/".startswith(f"{home}/")
    for parent in walk_up(folder):
        if not is_inside and not is_own(parent):
            return
        yield parent
        if parent == home:
            return


def is_own(folder: str) -> bool:
    """Return whether a folder belongs to this user: another user's must not decide what a command finds."""
    try:
        return Path(folder).stat().st_uid == os.geteuid()
    except OSError:
        return False


def relatives_of(top: str) -> Iterator[str]:
    """Yield the main worktree or the superproject of a repository, and then its linked worktrees.

    top: the folder that holds `.git`.
    """
    git = git_folder(f"{top}/.git")
    while git:
        common = common_folder(git)
        outer, _, inner = common.partition("/.git/modules/")
        main = outer if inner else common.removesuffix("/.git")
        if main != top and exists(f"{main}/.git"):
            yield main
        yield from linked_worktrees(common)
        if not inner:
            return
        git, top = git_folder(f"{main}/.git"), main


def git_folder(path: str) -> str:
    """Return the git folder: `.git` itself, or the folder that it names; "" if there is none (gitrepository-layout)."""
    if Path(path).is_dir():
        return path
    return named_path(path, path.rpartition("/")[0], b"gitdir:")


def common_folder(git: str) -> str:
    """Return the git folder shared by all worktrees of a repository."""
    return named_path(f"{git}/commondir", git) or git


def linked_worktrees(git: str) -> Iterator[str]:
    """Yield the linked worktrees of a repository, in the order of their names."""
    try:
        folders = sorted(map(str, Path(f"{git}/worktrees").iterdir()))[:MAX_WORKTREES]
    except OSError:
        return
    for folder in folders:
        pointer = named_path(f"{folder}/gitdir", folder)
        if pointer.endswith("/.git"):
            yield pointer.removesuffix("/.git")


def named_path(file: str, folder: str, prefix: bytes = b"") -> str:
    """Return the absolute path that a file of git names, "" if it cannot be read.

    folder: the start of a relative path. prefix: the text before the path.
    """
    try:
        name = os.fsdecode(read_git_file(file).removeprefix(prefix).strip())
    except (OSError, ValueError):
        return ""
    return os.path.normpath(f"{folder}/{name}" if not name.startswith("/") else name) if name else ""


def find_first_live(find: Callable[[list[str]], LoopT], is_live: Callable[[Any], bool]) -> LoopT:
    """Return the first live loop; without one, the loop that the hook would find, or None.

    find: returns the loop in folders, None if there is none. Raises OSError if it cannot be read. That is an error only
        in the hook's folders.
    """
    first = find(list(project_folders({})))
    if first is not None and is_live(first):
        return first
    for folder in loop_folders():
        try:
            loop = find([folder])
        except OSError:
            continue
        if loop is not None and is_live(loop):
            return loop
    return first


def find_changeable(
    find: Callable[[list[str]], LoopT], is_live: Callable[[Any], bool], owner_of: Callable[[Any], str]
) -> LoopT:
    """Return the live loop that a command of this session may change; without one, like `find_first_live`.

    This is the session's own loop in any folder; otherwise a loop in the hook's folders, or an unclaimed one elsewhere.
    A person outside of a session may change all of them.

    find, is_live: as for `find_first_live`.
    owner_of: returns the id of a loop's session, or CLAIM or "" if it has none yet.

    Raises CommandError if the only live loop belongs to another session and is elsewhere.
    """
    session = current_session()
    loop = find_first_live(find, is_live)
    if loop is None or not session or not is_live(loop):
        return loop
    own = find_first_live(find, lambda other: is_live(other) and owner_of(other) == session)
    if own is not None and is_live(own) and owner_of(own) == session:
        return own
    folder, owner = folder_of_loop(loop.path), owner_of(loop)
    if folder not in project_folders({}) and known_session(owner):
        raise CommandError(f"a loop of session {plain(owner)} is in {plain(folder)}: to change it, run this there")
    return loop


def name_elsewhere(path: str) -> str:
    """Return a sentence that names a loop's folder; "" if this folder's hook looks there. path: as below."""
    return f" It is{where}." if (where := where_elsewhere(path)) else ""


def where_elsewhere(path: str) -> str:
    """Return a loop's folder behind " in"; "" if this folder's hook looks there. path: as below."""
    folder = folder_of_loop(path)
    return "" if folder in project_folders({}) else f" in {plain(folder)}"


def folder_of_loop(path: str) -> str:
    """Return the project's folder of a loop.  path: of its store or state file."""
    folder, found, _ = path.rpartition("/.claude/")
    return (folder if found else path.rpartition("/")[0]) or "/"
