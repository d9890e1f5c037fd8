"""The types of records that tailhook knows. A scan counts all others, by the version of their host."""

# Those that are most frequent come first: each record's type is compared with them in this order.
CLAUDE_CODE = (  # 2.1.329 and before
    *("assistant", "user", "attachment", "progress", "system", "last-prompt", "file-history-snapshot"),
    *("mode", "permission-mode", "ai-title", "queue-operation", "bridge-session", "custom-title", "pr-link"),
    *("file-history-delta", "summary", "human", "tool_use", "tool_result"),
)
OTHER_HOSTS = (  # what is not translated to the types above
    *("session_meta", "turn_context", "response_item", "event_msg", "token_usage_record"),  # Codex 0.169.0
    *("info", "error", "warning"),  # Gemini 0.61.0
    *("session.start", "session.context_changed", "session.usage_record", "session.error"),  # Copilot 1.0.102
    *("assistant.turn_start", "assistant.turn_end", "system.message", "tool.execution_start", "hook.start", "hook.end"),
)
KNOWN_TYPES = (*CLAUDE_CODE, *OTHER_HOSTS)
