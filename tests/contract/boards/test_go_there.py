"""`o` and `y` of the board: it shows the pane of the real tmux in which a hook ran, or copies a command."""

import base64
import json
import os
import shlex
import sys

import pytest
from support.board_user import sit
from support.daemon import wait_until
from support.terminal import Terminal
from support.tmux import needs_tmux, tmux_in

BOARD = [sys.executable, "-m", "tailhook", "board"]
# httpcore leaves the socket of a connection that is refused to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    needs_tmux,
]


@pytest.fixture
def tmux(board_daemon, tmp_path):
    """Yield a server of tmux; in the pane `pane` of its second window a hook has run."""
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(tmp_path), "prompt": "Go"}
    (tmp_path / "payload").write_text(json.dumps(payload))
    hook = f"{shlex.join([sys.executable, '-m', 'tailhook', 'hook', '--machines', 'plates'])} < payload; exec cat"
    with tmux_in(tmp_path, board_daemon.env) as server:
        server.pane = server("new-window", "-d", "-P", "-F", "#{pane_id}", "-c", str(tmp_path), hook)
        wait_until(lambda: "s" in board_daemon.plates())
        yield server


def shown(tmux):
    """Return the pane that the terminal of tmux shows."""
    return tmux("display-message", "-p", "#{pane_id}")


def test_o_shows_the_pane_in_which_a_session_runs(tmux, tmp_path):
    tmux.attach()
    assert shown(tmux) != tmux.pane

    async def play(person):
        await person.sees("thinking")
        await person.press("o")
        await person.sees("Shown: ", f"tmux pane {tmux.pane}")
        assert shown(tmux) == tmux.pane
        tmux("last-window")
        await person.press("enter")
        await person.sees("Timeline")
        await person.press("o")
        await person.until(lambda: shown(tmux) == tmux.pane)

    sit(play)


def test_o_gives_the_reason_if_the_pane_cannot_be_shown(tmux, board_daemon, tmp_path):
    async def play(person):
        await person.sees("thinking")
        await person.press("o")
        await person.sees("Not shown: ", "no current client", "y: copy the command")
        tmux.attach()
        tmux("kill-pane", "-t", tmux.pane)
        await person.press("o")
        await person.sees("can't find pane")
        board_daemon.post("session_end")
        await person.misses("thinking")
        await person.press("c")
        await person.until(lambda: person.app.list.chosen)  # the board asks the daemon for the closed ones
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
