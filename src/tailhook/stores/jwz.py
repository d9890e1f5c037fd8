"""A jwz message store, natively: `.jwz/messages.jsonl`, read and appended to.

The JSONL file is the truth; jwz's own SQLite cache beside it is rebuilt by jwz and never touched here. These rules were
learnt with the real program: a program holds `flock(LOCK_EX)` on `.jwz/lock` from a read to the write after it; a
second topic record of one name makes jwz drop the topic's messages; a line of JSON that is not an object crashes it.

A store of up to UNREMEMBERED_BYTES is read from its beginning each time. Of a larger one, END_BYTES are read at both
ends. This is enough if one loop has filled the store. Otherwise `tailhook.stores.jwz_index` remembers the contents of
the store's first bytes, so that a stop reads only newer bytes.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as project:
...     store = Store.make(project)
...     with store.lock():
...         _ = store.post("notes", '{"n": 1}', now=1767312245.0)
...     store.newest("notes").body
'{"n": 1}'
"""

import posix

from tailhook._core import forward_lines, parse_json, reverse_lines, write_json
from tailhook.stores import STORE_FOLDERS, path_in
from tailhook.stores.atomic import SAFE, Lock, open_folder, replace_file, stamp_of, sync, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tailhook.stores.jwz_index import RememberedStore

MESSAGES_FILE = "messages.jsonl"
MAX_LINE_BYTES = 16 << 20  # longer lines do not count
UNREMEMBERED_BYTES = 256 << 10  # of a store to read at every stop
END_BYTES = 32 << 10  # of a larger store: searched at its beginning for the topic, at its end for the message
# Messages are in the order of their times unless a writer's clock was set back. A message found from the end is
# compared with those in this many bytes before it (docs/decisions/newest-message.md).
LOOK_BACK_BYTES = 64 << 10
BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's, as in ULIDs


class Message:
    """One message of a topic.

    id: its ULID.
    topic_id: its topic's ULID.
    body: its text.
    created_at: Unix milliseconds.
    offset: of its line in the file.
    """

    __slots__ = ("body", "created_at", "id", "offset", "topic_id")

    def __init__(self, id: str, topic_id: str, body: str, created_at: int, offset: int) -> None:  # noqa: A002
        self.id = id
        self.topic_id = topic_id
        self.body = body
        self.created_at = created_at
        self.offset = offset


