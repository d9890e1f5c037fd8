"""Whole messages: the records of a transcript, grouped by message."""

from __future__ import annotations

from collections import deque

from tailhook._core import SeenRecords, is_same_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from tailhook._core import Record, ToolUse
    from tailhook.transcripts.records import Usage

MAX_MESSAGE_GAP_BYTES = 1 << 18  # from a message's record to its next one: 75 KB in real transcripts


class TranscriptMessage:
    """One message of the model's API, or of a user: one or more records of a transcript.

    records: all of the message's records, oldest first. Repeated lines with the same uuid are one record.
    """

    __slots__ = ("_said", "records")

    def __init__(self, records: Sequence[Record], is_restated: bool = False) -> None:
        """is_restated: whether each record has the whole message; then the last one counts."""
        self.records = records
        self._said = records[-1:] if is_restated else records

    @property
    def id(self) -> str | None:
        """The message's id. Messages of users have none."""
        return self.records[0].message_id

    @property
    def role(self) -> str | None:
        """Its author: "user" or "assistant"; "human" in flat transcripts."""
        return self.records[0].role

    @property
    def model(self) -> str | None:
        """The model of the first record with one, or None."""
        return next((record.model for record in self.records if record.model is not None), None)

    @property
    def text(self) -> str:
        """The texts of the records, joined by newlines, without those of only white space; "" if there is none."""
        return "\n".join(text for record in self._said if (text := record.text).strip())

    @property
    def tools(self) -> list[ToolUse]:
        """The tool uses of the message, in order."""
        return [tool for record in self._said for tool in record.tools]

    @property
    def usage(self) -> Usage | None:
        """The tokens of the response, counted once: of the record with the most output tokens, then of the last one."""
        found = [usage for record in self.records if (usage := record.usage) is not None]
        return max(reversed(found), key=lambda usage: usage.output, default=None)

    @property
    def start(self) -> datetime | None:
        """The earliest time of its records (aware, in UTC)."""
        return min(self._times(), default=None)

    @property
    def end(self) -> datetime | None:
        """The latest time of its records (aware, in UTC)."""
        return max(self._times(), default=None)

    def _times(self) -> list[datetime]:
        return [time for record in self.records if (time := record.time) is not None]

    def __repr__(self) -> str:
        return f"TranscriptMessage(id={self.id!r}, role={self.role!r}, offset={self.records[0].offset})"


class OpenMessage:
    """A message that may get more records.

    is_whole: whether it is a message by itself.
    last_offset: of its last record.
    is_followed: whether its agent has begun another message since.
    """

    def __init__(self, record: Record, is_whole: bool) -> None:
        self.records = [record]
        self.is_whole = is_whole
        self.last_offset = record.offset
        self.is_followed = False

    def add(self, record: Record) -> None:
        """Add a record."""
        self.last_offset = record.offset
        self.records.append(record)


def group_records(records: Iterable[Record], is_restated: bool) -> Iterator[TranscriptMessage]:
    """Yield the messages of a transcript, in the order of their first records.

    Records of users, and those without an id, are messages by themselves. Records of an earlier message
    (`is_same_message`) belong to it if at most 256 KiB are between them, or if its agent has begun no other message
    since: hosts write other records between those of a message.

    records: oldest first. Repeated records count once; records of other types than messages are left out.
    is_restated: as for TranscriptMessage.
    """
    waiting: deque[OpenMessage] = deque()  # in the order of their first records
    known: dict[str, list[OpenMessage]] = {}  # messages that may get more records, by id
    current: dict[str | None, OpenMessage] = {}  # the newest of each agent
    seen = SeenRecords()
    for record in records:
        if record.role is None or not (seen.add(record) or is_restated):
            continue
        name = record.message_id if record.role == "assistant" else None
        of_name = known.get(name, ()) if name is not None else ()
        fits = (one for one in of_name if is_same_message(one.records[0], record) and not is_over(one, record.offset))
        if (message := next(fits, None)) is not None:
            message.add(record)
        else:
            message = OpenMessage(record, name is None)
            waiting.append(message)
            if name is not None:
                known.setdefault(name, []).append(message)
            if record.role == "assistant":
                agent = record.agent_id or ("" if record.is_sidechain else None)
                if agent in current:
                    current[agent].is_followed = True
                current[agent] = message
        while waiting and (waiting[0].is_whole or is_over(waiting[0], record.offset)):
            yield close_message(waiting.popleft(), known, is_restated)
    while waiting:
        yield close_message(waiting.popleft(), known, is_restated)


def is_over(message: OpenMessage, offset: int) -> bool:
    """Return whether a record at this offset can no longer belong to a message."""
    return message.is_followed and offset - message.last_offset > MAX_MESSAGE_GAP_BYTES


def close_message(message: OpenMessage, known: dict[str, list[OpenMessage]], is_restated: bool) -> TranscriptMessage:
    """Return a complete message, and forget its id."""
    name = message.records[0].message_id
    if name is not None and message in (of_name := known.get(name, [])):
        of_name.remove(message)
        if not of_name:
            del known[name]
    return TranscriptMessage(message.records, is_restated)
