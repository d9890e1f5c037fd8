"""The plugin in whole sessions of Claude Code."""

from pathlib import Path

from model import Model, bash

PLUGIN = str(Path(__file__).parents[2] / "plugin")


def test_its_hooks_keep_a_loop_going(claude):
    with Model(bash("tailhook loop start Work."), "One.", "<loop-done>COMPLETE</loop-done>") as model:
        claude.run(model, "--plugin-dir", PLUGIN)
    assert len(model.requests) == 3
    assert "[ITERATION 2/10]" in model.requests[2].said


def test_its_commands_reach_the_agent(claude):
    with Model("Understood.") as model:
        claude.run(model, "--plugin-dir", PLUGIN, prompt="/tailhook:loop Make the tests pass.")
    assert "tailhook loop start" in model.requests[0].prompted
    assert "Make the tests pass." in model.requests[0].prompted


def test_it_prints_plainly_that_tailhook_is_missing(claude):
    claude.env["PATH"] = "/usr/bin:/bin"
    with Model("One.") as model:
        session = claude.run(model, "--plugin-dir", PLUGIN)
    assert len(model.requests) == 1
    assert "tailhook is not installed" in session.transcript.read_text()
