"""Records of other hosts' transcripts: of Codex 0.169.0, Gemini 0.61.0, Copilot 1.0.102, Qwen 0.24.4 and others."""

TIME = "2026-11-22T08:39:05.387Z"
UNIX_TIME = 1795336745.387


def codex_item(**item):
    return {"timestamp": TIME, "ordinal": 7, "type": "response_item", "payload": item}


def codex_text(role, kind, text):
    return codex_item(type="message", id="msg_1", role=role, content=[{"type": kind, "text": text}])


def qwen_record(kind, role, *parts):
    return {
        "uuid": "u",
        "sessionId": "s",
        "timestamp": TIME,
        "type": kind,
        "message": {"role": role, "parts": [*parts]},
    }


def droid_record(role, *blocks):
    return {"type": "message", "timestamp": TIME, "message": {"role": role, "content": [*blocks]}}


# For each host: the first record, then records with their messages, oldest first.
RECORDS = {
    "codex": (
        {"timestamp": TIME, "ordinal": 0, "type": "session_meta", "payload": {"session_id": "s", "cwd": "/p"}},
        [
            (codex_text("developer", "input_text", "<skills_instructions>"), None),
            (codex_text("user", "input_text", "<environment_context>\n  <cwd>/p</cwd>"), None),
            (codex_text("user", "input_text", "# AGENTS.md instructions for /p\n\nBe brief."), None),
            (codex_text("user", "input_text", "\n<ENVIRONMENT_CONTEXT>\n  <cwd>/p</cwd>"), None),  # of older versions
            (codex_text("user", "input_text", '<subagent_notification>\n{"agent_id":"a"}'), None),
            (codex_text("user", "input_text", "<user_shell_command>\n<command>ls</command>"), None),
            (codex_text("user", "input_text", "<skill>\n<name>release</name>"), None),
            (codex_text("user", "input_text", "Do the work."), (False, b"Do the work.", [])),
            (codex_item(type="function_call", name="exec_command", arguments="{}"), (True, b"", ["exec_command"])),
            (codex_item(type="custom_tool_call", name="apply_patch", input=""), (True, b"", ["apply_patch"])),
            (codex_item(type="function_call_output", output="assistant"), None),
            ({"timestamp": TIME, "type": "event_msg", "payload": {"type": "task_complete", "role": "assistant"}}, None),
            (codex_text("user", "input_text", '<hook_prompt hook_run_id="stop:2">[ITERATION 2/10]'), None),
            (codex_text("assistant", "output_text", "  Done.\n"), (True, b"  Done.\n", [])),
        ],
    ),
    "gemini": (
        {"sessionId": "s", "projectHash": "76f3", "startTime": TIME, "lastUpdated": TIME, "kind": "main"},
        [
            ({"$set": {"messages": [{"type": "user", "content": [{"text": "Not a message."}]}]}}, None),
            ({"id": "0", "timestamp": TIME, "type": "user", "content": [{"text": "<session_context>\nToday"}]}, None),
            (
                {"id": "1", "timestamp": TIME, "type": "user", "content": [{"text": "Do the work."}]},
                (False, b"Do the work.", []),
            ),
            ({"id": "2", "timestamp": TIME, "type": "gemini", "content": "", "thoughts": []}, None),  # twice: see below
            (
                {"id": "2", "timestamp": TIME, "type": "gemini", "content": "", "toolCalls": [{"name": "run_shell"}]},
                (True, b"", ["run_shell"]),
            ),
            ({"id": "3", "timestamp": TIME, "type": "user", "content": [{"functionResponse": {"id": "r"}}]}, None),
            ({"$set": {"lastUpdated": TIME}}, None),
            ({"id": "4", "timestamp": TIME, "type": "gemini", "content": "Done."}, (True, b"Done.", [])),
        ],
    ),
    "cursor": (
        {"role": "user", "message": {"content": [{"type": "text", "text": "Do the work."}]}},
        [
            (
                {"role": "user", "message": {"content": [{"type": "text", "text": "Do the work."}]}, "timestamp": TIME},
                (False, b"Do the work.", []),
            ),
            (
                {
                    "role": "assistant",
                    "timestamp": TIME,
                    "message": {
                        "content": [
                            {"type": "text", "text": "Done."},
                            {"type": "tool_use", "name": "Shell", "input": {}},
                        ]
                    },
                },
                (True, b"Done.", ["Shell"]),
            ),
        ],
    ),
    "copilot": (
        {"type": "session.start", "data": {"sessionId": "s", "producer": "copilot-agent"}},
        [
            ({"type": "hook.start", "data": {"hookType": "userPromptSubmitted"}, "id": "0", "timestamp": TIME}, None),
            (
                {"type": "user.message", "data": {"content": "Do the work."}, "id": "1", "timestamp": TIME},
                (False, b"Do the work.", []),
            ),
            ({"type": "system.message", "data": {"role": "system", "content": "You are …"}, "id": "2"}, None),
            (
                {
                    "type": "assistant.message",
                    "data": {"content": "", "toolRequests": [{"name": "bash", "arguments": {}}]},
                    "id": "3",
                    "timestamp": TIME,
                },
                (True, b"", ["bash"]),
            ),
            ({"type": "assistant.turn_end", "data": {"turnId": "0"}, "id": "4", "timestamp": TIME}, None),
            (
                {
                    "type": "assistant.message",
                    "data": {"content": "Done.", "toolRequests": []},
                    "id": "5",
                    "timestamp": TIME,
                },
                (True, b"Done.", []),
            ),
        ],
    ),
    "qwen": (
        qwen_record("user", "user", {"text": "Do the work."}),
        [
            (qwen_record("user", "user", {"text": "Do the work."}), (False, b"Do the work.", [])),
            (
                {
                    "uuid": "u",
                    "sessionId": "s",
                    "type": "system",
                    "subtype": "ui_telemetry",
                    "systemPayload": {"user": 1},
                },
                None,
            ),
            (
                qwen_record("assistant", "model", {"text": "Hm.", "thought": True}, {"functionCall": {"name": "edit"}}),
                (True, b"", ["edit"]),
            ),
            (qwen_record("tool_result", "user", {"functionResponse": {"name": "edit", "response": {}}}), None),
            (qwen_record("assistant", "model", {"text": "Done."}), (True, b"Done.", [])),
        ],
    ),
    "droid": (
        {"type": "session_start", "id": "s", "title": "Do the work.", "version": 2, "cwd": "/p"},
        [
            (droid_record("user", {"type": "text", "text": "Do the work."}), (False, b"Do the work.", [])),
            (droid_record("assistant", {"type": "thinking", "thinking": "Hm."}), None),
            (droid_record("assistant", {"type": "tool_use", "name": "Edit", "input": {}}), (True, b"", ["Edit"])),
            (droid_record("user", {"type": "tool_result", "content": "Done"}), None),
            (droid_record("assistant", {"type": "text", "text": "Done."}), (True, b"Done.", [])),
        ],
    ),
    "antigravity": (
        {
            "step_index": 0,
            "source": "USER_EXPLICIT",
            "type": "USER_INPUT",
            "content": "Do the work.",
            "timestamp": TIME,
        },
        [
            ({"step_index": 0, "type": "USER_INPUT", "content": "Go.", "timestamp": TIME}, (False, b"Go.", [])),
            (
                {
                    "step_index": 1,
                    "type": "PLANNER_RESPONSE",
                    "content": "",
                    "tool_calls": [{"name": "run_command", "args": {}}],
                    "timestamp": TIME,
                },
                (True, b"", ["run_command"]),
            ),
            ({"step_index": 2, "source": "MODEL", "type": "RUN_COMMAND", "content": "USER_INPUT"}, None),
            (
                {"step_index": 3, "type": "PLANNER_RESPONSE", "content": "Done.", "timestamp": TIME},
                (True, b"Done.", []),
            ),
        ],
    ),
}
