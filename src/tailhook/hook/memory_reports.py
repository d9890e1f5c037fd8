"""What a stop after a report does to the session's mark. A hook imports it only then."""

import posix

from tailhook._core import fingerprint
from tailhook.machines.memory import MAX_READ_BYTES, is_of_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.hook.event import HookEvent
    from tailhook.hook.memory import Mark


def settle_report(event: "HookEvent", mark: "Mark", lets_go: bool, in_turn: bool, was_blocked: bool) -> None:
    """Remove the mark's flag. If the agent has answered the report, all messages so far are old.

    A failure changes nothing, and a later stop may report these messages.

    lets_go: whether the report lets this stop go.
    in_turn: whether it was made in this turn.
    was_blocked: whether the mark has a flag.
    """
    try:
        if lets_go and (in_turn or not has_prompt_since(event, mark.end)):
            said = fingerprint(event.last_text_block().encode("utf-8", "surrogatepass").strip())
            write_without_flag(mark, size_of(event, mark.end), said)
        elif was_blocked:
            write_without_flag(mark, mark.end, mark.said)  # a stale flag does not concern later turns
    except (OSError, ValueError):
        pass


def write_without_flag(mark: "Mark", end: int, said: int) -> None:
    """Write a mark without the flag, under its lock. Raises OSError."""
    with mark.lock():
        mark.parse()
        mark.save(end, said, mark.summarized, 0)


def size_of(event: "HookEvent", otherwise: int) -> int:
    """Return the transcript's size in bytes, or another value if it cannot be read."""
    try:
        return posix.stat(event.transcript_path()).st_size
    except (OSError, ValueError):
        return otherwise


def has_prompt_since(event: "HookEvent", start: int) -> bool:
    """Return whether a person has written behind an offset of the transcript. Raises OSError or ValueError.

    start: in bytes; 0 if there was no report.
    """
    if not start:
        return False
    fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    try:
        end = posix.fstat(fd).st_size
        messages = event.reverse_messages(fd, max(start, end - MAX_READ_BYTES), end)
        return any(not is_assistant and is_of_person(words) for is_assistant, words, _ in messages)
    finally:
        posix.close(fd)
