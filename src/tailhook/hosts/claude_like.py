"""Hosts with Claude Code's events, payloads and answers: a class with what they share, and a row for each.

A row has the members with other values, and their proof: the release, or "by its documents".
"""

from tailhook._core import get_text
from tailhook.hosts.reading import explain_brackets

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
    """Qwen Code: it sends prompts that no person wrote, does not name the kind of a task, and has Gemini's messages."""

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


HOSTS: "dict[str, ClaudeLikeHost]" = {
    "qwen": QwenCode(
        "qwen",
        {  # 0.24.4, run for real
            "TITLE": "Qwen Code",
            "FIELDS": {"crons": "session_crons"},
            "TOOLS": {"ask_user_question": "AskUserQuestion", "exit_plan_mode": "ExitPlanMode"},
            "WRITES_LATE": True,
            "SHELL_VARIABLE": "QWEN_CODE_SESSION_ID",
            "SESSION_VARIABLE": "QWEN_CODE_SESSION_ID",
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
                # Milliseconds: older versions take no other unit, and this one reads numbers from 1,000 on so.
                "hook_members": {"name": "tailhook", "timeout": 10_000},
                "env_member": "env",
                "highest_cap": 100,
                "off_switch": ("disableAllHooks",),
                "off_value": True,
                "off_is_overridden": True,
                "project_variables": ("QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
                "payload": PAYLOAD,
            },
        },
    ),
    "droid": ClaudeLikeHost(
        "droid",
        {  # by its documents of autumn 2026, not run
            "TITLE": "Factory Droid",
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
                    "SubagentStop": None,
                    "SessionEnd": None,
                },
                "hook_members": {"timeout": 10},  # seconds
                "project_variables": ("FACTORY_PROJECT_DIR",),
                "hiding_file": "hooks.json",
                "payload": PAYLOAD,
            },
        },
    ),
}
