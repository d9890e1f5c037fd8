"""Notices in the session's terminal: what a hook answers, and when."""

import json

import pytest
from support.cases import in_one_test
from support.host import frame

AGENT = "claude-code_2-1-329_harness"
ASKED = {"questions": [{"question": "Which one?", "options": [{"label": "red"}]}]}


@pytest.fixture
def noticing(project):
    """Call it with names of forms: a project whose user wants them."""

    def want(*forms, machines="idle,plates"):
        config = project.home / ".config" / "tailhook" / "config.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps({"plates": {"notify": {"terminal": forms}}}))
        project.argv = [*project.argv[:-1], machines]
        project.env["AI_AGENT"] = AGENT
        project.env["CLAUDE_PROJECT_DIR"] = str(project.folder)
        return project

    return want


def answer(project, **fields):
    """Return the hook's answer to an event, {} if it prints nothing."""
    done = project.hook(json.dumps(project.payload(**fields)).encode(), read=False)
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout) if done.stdout else {}


FORMS = [
    (["title"], "\x1b]0;project: has finished: Done.\x07"),
    (["osc9"], "\x1b]9;project: has finished: Done.\x07"),
    (["osc99"], "\x1b]99;;project: has finished: Done.\x1b\\"),
    (["osc777"], "\x1b]777;notify;tailhook;project: has finished: Done.\x07"),
    (["osc9", "title"], "\x1b]0;project: has finished: Done.\x07\x1b]9;project: has finished: Done.\x07"),
    (["other", "osc9"], "\x1b]9;project: has finished: Done.\x07"),
]


@in_one_test(("forms", "expected"), FORMS)
def test_the_end_of_a_turn_in_each_form(noticing, forms, expected):
    assert answer(noticing(*forms), last_assistant_message="Done.\nAll of it.") == {"terminalSequence": expected}


EVENTS = [
    ({"hook_event_name": "PreToolUse", "tool_name": "AskUserQuestion", "tool_input": ASKED}, "asks: Which one?"),
    ({"hook_event_name": "PermissionRequest", "tool_name": "AskUserQuestion", "tool_input": ASKED}, None),
    (
        {"hook_event_name": "PreToolUse", "tool_name": "ExitPlanMode", "tool_input": {"plan": "# A\nb"}},
        "shows a plan: A",
    ),
    ({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}}, None),
    (
        {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "rm -r build; ls"}},
        "asks to use Bash: rm -r build, ls",
    ),
    (
        {"hook_event_name": "PermissionRequest", "tool_name": "Edit", "tool_input": {"file_path": "/a/b"}},
        "asks to use Edit: /a/b",
    ),
    ({"hook_event_name": "Elicitation", "mcp_server_name": "db", "message": "Your name?"}, "asks: Your name?"),
    ({"hook_event_name": "Notification", "notification_type": "permission_prompt"}, None),
    ({"hook_event_name": "Notification", "notification_type": "elicitation_dialog"}, None),
    ({"hook_event_name": "UserPromptSubmit", "prompt": "Do it."}, None),
    ({"hook_event_name": "StopFailure", "error": "rate_limit"}, "stopped: rate_limit"),
    ({"last_assistant_message": "Done.", "background_tasks": [{"type": "subagent", "status": "running"}]}, None),
    ({"last_assistant_message": "Done.", "agent_id": "a"}, None),
    ({"last_assistant_message": "export TOKEN=abcdefgh1234\x07"}, "has finished: export TOKEN=[secret]"),
    ({"last_assistant_message": "\x1b]0;owned\x07"}, "has finished: ]0,owned"),
    ({}, "has finished"),
    (
        {"hook_event_name": "PermissionRequest", "tool_name": "mcp__db__ask", "tool_input": {}},
        "asks to use mcp__db__ask",
    ),
    ({"hook_event_name": "PreToolUse", "tool_name": "ExitPlanMode", "tool_input": {"plan": ""}}, "shows a plan"),
    ({"hook_event_name": "Elicitation", "mcp_server_name": "db"}, "asks"),
]


@in_one_test(("fields", "words"), EVENTS)
def test_an_event_after_which_a_person_is_waited_for_is_noticed_and_no_other(noticing, fields, words):
    found = answer(noticing("osc9"), **fields)
    assert found == ({"terminalSequence": f"\x1b]9;project: {words}\x07"} if words else {})


def test_a_stop_that_is_blocked_is_not_noticed_and_the_end_of_the_loop_is(noticing):
    project = noticing("osc9")
    project.argv = [*project.argv, "--exit", "0", "--announce"]
    project.loop(frame(max=2))
    found = answer(project, last_assistant_message="More to do.")
    assert "terminalSequence" not in found
    assert found["hookSpecificOutput"]["additionalContext"]
    found = answer(project, last_assistant_message="All is well.\n\n<loop-done>COMPLETE</loop-done>")
    assert found["terminalSequence"] == "\x1b]9;project: the loop has ended: All is well.\x07"
    assert found["systemMessage"]


@pytest.mark.parametrize("agent", ["", "another-agent", "claude-code_2-1-140_harness"])
def test_a_host_that_does_not_know_the_member_does_not_get_it(noticing, agent):
    project = noticing("osc9")
    project.env["AI_AGENT"] = agent
    assert answer(project, last_assistant_message="Done.") == {}


def test_without_the_boards_machine_or_without_the_users_wish_there_is_none(noticing):
    assert answer(noticing("osc9", machines="idle"), last_assistant_message="Done.") == {}
    assert answer(noticing(), last_assistant_message="Done.") == {}
    project = noticing()
    config = project.folder / ".claude" / "tailhook.json"
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps({"plates": {"notify": {"terminal": ["osc9"]}}}))  # a clone must not choose it
    assert answer(project, last_assistant_message="Done.") == {}


@pytest.mark.parametrize(
    ("notify", "complaint"),
    [
        ({"terminal": ["osc9"]}, None),
        ({"terminal": ["osc8"]}, "plates.notify.terminal has unknown forms: osc8"),
        ({"terminal": "osc9"}, "plates.notify.terminal is 'osc9', not a list of texts, and is ignored"),
        ({"bell": True}, "the key plates.notify.bell is unknown"),
        (True, "the key plates.notify is unknown"),
    ],
)
def test_the_doctor_reports_a_wish_that_is_not_understood(project, notify, complaint):
    config = project.home / ".config" / "tailhook" / "config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"plates": {"notify": notify}}))
    printed = project.tailhook("doctor").stdout
    if complaint:
        assert complaint in printed
    else:
        assert "plates.notify" not in printed
