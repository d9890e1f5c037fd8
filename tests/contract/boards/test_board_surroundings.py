"""`tailhook board` and what is around it: a daemon that comes and goes, the desktop, a terminal or none."""

import asyncio
import errno
import os
import signal
import subprocess
import sys

import pytest
from support.board_user import populate, sit
from support.daemon import wait_until
from support.host import HANGS_S
from support.terminal import Terminal
from textual.widgets import Footer

from tailhook.board import tui
from tailhook.board.alerts import SCRIPT, make_notifier
from tailhook.board.plate_list import PlateList
from tailhook.board.source import DaemonSource
from tailhook.board.tui import Board

# httpcore leaves the socket of a connection that is refused to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

BOARD = [sys.executable, "-m", "tailhook", "board"]


# ---- a daemon that comes and goes --------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_is_restarted_is_found_again(own_daemon, how):
    populate(own_daemon)

    async def play(person):
        await person.sees("shop")
        own_daemon.stop(how)
        await person.sees("no answer from the daemon, reconnecting", "shop")
        own_daemon.start()
        await person.until(lambda: person.app.connected)
        own_daemon.post("stop", "asking", project_path="/home/ada/shop")
        await person.sees("FINISHED, NOT LOOKED AT 2")

    sit(play)


def test_every_key_may_be_pressed_before_the_daemon_has_answered(board_daemon, monkeypatch):
    board_daemon.post("session_end", project_path="/home/ada/legacy")
    may_answer, asked, changes, closed = asyncio.Event(), [], DaemonSource.changes, DaemonSource.closed

    async def answer_late(source):
        await may_answer.wait()
        async for change in changes(source):
            yield change

    async def count(source, page=""):
        asked.append(page)
        return await closed(source, page)

    monkeypatch.setattr(DaemonSource, "changes", answer_late)
    monkeypatch.setattr(DaemonSource, "closed", count)

    async def play(person):
        for binding in (*PlateList.BINDINGS, *Board.BINDINGS):
            if binding.key != "q":
                await person.press(binding.key, "escape")
        assert person.app.closed
        assert asked == []  # the statuses are not known yet
        may_answer.set()
        await person.sees("· legacy", "closed")

    sit(play)


def test_a_closed_session_that_was_deleted_while_the_daemon_was_away_is_not_shown_any_more(own_daemon):
    for session in ("kept", "gone"):
        own_daemon.post("session_end", session, project_path=f"/home/ada/{session}")

    async def play(person):
        await person.until(lambda: person.app.closed_count == 2)
        await person.press("c")
        await person.sees("· kept", "· gone")
        own_daemon.stop()
        own_daemon.delete_stored("gone")
        own_daemon.start()
        await person.misses("· gone")
        await person.sees("· kept")

    sit(play)


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # it is to outlive the board
def test_a_daemon_that_stays_away_is_started(own_daemon, monkeypatch):
    monkeypatch.setattr(tui, "RESTART_DELAY_S", 0.2)
    monkeypatch.setenv("HOME", str(own_daemon.home))

    async def play(person):
        await person.until(lambda: person.app.connected)
        own_daemon.stop()
        await person.sees("no answer from the daemon")
        await person.pilot.pause(1)
        assert own_daemon.process is None
        assert "no answer from the daemon" in person.seen  # the user does not want one to be started
        monkeypatch.delenv("TAILHOOK_NO_AUTOSTART")
        await person.until(lambda: person.app.connected)

    try:
        sit(play)
    finally:
        end_of_the_started(own_daemon)


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # it is to outlive the board
def test_a_daemon_is_started_although_the_boards_folder_is_gone(own_daemon, monkeypatch, tmp_path):
    monkeypatch.setattr(tui, "RESTART_DELAY_S", 0.2)
    monkeypatch.setenv("HOME", str(own_daemon.home))
    monkeypatch.delenv("TAILHOOK_NO_AUTOSTART")
    folder = tmp_path / "worktree"
    folder.mkdir()
    monkeypatch.chdir(folder)

    async def play(person):
        await person.until(lambda: person.app.connected)
        folder.rmdir()
        own_daemon.stop()
        await person.sees("no answer from the daemon")
        await person.until(lambda: person.app.connected)

    try:
        sit(play)
    finally:
        monkeypatch.chdir(tmp_path)
        end_of_the_started(own_daemon)


def test_a_folder_of_the_sockets_that_others_may_write_to_does_not_end_the_board(own_daemon):
    populate(own_daemon)

    async def play(person):
        await person.sees("shop")
        own_daemon.runtime.chmod(0o777)
        own_daemon.stop()
        await person.sees("no answer from the daemon", "shop")
        await person.press("d")
        await person.sees("shop stays: ")
        own_daemon.runtime.chmod(0o700)
        own_daemon.start()
        await person.until(lambda: person.app.connected)

    sit(play)


