"""The parts of a record that the hooks never need: the core makes them when a program asks for them."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tailhook._core import parse_record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Usage(NamedTuple):
    """Tokens that one response of the API used.

    The input is the tokens neither read from the cache nor written to it. A missing count, or one that is not a whole
    number from 0 to 2**63 - 1, is 0.

    >>> Usage(input=3, output=120, cache_read=9000, cache_creation=0)
    Usage(input=3, output=120, cache_read=9000, cache_creation=0)
    """

    input: int
    output: int
    cache_read: int
    cache_creation: int


class ToolResult:
    """A tool_result block: the result of a tool.

    tool_use_id: the id of the use that it answers, or None.
    is_error: whether the tool failed.
    """

    __slots__ = ("_content", "is_error", "tool_use_id")

    def __init__(self, tool_use_id: str | None, is_error: bool, content: bytes) -> None:
        """content: the block's content, a JSON text."""
        self.tool_use_id, self.is_error, self._content = tool_use_id, is_error, content

    @property
    def text(self) -> str:
        """The content as a text, by the rules of `Record.text`, with U+FFFD for invalid UTF-8."""
        record = parse_record(b'{"message":{"content":' + self._content + b"}}")
        return record.text if record else ""  # a record holds only valid JSON

    def __repr__(self) -> str:
        return f"ToolResult(tool_use_id={self.tool_use_id!r}, is_error={self.is_error})"


def utc_time(microseconds: int) -> datetime:
    """Return a Unix time in the years 1 to 9999 as an aware datetime in UTC."""
    return EPOCH + timedelta(microseconds=microseconds)
