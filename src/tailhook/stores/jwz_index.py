"""The memory about a large jwz store, so that a stop reads only newly appended bytes.

One file in the private state folder for each topic of a store, named by the device and the inode of messages.jsonl:
how far the store was read, and the places of its topic and its newest message. It is only a shortcut: if it is missing,
broken or about another file, the store is read again from its first byte.
"""

import posix
from time import monotonic

from tailhook._core import fingerprint, forward_lines, parse_json, write_json
from tailhook.stores.atomic import read_file, replace_file, state_folder, state_folder_path
from tailhook.stores.jwz import MAX_LINE_BYTES, UNREMEMBERED_BYTES, find_newest, find_topic, parse_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.stores.jwz import Message

CHUNK_BYTES = MAX_LINE_BYTES  # searched at a time; without a newline, it is a part of a line too long to count
NEAR_END_BYTES = 64 << 20  # searched backwards for the newest message, before all is read
PIECE_BYTES = 64 << 10
WITNESS_BYTES = 4096  # before the offset, to recognise an overwritten store
TRY_AGAIN = 11  # EAGAIN


class RememberedStore:
    """The contents of a store's first `offset` bytes, for one topic.

    witness: the fingerprint of the bytes before `offset`.
    offset: of a line's first byte, or inside a line that is too long to count.
    topic_id: None if they have no topic of that name.
    newest: the topic's newest message in them, or None.
    """

    __slots__ = ("newest", "offset", "topic_id", "witness")

    def __init__(self, witness: int = 0, offset: int = 0, topic_id: str | None = None) -> None:
        self.witness = witness
        self.offset = offset
        self.topic_id = topic_id
        self.newest: Message | None = None

    def find_topic(self, messages: int, topic: str, end: int) -> None:
        """Read on to the topic's record; to `end` if the topic is known or not found."""
        if self.topic_id is None:
            self.offset, self.topic_id = find_topic(messages, topic, self.offset, end)

    def take(self, message: "Message | None") -> None:
        """Keep a later message, unless its time is before the newest one's."""
        if message and (self.newest is None or message.created_at >= self.newest.created_at):
            self.newest = message

    def with_tail(self, messages: int, topic: str) -> "tuple[str | None, Message | None]":
        """Return the topic's id and newest message in the whole file. Remembers nothing of it."""
        whole = RememberedStore(0, self.offset, self.topic_id)
        whole.newest = self.newest
        end = posix.fstat(messages).st_size
        whole.find_topic(messages, topic, end)
        if whole.topic_id is not None:
            whole.take(find_newest(messages, whole.topic_id, whole.offset, end))
        return whole.topic_id, whole.newest


def read_and_remember(
    messages: int, topic: str, known: "RememberedStore | None", seconds: float | None
) -> RememberedStore:
    """Return the contents up to at least UNREMEMBERED_BYTES before the store's end; save them if they are new.

    messages: a descriptor of messages.jsonl.
    known: the result of an earlier call, or None.
    seconds: how long to read; None for as long as it takes.

    Raises OSError (`errno` TRY_AGAIN) if the time is up. The progress is saved, and the next call continues from there.
    """
    facts = posix.fstat(messages)
    name = f"jwz-{facts.st_dev:x}-{facts.st_ino:x}-{fingerprint(topic.encode()):016x}"
    found = known or load_index(name, messages, facts.st_size)
    if found.offset > facts.st_size or found.witness != witness_of(messages, found.offset):
        found = RememberedStore()
    if facts.st_size - found.offset > UNREMEMBERED_BYTES:
        is_finished = read_new_lines(found, messages, topic, facts.st_size, seconds)
        found.witness = witness_of(messages, found.offset)
        save_index(name, found)
        if not is_finished:
            done = f"{found.offset / 1e9:.1f} of {facts.st_size / 1e9:.1f} GB"
            raise OSError(TRY_AGAIN, f"the store is large and is being read for the first time ({done} so far)")
    return found


