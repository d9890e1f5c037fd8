"""The files that a pool has loaded, and whether they are unchanged."""

import posix
import select

from tailhook._core import watch_folders
from tailhook.stores.atomic import stamp_of

EVENT_BYTES = 1 << 16  # read at a time


class LoadedFiles:
    """The package's modules that a pool may load, and its core.

    package: its folder.
    files: the status of these files and of the package, from before the first of them was loaded.
    more_folders: folders to watch beside those of the files.
    """

    def __init__(self, package: str, files: "dict[str, posix.stat_result]", more_folders: "list[str]") -> None:
        self.package = package
        self.place = place_of(files[package])
        self.stamps = {path: stamp_of(facts) for path, facts in files.items() if path.endswith((".py", ".so"))}
        folders = {path.rpartition("/")[0] for path in self.stamps}.union(more_folders)
        self.watch = watch_folders([folder.encode("utf-8", "surrogateescape") for folder in folders])
        self.polling = select.poll()
        if self.watch >= 0:
            self.polling.register(self.watch, select.POLLIN)

    def may_have_changed(self) -> bool:
        """Return whether something has changed in a folder; True if the system cannot find out."""
        return self.watch < 0 or bool(self.polling.poll(0))

    def have_moved(self) -> bool:
        """Return whether another folder has the package's path: a folder above was renamed, or a link was changed.

        No watch notices that.
        """
        try:
            return place_of(posix.stat(self.package)) != self.place
        except OSError:
            return True

    def have_changed(self) -> bool:
        """Return whether a file was replaced, written or removed."""
        return any(stamp(path) != known for path, known in self.stamps.items())

    def read_events(self) -> None:
        """Forget the changes noticed so far: they were of other files."""
        try:
            while self.watch >= 0 and posix.read(self.watch, EVENT_BYTES):
                pass
        except BlockingIOError:
            pass


def place_of(facts: posix.stat_result) -> "tuple[int, int]":
    """Return the device and the inode: they differ between folders."""
    return facts.st_dev, facts.st_ino


def stamp(path: str) -> "tuple[int, int, int] | None":
    """Return facts of a file that change whenever it is written or replaced, None if it is missing."""
    try:
        return stamp_of(posix.stat(path))
    except OSError:
        return None
