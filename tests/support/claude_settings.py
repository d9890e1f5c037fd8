"""Settings of Claude Code, right and wrong, and their effect in the host; tests/endtoend asks the real program."""

from typing import Any

READ, DROPPED, SKIPPED = "read", "dropped", "skipped"  # the file; the whole file; the wrong entry alone


def hook(**members: object) -> dict[str, Any]:
    """Return a hook of another tool."""
    return {"type": "command", "command": "true", **members}


def before_tools(*hooks: object, event: str = "PreToolUse", **members: object) -> dict[str, Any]:
    """Return settings with a group of hooks."""
    return {"hooks": {event: [{**members, "hooks": list(hooks)}]}}


# The settings beside our hooks, and their effect in the host. The name is also the test's.
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing else": ({}, READ),
    "a group": (before_tools(hook(timeout=1.5), matcher="Bash|Edit"), READ),
    "an empty group": (before_tools(), READ),
    "no group": ({"hooks": {"PreToolUse": []}}, READ),
    "a pattern that does not compile": (before_tools(hook(), matcher="(["), READ),
    "an unknown event": (before_tools(hook(), event="Bogus"), READ),
    "unknown members": (before_tools(hook(color="red"), color="red"), READ),
    "an unknown setting": ({"tint": {"a": 5}}, READ),
    "a number in env": ({"env": {"A": 5}}, READ),
    "a number among the permissions": ({"permissions": {"allow": [5, "Bash("]}}, READ),
    "prompt": (before_tools({"type": "prompt", "prompt": "x"}), READ),
    "agent": (before_tools({"type": "agent", "prompt": "x"}), READ),
    "http": (before_tools({"type": "http", "url": "http://127.0.0.1:1/x"}), READ),
    "mcp_tool": (before_tools({"type": "mcp_tool", "server": "a", "tool": "b"}), READ),
    "an object as a matcher": (before_tools(hook(), matcher={"type": "always"}), DROPPED),
    "null as a matcher": (before_tools(hook(), matcher=None), DROPPED),
    "a text as a timeout": (before_tools(hook(timeout="10")), DROPPED),
    "a timeout of 0": (before_tools(hook(timeout=0)), DROPPED),
    "true as a timeout": (before_tools(hook(timeout=True)), DROPPED),
    "an entry without hooks": ({"hooks": {"PreToolUse": [{"matcher": "Bash", "command": "true"}]}}, DROPPED),
    "an entry whose hooks are an object": ({"hooks": {"PreToolUse": [{"hooks": {}}]}}, DROPPED),
    "a text as an entry": ({"hooks": {"PreToolUse": ["true"]}}, DROPPED),
    "a text as a hook": (before_tools("true"), DROPPED),
    "an unknown type": (before_tools({"type": "shell", "command": "true"}), DROPPED),
    "no type": (before_tools({"command": "true"}), DROPPED),
    "no command": (before_tools({"type": "command"}), DROPPED),
    "a list as a command": (before_tools(hook(command=["true"])), DROPPED),
    "a text as args": (before_tools(hook(args="x")), DROPPED),
    "numbers as args": (before_tools(hook(args=[1])), DROPPED),
    "a text as once": (before_tools(hook(once="yes")), DROPPED),
    "a number as statusMessage": (before_tools(hook(statusMessage=5)), DROPPED),
    "an address without a scheme": (before_tools({"type": "http", "url": "nowhere"}), DROPPED),
    "a tool without a server": (before_tools({"type": "mcp_tool", "tool": "b"}), DROPPED),
    "a wrong entry for approvals": (before_tools(hook(timeout="10"), event="PermissionRequest"), DROPPED),
    "a wrong entry for another event": (before_tools(hook(timeout="10"), event="PostToolUse"), SKIPPED),
    "a wrong matcher for another event": (before_tools(hook(), event="Notification", matcher={"a": 1}), SKIPPED),
    "a text as permissions.allow": ({"permissions": {"allow": "Bash"}}, DROPPED),
    "null as permissions.deny": ({"permissions": {"deny": None}}, DROPPED),
    "a list as permissions": ({"permissions": []}, DROPPED),
    "a text as additionalDirectories": ({"permissions": {"additionalDirectories": "x"}}, DROPPED),
    "a number as model": ({"model": 5}, DROPPED),
    "0 days of cleanup": ({"cleanupPeriodDays": 0}, DROPPED),
    "a text as a switch": ({"includeCoAuthoredBy": "yes"}, DROPPED),
    "a text as statusLine": ({"statusLine": "x"}, DROPPED),
    "a number as statusLine's command": ({"statusLine": {"type": "command", "command": 5}}, DROPPED),
    "a list as enabledPlugins": ({"enabledPlugins": []}, DROPPED),
    "a text as disableAllHooks": ({"disableAllHooks": "true"}, DROPPED),
}
