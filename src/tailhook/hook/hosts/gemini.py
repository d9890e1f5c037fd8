"""Gemini CLI (0.61.0). Its stop is `AfterAgent`, and a block is a "deny"."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

EVENTS = {
    "AfterAgent": "Stop",
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "PreCompress": "PreCompact",
}
FIELDS = {"prompt_response": "last_assistant_message"}
READS_EXIT_2 = True
WRITES_LATE = False
LISTS_ANSWERS = True  # all answers to one prompt, blocked ones included; its transcript, never late, has each by itself
RECORD_MARK = b"gemini"
SHELL_VARIABLE = "GEMINI_CLI"
BLOCK_CAP = 0
BLOCK_CAP_VARIABLE = ""


def add_fields(payload: "dict[str, Any]") -> None:
    """Change nothing: renaming is enough."""


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return the answer with Gemini's word for a block."""
    return {**fields, "decision": "deny"} if "decision" in fields else fields


def content_of(record: "Mapping[str, Any]") -> object:
    """Return the agent's words in a record: {"type": "gemini", "content": "..."}."""
    return record.get("content") if record.get("type") == "gemini" else None
