"""What the board shows of a session of Copilot in a terminal."""

import os

import pytest
from other_hosts import Copilot
from support.daemon import daemon_in, wait_until
from test_claude_status import RefusingModel


@pytest.fixture
def copilot(tmp_path):
    """Return Copilot with its events reported."""
    copilot = Copilot(tmp_path / "home", tmp_path / "project")
    copilot.install("plates")
    return copilot


@pytest.fixture
def daemon(copilot):
    """Yield a running daemon."""
    with daemon_in(copilot.home) as daemon:
        yield daemon.start()


def shown(daemon):
    """Return the statuses on the board."""
    return [plate["status"] for plate in daemon.plates().values()]


def test_an_error_of_the_api_is_shown(copilot, daemon):
    with RefusingModel() as model, copilot.terminal(model, "Do the work.") as terminal:
        terminal.drain()
        wait_until(lambda: shown(daemon) == ["error"])
        assert copilot.events() == ["session_start", "prompt_submit"]


def test_a_permission_is_waited_for_until_the_person_gives_it(copilot, daemon):
    copilot.permissions = ()
    with (
        copilot.model(copilot.bash("touch made"), "Done.") as model,
        copilot.terminal(model, "Do the work.") as terminal,
    ):
        terminal.drain()
        wait_until(lambda: shown(daemon) == ["awaiting_approval"])
        wait_until(lambda: "touch made" in terminal.seen)
        # It takes keys some time after its question.
        wait_until(lambda: os.write(terminal.fd, b"1") and "tool_call" in copilot.events())
        wait_until(lambda: shown(daemon) == ["idle"])
        [session] = daemon.plates()
        events = daemon.ask("GET", f"/plates/{session}?events=200").json()["events"]
        assert [one["event_type"] for one in events] == copilot.events()
    assert (copilot.project / "made").exists()
