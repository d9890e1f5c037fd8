"""Hosts with Claude Code's events, payloads and answers: a class with what they share, and a row for each.

A row has the members with other values, and their proof: the release, or "by its documents".
"""

from tailhook._core import get_text
from tailhook.hosts.reading import explain_brackets, join_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hosts.protocols import HooksFileFields, HostMessage

PAYLOAD = {
    "session_id": "doctor",
    "transcript_path": "{folder}/transcript.jsonl",
    "cwd": "{folder}",
    "hook_event_name": "{event}",
    "source": "compact",
    "stop_hook_active": False,
    "last_assistant_message": "At work.",
}


class ClaudeLikeHost:
    """A host with the names of Claude Code; its members are described in `tailhook.hosts.protocols.TranslatedHost`."""

    NAME: str
    TITLE: str
    HOOKS_FILE: "HooksFileFields"
    EVENTS: "Mapping[str, str]"
    FIELDS: "Mapping[str, str]"
    TOOLS: "Mapping[str, str]"  # Claude Code's names of the tools that ask a person
    READS_EXIT_2: bool = True
    WRITES_LATE: bool = False
    LISTS_ANSWERS: bool = False
    RECORD_MARK: bytes = b"assistant"
    OTHER_MARKS: "tuple[bytes, ...]" = (b'"user"',)
    HOST_WRITTEN: "tuple[bytes, ...]" = ()
    RECORD_TYPES: "tuple[str, ...]" = ()
    TOKENS_ELSEWHERE: "tuple[str, ...]" = ()
    SUB_AGENT_FILES: "tuple[str, ...]" = ()
    TRANSCRIPT_FOLDERS: "tuple[str, ...]" = ()
    FORMER_FOLDERS: "tuple[str, ...]" = ()
    SHELL_VARIABLE: str = ""
    SESSION_VARIABLE: str = ""
    RESUME_COMMAND: str = ""
    BLOCK_CAP: int = 0
    BLOCK_CAP_VARIABLE: str = ""
    BLOCK_CAP_COUNTS: str = ""

    def __init__(self, name: str, row: "Mapping[str, Any]") -> None:
        self.NAME = name
        self.EVENTS = self.FIELDS = self.TOOLS = {}
        vars(self).update(row)

    def add_fields(self, payload: "dict[str, Any]") -> None:
        """Give a tool its name in Claude Code."""
        tool = payload.get("tool_name")
        if isinstance(tool, str) and tool in self.TOOLS:
            payload["tool_name"] = self.TOOLS[tool]

    def answer(self, fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
        """Return the answer as it is."""
        return fields

    def read_record(self, record: "Mapping[str, Any]") -> "HostMessage | None":
        """Read a record of the transcript.

        {"type": "message", "message": {"role": ROLE, "content": [BLOCK, ...]}}; a block may be a tool's use.
        """
        message = record.get("message")
        role = message.get("role") if isinstance(message, dict) and record.get("type") == "message" else None
        content = message.get("content") if isinstance(message, dict) else None
        if role not in ("assistant", "user"):
            return None
        blocks = content if isinstance(content, list) else ()
        uses = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
        return role == "assistant", content, [use.get("name") for use in uses]


class QwenCode(ClaudeLikeHost):
    """Qwen Code: it sends prompts that no person wrote, does not name the kind of a task, and has Gemini's messages.

    The library reads its transcripts: the further members are those of `tailhook.hosts.protocols.RecordedHost`.
    """

    CONTEXT_MARKS: "tuple[bytes, ...]" = ()
    RESTATES_MESSAGES: bool = False
    NESTED_MARK: bytes = b""
    TOKEN_TYPES: "tuple[str, ...]" = ("system",)
    THINKING_TYPES: "tuple[str, ...]" = ()

    def add_fields(self, payload: "dict[str, Any]") -> None:
        """Add the author of a prompt, and the kind of each background task.

        Results of tools and the reason of a block are prompts, too, but without `submitted_prompt`. All background
        tasks are agents: its background shells are in another list, which it does not send.
        """
        super().add_fields(payload)
        if payload["hook_event_name"] == "UserPromptSubmit":
            payload.setdefault("source", "user" if get_text(payload, "submitted_prompt") else "system")
        tasks = payload.get("background_tasks")
        if isinstance(tasks, list):
            payload["background_tasks"] = [
                {"type": "subagent", **task} if isinstance(task, dict) else task for task in tasks
            ]

    def answer(self, fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
        """Return the answer; a text for the agent with a tag gets a line about the tag's brackets.

        In additionalContext the agent reads &lt; and &gt; (0.24.4). In the reason of a block, it reads < and >.
        """
        given = fields.get("hookSpecificOutput")
        if given is None:
            return fields
        texts = {"additionalContext": explain_brackets(given["additionalContext"])}
        return {**fields, "hookSpecificOutput": {**given, **texts}}

    def read_record(self, record: "Mapping[str, Any]") -> "HostMessage | None":
        """Read a record of the transcript.

        {"type": ROLE, "message": {"parts": [PART, ...]}}. PART is {"text": TEXT}, the same with "thought": true, or
        {"functionCall": {"name": TOOL}}.
        """
        kind, message = record.get("type"), record.get("message")
        parts = message.get("parts") if isinstance(message, dict) else None
        if kind not in ("assistant", "user") or not isinstance(parts, list):
            return None
        said = [part for part in parts if isinstance(part, dict) and not part.get("thought")]
        calls = [part.get("functionCall") for part in said]
        return kind == "assistant", said, [call.get("name") for call in calls if isinstance(call, dict)]

    def begins_transcript(self, record: "Mapping[str, Any]") -> bool:
        """Return whether it is a record with an id, a session, and a message of parts or a `systemPayload`."""
        message = record.get("message")
        has_parts = isinstance(message, dict) and isinstance(message.get("parts"), list)
        return "uuid" in record and "sessionId" in record and (has_parts or "systemPayload" in record)

    def read_context(
        self,
        record: "Mapping[str, Any]",
        known: "Mapping[str, Any] | None",  # noqa: ARG002 - Codex needs it
    ) -> "dict[str, Any]":
        """Read the first record."""
        return {name: record.get(name) for name in ("sessionId", "cwd", "gitBranch", "version")}

    def nested_records(
        self,
        record: "Mapping[str, Any]",  # noqa: ARG002 - other hosts need both
        context: "Mapping[str, Any]",  # noqa: ARG002
    ) -> "list[Mapping[str, Any]]":
        """Return nothing: a line is one record."""
        return []

    def translate_record(
        self,
        record: "Mapping[str, Any]",
        context: "Mapping[str, Any]",  # noqa: ARG002 - other hosts need it
    ) -> "dict[str, Any]":
        """Translate a record of a chat. The tokens of a response are a message of the assistant without words.

        {"type": "user", "assistant", "tool_result" or "system", "message": {"parts": [PART, ...]}}. The tokens are in
        a record "ui_telemetry": Qwen Code computes its own figures from them, and a sub-agent's are in its session's
        transcript. The host's own messages have a subtype, except for what a person typed while the agent worked.
        """
        own = {
            "uuid": record.get("uuid"),
            "parentUuid": record.get("parentUuid"),
            "agentId": record.get("agentId"),
            "isSidechain": record.get("isSidechain") is True,
            "forkedFrom": record.get("forkedFrom"),
        }
        kind, subtype, payload = record.get("type"), record.get("subtype"), record.get("systemPayload")
        if kind == "system":
            event = payload.get("uiEvent") if isinstance(payload, dict) else None
            if subtype == "ui_telemetry" and isinstance(event, dict):
                return {**own, **_translate_event(record, event)}
            return {**own, "type": kind, "subtype": "compact_boundary" if subtype == "chat_compression" else subtype}
        message = record.get("message")
        parts = message.get("parts") if isinstance(message, dict) else None
        blocks = [_translate_part(part, record) for part in parts] if isinstance(parts, list) else []
        if kind == "assistant":
            return {**own, "type": kind, "message": {"role": kind, "model": record.get("model"), "content": blocks}}
        if kind not in ("user", "tool_result"):
            return {**own, "type": kind, "subtype": subtype}
        is_hosts = kind == "user" and subtype not in (None, "mid_turn_user_message")
        said = [block for block in blocks if not get_text(block, "text").startswith("<system-reminder>")]
        return {**own, "type": "user", "isMeta": is_hosts, "message": {"role": "user", "content": said}}


def _translate_part(part: object, record: "Mapping[str, Any]") -> "dict[str, Any]":
    """Return a part of a message as a block of Claude Code."""
    if not isinstance(part, dict):
        return {}
    call, result = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, dict):
        return {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args")}
    if isinstance(result, dict):
        given, about = result.get("response"), record.get("toolCallResult")
        given = given if isinstance(given, dict) else {}
        failed = "error" in given if not isinstance(about, dict) else about.get("status") != "success"
        content = given.get("error", given.get("output"))
        return {"type": "tool_result", "tool_use_id": result.get("id"), "is_error": failed, "content": content}
    return {"type": "thinking", "thinking": part.get("text")} if part.get("thought") else part


def _translate_event(record: "Mapping[str, Any]", event: "dict[str, Any]") -> "dict[str, Any]":
    """Return a message with the tokens of an answered request, or a system record for any other event.

    The input has the cached tokens, unless it is 0. The thoughts are apart if the total is the sum with them: providers
    differ. A branch of a session repeats its records with their ids, and names the session before.
    """
    from tailhook.hosts.reading import new_input, read_count

    name = get_text(event, "event.name").removeprefix("qwen-code.")
    names = "input", "output", "cached_content", "thoughts", "total"
    counts = [read_count(event, f"{one}_token_count") for one in names]
    if name != "api_response" or not any(counts):
        return {"type": "system", "subtype": name}
    taken, given, cached, thoughts, total = counts
    if thoughts and total == (taken or 0) + (given or 0) + thoughts:
        given = (given or 0) + thoughts
    usage = {
        "input_tokens": new_input(taken, cached),
        "output_tokens": given,
        "cache_read_input_tokens": cached,
    }
    message: dict[str, Any] = {
        "id": event.get("response_id"),
        "role": "assistant",
        "model": event.get("model"),
        "content": [],
        "usage": usage,
    }
    session, uuid, source = record.get("sessionId"), record.get("uuid"), record.get("forkedFrom")
    copies = [f"={session}", f"={session} {uuid}"]
    if isinstance(source, dict):
        copies.append(f"{source.get('sessionId')} {source.get('messageUuid')}")
    named = {"usageId": f"{session} {uuid}", "usageCopies": "\n".join(copies)} if uuid else {}
    return {"type": "assistant", "subtype": name, "message": message, **named}


class FactoryDroid(ClaudeLikeHost):
    """Factory Droid: its notification about a question belongs to the tool that asks."""

    def add_fields(self, payload: "dict[str, Any]") -> None:
        """Make a question of a tool a question about it: the tool's end ends the wait."""
        super().add_fields(payload)
        if payload.get("notification_type") == "elicitation_dialog":
            payload["notification_type"] = "permission_prompt"


class KimiCode(ClaudeLikeHost):
    """Kimi Code: only a permission names its agent, a prompt is a list of blocks, and an error is an object."""

    def add_fields(self, payload: "dict[str, Any]") -> None:
        """Add a prompt and an error as texts, and a person's answer. Leave out the agent and the title.

        The title is a prompt. The turn of a sub-agent is its start. Every event has the session's id alone.
        """
        super().add_fields(payload)
        if payload.get("origin_name") == "subagent":
            payload["hook_event_name"] = "SubagentStart"
        payload.pop("agent_id", None)
        payload.pop("session_title", None)
        if "prompt" in payload:
            payload["prompt"] = join_texts(payload["prompt"])
        if isinstance(payload.get("error"), dict):
            payload["error"] = payload["error"].get("message")
        if "decision" in payload:
            answer = "given" if payload["decision"] == "approved" else "refused"
            payload["notification_type"] = f"permission_{answer}"

    def answer(self, fields: "Mapping[str, Any]") -> "Mapping[str, Any]":  # noqa: ARG002 - other hosts need it
        """Return nothing: no machine that answers can work there."""
        return {}


class DevinCLI(ClaudeLikeHost):
    """Devin CLI: its payloads have neither a folder nor a transcript, and a compaction is an event of its own."""

    def add_fields(self, payload: "dict[str, Any]") -> None:
        """Add the project's folder. A compaction is a start of the session.

        A stop without the agent's words is only the end of a turn: no signal could end a loop.
        """
        import posix

        super().add_fields(payload)
        folder = posix.environ.get(b"DEVIN_PROJECT_DIR", b"").decode("utf-8", "surrogateescape")
        if folder:
            payload.setdefault("cwd", folder)
        if payload["hook_event_name"] == "PostCompaction":
            payload |= {"hook_event_name": "SessionStart", "source": "compact"}
        elif payload["hook_event_name"] == "Stop" and "last_assistant_message" not in payload:
            payload |= {"hook_event_name": "Notification", "notification_type": "idle_prompt"}

    def answer(self, fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
        """Return the answer without the message for the person: Devin has no word for it."""
        kept = {name: value for name, value in fields.items() if name != "systemMessage"}
        given = kept.get("hookSpecificOutput")
        if given and given["hookEventName"] == "SessionStart":
            kept["hookSpecificOutput"] = {**given, "hookEventName": "PostCompaction"}
        return kept


HOSTS: "dict[str, ClaudeLikeHost]" = {
    "qwen": QwenCode(
        "qwen",
        {  # 0.24.4, run for real
            "TITLE": "Qwen Code",
            "FIELDS": {"crons": "session_crons"},
            "TOOLS": {"ask_user_question": "AskUserQuestion", "exit_plan_mode": "ExitPlanMode"},
            "WRITES_LATE": True,
            "RECORD_TYPES": ("assistant", "user", "system"),
            "TOKENS_ELSEWHERE": ("assistant", "user", "tool_call", "compact_boundary", "goal_turn_end", "goal_state"),
            "SUB_AGENT_FILES": ("../subagents/{session}/agent-*.jsonl",),
            "TRANSCRIPT_FOLDERS": ("projects",),
            "SHELL_VARIABLE": "QWEN_CODE_SESSION_ID",
            "SESSION_VARIABLE": "QWEN_CODE_SESSION_ID",
            "RESUME_COMMAND": "qwen --resume",
            "BLOCK_CAP": 8,  # with tool use or without; the eighth is ignored
            "BLOCK_CAP_VARIABLE": "QWEN_CODE_STOP_HOOK_BLOCK_CAP",
            "BLOCK_CAP_COUNTS": "blocks in a row",
            "HOOKS_FILE": {
                "folder_variable": "QWEN_HOME",
                "folder": ".qwen",
                "paths": {"user": "settings.json", "project": ".qwen/settings.json"},
                "stop_event": "Stop",
                "repeat_event": "SessionStart",
                "repeat_matcher": "compact",
                "prompt_event": "UserPromptSubmit",
                "reported_events": {
                    "UserPromptSubmit": None,
                    "PreToolUse": "*",
                    "PostToolUse": "*",
                    "PostToolUseFailure": "*",
                    "PermissionRequest": "*",
                    "PermissionDenied": "*",
                    "Notification": None,
                    "PostCompact": "manual",
                    "SubagentStop": None,
                    "StopFailure": None,
                    "SessionEnd": None,
                },
                # Milliseconds, the only unit of older versions. This one reads numbers from 1,000 on as milliseconds.
                "hook_members": {"name": "tailhook", "timeout": 10_000},
                "env_member": "env",
                "highest_cap": 100,
                "off_switch": ("disableAllHooks",),
                "off_value": True,
                "off_is_overridden": True,
                "has_comments": True,
                "runs_equal_once": True,  # packages/core/src/hooks/hookPlanner.ts
                "project_variables": ("QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
                "payload": PAYLOAD,
            },
        },
    ),
    "droid": FactoryDroid(
        "droid",
        {  # by its documents of autumn 2026 and by its program (0.225.2), not run: it needs an account
            "TITLE": "Factory Droid",
            "TOOLS": {"AskUser": "AskUserQuestion", "ExitSpecMode": "ExitPlanMode"},
            "HOOKS_FILE": {
                "folder": ".factory",
                "paths": {"user": "settings.json", "project": ".factory/settings.json"},
                "stop_event": "Stop",
                "repeat_event": "SessionStart",
                "repeat_matcher": "compact",
                "prompt_event": "UserPromptSubmit",
                "reported_events": {
                    "UserPromptSubmit": None,
                    "PreToolUse": "*",
                    "PostToolUse": "*",
                    "Notification": None,
                    "SubagentStop": None,
                    "SessionEnd": None,
                },
                "hook_members": {"timeout": 10},  # seconds
                "has_comments": True,
                "off_switch": ("hooks", "hooksDisabled"),
                "off_value": True,
                "off_is_overridden": True,
                "project_variables": ("FACTORY_PROJECT_DIR", "DROID_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
                "hiding_file": "hooks.json",
                "payload": {name: value for name, value in PAYLOAD.items() if name != "last_assistant_message"},
            },
        },
    ),
    "kimi": KimiCode(
        "kimi",
        {  # 2.1.0, run for real
            "TITLE": "Kimi Code",
            "EVENTS": {"TurnStarted": "UserPromptSubmit", "PermissionResult": "Notification"},
            "FIELDS": {"tool_call_id": "tool_use_id", "error_message": "error", "origin_kind": "source"},
            "RESUME_COMMAND": "kimi --session",
            "HOOKS_FILE": {
                "folder_variable": "KIMI_CODE_HOME",
                "folder": ".kimi-code",
                "paths": {"user": "config.toml"},
                "in_toml": True,
                "machines": ("plates",),
                "unread_by": (),
                "why_not_others": "It asks its hooks once in a turn whether the agent may stop, and sends them neither "
                "the agent's words nor a transcript",
                "has_groups": False,
                "hook_type": "",
                "hook_types": {"": {"event": "a string", "command": "a string"}},
                "hook_member_types": {"matcher": "a string", "timeout": "a whole number above 0"},
                "stop_event": "Stop",
                "reported_events": {
                    "SessionStart": None,
                    "UserPromptSubmit": None,
                    "TurnStarted": "^(?!user$)",  # not a person's
                    "PreToolUse": None,
                    "PostToolUse": None,
                    "PostToolUseFailure": None,
                    "PermissionRequest": None,
                    "PermissionResult": None,
                    "PostCompact": "manual",
                    "SubagentStop": None,
                    "StopFailure": None,
                    "Interrupt": None,
                    "SessionEnd": None,
                },
                "hook_members": {"timeout": 10},  # whole seconds: a fraction makes the host ignore all hooks
                "payload": {
                    "hook_event_name": "{event}",
                    "session_id": "doctor",
                    "cwd": "{folder}",
                    "client_type": "kimi_code_cli",
                    "stop_hook_active": False,
                },
            },
        },
    ),
    "devin": DevinCLI(
        "devin",
        {  # by its documents of autumn 2026 and by published payloads of 3000.11.3, not run
            "TITLE": "Devin CLI",
            "TOOLS": {"ask_user_question": "AskUserQuestion", "exit_plan_mode": "ExitPlanMode"},
            "READS_EXIT_2": False,  # the documents do not name a reason beside it
            "RESUME_COMMAND": "devin --resume",
            "HOOKS_FILE": {
                "folder": ".config/devin",
                "paths": {"user": "config.json", "project": ".devin/config.json"},
                "stop_event": "Stop",
                "repeat_event": "PostCompaction",
                "prompt_event": "UserPromptSubmit",
                "reported_events": {  # a matcher is a regular expression
                    "SessionStart": None,
                    "UserPromptSubmit": None,
                    "PreToolUse": None,
                    "PostToolUse": None,
                    "PermissionRequest": None,
                    "SessionEnd": None,
                },
                "hook_members": {"timeout": 10},  # seconds
                "has_comments": True,
                "unread_by": ("gate", "memory"),  # a payload names no transcript
                "project_variables": ("DEVIN_PROJECT_DIR",),
                "payload": {
                    "hook_event_name": "{event}",
                    "session_id": "doctor",
                    "prompt_id": "doctor",
                    "stop_hook_active": False,
                    "last_assistant_message": "At work.",
                },
            },
        },
    ),
}
