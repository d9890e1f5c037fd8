"""The idle machine's loop without a store: `.claude/idle-loop.local.md`."""

import posix
from time import gmtime, strftime

from tailhook.stores.atomic import (
    Lock,
    open_folder,
    private_name,
    read_file,
    remove_file,
    replace_file,
    state_folder,
)
from tailhook.stores.frontmatter import FrontMatter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "idle-loop.local.md"


class FileLoop:
    """The loop in `.claude/idle-loop.local.md`: one frame, its front matter; the file's mtime is its clock."""

    def __init__(self, project: str) -> None:
        self.path = f"{project}/.claude/{NAME}"
        self.folder = open_folder(project, ".claude")
        self.reload()

    def __del__(self) -> None:
        if hasattr(self, "folder"):
            posix.close(self.folder)

    def lock(self) -> Lock:
        """The lock to hold from `reload` to `save`: in the private state folder, named by the file's path."""
        return Lock(f"{state_folder()}/{private_name(self.path)}.lock")

    def reload(self) -> None:
        """Read the file again; a file that is gone by now is a loop that ended."""
        self.page: FrontMatter | None = None
        self.changed = 0.0
        try:
            text = read_file(NAME, self.folder).decode("utf-8", "surrogateescape")
            self.changed = posix.stat(NAME, dir_fd=self.folder, follow_symlinks=False).st_mtime
            self.gone = False
        except FileNotFoundError:
            self.gone = True
            return
        try:
            self.page = FrontMatter(text)
        except ValueError:
            return

    @property
    def state(self) -> "dict[str, Any]":
        """The front matter as a state of one frame. A file that is not active reads as an aborted loop."""
        if self.gone:
            return {"stack": []}
        if self.page is None:
            return {"stack": [{}], "updated_at": self.updated_at}
        get = self.page.get
        top = {"mode": get("mode"), "iter": get("iteration"), "max": get("max_iterations")}
        if (owner := get("session_id")) is not None:
            top["session_id"] = owner
        event = "STATE" if get("active") == "true" else "ABORT"
        return {"schema": 1, "event": event, "updated_at": self.updated_at, "stack": [top]}

    @property
    def goal(self) -> str:
        """The prompt: what follows the front matter."""
        return self.page.body if self.page else ""

    @property
    def updated_at(self) -> str:
        """The file's modification time, as a state spells it."""
        return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(self.changed))

    def save(self, state: "dict[str, Any]", now: float) -> None:  # noqa: ARG002 - the file's clock is its mtime
        """Rewrite the count and a claimed owner; remove the file of a loop that ended. Raises OSError."""
        if not state["stack"] or self.page is None:
            remove_file(NAME, self.folder)
            return
        top, old = state["stack"][-1], self.state["stack"][-1]
        text = self.page.text
        if top["iter"] != old["iter"]:
            text = FrontMatter(text).set("iteration", str(top["iter"]))
        if top.get("session_id") != old.get("session_id"):
            text = FrontMatter(text).set("session_id", f'"{top["session_id"]}"')
        replace_file(NAME, text.encode("utf-8", "surrogateescape"), self.folder)
        self.page = FrontMatter(text)
