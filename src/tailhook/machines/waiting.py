"""Does a loop wait for background work that ends by itself?  (docs/machines/idle.md, "Waiting")

Pure, like the machines that use it. They import it only at a stop with such work.
"""

from tailhook._core import fingerprint, iso_time
from tailhook.machines import Verdict, clip_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from tailhook.machines import ChangeT
    from tailhook.machines.protocols import Turn

WAITED_KINDS = ("shell", "monitor", "mcp")  # of tasks; an agent's own tasks pause the session
IN_FLIGHT = (None, "running", "pending")  # the statuses of such a task
MAX_LISTED_WORK = 5  # pieces of work that a message names
MAX_WORK_CHARS = 100


SENT_PROMPT = "To go on without it, send the agent a prompt."


class Work:
    """The background work of a session. All of it ends by itself, or wakes the agent once.

    names: what a message calls each piece, by its id.
    turn: what the agent did since the stop before.
    place: where the next turn begins.
    """

    __slots__ = ("names", "place", "turn")

    def __init__(self, names: "dict[str, str]", turn: "Turn") -> None:
        self.names = names
        self.turn = turn
        self.place = turn.place()

    def mark(self) -> str:
        """Return what a loop saves at a stop with this work: the place, a hash of the ids, and the work in words."""
        return f"{self.place}:{hash_ids(self.names)} {self.shown()}"

    def is_waited_for(self, mark: object) -> bool:
        """Return whether the stop before had the same work, and the agent has used no tool since.

        mark: what the loop saved at that stop, if anything.
        """
        place, _, ids = mark.partition(":") if isinstance(mark, str) else ("", "", "")
        return ids.partition(" ")[0] == hash_ids(self.names) and not self.turn.used_tools(place)

    def wait(self, change: "ChangeT | None") -> "Verdict[ChangeT]":
        """Return the verdict of a stop at which a loop waits for this work: allow, count nothing.

        change: what to save beside that.
        """
        shown = self.shown()
        message = f"tailhook: the loop waits for {shown}, and goes on when that ends. {SENT_PROMPT}"
        return Verdict("allow", f"waiting for {shown}", change, message=message)

    def shown(self) -> str:
        """Return the work in words."""
        names = list(self.names.values())
        more = f" and {len(names) - MAX_LISTED_WORK} more" if len(names) > MAX_LISTED_WORK else ""
        return f"{', '.join(names[:MAX_LISTED_WORK])}{more}"

    def advice(self) -> str:
        """Return the paragraph for the agent at the first stop with this work."""
        return (
            f"In the background: {self.shown()}. If only this is left to wait for, stop again without using a tool: "
            "the loop then waits for it, too."
        )


def describe_waiting(mark: object) -> str:
    """Return what a loop may wait for, and since when, for a person; "" if it does not.

    mark: what the loop saved at its last stop, if anything.
    """
    place, _, rest = mark.partition(":") if isinstance(mark, str) else ("", "", "")
    shown, at = rest.partition(" ")[2], place.partition("@")[2]
    try:
        since = iso_time(float(at))
    except (ValueError, OverflowError):
        return ""
    if not shown:
        return ""
    return (
        f"the loop has waited for {clip_field(shown)} since {since}. If that has ended, or the agent has used a tool "
        f"since, it must continue. {SENT_PROMPT.rstrip('.')}"
    )


def hash_ids(ids: "Collection[str]") -> str:
    """Return a hash of ids in any order."""
    return f"{fingerprint(chr(0).join(sorted(ids)).encode('utf-8', 'surrogatepass')):016x}"


def find_work(tasks: object, wake_ups: object) -> "dict[str, str]":
    """Return the names of the pieces of work, by their ids.

    tasks: the payload's `background_tasks`.  wake_ups: its `session_crons` (Claude Code 2.1.332); recurring
    ones are not waited for.
    """
    found = {}
    for task in listed(tasks):
        kind = text_in(task, "type")
        if task.get("status") in IN_FLIGHT and any(word in kind.lower() for word in WAITED_KINDS):
            what = text_in(task, "command") or text_in(task, "description") or text_in(task, "id")
            found[f"task {text_in(task, 'id')}"] = f"{kind} `{clip_field(what, MAX_WORK_CHARS)}`"
    for wake_up in listed(wake_ups):
        if wake_up.get("recurring") is False:
            when = clip_field(text_in(wake_up, "schedule"), MAX_WORK_CHARS)
            found[f"wake-up {text_in(wake_up, 'id')}"] = f"a wake-up at `{when}`"
    return found


def listed(values: object) -> "list[dict[str, Any]]":
    """Return the objects in a list, [] for another value."""
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def text_in(members: "dict[str, Any]", key: str) -> str:
    """Return a string of an object, "" if it is missing or another kind of value."""
    value = members.get(key)
    return value if isinstance(value, str) else ""
