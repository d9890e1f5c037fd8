"""A transcript: the records of a session, one JSON object a line, read from either end.

>>> with open("session.jsonl") as transcript:
...     transcript.last_message()
...     [record.role for record in transcript.reversed(limit=2)]
'Done.'
['assistant', 'user']
"""

from __future__ import annotations

import io
import os

from tailhook._core import Record, ToolUse, forward_records, last_message, reverse_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import TracebackType
    from typing import BinaryIO

    from tailhook.patterns import PatternSet, RecordMatch

__all__ = ["Record", "ToolUse", "Transcript", "open"]


class Transcript:
    """A transcript that is open; made by `open`, closed by `close` or at the end of a `with` block.

    Iteration gives its records, oldest first. Lines that hold no record are passed over; records of unknown types are
    given as they are. Each iteration reads what the file held when it began. A file that is truncated or overwritten
    meanwhile ends it.
    """

    def __init__(self, file: BinaryIO | io.FileIO, *, owned: bool = False) -> None:
        self._file = file
        self._owned = owned

    def __enter__(self) -> Transcript:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, if `open` opened it."""
        if self._owned:
            self._file.close()

    def __iter__(self) -> Iterator[Record]:
        return forward_records(self._file)

    def reversed(self, roles: Collection[str] | None = None, limit: int | None = None) -> Iterator[Record]:
        """Yield the records, newest first.

        roles: only records with one of these roles ("assistant", "user"; "human" in flat transcripts).
        limit: at most so many records.

        >>> with open("session.jsonl") as transcript:
        ...     [record.text for record in transcript.reversed(roles={"assistant"}, limit=1)]
        ['Done.']
        """
        left = limit
        for record in reverse_records(self._file):
            if left == 0:
                return
            if roles is None or record.role in roles:
                yield record
                if left is not None:
                    left -= 1

    def last_message(self) -> str | None:
        """Return the newest text message of the assistant, as the hooks see it, or None.

        Its text blocks are joined by newlines. Sub-agents' messages, API errors and what the host wrote do not count.

        >>> with open("session.jsonl") as transcript:
        ...     transcript.last_message()
        'Done.'
        """
        outcome, texts = last_message(self._file)
        return b"\n".join(text for text, _ in texts).decode("utf-8", "surrogatepass") if outcome == "text" else None

    def find_last(self, patterns: PatternSet, roles: Collection[str] = ("assistant",)) -> RecordMatch | None:
        """Return the last match in the newest record that has one, or None. Takes what `findall` takes."""
        for record in self.reversed(roles):
            if is_own_text(record) and (found := patterns.findall(record.text)):
                return found[-1].with_record(record)
        return None

    def findall(self, patterns: PatternSet, roles: Collection[str] = ("assistant",)) -> Iterator[RecordMatch]:
        """Yield every match in the texts of the records, oldest first.

        patterns: PatternSet.
        roles: whose records are searched. Sub-agents', API errors and what the host wrote are left out.
        """
        for record in self:
            if record.role in roles and is_own_text(record):
                for found in patterns.findall(record.text):
                    yield found.with_record(record)


def is_own_text(record: Record) -> bool:
    """Return whether the role itself wrote this in the main conversation."""
    return not (record.is_sidechain or record.is_meta or record.is_api_error or record.is_compact_summary)


def open(file: str | os.PathLike[str] | BinaryIO) -> Transcript:  # noqa: A001 - the library's own verb
    """Open a transcript for reading.

    file: a path, or a seekable binary file, which is not closed.

    Raises TypeError for anything else, ValueError for a URL, FileNotFoundError and the other errors of opening a file.

    >>> with open("session.jsonl") as transcript:
    ...     sum(1 for record in transcript)
    2
    """
    if isinstance(file, str | os.PathLike):
        path = os.fspath(file)
        if not isinstance(path, str):
            raise TypeError(f"a transcript's path is a str, not {type(path).__name__}")
        try:
            return Transcript(io.FileIO(path), owned=True)
        except FileNotFoundError:
            if "://" not in path:
                raise
            advice = "open it with a library of its own, and give the binary file"
            raise ValueError(f"{path} is a URL: {advice}") from None
    if isinstance(file, io.TextIOBase) or not (hasattr(file, "seek") and hasattr(file, "readinto")):
        raise TypeError(f"a transcript is a path or a seekable binary file, not {type(file).__name__}")
    return Transcript(file)
