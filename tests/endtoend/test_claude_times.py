"""What the hooks cost, as Claude Code itself notes it: `durationMs`, which it has for the stops that end a turn."""

import json
from statistics import median

import pytest
from model import Model, bash

from tailhook.pool.installation import real_interpreter

TURNS = 20
START, DONE = bash("tailhook loop start --replace Work."), "<loop-done>COMPLETE</loop-done>"
CASES = {
    "no state": ((), ["Hello."]),
    "a loop that completes": ((), [START, DONE]),
    "memory asked, with nothing to save": (("--with", "memory"), ["Hello."]),
}


def stop_times(claude, answers: list) -> list[int]:
    """Return the milliseconds of the Stop hook in each turn of a session with the given answers."""
    with Model(*answers * TURNS) as model:
        session = claude.turns(model, ["Go on."] * TURNS)
    assert len(model.requests) == len(answers) * TURNS
    return [hook["durationMs"] for hook in session.hooks() if "durationMs" in hook]


def test_an_interpreter_that_does_nothing(claude, report):
    hook = {"type": "command", "command": real_interpreter(), "args": ["-I", "-S", "-c", "pass"]}
    claude.settings.parent.mkdir()
    claude.settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    times = stop_times(claude, ["Hello."])
    assert len(times) == TURNS
    report(f"durationMs, median of {TURNS}: bare Python {median(times):.0f} ms")


@pytest.mark.parametrize("case", CASES)
def test_a_hook(claude, case, report):
    flags, answers = CASES[case]
    claude.tailhook("install", "--yes", *flags)
    times = stop_times(claude, answers)
    assert len(times) == TURNS
    report(f"durationMs, median of {TURNS}: {case} {median(times):.0f} ms")
