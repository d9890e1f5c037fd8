"""Antigravity CLI (`agy` 1.2), by its documents: not run. A block is "continue", and a payload has no event's name."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hosts.protocols import HooksFileFields, HostMessage

NAME = "antigravity"
TITLE = "Antigravity CLI"
EVENTS = {"PreInvocation": "UserPromptSubmit"}  # each time before the model is asked
FIELDS = {"conversationId": "session_id", "transcriptPath": "transcript_path"}
READS_EXIT_2 = False
WRITES_LATE = False
LISTS_ANSWERS = False
RECORD_MARK = b"PLANNER_RESPONSE"
OTHER_MARKS = (b"USER_INPUT",)
HOST_WRITTEN: "tuple[bytes, ...]" = ()
RECORD_TYPES: "tuple[str, ...]" = ()
TOKENS_ELSEWHERE: "tuple[str, ...]" = ()
SUB_AGENT_FILES: "tuple[str, ...]" = ()
TRANSCRIPT_FOLDERS: "tuple[str, ...]" = ()
FORMER_FOLDERS: "tuple[str, ...]" = ()
SHELL_VARIABLE = ""
SESSION_VARIABLE = ""
RESUME_COMMAND = ""
BLOCK_CAP = 0
BLOCK_CAP_VARIABLE = ""
BLOCK_CAP_COUNTS = ""
# Not PreToolUse: there a hook without an answer refuses the tool. PostToolUse does not name its tool.
HOOKS_FILE: "HooksFileFields" = {
    "folder": ".gemini/config",
    "paths": {"user": "hooks.json", "project": ".agents/hooks.json"},
    "hooks_member": "tailhook",  # a name for these hooks; beside it stand those of others
    "stop_event": "Stop",
    "reported_events": {"PreInvocation": None},
    "names_events": False,
    "has_groups": False,
    "off_switch": ("tailhook", "enabled"),
    "off_value": False,
    "hook_members": {"timeout": 10},  # whole seconds: a fraction makes the host ignore the file
    "payload": {
        "conversationId": "doctor",
        "workspacePaths": ["{folder}"],
        "transcriptPath": "{folder}/transcript.jsonl",
        "executionNum": 1,
        "terminationReason": "NO_TOOL_CALL",
        "error": "",
        "fullyIdle": True,
    },
}


def add_fields(payload: "dict[str, Any]") -> None:
    """Add the folder, the author of a prompt, and a task if the agent is not idle yet.

    A turn that the agent did not end by itself is an interruption or a failure: a block would go on with what a person
    has canceled.
    The model is asked several times in a turn, the first time with invocationNum 0. Without `fullyIdle` background
    work goes on, and wakes the agent.
    """
    folders = payload.get("workspacePaths")
    if isinstance(folders, list) and folders:
        payload.setdefault("cwd", folders[0])
    if "terminationReason" in payload:  # a stop; in published payloads the agent's own: TERMINATION_REASON_NO_TOOL_CALL
        reason = str(payload["terminationReason"]).upper()
        if "CANCEL" in reason or "ABORT" in reason:
            payload["hook_event_name"] = "Interrupt"
        elif payload.get("error") or any(end in reason for end in ("ERROR", "MAX_", "EXCEEDED")):
            payload |= {"hook_event_name": "StopFailure", "error": payload.get("error") or payload["terminationReason"]}
    if "invocationNum" in payload:
        payload.setdefault("source", "system" if payload["invocationNum"] else "user")
    if payload.get("fullyIdle") is False:
        payload.setdefault("background_tasks", [{"type": "agent"}])


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return a block without the message for the person: Antigravity ignores an answer with an unknown member."""
    return {"decision": "continue", "reason": fields["reason"]} if "decision" in fields else {}


def read_record(record: "Mapping[str, Any]") -> "HostMessage | None":
    """Read a record of the transcript.

    {"type": "PLANNER_RESPONSE", "content": TEXT, "tool_calls": [{"name": TOOL}, ...]}, or "USER_INPUT".
    """
    kind, calls = record.get("type"), record.get("tool_calls")
    if kind not in ("PLANNER_RESPONSE", "USER_INPUT"):
        return None
    names = [call.get("name") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return kind == "PLANNER_RESPONSE", record.get("content"), names
