"""What a question chooses from: tables, the columns that typed_rows.py declares, roles, formats."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from tailhook.fleet.typed_rows import ROWS, columns_of

Table = Literal["matches", "records", "tools", "usage", "sessions"]
ROLES = ("user", "assistant", "human")  # that a question may name
MAX_CONTEXT_CHARS = 1 << 16
CONTEXT_CHARS = 80  # before and after a match, unless a question asks for another number
FORMATS = ("table", "jsonl", "csv", "parquet", "arrow")
BINARY_FORMATS = ("parquet", "arrow")
USAGE_GROUPINGS = ("day", "week", "month", "model", "project", "session", "agent")

TOKEN_COLUMNS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
# Columns of a response's records that the table does not have: what the response costs depends on them, too.
PRICE_COLUMNS = ("cache_creation_1h_tokens", "speed", "inference_geo")
# Columns that are only there if they are asked for: they can be as large as the transcripts.
LARGE = ("text", "input")
TABLE_COLUMNS: Mapping[str, tuple[str, ...]] = {table: columns_of(row) for table, row in ROWS.items()}


class MatchOptions(NamedTuple):
    """Which matches count, and what is given of each: what `tailhook.scan` takes for the table matches only."""

    in_code: bool | None = False
    context: int = CONTEXT_CHARS
    all_text: bool = False
    sidechains: bool = False

    def given(self) -> list[str]:
        """Return the names of those that are not as they are by default."""
        return [name for name, value in self._asdict().items() if value != self._field_defaults[name]]
