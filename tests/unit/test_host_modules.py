"""The modules of the agent hosts: names of events and fields, answers, and the agent's words in a record."""

import posix

import pytest
from support.cases import in_one_test

from tailhook.hook.process import OTHER_HOSTS
from tailhook.hook.translated import translate_event_name, translate_payload
from tailhook.hosts import DEFAULT, NAMES, antigravity, codex, copilot, cursor, find_host, gemini
from tailhook.hosts.claude_like import HOSTS as CLAUDE_LIKE
from tailhook.hosts.reading import join_texts, parse_host_record

HOSTS = [find_host(name) for name in NAMES]
TRANSLATED = HOSTS[1:]
QWEN, DEVIN = CLAUDE_LIKE["qwen"], CLAUDE_LIKE["devin"]
BLOCK = {"decision": "block", "reason": "Go on.", "systemMessage": "tailhook: a loop runs"}
MESSAGE = {"systemMessage": "tailhook: the loop ended"}
CONTEXT = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "A loop runs."}}


@pytest.mark.parametrize("name", NAMES)
def test_a_host_is_found_by_its_name(name):
    assert name == find_host(name).NAME


def test_the_default_is_claude_code():
    assert DEFAULT == "claude-code"


@pytest.mark.parametrize("host", HOSTS, ids=NAMES)
def test_a_hosts_description_fits_together(host):
    assert {"paths", "stop_event", "payload"} <= host.HOOKS_FILE.keys()
    assert bool(host.BLOCK_CAP) is bool(host.BLOCK_CAP_COUNTS)


def test_the_variables_of_hosts_that_read_claude_codes_settings_are_theirs():
    theirs = {name.encode() for host in (copilot, cursor, DEVIN) for name in host.HOOKS_FILE["project_variables"]}
    assert theirs - {b"CLAUDE_PROJECT_DIR"} == {*OTHER_HOSTS}


@pytest.mark.parametrize("host", TRANSLATED, ids=NAMES[1:])
def test_the_stop_event_of_a_hooks_file_is_translated(host):
    assert translate_event_name(host, host.HOOKS_FILE["stop_event"]) == "Stop"


# ---- events ------------------------------------------------------------------


@in_one_test(
    ("host", "theirs", "ours"),
    [
        *[(host, name, name) for host in (codex, *CLAUDE_LIKE.values()) for name in ("Stop", "PreCompact")],
        (gemini, "AfterAgent", "Stop"),
        (gemini, "BeforeAgent", "UserPromptSubmit"),
        (gemini, "BeforeTool", "PreToolUse"),
        (gemini, "AfterTool", "PostToolUse"),
        (gemini, "PreCompress", "PreCompact"),
        (gemini, "SessionEnd", "SessionEnd"),
        (cursor, "stop", "Stop"),
        (cursor, "beforeSubmitPrompt", "UserPromptSubmit"),
        (cursor, "sessionStart", "SessionStart"),
        (copilot, "agentStop", "Stop"),
        (copilot, "userPromptSubmitted", "UserPromptSubmit"),
        (copilot, "postToolUseFailure", "PostToolUseFailure"),
    ],
)
def test_an_events_name_is_translated(host, theirs, ours):
    assert translate_event_name(host, theirs) == ours


@pytest.mark.parametrize("host", TRANSLATED, ids=NAMES[1:])
def test_an_event_without_a_name_stays_without_one(host):
    assert translate_event_name(host, "") == ""
    for name in ({}, {"hook_event_name": None}, {"hook_event_name": 1}, {"hook_event_name": ["Stop"]}):
        assert translate_payload(host, name)["hook_event_name"] == ""


# ---- fields ------------------------------------------------------------------


def test_a_payload_with_claude_codes_names_stays_as_it_is():
    payload = {"hook_event_name": "Stop", "session_id": "s", "cwd": "/p", "last_assistant_message": None}
    assert translate_payload(codex, payload) == payload


def test_geminis_fields_are_renamed():
    theirs = {"hook_event_name": "AfterAgent", "session_id": "s", "prompt_response": "Done."}
    assert translate_payload(gemini, theirs) == {
        "hook_event_name": "Stop",
        "session_id": "s",
        "prompt_response": "Done.",
        "last_assistant_message": "Done.",
    }


@pytest.mark.parametrize(
    ("theirs", "ours"), [("ToolPermission", "permission_prompt"), ("other", "other"), (None, None), ([], [])]
)
def test_geminis_question_about_a_tool_is_a_permission(theirs, ours):
    payload = translate_payload(gemini, {"hook_event_name": "Notification", "notification_type": theirs})
    assert payload["notification_type"] == ours
    assert "notification_type" not in translate_payload(gemini, {"hook_event_name": "Notification"})


