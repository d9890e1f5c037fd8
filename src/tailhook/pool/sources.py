"""The files that a pool was loaded from, and whether they are still the same."""

import posix
import select

from tailhook import _core
from tailhook._core import watch_folders
from tailhook.stores.atomic import stamp_of

LOADED_FOLDERS = ("", "pool", "stores", "machines", "hook", "hook/hosts")  # the folders of what a pool loads
EVENT_BYTES = 1 << 16  # read at a time


class Sources:
    """The package's modules that a pool may load, and its core. Make it before they are loaded.

    more_folders: folders to watch beside those of the package.
    """

    def __init__(self, more_folders: "list[str]") -> None:
        package = _core.__file__.rpartition("/")[0]
        folders = [f"{package}/{room}".rstrip("/") for room in LOADED_FOLDERS]
        self.watch = watch_folders([folder.encode("utf-8", "surrogateescape") for folder in [*folders, *more_folders]])
        paths = [f"{folder}/{name}" for folder in folders for name in posix.listdir(folder)]
        self.stamps = {path: stamp(path) for path in paths if path.endswith((".py", ".so"))}
        self.polling = select.poll()
        if self.watch >= 0:
            self.polling.register(self.watch, select.POLLIN)

    def may_have_changed(self) -> bool:
        """Return whether something has changed in a folder, or the system cannot find out."""
        return self.watch < 0 or bool(self.polling.poll(0))

    def have_changed(self) -> bool:
        """Return whether a file was replaced, written or removed."""
        return any(stamp(path) != known for path, known in self.stamps.items())

    def read_events(self) -> None:
        """Forget the changes that were noticed so far: they were not of these files."""
        try:
            while self.watch >= 0 and posix.read(self.watch, EVENT_BYTES):
                pass
        except BlockingIOError:
            pass


def stamp(path: str) -> "tuple[int, int, int] | None":
    """Return what changes whenever a file is written or replaced, None if it is missing."""
    try:
        return stamp_of(posix.stat(path))
    except OSError:
        return None
