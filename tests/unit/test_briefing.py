"""An agent is given the goal and the signals of its loop once: at a prompt, or at the first block."""

import pytest
from support.cases import in_one_test
from support.idle_states import DONE, NOW, frame, looping
from support.own_loops import own_loop

from tailhook.machines import CLAIM, idle, idle_briefing, ralph, ralph_briefing

BEGAN = "2026-01-02T00:00:00Z"
GOAL = "Make the tests pass."


def facts(session_id="mine", goal=GOAL, **fields):
    return idle.Facts(session_id, goal=lambda: goal, own=own_loop(), **fields)


def begun(**fields):
    """Return the frame of a loop that tailhook began. Its agent has had no briefing."""
    return frame(**{"began": BEGAN, "session_id": "mine", **fields})


def briefed(state):
    """Return the session that has had the briefing of the top frame."""
    return state["stack"][-1].get("briefed")


# ---- idle ----------------------------------------------------------------------


@pytest.mark.parametrize("owner", ["mine", CLAIM])
def test_a_prompt_gives_the_goal_the_limit_and_the_signals_and_claims_the_loop(owner):
    found = idle_briefing.brief(looping(begun(session_id=owner)), facts(), NOW)
    assert f"Goal: {GOAL}" in found.reason
    assert "at most 10" in found.reason
    assert all(f"\n  {signal}" in found.reason for signal in idle.SIGNALS["loop"])
    assert (found.outcome, briefed(found.change), found.change["stack"][-1]["session_id"]) == ("allow", "mine", "mine")
    assert found.change["stack"][-1]["iter"] == 1


@in_one_test(
    ("state", "session"),
    [
        (None, "mine"),
        ([], "mine"),
        (looping(stack=[]), "mine"),
        (looping(begun(briefed="mine")), "mine"),
        (looping(frame(session_id="mine")), "mine"),
        (looping(begun(paused="true")), "other"),
        (looping(begun(), age=10**6), "other"),
        (looping(begun(), event="DONE"), "other"),
        (looping(frame(session_id="mine")), "other"),
        (looping(begun()), ""),
        (looping(begun(session_id=CLAIM)), ""),
        (looping(begun(paused="true")), "mine"),
        (looping(begun(), age=10**6), "mine"),
        (looping(begun(), event="DONE"), "mine"),
        (looping(begun(), event="ABORT"), "mine"),
        (looping(begun() | {"iter": "x"}), "mine"),
    ],
)
def test_a_prompt_gives_nothing_if_nothing_is_owed(state, session):
    assert idle_briefing.brief(state, facts(session), NOW) is None


@in_one_test(
    "state", [looping(begun()), looping(begun(briefed="mine")), looping(begun(session_id=None), session_id="mine")]
)
def test_a_prompt_in_another_session_has_a_line_for_the_person_and_changes_nothing(state):
    found = idle_briefing.brief(state, facts("other"), NOW)
    assert (found.outcome, found.change, found.reason) == ("allow", None, "")
    assert "session mine" in found.message
    assert found.message.endswith("tailhook loop adopt")


def test_the_first_block_has_what_is_owed_behind_its_first_line_and_the_next_one_has_not():
    found = idle.decide(looping(begun(issue_id="T-7")), facts(), NOW)
    first, empty, *rest = found.reason.split("\n")
    assert (first[:15], empty) == ("[ITERATION 2/10", "")
    assert rest[:3] == [f"Goal: {GOAL}", "Issue: T-7", rest[2]]
    assert rest[2].startswith("Iteration 2 of at most 10")
    assert rest[-1] == "  <loop-done>STUCK</loop-done>"
    again = idle.decide(found.change, facts(), NOW)
    assert again.reason == "[ITERATION 3/10]" + found.reason.split("]", 1)[1].split("\n")[0] + "\n\nIssue: T-7"


def test_it_is_owed_to_a_session_that_adopted_the_loop():
    adopted = looping(begun(briefed="other"))
    assert idle_briefing.brief(adopted, facts(), NOW) is not None
    assert GOAL in idle.decide(adopted, facts(), NOW).reason


def test_the_goal_is_cut_and_the_signals_are_not():
    for found in (
        idle.decide(looping(begun()), facts(goal="x" * 20_000), NOW),
        idle_briefing.brief(looping(begun()), facts(goal="x" * 20_000), NOW),
    ):
        assert len(found.reason) < 10_000
        assert "<loop-done>STUCK</loop-done>" in found.reason


