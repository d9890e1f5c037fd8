"""The records of other hosts than Claude Code, translated into Claude Code's form.

Each host's module in `tailhook.hosts` describes the translation. The hooks use the same modules.
"""

from __future__ import annotations

import glob
import os
from bisect import bisect_right
from contextlib import suppress
from heapq import merge
from itertools import chain, islice
from pathlib import Path
from stat import S_ISREG

from tailhook._core import (
    Record,
    forward_lines,
    forward_records,
    is_same_message,
    parse_record,
    reverse_lines,
    write_json,
)
from tailhook.errors import RecordError
from tailhook.hosts import DEFAULT, claude_code
from tailhook.hosts.reading import (
    MAX_FIRST_RECORD_BYTES,
    MAX_START_BYTES,
    is_host_written,
    recognize_record,
)
from tailhook.transcripts.sources import open_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tailhook.hosts.protocols import RecordedHost
    from tailhook.transcripts.sources import SeekableFile

TRANSCRIPT_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst")
MAX_FIRST_LINES = 8  # searched for a sub-agent's session
MAX_NAME_BYTES = 4096  # of a session id, as in the core (ext/scan/fields.pxi)
# Members that many records share: they may come from an earlier record.
CONTEXT_MEMBERS = ("sessionId", "cwd", "gitBranch", "version")


