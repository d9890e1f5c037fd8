"""Cursor, by its documentation of hooks (autumn 2026). A block is a follow-up message."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hosts.protocols import HooksFileFields, HostMessage

NAME = "cursor"
TITLE = "Cursor"
EVENTS = {"beforeSubmitPrompt": "UserPromptSubmit"}  # `stop`, `sessionStart` and so on differ by a capital letter only
FIELDS = {"conversation_id": "session_id"}
READS_EXIT_2 = False
WRITES_LATE = False
LISTS_ANSWERS = False
RECORD_MARK = b"assistant"
OTHER_MARKS = (b'"user"',)
HOST_WRITTEN = ()
CONTEXT_MARKS: "tuple[bytes, ...]" = ()
RESTATES_MESSAGES = False
NESTED_MARK = b""
TOKEN_TYPES: "tuple[str, ...]" = ()
THINKING_TYPES: "tuple[str, ...]" = ()
RECORD_TYPES = ("assistant", "user", "system")
TOKENS_ELSEWHERE: "tuple[str, ...]" = ()
SUB_AGENT_FILES: "tuple[str, ...]" = ()
TRANSCRIPT_FOLDERS: "tuple[str, ...]" = ()  # not known
FORMER_FOLDERS: "tuple[str, ...]" = ()
SHELL_VARIABLE = ""
SESSION_VARIABLE = ""
RESUME_COMMAND = ""
BLOCK_CAP = 5  # `loop_limit` of the hook, unless it is set
BLOCK_CAP_VARIABLE = ""
BLOCK_CAP_COUNTS = "blocks in a row"
HOOKS_FILE: "HooksFileFields" = {
    "folder": ".cursor",
    "paths": {"user": "hooks.json", "project": ".cursor/hooks.json"},
    "file_members": {"version": 1},
    "stop_event": "stop",
    "reported_events": {
        "sessionStart": None,
        "beforeSubmitPrompt": None,
        "preToolUse": None,
        "postToolUse": None,
        "postToolUseFailure": None,
        "subagentStop": None,
        "sessionEnd": None,
    },
    "has_groups": False,
    "hook_type": "",
    "cap_member": "loop_limit",
    "project_variables": ("CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    "payload": {
        "conversation_id": "doctor",
        "hook_event_name": "{event}",
        "workspace_roots": ["{folder}"],
        "transcript_path": None,
        "status": "completed",
        "loop_count": 0,
    },
}


def add_fields(payload: "dict[str, Any]") -> None:
    """Add the folder, and whether the turn was blocked before.

    With the status "aborted" or "error" the agent did not stop by itself: that is an interruption or a failure.
    """
    if payload["hook_event_name"] == "Stop" and payload.get("status") in ("aborted", "error"):
        payload["hook_event_name"] = "Interrupt" if payload["status"] == "aborted" else "StopFailure"
    roots = payload.get("workspace_roots")
    if isinstance(roots, list) and roots:
        payload.setdefault("cwd", roots[0])
    if "loop_count" in payload:
        payload.setdefault("stop_hook_active", payload["loop_count"] not in (0, None))


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return a block as a follow-up message. Cursor cannot express any other answer."""
    return {"followup_message": fields["reason"]} if "decision" in fields else {}


def begins_transcript(record: "Mapping[str, Any]") -> bool:
    """Return whether Cursor wrote the record: each of its records has a role, and none has a type."""
    return isinstance(record.get("role"), str) and isinstance(record.get("message"), dict) and "type" not in record


def read_record(record: "Mapping[str, Any]") -> "HostMessage | None":
    """Read a record: {"role": ROLE, "message": {"content": [BLOCK, ...]}}; a block may be a tool's use."""
    role, message = record.get("role"), record.get("message")
    if role not in ("assistant", "user") or not isinstance(message, dict):
        return None
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    uses = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
    return role == "assistant", content, [use.get("name") for use in uses]


def read_context(
    record: "Mapping[str, Any]",  # noqa: ARG001 - others need both
    known: "Mapping[str, Any] | None",  # noqa: ARG001
) -> "dict[str, Any]":
    """Return nothing: Cursor's records hold only messages."""
    return {}


def nested_records(
    record: "Mapping[str, Any]",  # noqa: ARG001 - Codex needs it
    context: "Mapping[str, Any]",  # noqa: ARG001
) -> "list[Mapping[str, Any]]":
    """Return an empty list: a record holds no others."""
    return []


def translate_record(
    record: "Mapping[str, Any]",
    context: "Mapping[str, Any]",  # noqa: ARG001 - other hosts need it
) -> "dict[str, Any]":
    """Add the type: the role. The message has Claude Code's form."""
    return {"type": record.get("role"), "message": record.get("message")}
