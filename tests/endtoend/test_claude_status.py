"""What the board shows of a session of Claude Code in a terminal, from status to status."""

import json
import os
import signal
import threading
import time

import pytest
from interactive import DOWN, ENTER, ESCAPE, TAB, board_of, mcp_flags
from model import MessagesHandler, Model, bash, use
from support.daemon import wait_until

from tailhook.plates.schemas import MAX_TIME_MS

CHECKS_S = 13  # longer than the host takes to notify of a permission, and the daemon to look at a transcript
QUESTION = use(
    "AskUserQuestion",
    questions=[
        {
            "question": "Which one?",
            "header": "Which",
            "multiSelect": False,
            "options": [{"label": "A", "description": "the first"}, {"label": "B", "description": "the second"}],
        }
    ],
)


@pytest.fixture
def board(claude):
    with board_of(claude) as begin:
        yield begin


def agent(name):
    """Return the use of a tool that starts a sub-agent in the background and passes its name in the prompt."""
    return use("Agent", description=name, prompt=f"ASKED:{name}.", subagent_type="general-purpose")


def conversations(main, **agents):
    """Return answers for the session and its sub-agents, each from its own list; a number is a pause in seconds.

    The host may end a request during its pause and send it again.
    """
    answers = {"": iter(main), **{name: iter(those) for name, those in agents.items()}}

    def answer(request):
        agent = next((name for name in agents if f"ASKED:{name}." in request.first), "")
        while isinstance(found := next(answers[agent], "There is nothing more to say."), (int, float)):
            time.sleep(found)
        return found

    return [answer] * 50


# ---- waits -------------------------------------------------------------------


def test_a_permission_is_waited_for_while_a_parallel_tool_ends(board):
    read, ls = use("Read", file_path="/etc/hostname"), *bash("ls")
    with Model([read, ls], "Done.") as model, board(model) as host:
        host.prompt("Do the work.")
        host.happens("tool_start")
        host.comes_to("running", "awaiting_approval", seconds=4)  # the host notifies of it after six
        host.happens("tool_call", tool_name="Bash")
        host.stays("awaiting_approval", CHECKS_S)
        host.type(ENTER)
        host.comes_to("awaiting_approval", "running", "idle")


def test_two_permissions_are_waited_for_one_after_the_other(board):
    reads = [use("Read", file_path="/etc/hostname"), use("Read", file_path="/usr/lib/os-release"), *bash("ls")]
    with Model(reads, "Done.") as model, board(model) as host:
        host.prompt("Do the work.")
        host.happens("permission_asked", 2)
        host.stays("awaiting_approval", 2)
        host.type(ENTER)
        host.happens("tool_call", tool_name="Read")
        host.stays("awaiting_approval", CHECKS_S)
        host.type(ENTER)
        host.comes_to("awaiting_approval", "running", "idle")


def test_a_question_is_waited_for_while_a_background_agent_works_and_ends(board):
    answers = conversations([[agent("one")], [QUESTION], "Done."], one=[2, bash("ls"), 2, bash("ls -l"), 1, "Ready."])
    with Model(*answers) as model, board(model) as host:
        host.prompt("Do the work.")
        host.comes_to("running", "awaiting_input")
        host.happens("subagent_stop")
        host.stays("awaiting_input", CHECKS_S)
        host.type(ENTER)
        host.comes_to("awaiting_input", "running", "idle")


def test_a_background_agents_permission_is_waited_for_whatever_the_session_does(board):
    answers = conversations(
        [[agent("one"), agent("two")], "Working on it.", "Two is ready.", "Done."],
        one=[2, bash("touch x"), "Ready."],
        two=[6, "Ready."],
    )
    with Model(*answers) as model, board(model) as host:
        host.prompt("Do the work.")
        host.comes_to("running", "awaiting_approval")
        host.happens("stop", 2)  # that of the turn that the host began when the other agent ended
        host.stays("awaiting_approval", CHECKS_S)
        host.type(ENTER)
        host.comes_to("awaiting_approval", "running", "idle")  # the host begins a turn when the agent ends
        assert "idle" not in host.statuses[host.id][2:-1]


def test_a_session_runs_until_its_background_agent_has_ended(board):
    answers = conversations([[agent("one")], "Working on it."], one=[2, bash("ls"), 6, bash("ls -l"), 6, "Ready."])
    with Model(*answers) as model, board(model) as host:
        host.prompt("Do the work.")
        host.happens("stop", 2)  # that of the turn that the host began when the agent ended
        host.comes_to("running", "idle")
        theirs = [event for event in host.events() if event["agent_id"]]
        assert [event["event_type"] for event in theirs] == [
            "subagent_start",
            *["tool_start", "tool_call"] * 2,
            "subagent_stop",
        ]
        assert {event["status"] for event in theirs} == {None}
        assert host.statuses[host.id] == ["running", "idle"] * 2


