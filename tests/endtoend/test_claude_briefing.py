"""The agent of Claude Code learns its loop. The person learns that a loop still belongs to the session before."""

import json

import pytest
from model import Model, bash

from tailhook.machines.idle import SIGNALS

GOAL = "Make the tests pass."
ENDS = {"loop": "<loop-done>COMPLETE</loop-done>", "ralph": "<promise>GREEN</promise>"}
START = {
    "loop": f"tailhook loop start '{GOAL}'",
    "ralph": f"tailhook ralph start --completion-promise GREEN '{GOAL}'",
}
groups = pytest.mark.parametrize("group", ENDS)


def knows(model: Model, at: int, group: str) -> tuple[bool, bool]:
    """Return whether a request has the goal, and whether it has the signal that ends the loop."""
    return GOAL in model.requests[at].prompted, ENDS[group] in model.requests[at].prompted


def notices(session) -> list[str]:
    """Return what the person read at prompts."""
    found = [one["attachment"] for one in session.records("attachment")]
    return [one["content"] for one in found if one["type"] == "hook_system_message"]


@pytest.mark.parametrize("mode", ["loop", "grind"])
def test_the_first_request_has_the_goal_and_the_signals_of_a_loop_that_a_person_started(installed, mode):
    installed.tailhook("loop", "start", "--mode", mode, GOAL)
    done = next(iter(SIGNALS[mode]))
    with Model("Begun.", done) as model:
        installed.run(model)
    assert len(model.requests) == 2
    assert GOAL in model.requests[0].prompted
    assert all(signal in model.requests[0].prompted for signal in SIGNALS[mode])
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["event"] == "DONE"


@groups
def test_an_agent_that_starts_its_loop_has_the_goal_and_the_signal_from_the_command(installed, group):
    with Model(bash(START[group]), "Begun.", ENDS[group]) as model:
        installed.run(model)
    assert [knows(model, at, group) for at in (0, 1)] == [(False, False), (True, True)]
    assert len(model.requests) == 3


@groups
def test_an_agent_that_adopts_a_loop_has_them_at_its_first_block(installed, group):
    with Model(bash(START[group]), bash("echo interrupted")) as model:
        installed.run(model, "--max-turns", "2")
    with Model(bash(f"tailhook {group} adopt"), "Now I am on it.", ENDS[group]) as model:
        installed.run(model)
    assert [knows(model, at, group) for at in (0, 1, 2)] == [(False, False), (False, False), (True, True)]
    assert len(model.requests) == 3


def test_an_inner_loop_is_explained_and_then_the_outer_one(installed):
    installed.tailhook("loop", "start", "--mode", "grind", "Take each issue.")
    installed.tailhook("loop", "start", "--push", GOAL)
    done = next(iter(SIGNALS["grind"]))
    with Model("Begun.", ENDS["loop"], "Next.", done) as model:
        installed.turns(model, ["Do the work.", "Go on."])
    assert knows(model, 0, "loop") == (True, True)
    assert ["Take each issue." in one.prompted for one in model.requests] == [False, False, True, True]
    assert [done in one.prompted for one in model.requests] == [False, False, True, True]
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["event"] == "DONE"


@groups
def test_after_a_compaction_the_agent_has_them_again(installed, group):
    with Model(bash(START[group]), "First.", bash("echo interrupted")) as model:
        session = installed.run(model, "--max-turns", "3")
    with Model() as model:
        installed.run(model, prompt="/compact", resume=session.id)
    with Model("Where were we?", ENDS[group]) as model:
        installed.run(model, prompt="Go on.", resume=session.id)
    assert knows(model, 0, group) == (True, True)


@groups
@pytest.mark.parametrize(
    ("prompts", "flags"),
    [(["/clear", "Go on.", "And now?"], []), (["Go on.", "And now?"], ["--fork-session"])],
    ids=["clear", "fork"],
)
def test_a_session_with_a_new_id_reads_once_which_command_takes_the_loop_over(installed, group, prompts, flags):
    with Model(bash(START[group]), bash("echo interrupted")) as model:
        old = installed.run(model, "--max-turns", "2")
    with Model("Hm.", "Hm.") as model:
        new = installed.turns(model, prompts, "--resume", old.id, *flags)
    assert new.id != old.id
    assert len(model.requests) == 2
    [notice] = notices(new)
    assert f"session {old.id}" in notice
    assert notice.endswith(f"tailhook {group} adopt")
    assert all(notice not in one.prompted for one in model.requests)
