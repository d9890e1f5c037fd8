"""Codex CLI (0.169.0). It has Claude Code's names, and accepts no field in an answer that it does not know."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hook.protocols import HooksFileFields, HostMessage

NAME = "codex"
TITLE = "Codex CLI"
EVENTS: "Mapping[str, str]" = {}
FIELDS: "Mapping[str, str]" = {}
READS_EXIT_2 = True
WRITES_LATE = False
LISTS_ANSWERS = False
RECORD_MARK = b"assistant"
OTHER_MARKS = b'"user"', b'_call"'
HOST_WRITTEN = (
    b"<environment_context",
    b"<user_instructions",
    b"<hook_prompt",
    b"<turn_aborted",
    b"# AGENTS.md instructions",
)
SHELL_VARIABLE = "CODEX_SESSION_ID"
SESSION_VARIABLE = ""  # whether CODEX_SESSION_ID is what the hooks' payloads have as session_id is not known
BLOCK_CAP = 0
BLOCK_CAP_VARIABLE = ""
BLOCK_CAP_COUNTS = ""
HOOKS_FILE: "HooksFileFields" = {
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


def begins_transcript(record: "Mapping[str, Any]") -> bool:
    """Return whether it is the first record of a rollout file: {"type": "session_meta", "payload": {...}}."""
    return record.get("type") == "session_meta" and isinstance(record.get("payload"), dict)


def read_record(record: "Mapping[str, Any]") -> "HostMessage | None":
    """Read a record of a rollout file.

    {"type": "response_item", "payload": ITEM}. ITEM is {"type": "message", "role": ROLE, "content": [BLOCK, ...]}, or
    {"type": "function_call", "name": TOOL, ...}, or the same with "custom_tool_call".
    """
    item = record.get("payload")
    if record.get("type") != "response_item" or not isinstance(item, dict):
        return None
    if item.get("type") in ("function_call", "custom_tool_call"):
        return True, "", [item.get("name")]
    role = item.get("role")
    return (role == "assistant", item.get("content"), []) if role in ("assistant", "user") else None
