"""The records of other hosts, translated to Claude Code's by docs/scan-rows.md, "Other hosts".

The tokens of Codex are left out: host_usage.py counts them.
"""

from __future__ import annotations

import json
import re
from typing import Any

from support.oracles.scan_lines import refuse
from support.oracles.scan_model import Head
from support.oracles.scan_values import mapping, sequence, short_string, tokens, whole_number


def recognize(record: dict[str, Any]) -> tuple[str, dict[str, str | None]]:
    """Return the host that begins a transcript with this record, and the session's values in it."""
    payload, data = mapping(record.get("payload")), mapping(record.get("data"))
    if record.get("type") == "session_meta" and isinstance(record.get("payload"), dict):
        git = mapping(payload.get("git"))
        return "codex", {
            "session_id": short_string(payload.get("session_id")) or short_string(payload.get("id")),
            "project": short_string(payload.get("cwd")),
            "git_branch": short_string(git.get("branch")),
            "host_version": short_string(payload.get("cli_version")),
            "sub_agent": "yes" if mapping(payload.get("source")).get("subagent") else None,
        }
    if "sessionId" in record and "projectHash" in record:
        return "gemini", {"session_id": short_string(record["sessionId"])}
    if record.get("type") == "session.start":
        context = mapping(data.get("context"))
        return "copilot", {
            "session_id": short_string(data.get("sessionId")),
            "project": short_string(context.get("cwd")),
            "git_branch": short_string(context.get("branch")),
            "host_version": short_string(data.get("copilotVersion")),
        }
    has_parts = isinstance(mapping(record.get("message")).get("parts"), list)
    if "uuid" in record and "sessionId" in record and (has_parts or "systemPayload" in record):
        return "qwen", {
            "session_id": short_string(record["sessionId"]),
            "project": short_string(record.get("cwd")),
            "git_branch": short_string(record.get("gitBranch")),
            "host_version": short_string(record.get("version")),
        }
    return "claude-code", {}


def changes(host: str, record: dict[str, Any]) -> dict[str, str]:
    """Return the values that hold from a record on; only the first record names the session."""
    found: dict[str, Any] = {}
    if host == "codex" and record.get("type") == "turn_context":
        facts = mapping(record.get("payload"))
        found = {"project": facts.get("cwd"), "model": facts.get("model")}
    elif host == "copilot" and str(record.get("type")).startswith("session."):
        data = mapping(record.get("data"))
        place = data if record["type"] == "session.context_changed" else mapping(data.get("context"))
        found = {
            "project": place.get("cwd"),
            "git_branch": place.get("branch"),
            "host_version": data.get("copilotVersion"),
        }
    return {name: value for name, value in found.items() if isinstance(value, str)}


def is_response_item(record: dict[str, Any], *kinds: str) -> bool:
    return record.get("type") == "response_item" and mapping(record.get("payload")).get("type") in kinds


CODEX_FAILURES = (  # how the output of a failed command begins
    r"(?:(?!Output:)[^\n]*\n)*?Process exited with code [^0]",
    r"Exit code: [^0][^\n]*\nWall time: ",
    r'\{"output":.*"metadata":\{"exit_code":[^0]',
)


