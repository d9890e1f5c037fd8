"""Loops with checks in whole sessions of Claude Code, and gate at the end of a loop."""

import json
import re

import pytest
from model import Model, bash, use

DONE = {"loop": "<loop-done>COMPLETE</loop-done>", "ralph": "<promise>GREEN</promise>"}
MISSING = re.compile(r"- `[a-z ]+`: it has not run successfully since ([^`]*?) at [0-9:]{5}\.")


def start(group, *flags):
    words = ("--completion-promise", "GREEN") if group == "ralph" else ("--max", "20")
    return bash(f"tailhook {group} start {' '.join((*words, *flags))} 'Write it.'")


def write(claude, name):
    return [use("Write", file_path=str(claude.project / name), content="x")]


def asked(*, to):
    return [
        use("Agent", description=to, prompt=f"Please {to}.", subagent_type="general-purpose", run_in_background=False)
    ]


def refusals(model):
    """Return since when a check was missing, for each refused end."""
    return [found[1] for one in model.requests if (found := MISSING.search(one.said))]


def reason(installed, group):
    """Return the saved reason of the end."""
    found = json.loads(installed.tailhook(group, "status", "--json"))
    return (found["ended"] if group == "ralph" else found["state"])["reason"]


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_an_end_counts_after_the_check_has_run_since_the_last_edit_by_the_agent_or_a_sub_agent(
    installed, claude, group
):
    done = DONE[group]
    answers = [
        *(start(group, "--check true"), done),
        *(write(claude, "a.txt"), done),
        *(bash("true | tail -3"), done),
        *(bash("true && false"), done),
        *(bash("true"), asked(to="edit"), write(claude, "b.txt"), "Edited.", done),
        *(asked(to="check"), bash("true"), "Checked.", done),
    ]
    with Model(*answers) as model:
        installed.run(model)
    assert "counts only if this command has succeeded in this loop" in model.requests[1].said
    assert refusals(model) == [
        "the loop began",
        "a.txt was edited",
        "a.txt was edited",
        "a.txt was edited",
        "b.txt was edited",
    ]
    assert sum("its exit code is that of `tail`, behind a pipe" in one.said for one in model.requests) == 2
    assert [one.said[-700:] for one in model.requests[len(answers) :]] == []
    assert reason(installed, group) == "COMPLETE"


def test_a_check_that_still_runs_in_the_background_does_not_count(installed, claude):
    until = f"until [ -e '{claude.project}/go' ]; do sleep 0.1; done"
    begin = [use("Bash", command=f"{until}; sh -c true", description="wait", run_in_background=True)]

    def claim_after_its_end(request):
        return "Holding." if "In the background" in request.said else DONE["loop"]

    answers = [start("loop", "--check true", "--stuck-after 0"), begin, DONE["loop"], bash("touch go"), "Holding."]
    with Model(*answers, *[claim_after_its_end] * 9) as model:
        installed.run(model)
    [refused] = [one.said for one in model.requests if "did not count" in one.said]
    assert "A command in the background counts when it has ended." in refused
    assert reason(installed, "loop") == "COMPLETE"


@pytest.fixture
def gated(claude):
    """Return Claude Code with a rule of the gate machine."""
    claude.tailhook("install", "--yes", "--with", "gate", "--block-cap", "0")
    config = claude.project / ".claude" / "tailhook.json"
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps({"gate": {"rules": [{"edited": ["*.txt"], "ran": "true"}]}}))
    return claude


def test_gate_judges_the_stop_at_which_a_loop_reaches_its_limit(gated):
    answers = [
        bash("tailhook loop start --max 2 Write."),
        write(gated, "a.txt"),
        "One.",
        gated.once_written(2, "Two."),
        bash("true"),
        gated.once_written(3, "Three."),
    ]
    with Model(*answers) as model:
        gated.run(model)
    assert ["gate.rules" in one.said for one in model.requests] == [False] * 4 + [True, False]
    assert reason(gated, "loop") == "MAX_ITERATIONS"


def test_gate_judges_the_stop_that_would_end_a_loop_and_no_other(gated):
    answers = [start("loop"), write(gated, "a.txt"), "Not yet.", DONE["loop"], bash("true"), DONE["loop"]]
    with Model(*answers) as model:
        gated.run(model)
    assert ["gate.rules" in one.said for one in model.requests] == [False] * 4 + [True, False]
    assert "ITERATION 3/20" in model.requests[4].said
    assert reason(gated, "loop") == "COMPLETE"