def test_a_plan_is_waited_for_until_it_is_approved(board):
    with Model([use("ExitPlanMode", plan="1. Do it.")], "Done.") as model, board(model, mode="plan") as host:
        host.prompt("Plan the work.")
        host.comes_to("running", "awaiting_approval")
        host.stays("awaiting_approval", CHECKS_S)
        host.type(ENTER)
        host.comes_to("awaiting_approval", "running", "idle")
        waits = host.daemon.ask("GET", "/waits", params={"edge": [0, MAX_TIME_MS]}).json()["total"]
    assert waits["waits"] == 1
    assert waits["waited_ms"] >= CHECKS_S * 1000


def test_an_mcp_servers_question_is_waited_for(board):
    with Model([use("mcp__asker__ask")], "Done.") as model, board(model, *mcp_flags()) as host:
        host.prompt("Ask me.")
        host.comes_to("running", "awaiting_input")
        assert host.daemon.plates()[host.id]["activity"]["text"] == "Your name?"
        host.stays("awaiting_input", CHECKS_S)
        host.type("Ada", DOWN, ENTER)
        host.comes_to("awaiting_input", "running", "idle")


@pytest.mark.parametrize("name", ["", "one"])
def test_an_approved_command_runs_from_its_beginning(board, name):
    slow = bash("touch x; sleep 1000")
    answers = conversations([[agent("one")], "Working on it."] if name else [slow], one=[2, slow])
    with Model(*answers) as model, board(model) as host:
        host.prompt("Do the work.")
        host.comes_to("running", "awaiting_approval")
        host.shows("Doyouwanttoproceed?")
        time.sleep(2)  # the host ignores keys that come before a person can have read it
        host.type(ENTER)
        host.comes_to("awaiting_approval", "running")
        given = host.events()[-1]
        assert (given["event_type"], given["tool_name"], bool(given["agent_id"])) == (
            "permission_given",
            "Bash",
            bool(name),
        )


# ---- denials and interruptions -----------------------------------------------


@pytest.mark.parametrize("message", [bash("touch x"), [QUESTION], [use("ExitPlanMode", plan="1. Do it.")]])
def test_a_denial_ends_the_wait_soon(board, message):
    mode = "plan" if message[0]["name"] == "ExitPlanMode" else "default"
    with Model(message, "Done.") as model, board(model, mode=mode) as host:
        host.prompt("Do the work.")
        wait_until(lambda: host.status().startswith("awaiting"))
        time.sleep(2)
        host.type(ESCAPE)
        host.comes_to("idle", seconds=CHECKS_S)
        assert host.events()[-1]["event_type"] == "interrupted"


def test_a_denial_in_words_ends_the_wait_and_the_agent_goes_on(board):
    with Model(bash("touch x"), bash("ls"), "Done.") as model, board(model) as host:
        host.prompt("Do the work.")
        host.comes_to("running", "awaiting_approval")
        time.sleep(2)
        host.type(DOWN, DOWN, DOWN, TAB, "Use another file.", ENTER)
        host.comes_to("idle")
        assert "stop" in [event["event_type"] for event in host.events()]
        assert "Use another file." in model.requests[1].prompted


def test_a_denial_in_a_background_agent_ends_its_wait_soon(board):
    answers = conversations([[agent("one")], "Working on it."], one=[2, bash("touch x"), 30, "Ready."])
    with Model(*answers) as model, board(model) as host:
        host.prompt("Do the work.")
        host.comes_to("running", "awaiting_approval")
        time.sleep(2)
        host.type(ESCAPE)
        host.comes_to("awaiting_approval", "running", seconds=CHECKS_S)
        host.stays("running", CHECKS_S)  # the agent goes on, and wakes the session at its end
        host.comes_to("awaiting_approval", "running", "idle")


def test_escape_before_the_first_answer_ends_the_turn(board):
    asked, over = threading.Event(), threading.Event()

    def answer(request):
        asked.set()
        over.wait()
        return "Too late."

    with Model(answer, "Done.") as model, board(model) as host:
        host.prompt("Do the work.")
        wait_until(asked.is_set)
        host.comes_to("running")
        host.type(ESCAPE)
        host.comes_to("running", "idle")  # only the host's own file shows it
        assert [event["event_type"] for event in host.events()][-2:] == ["prompt_submit", "turn_ended"]
        over.set()
        host.prompt("Do other work.")
        host.comes_to("idle", "running", "idle")


def test_an_interruption_of_a_running_tool_is_seen_soon(board):
    with Model(bash("sleep 20; touch x"), "Done.") as model, board(model, "--allowedTools", "Bash") as host:
        host.prompt("Do the work.")
        host.happens("tool_start")
        time.sleep(2)
        host.type(ESCAPE)
        host.comes_to("running", "idle", seconds=CHECKS_S)


