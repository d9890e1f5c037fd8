"""What a row shows of a session: its headline, what it asks, does or did last, and how many sub-agents work."""

import json
import re

import pytest
from support.cases import in_one_test
from support.plate_reports import report

from tailhook.machines.plates import COMMAND_TOOLS, Event, EventKind, OpenTool
from tailhook.plates.app import WEB
from tailhook.plates.display import describe_plate, read_error


def shown(database):
    """Return the session as the API shows it."""
    return describe_plate(database.get("s"), "p")


def parts(database):
    """Return the parts of the session's activity that are not empty."""
    return {name: value for name, value in shown(database)["activity"].items() if value}


QUESTION = {"question": "Which database?", "choices": ["PostgreSQL", "SQLite"]}
ACTIVITIES = [
    ([("prompt_submit", {})], {"words": "thinking"}),
    ([("tool_start:Bash", {"command": "make test"})], {"tool": "Bash", "text": "make test", "is_code": True}),
    ([("tool_start:Edit", {"file_path": "/p/src/app.py"})], {"tool": "Edit", "text": "src/app.py", "is_code": True}),
    ([("tool_start:Edit", {"file_path": "/pp/app.py"})], {"tool": "Edit", "text": "/pp/app.py", "is_code": True}),
    ([("tool_start:Grep", {"pattern": "x+"})], {"tool": "Grep", "text": "x+"}),
    ([("tool_start:Task", {"description": "Look at it"})], {"tool": "Task", "text": "Look at it"}),
    (
        [("tool_start:AskUserQuestion", QUESTION)],
        {"words": "asks", "text": "Which database?", "choices": ["PostgreSQL", "SQLite"]},
    ),
    (
        [("tool_start:AskUserQuestion", {**QUESTION, "choices": [1, "a"]})],
        {"words": "asks", "text": "Which database?", "choices": ["a"]},
    ),
    ([("tool_start:AskUserQuestion", {})], {"words": "asks"}),
    ([("tool_start:ExitPlanMode", {"plan": "Two steps"})], {"words": "shows a plan", "text": "Two steps"}),
    (
        [("permission_asked:Bash", {"command": "rm -r build"})],
        {"words": "asks to run", "text": "rm -r build", "is_code": True},
    ),
    (
        [("permission_asked:Write", {"file_path": "/p/a"})],
        {"words": "asks to use", "tool": "Write", "text": "a", "is_code": True},
    ),
    ([("permission_asked", {})], {"words": "asks for a permission"}),
    ([("prompt_submit", {}), ("input_asked:mcp__tracker", {})], {"words": "asks", "tool": "tracker"}),
    ([("tool_start:Bash", {"command": "make"}), ("tool_call:Bash", {})], {"words": "thinking"}),
]


@in_one_test(("events", "expected"), ACTIVITIES)
def test_an_activity(database, events, expected):
    database.delete("s")
    for kind, params in events:
        word, _, tool = kind.partition(":")
        database.record(report(word, tool_name=tool or None, tool_params=params))
    assert parts(database) == expected


@in_one_test("tool", COMMAND_TOOLS)
def test_a_command_is_shown_alike_for_every_host(database, tool):
    database.record(report(f"tool_start:{tool}", tool_params={"command": "rm -r build"}))
    assert parts(database) == {"tool": tool, "text": "rm -r build", "is_code": True}
    database.record(report("permission_asked"))
    assert parts(database) == {"words": "asks to run", "text": "rm -r build", "is_code": True}
    database.delete("s")


def test_the_web_board_knows_the_same_shells():
    (names,) = re.findall(r"const SHELLS = (\[.*?\]);", (WEB / "rows.js").read_text(encoding="utf-8"))
    assert json.loads(names) == list(COMMAND_TOOLS)


def test_the_newest_tool_of_the_sessions_own_agent_is_shown(database):
    for tool_use_id, fields in {"a": {}, "b": {}, "c": {"agent_id": "x"}}.items():
        database.record(report(f"tool_start:{tool_use_id}", tool_use_id=tool_use_id, **fields))
    assert parts(database) == {"tool": "b"}
    database.record(report("tool_call", tool_name="b", tool_use_id="b"))
    assert parts(database) == {"tool": "a"}


def test_a_question_keeps_its_choices_while_other_events_come(database):
    database.record(report("tool_start:AskUserQuestion", tool_use_id="a", tool_params=QUESTION))
    database.record(report("permission_asked", tool_name="AskUserQuestion", tool_params=QUESTION))
    database.record(report("tool_start:Bash", tool_use_id="b"))
    database.record(report("tool_call", tool_name="Bash", tool_use_id="b"))
    assert parts(database)["choices"] == QUESTION["choices"]
    database.record(report("tool_call", tool_name="AskUserQuestion", tool_use_id="a"))
    assert parts(database) == {"words": "thinking"}


