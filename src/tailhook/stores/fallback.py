"""The idle machine's loop without a store: `.claude/idle-loop.local.md`."""

from tailhook._core import iso_time
from tailhook.stores import FALLBACK_FILE
from tailhook.stores.frontmatter import FrontMatter, FrontMatterFile, quote_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class FileLoop(FrontMatterFile):
    """The loop in `.claude/idle-loop.local.md`: one frame, its front matter; the file's mtime is its clock."""

    def __init__(self, project: str) -> None:
        super().__init__(project, FALLBACK_FILE)

    @property
    def state(self) -> "dict[str, Any]":
        """The front matter as a state of one frame. A file that is not active reads as an aborted loop."""
        if self.gone:
            return {"stack": []}
        if self.page is None:
            return {"stack": [{}], "updated_at": self.updated_at}
        get = self.page.get
        top = {"mode": get("mode"), "iter": get("iteration"), "max": get("max_iterations")}
        for key in ("session_id", "paused"):
            if (value := get(key)) is not None:
                top[key] = value
        event = "STATE" if get("active") == "true" else "ABORT"
        return {"schema": 1, "event": event, "updated_at": self.updated_at, "stack": [top]}

    @property
    def goal(self) -> str:
        """The prompt: the text after the front matter."""
        return self.page.body if self.page else ""

    @property
    def updated_at(self) -> str:
        """The file's modification time, in the form of a state."""
        return iso_time(self.changed)

    def save(self, state: "dict[str, Any]", now: float) -> None:
        """Rewrite the values that differ; for an ended loop, remove the file and save its end. Raises OSError.

        now: the time of an end. Otherwise the file's clock is its modification time.
        """
        if not state["stack"] or self.page is None:
            if reason := state.get("reason"):
                self.keep_end(reason, now)
            self.remove()
            return
        top, old = state["stack"][-1], self.state["stack"][-1]
        text = self.page.text
        if top["iter"] != old["iter"]:
            text = FrontMatter(text).set("iteration", str(top["iter"]))
        for key in ("session_id", "paused"):
            if top.get(key) != old.get(key):
                text = FrontMatter(text).set(key, quote_yaml(top[key]) if key in top else "null")
        self.replace(text)
