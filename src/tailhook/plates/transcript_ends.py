"""Reads what a person wants from the end of a transcript: the session's title and the agent's last message."""

import errno
import io
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from tailhook._core import last_message, parse_json
from tailhook.hook.event import MAX_TRANSCRIPT_BYTES
from tailhook.hook.payload import MAX_RECORD_BYTES, MAX_RECORDS
from tailhook.hook.plates import MAX_REPORTED_CHARS
from tailhook.hosts.reading import (
    MAX_FIRST_RECORD_BYTES,
    parse_host_record,
    recognize_host,
    recognize_record,
    reverse_host_messages,
)
from tailhook.machines.quoting import MAX_EXAMINED_CHARS, plain_text, plain_words
from tailhook.transcripts.host_records import HostRecords

if TYPE_CHECKING:
    from tailhook.hosts.protocols import TranslatedHost

TITLE_TAIL_BYTES = 1 << 16  # the host repeats its records about a session, so that they are always this near the end
MARK = b'-title"'  # in the lines of both kinds
MAX_MESSAGE_CHARS = 100_000  # of the agent's last message
MAX_CHARACTER_BYTES = 4  # in UTF-8


class Title(NamedTuple):
    """A title of a session.

    words: on one line, without secrets.
    is_persons: whether the person gave it, and not the host.
    """

    words: str
    is_persons: bool


def open_transcript(path: str) -> io.FileIO:
    """Open a transcript. Raises OSError if it is not a regular file: a FIFO would block its reader."""
    file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def find_host_records(file: io.FileIO) -> HostRecords | None:
    """Return the reader of the records of another host's transcript, or None if the transcript is Claude Code's.

    file: open at its start. Its position changes. Raises OSError.
    """
    first = parse_host_record(file.read(MAX_FIRST_RECORD_BYTES).partition(b"\n")[0])
    host = recognize_record(first)
    return None if host is None else HostRecords(host, first)


def read_title(path: str) -> Title | None:
    """Return the title in a transcript, or None if there is none or the transcript cannot be read."""
    try:
        with open_transcript(path) as file:
            return title_at_end(file)
    except (OSError, ValueError):
        return None


def title_at_end(file: io.FileIO) -> Title | None:
    """Return the title that Claude Code (2.1.329) wrote of a session, or None if its transcript's end has none.

    A title that the person gave replaces the host's.

    Raises OSError.
    """
    file.seek(max(0, os.fstat(file.fileno()).st_size - TITLE_TAIL_BYTES))
    lines = (file.read(TITLE_TAIL_BYTES) or b"").split(b"\n")
    marked = [line for line in reversed(lines) if MARK in line]
    for kind, member in (("custom-title", "customTitle"), ("ai-title", "aiTitle")):
        for line in marked:
            words = title_in(line, kind, member)
            if words is not None:
                if words:
                    return Title(words, kind == "custom-title")
                break  # the person took the title away
    return None


def title_in(line: bytes, kind: str, member: str) -> str | None:
    """Return the title in a record of a type, or None if the line is another record."""
    try:
        record = parse_json(line)
    except ValueError:
        return None
    title = record.get(member) if isinstance(record, dict) and record.get("type") == kind else None
    return plain_words(title, MAX_REPORTED_CHARS) if isinstance(title, str) else None


def last_words(path: str) -> str | None:
    """Return the beginning of the agent's last message, with secrets masked, or None if it cannot be read.

    Reads as far back as a hook does.
    """
    try:
        with open_transcript(path) as file:
            host = recognize_host(file.fileno())
            words = read_last_message(file) if host is None else read_last_host_message(host, file)
    except (OSError, ValueError):
        return None
    words = words[: (MAX_MESSAGE_CHARS + MAX_EXAMINED_CHARS + 1) * MAX_CHARACTER_BYTES]
    return plain_text(words.decode("utf-8", "replace"), MAX_MESSAGE_CHARS) or None


def read_last_message(file: io.FileIO) -> bytes:
    """Return the agent's last message in a transcript of Claude Code, in UTF-8. Raises OSError."""
    _, texts = last_message(file, MAX_TRANSCRIPT_BYTES, MAX_RECORD_BYTES, MAX_RECORDS, once=True)
    return b"\n".join(text for text, _ in texts)


def read_last_host_message(host: "TranslatedHost", file: io.FileIO) -> bytes:
    """Return the agent's last message in a transcript of another host, in UTF-8. Raises OSError."""
    start = max(0, os.fstat(file.fileno()).st_size - MAX_TRANSCRIPT_BYTES)
    messages = reverse_host_messages(host, file.fileno(), start, None, MAX_RECORD_BYTES, MAX_RECORDS)
    return next((words for is_agents, words, _, _ in messages if is_agents and words), b"")
