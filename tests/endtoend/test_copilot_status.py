"""What the board shows of a session of Copilot in a terminal."""

from other_hosts import Copilot
from support.daemon import daemon_in, wait_until
from test_claude_status import RefusingModel


def test_an_error_of_the_api_is_shown(tmp_path):
    copilot = Copilot(tmp_path / "home", tmp_path / "project")
    copilot.install("plates")
    with (
        daemon_in(copilot.home) as daemon,
        RefusingModel() as model,
        copilot.terminal(model, "Do the work.") as terminal,
    ):
        daemon.start()
        terminal.drain()
        wait_until(lambda: [plate["status"] for plate in daemon.plates().values()] == ["error"])
        assert copilot.events() == ["session_start", "prompt_submit"]
