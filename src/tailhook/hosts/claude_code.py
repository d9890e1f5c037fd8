"""Claude Code (2.1.329). tailhook uses its names."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.hosts.protocols import HooksFileFields

NAME = "claude-code"
TITLE = "Claude Code"
TRANSCRIPT_FOLDERS: "tuple[str, ...]" = ("projects",)
FORMER_FOLDERS: "tuple[str, ...]" = (".config/claude",)  # of 1.0.30, if XDG_CONFIG_HOME was set
SHELL_VARIABLE = SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
# From 2.1.2 on, each session has a folder for them. Older versions put all into the project's folder.
SUB_AGENT_FILES = ("{session}/subagents/**/agent-*.jsonl*", "agent-*.jsonl*")
RESUME_COMMAND = "claude --resume"
BLOCK_CAP = 8  # without tool use, 2.1.143 and later
BLOCK_CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
BLOCK_CAP_COUNTS = "blocks in a row without tool use"
RECORD_TYPES = (  # the most frequent first
    *("assistant", "user", "attachment", "progress", "system", "last-prompt", "file-history-snapshot"),
    *("mode", "permission-mode", "ai-title", "queue-operation", "bridge-session", "custom-title", "pr-link"),
    *("file-history-delta", "summary", "agent-name", "human", "tool_use", "tool_result"),
)
TOKENS_ELSEWHERE = (*RECORD_TYPES[1:], "result", "stream_event")
# The host's own compactions happen during a turn, so only a person's is registered.
HOOKS_FILE: "HooksFileFields" = {
    "folder_variable": "CLAUDE_CONFIG_DIR",
    "folder": ".claude",
    "paths": {"user": "settings.json", "project": ".claude/settings.json", "local": ".claude/settings.local.json"},
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
        "Elicitation": None,
        "ElicitationResult": None,
        "Notification": None,
        "PostCompact": "manual",
        "SubagentStart": None,
        "SubagentStop": None,
        "StopFailure": None,
        "SessionEnd": None,
    },
    "has_exec_form": True,  # 2.1.139 and later
    "hook_members": {"timeout": 10},  # seconds; a hook waits at most 2 s for its input and 2 s for a lock
    "event_members": {
        "Stop": {"statusMessage": "tailhook: may the agent stop?"},
        "SessionStart": {"statusMessage": "tailhook: checking for a running loop"},
    },
    "env_member": "env",
    "plugins_member": "enabledPlugins",
    "off_switch": ("disableAllHooks",),
    "off_value": True,
    "off_is_overridden": True,
    "managed_folders": {"linux": "/etc/claude-code", "darwin": "/Library/Application Support/ClaudeCode"},
    "managed_switches": {
        "disableAllHooks": (),
        "allowManagedHooksOnly": ("managed",),
        "strictPluginOnlyCustomization": ("managed", "plugin"),  # true, or a list with "hooks"
    },
    # The settings of people and other tools, and the host's checks (tests/endtoend/test_claude_settings.py).
    "setting_types": {
        "permissions": "an object",
        "permissions.allow": "a list",
        "permissions.ask": "a list",
        "permissions.deny": "a list",
        "permissions.additionalDirectories": "a list",
        "permissions.defaultMode": "a string",
        "statusLine": "an object",
        "statusLine.command": "a string",
        "sandbox": "an object",
        "enabledPlugins": "an object",
        "model": "a string",
        "outputStyle": "a string",
        "language": "a string",
        "apiKeyHelper": "a string",
        "awsAuthRefresh": "a string",
        "availableModels": "a list",
        "companyAnnouncements": "a list",
        "cleanupPeriodDays": "a whole number above 0",
        "disableAllHooks": "true or false",
        "includeCoAuthoredBy": "true or false",
        "enableAllProjectMcpServers": "true or false",
        "alwaysThinkingEnabled": "true or false",
        "spinnerTipsEnabled": "true or false",
        "respectGitignore": "true or false",
    },
    "hook_types": {
        "command": {"command": "a string"},
        "prompt": {"prompt": "a string"},
        "agent": {"prompt": "a string"},
        "http": {"url": "a URL"},
        "mcp_tool": {"server": "a string", "tool": "a string"},
    },
    "hook_member_types": {
        "timeout": "a number above 0",
        "args": "a list of strings",
        "if": "a string",
        "statusMessage": "a string",
        "once": "true or false",
        "async": "true or false",
        "asyncRewake": "true or false",
    },
    "guard_events": ("PreToolUse", "PermissionRequest"),
    "unread_by": (),
    "runs_equal_once": True,  # run for real at 2.1.197, with one hook in two scopes
    "older_versions": "; versions before 2.1.257 run no hook of the file",
    "project_variables": ("CLAUDE_PROJECT_DIR",),
    "payload": {
        "session_id": "doctor",
        "cwd": "{folder}",
        "hook_event_name": "{event}",
        "source": "compact",
        "last_assistant_message": "At work.",
    },
}


def answer(fields: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """Return the answer as it is."""
    return fields
