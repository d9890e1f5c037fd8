"""Claude Code (2.1.329). Its names are the ones that tailhook uses itself."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

EVENTS: "Mapping[str, str]" = {}
FIELDS: "Mapping[str, str]" = {}
READS_EXIT_2 = True
WRITES_LATE = False
LISTS_ANSWERS = False
RECORD_MARK = b"assistant"
SHELL_VARIABLE = "CLAUDE_CODE_SESSION_ID"
BLOCK_CAP = 8  # without tool use, 2.1.143 and later
BLOCK_CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


def add_fields(payload: "dict[str, Any]") -> None:
    """Change nothing: the payload has every field."""


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return the answer as it is."""
    return fields


def content_of(record: "Mapping[str, Any]") -> object:
    """Return the agent's words in a record: {"type": "assistant", "message": {"content": [BLOCK, ...]}}."""
    message = record.get("message")
    return message.get("content") if record.get("type") == "assistant" and isinstance(message, dict) else None
