"""A loop with a budget in whole sessions of Claude Code. Each response of the model costs two tokens."""

import json

import pytest
from model import Model, bash, use

LAST_TURN = "This is the last turn of the loop, because its budget is spent:"
AGENT = [use("Agent", description="look", prompt="Look around.", subagent_type="general-purpose")]
SUB_AGENT = [*(bash(f"echo {number}") for number in range(5)), "I have looked around."]


def asked(model: Model) -> list[int]:
    """Return the numbers of the requests that ask the agent to wrap up."""
    return [number for number, one in enumerate(model.requests) if LAST_TURN in one.said]


def announced(session) -> str:
    """Return what the person read from hooks."""
    return json.dumps([*session.records("system"), *session.records("attachment"), session.result])


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_the_tokens_of_the_session_and_its_sub_agent_end_a_loop_after_one_turn_to_wrap_up(installed, group):
    installed.tailhook(group, "start", "--tokens", "16", "Make the tests pass.")
    answers = [AGENT, *SUB_AGENT, *(f"Step {letter}." for letter in "abcdef")]
    with Model(*answers) as model:
        session = installed.run(model)
    assert "Budget: 16 tokens" in model.requests[0].prompted
    [number] = asked(model)
    # Eight responses cost 16 tokens. The transcript may lack the newest ones when the hook runs. Without those of the
    # sub-agent it would be the fourteenth request. The host may wake the session once more when that has ended.
    assert 8 <= number < 13
    assert len(model.requests) <= number + 2
    found = json.loads(installed.tailhook(group, "status", "--json"))
    assert (found["ended"] if group == "ralph" else found["state"])["reason"] == "TOKEN_LIMIT"
    assert "its budget is spent: 1" in announced(session)


def test_a_signal_in_the_turn_to_wrap_up_is_the_reason_of_the_end(installed):
    installed.tailhook("loop", "start", "--tokens", "1", "Make the tests pass.")

    def step(request):
        return "<loop-done>COMPLETE</loop-done>" if LAST_TURN in request.said else "Step."

    with Model(*[step] * 6) as model:
        installed.run(model)
    assert asked(model) == [len(model.requests) - 1]
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["reason"] == "COMPLETE"


def test_a_resumed_session_counts_what_usage_counts_but_for_the_response_that_is_being_written(installed):
    installed.tailhook("loop", "start", "--tokens", "100000", "Make the tests pass.")
    with Model(AGENT, *SUB_AGENT, "Step a.", bash("echo interrupted")) as model:
        session = installed.run(model, "--max-turns", "3")
    with Model("Step b.", bash("echo interrupted")) as model:
        session = installed.run(model, "--max-turns", "2", resume=session.id)
    counted = json.loads(installed.tailhook("loop", "status", "--json"))["budgets"]["tokens"]["spent"]
    used = json.loads(installed.tailhook("usage", "--json"))["total"]
    after = 2  # tokens of the response after the last stop
    assert used["input_tokens"] + used["output_tokens"] - after - counted in (0, 2)