class Store:
    """The store in one folder.

    path: the folder that holds messages.jsonl.
    fd: its descriptor, closed with this object.
    known: the memory of `jwz_index` about a large store, by topic; empty until it was asked.
    stamp: of messages.jsonl at the last look, None if it was missing.
    """

    __slots__ = ("fd", "known", "path", "stamp")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.known: dict[str, RememberedStore] = {}  # by topic
        self.stamp: tuple[int, int, int] | None = None

    def __del__(self) -> None:
        posix.close(self.fd)

    @classmethod
    def find(cls, project: str) -> "Store | None":
        """Return the store of the folder `project`, or None if it has none.

        Raises OSError if it cannot be opened; `errno` is IS_LINK if it is a symbolic link.
        """
        for name in STORE_FOLDERS:
            try:
                return cls(path_in(project, name), open_folder(project, name))
            except (FileNotFoundError, NotADirectoryError):
                continue
        return None

    @classmethod
    def make(cls, project: str) -> "Store":
        """Return the store of the folder `project`; make it if there is none, ignored by git. Raises OSError."""
        found = cls.find(project)
        if found is None:
            try:
                posix.mkdir(f"{project}/{STORE_FOLDERS[0]}")
            except FileExistsError:  # another process was faster
                pass
            found = cls(path_in(project, STORE_FOLDERS[0]), open_folder(project, STORE_FOLDERS[0]))
        if all(name.endswith(".tmp") for name in posix.listdir(found.fd)):  # it is new, or its maker was killed
            replace_file(".gitignore", b"*\n", found.fd)
        return found

    def lock(self) -> Lock:
        """Return the store's own lock, for `with`: hold it from before `newest` to after `post`."""
        return Lock("lock", self.fd)

    # ---- reading -------------------------------------------------------------

    def has_changed(self) -> bool:
        """Return whether there may be new messages since `newest`. Raises OSError."""
        try:
            return stamp_of(posix.stat(MESSAGES_FILE, dir_fd=self.fd, follow_symlinks=False)) != self.stamp
        except FileNotFoundError:
            return self.stamp is not None

    def newest(self, topic: str, seconds: float | None = None) -> Message | None:
        """Return the topic's newest message, or None: the greatest `created_at`, of several the last line.

        seconds: how long a large store may be read for the first time; None for as long as it takes.

        Raises OSError if the file cannot be read, or not in that time (`errno` TRY_AGAIN). The next call then continues
        from there.
        """
        self.stamp = None
        try:
            messages = posix.open(MESSAGES_FILE, posix.O_RDONLY | SAFE, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        try:
            return self.look(messages, topic, seconds)[1]
        finally:
            posix.close(messages)

    def look(self, messages: int, topic: str, seconds: float | None = None) -> tuple[str | None, Message | None]:
        """Return a topic's id, or None, and its newest message. Raises OSError, see `newest`.

        messages: a descriptor of messages.jsonl.
        """
        self.stamp = stamp_of(posix.fstat(messages))
        size = self.stamp[1]
        is_small = size <= UNREMEMBERED_BYTES
        near = size if is_small else END_BYTES
        start, topic_id = find_topic(messages, topic, 0, near, near)
        newest = None
        if topic_id is not None:
            newest = find_newest(messages, topic_id, start if is_small else size - END_BYTES, size)
        if newest or is_small:
            return topic_id, newest
        from tailhook.stores.jwz_index import read_and_remember

        known = self.known[topic] = read_and_remember(messages, topic, self.known.get(topic), seconds)
        return known.with_tail(messages, topic)

    # ---- writing -------------------------------------------------------------

    def post(self, topic: str, body: str, now: float, newest: Message | None = None) -> Message:
        """Append one message, and the topic before it if there is none of that name; return the message.

        Only under `lock`.

        now: Unix seconds.
        newest: the result of `newest` under the same lock; None to look it up.

        Raises OSError. The message is then not in the store, unless only fsync has failed; a new topic may be.
        """
        messages = posix.open(
            MESSAGES_FILE, posix.O_RDWR | posix.O_CREAT | posix.O_APPEND | SAFE, 0o666, dir_fd=self.fd
        )
        try:
            topic_id = newest.topic_id if newest else None
            if newest is None:
                topic_id, newest = self.look(messages, topic)
            created_at = max(int(now * 1000), newest.created_at if newest else 0)
            if topic_id is None:
                topic_id = ulid(created_at)
                append(messages, topic_record(topic_id, topic, created_at))
            message = Message(ulid(created_at), topic_id, body, created_at, posix.fstat(messages).st_size)
            append(messages, message_record(message))
            sync(messages)
            return message
        finally:
            posix.close(messages)


# ---- records -----------------------------------------------------------------


def topic_record(topic_id: str, name: str, created_at: int) -> "dict[str, Any]":
    """Return a topic's record, with the fields in jwz's order."""
    return {"type": "topic", "id": topic_id, "name": name, "description": "", "created_at": created_at}


def message_record(message: Message) -> "dict[str, Any]":
    """Return a message's record, with the fields in jwz's order."""
    return {
        "type": "message",
        "id": message.id,
        "topic_id": message.topic_id,
        "parent_id": None,
        "body": message.body,
        "created_at": message.created_at,
        "sender": None,
        "git": None,
    }


def ulid(milliseconds: int) -> str:
    """Return a new ULID: 48 bits of time and 80 random bits in 26 characters of Crockford's base 32."""
    number = milliseconds << 80 | int.from_bytes(posix.urandom(10), "big")
    return "".join(BASE32[number >> shift & 31] for shift in range(125, -1, -5))


def parse_jwz_record(line: bytes) -> "dict[str, Any]":
    """Return the record of a line, or {} for a torn line: jwz leaves such a line out, too."""
    try:
        record = parse_json(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


# ---- lines -------------------------------------------------------------------


def find_topic(
    messages: int, name: str, start: int, end: int, max_bytes: int = MAX_LINE_BYTES
) -> tuple[int, str | None]:
    """Return the offset and the id of the first topic of that name, among the lines that begin in [start, end).

    (end, None) if there is none. Topics stand before their messages.

    max_bytes: longer lines do not count.
    """
    for offset, line in forward_lines(messages, start, end, max_bytes, write_json(name)):
        record = parse_jwz_record(line)
        if record.get("type") == "topic" and record.get("name") == name and isinstance(record.get("id"), str):
            return offset, str(record["id"])
    return end, None


def find_newest(messages: int, topic_id: str, start: int, end: int) -> Message | None:
    """Return the newest message of a topic among the lines that begin in [start, end), or None."""
    quoted = write_json(topic_id)
    for offset, line in reverse_lines(messages, start, end, MAX_LINE_BYTES, quoted):
        if newest := parse_message(offset, line, topic_id):
            # Only lines with a later time are parsed: a long loop fills these bytes with its own messages.
            later = ("created_at", newest.created_at)
            begin = max(0, offset - LOOK_BACK_BYTES)
            for earlier, before in reverse_lines(messages, begin, offset, MAX_LINE_BYTES, quoted, later):
                message = parse_message(earlier, before, topic_id)
                if message and message.created_at > newest.created_at:
                    newest = message
            return newest
    return None


def parse_message(offset: int, line: bytes, topic_id: str) -> Message | None:
    """Return the topic's message in a line, or None."""
    record = parse_jwz_record(line)
    identity, body, created_at = record.get("id"), record.get("body"), record.get("created_at")
    if record.get("type") != "message" or record.get("topic_id") != topic_id:
        return None
    if not isinstance(body, str) or not isinstance(created_at, int):
        return None
    return Message(identity if isinstance(identity, str) else "", topic_id, body, created_at, offset)


def append(messages: int, record: "dict[str, Any]") -> None:
    """Append a record in one write. It begins a new line even if the last writer's line was torn.

    Raises OSError; then nothing of the record is in the file.
    """
    size = posix.fstat(messages).st_size
    line = write_json(record) + b"\n"
    if size and posix.pread(messages, 1, size - 1) != b"\n":
        line = b"\n" + line
    try:
        write_all(messages, line)
    except OSError:
        posix.ftruncate(messages, size)
        raise