def test_copilots_fields_are_renamed():
    theirs = {
        "hook_event_name": "preToolUse",
        "sessionId": "s",
        "transcriptPath": "/t",
        "toolName": "bash",
        "toolArgs": {"command": "ls"},
        "agentName": "helper",
    }
    ours = translate_payload(copilot, theirs)
    assert ours == {
        **theirs,
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "transcript_path": "/t",
        "tool_name": "bash",
        "tool_input": {"command": "ls"},
        "agent_id": "helper",
    }
    assert translate_payload(copilot, {"agent_name": "helper"})["agent_id"] == "helper"


@pytest.mark.parametrize("session", ["agent", "session"], ids=["in the sub-agent's name", "in the session's name"])
def test_an_event_of_a_copilot_sub_agent_belongs_to_its_session(session):
    theirs = {"sessionId": session, "agentId": "agent", "agentType": "looker", "parentAgentId": "session"}
    ours = translate_payload(copilot, {**theirs, "hook_event_name": "agentStop"})
    assert (ours["session_id"], ours["agent_id"]) == ("session", "agent")
    assert translate_payload(copilot, {**theirs, "agentName": "looker"})["agent_id"] == "agent"


def test_an_event_of_copilot_gets_the_transcript_of_its_session(monkeypatch):
    monkeypatch.setitem(posix.environ, b"HOME", b"/home/ann")
    monkeypatch.delitem(posix.environ, b"COPILOT_HOME", raising=False)
    theirs = {"hook_event_name": "preToolUse", "sessionId": "agent", "agentId": "agent", "parentAgentId": "s"}
    path = translate_payload(copilot, theirs)["transcript_path"]
    assert path == "/home/ann/.copilot/session-state/s/events.jsonl"
    monkeypatch.setitem(posix.environ, b"COPILOT_HOME", b"/c")
    assert translate_payload(copilot, theirs)["transcript_path"] == "/c/session-state/s/events.jsonl"
    assert translate_payload(copilot, {**theirs, "transcriptPath": "/t"})["transcript_path"] == "/t"
    assert "transcript_path" not in translate_payload(copilot, {"hook_event_name": "preToolUse"})
    assert "transcript_path" not in translate_payload(copilot, {**theirs, "hook_event_name": "agentStop"})


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ('{"command": "ls"}', {"command": "ls"}),
        ('["ls"]', '["ls"]'),
        ("ls", "ls"),
        ("", ""),
        (None, None),
    ],
)
def test_a_tools_input_that_copilot_sends_as_a_text_is_read(theirs, ours):
    """In 1.0.71 and others it is JSON."""
    assert translate_payload(copilot, {"toolName": "bash", "toolArgs": theirs})["tool_input"] == ours


@pytest.mark.parametrize(("prompt", "source"), [("Go.", {}), ("", {"source": "new"}), (None, {"source": "new"})])
def test_a_start_of_copilot_with_a_prompt_leads_to_no_other(prompt, source):
    """Before 1.0.102 such a start comes after its prompt."""
    theirs = {"hook_event_name": "sessionStart", "source": "new", "initialPrompt": prompt}
    ours = translate_payload(copilot, theirs)
    assert {name: ours[name] for name in ("source",) if name in ours} == source


def test_a_copilot_session_keeps_its_id():
    assert translate_payload(copilot, {"sessionId": "session"})["session_id"] == "session"
    ours = translate_payload(copilot, {"sessionId": "agent", "agentId": "agent"})
    assert (ours["session_id"], ours["agent_id"]) == ("agent", "agent")


def test_a_field_that_has_claude_codes_name_already_is_kept():
    assert translate_payload(copilot, {"sessionId": "theirs", "session_id": "ours"})["session_id"] == "ours"
    assert translate_payload(copilot, {"agentName": "a", "agent_name": "b"})["agent_id"] == "a"


@pytest.mark.parametrize("host", TRANSLATED, ids=NAMES[1:])
def test_the_hosts_payload_is_not_changed(host):
    theirs = {"hook_event_name": "stop", "sessionId": "s", "loop_count": 1, "workspace_roots": ["/p"]}
    before = dict(theirs)
    assert translate_payload(host, theirs) is not theirs
    assert theirs == before


def test_cursors_fields_are_added():
    theirs = {"hook_event_name": "stop", "conversation_id": "c", "workspace_roots": ["/p", "/q"], "loop_count": 2}
    assert translate_payload(cursor, theirs) == {
        **theirs,
        "hook_event_name": "Stop",
        "session_id": "c",
        "cwd": "/p",
        "stop_hook_active": True,
    }


