"""Answers that Claude Code takes and tailhook does not give. These tests show the reasons in docs/hosts.md."""

import json
import re
import sys

import pytest
from interactive import CONTROLS, ENTER, board_of
from model import Model
from support.daemon import wait_until

# A hook of a person: it gives its argument as the answer, and at a stop only to the first one.
ANSWERS = """
import json, sys
answers_again = json.load(sys.stdin).get("stop_hook_active", False)
print("{}" if answers_again else sys.argv[1])
"""
TITLE = re.compile(r"\x1b\]0;([^\x07\x1b]*)")  # OSC 0: the host's sign of its work, a space, the name


@pytest.fixture
def answered(claude):
    """Yield a function that starts a session with a hook of the person: it gives an answer at an event."""
    with board_of(claude) as begin:

        def start(model, event, **answer):
            hook = {"type": "command", "command": sys.executable, "args": ["-c", ANSWERS, json.dumps(answer)]}
            folder = claude.project / ".claude"
            folder.mkdir()
            (folder / "settings.json").write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}]}}))
            return begin(model)

        yield start


def name_in_tab(host):
    """Return the name that the terminal's tab has now."""
    return TITLE.findall(host.seen)[-1].partition(" ")[2]


def test_a_title_from_a_prompts_hook_takes_away_the_name_that_the_person_gave(answered):
    named = {"hookEventName": "UserPromptSubmit", "sessionTitle": "Tidy the shop"}
    with Model("Begun.", "Done.") as model, answered(model, "UserPromptSubmit", hookSpecificOutput=named) as host:
        host.prompt("Do the work.")
        host.comes_to("running", "idle")
        wait_until(lambda: name_in_tab(host) == "Tidy the shop")
        host.type("/rename My own name", ENTER)
        wait_until(lambda: name_in_tab(host) == "My own name")
        host.prompt("Go on.")
        wait_until(lambda: len(model.requests) == 2)
        wait_until(lambda: name_in_tab(host) == "Tidy the shop")


CONTEXT = {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "Run the tests."}}


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"decision": "block", "reason": "Run the tests."}, "StophookreportedaproblemRunthetests."),
        (CONTEXT, "Stophooksays:Runthetests."),
    ],
    ids=["block", "context"],
)
def test_a_reason_is_shown_to_the_person_although_its_output_is_suppressed(answered, answer, shown):
    with Model("Begun.", "Done.") as model, answered(model, "Stop", suppressOutput=True, **answer) as host:
        host.prompt("Do the work.")
        wait_until(lambda: len(model.requests) == 2)
        assert "Run the tests." in model.requests[1].prompted
        wait_until(lambda: shown in re.sub(r"[^\w:.]", "", CONTROLS.sub("", host.seen)))
