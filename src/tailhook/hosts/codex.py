"""Codex CLI (0.169.0). It has Claude Code's names, and rejects answers with unknown fields."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hosts.protocols import HooksFileFields, HostMessage

NAME = "codex"
TITLE = "Codex CLI"
EVENTS: "Mapping[str, str]" = {}
FIELDS: "Mapping[str, str]" = {}
READS_EXIT_2 = True
WRITES_LATE = False
LISTS_ANSWERS = False
RECORD_MARK = b"assistant"
OTHER_MARKS = b'"user"', b'_call"'
# Beginnings of texts that Codex does not treat as a person's message: it writes no `user_message` event for them
# (codex-rs/core/src/context/contextual_user_message.rs, 0.169.0; the warnings are of older versions). The events would
# show the same, but they follow their message, and a rollout in the paginated history mode has none.
HOST_WRITTEN = (
    b"<environment_context",
    b"<user_instructions",
    b"<hook_prompt",
    b"<turn_aborted",
    b"<subagent_notification",
    b"<user_shell_command",
    b"<skill>",
    b"<recommended_plugins",
    b"<user_action",
    b"<codex_internal_context",
    b"<goal_context>",
    b"<external_",
    b"# agents.md instructions",
    b"warning: the maximum number of unified exec processes",
    b"warning: apply_patch was requested via ",
    b"warning: your account was flagged for potentially",
)
CONTEXT_MARKS = (
    *(b'"turn_context"', b'"session_meta"'),
    *(b'"token_', b'"latest_token_usage_record"'),  # token_count, token_usage_record and `compacted`
    b"<environment_context>",  # in releases without turn_context
)
RESTATES_MESSAGES = False
NESTED_MARK = b'"latest_token_usage_record"'
_COUNT_NAMES = (
    *("input_tokens", "cached_input_tokens", "cache_write_input_tokens"),
    *("output_tokens", "reasoning_output_tokens", "total_tokens"),
)
_BARE_ITEMS = (
    *("message", "reasoning", "local_shell_call", "function_call", "function_call_output"),
    *("custom_tool_call", "custom_tool_call_output", "web_search_call", "other"),
)
_MAX_UNPAIRED = 8  # token_usage_records still without their token_count: Codex writes it next
TOKEN_TYPES = ("event_msg", "token_usage_record")
THINKING_TYPES = ("reasoning", "agent_reasoning", "agent_reasoning_raw_content")
RECORD_TYPES = (
    *("assistant", "user", "system", "session_meta", "turn_context", "response_item", "event_msg"),
    *("token_usage_record", "state"),
)
TOKENS_ELSEWHERE = (
    *("session_meta", "turn_context", "response_item", "compact_boundary", "token_count", "token_usage_record"),
    *("thread_goal_updated", "item_completed", "mcp_tool_call_end"),
    *("dynamic_tool_call_request", "dynamic_tool_call_response", "user"),
)
SUB_AGENT_FILES: "tuple[str, ...]" = ()
TRANSCRIPT_FOLDERS: "tuple[str, ...]" = ("sessions", "archived_sessions")  # `codex archive` moves them
FORMER_FOLDERS: "tuple[str, ...]" = ()
SHELL_VARIABLE = SESSION_VARIABLE = "CODEX_SESSION_ID"  # also of a sub-agent; CODEX_THREAD_ID is the sub-agent's own
RESUME_COMMAND = "codex resume"
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
    "prompt_event": "UserPromptSubmit",
    "reported_events": {
        "UserPromptSubmit": None,
        "PreToolUse": "*",
        "PostToolUse": "*",
        "PermissionRequest": "*",
        "PostCompact": "manual",
        "SubagentStart": None,
        "SubagentStop": None,
        "Interrupt": None,
        "SessionEnd": None,
    },
    "hook_members": {"timeout": 10},  # seconds
    "event_members": {
        "Stop": {"statusMessage": "tailhook: may the agent stop?"},
        "SessionStart": {"statusMessage": "tailhook: checking for a running loop"},
        "Interrupt": {"timeout": 3},  # since 0.150.0, like that of SessionEnd; older versions ignore the event
        "SessionEnd": {"timeout": 3},  # Codex shortens a longer one, with a warning
    },
    "toml_file": "config.toml",
    "toml_requirements": "/etc/codex/requirements.toml",
    "feature_names": ("hooks", "codex_hooks"),
    "managed_only": "allow_managed_hooks_only",
    "trust_option": "--dangerously-bypass-hook-trust",
    "known_members": ("hooks", "description"),
    "setting_types": {"description": "a string"},
    "hook_types": {"command": {"command": "a string"}, "mcp_tool": {}, "prompt": {}, "agent": {}},
    "hook_member_types": {"timeout": "a whole number", "async": "true or false", "statusMessage": "a string"},
    "guard_events": (
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact"),
        *("PostCompact", "SubagentStart", "SubagentStop", "Stop", "Interrupt", "SessionEnd"),
    ),
    "has_defaults": True,
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
    """Return the answer; a reason with a tag gets a line about the tag's brackets.

    In the reason of a block, the agent reads &lt; and &gt; (0.169.0). In additionalContext, it reads < and >.
    """
    if "reason" not in fields:
        return fields
    from tailhook.hosts.reading import explain_brackets

    return {**fields, "reason": explain_brackets(fields["reason"])}


def begins_transcript(record: "Mapping[str, Any]") -> bool:
    """Return whether it is the first record of a rollout file: {"type": "session_meta", "payload": {...}}.

    Before 0.34 it is {"id", "timestamp", "instructions"}, with "git" in some releases.
    """
    if "type" not in record and "instructions" in record:
        return "id" in record and "timestamp" in record
    return record.get("type") == "session_meta" and isinstance(record.get("payload"), dict)


def _put_in_envelope(record: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return a record of a release before 0.34 (September 2025) in today's form; any other as it is.

    These releases write {"id", "timestamp", "instructions"}, items without the envelope, and {"record_type": "state"}.
    Read from files that 0.8.0, 0.20.0 and 0.29.0 wrote.
    """
    if "payload" in record:
        return record
    if record.get("record_type") == "state":
        return {"type": "state"}
    if begins_transcript(record):
        return {"type": "session_meta", "timestamp": record["timestamp"], "payload": record}
    return {"type": "response_item", "payload": record} if record.get("type") in _BARE_ITEMS else record