def test_an_error_of_the_api_is_shown_in_words(database):
    database.record(report("stop_failure", error='API Error: 529 {"type":"error","error":{"message":"Overloaded"}}'))
    assert parts(database) == {"words": "waits for you; the API refused:", "text": "Overloaded (529)"}
    database.record(report("stop:out of tokens"))
    assert parts(database) == {"words": "waits for you; it stopped:", "text": "out of tokens"}


@pytest.mark.parametrize("host", ["cursor", "antigravity"])
def test_a_failed_turn_of_a_host_that_names_no_cause_is_not_put_down_to_the_api(database, host):
    database.record(report("stop_failure", agent_program=host))
    assert parts(database) == {"words": "waits for you; it stopped"}


ERRORS = [
    ("rate_limit", "rate_limit"),
    ("", ""),
    ("API Error: 500 {", "API Error: 500"),
    ('{"error":{"type":"x"}}', '{"error":{"type":"x"}}'),
    ('{"error":{"message":"No"}}', "No"),
    ('Request 12345 failed: {"message":"No"}', "No"),
]


@in_one_test(("error", "expected"), ERRORS)
def test_an_error_without_its_json(error, expected):
    assert read_error(error) == expected


def test_an_interruption_is_shown(database):
    database.record(report("prompt_submit"))
    database.record(report("interrupted"))
    assert parts(database) == {"words": "interrupted"}


# ---- the headline ------------------------------------------------------------


def test_the_headline_is_the_title_otherwise_the_last_prompt_of_a_person(database):
    database.record(report("session_start"))
    assert shown(database)["headline"] == ""
    database.record(report("prompt_submit", prompt="Fix the race"))
    database.record(report("tool_start:Bash"))
    database.record(report("prompt_submit", by_host=True))
    assert shown(database)["headline"] == "Fix the race"
    assert "fix the race" in shown(database)["search"].split("\n")
    database.record(report("prompt_submit", prompt="Now the docs"))
    assert shown(database)["headline"] == "Now the docs"
    database.record(report("tool_call", title="Refunds"))
    assert shown(database)["headline"] == "Refunds"


@pytest.mark.parametrize("field", ["prompt", "reply"])
@pytest.mark.parametrize("words", ["a\nb\x1b[31m\u202e", "x" * 90_000, "deploy --token abcdefgh1234"])
def test_a_prompt_and_a_message_are_one_short_line_without_secrets(database, field, words):
    database.record(report("stop" if field == "reply" else "prompt_submit", **{field: words}))
    found = database.get("s")[field]
    assert len(found) <= 200
    assert found.isprintable()
    assert "abcdefgh1234" not in found


@pytest.mark.parametrize(
    ("kind", "words", "text"),
    [
        ("stop_failure:Overloaded", "waits for you; the API refused:", "Overloaded"),
        ("stop:Killed", "waits for you; it stopped:", "Killed"),
        ("interrupted", "interrupted", ""),
        ("stop_paused", "loop paused", ""),
    ],
)
@pytest.mark.parametrize("later", ["turn_ended", "subagent_stop"])
def test_what_comes_after_a_turn_does_not_hide_how_it_ended(database, kind, words, text, later):
    database.record(report("prompt_submit"))
    for one in (kind, later):
        database.record(report(one))
        found = shown(database)["activity"]
        assert (found["words"], found["text"]) == (words, text)


@pytest.mark.parametrize(("kind", "words"), [("interrupted", "interrupted"), ("stop_paused", "loop paused")])
def test_the_last_sub_agents_end_does_not_hide_how_the_turn_ended(database, kind, words):
    for finds in (False, True):
        database.record(report("prompt_submit"))
        database.record(report("subagent_start", agent_id="a", transcript_path="/t"))
        database.record(report(kind))
        if finds:
            assert database.apply(database.get("s"), Event(EventKind.SUBAGENT_STOP), tool=OpenTool("", "", "", "a"))
        else:
            database.record(report("subagent_stop", agent_id="a"))
        assert (shown(database)["status"].value, shown(database)["activity"]["words"]) == ("idle", words)


def test_a_long_command_of_another_program_ends_with_an_ellipsis(database):
    for length in (200, 201):
        command = "make " + "x" * (length - 5)
        database.record(report("tool_start:Bash", tool_params={"command": command}))
        text = shown(database)["activity"]["text"]
        assert text == (command if length == 200 else command[:199] + "…")


# ---- sub-agents --------------------------------------------------------------


def test_the_sub_agents_that_work_are_counted(database):
    database.record(report("prompt_submit"))
    database.record(report("subagent_start", agent_id="a", transcript_path="/t"))
    for tool_use_id, agent_id in (("1", "a"), ("2", "b"), ("3", "b")):
        database.record(report("tool_start:Read", tool_use_id=tool_use_id, agent_id=agent_id))
    database.record(report("input_asked:mcp__tracker"))
    assert shown(database)["agents"] == 2
    database.record(report("subagent_stop", agent_id="b"))
    assert shown(database)["agents"] == 1
    database.record(report("subagent_stop", agent_id="a"))
    assert shown(database)["agents"] == 0