@pytest.mark.parametrize(("count", "reminds"), [(8, False), (9, True), (10, False), (19, True)])
def test_each_tenth_block_repeats_the_signals_in_one_line(count, reminds):
    reason = idle.decide(looping(begun(briefed="mine") | {"iter": count, "max": 50}), facts(), NOW).reason
    lines = reason.split("\n")
    assert (len(lines) == 3 and all(signal in lines[2] for signal in idle.SIGNALS["loop"])) is reminds
    assert (len(lines) == 1) is not reminds


def test_an_outer_loop_is_explained_again_when_the_inner_one_has_ended():
    state = looping(begun(mode="grind", briefed="mine"), begun(briefed="mine"))
    found = idle.decide(state, facts(signals=lambda: [DONE]), NOW)
    assert (len(found.change["stack"]), briefed(found.change)) == (1, None)
    assert "NO_MORE_ISSUES" in idle_briefing.brief(found.change, facts(), NOW).reason


@pytest.mark.parametrize("count", [1, 9])
def test_a_loop_of_another_program_gets_the_first_line_alone(count):
    reason = idle.decide(looping(frame(session_id="mine", iter=count)), facts(), NOW).reason
    assert (reason.count("\n"), reason[:10]) == (0, "[ITERATION")
    state = looping(frame(mode="grind", briefed="x"), frame())
    assert idle.decide(state, facts(signals=lambda: [DONE]), NOW).change["stack"] == state["stack"][:1]


# ---- ralph -----------------------------------------------------------------------


def page(**values):
    common = {"active": "true", "iteration": "3", "max_iterations": "50", "completion_promise": "GREEN"}
    return {**common, "began": BEGAN, "session_id": "mine", **values}


@pytest.mark.parametrize("owner", ["mine", CLAIM])
def test_a_prompt_gives_the_promise_and_its_tag(owner):
    found = ralph_briefing.brief(page(session_id=owner), GOAL, ralph.Facts("mine", own=own_loop()))
    assert "<promise>GREEN</promise>" in found.reason
    assert GOAL in found.reason
    assert found.change == {"briefed": "mine", **({"session_id": "mine"} if owner == CLAIM else {})}


@in_one_test(
    "state",
    [
        None,
        page(briefed="mine"),
        page(began=None),
        page(session_id="other", active="false"),
        page(session_id="other", began=None),
        page(active="false"),
        page(iteration="x"),
    ],
)
def test_a_prompt_gives_nothing_about_a_ralph_loop_if_nothing_is_owed(state):
    assert ralph_briefing.brief(state, GOAL, ralph.Facts("mine", own=own_loop())) is None


def test_a_prompt_in_another_session_than_that_of_a_ralph_loop_has_a_line_for_the_person():
    found = ralph_briefing.brief(page(session_id="other", briefed="other"), GOAL, ralph.Facts("mine", own=own_loop()))
    assert (found.change, found.reason) == (None, "")
    assert "session other" in found.message
    assert found.message.endswith("tailhook ralph adopt")


def test_the_first_block_of_a_ralph_loop_has_the_promise_behind_the_prompt():
    found = ralph.decide(page(), GOAL, ralph.Facts("mine", own=own_loop()))
    assert found.reason.startswith(f"{GOAL}\n\nRalph iteration 4 of 50.")
    assert "<promise>GREEN</promise>" in found.reason
    assert found.change == {"iteration": "4", "briefed": "mine"}
    again = ralph.decide(page(iteration="4", briefed="mine"), GOAL, ralph.Facts("mine", own=own_loop()))
    assert (again.reason, again.change) == (GOAL, {"iteration": "5"})


def test_a_long_prompt_is_cut_once_so_that_the_promise_is_read():
    prompt = "x" * 20_000
    first = ralph.decide(page(), prompt, ralph.Facts("mine", own=own_loop()))
    assert len(first.reason) < 10_000
    assert "<promise>GREEN</promise>" in first.reason
    assert ralph.decide(page(briefed="mine"), prompt, ralph.Facts("mine", own=own_loop())).reason == prompt


@pytest.mark.parametrize(("count", "reminds"), [("8", False), ("9", True), ("19", True)])
def test_each_tenth_block_of_a_ralph_loop_repeats_the_promise(count, reminds):
    reason = ralph.decide(page(iteration=count, briefed="mine"), GOAL, ralph.Facts("mine", own=own_loop())).reason
    assert ("<promise>GREEN</promise>" in reason) is reminds


@pytest.mark.parametrize("count", ["1", "9"])
def test_a_ralph_loop_of_another_program_gets_its_prompt_alone(count):
    found = ralph.decide(page(began=None, iteration=count), GOAL, ralph.Facts("mine", own=own_loop()))
    assert (found.reason, found.change) == (GOAL, {"iteration": str(int(count) + 1)})