def translate_codex(record: dict[str, Any], head: Head) -> dict[str, Any]:
    """Translate a record of a rollout: {"timestamp", "type", "payload"}."""
    kind, payload = record.get("type"), mapping(record.get("payload"))
    model = head.others.get("model")
    if is_response_item(record, "message") and payload.get("role") in ("user", "assistant"):
        message = {"id": payload.get("id"), "role": payload["role"], "content": texts_of(payload.get("content"))}
        return {
            "type": payload["role"],
            "message": message | ({"model": model} if payload["role"] == "assistant" else {}),
        }
    if is_response_item(record, "function_call", "custom_tool_call", "local_shell_call"):
        use = {"type": "tool_use", "id": payload.get("call_id"), "name": payload.get("name")}
        if payload["type"] == "local_shell_call":
            use |= {"name": "local_shell", "input": payload.get("action")}
        elif payload["type"] == "custom_tool_call":
            use["input"] = payload.get("input")
        else:
            use["input"] = payload.get("arguments")
            if isinstance(use["input"], str) and is_json(use["input"]):
                use["input"] = json.loads(use["input"], parse_int=whole_number)
        return answer(payload.get("id"), model, [use])
    if is_response_item(record, "function_call_output", "custom_tool_call_output"):
        output = payload.get("output")
        failed = mapping(output).get("success") is False
        if isinstance(output, str):
            failed = any(re.match(form, output, re.DOTALL) for form in CODEX_FAILURES)
        return tool_result(payload.get("call_id"), failed)
    if kind == "token_usage_record":
        return answer(payload.get("response_id"), model, [])
    if kind == "compacted":
        return {"type": "system", "subtype": "compact_boundary"}
    found = {"type": kind, "subtype": payload.get("type")}
    if payload.get("type") in ("error", "stream_error"):
        found["isApiErrorMessage"] = True
    if kind == "session_meta":
        found["forkedFrom"] = {"sessionId": payload.get("forked_from_id")}
    return found


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=refuse, parse_int=whole_number)
    except (ValueError, RecursionError):
        return False
    return True


def texts_of(content: Any) -> Any:
    """Return a message's content. Its blocks with a text become text blocks, whatever the host calls them."""
    if not isinstance(content, list):
        return content
    return [
        {"type": "text", "text": block["text"]} if isinstance(mapping(block).get("text"), str) else block
        for block in content
    ]


def answer(message_id: Any, model: Any, blocks: Any, usage: Any = None) -> dict[str, Any]:
    """Return a record of the assistant."""
    message = {"id": message_id, "role": "assistant", "model": model, "content": blocks}
    return {"type": "assistant", "message": message | ({} if usage is None else {"usage": usage})}


def tool_result(use_id: Any, failed: bool) -> dict[str, Any]:
    """Return a record with a tool's result."""
    block = {"type": "tool_result", "tool_use_id": use_id, "is_error": failed}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def usage_of(whole: Any, output: Any, read: Any, written: Any = None, more: Any = None) -> dict[str, Any]:
    """Return tokens by Claude Code's names. The input of these hosts includes the cached tokens."""
    whole, read, written = tokens(whole), tokens(read), tokens(written)
    return {
        "input_tokens": None if whole is None else max(0, whole - (read or 0) - (written or 0)) + (tokens(more) or 0),
        "output_tokens": tokens(output),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }


