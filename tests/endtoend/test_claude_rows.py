"""What rows of the boards show of a session of Claude Code in a terminal, and what that terminal shows itself."""

import json
import subprocess

import pytest
from interactive import ENTER, ESCAPE, board_of
from model import Model, bash, use
from run_hosts import host_path
from support.daemon import daemon_in, wait_until

DEAF_S = 3  # the host takes no keys for two seconds after a dialog has appeared
OPTIONS = [{"label": "PostgreSQL", "description": "a server"}, {"label": "SQLite", "description": "a file"}]
QUESTION = {"question": "Which database?", "header": "Database", "multiSelect": False, "options": OPTIONS}


@pytest.fixture
def board(claude):
    config = claude.home / ".config" / "tailhook" / "config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"plates": {"notify": {"terminal": ["osc9", "osc777"]}}}))
    with board_of(claude) as begin:
        yield begin


def row(host):
    """Return the session as the daemon shows it."""
    return host.daemon.plates()[host.id]


def activity(host):
    """Return the parts of the session's activity that are not empty."""
    return {name: value for name, value in row(host)["activity"].items() if value}


def test_a_question_with_its_choices_then_a_permission_then_the_last_message(board):
    answers = [
        [use("AskUserQuestion", questions=[QUESTION])],
        bash("touch x; sleep 1"),
        "All tests pass.\n\nThat is it.",
    ]
    with Model(*answers) as model, board(model) as host:
        host.prompt("Choose a database.")
        wait_until(lambda: activity(host).get("text") == "Which database?")
        assert activity(host) == {"words": "asks", "text": "Which database?", "choices": ["PostgreSQL", "SQLite"]}
        assert (row(host)["headline"], row(host)["group"]) == ("Choose a database.", "waits")
        project = host.daemon.plates()[host.id]["name"]
        wait_until(lambda: f"\x1b]9;{project}: asks: Which database?\x07" in host.seen)
        host.stays("awaiting_input", DEAF_S)
        host.type(ENTER)
        wait_until(lambda: activity(host).get("words") == "asks to run")
        assert activity(host)["text"] == "touch x; sleep 1"
        words = f"{project}: asks to use Bash: touch x, sleep 1"
        wait_until(lambda: f"\x1b]777;notify;tailhook;{words}\x07" in host.seen)
        host.stays("awaiting_approval", DEAF_S)
        host.type(ENTER)
        wait_until(lambda: row(host)["unseen"])
        assert activity(host) == {"text": "All tests pass."}
        assert row(host)["turn_since"] < row(host)["turn_until"]
        wait_until(lambda: f"\x1b]9;{project}: has finished: All tests pass.\x07" in host.seen)


def test_a_plan_is_shown_and_an_interrupted_turn_has_not_finished(board):
    plan = use("ExitPlanMode", plan="# Move the keys\n\n1. Write a test.")  # the hooks of 2.1.329 do not get the plan
    with Model([plan], "Done.") as model, board(model, mode="plan") as host:
        host.prompt("Plan it.")
        wait_until(lambda: row(host)["status"] == "awaiting_approval")
        assert activity(host)["words"] == "shows a plan"
        host.stays("awaiting_approval", DEAF_S)
        host.type(ESCAPE)
        wait_until(lambda: row(host)["status"] == "idle")
        assert (row(host)["unseen"], row(host)["group"]) == (False, "rest")


def test_the_command_that_the_boards_copy_resumes_the_session(claude):
    claude.env["TAILHOOK_NO_AUTOSTART"] = "1"
    claude.tailhook("install", "--yes", "--with", "plates")
    with daemon_in(claude.home) as daemon, Model("First.", "Second.") as model:
        daemon.start()
        before = claude.run(model, prompt="Begin.")
        plate = wait_until(lambda: daemon.plates().get(before.id))
        path = f"{host_path('claude').parent}:{claude.env['PATH']}"
        env = {**claude.env, "PATH": path, "ANTHROPIC_BASE_URL": model.url}
        command = f"{plate['resume']} -p 'Go on.'"
        done = subprocess.run(["sh", "-c", command], env=env, cwd="/", capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "Second."
        wait_until(lambda: daemon.plates()[before.id]["headline"] == "Go on.")
        assert list(daemon.plates()) == [before.id]