def read_record(record: "Mapping[str, Any]") -> "HostMessage | None":
    """Read a record of a rollout file.

    {"type": "response_item", "payload": ITEM}. ITEM is {"type": "message", "role": ROLE, "content": [BLOCK, ...]},
    {"type": "function_call", "name": TOOL, ...}, the same with "custom_tool_call", or {"type": "local_shell_call"}.
    """
    item = record.get("payload")
    if record.get("type") != "response_item" or not isinstance(item, dict):
        return None
    kind, role = item.get("type"), item.get("role")
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        return True, "", [item.get("name") if kind != "local_shell_call" else "local_shell"]
    is_said = kind == "message" and role in ("assistant", "user")
    return (role == "assistant", item.get("content"), []) if is_said else None


def read_context(record: "Mapping[str, Any]", known: "Mapping[str, Any] | None") -> "dict[str, Any]":
    """Read a session_meta (begins a rollout file), a turn_context (begins a turn), or a count of tokens.

    A fork or a sub-agent may repeat its parent's lines, in some versions the parent's session_meta too. Before 0.34 the
    folder is only in a text for the agent.
    """
    bare, record = record, _put_in_envelope(record)
    facts, kind = record.get("payload"), record.get("type")
    if not isinstance(facts, dict):
        return {}
    if facts is bare and kind == "response_item":
        return {"cwd": _folder_in(facts)}
    if kind == "turn_context":
        return {"cwd": facts.get("cwd"), "model": facts.get("model"), "turn": facts.get("turn_id") or ""}
    if kind == "session_meta":
        return _read_session(facts, known)
    if known is None:
        return {}
    if kind == "token_usage_record":
        return _note_response(facts, known)
    if kind == "compacted":
        # A reviewer may begin with another one's checkpoint, and with the token_count of the other's last response.
        latest = facts.get("latest_token_usage_record")
        if not isinstance(latest, dict) or latest.get("thread_id") in (None, known.get("thread")):
            return {}
        return {"unpaired": _note_response(latest, known).get("unpaired", "")}
    is_count = kind == "event_msg" and facts.get("type") == "token_count"
    return _note_count(facts.get("info"), known) if is_count else {}


