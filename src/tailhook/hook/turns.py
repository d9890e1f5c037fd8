"""What an agent did since the stop before, and its background work: for a loop that tailhook began."""

import posix

from tailhook._core import forward_lines, get_text, parse_json, preload, reverse_tool_uses, unix_time
from tailhook.hook.event import MAX_TRANSCRIPT_BYTES, HookEvent
from tailhook.hook.payload import MAX_RECORD_BYTES, MAX_RECORDS
from tailhook.machines import whole_number
from tailhook.machines.own_loops import OwnLoop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tailhook.machines.protocols import Call
    from tailhook.machines.waiting import Work

    Use = tuple[str, str | None, bytes, bool | None, int]  # of a tool, in the form of `reverse_tool_uses`

NO_TIME_S = float("inf")


class TranscriptTurn:
    """What the agent did since the stop before, as a `tailhook.machines.protocols.Turn`.

    Opens the transcript once. Reads what is new in it once, and only as far as a question needs it.

    fd: of the transcript, -1 if it cannot be read.
    size: of the transcript, in bytes.
    end: where the next turn begins: the size, or the first of the newest calls without a result.
    """

    def __init__(self, event: HookEvent) -> None:
        self.event = event
        self.fd, self.size, self.end = -1, 0, 0
        self.walk: tuple[str, list[Use], Iterator[Use]] | None = None
        self.since = -NO_TIME_S
        try:
            self.fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
            self.size = self.end = posix.fstat(self.fd).st_size
        except (OSError, ValueError):
            pass

    def __del__(self) -> None:
        if self.fd >= 0:
            posix.close(self.fd)

    def refuse_end(self, fields: "Mapping[str, Any]", reason: str, signal: str) -> tuple[str, str]:
        """Return why an end of the loop does not count, "" if it does; and a doubt for the person, "" for none.

        fields, reason, signal: see `tailhook.hook.evidence`.
        """
        if not fields.get("checks") and "gate" not in self.event.asked:
            return "", ""
        preload("machines.shell_words", "machines.shell_line", "machines.rules", "hook.edits_and_commands")
        preload("machines.evidence", "hook.session_files", "hook.evidence")
        from tailhook.hook.evidence import refuse_end

        return refuse_end(self.event, fields, reason, signal)

    def spent(self, fields: "Mapping[str, Any]") -> str:
        """Return the mark of the tokens that a loop has used; "" if they cannot be counted.  fields: of the loop."""
        preload("hook.session_files", "hook.budgets")
        from tailhook.hook.budgets import read_spent

        return read_spent(self.event, fields)

    def words(self) -> bytes:
        """Return the agent's last words in UTF-8."""
        return self.event.final_text()

    def work(self) -> "Work | None":
        """Return the background work that ends by itself or wakes the agent once; None without any."""
        tasks, wake_ups = map(self.event.payload.get, ("background_tasks", "session_crons"))
        if not (tasks or wake_ups):
            return None
        preload("machines.waiting")
        from tailhook.machines.waiting import Work, find_work

        names = find_work(tasks, wake_ups)
        return Work(names, self) if names else None

    def place(self) -> str:
        """Return where the next turn begins (in bytes; 0 if the transcript cannot be read), and the time."""
        return f"{self.end}@{self.event.now:.3f}"

    def place_at(self, time: object) -> str:
        """Return the place of a time in ISO 8601, "" if it is unknown. From now on, older uses of tools are left out.

        Its size is an offset in the transcript: all newer records are behind it, as far as 64 MiB reach.
        """
        since = unix_time(time) if isinstance(time, str) else None
        if since is None or self.fd < 0:
            return ""
        preload("hook.session_files")
        from tailhook.hook.session_files import offset_before

        self.since = since
        lowest = max(0, self.size - MAX_TRANSCRIPT_BYTES)
        return f"{offset_before(self.fd, self.size, lowest, since) or lowest}@{since:.3f}"

    def used_tools(self, place: str) -> bool:
        """Return whether the agent used a tool in a turn.

        A host may write the end of a turn after the hook of its stop, so the time of the newest use decides. Another
        value than a place, or a smaller transcript, counts as a use; an unreadable transcript does not.

        place: where the turn began.
        """
        begun = read_place(place)
        if begun is None:
            return True
        if self.fd < 0:
            return False
        if self.size < begun[0]:
            return True
        try:
            return self.has_use_after(begun[1], place)
        except (OSError, ValueError):
            return False

    def has_use_after(self, at: float, place: str) -> bool:
        """Return whether the newest use since a place is newer than a time (Unix seconds). Raises OSError."""
        newest = next(self.uses(place), None)
        if newest is None:
            return False
        preload("hook.session_files")
        from tailhook.hook.session_files import time_at

        written = time_at(self.fd, newest[4])
        return written is None or written > at

    def calls(self, place: str) -> "Iterator[Call]":
        """Yield the calls of tools since a place, newest first; None for one without an error.

        A host may write the results of the newest calls after the hook of the stop. Such calls are left out, and the
        next turn begins before them.
        """
        is_newest = True
        try:
            for name, use_id, given, failed, offset in self.uses(place):
                if is_newest and failed is None:
                    self.end = offset
                    continue
                is_newest = False
                error = read_result(self.fd, use_id, offset) if failed and use_id else None
                yield None if error is None else (name, given.decode("utf-8", "replace"), error)
        except (OSError, ValueError):
            return

    def uses(self, place: str) -> "Iterator[Use]":
        """Yield the uses of tools since a place, newest first. Raises OSError.

        What was read for an earlier question about the same place is not read again.
        """
        begun = read_place(place)
        if begun is None or not 0 <= begun[0] < self.size:
            return
        if self.walk is None or self.walk[0] != place:
            new = reverse_tool_uses(self.fd, None, begun[0], self.size, MAX_RECORD_BYTES, MAX_RECORDS)
            self.walk = place, [], new
        _, found, rest = self.walk
        yield from found
        for use in rest:
            if self.since > 0:
                from tailhook.hook.session_files import time_at

                at = time_at(self.fd, use[4])
                if at is None or at < self.since:
                    return
            found.append(use)
            yield use


def read_own_loop(event: HookEvent, fields: "Mapping[str, Any]") -> OwnLoop:
    """Return a loop that tailhook began, at a stop.  fields: of the loop."""
    return OwnLoop(fields, event.translated_turn() or TranscriptTurn(event), event.now)


def read_place(place: str) -> "tuple[int, float] | None":
    """Return the size and the time (Unix seconds) of a saved place, None if it is not one."""
    size, _, at = place.partition("@")
    count = whole_number(size)
    try:
        seconds = float(at)
    except ValueError:
        return None
    return (count, seconds) if count is not None and 0 <= seconds < NO_TIME_S else None


def read_result(fd: int, use_id: str, offset: int) -> str | None:
    """Return the text of a use's result in an open transcript, None if there is none.

    offset: of the line of the use; the result is in a later one.
    """
    for _, line in forward_lines(fd, offset, None, MAX_RECORD_BYTES, use_id.encode("utf-8", "surrogatepass")):
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
