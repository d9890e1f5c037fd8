"""Loops beside the goals of Claude Code and Codex (`/goal`), as docs/goal.md describes them."""

import json
import os
import re

import pytest
from model import Model, bash, use
from other_hosts import Codex

DONE = "<loop-done>COMPLETE</loop-done>"
PROMPT = "\u203a"  # the sign of Codex's prompt
GOAL = "/goal all tests pass"
LOOP = "tailhook loop start --max 20 'Make the tests pass.'"
UNMET, MET = '{"ok": false, "reason": "no test ran"}', '{"ok": true, "reason": "it holds"}'
IMPOSSIBLE = '{"ok": false, "impossible": true, "reason": "there are no tests"}'


def goals_of(session) -> list[dict]:
    """Return what Claude Code noted about the session's goal, oldest first."""
    notes = [one["attachment"] for one in session.records("attachment")]
    return [one for one in notes if one["type"] == "goal_status" and not one.get("sentinel")]


def iteration_in(request) -> int:
    """Return the iteration in the last message of a request, 0 without one."""
    found = re.search(r"\[ITERATION (\d+)/20\]", request.said)
    return int(found[1]) if found else 0


# ---- Claude Code -------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "judged", "iterations"),
    [
        (["First.", "Second.", DONE, "Fourth."], [UNMET, UNMET, UNMET, MET], [0, 0, 2, 3, 0]),
        (["First.", "Second.", DONE], [UNMET, MET], [0, 0, 2, 3]),
    ],
    ids=["the loop ends first", "the goal ends first"],
)
def test_an_agent_with_a_goal_and_a_loop_stops_after_the_end_of_both(installed, answers, judged, iterations):
    with Model(bash(LOOP), *answers, asides=judged) as model:
        session = installed.run(model, prompt=GOAL)
    assert [iteration_in(one) for one in model.requests] == iterations
    assert goals_of(session)[-1]["met"]
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["reason"] == "COMPLETE"


def test_of_two_blocks_at_one_stop_the_agent_reads_both_reasons(installed):
    with Model(bash(LOOP), "First.", DONE, asides=[UNMET, MET]) as model:
        installed.run(model, prompt=GOAL)
    assert all(words in model.requests[2].prompted for words in ("[ITERATION 2/20]", "no test ran"))


def test_the_judge_of_a_goal_gets_the_whole_conversation_and_no_tools(installed):
    with Model("First step.", "Second step.", "Third step.", asides=[UNMET, UNMET, MET]) as model:
        installed.run(model, prompt=GOAL)
    said = ["First step.", "Second step.", "Third step."]
    assert [[words in one.prompted for words in said] for one in model.others] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert not any(one.body.get("tools") for one in model.others)


def test_a_judge_whose_answer_is_not_readable_lets_the_agent_stop_and_the_goal_stays(installed):
    with Model("First.", asides=["Not JSON."]) as model:
        session = installed.run(model, prompt=GOAL)
    assert len(model.requests) == 1
    with Model("Second.", "Third.", asides=[UNMET, MET]) as model:
        session = installed.run(model, prompt="Go on.", resume=session.id)
    assert len(model.requests) == 2
    assert goals_of(session)[-1]["met"]


def test_a_goal_that_the_judge_calls_impossible_ends(installed):
    with Model("First.", asides=[IMPOSSIBLE]) as model:
        session = installed.run(model, prompt=GOAL)
    assert len(model.requests) == 1
    assert goals_of(session)[-1]["failed"]


def test_while_a_shell_runs_the_goal_is_not_judged_and_the_loop_asks_once(installed):
    stops = "grep -c stop_hook_summary ~/.claude/projects/*/*.jsonl"  # the host notes each after its hooks
    shell = f"until [ $({stops}) -ge 2 ]; do sleep 0.1; done"
    waiting = use("Bash", command=shell, description="w", run_in_background=True)
    with Model(bash(LOOP), [waiting], "Waiting.", "Still waiting.", DONE, asides=[MET]) as model:
        session = installed.run(model, prompt=GOAL)
    assert [iteration_in(one) for one in model.requests[:4]] == [0, 0, 0, 2]
    assert len(model.others) == len(goals_of(session)) == 1


def test_a_goal_ends_its_turn_at_the_hosts_cap_too(claude):
    with Model(*(f"Step {letter}." for letter in "abcdefghijkl"), asides=[UNMET] * 12) as model:
        claude.run(model, prompt=GOAL)
    assert len(model.requests) == 9


# ---- Codex -------------------------------------------------------------------


def test_a_goal_of_codex_goes_on_after_the_loop_has_ended(tmp_path, report):
    codex = Codex(tmp_path / "home", tmp_path / "project")
    codex.install()
    answers = ["First.", "Second.", DONE, "Third.", [use("update_goal", status="complete")], "The goal is reached."]
    with codex.model(codex.bash(LOOP), *answers) as model, codex.terminal(model) as terminal:
        terminal.until(PROMPT)
        os.write(terminal.fd, GOAL.encode())
        terminal.until("pass")
        os.write(terminal.fd, b"\r")
        terminal.until("Goal achieved")
    assert [iteration_in(one) for one in model.requests[:6]] == [0, 0, 2, 3, 0, 0]
    assert [("update_goal" in one.said, "all tests pass" in one.prompted) for one in model.requests[4:6]] == [
        (True, True)
    ] * 2
    report(f"Codex: each turn of a goal begins with {len(model.requests[4].said)} characters about it")
    assert "UserPromptSubmit" not in [one["hook_event_name"] for one in codex.sent()]
