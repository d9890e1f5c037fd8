"""What the board shows of a session of Codex in a terminal."""

import os
import threading

import pytest
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
def board(codex):
    """Yield a function that returns the statuses on the board of a running daemon."""
    with daemon_in(codex.home) as daemon:
        daemon.start()
        yield lambda: [plate["status"] for plate in daemon.plates().values()]


def test_a_session_is_idle_after_escape_in_a_tool(codex, board):
    with codex.model(codex.bash("sleep 1000")) as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(lambda: codex.events()[-1:] == ["tool_start"])
        assert board() == ["running"]
        os.write(terminal.fd, ESCAPE)
        wait_until(lambda: board() == ["idle"])
        assert codex.events()[-1] == "interrupted"


def test_a_session_is_idle_after_escape_before_the_first_answer(codex, board):
    asked, over = threading.Event(), threading.Event()

    def answer(request):
        asked.set()
        over.wait()
        return "Too late."

    with codex.model(answer) as model, codex.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        assert asked.wait(60)
        wait_until(lambda: board() == ["running"])
        os.write(terminal.fd, ESCAPE)
        wait_until(lambda: board() == ["idle"])
        over.set()
        assert codex.events()[-1] == "interrupted"
