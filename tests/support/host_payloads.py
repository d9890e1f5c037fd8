"""Payloads of other hosts than Claude Code at a stop, and their transcripts at that time.

The keys are the real ones of Codex 0.169.0, Gemini 0.61.0, Copilot 1.0.102 and Qwen Code 0.24.4 (tests/endtoend), and
the documented ones of Cursor, Factory Droid and Antigravity. Those of Devin are published ones of 3000.11.3.
"""

import json
import time

from tailhook.hosts import DEFAULT, find_translated_host


def stamp(age: float = 0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - age))


def write(project, record):
    with (project.home / "host.jsonl").open("a") as out:
        out.write(json.dumps(record) + "\n")


def name_of_field(host, ours):
    """Return a host's name of a payload's field."""
    names = {} if host == DEFAULT else find_translated_host(host).FIELDS
    return next((theirs for theirs, named in names.items() if named == ours), ours)


def codex(project, said):
    return {
        "session_id": "mine",
        "turn_id": "t",
        "transcript_path": None,
        "cwd": str(project.folder),
        "hook_event_name": "Stop",
        "model": "gpt",
        "permission_mode": "default",
        "stop_hook_active": False,
        "last_assistant_message": said,
    }


def gemini(project, said):
    return {
        "session_id": "mine",
        "transcript_path": str(project.home / "host.jsonl"),
        "cwd": str(project.folder),
        "hook_event_name": "AfterAgent",
        "timestamp": "2026-11-20T10:00:00.000Z",
        "prompt": "Go.",
        "prompt_response": said,
        "stop_hook_active": False,
    }


def gemini_sent_on(project, said):
    """Return a payload of Gemini 0.61.0 after a block: it has all answers as one, the transcript has each by itself."""
    for number, words in enumerate(("```\nan open fence", said)):
        write(
            project,
            {"id": f"m{number}", "timestamp": stamp(), "type": "gemini", "content": words.strip(), "thoughts": []},
        )
        write(project, {"$set": {"lastUpdated": stamp()}})
    return {**gemini(project, f"```\nan open fence\n{said}"), "stop_hook_active": True}


def cursor(project, said):
    write(project, {"role": "user", "message": {"content": [{"type": "text", "text": "Go."}]}})
    write(
        project, {"role": "assistant", "message": {"content": [{"type": "text", "text": said}, {"type": "tool_use"}]}}
    )
    return {
        "conversation_id": "mine",
        "generation_id": "g",
        "model": "m",
        "hook_event_name": "stop",
        "cursor_version": "2.0.77",
        "workspace_roots": [str(project.folder)],
        "user_email": None,
        "transcript_path": str(project.home / "host.jsonl"),
        "status": "completed",
        "loop_count": 0,
    }


def copilot(project, said):
    write(project, {"type": "user.message", "data": {"content": "Go."}, "timestamp": stamp()})
    write(project, {"type": "assistant.message", "data": {"messageId": "m", "content": said}, "timestamp": stamp()})
    write(project, {"type": "assistant.turn_end", "data": {"turnId": "0"}, "timestamp": stamp()})
    write(project, {"type": "hook.start", "data": {"hookType": "agentStop"}, "timestamp": stamp(age=-1)})
    return {
        "sessionId": "mine",
        "timestamp": int(time.time() * 1000),
        "cwd": str(project.folder),
        "transcriptPath": str(project.home / "host.jsonl"),
        "stopReason": "end_turn",
        "stop_hook_active": False,
    }


def copilot_in_pascal_case(project, said):
    theirs = copilot(project, said)
    return {
        "hook_event_name": "Stop",
        "session_id": theirs["sessionId"],
        "timestamp": stamp(),
        "cwd": theirs["cwd"],
        "transcript_path": theirs["transcriptPath"],
        "stop_reason": "end_turn",
        "stop_hook_active": False,
    }


def vs_code(project, said):
    theirs = copilot(project, said)
    return {
        "timestamp": stamp(),
        "cwd": theirs["cwd"],
        "sessionId": theirs["sessionId"],
        "hookEventName": "Stop",
        "transcript_path": theirs["transcriptPath"],
        "stop_hook_active": False,
    }


def qwen_record(kind, *parts):
    message = {"role": "model" if kind == "assistant" else "user", "parts": [*parts]}
    return {"uuid": "u", "sessionId": "mine", "timestamp": stamp(), "type": kind, "message": message}


def qwen(project, said):
    write(project, qwen_record("user", {"text": "Go."}))
    write(project, qwen_record("assistant", {"text": "Hm, hm.", "thought": True}, {"text": said}))
    return {
        "session_id": "mine",
        "transcript_path": str(project.home / "host.jsonl"),
        "cwd": str(project.folder),
        "hook_event_name": "Stop",
        "timestamp": "2026-11-26T10:00:00.000Z",
        "permission_mode": "yolo",
        "prompt_id": "mine########0",
        "stop_hook_active": False,
        "last_assistant_message": said,
        "background_tasks": [],
        "crons": [],
        "context_usage": 0.1,
        "context_limit": 200_000,
        "input_tokens": 1,
    }


def droid_record(role, *blocks):
    return {"type": "message", "timestamp": stamp(), "message": {"role": role, "content": [*blocks]}}


def droid(project, said):
    write(project, droid_record("user", {"type": "text", "text": "Go."}))
    write(project, droid_record("assistant", {"type": "text", "text": said}, {"type": "tool_use", "name": "Edit"}))
    return {
        "session_id": "mine",
        "transcript_path": str(project.home / "host.jsonl"),
        "cwd": str(project.folder),
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "stop_hook_active": False,
    }


def antigravity_record(kind, content, **members):
    return {"step_index": 1, "type": kind, "content": content, "created_at": stamp(), **members}


def antigravity(project, said):
    write(project, antigravity_record("USER_INPUT", "Go."))
    write(project, antigravity_record("PLANNER_RESPONSE", said, source="MODEL"))
    return {
        "conversationId": "mine",
        "workspacePaths": [str(project.folder)],
        "transcriptPath": str(project.home / "host.jsonl"),
        "artifactDirectoryPath": str(project.home),
        "executionNum": 1,
        "terminationReason": "NO_TOOL_CALL",
        "error": "",
        "fullyIdle": True,
    }


def devin(project, said):
    """Return a payload without a folder: the host's variable names it."""
    return {
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "last_assistant_message": said,
        "session_id": "mine",
        "prompt_id": "b7a1",
    }


def kimi(project, event="Stop", **members):
    return {
        "hook_event_name": event,
        "session_id": "session_mine",
        "cwd": str(project.folder),
        "client_type": "kimi_code_cli",
        "session_title": "Go.",
        **({"stop_hook_active": False} if event == "Stop" else {}),
        **members,
    }


# Of the hosts in which every machine works.
BY_HOST = {
    "codex": codex,
    "gemini": gemini,
    "cursor": cursor,
    "copilot": copilot,
    "qwen": qwen,
    "droid": droid,
    "antigravity": antigravity,
    "devin": devin,
}
