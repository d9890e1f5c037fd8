"""Does a loop wait for background work that ends by itself?  (docs/machines/idle.md, "Waiting")

Pure, like the machines that use it. They import it only at a stop with such work.
"""

from tailhook._core import fingerprint
from tailhook.machines import clip_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

KINDS = ("shell", "monitor", "mcp")  # of tasks; an agent's own tasks pause the session
IN_FLIGHT = (None, "running", "pending")  # the statuses of such a task
MAX_NAMED = 5  # pieces of work that a message names
MAX_NAME_CHARS = 100


class Work:
    """The background work of a session that ends by itself, or that wakes the agent once.

    names: what a message calls each piece, by its id.
    size: returns the size of the transcript in bytes, 0 if it cannot be read.
    used_tools: returns whether the agent used a tool since the transcript had a size.
    """

    __slots__ = ("names", "size", "used_tools")

    def __init__(self, names: "dict[str, str]", size: "Callable[[], int]", used_tools: "Callable[[int], bool]") -> None:
        self.names = names
        self.size = size
        self.used_tools = used_tools

    def mark(self) -> str:
        """Return what a loop saves at a stop with this work: the transcript's size, and a hash of the ids."""
        return f"{self.size()}:{hash_ids(self.names)}"

    def is_waited_for(self, mark: object) -> bool:
        """Return whether the stop before had the same work, and the agent has used no tool since.

        mark: what the loop saved at that stop, if anything.
        """
        size, _, ids = mark.partition(":") if isinstance(mark, str) else ("", "", "")
        if not (size.isascii() and size.isdigit() and len(size) < 20) or ids != hash_ids(self.names):
            return False
        return not self.used_tools(int(size))

    def shown(self) -> str:
        """Return the work in words."""
        names = list(self.names.values())
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return f"{', '.join(names[:MAX_NAMED])}{more}"

    def advice(self) -> str:
        """Return the paragraph for the agent at the first stop with this work."""
        return (
            f"In the background: {self.shown()}. If only this is left to wait for, stop again without using a tool: "
            "the loop then waits for it, too."
        )


def hash_ids(ids: "Collection[str]") -> str:
    """Return a hash of ids in any order."""
    return f"{fingerprint(chr(0).join(sorted(ids)).encode('utf-8', 'surrogatepass')):016x}"


def find_work(tasks: object, wake_ups: object) -> "dict[str, str]":
    """Return the names of the pieces of work, by their ids.

    tasks: the payload's `background_tasks`.  wake_ups: its `session_crons` (Claude Code 2.1.332); those that return
    again and again are no work.
    """
    found = {}
    for task in listed(tasks):
        kind = text_of(task, "type")
        if task.get("status") in IN_FLIGHT and any(word in kind.lower() for word in KINDS):
            what = text_of(task, "command") or text_of(task, "description") or text_of(task, "id")
            found[f"task {text_of(task, 'id')}"] = f"{kind} `{clip_field(what, MAX_NAME_CHARS)}`"
    for one in listed(wake_ups):
        if one.get("recurring") is False:
            when = clip_field(text_of(one, "schedule"), MAX_NAME_CHARS)
            found[f"wake-up {text_of(one, 'id')}"] = f"a wake-up at `{when}`"
    return found


def listed(values: object) -> "list[dict[str, Any]]":
    """Return the objects in a list, [] for another value."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def text_of(members: "dict[str, Any]", key: str) -> str:
    """Return a string of an object, "" if it is missing or another kind of value."""
    value = members.get(key)
    return value if isinstance(value, str) else ""
