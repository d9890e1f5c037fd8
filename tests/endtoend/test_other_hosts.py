"""The idle and the ralph machine in whole sessions of Codex, Gemini and Copilot CLI."""

import pytest
from hosts import host_path
from other_hosts import Codex, Copilot, Gemini

DONE = "<loop-done>COMPLETE</loop-done>"


@pytest.fixture(params=[Codex, Gemini, Copilot], ids=lambda kind: kind.name)
def host(request, tmp_path):
    """Each host, with no hook yet."""
    if not host_path(request.param.name).exists():
        pytest.skip(f"{request.param.__doc__} is not installed: `make host` fetches it")
    return request.param(tmp_path / "home", tmp_path / "project")


def test_a_loop_ends_at_the_signal_and_not_at_one_in_code(host):
    host.install("--exit", "0", "--announce")
    answers = [
        host.bash("tailhook loop start --max 20 'Make the tests pass.'"),
        "Begun.",
        f"I shall write:\n\n```\n{DONE}\n```\n",
        f"Not yet `{DONE}`.",
        host.bash("echo from the tool"),
        "Tested.",
        f"All pass.\n\n{DONE}",
    ]
    with host.model(*answers) as model:
        host.run(model)
    assert len(model.requests) == len(answers)
    assert "Loop started" in model.requests[1].said
    assert [f"[ITERATION {number}/20]" in model.requests[at].said for number, at in ((2, 2), (3, 3), (4, 4), (5, 6))]
    assert "No loop" in host.tailhook("loop", "status")


def test_a_fence_that_stays_open_hides_its_own_answer_alone(host):
    host.install("--exit", "0", "--announce")
    host.tailhook("loop", "start", "Make the tests pass.")
    with host.model(f"```\n{DONE}", DONE) as model:
        host.run(model)
    assert len(model.requests) == 2
    assert "No loop" in host.tailhook("loop", "status")


def test_a_ralph_loop_ends_when_its_promise_is_kept(host):
    host.install("--exit", "0", "--announce", machines="idle,ralph")
    host.tailhook("ralph", "start", "--completion-promise", "TESTS GREEN", "Make the tests pass.")
    with host.model("Hm.", "Not `<promise>TESTS GREEN</promise>` yet.", "<promise>TESTS GREEN</promise>") as model:
        host.run(model)
    assert ["Make the tests pass." in one.said for one in model.requests] == [False, True, True]
    assert "No ralph loop" in host.tailhook("ralph", "status")


def test_another_sessions_loop_is_left_alone(host):
    host.install("--exit", "0", "--announce")
    host.tailhook("loop", "start", "Make the tests pass.", CLAUDE_CODE_SESSION_ID="another")
    with host.model("Hm.") as model:
        host.run(model)
    assert len(model.requests) == 1
    assert "Iteration 1 of" in host.tailhook("loop", "status")