class HostRecords:
    """Translates the records of one transcript of another host.

    Some of these hosts write the session's id, its folder or its model only once, or when it changes. `_changes` has
    the offset of each change, and all values from there on.
    """

    def __init__(self, host: RecordedHost, first: dict[str, Any]) -> None:
        """first: the transcript's first record."""
        self.host = host
        self._first_offsets: dict[int, int] = {}  # offsets of messages, by their contents: see `_note_message`
        self._messages_end = 0  # messages that begin before this offset are in it
        self._changes: list[tuple[int, dict[str, Any]]] = [(0, known_values(host.read_context(first, None)))]

    @property
    def session_id(self) -> str | None:
        """The session that the first record names, or None."""
        return self._changes[0][1].get("sessionId")

    def forward(self, file: SeekableFile, start: int = 0, end: int | None = None) -> Iterator[Record]:
        """Yield the records of the lines that begin in a range of bytes, oldest first."""
        self.read_changes(file, start)
        for offset, line in forward_lines(file, start, end):
            yield from self.records(line, offset)

    def reverse(self, file: SeekableFile) -> Iterator[Record]:
        """Yield all records, newest first. Searches the whole file for changes first, without decoding it."""
        self.read_changes(file, None)
        for offset, line in reverse_lines(file):
            yield from reversed(self.records(line, offset))

    def last_message(self, file: SeekableFile, *, sidechains: bool) -> str | None:
        """Return the text of the assistant's newest message with text, or None.

        sidechains: whether sub-agents' messages count.
        """
        texts: list[str] = []
        newest: Record | None = None
        marks = (self.host.RECORD_MARK, *self.host.OTHER_MARKS)
        lines = ((offset, line) for offset, line in reverse_lines(file) if any(mark in line for mark in marks))
        for record in chain.from_iterable(reversed(self.records(line, offset)) for offset, line in lines):
            if record.role != "assistant" or (record.is_sidechain and not sidechains) or not record.text.strip():
                if texts and record.is_prompt:
                    break
                continue
            if newest is not None and (self.host.RESTATES_MESSAGES or not is_same_message(newest, record)):
                break
            texts.append(record.text)
            newest = record
        return "\n".join(reversed(texts)) if texts else None

    def read_changes(self, file: SeekableFile, end: int | None) -> None:
        """Read the values that records before an offset set for later records, such as the session and the folder.

        end: the offset, None for the file's end.
        """
        start = self._changes[-1][0]
        if end is not None and end <= start:
            return
        if self.host.RESTATES_MESSAGES:
            self._read_messages(file, end)
        marked = (forward_lines(file, start, end, containing=mark) for mark in self.host.CONTEXT_MARKS)
        for offset, line in merge(*marked):
            if (whole := parse_object(line)) is not None:
                self._note(offset, whole[1])

    def _note(self, offset: int, record: dict[str, Any]) -> None:
        """Keep the values that a record sets. Ignore a record that was noted before."""
        last, known = self._changes[-1]
        if offset > last and (found := known_values(self.host.read_context(record, known))):
            self._changes.append((offset, {**known, **found, "sessionId": self.session_id}))

    def _read_messages(self, file: SeekableFile, end: int | None) -> None:
        """Read the messages before an offset, if the file has a record that may repeat them.

        end: the offset, None for the file's end.
        """
        mark = self.host.NESTED_MARK
        if mark and any(True for _ in forward_lines(file, containing=mark)):
            for offset, line in forward_lines(file, self._messages_end, end):
                if (whole := parse_object(line)) is not None:
                    self._held(line, whole[1], offset)

    def _note_message(self, record: Mapping[str, Any], offset: int) -> bool:
        """Note where a message occurs first. Return whether the lines before its record lack it in this form.

        offset: of the record with the message.
        """
        message = hash(repr(sorted(record.items())))
        return self._first_offsets.setdefault(message, offset) >= offset

    def holds_context(self, line: bytes) -> bool:
        """Return whether a line may set values for later lines."""
        return any(mark in line for mark in self.host.CONTEXT_MARKS)

    def translate(self, line: bytes, offset: int) -> Record | None:
        """Return the record in a line, or None. Call `read_changes` up to it before."""
        return next(iter(self.records(line, offset)), None)

    def records(self, line: bytes, offset: int) -> list[Record]:
        """Return the record in a line, and the ones nested in it. Call `read_changes` up to it before."""
        whole = parse_object(line)
        if whole is None:
            return []
        originals = self._held(line, whole[1], offset)
        context = self._context(offset)
        records = [parse_record(self._translate_one(whole[1], context), offset, whole[0])]
        for nested in originals[1:]:
            records.append(parse_record(self._translate_one(nested, context), offset, parse_record(write_json(nested))))
        return [record for record in records if record is not None]

    def translate_line(self, line: bytes, offset: int) -> list[bytes]:
        """Return the record in a line, and the ones nested in it, as lines of Claude Code."""
        whole = parse_object(line)
        held = [] if whole is None else self._held(line, whole[1], offset)
        context = self._context(offset)
        return [self._translate_one(record, context) for record in held]

    def _context(self, offset: int) -> dict[str, Any]:
        """Return the values set by the records up to the one at an offset."""
        return self._changes[bisect_right(self._changes, offset, key=change_offset) - 1][1]

    def _held(self, line: bytes, record: dict[str, Any], offset: int) -> list[Mapping[str, Any]]:
        """Return the record of a line, and its nested ones that are new, in the host's form."""
        if self.holds_context(line):
            self._note(offset, record)
        nested: list[Mapping[str, Any]] = []
        if self.host.NESTED_MARK and self.host.NESTED_MARK in line:
            nested = self.host.nested_records(record, self._context(offset))
        if self.host.RESTATES_MESSAGES:
            self._messages_end = max(self._messages_end, offset + 1)
            self._note_message(record, offset)
            nested = [one for one in nested if self._note_message(one, offset)]
        return [record, *nested]

    def _translate_one(self, record: Mapping[str, Any], context: Mapping[str, Any]) -> bytes:
        """Return a record in Claude Code's form, a JSON text."""
        translated = {
            "uuid": record.get("id"),
            "timestamp": record.get("timestamp"),
            **{name: context[name] for name in CONTEXT_MEMBERS if name in context},
            **self.host.translate_record(record, context),
        }
        message = translated.get("message")
        if isinstance(message, dict):
            message["content"] = content = plain_content(message.get("content"))
            if translated["type"] == "assistant" and "model" not in message:
                message["model"] = context.get("model")
            words = first_text(content) if translated["type"] == "user" else b""
            if words and is_host_written(words, self.host.HOST_WRITTEN):
                translated["isMeta"] = True
        try:
            return write_json(translated)
        except ValueError:  # a number that is infinite, or too deep: only its type is left
            return write_json({"type": translated["type"]} if isinstance(translated["type"], str) else {})


