"""Codex CLI (0.169.0). It has Claude Code's names, and accepts no field in an answer that it does not know."""

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
SHELL_VARIABLE = "CODEX_SESSION_ID"
BLOCK_CAP = 0
BLOCK_CAP_VARIABLE = ""


def add_fields(payload: "dict[str, Any]") -> None:
    """Change nothing: the payload has every field."""


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return the answer as it is."""
    return fields


def content_of(record: "Mapping[str, Any]") -> object:
    """Return the agent's words in a record of a rollout file.

    {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [BLOCK, ...]}}
    """
    message = record.get("payload")
    if record.get("type") != "response_item" or not isinstance(message, dict):
        return None
    return message.get("content") if message.get("role") == "assistant" else None