def translate_gemini(record: dict[str, Any], head: Head) -> dict[str, Any]:
    """Translate a record of a chat: {"id", "timestamp", "type", "content", "toolCalls", "tokens"}."""
    content = texts_of(record.get("content"))
    if record.get("type") == "user":
        return {"type": "user", "message": {"role": "user", "content": content}}
    if record.get("type") != "gemini":
        return {"type": record.get("type")}
    blocks = list(content) if isinstance(content, list) else [{"type": "text", "text": content}]
    for call in map(mapping, sequence(record.get("toolCalls"))):
        if not call:
            continue
        use = {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args")}
        blocks.append(use)
        if call.get("status") in ("success", "error", "cancelled"):
            result = {"type": "tool_result", "tool_use_id": call.get("id"), "timestamp": call.get("timestamp")}
            blocks.append({**result, "is_error": call["status"] != "success"})
    figures, usage = record.get("tokens"), None
    if isinstance(figures, dict):
        output, thoughts = tokens(figures.get("output")), tokens(figures.get("thoughts"))
        output = None if output is None else output + (thoughts or 0)
        usage = usage_of(figures.get("input"), output, figures.get("cached"), more=figures.get("tool"))
    return answer(record.get("id"), record.get("model"), blocks, usage)


def restated_messages(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a `$set` record of Gemini: the conversation as it is from there on."""
    messages = map(mapping, sequence(mapping(record.get("$set")).get("messages")))
    return [one for one in messages if isinstance(one.get("id"), str)]


def translate_copilot(record: dict[str, Any], head: Head) -> dict[str, Any]:
    """Translate a record of an events file: {"type", "data", "id", "parentId", "agentId", "timestamp"}."""
    kind, data, agent = record.get("type"), mapping(record.get("data")), record.get("agentId")
    own = {"parentUuid": record.get("parentId"), "agentId": agent, "isSidechain": isinstance(agent, str)}
    if kind == "user.message":
        hosts = data.get("isAutopilotContinuation") is True or isinstance(data.get("source"), str)
        message = {"role": "user", "content": texts_of(data.get("content"))}
        return {**own, "type": "user", "isMeta": hosts, "message": message}
    if kind == "assistant.message":
        blocks = [{"type": "text", "text": data.get("content")}]
        for call in sequence(data.get("toolRequests")):
            if isinstance(call, dict):
                use = {"type": "tool_use", "id": call.get("toolCallId"), "name": call.get("name")}
                blocks.append({**use, "input": call.get("arguments")})
        message_id = data["apiCallId"] if "apiCallId" in data else data.get("messageId")
        return {**own, "requestId": data.get("requestId"), **answer(message_id, data.get("model"), blocks)}
    if kind == "tool.execution_complete":
        return {**own, **tool_result(data.get("toolCallId"), data.get("success") is False)}
    used = data.get("usage")
    if kind == "session.usage_record" and isinstance(used, dict):
        names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        return {**own, **answer(None, used.get("model"), [], usage_of(*(used.get(name) for name in names)))}
    if kind == "session.compaction_complete":
        return {**own, "type": "system", "subtype": "compact_boundary"}
    return {**own, "type": kind, "isApiErrorMessage": kind == "session.error"}


def translate_qwen(record: dict[str, Any], head: Head) -> dict[str, Any]:
    """Translate a record of a chat: {"uuid", "sessionId", "type", "subtype", "message": {"parts"}, "systemPayload"}."""
    kind, subtype = record.get("type"), record.get("subtype")
    own = {name: record.get(name) for name in ("uuid", "parentUuid", "agentId", "forkedFrom")}
    own["isSidechain"] = record.get("isSidechain") is True
    event = mapping(record.get("systemPayload")).get("uiEvent")
    if kind == "system" and subtype == "ui_telemetry" and isinstance(event, dict):
        name = event.get("event.name")
        name = name.removeprefix("qwen-code.") if isinstance(name, str) else ""
        taken, given, cached, thoughts, total = (
            tokens(event.get(f"{one}_token_count"))
            for one in ("input", "output", "cached_content", "thoughts", "total")
        )
        if name != "api_response" or not any((taken, given, cached, thoughts, total)):
            return {**own, "type": kind, "subtype": name}
        if thoughts and total == (taken or 0) + (given or 0) + thoughts:
            given = (given or 0) + thoughts
        used = usage_of(taken, given, cached)
        return {**own, "subtype": name, **answer(event.get("response_id"), event.get("model"), [], used)}
    if kind == "system":
        return {**own, "type": kind, "subtype": "compact_boundary" if subtype == "chat_compression" else subtype}
    if kind not in ("user", "assistant", "tool_result"):
        return {**own, "type": kind, "subtype": subtype}
    blocks = []
    for part in map(mapping, sequence(mapping(record.get("message")).get("parts"))):
        call, result = part.get("functionCall"), part.get("functionResponse")
        if isinstance(call, dict):
            use = {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args")}
            blocks.append(use)
        elif isinstance(result, dict):
            failed = "error" in mapping(result.get("response"))
            if isinstance(record.get("toolCallResult"), dict):
                failed = record["toolCallResult"].get("status") != "success"
            blocks.append({"type": "tool_result", "tool_use_id": result.get("id"), "is_error": failed})
        elif not part.get("thought"):
            reminds = isinstance(part.get("text"), str) and part["text"].startswith("<system-reminder>")
            blocks += [] if reminds and kind != "assistant" else texts_of([part])
    if kind == "assistant":
        return {**own, **answer(None, record.get("model"), blocks)}
    hosts = kind == "user" and subtype is not None and subtype != "mid_turn_user_message"
    return {**own, "type": "user", "isMeta": hosts, "message": {"role": "user", "content": blocks}}


TRANSLATIONS = {
    "codex": translate_codex,
    "gemini": translate_gemini,
    "copilot": translate_copilot,
    "qwen": translate_qwen,
}
