"""Where a project is, for the paths of edited files. A stop imports it for the first edit that a rule may concern."""

import posix

from tailhook._core import get_text
from tailhook.hook.payload import exists, walk_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.hook.event import HookEvent

MAX_FOLDERS = 200  # to compare with the project's by more than their paths


class ProjectFolders:
    """The possible starts of a pattern's path: the project's root, the agent's folder, its repository."""

    def __init__(self, event: "HookEvent") -> None:
        cwd = get_text(event.payload, "cwd")
        top = event.folders[-1] if exists(f"{event.folders[-1]}/.git") else event.root  # a worktree is outside the root
        self.paths = [folder for folder in {event.root: 1, cwd: 1, top: 1} if folder.startswith("/")]
        self.by_parent: dict[str, list[str]] = {}  # the results of `relative_to` by a file's folder

    def paths_of(self, path: str) -> list[str]:
        """Return all paths of a file: the absolute one, and those from the folders; the longest last."""
        path = without_dots(path)
        if not path.startswith("/"):
            return [path]
        parent, _, name = path.rpartition("/")
        if parent not in self.by_parent:
            full = len(self.by_parent) >= MAX_FOLDERS
            self.by_parent[parent] = [] if full else self.relative_to(parent)
        found = [f"{folder}{name}" for folder in self.by_parent[parent]]
        return [path, *sorted(found, key=len)]

    def relative_to(self, parent: str) -> list[str]:
        """Return a folder's path from each of the project's folders above it, "" or with a slash at its end.

        Folders are compared by device and inode if their paths differ: a link may lead to the project.
        """
        ids = {identity(folder) for folder in self.paths} - {None}
        found = []
        for folder in walk_up(parent):
            if folder in self.paths or (ids and identity(folder) in ids):
                found.append(f"{parent[len(folder) :].lstrip('/')}/".removeprefix("/"))
        return found


def identity(path: str) -> "tuple[int, int] | None":
    """Return the device and inode of a file or folder, None if the system refuses them."""
    try:
        facts = posix.stat(path)
    except (OSError, ValueError):
        return None
    return facts.st_dev, facts.st_ino


def without_dots(path: str) -> str:
    """Return a path without "." and ".." in it, without looking at the disk."""
    if "/." not in path and not path.startswith("."):
        return path
    names: list[str] = []
    for name in path.split("/"):
        if name == ".." and names and names[-1] not in ("", ".."):
            names.pop()
        elif name != ".":
            names.append(name)
    return "/".join(names)
