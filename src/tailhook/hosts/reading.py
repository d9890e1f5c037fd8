"""Reads the transcripts of other hosts than Claude Code: the core does not know their records."""

import posix

from tailhook._core import get_text, parse_json, reverse_lines, unix_time
from tailhook.hosts import RECORDED, find_recorded_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tailhook.hosts.protocols import RecordedHost, TranslatedHost

MAX_FIRST_RECORD_BYTES = 1 << 20  # read to recognize a host
MAX_START_BYTES = 64  # of a message, to see whether the host wrote it


def recognize_host(fd: int) -> "RecordedHost | None":
    """Return the host of an open transcript, by its first record; None for Claude Code and unknown hosts.

    Raises OSError if the file cannot be read.
    """
    return recognize_record(parse_host_record(posix.pread(fd, MAX_FIRST_RECORD_BYTES, 0).partition(b"\n")[0]))


def recognize_record(record: "Mapping[str, Any]") -> "RecordedHost | None":
    """Return the host of a transcript with this first record; None for Claude Code and unknown hosts."""
    for name in RECORDED:
        host = find_recorded_host(name)
        if host.begins_transcript(record):
            return host
    return None


def reverse_host_messages(
    host: "TranslatedHost", fd: int, start: int, end: int | None, max_record_bytes: int, max_records: int
) -> "Iterator[tuple[bool, bytes, list[str], float | None]]":
    """Yield the messages of an open transcript, newest first.

    Each is a tuple: whether it is the agent's, its words in UTF-8, the names of its tools, and its time (Unix seconds,
    None if it has none). A repeated message is yielded once. The host's texts in a person's name are left out.

    start, end: the part of the file to read, in bytes; end: None for the file's end.
    max_record_bytes: of a record; longer ones are skipped.  max_records: how many are read.
    """
    marks = (host.RECORD_MARK, *host.OTHER_MARKS)
    seen = set()
    for _, line in reverse_lines(fd, start, end, max_record_bytes):
        max_records -= 1
        if max_records < 0:
            return
        if not any(mark in line for mark in marks):
            continue
        record = parse_host_record(line)
        message = host.read_record(record)
        if message is None or ((name := get_text(record, "id")) and name in seen):
            continue
        seen.add(name)
        is_agents, content, tools = message
        words = join_texts(content).encode("utf-8", "surrogatepass")
        if not words.strip() or (not is_agents and is_host_written(words, host.HOST_WRITTEN)):
            words = b""
        names = [tool for tool in tools if isinstance(tool, str)]
        if words or names:
            yield is_agents, words, names, record_time(record)


def record_time(record: "dict[str, Any]") -> float | None:
    """Return the time of a host's record in Unix seconds, None if it has none that can be read.

    >>> record_time({"timestamp": "1970-01-01T00:01:00.500Z"})
    60.5
    """
    return unix_time(get_text(record, "timestamp"))


def is_host_written(words: bytes, starts: "tuple[bytes, ...]") -> bool:
    """Return whether words in a person's name begin like the host's texts.  starts: in lower case.

    >>> is_host_written(b" <ENVIRONMENT_CONTEXT>", (b"<environment_context",))
    True
    """
    return words.lstrip()[:MAX_START_BYTES].lower().startswith(starts)


def explain_brackets(text: str) -> str:
    """Return a text for the agent of a host that writes entities in place of the brackets of its tags.

    >>> explain_brackets("Go on.")
    'Go on.'
    """
    note = "\n\nWrite tags with real angle brackets, also if entities stand for them here."
    return text + note if "</" in text else text


def read_count(counts: "Mapping[str, Any]", name: str) -> "int | None":
    """Return a number of tokens, or None if it is missing or not a whole number from 0."""
    count = counts.get(name)
    return count if type(count) is int and count >= 0 else None


def new_input(whole: "int | None", cache_read: "int | None" = None, cache_written: "int | None" = None) -> "int | None":
    """Return the input tokens neither read from the cache nor written to it, for hosts that count all as input.

    >>> new_input(100, 70), new_input(None, 70)
    (30, None)
    """
    return None if whole is None else max(0, whole - (cache_read or 0) - (cache_written or 0))


def parse_host_record(line: bytes) -> "dict[str, Any]":
    """Return a transcript's record, empty if the line is not a JSON object."""
    try:
        record = parse_json(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def join_texts(content: object) -> str:
    """Return a message's content as one text: a string, or the texts of a list of blocks, a line break between them."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = [get_text(block, "text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if text.strip())
