"""Codex CLI (0.169.0). It has Claude Code's names, and accepts no field in an answer that it does not know."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "codex"
TITLE = "Codex CLI"
EVENTS: "Mapping[str, str]" = {}
FIELDS: "Mapping[str, str]" = {}
READS_EXIT_2 = True
WRITES_LATE = False
LISTS_ANSWERS = False
RECORD_MARK = b"assistant"
SHELL_VARIABLE = "CODEX_SESSION_ID"
BLOCK_CAP = 0
BLOCK_CAP_VARIABLE = ""
BLOCK_CAP_COUNTS = ""
HOOKS_FILE: "Mapping[str, Any]" = {
    "folder_variable": "CODEX_HOME",
    "folder": ".codex",
    "paths": {"user": "hooks.json", "project": ".codex/hooks.json"},
    "stop_event": "Stop",
    "repeat_event": "SessionStart",
    "repeat_matcher": "compact",
    "reported_events": {
        "UserPromptSubmit": None,
        "PreToolUse": "*",
        "PostToolUse": "*",
        "PermissionRequest": "*",
        "PostCompact": "manual",
        "SubagentStop": None,
        "SessionEnd": None,
    },
    "hook_members": {"timeout": 10},  # seconds
    "event_members": {
        "Stop": {"statusMessage": "tailhook: may the agent stop?"},
        "SessionStart": {"statusMessage": "tailhook: checking for a running loop"},
        "SessionEnd": {"timeout": 3},  # Codex shortens more than that, with a warning
    },
    "note": "Codex runs a hook only after you trust it in Codex's own dialog.",
    "payload": {
        "session_id": "doctor",
        "transcript_path": None,
        "cwd": "{folder}",
        "hook_event_name": "{event}",
        "source": "compact",
        "stop_hook_active": False,
        "last_assistant_message": "At work.",
    },
}


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
