"""A jwz message store, natively: `.jwz/messages.jsonl`, read from its end and appended to.

The JSONL file is the truth; jwz's own SQLite cache beside it is rebuilt by jwz and never touched here.
What the real program taught: whoever reads to write holds `flock(LOCK_EX)` on `.jwz/lock` all the while; a second topic
record of one name makes jwz drop that topic's messages; a line that is JSON but no object crashes it.

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
from tailhook.stores.atomic import SAFE, Lock, open_folder, sync, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = (".jwz", ".zawinski")  # the folder's name, and the one it had before
LONGEST_LINE = 16 << 20
# Messages are in the order of their times but for writers whose clock was set back: that far behind the newest one is
# looked for another with a later time.
LOOK_BACK = 64 << 10
BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's, as ULIDs are written


class Message:
    """One message of a topic.  id, topic_id: ULIDs.  body: str.  created_at: Unix milliseconds."""

    __slots__ = ("body", "created_at", "id", "topic_id")

    def __init__(self, id: str, topic_id: str, body: str, created_at: int) -> None:  # noqa: A002
        self.id = id
        self.topic_id = topic_id
        self.body = body
        self.created_at = created_at


class Store:
    """The store in one folder.  path: str, the folder that holds messages.jsonl.  fd: its descriptor, owned."""

    __slots__ = ("fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd

    def __del__(self) -> None:
        posix.close(self.fd)

    @classmethod
    def find(cls, project: str) -> "Store | None":
        """The store of the folder `project`, None when it has none. Symbolic links are not followed."""
        for name in NAMES:
            try:
                return cls(f"{project}/{name}", open_folder(project, name))
            except OSError:
                continue
        return None

    @classmethod
    def make(cls, project: str) -> "Store":
        """The store of the folder `project`, made when it has none. Raises OSError."""
        found = cls.find(project)
        if found is None:
            posix.mkdir(f"{project}/{NAMES[0]}")
            found = cls(f"{project}/{NAMES[0]}", open_folder(project, NAMES[0]))
        return found

    def lock(self) -> Lock:
        """The store's own lock, for `with`: to be held from before `newest` to after `post`."""
        return Lock("lock", self.fd)

    # ---- reading -------------------------------------------------------------

    def newest(self, topic: str) -> Message | None:
        """The topic's newest message: the greatest `created_at`, of several the last line; None when there is none.

        Raises OSError when the file is there and cannot be read.
        """
        try:
            messages = posix.open("messages.jsonl", posix.O_RDONLY | SAFE, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        try:
            topic_id = find_topic(messages, topic)
            return None if topic_id is None else find_newest(messages, topic_id)
        finally:
            posix.close(messages)

    # ---- writing -------------------------------------------------------------

    def post(self, topic: str, body: str, now: float, newest: Message | None = None) -> Message:
        """Append one message, and before it the topic where there is none of that name; returns the message.

        Only under `lock`.  now: Unix seconds.  newest: what `newest` gave under the same lock; else looked up.
        Raises OSError, and then the store is as it was.
        """
        newest = newest or self.newest(topic)
        created_at = max(int(now * 1000), newest.created_at if newest else 0)
        messages = posix.open(
            "messages.jsonl", posix.O_RDWR | posix.O_CREAT | posix.O_APPEND | SAFE, 0o666, dir_fd=self.fd
        )
        try:
            topic_id = newest.topic_id if newest else find_topic(messages, topic)
            if topic_id is None:
                topic_id = ulid(created_at)
                append(messages, topic_record(topic_id, topic, created_at))
            message = Message(ulid(created_at), topic_id, body, created_at)
            append(messages, message_record(message))
            sync(messages)
            return message
        finally:
            posix.close(messages)


# ---- records -----------------------------------------------------------------


def topic_record(topic_id: str, name: str, created_at: int) -> "dict[str, Any]":
    """A topic as jwz writes it, fields in its order."""
    return {"type": "topic", "id": topic_id, "name": name, "description": "", "created_at": created_at}


def message_record(message: Message) -> "dict[str, Any]":
    """A message as jwz writes it, fields in its order."""
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
    """A new ULID: 48 bits of time, 80 of chance, 26 characters of Crockford's base 32."""
    number = milliseconds << 80 | int.from_bytes(posix.urandom(10), "big")
    return "".join(BASE32[number >> shift & 31] for shift in range(125, -1, -5))


def parse_record(line: bytes) -> "dict[str, Any]":
    """The record of a line; an empty one for a torn line, which jwz leaves out too."""
    try:
        record = parse_json(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


# ---- lines -------------------------------------------------------------------


def find_topic(messages: int, name: str) -> str | None:
    """The id of the first topic of that name, None when there is none: topics stand before their messages."""
    quoted = write_json(name)
    for _, line in forward_lines(messages, max_line=LONGEST_LINE):
        if quoted in line:
            record = parse_record(line)
            if record.get("type") == "topic" and record.get("name") == name and isinstance(record.get("id"), str):
                return str(record["id"])
    return None


def find_newest(messages: int, topic_id: str) -> Message | None:
    """The newest message of a topic, from the file's end."""
    quoted = write_json(topic_id)
    for offset, line in reverse_lines(messages, max_line=LONGEST_LINE):
        if newest := parse_message(line, quoted, topic_id):
            for _, before in reverse_lines(messages, max(0, offset - LOOK_BACK), offset):
                message = parse_message(before, quoted, topic_id)
                if message and message.created_at > newest.created_at:
                    newest = message
            return newest
    return None


def parse_message(line: bytes, quoted: bytes, topic_id: str) -> Message | None:
    """The topic's message in a line, None for any other line.  quoted: the topic's id as it stands in the line."""
    if quoted not in line:
        return None
    record = parse_record(line)
    body, created_at = record.get("body"), record.get("created_at")
    if record.get("type") != "message" or record.get("topic_id") != topic_id:
        return None
    if not isinstance(body, str) or not isinstance(created_at, int):
        return None
    return Message(str(record.get("id")), topic_id, body, created_at)


def append(messages: int, record: "dict[str, Any]") -> None:
    """Append a record in one write, on a line of its own even where the last writer's line was torn.

    Raises OSError, and then nothing of the record is in the file.
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