@pytest.mark.parametrize(("count", "active"), [(0, False), (None, False), (0.0, False), (1, True), ("2", True)])
def test_cursors_count_of_blocks_shows_whether_the_turn_was_blocked(count, active):
    assert translate_payload(cursor, {"loop_count": count})["stop_hook_active"] is active


def test_cursors_own_fields_are_kept():
    theirs = {"cwd": "/cwd", "workspace_roots": ["/p"], "loop_count": 1, "stop_hook_active": False}
    ours = translate_payload(cursor, theirs)
    assert (ours["cwd"], ours["stop_hook_active"]) == ("/cwd", False)
    assert "stop_hook_active" not in translate_payload(cursor, {})


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_folder_session_or_transcript_counts_as_missing(monkeypatch, empty):
    """Published payloads of Cursor 3.22 have an empty `cwd` beside the workspace's folders."""
    theirs = {"cwd": empty, "session_id": empty, "conversation_id": "c", "workspace_roots": ["/p"]}
    ours = translate_payload(cursor, theirs)
    assert (ours["cwd"], ours["session_id"]) == ("/p", "c")
    assert translate_payload(antigravity, {"cwd": empty, "workspacePaths": ["/p"]})["cwd"] == "/p"
    monkeypatch.setitem(posix.environ, b"DEVIN_PROJECT_DIR", b"/p")
    assert translate_payload(DEVIN, {"cwd": empty})["cwd"] == "/p"
    assert translate_payload(copilot, {"sessionId": "s", "transcript_path": empty})["transcript_path"].endswith(
        "/s/events.jsonl"
    )


@pytest.mark.parametrize("roots", [None, [], "/p", {"0": "/p"}, 1])
def test_cursor_without_a_list_of_folders_has_no_cwd(roots):
    assert "cwd" not in translate_payload(cursor, {"workspace_roots": roots})


@pytest.mark.parametrize(
    ("event", "status", "ours"),
    [
        ("stop", "completed", "Stop"),
        ("stop", None, "Stop"),
        ("stop", ["aborted"], "Stop"),
        ("stop", "aborted", "Interrupt"),
        ("stop", "error", "StopFailure"),
        ("subagentStop", "error", "SubagentStop"),
    ],
)
def test_a_cursor_turn_that_a_person_ends_is_interrupted_and_one_that_an_error_ends_a_failure(event, status, ours):
    assert translate_payload(cursor, {"hook_event_name": event, "status": status})["hook_event_name"] == ours


def test_a_claude_like_host_keeps_the_names_of_claude_code():
    payload = {"hook_event_name": "Stop", "session_id": "s", "cwd": "/p", "background_tasks": [], "tool_name": "Bash"}
    payload["last_assistant_message"] = "Done."
    for host in CLAUDE_LIKE.values():
        assert translate_payload(host, payload) == payload


def test_an_agent_of_qwen_reads_that_the_brackets_of_a_tag_are_real_ones():
    def given(text):
        return {"systemMessage": "m", "hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": text}}

    note = "Write tags with real angle brackets, also if entities stand for them here."
    assert QWEN.answer(given("<done>yes</done>")) == given(f"<done>yes</done>\n\n{note}")
    assert QWEN.answer(given("1 < 2")) == given("1 < 2")
    assert QWEN.answer({**BLOCK, "reason": "</a>"}) == {**BLOCK, "reason": "</a>"}


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"prompt": "Go.", "submitted_prompt": "Go."}, "user"),
        ({"prompt": ""}, "system"),
        ({"prompt": "[ITERATION 2/10]"}, "system"),
        ({"prompt": "Go.", "submitted_prompt": None}, "system"),
        ({"prompt": "Go.", "source": "sdk"}, "sdk"),
    ],
)
def test_a_prompt_of_qwen_that_no_person_submitted_is_the_hosts(fields, source):
    assert translate_payload(QWEN, {"hook_event_name": "UserPromptSubmit", **fields})["source"] == source
    assert "source" not in translate_payload(QWEN, {"hook_event_name": "Stop"})


def test_a_background_task_of_qwen_is_an_agent_and_its_crons_are_wake_ups():
    theirs = {"background_tasks": [{"id": "a", "status": "running"}, "odd"], "crons": [{"id": "c"}]}
    ours = translate_payload(QWEN, theirs)
    assert ours["background_tasks"] == [{"type": "subagent", "id": "a", "status": "running"}, "odd"]
    assert ours["session_crons"] == [{"id": "c"}]
    assert translate_payload(QWEN, {"background_tasks": None})["background_tasks"] is None