def _folder_in(item: "Mapping[str, Any]") -> "str | None":
    """Return the folder that an <environment_context> names: {"content": [{"text": TEXT}]}."""
    from tailhook.hosts.reading import join_texts

    words = join_texts(item.get("content"))
    is_context = item.get("role") == "user" and words.startswith("<environment_context>")
    return words.partition("<cwd>")[2].partition("</cwd>")[0] or None if is_context else None


def _read_session(facts: "Mapping[str, Any]", known: "Mapping[str, Any] | None") -> "dict[str, Any]":
    """Return the values that a session_meta sets. A later session_meta belongs to a thread with repeated lines."""
    source = facts.get("source")
    is_sub_agent = "yes" if isinstance(source, dict) and source.get("subagent") else ""
    for name in ("subagent", "thread_spawn"):
        source = source.get(name) if isinstance(source, dict) else None
    spawned = source.get("parent_thread_id") if isinstance(source, dict) else None
    thread = facts.get("id") or facts.get("session_id")
    parents = [facts.get("forked_from_id"), facts.get("parent_thread_id"), spawned]
    if known is not None:
        parents = [*known.get("parents", "").split(), thread, *parents]
        thread = known.get("thread")
    threads = {parent: None for parent in parents if isinstance(parent, str) and parent and parent != thread}
    base = facts.get("history_base")
    base = base.get("thread_id") if isinstance(base, dict) else None
    found = {"parents": " ".join(threads), **({} if known is not None else {"base": base})}
    if known is not None:
        return found
    git, session = facts.get("git"), facts.get("session_id")
    return {
        **found,
        "sessionId": session if isinstance(session, str) and session else facts.get("id"),
        "thread": thread,
        "is_sub_agent": is_sub_agent,
        "cwd": facts.get("cwd"),
        "version": facts.get("cli_version"),
        "gitBranch": git.get("branch") if isinstance(git, dict) else None,
    }


def _note_response(item: "Mapping[str, Any]", known: "Mapping[str, Any]") -> "dict[str, Any]":
    """Return the context after a token_usage_record: the running totals, and that it has no token_count yet."""
    counts = _usage_counts(item.get("usage"))
    if not counts:
        return {}
    totals = _added(known.get("totals"), counts)
    unpaired = [*known.get("unpaired", "").split("\n"), " ".join(counts)][-_MAX_UNPAIRED:]
    return {"totals": " ".join(totals), "unpaired": "\n".join(unpaired)}


def _note_count(info: object, known: "Mapping[str, Any]") -> "dict[str, Any]":
    """Return the context after a token_count: the running totals, and whether it is a response of its own.

    It is one if the totals have changed and it has tokens other than a sum, unless an earlier token_usage_record has
    the same tokens. The host repeats the last token_count when it resumes a session or learns of other limits. After a
    compaction it writes one with only a sum, an estimate. A token_usage_record may also have the growth of the totals,
    if the token_count has fewer tokens.
    """
    info = info if isinstance(info, dict) else {}
    last, totals = _usage_counts(info.get("last_token_usage")), _usage_counts(info.get("total_token_usage"))
    if not last and not totals:
        return {"is_response": ""}
    before = known.get("counted")
    now = " ".join(totals)
    found = {"is_response": "", "is_first": "" if before else "yes"}
    if totals:
        found |= {"totals": now, "counted": now}
    if (totals and now == before) or not any(count != "0" for count in last[:-1]):
        return found
    unpaired = known.get("unpaired", "").split("\n")
    for usage in unpaired:
        if usage and (usage == " ".join(last) or _added(before, usage.split(" ")) == totals):
            unpaired.remove(usage)
            return {**found, "unpaired": "\n".join(unpaired)}
    return {**found, "is_response": "yes"}


