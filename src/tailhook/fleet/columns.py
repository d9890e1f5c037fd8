"""The choices of a question: tables, the columns of typed_rows.py, roles, formats."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from tailhook.fleet.typed_rows import ROWS, columns_of

Table = Literal["matches", "records", "tools", "usage", "sessions"]
ROLES = ("user", "assistant", "human")  # of a question
MAX_CONTEXT_CHARS = 1 << 16
CONTEXT_CHARS = 80  # before and after a match, by default
FORMATS = ("table", "jsonl", "csv", "parquet", "arrow")
BINARY_FORMATS = ("parquet", "arrow")
USAGE_GROUPINGS = ("day", "week", "month", "model", "project", "session", "agent")

TOKEN_COLUMNS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
# Columns of a response's records that are not in the table: the cost of the response depends on them, too.
PRICE_COLUMNS = ("cache_creation_1h_tokens", "speed", "inference_geo")
# Columns that are there only on request: they can be as large as the transcripts.
LARGE = ("text", "input")
TABLE_COLUMNS: Mapping[str, tuple[str, ...]] = {table: columns_of(row) for table, row in ROWS.items()}


class MatchOptions(NamedTuple):
    """The options of `tailhook.scan` for the table matches: which matches count, and what a row has of each."""

    in_code: bool | None = False
    context: int = CONTEXT_CHARS
    all_text: bool = False
    sidechains: bool = False

    def given(self) -> list[str]:
        """Return the names of the options without their default value."""
        return [name for name, value in self._asdict().items() if value != self._field_defaults[name]]
