"""Copilot CLI (1.0.102). It writes its transcript 100 ms after the agent has stopped."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hook.protocols import HooksFileFields, HostMessage

NAME = "copilot"
TITLE = "Copilot CLI"
EVENTS = {"agentStop": "Stop", "userPromptSubmitted": "UserPromptSubmit"}
FIELDS = {
    "sessionId": "session_id",
    "transcriptPath": "transcript_path",
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "agentName": "agent_id",
    "agent_name": "agent_id",  # for hooks that are registered under names in PascalCase
}
READS_EXIT_2 = False
WRITES_LATE = True
LISTS_ANSWERS = False
RECORD_MARK = b"assistant"
OTHER_MARKS = (b'"user.message"',)
HOST_WRITTEN = ()
SHELL_VARIABLE = "COPILOT_CLI"
SESSION_VARIABLE = ""
BLOCK_CAP = 8  # with tool use or without
BLOCK_CAP_VARIABLE = ""
BLOCK_CAP_COUNTS = "blocks in a row"
# Not permissionRequest: Copilot sends it before every tool, also if no person is asked.
HOOKS_FILE: "HooksFileFields" = {
    "folder_variable": "COPILOT_HOME",
    "folder": ".copilot",
    "paths": {"user": "hooks/tailhook.json", "project": ".github/hooks/tailhook.json"},
    "file_members": {"version": 1},
    "stop_event": "agentStop",
    "reported_events": {
        "sessionStart": None,
        "userPromptSubmitted": None,
        "preToolUse": None,
        "postToolUse": None,
        "postToolUseFailure": None,
        "notification": None,
        "subagentStop": None,
        "sessionEnd": None,
    },
    "names_events": False,
    "has_groups": False,
    "command_members": ("bash", "command"),
    "hook_members": {"timeoutSec": 10},
    "off_switch": ("disableAllHooks",),
    "off_value": True,
    "project_variables": ("COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    "payload": {
        "sessionId": "doctor",
        "cwd": "{folder}",
        "transcriptPath": "{folder}/events.jsonl",
        "stopReason": "end_turn",
        "stop_hook_active": False,
    },
}


def add_fields(payload: "dict[str, Any]") -> None:
    """Change nothing: renaming is enough."""


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return a block without the message for the person; there is no word for anything else."""
    return {"decision": "block", "reason": fields["reason"]} if "decision" in fields else {}


def begins_transcript(record: "Mapping[str, Any]") -> bool:
    """Return whether it is the first record of an events file: {"type": "session.start", "data": {...}}."""
    return record.get("type") == "session.start"


def read_record(record: "Mapping[str, Any]") -> "HostMessage | None":
    """Read a record of an events file.

    {"type": "assistant.message", "data": {"content": TEXT, "toolRequests": [{"name": TOOL}, ...]}}, or "user.message".
    """
    kind, message = record.get("type"), record.get("data")
    if kind not in ("assistant.message", "user.message") or not isinstance(message, dict):
        return None
    calls = message.get("toolRequests")
    names = [call.get("name") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return kind == "assistant.message", message.get("content"), names