def test_a_daemon_that_cannot_be_started_does_not_end_the_board(own_daemon, monkeypatch):
    monkeypatch.setattr(tui, "RESTART_DELAY_S", 0.2)
    tried = []

    def fail():
        tried.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tailhook.plates.client.ensure_daemon", fail)

    async def play(person):
        await person.until(lambda: person.app.connected)
        own_daemon.stop()
        await person.until(lambda: len(tried) > 1)
        own_daemon.start()
        await person.until(lambda: person.app.connected)

    sit(play)


def end_of_the_started(own_daemon):
    """End a daemon that another program started."""
    found = subprocess.run(
        [sys.executable, "-c", FIND, str(own_daemon.home)], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    for pid in found.stdout.split():
        os.kill(int(pid), signal.SIGKILL)


FIND = """
import psutil, sys
for process in psutil.process_iter():
    try:
        if process.environ().get("HOME") == sys.argv[1] and "serve" in process.cmdline():
            print(process.pid)
    except psutil.Error:
        pass
"""


# ---- a change to attention ---------------------------------------------------


def test_a_change_to_attention_alerts_once(board_daemon):
    populate(board_daemon)
    called = []

    async def play(person):
        await person.sees("parser")
        board_daemon.post("permission_asked", "working", project_path="/home/ada/parser")
        await person.sees("WAITS FOR YOU 3")
        board_daemon.post("tool_start", "working", project_path="/home/ada/parser", tool_name="AskUserQuestion")
        await person.until(lambda: person.app.plates["working"]["status"].value == "awaiting_input")

    sit(play, alerts=[lambda app, plate: called.append((plate["session_id"], plate["status"].value))])
    assert called == [("working", "awaiting_approval")]


def test_a_session_alerts_that_appears_in_need_of_attention_but_not_one_that_waited_before_the_board_began(own_daemon):
    own_daemon.post("permission_asked", "waited before")
    called = []

    async def play(person):
        await person.sees("WAITS FOR YOU 1")
        own_daemon.post("permission_asked", "new")
        own_daemon.post("prompt_submit", "busy")
        await person.sees("WAITS FOR YOU 2", "WORKING 1")
        own_daemon.stop()
        await person.sees("no answer")
        own_daemon.start().post("permission_asked", "came meanwhile")
        await person.sees("WAITS FOR YOU 3")

    sit(play, alerts=[lambda app, plate: called.append(plate["session_id"])])
    assert called == ["new", "came meanwhile"]


@pytest.mark.parametrize(
    ("program", "flags", "path"),
    [
        ("notify-send", ["--app-name=tailhook"], "/p/--&lt;b&gt;"),
        ("osascript", [word for line in SCRIPT for word in ("-e", line)], "/p/--<b>"),
    ],
)
def test_a_desktop_notification_uses_the_desktops_program(board_daemon, tmp_path, program, flags, path):
    tools = tmp_path / "bin"
    tools.mkdir()
    said = tmp_path / "said"
    script = f"#!/bin/sh\nPATH=/usr/bin:/bin\nprintf '%s\\n' \"$@\" > {said}.new; mv {said}.new {said}\n"
    (tools / program).write_text(script)
    (tools / program).chmod(0o755)
    board_daemon.post("prompt_submit", "s", project_path="/p/--<b>")
    env = {**board_daemon.env, "PATH": str(tools), "TERM": "xterm"}
    board = Terminal([*BOARD, "--notify", "--bell"], env, tmp_path)
    board.until("thinking")
    board.seen = ""  # the sequence that names the window ends in a bell's character
    board_daemon.post("permission_asked", "s", project_path="/p/--<b>")
    board.until("\x07")
    wait_until(said.exists)
    assert said.read_text().splitlines() == [*flags, "--", "--<b>: awaiting approval", path]
    board.until("\x1b]2;(1) tailhook\x1b\\")
    os.write(board.fd, b"q")
    assert board.wait() == 0
    assert "\x1b[23;2t" in board.seen.partition("(1) tailhook")[2]  # the tab gets its old title back


@pytest.mark.parametrize(
    ("script", "reason"),
    [("echo 'no notification service' >&2; exit 1", "no notification service"), ("exit 3", "notify-send exits 3")],
)
def test_the_board_shows_why_there_is_no_desktop_notification(board_daemon, tmp_path, monkeypatch, script, reason):
    program = tmp_path / "notify-send"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    async def play(person):
        await person.sees("No sessions yet")
        board_daemon.post("permission_asked", "s", project_path="/p/shop")
        await person.sees("No desktop notification", reason)

    sit(play, alerts=[make_notifier()])


# ---- the command -------------------------------------------------------------


def refused(daemon, *flags, **environment):
    """Return the command's output in a terminal without a board."""
    board = Terminal([*BOARD, *flags], {**daemon.env, "TERM": "xterm", **environment}, daemon.home)
    assert board.wait() == 1
    return board.seen


def test_if_no_daemon_runs_and_none_may_be_started_it_prints_how_to_start_one(own):
    assert (
        refused(own, TAILHOOK_NO_AUTOSTART="1") == "tailhook: no daemon answers. Start one:  tailhook plates serve\r\n"
    )


def test_without_a_notification_program_notify_is_refused(board_daemon, tmp_path):
    assert "neither notify-send nor osascript" in refused(board_daemon, "--notify", PATH=str(tmp_path))


def test_if_no_daemon_runs_one_is_started(own_daemon):
    own_daemon.stop()
    del own_daemon.env["TAILHOOK_NO_AUTOSTART"]
    board = Terminal(BOARD, {**own_daemon.env, "TERM": "xterm"}, own_daemon.home)
    try:
        board.until("No sessions yet")
        os.write(board.fd, b"q")
        assert board.wait() == 0
    finally:
        end_of_the_started(own_daemon)


def ensured(daemon, command, **limits):
    """Start a daemon as the boards do. No other program's daemon is waited for.

    command: a shell's, in place of the one that starts the daemon; "$@" is that one.
    """
    changes = {"OTHER_START_TIMEOUT_S": 0, **limits}
    code = (
        "import sys\nfrom tailhook.plates import client\nargv = client.own_argv()\n"
        "client.own_argv = lambda: ['/bin/sh', '-c', sys.argv[1], 'sh', *argv]\n"
        f"vars(client).update({changes!r})\nclient.ensure_daemon()"
    )
    argv = [sys.executable, "-c", code, command]
    return subprocess.run(argv, env=daemon.env, capture_output=True, text=True, timeout=HANGS_S / 2, check=False)


def test_a_daemon_that_starts_slowly_is_waited_for(own_daemon):
    own_daemon.stop()
    del own_daemon.env["TAILHOOK_NO_AUTOSTART"]
    try:
        assert ensured(own_daemon, 'sleep 1; exec "$@"').stderr == ""
    finally:
        end_of_the_started(own_daemon)


def test_a_daemon_that_cannot_start_is_not_waited_for(own_daemon):
    own_daemon.stop()
    del own_daemon.env["TAILHOOK_NO_AUTOSTART"]
    assert "no daemon answers" in ensured(own_daemon, "exit 3", DAEMON_START_TIMEOUT_S=HANGS_S).stderr


def test_without_a_terminal_it_names_the_other_commands(board_daemon):
    done = subprocess.run(BOARD, env=board_daemon.env, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tailhook: the board needs a terminal. Without one:  tailhook plates list\n"


def test_the_board_is_drawn_in_the_terminal_if_errors_go_into_a_file(board_daemon, tmp_path):
    argv = ["/bin/sh", "-c", f'exec "$0" -m tailhook board 2>{tmp_path}/log', sys.executable]
    board = Terminal(argv, {**board_daemon.env, "TERM": "xterm"}, board_daemon.home)
    board.until("No sessions yet")
    os.write(board.fd, b"q")
    assert board.wait() == 0
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("missing", ["textual", "httpx_sse", "httpx"])
def test_without_its_packages_it_prints_what_to_install(board_daemon, missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from tailhook.cli import main; sys.exit(main(['board']))"
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=board_daemon.env, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 1
    assert f"Install them with:  {sys.executable} -m pip install 'tailhook[board]'\n" in done.stderr
    assert done.stderr.count("\n") == 1


def close_slowly(monkeypatch):
    """Make the widgets of every screen take longer to close than the time between two drawings."""

    async def linger(self):
        await asyncio.sleep(1.5)

    monkeypatch.setattr(Footer, "on_unmount", linger, raising=False)


def test_a_board_that_closes_slowly_is_not_drawn_meanwhile(board_daemon, monkeypatch):
    populate(board_daemon)
    close_slowly(monkeypatch)

    async def play(person):
        await person.sees("shop", "docs", "parser")
        person.app.call_later(person.app.handle, "removed", {"session_id": "asking"})

    sit(play)


def test_details_that_close_slowly_are_not_drawn_meanwhile(board_daemon, monkeypatch):
    populate(board_daemon)
    close_slowly(monkeypatch)

    async def play(person):
        await person.sees("shop")
        await person.press("enter")
        await person.sees("AskUserQuestion", "Timeline")
        await person.press("escape")
        board_daemon.post("prompt_submit", "asking", project_path="/home/ada/shop")
        await person.sees("WORKING 2")

    sit(play)
