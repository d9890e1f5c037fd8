"""`tailhook loop adopt` and `cancel`, used by a person and an agent; the hook agrees with them."""

import json
import time

import pytest
from support.host import frame
from support.oracles import jwz

# ---- adopt, cancel -----------------------------------------------------------


def test_adopt_hands_the_loop_to_this_session(project, loop):
    loop("start", "Go.", session="before")
    assert project.stop("Hm.").allowed
    assert loop("adopt", session="mine").returncode == 0
    assert project.stop("Hm.").exit_code == 2
    assert project.stop("Hm.", session_id="before").allowed


def test_adopt_outside_a_session_leaves_the_loop_to_the_first_that_stops(project, loop):
    loop("start", "Go.", session="before")
    loop("adopt")
    assert project.stop("Hm.", session_id="new").exit_code == 2


def test_adopt_hands_over_every_frame_and_makes_the_loop_fresh(project, loop):
    state = project.loop(frame(session_id="a", mine=1), frame(session_id="a"), session_id="a", age=7000)
    loop("adopt", session="b")
    moved = jwz.newest(project.folder)
    assert [moved["session_id"], *(top["session_id"] for top in moved["stack"])] == ["b", "b", "b"]
    assert moved["updated_at"] > state["updated_at"]
    assert moved["stack"][0] == {**state["stack"][0], "session_id": "b"}


def test_cancel_ends_the_loop_and_prints_at_which_iteration(project, loop):
    loop("start", "Go.", session="mine")
    project.stop("Hm.")
    done = loop("cancel")
    assert "iteration 2 of 10" in done.stdout
    state = jwz.newest(project.folder)
    assert (state["event"], state["reason"], state["stack"]) == ("ABORT", "USER_CANCELLED", [])
    assert project.stop("Hm.").allowed


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_cancel_prints_the_goal_the_iteration_and_the_session_of_what_it_ends(project, group):
    project.argv = [*project.argv[:-1], "ralph" if group == "ralph" else "idle"]
    for words in ((), ("--json",)):
        project.as_agent(group, "start", "Make the tests pass.", session="mine")
        assert not project.stop("Hm.").allowed
        printed = project.as_agent(group, "cancel", *words).stdout
        if words:
            facts = json.loads(printed)
            assert [facts[key] for key in ("goal", "iteration", "session_id")] == ["Make the tests pass.", 2, "mine"]
        else:
            assert " of session mine was cancelled at iteration 2" in printed
            assert "\nGoal: Make the tests pass.\n" in printed


@pytest.mark.parametrize(
    ("goal", "shown"), [("通" * 500, f"{'通' * 80}…"), ("a\n\n b\t\x1b[31m", "a b \\x1b[31m"), ("x" * 80, "x" * 80)]
)
@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_cancel_prints_the_beginning_of_a_goal_without_blanks(project, group, goal, shown):
    project.as_agent(group, "start", goal).check_returncode()
    assert f"\nGoal: {shown}\n" in project.as_agent(group, "cancel").stdout


def test_cancel_works_from_any_session(project, loop):
    loop("start", "Go.", session="other")
    assert json.loads(loop("cancel", "--json", session="mine").stdout)["iteration"] == 1


@pytest.mark.parametrize("action", ["cancel", "adopt"])
def test_without_a_live_loop_there_is_nothing_to_change(project, loop, action):
    assert loop(action).returncode == 1
    project.loop(event="DONE")
    done = loop(action)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no loop is running in this project" in done.stderr
    assert len(jwz.messages(project.folder)) == 1


def test_the_commands_wait_for_the_hooks_lock(project, loop):
    import fcntl

    project.loop()
    with (project.folder / ".jwz" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = time.monotonic()
        done = loop("cancel")
    assert done.returncode == 1
    assert "locked" in done.stderr
    assert time.monotonic() - started > 1.5
    assert len(jwz.messages(project.folder)) == 1


def test_a_hook_that_cannot_have_the_lock_lets_the_agent_go(project):
    import fcntl

    state = project.loop()
    with (project.folder / ".jwz" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stop = project.stop("Hm.")
    assert (stop.exit_code, stop.stdout, stop.state) == (0, "", state)
    assert "locked" in stop.stderr


# ---- the command line --------------------------------------------------------


def test_a_wrong_command_is_a_usage_error(project):
    for words in (["nonsense"], ["loop"], ["loop", "nonsense"]):
        done = project.tailhook(*words)
        assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_broken_configuration_is_reported_once_with_its_line(project, group):
    path = project.folder / ".claude" / "tailhook.json"
    path.parent.mkdir()
    path.write_text('{"idle":\n {"stale_after": 5},}')
    line = f"tailhook: {path}: invalid JSON: expected a member's name at line 2, column 21. The defaults are used.\n"
    for words in (("start", "Go."), ("status",), ("start", "--replace" if group == "loop" else "--force", "Go.")):
        assert project.as_agent(group, *words).stderr.count(line) == 1
    assert project.as_agent("loop", "cancel").stderr.count("The defaults are used") <= 1
    assert [project.stop("Hm.").stderr.count(line) for _ in range(2)] == [1, 1]


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_loop_beside_one_of_the_other_machine_is_started_with_a_note_about_their_order(project, group):
    other = "ralph" if group == "loop" else "loop"
    order = "it continues when the new loop has ended" if group == "loop" else "the ralph loop continues when that one"
    force = "--replace" if group == "loop" else "--force"
    assert project.as_agent(other, "start", "The first.", session="mine").returncode == 0
    for session, is_noted in (("mine", True), (None, True), ("other", False)):
        started = project.as_agent(group, "start", force, "The second.", session=session)
        assert started.returncode == 0
        assert ("goal: The first.). In the same session, " in started.stderr) is is_noted
        assert (order in started.stderr) is is_noted
    assert project.as_agent(other, "pause").returncode == 0
    assert "same session" not in project.as_agent(group, "start", force, "The second.", session="mine").stderr


def test_of_two_loops_in_a_session_that_of_the_idle_machine_runs_first(project):
    project.argv = [*project.argv[:-1], "idle,ralph"]
    assert project.as_agent("ralph", "start", "Ralph.", session="mine").returncode == 0
    assert project.as_agent("loop", "start", "--max", "2", "Loop.", session="mine").returncode == 0
    reasons = [project.stop(words).answer["reason"] for words in ("One.", "Two.")]
    assert [reason.partition(" ")[0] for reason in reasons] == ["[ITERATION", "Ralph."]