# ---- starts, errors ----------------------------------------------------------


def test_a_session_that_was_given_no_prompt_is_idle_and_so_is_a_resumed_and_a_cleared_one(board):
    with Model("One.", "Two.") as model:
        with board(model) as host:
            host.comes_to("running", "idle", seconds=CHECKS_S)
            host.prompt("First.")
            host.comes_to("idle", "running", "idle")
        with board(model, "--continue") as host:
            first = host.id
            host.comes_to("running", "idle", seconds=CHECKS_S)
            host.prompt("/clear")
            wait_until(lambda: host.id != first)
            assert host.statuses[first][-1] == "closed"
            host.comes_to("running", "idle", seconds=CHECKS_S)


def test_a_compaction_that_a_person_asks_for_leaves_the_session_idle_at_once(board):
    with Model("One.", "A summary.") as model, board(model) as host:
        host.prompt("First.")
        host.happens("stop")
        host.prompt("/compact")
        host.happens("session_start", 2)
        host.comes_to("running", "idle", seconds=5)
        assert [event["event_type"] for event in host.events()][-1] == "turn_ended"


def test_the_host_reports_that_it_has_waited_for_a_prompt(board, claude):
    claude.idle_notification_ms = 2000
    with Model("One.") as model, board(model) as host:
        host.prompt("First.")
        host.happens("stop")
        host.happens("turn_ended")
        host.stays("idle", 0)


def test_a_host_that_thinks_for_long_runs_and_one_that_a_person_has_stopped_shows_no_sign(board):
    asked, over = threading.Event(), threading.Event()

    def answer(request):
        asked.set()
        over.wait()
        return "Done."

    with Model(answer) as model, board(model) as host:

        def words():
            return host.daemon.plates()[host.id]["status_words"]

        host.prompt("Do the work.")
        wait_until(asked.is_set)
        host.comes_to("running")
        host.daemon.make_older(120)
        time.sleep(CHECKS_S)
        assert words() == "running"  # the host's own file shows it
        os.kill(host.pid, signal.SIGSTOP)
        wait_until(lambda: words() == "no sign")
        os.kill(host.pid, signal.SIGCONT)
        wait_until(lambda: words() == "running")
        over.set()
        host.comes_to("running", "idle")


def test_a_session_has_the_title_that_the_host_gave_it_and_then_the_persons(board, claude):
    del claude.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]  # the host counts its request for a title as such
    titles = ['{"title": "Fix the race in refunds"}'] * 9
    with Model("One.", "Two.", asides=titles) as model, board(model) as host:

        def title():
            return host.daemon.plates()[host.id]["title"]

        host.prompt("Please fix the race in the refunds.")
        host.happens("stop")
        wait_until(lambda: title() == "Fix the race in refunds")
        host.prompt("/rename My own title")
        wait_until(lambda: title() == "My own title")


def test_a_dialog_that_no_hook_reports_is_waited_for_until_it_is_answered(board, claude):
    settings = json.loads(claude.settings.read_text())
    for name in ("PermissionRequest", "Notification"):  # without them a permission is such a dialog
        del settings["hooks"][name]
    claude.settings.write_text(json.dumps(settings))
    with Model(bash("touch x; sleep 1000"), "Done.") as model, board(model) as host:
        host.prompt("Do the work.")
        host.comes_to("running", "awaiting_input")
        asked = host.daemon.ask("GET", f"/plates/{host.id}").json()["asked"]
        assert [one["text"] for one in asked["questions"]] == ["permission prompt"]
        time.sleep(2)  # the host ignores keys that come before a person can have read it
        host.type(ENTER)
        host.comes_to("awaiting_input", "running")


def test_a_menu_that_the_person_opens_is_not_a_wait(board):
    with Model("One.", bash("touch x; sleep 1000")) as model, board(model, "--allowedTools", "Bash") as host:
        host.prompt("First.")
        host.happens("stop")
        host.prompt("/model")
        host.stays("idle", CHECKS_S)
        host.type(ESCAPE)
        host.prompt("Do the work.")
        host.happens("tool_start")
        host.prompt("/model")
        host.stays("running", CHECKS_S)


class RefusingHandler(MessagesHandler):
    """An API that refuses every message."""

    def respond(self, body):
        """Answer with an error."""
        self.send({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, status=400)


class RefusingModel(Model):
    """A model that answers every request with an error."""

    def api(self):
        """Return the handler of requests."""
        return RefusingHandler


def test_an_error_of_the_api_is_shown_until_the_session_goes_on(board):
    with RefusingModel() as model, board(model) as host:
        host.prompt("Do the work.")
        host.comes_to("running", "error")
        host.stays("error", CHECKS_S)
