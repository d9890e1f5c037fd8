"""Copilot CLI (1.0.102). It writes its transcript 100 ms after the agent has stopped."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hosts.protocols import HooksFileFields, HostMessage

NAME = "copilot"
TITLE = "Copilot CLI"
EVENTS = {"agentStop": "Stop", "userPromptSubmitted": "UserPromptSubmit"}
FIELDS = {
    "sessionId": "session_id",
    "transcriptPath": "transcript_path",
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "agentId": "agent_id",
    "parentAgentId": "parent_agent_id",
    "agentName": "agent_id",  # of versions without an id
    "agent_name": "agent_id",  # for hooks registered under names in PascalCase
}
READS_EXIT_2 = False
WRITES_LATE = True
LISTS_ANSWERS = False
RECORD_MARK = b"assistant"
OTHER_MARKS = (b'"user.message"',)
HOST_WRITTEN = ()
CONTEXT_MARKS = (b'"session.',)
RESTATES_MESSAGES = False
NESTED_MARK = b'"modelMetrics"'
TOKEN_TYPES = ("session.usage_record",)
_COUNTED = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
_NO_TOKENS = [0] * len(_COUNTED)
THINKING_TYPES: "tuple[str, ...]" = ()
RECORD_TYPES = (
    *("assistant", "user", "system"),
    *("session.start", "session.context_changed", "session.usage_record", "session.error"),
    *("session.shutdown", "session.resume"),
    *("assistant.turn_start", "assistant.turn_end", "system.message", "tool.execution_start"),
    *("hook.start", "hook.end"),
)
TOKENS_ELSEWHERE = (
    *("user", "compact_boundary", "session.start", "session.resume", "session.shutdown", "session.compaction_start"),
    *("session.usage_info", "session.truncation", "session.model_change", "system.message", "subagent.completed"),
    *("tool.execution_start", "hook.start", "hook.end"),
)
SUB_AGENT_FILES: "tuple[str, ...]" = ()
TRANSCRIPT_FOLDERS: "tuple[str, ...]" = ("session-state",)
FORMER_FOLDERS: "tuple[str, ...]" = ()
SHELL_VARIABLE = "COPILOT_CLI"
SESSION_VARIABLE = "COPILOT_AGENT_SESSION_ID"
RESUME_COMMAND = "copilot --resume"
BLOCK_CAP = 8  # with tool use or without
BLOCK_CAP_VARIABLE = ""
BLOCK_CAP_COUNTS = "blocks in a row"
# Not permissionRequest: Copilot sends it before every tool, even without asking a person.
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
    """Give an event of a sub-agent its session, an event of a session its transcript, and a tool its input.

    Most events of a sub-agent have its own id as the session's, among them an agentStop. Only an agentStop names the
    transcript (1.0.102). A session that starts with a prompt does not wait for its first one; before 1.0.102 its start
    comes after that prompt.
    """
    if payload.get("initialPrompt"):
        payload.pop("source", None)
    given = payload.get("tool_input")
    if isinstance(given, str):  # JSON, of 1.0.71 and others
        from tailhook.hosts.reading import parse_host_record

        payload["tool_input"] = parse_host_record(given.encode("utf-8", "surrogatepass")) or given
    parent = payload.get("parent_agent_id")
    if isinstance(parent, str) and payload.get("session_id") == payload.get("agent_id"):
        payload["session_id"] = parent
    session = payload.get("session_id")
    if payload["hook_event_name"] != "Stop" and isinstance(session, str):
        import posix

        home = posix.environ.get(b"COPILOT_HOME") or posix.environ.get(b"HOME", b"") + b"/.copilot"
        folder = home.decode("utf-8", "surrogateescape")
        payload.setdefault("transcript_path", f"{folder}/session-state/{session}/events.jsonl")


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return a block without the message for the person. Copilot cannot express anything else.

    VS Code runs the hooks of the same files, and reads the block inside hookSpecificOutput (by its documents).
    """
    if "decision" not in fields:
        return {}
    block = {"decision": "block", "reason": fields["reason"]}
    return {**block, "hookSpecificOutput": {"hookEventName": "Stop", **block}}


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


