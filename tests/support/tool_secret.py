"""A session that asks to run a command with secrets, as the hooks of its host report it."""

import json

from support.host import assistant, run_on_payload
from support.usual_secrets import MIXED, PASSWORD

# The hook reports the beginning of a command, so the second is in the transcript only.
NEAR, FAR = f"ghp_{MIXED[:36]}", PASSWORD
COMMAND = f"curl -u me:{NEAR} https://api.example.org/{'a' * 200}\nmysql -u root -p{FAR} shop"


def ask_to_run(daemon, argv):
    """Write the session's transcript, and run its hooks: one command fails, another one waits for an approval.

    argv: of the hook, for the machine plates.
    """
    transcript = daemon.home / "session.jsonl"
    record = assistant(id="m")
    record["message"]["content"] = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": COMMAND}}]
    transcript.write_text(json.dumps(record) + "\n")
    common = {"session_id": "secretive", "transcript_path": str(transcript), "cwd": str(daemon.home)}
    use = {"tool_name": "Bash", "tool_input": {"command": COMMAND}}
    failed = {"tool_name": "Bash", "tool_input": {"command": f"echo {NEAR}"}, "tool_use_id": "before"}
    for fields in (
        {"hook_event_name": "UserPromptSubmit", "prompt": "Ask the server"},
        {"hook_event_name": "PreToolUse", **failed},
        {"hook_event_name": "PostToolUseFailure", **failed, "error": f"denied: {NEAR}"},
        {"hook_event_name": "PreToolUse", "tool_use_id": "t", **use},
        {"hook_event_name": "PermissionRequest", **use},
    ):
        payload = json.dumps({**common, **fields})
        run_on_payload(argv, payload.encode(), env=daemon.env, check=True)


def shows_secret(text):
    """Return whether a text has one of the secrets."""
    return NEAR in text or FAR in text
