"""What the board shows of a session of Kimi Code."""

import os
import signal
import threading
from contextlib import contextmanager, suppress

import pytest
from model import Model, use
from other_hosts import Kimi
from run_hosts import host_path
from support.daemon import daemon_in, wait_until
from test_claude_status import RefusingModel

ESCAPE = b"\x1b"


@pytest.fixture
def kimi(tmp_path):
    """Return Kimi Code with its events reported."""
    if not host_path(Kimi.name).exists():
        pytest.skip("Kimi Code is not installed: `make host` fetches it")
    kimi = Kimi(tmp_path / "home", tmp_path / "project")
    kimi.install()
    return kimi


@pytest.fixture
def daemon(kimi):
    """Yield a running daemon."""
    with daemon_in(kimi.home) as daemon:
        yield daemon.start()


@pytest.fixture
def board(daemon):
    """Return a function that returns the statuses on the board."""
    return lambda: [plate["status"] for plate in daemon.plates().values()]


@contextmanager
def working(kimi, model):
    """Yield a session in a terminal that has got a prompt."""
    with kimi.terminal(model) as terminal:
        terminal.drain()
        wait_until(lambda: "Trust this folder" in terminal.seen)
        press(terminal, b"\r", lambda: "context:" in terminal.seen)
        enter(terminal, "Do the work.", lambda: "prompt_submit" in kimi.events())
        yield terminal


class Held:
    """An answer of the model that waits until `over` is set; `asked` is set once the host has asked for it."""

    def __init__(self, words):
        self.words = words
        self.asked, self.over = threading.Event(), threading.Event()

    def __call__(self, _):
        self.asked.set()
        self.over.wait()
        return self.words


@contextmanager
def released(*events):
    """Set the events at the end: the model waits for them, also if the test fails before."""
    try:
        yield
    finally:
        for event in events:
            event.set()


def enter(terminal, words, is_taken):
    """Type words and send them."""
    press(terminal, words.encode(), lambda: words in terminal.seen[-5000:])
    press(terminal, b"\r", is_taken)


def press(terminal, keys, is_done):
    """Press keys until they have their effect: a terminal may not take them yet. Many at once would be a paste."""

    def are_taken():
        os.write(terminal.fd, keys)
        with suppress(AssertionError):
            return wait_until(is_done, 3)

    wait_until(are_taken)


def test_a_session_is_shown_from_its_start_to_its_end(kimi, board):
    last = Held("Done.")
    with kimi.model(kimi.bash("touch made"), last) as model, released(last.over), working(kimi, model) as terminal:
        wait_until(lambda: board() == ["awaiting_approval"])
        wait_until(lambda: "Approve once" in terminal.seen)
        assert not (kimi.project / "made").exists()
        press(terminal, b"1", last.asked.is_set)
        wait_until(lambda: board() == ["running"])
        last.over.set()
        wait_until(lambda: board() == ["idle"])
        enter(terminal, "/exit", lambda: "session_end" in kimi.events())
        wait_until(lambda: board() == ["closed"])
    tool = ["tool_start", "permission_asked", "permission_given", "tool_call"]
    assert sorted(kimi.events()) == sorted(["session_start", "prompt_submit", *tool, "stop", "session_end"])
    assert (kimi.project / "made").exists()


def test_a_given_permission_ends_the_wait_while_the_command_runs(kimi, board):
    with kimi.model(kimi.bash("sleep 600")) as model, working(kimi, model) as terminal:
        wait_until(lambda: board() == ["awaiting_approval"] and "Approve once" in terminal.seen)
        press(terminal, b"1", lambda: board() == ["running"])
        assert kimi.events()[-1] == "permission_given"
        press(terminal, ESCAPE, lambda: board() == ["idle"])
        assert "interrupted" in kimi.events()


def test_a_refused_permission_ends_the_wait(kimi, board):
    last = Held("I do not.")
    with kimi.model(kimi.bash("touch made"), last) as model, released(last.over), working(kimi, model) as terminal:
        wait_until(lambda: board() == ["awaiting_approval"] and "3. Reject" in terminal.seen)
        press(terminal, b"3", last.asked.is_set)
        wait_until(lambda: board() == ["running"])
        last.over.set()
        wait_until(lambda: board() == ["idle"])
    assert "permission_given" not in kimi.events()
    assert not (kimi.project / "made").exists()


def test_a_session_is_idle_after_escape_before_the_first_answer(kimi, board):
    answer = Held("Too late.")
    with kimi.model(answer) as model, released(answer.over), working(kimi, model) as terminal:
        wait_until(answer.asked.is_set)
        wait_until(lambda: board() == ["running"])
        press(terminal, ESCAPE, lambda: board() == ["idle"])
        assert kimi.events()[-1] == "interrupted"
        answer.over.set()


