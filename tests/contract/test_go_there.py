"""`o` and `y` of the board: it shows the pane of the real tmux in which a hook ran, or copies a command."""

import base64
import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest
from support.board_user import sit
from support.daemon import wait_until
from support.terminal import Terminal

BOARD = [sys.executable, "-m", "tailhook", "board"]
# httpcore leaves the socket of a connection that is refused to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here"),
]


class Tmux:
    """A server of tmux of the test, with one session of two windows. A hook ran in the pane of the second one."""

    def __init__(self, folder, daemon):
        self.argv = ["tmux", "-S", str(folder / "socket"), "-f", "/dev/null"]
        self.env = {**daemon.env, "TERM": "xterm", "PATH": os.environ["PATH"]}
        self("new-session", "-d", "-x", "80", "-y", "24", "cat")
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(folder), "prompt": "Go"}
        (folder / "payload").write_text(json.dumps(payload))
        hook = f"{shlex.join([sys.executable, '-m', 'tailhook', 'hook', '--machines', 'plates'])} < payload; exec cat"
        self.pane = self("new-window", "-d", "-P", "-F", "#{pane_id}", "-c", str(folder), hook)
        wait_until(lambda: "s" in daemon.plates())

    def __call__(self, *words):
        """Run a command of tmux; return what it prints."""
        done = subprocess.run([*self.argv, *words], env=self.env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def shown(self):
        """Return the pane that its terminal shows."""
        return self("display-message", "-p", "#{pane_id}")

    def attach(self, folder):
        """Show the session in a terminal."""
        program = shutil.which("tmux")
        client = Terminal([program, *self.argv[1:], "attach"], self.env, folder)
        client.drain()
        wait_until(lambda: self("list-clients"))


@pytest.fixture
def tmux(board_daemon, tmp_path):
    """Return a running server of tmux; end it after the test."""
    server = Tmux(tmp_path, board_daemon)
    yield server
    subprocess.run([*server.argv, "kill-server"], env=server.env, capture_output=True, check=False)


def test_o_shows_the_pane_in_which_a_session_runs(tmux, tmp_path):
    tmux.attach(tmp_path)
    assert tmux.shown() != tmux.pane

    async def play(person):
        await person.sees("thinking")
        await person.press("o")
        await person.sees("Shown: ", f"tmux pane {tmux.pane}")
        assert tmux.shown() == tmux.pane
        tmux("last-window")
        await person.press("enter")
        await person.sees("Timeline")
        await person.press("o")
        await person.until(lambda: tmux.shown() == tmux.pane)

    sit(play)


def test_o_gives_the_reason_if_the_pane_cannot_be_shown(tmux, board_daemon, tmp_path):
    async def play(person):
        await person.sees("thinking")
        await person.press("o")
        await person.sees("Not shown: ", "no current client", "y: copy the command")
        tmux.attach(tmp_path)
        tmux("kill-pane", "-t", tmux.pane)
        await person.press("o")
        await person.sees("can't find pane")
        board_daemon.post("session_end")
        await person.press("c")
        await person.sees("closed")
        await person.press("o")
        await person.sees("has ended")

    sit(play)


def test_o_names_the_machine_of_a_session_that_runs_elsewhere(board_daemon):
    terminal = {"TMUX": "/tmp/none,1,0", "TMUX_PANE": "%0"}
    board_daemon.post("prompt_submit", "far", host="elsewhere", terminal=terminal)
    board_daemon.post("prompt_submit", "near", project_path="/p/q")

    async def play(person):
        await person.sees("thinking")
        await person.press("o")
        await person.sees("the session runs on elsewhere")
        await person.press("down", "o")
        await person.sees("its terminal is unknown")

    sit(play)


@pytest.mark.usefixtures("board_daemon")
def test_without_a_session_o_and_y_do_nothing():
    async def play(person):
        await person.sees("No sessions yet.")
        await person.press("o", "y")
        assert not person.app._notifications

    sit(play)


def test_y_copies_the_command_that_resumes_a_session(board_daemon):
    board_daemon.post("prompt_submit", "a1", project_path="/p/a shop", agent_program="claude-code")
    board = Terminal(BOARD, {**board_daemon.env, "TERM": "xterm"}, board_daemon.home)
    board.until("thinking")
    os.write(board.fd, b"y")
    copied = base64.b64encode(b"cd '/p/a shop' && claude --resume a1").decode()
    board.until(f"\x1b]52;c;{copied}\x07")
    board.until("Copied")
    board.until("It is still open")
    os.write(board.fd, b"q")
    assert board.wait() == 0


def test_y_gives_the_reason_if_no_command_resumes_a_session(board_daemon):
    board_daemon.post("prompt_submit", "a1", agent_program="cursor")

    async def play(person):
        await person.sees("thinking")
        await person.press("y")
        await person.sees("No command that resumes it is known")
        assert not person.app.clipboard

    sit(play)