@in_one_test(
    ("theirs", "ours"),
    [
        ({"notification_type": "elicitation_dialog"}, {"notification_type": "permission_prompt"}),
        ({"notification_type": "idle_prompt"}, {}),
        ({"tool_name": "AskUser"}, {"tool_name": "AskUserQuestion"}),
        ({"tool_name": "ExitSpecMode"}, {"tool_name": "ExitPlanMode"}),
    ],
)
def test_a_question_of_droid_belongs_to_its_tool(theirs, ours):
    theirs = {"hook_event_name": "Notification", **theirs}
    assert translate_payload(CLAUDE_LIKE["droid"], theirs) == {**theirs, **ours}


@in_one_test(
    ("theirs", "ours"),
    [
        ({"hook_event_name": "PostCompaction"}, {"hook_event_name": "SessionStart", "source": "compact"}),
        ({"hook_event_name": "SessionStart", "source": "resume"}, {}),
        ({"hook_event_name": "Stop", "last_assistant_message": ""}, {}),
        ({"hook_event_name": "Stop"}, {"hook_event_name": "Notification", "notification_type": "idle_prompt"}),
        ({"hook_event_name": "PreToolUse", "tool_name": "ask_user_question"}, {"tool_name": "AskUserQuestion"}),
    ],
)
def test_a_compaction_of_devin_is_a_start_and_a_stop_without_words_only_ends_the_turn(theirs, ours):
    assert translate_payload(DEVIN, theirs) == {**theirs, **ours}


def test_an_error_of_a_tool_of_antigravity_does_not_end_its_turn():
    assert translate_payload(antigravity, {"hook_event_name": "PostToolUse", "error": "No such file"}) == {
        "hook_event_name": "PostToolUse",
        "error": "No such file",
    }


@in_one_test(
    ("reason", "error", "event", "shown"),
    [
        ("TERMINATION_REASON_NO_TOOL_CALL", "", "Stop", ""),
        ("TERMINATION_REASON_USER_CANCELED", "", "Interrupt", ""),
        ("ABORTED", "", "Interrupt", ""),
        ("EXECUTOR_TERMINATION_REASON_MAX_FORCED_INVOCATIONS", "", "StopFailure", "MAX_FORCED_INVOCATIONS"),
        ("ERROR", "quota", "StopFailure", "quota"),
        ("NO_TOOL_CALL", "quota", "StopFailure", "quota"),
    ],
)
def test_how_a_turn_of_antigravity_ended(reason, error, event, shown):
    theirs = {"hook_event_name": "Stop", "terminationReason": reason, "error": error}
    ours = translate_payload(antigravity, theirs)
    assert (ours["hook_event_name"], ours["error"].endswith(shown)) == (event, True)


def test_a_payload_of_devin_gets_the_projects_folder(monkeypatch):
    monkeypatch.setitem(posix.environ, b"DEVIN_PROJECT_DIR", b"/p")
    assert translate_payload(DEVIN, {"hook_event_name": "Stop"})["cwd"] == "/p"
    assert translate_payload(DEVIN, {"cwd": "/q"})["cwd"] == "/q"
    monkeypatch.delitem(posix.environ, b"DEVIN_PROJECT_DIR")
    assert "cwd" not in translate_payload(DEVIN, {})


@pytest.mark.parametrize(("number", "source"), [(0, "user"), (1, "system"), (7, "system")])
def test_the_first_question_to_the_model_of_antigravity_is_a_persons_prompt(number, source):
    theirs = {"conversationId": "c", "transcriptPath": "/t", "workspacePaths": ["/p", "/q"], "invocationNum": number}
    ours = translate_payload(antigravity, theirs)
    assert (ours["session_id"], ours["transcript_path"], ours["cwd"]) == ("c", "/t", "/p")
    assert ours["source"] == source


@pytest.mark.parametrize("idle", [True, False, None])
def test_antigravity_waits_for_a_task_unless_it_is_fully_idle(idle):
    ours = translate_payload(antigravity, {"fullyIdle": idle, "workspacePaths": []})
    assert ours.get("background_tasks") == ([{"type": "agent"}] if idle is False else None)
    assert "cwd" not in ours
    assert "source" not in ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ask_user_question", "AskUserQuestion"),
        ("exit_plan_mode", "ExitPlanMode"),
        ("run_shell_command", "run_shell_command"),
        (None, None),
        ([], []),
    ],
)
def test_a_tool_of_qwen_that_asks_a_person_has_its_name_in_claude_code(theirs, ours):
    assert translate_payload(QWEN, {"tool_name": theirs})["tool_name"] == ours