def test_a_question_is_waited_for_until_the_person_answers_it(kimi, daemon, board):
    choices = [{"label": "Red", "description": "a"}, {"label": "Blue", "description": "b"}]
    question = use("AskUserQuestion", questions=[{"question": "Which?", "header": "Colour", "options": choices}])
    with kimi.model([question], "Done.") as model, working(kimi, model) as terminal:
        wait_until(lambda: board() == ["awaiting_input"] and "[2] Blue" in terminal.seen)
        os.write(terminal.fd, b"1")
        press(terminal, b"\r", lambda: board() == ["idle"])
    (tool,) = (event for event in kimi.spooled() if event["event_type"] == "tool_start")
    assert tool["tool_params"] == {"question": "Which?", "choices": ["Red", "Blue"]}


def test_a_session_is_closed_when_its_process_is_killed_in_a_wait(kimi, board):
    with kimi.model(kimi.bash("touch made")) as model, working(kimi, model) as terminal:
        wait_until(lambda: board() == ["awaiting_approval"])
        os.kill(terminal.pid, signal.SIGKILL)
        wait_until(lambda: board() == ["closed"])


def test_an_error_of_the_api_is_shown(kimi, board):
    with RefusingModel() as model, working(kimi, model):
        wait_until(lambda: board() == ["error"])
        assert kimi.events() == ["session_start", "prompt_submit", "stop_failure"]


def agent(**members):
    """Return the use of the tool that starts a sub-agent."""
    return use("Agent", description="a part", prompt="Do a part.", subagent_type="coder", **members)


def test_the_stop_of_a_sub_agent_is_not_the_sessions(kimi, daemon, board):
    asked, over = threading.Event(), threading.Event()

    def answer(request):
        if request.first.startswith("Do a part."):
            return "The part is done. " * 20
        if not request.begun:
            return [agent()]
        asked.set()
        over.wait()
        return "All is done."

    with Model(*[answer] * 9) as model, released(over), working(kimi, model):
        wait_until(asked.is_set)
        wait_until(lambda: {"tool_call", "subagent_stop"} <= {*kimi.events()})  # their hooks run in parallel
        over.set()
        wait_until(lambda: board() == ["idle"])
        (session,) = daemon.plates()
        *before, last = daemon.ask("GET", f"/plates/{session}?events=1000").json()["events"]
    assert (last["event_type"], last["status"]) == ("stop", "idle")
    assert {event["status"] for event in before} <= {None, "running"}
    assert kimi.events().count("stop") == 2


def test_escape_ends_the_turns_of_the_session_and_of_its_sub_agent(kimi, board):
    asked, over = threading.Event(), threading.Event()

    def answer(request):
        if not request.first.startswith("Do a part."):
            return [agent()]
        asked.set()
        over.wait()
        return "Too late."

    with Model(*[answer] * 9) as model, released(over), working(kimi, model) as terminal:
        wait_until(asked.is_set)
        wait_until(lambda: board() == ["running"])
        press(terminal, ESCAPE, lambda: board() == ["idle"])
        over.set()
    assert kimi.events().count("interrupted") == 2


@pytest.mark.parametrize("first", ["agent", "session"])
def test_a_session_runs_until_it_and_its_background_agent_have_stopped(kimi, daemon, board, first):
    goes = {"agent": threading.Event(), "session": threading.Event()}
    waits, asked, over = threading.Event(), threading.Event(), threading.Event()

    def answer(request):
        if request.first.startswith("Do a part."):
            goes["agent"].wait()
            return "The part is done. " * 20
        if not request.begun:
            return [agent(run_in_background=True)]
        if not waits.is_set():
            waits.set()
            goes["session"].wait()
            return "I wait."
        asked.set()
        over.wait()
        return "All is done."

    with Model(*[answer] * 9) as model, released(over, *goes.values()), working(kimi, model):
        wait_until(waits.is_set)
        wait_until(lambda: {"subagent_start", "tool_call"} <= {*kimi.events()})
        goes[first].set()
        wait_until(lambda: "stop" in kimi.events() and (first == "session" or "subagent_stop" in kimi.events()))
        wait_until(lambda: daemon.ask("GET", "/status").json()["spool_bytes"] == 0)
        assert board() == ["running"]
        for event in goes.values():
            event.set()
        wait_until(asked.is_set)
        wait_until(lambda: board() == ["running"])
        over.set()
        wait_until(lambda: board() == ["idle"])
    prompts = [event.get("by_host", False) for event in kimi.spooled() if event["event_type"] == "prompt_submit"]
    assert prompts == ([False, True] if first == "session" else [False])


def test_a_session_without_a_person_is_shown_until_its_turn_ends(kimi, board):
    with kimi.model(kimi.bash("touch made"), "Done.") as model:
        kimi.run(model)
    names = ["session_start", "prompt_submit", "tool_start", "tool_call", "stop"]
    wait_until(lambda: sorted(kimi.events()) == sorted(names))  # hooks run in parallel
    wait_until(lambda: board() != ["running"])
    (stop,) = (sent for sent in kimi.sent() if sent["hook_event_name"] == "Stop")
    assert "last_assistant_message" not in stop  # so no machine can decide there
    assert "transcript_path" not in stop
    kimi.tailhook("uninstall", "--yes", "--host", "kimi")
    assert "hook plates" not in kimi.hooks_file().read_text()
