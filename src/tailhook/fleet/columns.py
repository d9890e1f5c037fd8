"""The tables of a scan and their columns, in their order (docs/scan-rows.md), and what else a question chooses from."""

from collections.abc import Mapping
from typing import Literal

Table = Literal["matches", "records", "tools", "usage", "sessions"]
ROLES = ("user", "assistant", "human")  # that a question may name
MAX_CONTEXT_CHARS = 1 << 16
CONTEXT_CHARS = 80  # before and after a match, unless a question asks for another number
FORMATS = ("table", "jsonl", "csv", "parquet", "arrow")
BINARY_FORMATS = ("parquet", "arrow")
USAGE_GROUPINGS = ("day", "week", "month", "model", "project", "session", "agent")

TOKEN_COLUMNS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
# No table has these columns: only what responses cost depends on them. Of the tokens that are written to a cache, those
# that stay there for an hour; the mode in which the model answered, "fast" or "standard"; where it ran.
CACHE_HOUR_COLUMN = "cache_creation_1h_tokens"
PRICE_COLUMNS = (CACHE_HOUR_COLUMN, "speed", "inference_geo")
# Columns that are only there if they are asked for: they can be as large as the transcripts.
LARGE = ("text", "input")
TABLE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "matches": (
        *("path", "offset", "session_id", "agent_id", "project", "role", "timestamp", "message_id"),
        *("name", "start", "end", "line", "in_code", "context"),
    ),
    "records": (
        *("path", "offset", "host", "host_version", "session_id", "agent_id", "project", "git_branch"),
        *("uuid", "parent_uuid", "type", "subtype", "role", "timestamp", "message_id", "request_id", "model"),
        *("is_prompt", "is_sidechain", "is_meta", "is_error", "tools", "text_bytes", "text"),
    ),
    "tools": (
        *("path", "offset", "session_id", "agent_id", "tool_use_id", "name"),
        *("started", "ended", "duration_ms", "is_error", "input", "file", "command"),
    ),
    "usage": (
        *("session_id", "agent_id", "project", "host", "model", "timestamp", "message_id", "request_id"),
        *TOKEN_COLUMNS,
    ),
    "sessions": (
        *("host", "session_id", "parent", "path", "project", "git_branch", "models", "host_version", "start", "end"),
        *("prompts", "messages", "tool_calls"),
        *TOKEN_COLUMNS,
        *("errors", "sub_agents", "bytes", "broken_lines"),
    ),
}