def _usage_counts(used: object) -> "list[str]":
    """Return the numbers of tokens under _COUNT_NAMES, 0 for missing ones; [] if there is no such object."""
    from tailhook.hosts.reading import read_count

    return [str(read_count(used, name) or 0) for name in _COUNT_NAMES] if isinstance(used, dict) and used else []


def _has_counts(used: object) -> bool:
    """Return whether it is a usage, or the sign for a missing one."""
    return not used or (isinstance(used, dict) and any(name in used for name in _COUNT_NAMES))


def _added(totals: "str | None", counts: "list[str]") -> "list[str]":
    """Return running totals with the tokens of one more response.  totals: None for those of a new thread."""
    before = (totals or " ".join("0" * len(_COUNT_NAMES))).split(" ")
    return [str(int(one) + int(more)) for one, more in zip(before, counts, strict=True)]


def nested_records(
    record: "Mapping[str, Any]",
    context: "Mapping[str, Any]",  # noqa: ARG001 - other hosts need it
) -> "list[Mapping[str, Any]]":
    """Return the token_usage_record in a `compacted` record: the last one before it. It may be missing."""
    item = record.get("payload")
    latest = item.get("latest_token_usage_record") if isinstance(item, dict) else None
    return [{**record, "type": "token_usage_record", "payload": latest}] if isinstance(latest, dict) else []


def translate_record(record: "Mapping[str, Any]", context: "Mapping[str, Any]") -> "dict[str, Any]":
    """Translate a record of a rollout file. The tokens of a response are a message of the assistant without words.

    They are in a token_usage_record: versions since about 0.151 write it before the token_count. Older versions, and
    files begun by them, have only a token_count. Records with or without an ordinal do not differ: that depends on the
    history mode of the session's beginning (codex-rs/rollout/src/ordinal.rs). Files of releases before 0.34 have no
    tokens, and their records have no time.
    """
    record = _put_in_envelope(record)
    item = record.get("payload")
    item = item if isinstance(item, dict) else {}
    kind = item.get("type")
    said = read_record(record)
    if said is not None and kind == "message":
        # A person does not type a sub-agent's prompt.
        origin = {"origin": {"kind": "agent"}} if context.get("is_sub_agent") and item["role"] == "user" else {}
        message = {"id": item.get("id"), "role": item["role"], "content": said[1]}
        return {"type": item["role"], "message": message, **origin}
    if said is not None:
        use = {"type": "tool_use", "id": item.get("call_id"), "name": said[2][0], "input": _tool_input(item)}
        return {"type": "assistant", "message": {"id": item.get("id"), "role": "assistant", "content": [use]}}
    if record.get("type") == "response_item" and kind in ("function_call_output", "custom_tool_call_output"):
        result = {"type": "tool_result", "tool_use_id": item.get("call_id"), **_tool_output(item.get("output"))}
        return {"type": "user", "message": {"role": "user", "content": [result]}}
    if record.get("type") == "token_usage_record":
        return _tokens(item.get("usage"), context, item)
    info = item.get("info")
    if record.get("type") == "event_msg" and kind == "token_count" and isinstance(info, dict) and info:
        if context.get("is_response"):
            return _tokens(info.get("last_token_usage"), context)
        if not any(map(_has_counts, info.values())):
            return _tokens(info, context)
    if record.get("type") == "compacted":
        return {"type": "system", "subtype": "compact_boundary"}
    parent = {"forkedFrom": {"sessionId": item.get("forked_from_id")}} if record.get("type") == "session_meta" else {}
    is_error = kind in ("error", "stream_error")
    return {"type": record.get("type"), "subtype": kind, "isApiErrorMessage": is_error, **parent}


