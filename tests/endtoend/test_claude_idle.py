"""The idle machine in whole sessions of Claude Code."""

from model import Model, bash

DONE = "<loop-done>COMPLETE</loop-done>"
START = bash("tailhook loop start --max 20 'Make the tests pass.'")


def test_a_loop_ends_at_the_signal_and_not_at_one_in_code(claude):
    claude.tailhook("install", "--yes", "--block-cap", "0")
    answers = [
        START,
        "Begun.",
        f"I shall write:\n\n```\n{DONE}\n```\n",
        f"Not yet `{DONE}`.",
        bash("echo from the tool"),
        "Tested.",
        f"All pass.\n\n{DONE}",
    ]
    with Model(*answers) as model:
        session = claude.run(model)
    assert len(model.requests) == len(answers)
    assert [f"[ITERATION {number}/20]" in model.requests[at].said for number, at in ((2, 2), (3, 3), (4, 4), (5, 6))]
    assert session.result["result"].endswith(DONE)
    assert "No loop" in claude.tailhook("loop", "status")
