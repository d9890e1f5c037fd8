"""A ralph loop on disk: `.claude/ralph-loop.local.md`, and the log beside it."""

import posix

from tailhook.stores import RALPH_FILE
from tailhook.stores.atomic import SAFE, write_all
from tailhook.stores.frontmatter import FrontMatter, FrontMatterFile, quote_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNQUOTED = ("active", "iteration")  # the keys whose values other tools write, and read, without quotes
LOG = "ralph-debug.log"
MAX_LOG_BYTES = 1_000_000  # then the log is emptied
MAX_LOG_LINE_CHARS = 500  # characters of a line of the log


class RalphFile(FrontMatterFile):
    """The state file of a project's loop. Raises OSError if it is missing or a symbolic link."""

    def __init__(self, project: str) -> None:
        super().__init__(project, RALPH_FILE)
        if self.gone:
            raise FileNotFoundError(self.path)

    @property
    def state(self) -> "dict[str, str | None] | None":
        """The front matter's values, None if there is none."""
        return self.page.values() if self.page else None

    @property
    def prompt(self) -> str:
        """The text to feed back to the agent; invalid UTF-8 is replaced."""
        body = self.page.body if self.page else ""
        return body if body.isascii() else body.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def line_of(self, key: str) -> int:
        """Return the line number of `key`, from 1; 0 without front matter."""
        return self.page.line(key) if self.page else 0

    def write(self, values: "Mapping[str, str]") -> None:
        """Write values into the front matter, each in its place. Only under the lock. Raises OSError."""
        page, text = self.page, ""
        for key, value in values.items():
            page = FrontMatter(text) if text else page
            text = page.set(key, value if key in UNQUOTED else quote_yaml(value)) if page else ""
        self.replace(text)

    def log(self, line: str) -> None:
        """Append a line to the log; empty it first if it is large. A failure changes nothing."""
        try:
            flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | SAFE
            fd = posix.open(LOG, flags, 0o600, dir_fd=self.folder)
        except OSError:
            return
        try:
            if posix.fstat(fd).st_size > MAX_LOG_BYTES:
                posix.ftruncate(fd, 0)
            write_all(fd, f"{line[:MAX_LOG_LINE_CHARS]}\n".encode("utf-8", "backslashreplace"))
        except OSError:
            pass
        finally:
            posix.close(fd)


def find_ralph(folders: "Iterable[str]") -> RalphFile | None:
    """Return the state file of the first folder with one, or None.

    Raises OSError with the file's path if it exists but cannot be read, or only by following a link.
    """
    for folder in folders:
        try:
            return RalphFile(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return None
