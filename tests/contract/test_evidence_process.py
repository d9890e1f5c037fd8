"""Whole hooks at the end of a loop with checks."""

import time

import pytest
from support.checked_sessions import Agent

DONE = {"idle": "<loop-done>COMPLETE</loop-done>", "ralph": "<promise>GREEN</promise>"}
BEGUN = 600  # seconds ago, the loop of these tests began


@pytest.fixture(params=["idle", "ralph"])
def machine(request, project):
    project.argv = [*project.argv[:-1], f"{request.param},gate"]
    return request.param


@pytest.fixture
def start(project, machine):
    """Start a loop with checks; return a function that begins it."""

    def begin(*flags, group="loop" if machine == "idle" else "ralph"):
        words = ("--max", "9") if machine == "idle" else ("--completion-promise", "GREEN", "--max-iterations", "9")
        started = project.as_agent(group, "start", *words, *flags, "Work.", session="mine")
        assert started.returncode == 0, started.stderr
        return started.stdout

    return begin


@pytest.fixture
def agent(project):
    """Return the session's agent."""
    return Agent(project.transcript, project.folder)


@pytest.fixture
def end(project, machine, agent):
    """Let the agent claim that it is done; return the hook's reason, "" if the loop has ended."""

    def claim(word=None, *flags, **fields):
        said = f"All done.\n\n{word or DONE[machine]}"
        agent.write_words(said, time.time())
        stop = project.stop(said, *flags, **{"stop_hook_active": True, **fields})
        return stop.answer["reason"] if "reason" in stop.stdout else ""

    return claim


def now(seconds=0):
    return time.time() + seconds


def test_an_end_counts_only_after_the_check_has_run_after_the_newest_edit(start, agent, end):
    start("--check", "pytest -q")
    assert "`pytest -q`: it has not run successfully since the loop began at " in end()
    agent.edit("src/app.py", now(1))
    assert "since src/app.py was edited at " in end()
    agent.run("pytest -q", now(2), failed=True)
    assert "since src/app.py was edited at " in end()
    agent.run("pytest -q", now(3))
    agent.edit("src/app.py", now(4))
    assert end()
    agent.run("cd src && pytest -q -x", now(5))
    assert end() == ""