# ---- answers -----------------------------------------------------------------


OWN_BLOCKS = {  # of hosts that do not take Claude Code's
    "gemini": {**BLOCK, "decision": "deny"},
    "cursor": {"followup_message": "Go on."},
    "copilot": {
        "decision": "block",
        "reason": "Go on.",
        "hookSpecificOutput": {"hookEventName": "Stop", "decision": "block", "reason": "Go on."},
    },
    "antigravity": {"decision": "continue", "reason": "Go on."},
    "kimi": {},
    "devin": {"decision": "block", "reason": "Go on."},
}


@pytest.mark.parametrize("host", HOSTS, ids=NAMES)
def test_a_block_is_in_the_hosts_words(host):
    block = dict(BLOCK)
    assert host.answer(block) == OWN_BLOCKS.get(host.NAME, BLOCK)
    assert block == BLOCK


@in_one_test("fields", [MESSAGE, CONTEXT, {}])
@in_one_test("host", HOSTS, ids=NAMES)
def test_an_answer_that_does_not_block_is_left_out_if_the_host_has_no_word_for_it(host, fields):
    silent = cursor, copilot, antigravity, CLAUDE_LIKE["kimi"]
    expected = {} if host in silent or (host is DEVIN and fields is MESSAGE) else fields
    if host is DEVIN and fields is CONTEXT:  # of a compaction
        expected = {"hookSpecificOutput": {**CONTEXT["hookSpecificOutput"], "hookEventName": "PostCompaction"}}
    assert host.answer(fields) == expected


# ---- records (more in test_host_transcripts.py) --------------------------------

BLOCKS = [{"type": "text", "text": "Done."}]
RECORDS = {
    "codex": {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": BLOCKS}},
    "gemini": {"type": "gemini", "content": "Done."},
    "cursor": {"role": "assistant", "message": {"content": BLOCKS}},
    "copilot": {"type": "assistant.message", "data": {"content": "Done."}},
    "droid": {"type": "message", "message": {"role": "assistant", "content": BLOCKS}},
    "antigravity": {"type": "PLANNER_RESPONSE", "content": "Done."},
    "qwen": {"type": "assistant", "message": {"parts": [{"text": "Hm.", "thought": True}, {"text": "Done."}]}},
}
WITH_RECORDS = pytest.mark.parametrize("host", [*map(find_host, RECORDS)], ids=[*RECORDS])


def agents_words(host, record):
    message = host.read_record(record)
    return join_texts(message[1]) if message and message[0] else ""


@WITH_RECORDS
def test_the_agents_words_are_found_in_a_record(host):
    assert agents_words(host, RECORDS[host.NAME]) == "Done."
    assert host.RECORD_MARK in str(RECORDS[host.NAME]).encode()


@WITH_RECORDS
def test_a_record_of_another_host_has_no_words(host):
    claudes = {"type": "assistant", "message": {"content": BLOCKS}}
    for record in (claudes, *(record for name, record in RECORDS.items() if name != host.NAME)):
        assert agents_words(host, record) == ""


@WITH_RECORDS
def test_a_record_of_another_kind_has_no_words(host):
    record = RECORDS[host.NAME]
    for key in record:
        for value in (None, "", 1, [], {}, [{}], *(["user"] if record[key] != "Done." else [])):
            assert not agents_words(host, {**record, key: value}), (key, value)
        assert not agents_words(host, {other: value for other, value in record.items() if other != key})


@pytest.mark.parametrize("role", ["developer", None, 1, ["assistant"]])
def test_codex_has_messages_of_two_roles(role):
    payload = RECORDS["codex"]["payload"]
    assert codex.read_record({"type": "response_item", "payload": {**payload, "role": role}}) is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("text", "text"),
        ("", ""),
        ([{"text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"text": "one"}, {"text": " \n"}, {"type": "tool_use"}, {"text": "two"}], "one\ntwo"),
        ([{"text": 1}, {"text": None}, None, "text", ["text"]], ""),
        ([], ""),
        (None, ""),
        (1, ""),
        ({"text": "one"}, ""),
    ],
)
def test_the_texts_of_a_content_are_joined(content, text):
    assert join_texts(content) == text


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"", {}),
        (b"[1]", {}),
        (b"null", {}),
        (b'"text"', {}),
        (b'{"a": ', {}),
        (b'{"a": "\xff"}', {}),
        (b"\0" * 10, {}),
    ],
)
def test_a_line_that_is_not_an_object_is_an_empty_record(line, record):
    assert parse_host_record(line) == record
