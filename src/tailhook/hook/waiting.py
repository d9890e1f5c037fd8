"""Finds the background work of a stop, and whether the agent has used a tool since the stop before."""

import posix

from tailhook.machines.waiting import Work, find_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.hook.event import HookEvent


def work_of(event: "HookEvent") -> "Work | None":
    """Return the work that ends by itself, or that wakes the agent once; None without any."""
    names = find_work(event.payload.get("background_tasks"), event.payload.get("session_crons"))
    if not names:
        return None

    def size() -> int:
        try:
            return posix.stat(event.transcript_path()).st_size
        except (OSError, ValueError):
            return 0

    return Work(names, size, lambda since: has_used_tools(event, since))


def has_used_tools(event: "HookEvent", since: int) -> bool:
    """Return whether the agent used a tool since the transcript had a size in bytes.

    Reads only what is new. A transcript that became smaller is another one, so it counts as a use; one that cannot be
    read does not.
    """
    try:
        fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (OSError, ValueError):
        return False
    try:
        end = posix.fstat(fd).st_size
        return end < since or any(tools for _, _, tools in event.reverse_messages(fd, since, end))
    except (OSError, ValueError):
        return False
    finally:
        posix.close(fd)
