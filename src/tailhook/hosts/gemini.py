"""Gemini CLI (0.61.0). Its stop is `AfterAgent`, and a block is a "deny"."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hosts.protocols import HooksFileFields, HostMessage

NAME = "gemini"
TITLE = "Gemini CLI"
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
LISTS_ANSWERS = True  # all answers to one prompt, even blocked ones; the transcript has each by itself, and in time
RECORD_MARK = b"gemini"
OTHER_MARKS = (b'"user"',)
HOST_WRITTEN = (b"<session_context",)
CONTEXT_MARKS: "tuple[bytes, ...]" = ()
RESTATES_MESSAGES = True
NESTED_MARK = b'"$set"'
TOKEN_TYPES: "tuple[str, ...]" = ()
THINKING_TYPES: "tuple[str, ...]" = ()
RECORD_TYPES = ("assistant", "user", "system", "info", "error", "warning")
TOKENS_ELSEWHERE: "tuple[str, ...]" = ("user", "info", "error", "warning")
SUB_AGENT_FILES: "tuple[str, ...]" = ()
TRANSCRIPT_FOLDERS: "tuple[str, ...]" = (".gemini/tmp",)
FORMER_FOLDERS: "tuple[str, ...]" = ()
SHELL_VARIABLE = "GEMINI_CLI"
SESSION_VARIABLE = ""
RESUME_COMMAND = "gemini --resume"
BLOCK_CAP = 0
BLOCK_CAP_VARIABLE = ""
BLOCK_CAP_COUNTS = ""
HOOKS_FILE: "HooksFileFields" = {
    "folder_variable": "GEMINI_CLI_HOME",
    "folder": "",  # the home folder itself
    "paths": {"user": ".gemini/settings.json", "project": ".gemini/settings.json"},
    "stop_event": "AfterAgent",  # no prompt_event: in its texts Gemini writes &lt; for <, so a signal would be wrong
    "reported_events": {
        "SessionStart": None,
        "BeforeAgent": None,
        "BeforeTool": "*",
        "AfterTool": "*",
        "Notification": None,
        "SessionEnd": None,
    },
    "hook_members": {"name": "tailhook", "timeout": 10_000},  # milliseconds
    "off_switch": ("hooksConfig", "enabled"),
    "off_value": False,
    "off_is_overridden": True,
    "has_comments": True,
    "runs_equal_once": True,  # packages/core/src/hooks/hookPlanner.ts
    "disabled_names": ("hooksConfig", "disabled"),
    "project_variables": ("GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"),
    "payload": {
        "session_id": "doctor",
        "transcript_path": "{folder}/transcript.jsonl",
        "cwd": "{folder}",
        "hook_event_name": "{event}",
        "prompt": "Try the hook.",
        "prompt_response": "At work.",
        "stop_hook_active": False,
    },
}


def add_fields(payload: "dict[str, Any]") -> None:
    """Give the notification about a tool's permission its name in Claude Code."""
    if payload.get("notification_type") == "ToolPermission":
        payload["notification_type"] = "permission_prompt"


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return the answer with Gemini's word for a block."""
    return {**fields, "decision": "deny"} if "decision" in fields else fields


def begins_transcript(record: "Mapping[str, Any]") -> bool:
    """Return whether it is the first record of a session file: {"sessionId": ..., "projectHash": ..., ...}."""
    return "projectHash" in record and "sessionId" in record


def read_record(record: "Mapping[str, Any]") -> "HostMessage | None":
    """Read a record of a session file.

    {"type": "gemini", "content": TEXT, "toolCalls": [{"name": TOOL}, ...]}, or
    {"type": "user", "content": [PART, ...]}. The first is written again, with its calls, when these have ended.
    """
    kind = record.get("type")
    if kind == "user":
        return False, record.get("content"), []
    calls = record.get("toolCalls")
    names = [call.get("name") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return (True, record.get("content"), names) if kind == "gemini" else None


def read_context(
    record: "Mapping[str, Any]",
    known: "Mapping[str, Any] | None",  # noqa: ARG001 - Codex needs it
) -> "dict[str, Any]":
    """Read the first record of a session file."""
    return {"sessionId": record["sessionId"]} if "sessionId" in record else {}


def nested_records(
    record: "Mapping[str, Any]",
    context: "Mapping[str, Any]",  # noqa: ARG001 - other hosts need it
) -> "list[Mapping[str, Any]]":
    """Return the messages of {"$set": {"messages": [MESSAGE, ...]}}: they replace the whole conversation.

    Gemini itself identifies messages by their ids, and ignores a message without an id.
    """
    changed = record.get("$set")
    messages = changed.get("messages") if isinstance(changed, dict) else None
    found = messages if isinstance(messages, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("id"), str)]


def translate_record(record: "Mapping[str, Any]", context: "Mapping[str, Any]") -> "dict[str, Any]":
    """Translate a record of a session file. A message's record has the results of its tools, too.

    {"tokens": {"input": N, "output": N, "cached": N, "thoughts": N, "tool": N}}: the cached input is part of the input.
    """
    kind = record.get("type")
    if kind == "user":
        return {"type": "user", "message": {"role": "user", "content": record.get("content")}}
    if kind != "gemini":
        return {"type": kind}
    content = record.get("content")
    blocks: list[Any] = content[:] if isinstance(content, list) else [{"type": "text", "text": content}]
    calls = record.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        use = {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args")}
        blocks.append(use)
        if call.get("status") in ("success", "error", "cancelled"):
            failed = call["status"] != "success"
            result = {"type": "tool_result", "tool_use_id": call.get("id"), "is_error": failed}
            blocks.append({**result, "content": call.get("resultDisplay"), "timestamp": call.get("timestamp")})
    message: dict[str, Any] = {
        "id": record.get("id"),
        "role": "assistant",
        "model": record.get("model"),
        "content": blocks,
    }
    used = record.get("tokens")
    if isinstance(used, dict):
        from tailhook.hosts.reading import new_input, read_count

        cached, output = read_count(used, "cached"), read_count(used, "output")
        fresh = new_input(read_count(used, "input"), cached)
        usage = {
            "input_tokens": None if fresh is None else fresh + (read_count(used, "tool") or 0),
            "output_tokens": None if output is None else output + (read_count(used, "thoughts") or 0),
            "cache_read_input_tokens": cached,
        }
        if any(usage.values()):
            message["usage"] = usage
    # The message of a sub-agent may have the id of one of its session.
    own = {"usageId": f"{context.get('sessionId')} {record['id']}", "usageCopies": ""} if record.get("id") else {}
    return {"type": "assistant", "message": message, **own}
