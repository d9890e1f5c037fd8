"""The types of records that tailhook knows, of each host. A scan counts all others, by the version of their host."""

# Those that are most frequent come first: each record's type is compared with them in this order.
CLAUDE_CODE = (  # 2.1.329 and before
    *("assistant", "user", "attachment", "progress", "system", "last-prompt", "file-history-snapshot"),
    *("mode", "permission-mode", "ai-title", "queue-operation", "bridge-session", "custom-title", "pr-link"),
    *("file-history-delta", "summary", "agent-name", "human", "tool_use", "tool_result"),
)
TRANSLATED = ("assistant", "user", "system")  # Claude Code's types, which translated records of other hosts have
NOT_TRANSLATED = {
    "codex": ("session_meta", "turn_context", "response_item", "event_msg", "token_usage_record"),  # 0.169.0
    "gemini": ("info", "error", "warning"),  # 0.61.0
    "copilot": (  # 1.0.102
        *("session.start", "session.context_changed", "session.usage_record", "session.error"),
        *("session.shutdown", "session.resume"),
        *("assistant.turn_start", "assistant.turn_end", "system.message", "tool.execution_start"),
        *("hook.start", "hook.end"),
    ),
    "cursor": (),
}
# Pairs of a host and a type.
KNOWN_TYPES = (
    *(("claude-code", kind) for kind in CLAUDE_CODE),
    *((host, kind) for host, kinds in NOT_TRANSLATED.items() for kind in (*TRANSLATED, *kinds)),
)

# Types and subtypes whose records may have tokens that count in other records, or belong to no response, such as the
# size of a context, a limit, or what a tool gave. Records of other kinds are reported if they have tokens and no
# response.
TOKENS_ELSEWHERE = {
    "claude-code": (*(kind for kind in CLAUDE_CODE if kind != "assistant"), "result", "stream_event"),
    "codex": (
        *("session_meta", "turn_context", "response_item", "compact_boundary", "token_count", "token_usage_record"),
        *("thread_goal_updated", "item_completed", "mcp_tool_call_end"),
        *("dynamic_tool_call_request", "dynamic_tool_call_response", "user"),
    ),
    "gemini": ("user", "info", "error", "warning"),
    "copilot": (
        *(
            "user",
            "compact_boundary",
            "session.start",
            "session.resume",
            "session.shutdown",
            "session.compaction_start",
        ),
        *("session.usage_info", "session.truncation", "session.model_change", "system.message", "subagent.completed"),
        *("tool.execution_start", "hook.start", "hook.end"),
    ),
}
KNOWN_TOKENS = tuple((host, kind) for host, kinds in TOKENS_ELSEWHERE.items() for kind in kinds)
