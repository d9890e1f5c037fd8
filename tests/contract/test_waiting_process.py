"""Whole hooks of an agent that waits for its background work in a loop."""

import json
import os
import re
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from support.host import assistant
from support.install import write_hooks

from tailhook.hook.event import HookEvent
from tailhook.hook.turns import TranscriptTurn, read_place

SHELL = {"id": "b1", "type": "shell", "status": "running", "description": "tests", "command": "make test"}


@pytest.fixture(params=["loop", "ralph"])
def holding(request, project):
    """Start a loop; return what stops its agent while a shell runs."""
    project.argv = [*project.argv[:-1], "ralph" if request.param == "ralph" else "idle"]
    words = ("--completion-promise", "GREEN") if request.param == "ralph" else ()
    project.as_agent(request.param, "start", *words, "Work.", session="mine").check_returncode()
    project.write(assistant("Begun."))
    return partial(project.stop, "Holding.", background_tasks=[SHELL])


def tool_use(name, at=None):
    """Return the record of a tool's use, by default after every stop so far."""
    record = assistant("I look.", at=time.time() + 1 if at is None else at)
    record["message"]["content"].append({"type": "tool_use", "id": "t1", "name": name, "input": {}})
    return record


def test_holding_costs_one_iteration_and_the_person_reads_what_is_waited_for(project, holding):
    first = holding()
    assert "In the background: shell `make test`" in first.answer["reason"]
    for _ in range(3):
        project.write(assistant("Holding."))
        found = holding()
        assert found.allowed
        assert found.state == first.state
    assert holding.func("Holding.", "--announce", background_tasks=[SHELL]).answer == {
        "systemMessage": "tailhook: the loop waits for shell `make test`, and goes on when that ends. "
        "To go on without it, send the agent a prompt."
    }


def test_a_tool_between_two_stops_is_work(project, holding):
    assert not holding().allowed
    project.write(tool_use("Read"), assistant("Still."))
    assert not holding().allowed
    assert holding().allowed


def test_a_tool_of_the_turn_before_that_the_host_writes_late_does_not_count(project, holding):
    feedback = {"type": "user", "isMeta": True, "message": {"role": "user", "content": "Stop hook feedback: go on."}}
    late = tool_use("Bash", at=time.time())
    assert not holding().allowed
    project.write(late, feedback, assistant("Holding.", id="msg_2"))
    assert holding().allowed
    project.write(tool_use("Bash"), assistant("Holding.", id="msg_3"))
    assert not holding().allowed


def test_when_the_work_has_ended_the_loop_goes_on(project, holding):
    assert [holding().allowed for _ in range(2)] == [False, True]
    assert not project.stop("Hm.", background_tasks=[]).allowed


def test_without_a_transcript_no_tool_was_used(project, holding):
    project.transcript.unlink()
    assert [holding().allowed for _ in range(2)] == [False, True]


def test_another_transcript_counts_from_the_beginning(project, holding):
    project.write(*[assistant("Long.")] * 50)
    assert not holding().allowed
    project.transcript.write_text("")
    assert not holding().allowed


@pytest.mark.parametrize("time_of_place", ["nan", "inf", "-inf", "-1", "1e999", ""])
def test_a_saved_place_without_a_time_is_not_one_so_the_agent_has_worked(time_of_place):
    turn = TranscriptTurn(HookEvent({}, "Stop"))
    assert read_place(f"10@{time_of_place}") is None
    assert turn.used_tools(f"10@{time_of_place}")
    assert list(turn.calls(f"10@{time_of_place}")) == []


def test_the_first_turn_of_a_loop_is_read_64_mib_back_at_most(project):
    project.write(assistant("Long."))
    os.truncate(project.transcript, 10 << 30)
    turn = TranscriptTurn(HookEvent({"transcript_path": str(project.transcript)}, "Stop"))
    assert turn.place_at("2026-01-02T00:00:00Z").partition("@")[0] == str((10 << 30) - (64 << 20))


@pytest.mark.skipif(sys.platform != "linux", reason="the system counts the read bytes of a process there")
def test_two_questions_about_one_turn_read_its_part_of_the_transcript_once(project):
    failed = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "Error: no rule"}
    project.write(*[assistant("Long words. " * 1000)] * 200)
    place = f"{project.transcript.stat().st_size}@0.000"
    project.write(tool_use("Bash"), {"type": "user", "message": {"role": "user", "content": [failed]}})
    project.write(*[assistant("Long words. " * 1000)] * 200)
    size = project.transcript.stat().st_size - int(place.partition("@")[0])
    turn = TranscriptTurn(HookEvent({"transcript_path": str(project.transcript)}, "Stop"))
    before = bytes_read()
    assert list(turn.calls(place)) == [("Bash", "{}", "Error: no rule")]
    assert turn.used_tools(place)
    assert list(turn.calls(place)) == [("Bash", "{}", "Error: no rule")]
    assert size < bytes_read() - before < 1.5 * size


def bytes_read():
    """Return how many bytes this process has read from files so far."""
    return int(Path("/proc/self/io").read_text().partition("rchar: ")[2].partition("\n")[0])


def test_a_prompt_goes_on_without_work_that_never_ends(project, holding):
    """A person gives the prompt that the notice names; the agent works, so the next stop is an iteration."""
    assert [holding().allowed for _ in range(3)] == [False, True, True]
    project.write(
        {"type": "user", "message": {"role": "user", "content": "Go on."}}, tool_use("Bash"), assistant("On.")
    )
    assert not holding().allowed


@pytest.mark.parametrize(
    ("prompt", "is_persons"),
    [
        ({"prompt": "Go on."}, True),
        ({"prompt": "Go on.", "source": "sdk"}, True),
        ({"prompt": "<task-notification>\n<task-id>b1</task-id>"}, False),
        ({"prompt": "It has printed a line.", "source": "system"}, False),
    ],
)
def test_after_a_persons_prompt_the_waiting_begins_again(project, holding, prompt, is_persons):
    assert [holding().allowed for _ in range(3)] == [False, True, True]
    asked = project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit", **prompt)).encode())
    assert asked.allowed
    project.write(assistant("Holding.", id="msg_2"))
    assert [holding().allowed for _ in range(3)] == [not is_persons, True, True]


def test_status_names_what_the_loop_waits_for_and_since_when(project, holding):
    write_hooks(project)
    group = "ralph" if project.argv[-1] == "ralph" else "loop"
    assert "waits for" not in project.as_agent(group, "status", session="mine").stdout
    assert [holding().allowed for _ in range(2)] == [False, True]
    shown = project.as_agent(group, "status", session="mine").stdout
    since = (
        r"At the next stop the agent may stop: the loop has waited for shell `make test` since 20\S+Z\. "
        r"If that has ended, "
    )
    assert re.search(since, shown)
    if group == "loop":
        assert json.loads(project.as_agent(group, "status", "--json").stdout)["verdict"]["decision"] == "allow"
    assert not project.stop("Hm.", background_tasks=[]).allowed
    assert "waits for" not in project.as_agent(group, "status", session="mine").stdout
