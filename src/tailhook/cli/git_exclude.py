"""Keeps git from listing the files of loops: lines in `info/exclude` of the project's repository (gitignore(5))."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tailhook.cli.loop_folders import common_folder, git_folder
from tailhook.hook.memory import FLAG_NAME
from tailhook.hook.payload import exists, walk_up
from tailhook.stores import FALLBACK_FILE, RALPH_FILE
from tailhook.stores.atomic import Lock, make_folder, read_file
from tailhook.stores.ralph import LOG

FILES = (RALPH_FILE, LOG, FALLBACK_FILE, FLAG_NAME)  # that tailhook writes into a project's .claude
EXCLUDED = tuple(f"**/.claude/{name}".encode() for name in FILES)


def exclude_from_git(project: str) -> None:
    """List the files of loops in the `info/exclude` of a project's repository, each once; its other lines stay.

    A failure changes nothing: git lists the files then.
    """
    path = exclude_file(project)
    if not path:
        return
    with contextlib.suppress(OSError):
        make_folder(path.rpartition("/")[0])
        with Lock(path) as exclude, open(exclude.fd, "r+b", closefd=False) as file:
            lines = file.read().split(b"\n")
            missing = [line for line in EXCLUDED if line not in lines]
            if missing:
                file.write(b"\n".join([b"", *missing, b""] if lines[-1] else [*missing, b""]))


def exclude_file(project: str) -> str:
    """Return the path of `info/exclude` of a project's repository, "" if there is no repository."""
    top = next((folder for folder in walk_up(project) if exists(f"{folder}/.git")), None)
    git = git_folder(f"{top}/.git") if top else ""
    return f"{common_folder(git)}/info/exclude" if git else ""


def saved_paths(folders: Iterable[str]) -> Iterator[str]:
    """Yield the files that loops and hooks have left in these folders, and `info/exclude` if it lists them.

    The drafts of killed hooks are among them.
    """
    for folder in folders:
        with contextlib.suppress(OSError):
            for path in sorted(map(str, Path(f"{folder}/.claude").iterdir())):
                if path.rpartition("/")[2].startswith(FILES):
                    yield path
        if exists(f"{folder}/.git") and (path := listing_file(folder)):
            yield path


def listing_file(project: str) -> str:
    """Return the path of `info/exclude` of a project's repository if it lists files of loops, otherwise ""."""
    path = exclude_file(project)
    with contextlib.suppress(OSError):
        if path and not {*EXCLUDED}.isdisjoint(read_file(path).split(b"\n")):
            return path
    return ""
