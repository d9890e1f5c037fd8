"""What an agent did since the stop before, and its background work: for a loop that waits or stands still."""

import posix

from tailhook._core import forward_lines, get_text, parse_json, preload, reverse_lines, reverse_tool_uses, unix_time
from tailhook.hook.payload import MAX_RECORD_BYTES, MAX_RECORDS
from tailhook.machines import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tailhook.hook.event import HookEvent
    from tailhook.machines.stillness import Call, Turn
    from tailhook.machines.waiting import Work


class EveryName:
    """The names of all tools."""

    def __contains__(self, name: object) -> bool:
        return True


def work_of(event: "HookEvent") -> "Work | None":
    """Return the work that ends by itself, or that wakes the agent once; None without any."""
    from tailhook.machines.waiting import Work, find_work

    names = find_work(event.payload.get("background_tasks"), event.payload.get("session_crons"))
    return Work(names, lambda: beginning_place(event), lambda place: has_used_tools(event, place)) if names else None


def turn_of(event: "HookEvent") -> "Turn":
    """Return what the agent did since the stop before."""
    from tailhook.machines.stillness import Turn

    return Turn(
        lambda: beginning_place(event),
        lambda place: has_used_tools(event, place),
        lambda place: calls_of(event, place),
        event.final_text,
        lambda fields: tokens_of(event, fields),
    )


def tokens_of(event: "HookEvent", fields: "Mapping[str, Any]") -> str:
    """Return the mark of the tokens that a loop has used; "" if they cannot be counted.

    fields: of the loop.
    """
    if not event.counts_tokens:
        return ""
    preload("machines.budgets", "hook.session_files", "hook.budgets")
    from tailhook.hook.budgets import read_spent

    return read_spent(event, fields)


def beginning_place(event: "HookEvent") -> str:
    """Return where the next turn begins: the transcript's size in bytes, 0 if it cannot be read, and the time."""
    try:
        size = posix.stat(event.transcript_path()).st_size
    except (OSError, ValueError):
        size = 0
    return f"{size}@{event.now:.3f}"


def read_place(place: str) -> "tuple[int, float] | None":
    """Return the size and the time (Unix seconds) of a saved place, None if it is not one."""
    size, _, at = place.partition("@")
    count = whole_number(size)
    try:
        return None if count is None else (count, float(at))
    except ValueError:
        return None


def has_used_tools(event: "HookEvent", place: str) -> bool:
    """Return whether the agent used a tool in a turn.

    Reads only what is new. A host may write the end of a turn after the hook of its stop, so the time of the newest use
    decides. Another value than a place, or a smaller transcript, counts as a use; an unreadable transcript does not.

    place: where the turn began.
    """
    if (begun := read_place(place)) is None:
        return True
    try:
        fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (OSError, ValueError):
        return False
    try:
        end = posix.fstat(fd).st_size
        if end < begun[0]:
            return True
        newest = next(reverse_tool_uses(fd, EveryName(), begun[0], end, MAX_RECORD_BYTES, MAX_RECORDS), None)
        if newest is None:  # also in another host's transcript
            return any(tools for _, _, tools in event.reverse_messages(fd, begun[0], end))
        at = time_of_line(fd, newest[4])
        return at is None or at > begun[1]
    except (OSError, ValueError):
        return False
    finally:
        posix.close(fd)


def time_of_line(fd: int, offset: int) -> float | None:
    """Return the time of a record in an open transcript (Unix seconds), None if it has none."""
    for _, line in forward_lines(fd, offset, offset + 1, MAX_RECORD_BYTES):
        record = parse_json(line)
        return unix_time(get_text(record, "timestamp")) if isinstance(record, dict) else None
    return None


def calls_of(event: "HookEvent", place: str) -> "Iterator[Call]":
    """Yield the calls of tools since a place in the transcript, newest first; None for one without an error.

    Only in Claude Code's transcript it is known which failed; the others have none here.
    """
    if (begun := read_place(place)) is None:
        return
    try:
        fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (OSError, ValueError):
        return
    try:
        for name, use_id, given, failed, offset in reverse_tool_uses(
            fd, EveryName(), begun[0], None, MAX_RECORD_BYTES, MAX_RECORDS
        ):
            error = read_result(fd, use_id, offset) if failed and use_id else None
            yield None if error is None else (name, given.decode("utf-8", "replace"), error)
    except (OSError, ValueError):
        return
    finally:
        posix.close(fd)


def read_result(fd: int, use_id: str, offset: int) -> str | None:
    """Return the text of a use's result in an open transcript, None if there is none.

    offset: of the line of the use; newer lines are searched.
    """
    for _, line in reverse_lines(fd, offset, None, MAX_RECORD_BYTES, use_id.encode("utf-8", "surrogatepass")):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        message = record.get("message") if isinstance(record, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("tool_use_id") == use_id:
                return text_of_result(block.get("content"))
    return None


def text_of_result(content: object) -> str:
    """Return a result's text: the string, or its text blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(get_text(block, "text") for block in blocks if isinstance(block, dict))
