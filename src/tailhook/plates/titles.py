"""Reads the title of a session that Claude Code writes into its transcript (2.1.329)."""

import io
import os
from typing import NamedTuple

from tailhook._core import parse_json
from tailhook.hook.plates import MAX_REPORTED_CHARS
from tailhook.machines.quoting import plain_words

TITLE_TAIL_BYTES = 1 << 16  # the host repeats its records about a session, so that they are always this near the end
MARK = b'-title"'  # in the lines of both kinds


class Title(NamedTuple):
    """A title of a session.

    words: on one line, without secrets.
    is_persons: whether the person gave it, and not the host.
    """

    words: str
    is_persons: bool


def title_at_end(file: io.FileIO) -> Title | None:
    """Return the title of a session, or None if the end of its transcript has none. The person's replaces the host's.

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