def read_context(record: "Mapping[str, Any]", known: "Mapping[str, Any] | None") -> "dict[str, Any]":
    """Read session.start, session.resume, session.context_changed, session.model_change, or a record with tokens.

    A run ends with a session.shutdown, unless it is killed. `_sums` has the sums of the last one by model, `_recorded`
    the sums of the session.usage_records since then.
    """
    facts, kind = record.get("data"), record.get("type")
    if not isinstance(facts, dict):
        return {}
    known = known or {}
    place = facts if kind == "session.context_changed" else facts.get("context")
    found = {
        "sessionId": facts.get("sessionId"),
        "version": facts.get("copilotVersion"),
        "model": facts.get("newModel", facts.get("selectedModel")),
        **({"cwd": place.get("cwd"), "gitBranch": place.get("branch")} if isinstance(place, dict) else {}),
    }
    if kind in ("session.start", "session.resume"):
        # Since 1.0.66 the sums of a run begin with those of the last shutdown, and a resume has this member.
        goes_on = kind == "session.start" or "sessionLimits" in facts
        found |= {
            "run": f"{facts.get('sessionId') or known.get('sessionId')} {record.get('id')}",
            "_sums": known.get("_sums", {}) if goes_on else {},
        }
        found["_recorded"] = known.get("_recorded", {}) if goes_on else {}
    elif kind == "session.usage_record" and isinstance(facts.get("usage"), dict):
        model = facts["usage"].get("model")
        counts = known.get("_recorded", {}).get(str(model), _NO_TOKENS)
        counts = [one + more for one, more in zip(counts, _model_counts(facts["usage"]), strict=True)]
        found["_recorded"] = {**known.get("_recorded", {}), str(model): counts}
    elif kind == "session.shutdown" and isinstance(facts.get("modelMetrics"), dict):
        metrics = facts["modelMetrics"].items()
        sums = {model: _model_counts(one.get("usage")) for model, one in metrics if isinstance(one, dict)}
        before = [known.get(name, {}) for name in ("_sums", "_recorded")]
        rest = {
            model: _without(counts, [one.get(model, _NO_TOKENS) for one in before]) for model, counts in sums.items()
        }
        found |= {"_sums": sums, "_recorded": {}, "_rest": rest}
    return found


def _model_counts(used: object) -> "list[int]":
    """Return the numbers of tokens under _COUNTED, 0 for missing ones."""
    from tailhook.hosts.reading import read_count

    return [read_count(used, name) or 0 for name in _COUNTED] if isinstance(used, dict) else [*_NO_TOKENS]


def _without(counts: "list[int]", others: "list[list[int]]") -> "list[int]":
    """Return numbers minus the ones already counted in others."""
    return [max(0, count - sum(known)) for count, *known in zip(counts, *others, strict=True)]


def _run_of(context: "Mapping[str, Any]") -> str:
    """Return the id of a record's run: of its first event, otherwise of the session."""
    return f"{context.get('run') or context.get('sessionId')}"


def nested_records(record: "Mapping[str, Any]", context: "Mapping[str, Any]") -> "list[Mapping[str, Any]]":
    """Return the run's tokens in a session.shutdown, as a session.usage_record for each model.

    `modelMetrics` has the sums. Earlier runs and session.usage_records may have a part of them, or all.
    """
    if record.get("type") != "session.shutdown":
        return []
    found: list[Mapping[str, Any]] = []
    rest = {model: counts for model, counts in context.get("_rest", {}).items() if any(counts)}
    for model, counts in rest.items():
        usage = {"model": model, **dict(zip(_COUNTED, counts, strict=True))}
        own = {"id": f"{record.get('id')} {model}", "data": {"usage": usage}}
        found.append({**record, "type": "session.usage_record", **own})
    return found


def translate_record(record: "Mapping[str, Any]", context: "Mapping[str, Any]") -> "dict[str, Any]":
    """Translate a record of an events file. The tokens of a response are a message of the assistant without words.

    Versions before session.usage_record write the output of each message, and the sums of a run at its end. The output
    of a message counts only if the run has neither sums nor session.usage_records.
    """
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
        output = _model_counts(event)[1]
        if output:
            message["model"] = message["model"] or context.get("model")
            own |= {"usageId": record.get("id"), "usageCopies": f"-{_run_of(context)}"}
            own["partUsage"] = {"output_tokens": output}
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
        return {**own, **_usage_message(record, used, context)}
    if kind == "session.compaction_complete":
        return {**own, "type": "system", "subtype": "compact_boundary"}
    return {**own, "type": kind, "isApiErrorMessage": kind == "session.error"}


def _usage_message(
    record: "Mapping[str, Any]", used: "Mapping[str, Any]", context: "Mapping[str, Any]"
) -> "dict[str, Any]":
    """Return a message of the assistant with the tokens of a session.usage_record.

    `accounting` has its original session and its number there, even in a copy of the session.
    """
    from tailhook.hosts.reading import new_input, read_count

    cached, written = read_count(used, "cacheReadTokens"), read_count(used, "cacheWriteTokens")
    usage = {
        "input_tokens": new_input(read_count(used, "inputTokens"), cached, written),
        "output_tokens": read_count(used, "outputTokens"),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }
    message: dict[str, Any] = {"role": "assistant", "model": used.get("model"), "content": []}
    if any(usage.values()):
        message["usage"] = usage
    found = {"type": "assistant", "message": message, "usageCopies": f"={_run_of(context)}"}
    numbers = used.get("accounting")
    if not isinstance(numbers, dict) or not isinstance(numbers.get("sequence"), int):
        return {**found, "usageId": record.get("id")}
    session = numbers.get("sourceSessionId") or context.get("sessionId")
    named = {"sessionId": session} if isinstance(session, str) else {}
    return {**found, **named, "usageId": f"{session} {numbers['sequence']}"}
