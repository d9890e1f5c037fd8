"""Keeps git from listing the files of loops: lines in `info/exclude` of the project's repository (gitignore(5))."""

import contextlib

from tailhook.cli.loop_folders import common_folder, git_folder
from tailhook.hook.memory import FLAG_NAME
from tailhook.hook.payload import exists, walk_up
from tailhook.stores import FALLBACK_FILE, RALPH_FILE
from tailhook.stores.atomic import Lock, make_folder
from tailhook.stores.ralph import LOG

WRITTEN = tuple(f"**/.claude/{name}" for name in (RALPH_FILE, LOG, FALLBACK_FILE, FLAG_NAME))


def exclude_from_git(project: str) -> None:
    """List the files of loops in the `info/exclude` of a project's repository, each once; its other lines stay.

    A failure changes nothing: git lists the files then.
    """
    top = next((folder for folder in walk_up(project) if exists(f"{folder}/.git")), None)
    git = git_folder(f"{top}/.git") if top else ""
    if not git:
        return
    folder = f"{common_folder(git)}/info"
    with contextlib.suppress(OSError):
        make_folder(folder)
        with Lock(f"{folder}/exclude") as exclude, open(exclude.fd, "r+b", closefd=False) as file:
            lines = file.read().split(b"\n")
            missing = [line for line in map(str.encode, WRITTEN) if line not in lines]
            if missing:
                file.write(b"\n".join([b"", *missing, b""] if lines[-1] else [*missing, b""]))
