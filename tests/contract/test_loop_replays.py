"""Loops that people reported because they did not end, or burnt iterations: each report replayed through the hook."""

import json
import time

import pytest
from support.host import assistant

SERVER = {"id": "b1", "type": "shell", "status": "running", "description": "server", "command": "npm run dev"}
AGENT = {"id": "a1", "type": "subagent", "status": "running", "description": "research", "agent_type": "Explore"}
WAKE_UP = {"id": "c1", "schedule": "once", "recurring": False, "prompt": "look again"}
PROMISE = "<promise>EVERYTHING MIGRATED</promise>"


@pytest.fixture(params=["loop", "ralph"])
def loop(request, project):
    """Start an idle loop or an unlimited one of ralph, with the flags that `start` has by default."""
    project.argv = [*project.argv[:-1], "ralph" if request.param == "ralph" else "idle"]
    words = ("--completion-promise", "EVERYTHING MIGRATED") if request.param == "ralph" else ("--max", "10000")
    project.as_agent(request.param, "start", *words, "Migrate all of it.", session="mine").check_returncode()
    project.write(assistant("Begun.", id="msg_begun"))
    return request.param


def blocks_until_allowed(project, answers, most):
    """Return how many stops the hook blocks before it lets an agent with these answers go."""
    for number in range(most):
        words = answers(number)
        project.write(assistant(words, id=f"msg_{number}"))
        if project.stop(words).allowed:
            return number
    return most


def iteration(project, group):
    """Return the loop's iteration."""
    state = json.loads(project.tailhook(group, "status", "--json").stdout)["state"]
    return int(state["iteration"]) if group == "ralph" else state["stack"][-1]["iter"]


def used_tool(number):
    """Return the record of an agent's work."""
    record = assistant("I look.", id=f"msg_tool_{number}", at=time.time() + 1)
    record["message"]["content"].append(
        {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"n": number}}
    )
    return record


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(lambda number: "Holding.", id="Yeachan-Heo-oh-my-claudecode-2741"),
        pytest.param(lambda number: f"Iteration {number}: still nothing to do.", id="claude-plugins-official-1699"),
        pytest.param(lambda number: "✅ EVERYTHING MIGRATED", id="anthropics-claude-code-18646"),
    ],
)
def test_an_agent_that_has_nothing_more_to_do_and_never_writes_the_signal(project, loop, answers):
    assert blocks_until_allowed(project, answers, 6239) == 4  # what it did before the first stop is not known


def test_an_agent_that_writes_the_promise_is_let_go_at_its_first_stop(project, loop):
    done = PROMISE if loop == "ralph" else "<loop-done>COMPLETE</loop-done>"
    assert blocks_until_allowed(project, lambda _: done, 4) == 0


def test_fifty_minutes_in_which_a_background_agent_runs_cost_no_iteration(project, loop):
    """anthropics/claude-code#55754."""
    before = iteration(project, loop)
    for number in range(50):
        project.write(assistant("The agent is at work.", id=f"msg_{number}"))
        assert project.stop("The agent is at work.", background_tasks=[AGENT]).allowed
    assert iteration(project, loop) == before
    assert not project.stop("It has ended.", background_tasks=[]).allowed


def test_a_shell_in_the_background_and_a_wake_up_cost_one_iteration(project, loop):
    """Yeachan-Heo/oh-my-claudecode#2933."""
    before = iteration(project, loop)
    for number in range(20):
        project.write(assistant("I wait.", id=f"msg_{number}"))
        project.stop("I wait.", background_tasks=[SERVER], session_crons=[WAKE_UP])
    assert iteration(project, loop) == before + 1


def test_a_server_in_the_background_holds_up_neither_the_work_nor_the_end(project, loop):
    """anthropics/claude-code#83266."""
    for number in range(5):
        project.write(used_tool(number), assistant(f"Step {'abcde'[number]}.", id=f"msg_{number}"))
        assert not project.stop(f"Step {'abcde'[number]}.", background_tasks=[SERVER]).allowed
    done = PROMISE if loop == "ralph" else "<loop-done>COMPLETE</loop-done>"
    project.write(assistant(done, id="msg_done"))
    assert project.stop(done, background_tasks=[SERVER]).allowed
    assert "No " in project.tailhook(loop, "status").stdout
