"""What the board shows of a session of Codex in a terminal."""

import os
import threading

import pytest
from codex_agents import FirstTools, SecondTools, by_agent, result_of
from model import use
from model_openai import ResponsesHandler, ResponsesModel
from other_hosts import Codex
from support.daemon import daemon_in, wait_until

ESCAPE = b"\x1b"


@pytest.fixture
def codex(tmp_path):
    """Return Codex with its events reported."""
    codex = Codex(tmp_path / "home", tmp_path / "project")
    codex.install("plates")
    return codex


@pytest.fixture
def daemon(codex):
    """Yield a running daemon."""
    with daemon_in(codex.home) as daemon:
        yield daemon.start()


@pytest.fixture
def board(daemon):
    """Return a function that returns the statuses on the board."""
    return lambda: [plate["status"] for plate in daemon.plates().values()]


def test_a_session_is_idle_after_escape_in_a_tool(codex, board):
    with codex.model(codex.bash("sleep 1000")) as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(lambda: codex.events()[-1:] == ["tool_start"])
        assert board() == ["running"]
        os.write(terminal.fd, ESCAPE)
        wait_until(lambda: board() == ["idle"])


def test_a_session_is_idle_after_escape_before_the_first_answer(codex, board):
    asked, over = threading.Event(), threading.Event()

    def answer(request):
        asked.set()
        over.wait()
        return "Too late."

    with codex.model(answer) as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(asked.is_set)
        wait_until(lambda: board() == ["running"])
        os.write(terminal.fd, ESCAPE)
        wait_until(lambda: board() == ["idle"])
        over.set()
        assert codex.events()[-1] == "interrupted"


class RefusingModel(ResponsesModel):
    """A model that answers every request with an error."""

    def api(self):
        """Return the handler of requests."""

        class Handler(ResponsesHandler):
            def respond(self, body):
                self.send({"error": {"type": "invalid_request_error", "message": "no"}}, status=400)

        return Handler


def test_an_error_of_the_api_is_shown_until_the_session_goes_on(codex, board):
    with RefusingModel() as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(lambda: board() == ["error"])
        assert codex.events() == ["session_start", "prompt_submit"]
        os.write(terminal.fd, b"Again.")
        wait_until(lambda: os.write(terminal.fd, b"\r") and codex.events()[2:] == ["prompt_submit"])
        wait_until(lambda: board() == ["error"])


def test_a_permission_is_waited_for_until_the_person_gives_it(codex, board):
    asked, over = threading.Event(), threading.Event()

    def agent(_):
        yield [use("exec_command", cmd="touch made", sandbox_permissions="require_escalated", justification="May I?")]
        asked.set()
        over.wait()
        yield "Done."

    codex.approval = "--ask-for-approval=on-request"
    with codex.model(*by_agent(agent)) as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(lambda: board() == ["awaiting_approval"])
        wait_until(lambda: "May I?" in terminal.seen)
        assert not asked.is_set()
        wait_until(lambda: os.write(terminal.fd, b"y") and asked.wait(1))  # it takes keys some time after its question
        wait_until(lambda: board() == ["running"])
        over.set()
        wait_until(lambda: board() == ["idle"])
    assert (codex.project / "made").exists()


def newest(daemon):
    """Return the type of the newest event that the board shows, and the session's status after it."""
    return [(plate["last_event_type"], plate["status"]) for plate in daemon.plates().values()]


@pytest.mark.parametrize("tools", [FirstTools, SecondTools])
def test_a_session_runs_after_its_stop_until_its_sub_agent_ends(codex, daemon, tools):
    asked, over = threading.Event(), threading.Event()

    def parent(request):
        yield tools.spawn("Do a part.", fork=True)
        wait_until(asked.is_set)
        yield "I stop."

    def child(request):
        asked.set()
        over.wait()
        yield codex.bash("echo a part")
        yield "The part is done."

    codex.settings = tools.settings
    with codex.model(*by_agent(parent, child)) as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(lambda: newest(daemon) == [("stop", "running")])
        over.set()
        wait_until(lambda: newest(daemon) == [("subagent_stop", "idle")])
        assert codex.events()[-3:] == ["tool_start", "tool_call", "subagent_stop"]


@pytest.mark.parametrize("tools", [FirstTools, SecondTools])
def test_a_session_is_idle_once_its_agent_has_killed_the_sub_agent(codex, daemon, tools):
    asked, over = threading.Event(), threading.Event()

    def parent(request):
        agent = result_of((yield tools.spawn("Do a part.", fork=False)))
        wait_until(asked.is_set)
        yield tools.kill(agent)
        yield "I have killed it."

    def child(request):
        asked.set()
        over.wait()
        yield "Too late."

    codex.settings = tools.settings
    with codex.model(*by_agent(parent, child)) as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(lambda: codex.events()[-1:] == ["stop"])
        wait_until(lambda: [status for _, status in newest(daemon)] == ["idle"])
        over.set()
        assert (codex.events().count("subagent_start"), codex.events().count("subagent_stop")) == (1, 0)


def words(daemon):
    """Return the words for the session's status on the board."""
    [plate] = daemon.plates().values()
    return plate["status_words"]


def test_there_is_no_sign_of_a_session_while_it_thinks_for_long(codex, daemon):
    asked, over = threading.Event(), threading.Event()

    def answer(request):
        asked.set()
        over.wait()
        return codex.bash("sleep 1000")

    with codex.model(answer) as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(asked.is_set)
        wait_until(lambda: codex.events()[-1:] == ["prompt_submit"] and words(daemon) == "running")
        daemon.make_older(120)
        wait_until(lambda: words(daemon) == "no sign")
        over.set()
        wait_until(lambda: words(daemon) == "running")