def read_new_lines(known: RememberedStore, messages: int, topic: str, size: int, seconds: float | None) -> bool:
    """Read the complete lines; return False if the time was up before.

    The topic is searched from the end of `known`, its newest message from the end of the file. The whole store is read
    only if the message is not near the end.
    """
    deadline = None if seconds is None else monotonic() + seconds
    last_bytes = max(known.offset, size - MAX_LINE_BYTES)
    end = end_of_lines(messages, last_bytes, size)  # or inside a line that is too long to count
    while known.topic_id is None and known.offset < end:
        known.find_topic(messages, topic, min(known.offset + CHUNK_BYTES, end))
        if known.topic_id is None and known.offset < end and is_past(deadline):
            return False
    if known.topic_id is None:
        return True
    near = max(known.offset, end - NEAR_END_BYTES)
    newest = find_newest(messages, known.topic_id, near, end)
    if newest is None:
        near = end_of_lines(messages, max(known.offset, near - MAX_LINE_BYTES), near)
        if message_at(messages, near, known.topic_id):  # on the line that continues beyond the end of the search
            newest = find_newest(messages, known.topic_id, near, end)
    while newest is None and known.offset < near:
        stop = min(known.offset + CHUNK_BYTES, near)
        lines_end = end_of_lines(messages, known.offset, stop)
        if lines_end > known.offset:
            known.take(find_newest(messages, known.topic_id, known.offset, lines_end))
        known.offset = lines_end if lines_end > known.offset else stop
        if known.offset < near and is_past(deadline):
            return False
    known.take(newest)
    known.offset = end
    return True


def is_past(deadline: float | None) -> bool:
    """Return whether the time is up."""
    return deadline is not None and monotonic() > deadline


def end_of_lines(messages: int, start: int, end: int) -> int:
    """Return the offset past the last newline in [start, end), or `start` if there is none."""
    while end > start:
        begin = max(start, end - PIECE_BYTES)
        newline = posix.pread(messages, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return start


def witness_of(messages: int, offset: int) -> int:
    """Return the fingerprint of the bytes before an offset."""
    size = min(offset, WITNESS_BYTES)
    return fingerprint(posix.pread(messages, size, offset - size))


# ---- the file ----------------------------------------------------------------


def load_index(name: str, messages: int, size: int) -> RememberedStore:
    """Return the memory saved under that name. If it is missing or about a store of another size, it is empty."""
    try:
        saved = parse_json(read_file(f"{state_folder_path()}/{name}"))
    except (OSError, ValueError):
        return RememberedStore()
    fields = saved if isinstance(saved, dict) else {}
    offset, witness, topic_id = fields.get("offset"), fields.get("witness"), fields.get("topic_id")
    if not (isinstance(offset, int) and 0 <= offset <= size and isinstance(witness, int)):
        return RememberedStore()
    found = RememberedStore(witness, offset, topic_id if isinstance(topic_id, str) else None)
    newest_at = fields.get("newest_at")
    if found.topic_id is not None and newest_at is not None:
        if isinstance(newest_at, int) and 0 <= newest_at < offset:
            found.newest = message_at(messages, newest_at, found.topic_id)
        if found.newest is None:
            return RememberedStore()
    return found


def message_at(messages: int, offset: int, topic_id: str) -> "Message | None":
    """Return the topic's message on the line at an offset, or None if there is no such line."""
    for start, line in forward_lines(messages, offset, offset + 1, MAX_LINE_BYTES):
        return parse_message(start, line, topic_id)
    return None


def save_index(name: str, known: RememberedStore) -> None:
    """Save the memory. If that fails, the next stop reads the store again."""
    fields = {
        "offset": known.offset,
        "witness": known.witness,
        "topic_id": known.topic_id,
        "newest_at": known.newest.offset if known.newest else None,
    }
    try:
        replace_file(f"{state_folder()}/{name}", write_json(fields) + b"\n")
    except OSError:
        return
