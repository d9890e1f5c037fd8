"""What a session waits for, whole, for the details."""

import json

import pytest
from support.host import assistant
from support.plate_reports import report
from support.timed_records import result, write
from support.usual_secrets import SECRETS, is_shown, written

from tailhook.plates.asked import MAX_ASKED_CHARS, MAX_INPUTS, MAX_SHOWN_CHOICES, read_asked

LONG = "\n".join(f"echo line {number} of a command that no row can show" for number in range(50))
QUESTIONS = {
    "questions": [
        {
            "header": "Store",
            "question": "Which database?\nIt is for the tests.",
            "multiSelect": True,
            "options": [{"label": "PostgreSQL", "description": "a server\nof its own"}, {"label": "SQLite"}],
        },
        {"question": "Which port?", "options": ["1", {"label": 2}, {"label": "2"}]},
    ]
}


def use(name, given, id="a", **fields):
    """Return a record with the use of a tool."""
    one = {**assistant(id=id), **fields}
    one["message"]["content"] = [{"type": "tool_use", "id": id, "name": name, "input": given}]
    return json.dumps(one)


@pytest.fixture
def asked(database, tmp_path):
    """Return a function that lets a session wait for a tool, and returns what the details show.

    records: of the transcript.
    """

    def ask(name, *records, params=None, can_read=True, id="a", kind="permission_asked"):
        path = write(tmp_path / "t.jsonl", *records)
        fields = {"tool_name": name, "tool_params": params, "transcript_path": path}
        database.record(report("tool_start", tool_use_id=id, **fields))
        if kind != "tool_start":
            database.record(report(kind, **fields))
        return read_asked(database.get("s"), can_read)

    return ask


def test_a_whole_command_is_shown_with_its_lines_and_the_tools_other_inputs(asked):
    given = {"command": LONG, "timeout": 5000, "description": "Echo"}
    found = asked("Bash", use("Bash", given), params={"command": LONG[:200]})
    assert (found["words"], found["tool"]) == ("asks to run", "")
    assert [(one["name"], one["text"]) for one in found["inputs"]] == [
        ("command", LONG),
        ("timeout", "5000"),
        ("description", "Echo"),
    ]


def test_all_questions_are_shown_with_all_choices_and_their_descriptions(asked):
    found = asked("AskUserQuestion", use("AskUserQuestion", QUESTIONS), kind="tool_start")
    assert found["words"] == "asks"
    assert found["questions"] == [
        {
            "header": "Store",
            "text": "Which database?\nIt is for the tests.",
            "takes_many": True,
            "choices": [
                {"label": "PostgreSQL", "description": "a server\nof its own"},
                {"label": "SQLite", "description": ""},
            ],
        },
        {
            "header": "",
            "text": "Which port?",
            "takes_many": False,
            "choices": [{"label": "1", "description": ""}, {"label": "2", "description": ""}],
        },
    ]


def test_a_plan_is_markdown(asked):
    found = asked("ExitPlanMode", use("ExitPlanMode", {"plan": "# Move\n\n1. `a`"}), kind="tool_start")
    assert (found["words"], [block["kind"] for block in found["plan"]]) == ("shows a plan", ["heading", "item"])


def test_of_parallel_uses_the_awaited_one_is_shown(asked):
    records = [use("Bash", {"command": one}, id=one) for one in ("make", "ls", "rm")]
    found = asked("Bash", *records, params={"command": "ls"}, id="ls")
    assert found["inputs"] == [{"name": "command", "text": "ls"}]


def test_without_an_id_the_use_with_the_reported_subject_is_shown(asked):
    records = [use("Bash", {"command": one, "timeout": 1}, id=one) for one in ("make", "ls", "rm")]
    found = asked("Bash", *records, params={"command": "ls"}, id=None)
    assert [one["text"] for one in found["inputs"]] == ["ls", "1"]


@pytest.mark.parametrize(
    "records",
    [
        [],
        ["{"],
        [use("Bash", {"command": "other"}, id="b")],
        [use("Edit", {"command": "other"})],
        [use("Bash", {"command": "other"}), result("a")],
        [use("Bash", ["other"])],
    ],
    ids=["no records", "torn", "another id", "another tool", "it has a result", "not an object"],
)
def test_without_the_use_in_the_transcript_the_reported_beginning_is_shown(asked, records):
    assert asked("Bash", *records, params={"command": "make"})["inputs"] == [{"name": "", "text": "make"}]


def test_a_transcript_of_another_computer_is_not_read(asked):
    choices = {"question": "Which?", "choices": ["x", "y"]}
    found = asked(
        "AskUserQuestion", use("AskUserQuestion", QUESTIONS), params=choices, can_read=False, kind="tool_start"
    )
    [question] = found["questions"]
    assert (question["text"], [one["label"] for one in question["choices"]]) == ("Which?", ["x", "y"])


def test_a_sub_agents_question_is_read_from_its_own_transcript(database, tmp_path):
    path = write(tmp_path / "t.jsonl")
    (tmp_path / "t/subagents").mkdir(parents=True)
    write(tmp_path / "t/subagents/agent-x.jsonl", use("Bash", {"command": LONG}, isSidechain=True, agentId="x"))
    fields = {"tool_name": "Bash", "tool_params": {"command": LONG[:200]}, "transcript_path": path, "agent_id": "x"}
    database.record(report("tool_start", tool_use_id="a", **fields))
    database.record(report("permission_asked", **fields))
    assert read_asked(database.get("s"), True)["inputs"] == [{"name": "command", "text": LONG}]


def test_of_a_tool_with_many_inputs_it_is_shown_how_many_are_left_out(asked):
    given = {f"name-{number}": f"value {number}" for number in range(MAX_INPUTS + 3)}
    *shown, last = asked("mcp__db__fill", use("mcp__db__fill", given))["inputs"]
    assert [one["name"] for one in shown] == list(given)[:MAX_INPUTS]
    assert last == {"name": "…", "text": "3 more, not shown"}


def test_a_session_that_waits_for_nothing_asks_nothing(database):
    database.record(report("tool_start", tool_name="Bash", tool_params={"command": "make"}))
    assert read_asked(database.get("s"), True) is None


def test_secrets_are_masked_wherever_they_stand(asked):
    for name in SECRETS:
        text = written(name)[1]
        given = {"command": text, "more": {"lines": [text]}}
        assert not is_shown(name, json.dumps(asked("Bash", use("Bash", given)))), name
        questions = {
            "questions": [{"question": text, "header": text, "options": [{"label": text, "description": text}]}]
        }
        assert not is_shown(name, json.dumps(asked("Bash", use("Bash", questions)))), name
    assert asked("Bash", use("Bash", {"password": "hunter2"}))["inputs"] == [{"name": "password", "text": "[secret]"}]


def test_texts_and_choices_have_a_number_at_most(asked):
    many = {"question": "?", "options": [{"label": str(one)} for one in range(999)]}
    given = {"questions": [many] * 12}
    found = asked("AskUserQuestion", use("AskUserQuestion", given), kind="tool_start")
    assert [len(one["choices"]) for one in found["questions"]] == [MAX_SHOWN_CHOICES] * 10
    found = asked("Bash", use("Bash", {"command": "é" * 99_999}, id="b"), id="b")
    assert len(found["inputs"][0]["text"]) == MAX_ASKED_CHARS