def known_values(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text values of a context, and its host's own values: their names begin with "_"."""
    return {name: value for name, value in context.items() if isinstance(value, str) or name.startswith("_")}


def change_offset(change: tuple[int, object]) -> int:
    """Return the offset of a change."""
    return change[0]


def parse_object(line: bytes) -> tuple[Record, dict[str, Any]] | None:
    """Return the record of another host in a line, and its object; None if there is none.

    Invalid UTF-8 becomes U+FFFD. If an object cannot be decoded, because it is too deep or has a number of thousands of
    digits, only its type is left.
    """
    record = parse_record(line)
    if record is None:
        return None
    with suppress(RecordError):
        return record, record.json()
    record = parse_record(line.decode("utf-8", "replace").encode())
    if record is None:
        return None
    try:
        return record, record.json()
    except RecordError:
        return record, {} if record.type is None else {"type": record.type}


def plain_content(content: object) -> object:
    """Return a message's content with text blocks of Claude Code's type in place of the host's type."""
    if not isinstance(content, list):
        return content
    return [
        {"type": "text", "text": block["text"]}
        if isinstance(block, dict) and isinstance(block.get("text"), str)
        else block
        for block in content
    ]


def first_text(content: object) -> bytes:
    """Return the first non-blank text of a message, in UTF-8; b"" if there is none."""
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    words = next((text.lstrip() for text in texts if isinstance(text, str) and text.strip()), "")
    return words[:MAX_START_BYTES].encode("utf-8", "replace")


def recognize(file: SeekableFile) -> HostRecords | None:
    """Return the translator of a transcript's records, by its first record; None for Claude Code and unknown hosts."""
    for _, line in forward_lines(file, 0, MAX_FIRST_RECORD_BYTES, MAX_FIRST_RECORD_BYTES):
        record = parse_record(line)
        if record is not None and not is_another_hosts(record):
            return None
        if (whole := parse_object(line)) is not None:
            host = recognize_record(whole[1])
            return None if host is None else HostRecords(host, whole[1])
    return None


def is_another_hosts(record: Record) -> bool:
    """Return whether a transcript with this first record may be another host's than Claude Code's."""
    if record.uuid and record.session_id and record.text:
        return False  # only Claude Code's records have both, and words where the core finds them
    try:
        return recognize_record(record.json()) is not None
    except RecordError:
        return True


def is_name(text: str) -> bool:
    """Return whether a text is short enough for a name or an id of a scan's row: see docs/scan-rows.md."""
    return len(text.encode("utf-8", "replace")) <= MAX_NAME_BYTES


def find_own_session(head: bytes) -> str | None:
    r"""Return the first session id of a file that begins with Claude Code's records.

    Faster than `recognize`, but None if the first lines do not show it: it may still be Claude Code's.

    head: the file's first bytes.

    >>> find_own_session(b'{"type":"user","sessionId":"s","uuid":"u"}\n')
    's'
    """
    session = ""
    start = 0
    for _ in range(MAX_FIRST_LINES):
        end = head.find(b"\n", start)
        record = parse_record(head[start:end]) if end >= 0 else None
        if record is None or (start == 0 and is_another_hosts(record)):
            return None
        if not is_name(record.session_id or ""):
            return None
        session = session or record.session_id or ""
        if record.uuid and record.session_id:
            return session
        start = end + 1
    return None


def sub_agent_files(path: str, records: HostRecords | None, first: Record | None) -> list[str]:
    """Return the paths of the transcripts of a session's sub-agents, sorted.

    path: of the session's own transcript.  records: its translator.  first: its first record.
    """
    own = Path(path).absolute()
    session = own.name.partition(".jsonl")[0]
    sessions = {session, first.session_id if first is not None else None}
    is_sub_agent = first is not None and first.is_sidechain
    found = set()
    for pattern in (claude_code if records is None else records.host).SUB_AGENT_FILES:
        for agent in own.parent.glob(pattern.replace("{session}", glob.escape(session))):
            if agent == own or not agent.name.endswith(TRANSCRIPT_ENDINGS) or not S_ISREG(agent.lstat().st_mode):
                continue
            if "{session}" in pattern or (not is_sub_agent and read_session_id(str(agent)) in sessions):
                found.add(os.path.normpath(agent))
    return sorted(found)


def begins_with_sub_agent(file: SeekableFile, records: HostRecords | None) -> bool | None:
    """Return whether the first message of a transcript is a sub-agent's; None if there is no message yet.

    records: its translator. A session of an older Claude Code has its sub-agents' records too, without an agent's id.
    """
    limit = MAX_FIRST_RECORD_BYTES
    for record in forward_records(file, 0, limit, limit) if records is None else records.forward(file, 0, limit):
        if record.role is not None:
            return record.is_sidechain and bool(record.agent_id)
    return None


def read_session_id(path: str) -> str:
    """Return the session in the first records of a transcript; "" if it cannot be read or names none."""
    try:
        opened = open_source(path)
    except (OSError, ImportError):
        return ""
    try:
        records = islice(forward_records(opened.file, 0, MAX_FIRST_RECORD_BYTES), MAX_FIRST_LINES)
        return next((record.session_id for record in records if record.session_id), "")
    finally:
        opened.close()


def name_of_host(records: HostRecords | None) -> str:
    """Return the name of a transcript's host."""
    return DEFAULT if records is None else records.host.NAME