def _tool_input(item: "Mapping[str, Any]") -> object:
    """Return a call's arguments (a JSON text), its input (any text), or a local shell's action."""
    from tailhook._core import parse_json

    if item.get("type") != "function_call":
        return item.get("input", item.get("action"))
    try:
        return parse_json(item.get("arguments", ""))
    except (TypeError, ValueError):
        return item.get("arguments")


def _tool_output(output: object) -> "dict[str, Any]":
    """Return the content of a tool's result, and whether the tool failed. Only some outputs show failures."""
    if isinstance(output, dict):
        return {"content": output.get("content"), "is_error": output.get("success") is False}
    if not isinstance(output, str):
        return {"content": output}
    return {"content": output, "is_error": _exit_code(output)[:1] not in ("", "0")}


def _exit_code(output: str) -> str:
    """Return the rest of a command's output from its exit code on; "" if it shows none.

    exec_command writes the line "Process exited with code 1" before the line "Output:". shell and apply_patch write
    "Exit code: 1" and "Wall time: 0.1 seconds" as the first lines, or for some models a JSON text,
    {"output":TEXT,"metadata":{"exit_code":1,"duration_seconds":0.1}} (codex-rs/core/src/tools/mod.rs).
    """
    if output.startswith('{"output":'):
        return output[-100:].partition('"metadata":{"exit_code":')[2]
    head = f"\n{output[:400]}".partition("\nOutput:")[0]
    if head.startswith("\nExit code: ") and "\nWall time: " in head:
        return head[12:]
    return head.partition("\nProcess exited with code ")[2]


def _tokens(used: object, context: "Mapping[str, Any]", item: "Mapping[str, Any] | None" = None) -> "dict[str, Any]":
    """Return a message of the assistant with a response's tokens. Codex counts the cached input as input, too.

    The thread, the running totals and the turn identify the response. A line that a fork or a sub-agent repeats has the
    same totals and turn, but another thread and the time of the repetition.

    item: of a token_usage_record: it names the thread, and a repeated one keeps all its ids.
    """
    from tailhook.hosts.reading import new_input, read_count

    if not isinstance(used, dict) or not any(count != "0" for count in _usage_counts(used)):
        return {"type": "assistant", "subtype": "token_count" if _has_counts(used) else "tokens of an unknown form"}
    cached, written = read_count(used, "cached_input_tokens"), read_count(used, "cache_write_input_tokens")
    usage = {
        "input_tokens": new_input(read_count(used, "input_tokens"), cached, written),
        "output_tokens": read_count(used, "output_tokens"),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }
    response = None if item is None else item.get("response_id")
    message: dict[str, Any] = {"id": response, "role": "assistant", "content": [], "usage": usage}
    totals = context.get("totals", "")
    if item is None and not totals:
        return {"type": "assistant", "message": message}
    thread, turn = context.get("thread"), context.get("turn", "")
    parents = context.get("parents", "").split()
    own = f"{thread} {totals} {turn}"
    if item is not None:
        thread, turn = item.get("thread_id") or thread, item.get("turn_id") or turn
        running = _usage_counts(item.get("thread_token_usage")) or ([] if response else [totals])
        own = f"{thread} {response} {turn} {' '.join(running)}"
        parents = []
    names = []
    for one in dict.fromkeys((thread, context.get("thread"))):  # a copy is known by both threads, too
        names += [f"={one}", f"={one} {totals}", f"={one} {totals} {turn}"]
    if item is None and context.get("base") and context.get("is_first"):  # it may repeat the last one of the base
        names, parents, turn = [f"={thread}", f"~{thread} {totals}"], [context["base"], *parents, str(thread)], ""
    copies = [f"{parent} {totals} {turn}" if turn else f"{parent} {totals}" for parent in parents]
    return {"type": "assistant", "message": message, "usageId": own, "usageCopies": "\n".join(names + copies)}
