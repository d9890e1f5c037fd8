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
CONTEXT_MARKS = (b'"session.',)
RESTATES_MESSAGES = False
NESTED_MARK = b""
TOKEN_TYPES = ("session.usage_record",)
THINKING_TYPES: "tuple[str, ...]" = ()
SUB_AGENT_FILES: "tuple[str, ...]" = ()
TRANSCRIPT_FOLDERS: "tuple[str, ...]" = ("session-state",)
FORMER_FOLDERS: "tuple[str, ...]" = ()
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


def read_context(
    record: "Mapping[str, Any]",
    known: "Mapping[str, Any] | None",  # noqa: ARG001 - Codex needs it
) -> "dict[str, Any]":
    """Read session.start, session.resume, session.context_changed or session.model_change."""
    facts = record.get("data")
    if not isinstance(facts, dict):
        return {}
    place = facts if record.get("type") == "session.context_changed" else facts.get("context")
    return {
        "sessionId": facts.get("sessionId"),
        "version": facts.get("copilotVersion"),
        "model": facts.get("newModel", facts.get("selectedModel")),
        **({"cwd": place.get("cwd"), "gitBranch": place.get("branch")} if isinstance(place, dict) else {}),
    }


def nested_records(
    record: "Mapping[str, Any]",  # noqa: ARG001 - Codex needs it
    context: "Mapping[str, Any]",  # noqa: ARG001
) -> "list[Mapping[str, Any]]":
    """Return none: a record holds no others."""
    return []


def translate_record(
    record: "Mapping[str, Any]",
    context: "Mapping[str, Any]",  # noqa: ARG001 - other hosts need it
) -> "dict[str, Any]":
    """Translate a record of an events file. The tokens of a response are a message of the assistant without words."""
    kind, event = record.get("type"), record.get("data")
    event = event if isinstance(event, dict) else {}
    own = {"uuid": record.get("id"), "parentUuid": record.get("parentId"), "agentId": record.get("agentId")}
    own["isSidechain"] = isinstance(record.get("agentId"), str)
    if kind == "user.message":
        hosts = event.get("isAutopilotContinuation") is True or isinstance(event.get("source"), str)
        message = {"role": "user", "content": event.get("content")}
        return {**own, "type": "user", "isMeta": hosts, "message": message}
    if kind == "assistant.message":
        calls = event.get("toolRequests")
        blocks: list[Any] = [{"type": "text", "text": event.get("content")}]
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                use = {"type": "tool_use", "id": call.get("toolCallId"), "name": call.get("name")}
                blocks.append({**use, "input": call.get("arguments")})
        answer_id = event.get("apiCallId", event.get("messageId"))
        message = {"id": answer_id, "role": "assistant", "model": event.get("model"), "content": blocks}
        return {**own, "type": "assistant", "requestId": event.get("requestId"), "message": message}
    if kind == "tool.execution_complete":
        result, error = event.get("result"), event.get("error")
        content = result.get("content") if isinstance(result, dict) else None
        if content is None and isinstance(error, dict):
            content = error.get("message")
        block = {"type": "tool_result", "tool_use_id": event.get("toolCallId"), "content": content}
        block["is_error"] = event.get("success") is False
        return {**own, "type": "user", "message": {"role": "user", "content": [block]}}
    used = event.get("usage")
    if kind == "session.usage_record" and isinstance(used, dict):
        from tailhook.hook.hosts.transcripts import new_input, read_count

        cached, written = read_count(used, "cacheReadTokens"), read_count(used, "cacheWriteTokens")
        usage = {
            "input_tokens": new_input(read_count(used, "inputTokens"), cached, written),
            "output_tokens": read_count(used, "outputTokens"),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
        }
        message = {"role": "assistant", "model": used.get("model"), "content": [], "usage": usage}
        return {**own, "type": "assistant", "message": message}
    if kind == "session.compaction_complete":
        return {**own, "type": "system", "subtype": "compact_boundary"}
    return {**own, "type": kind, "isApiErrorMessage": kind == "session.error"}
