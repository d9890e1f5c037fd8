"""An agent learns its goal and its signals although a person started the loop in a terminal."""

import json
from functools import partial

import pytest
from support.oracles import jwz

GOAL = "Make the tests pass."
ENDS = {"loop": "<loop-done>COMPLETE</loop-done>", "ralph": "<promise>GREEN</promise>"}


@pytest.fixture(params=ENDS)
def group(request, project):
    """Return the group of commands; the hook asks its machine."""
    project.argv = [*project.argv[:-1], "ralph" if request.param == "ralph" else "idle"]
    return request.param


@pytest.fixture
def start(project, group):
    """Start a loop, with the id of the session if an agent does."""
    words = ("--completion-promise", "GREEN") if group == "ralph" else ()
    return partial(project.as_agent, group, "start", *words, GOAL)


def prompted(project, **fields):
    """Let a person send a prompt; return what the agent reads beside it."""
    stop = project.stop(hook_event_name="UserPromptSubmit", prompt="Go on.", **fields)
    assert (stop.exit_code, stop.stderr) == (0, "")
    if not stop.stdout:
        return ""
    given = json.loads(stop.stdout)["hookSpecificOutput"]
    assert given["hookEventName"] == "UserPromptSubmit"
    return given["additionalContext"]


def test_the_first_prompt_gives_the_goal_and_how_to_end_the_loop_once(project, group, start):
    start()
    given = prompted(project)
    assert GOAL in given
    assert ENDS[group] in given
    assert prompted(project) == ""
    assert prompted(project, session_id="another") == ""
    reason = project.stop("Hm.").answer["reason"]
    assert reason == GOAL if group == "ralph" else "\n" not in reason


def test_without_a_prompt_the_first_block_gives_them(project, group, start):
    start()
    reason = project.stop("Hm.").answer["reason"]
    assert GOAL in reason
    assert ENDS[group] in reason
    assert ENDS[group] not in project.stop("Hm.").answer["reason"]
    assert prompted(project) == ""


def test_an_agent_that_starts_the_loop_itself_has_read_them(project, group, start):
    assert ENDS[group] in start(session="mine").stdout
    assert prompted(project) == ""
    assert ENDS[group] not in project.stop("Hm.").answer["reason"]


def test_a_session_that_adopts_the_loop_gets_them(project, group, start):
    start(session="mine")
    assert project.as_agent(group, "adopt", session="new").returncode == 0
    assert ENDS[group] in prompted(project, session_id="new")
    assert prompted(project, session_id="mine") == ""


def test_the_session_of_the_first_prompt_claims_the_loop(project, group, start):
    start()
    assert ENDS[group] in prompted(project, session_id="first")
    assert project.stop("Hm.", session_id="second").allowed
    assert not project.stop("Hm.", session_id="first").allowed


def test_a_prompt_without_a_loop_changes_nothing(project, group):
    before = sorted(project.folder.rglob("*"))
    assert prompted(project) == ""
    assert sorted(project.folder.rglob("*")) == before


def test_a_nested_loop_is_explained_and_then_the_outer_one_again(project):
    loop = partial(project.as_agent, "loop")
    loop("start", "--mode", "grind", "Outer.")
    assert loop("start", "--push", "Inner.").returncode == 0
    given = prompted(project)
    assert ("Inner." in given, "Outer." in given) == (True, False)
    assert project.stop("<loop-done>COMPLETE</loop-done>").allowed
    given = prompted(project)
    assert ("Outer." in given, "<grind-done>NO_MORE_ISSUES</grind-done>" in given) == (True, True)
    assert [frame["iter"] for frame in jwz.newest(project.folder)["stack"]] == [1]
