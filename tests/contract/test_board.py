"""`tailhook board` on a running daemon: every key, as a person would press it."""

import asyncio
import os
import posix
import signal
import subprocess
import sys
import time

import pytest
from support.board_user import sit
from support.daemon import daemon_in, wait_until
from support.sessions import post_statuses_of_hours
from support.terminal import Terminal
from textual.widgets import Footer

from tailhook.board import tui
from tailhook.board.alerts import SCRIPT
from tailhook.board.screens import DetailsScreen, HelpScreen
from tailhook.board.tui import PlateList

# httpcore leaves the socket of a connection that is refused to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

BOARD = [sys.executable, "-m", "tailhook", "board"]


@pytest.fixture
def daemon(tmp_path, monkeypatch):
    """Yield a running daemon; this process takes it for its user's daemon, too."""
    with daemon_in(tmp_path) as one:
        one.env["TAILHOOK_NO_AUTOSTART"] = "1"
        monkeypatch.setenv("TAILHOOK_NO_AUTOSTART", "1")
        monkeypatch.setitem(posix.environ, b"HOME", os.fsencode(tmp_path))
        for name in (b"XDG_RUNTIME_DIR", b"XDG_STATE_HOME"):
            monkeypatch.delitem(posix.environ, name, raising=False)
        yield one.start()


def populate(daemon):
    """Post the events of five sessions."""
    daemon.post("prompt_submit", "working", project_path="/home/ada/parser", git_branch="main")
    daemon.post(
        "tool_start", "asking", project_path="/home/ada/shop", tool_name="AskUserQuestion", git_branch="coupons"
    )
    daemon.post("stop", "resting", project_path="/home/ada/docs")
    daemon.post("stop_failure", "failing", project_path="/home/ada/mail", error="529 overloaded")
    daemon.post("session_end", "over", project_path="/home/ada/legacy")


# ---- what is shown -----------------------------------------------------------


def test_sessions_that_need_attention_come_first_then_the_running_then_the_rest(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("Needs attention 2", "Running 1", "Other 1", "live")
        places = [person.seen.index(word) for word in ("shop", "mail", "parser", "docs")]
        assert places == sorted(places)
        for word in (
            "? awaiting input",
            "coupons",
            "AskUserQuestion",
            "✗ error",
            "529 overloaded",
            "● running",
            "○ idle",
        ):
            assert word in person.seen
        assert "legacy" not in person.seen

    sit(play)


def test_age_and_order_go_by_when_the_status_changed(daemon):
    post_statuses_of_hours(daemon)

    async def play(person):
        await person.sees("late", "3h", "2h", "5h")
        places = [person.seen.index(word) for word in ("first", "3h", "second", "2h", "done", "5h")]
        assert places == sorted(places)

    sit(play)


def test_projects_with_the_same_folder_name_are_shown_with_their_parents(daemon):
    daemon.post("stop", "first", project_path="/first/web")

    async def play(person):
        await person.sees("web")
        await person.misses("first/web")
        daemon.post("stop", "second", project_path="/second/web")
        await person.sees("first/web", "second/web")
        daemon.ask("DELETE", "/plates/second")
        await person.misses("first/web", "second/web")

    sit(play)


def test_a_change_is_seen_at_once_and_the_cursor_stays_on_its_session(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("docs")
        await person.press("end")
        assert person.chosen == "resting"
        daemon.post("tool_start", "resting", project_path="/home/ada/docs", tool_name="ExitPlanMode")
        await person.sees("! awaiting approval", "Needs attention 3")
        assert person.chosen == "resting"
        daemon.post("tool_call", "new", project_path="/home/ada/new", tool_params={"todos": 4, "todos_done": 1})
        await person.sees("new", "1/4")

    sit(play)


def test_words_of_a_session_neither_style_nor_steer_the_terminal(daemon):
    daemon.post("tool_start", "[bold]s\x1b[2J", project_path="/p/[red]x\x1b]0;owned\x07", tool_name="[/]\u202e\x9b31m")

    async def play(person):
        await person.sees("[red]x\\x1b]0;owned\\x07", "[/]\\u202e\\x9b31m")
        await person.press("enter")
        await person.sees("[bold]s\\x1b[2J", "tool start")
        assert not set(person.seen) & set("\x1b\x07\x9b\u202e")

    sit(play)


def test_without_a_session_it_explains_what_to_do(daemon):
    async def play(person):
        await person.sees("No sessions yet.", "tailhook install --with plates")
        await person.press("enter", "d", "down", "pagedown", "end")
        assert len(person.app.screen_stack) == 1

    sit(play)


@pytest.mark.parametrize("width", [1, 10, 20, 40, 71, 72, 300])
def test_every_width_of_the_terminal_will_do(daemon, width):
    populate(daemon)

    async def play(person):
        await person.until(lambda: len(person.app.plates) == 5)
        await person.press("c", "end", "enter")
        await person.until(lambda: person.app.screen.details)
        await person.press("escape", "question_mark", "escape", "slash", "a", "escape")

    sit(play, size=(width, 12))


def test_on_a_narrow_terminal_a_session_has_two_lines(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("shop", "awaiting input · coupons")
        lines = person.seen.splitlines()
        (at,) = (number for number, line in enumerate(lines) if "shop" in line)
        assert "awaiting input" in lines[at + 1]
        await person.pilot.resize_terminal(100, 20)
        await person.until(
            lambda: any("shop" in line and "awaiting input" in line for line in person.seen.splitlines())
        )

    sit(play, size=(40, 20))


def test_a_list_that_is_longer_than_the_terminal_scrolls_with_the_cursor(daemon):
    for number in range(30):
        daemon.post("prompt_submit", f"s{number:02}", project_path=f"/p/project-{number:02}")

    async def play(person):
        await person.sees("project-00")
        await person.press("end")
        await person.sees("project-29")
        await person.misses("project-00")
        await person.press("home")
        await person.sees("Running 30", "project-00")
        await person.press("pagedown")
        await person.until(lambda: person.chosen > "s03")
        await person.press("pageup")
        await person.until(lambda: person.chosen == "s00")

    sit(play, size=(100, 12))


def test_the_last_line_is_seen_though_the_list_just_got_longer_than_the_terminal(daemon):
    for number in range(30):
        daemon.post("prompt_submit", f"s{number:02}", project_path=f"/p/project-{number:02}")

    async def play(person):
        await person.sees("project-00")
        board = person.app
        plates = board.list.plates

        def grow():
            board.list.show(plates, "")
            board.list.action_move(len(plates))

        board.list.show(plates[:3], "")
        await person.misses("project-03")
        await person.rests()
        board.call_next(grow)
        await person.sees("project-29")

    sit(play, size=(100, 12))


# ---- the keys ----------------------------------------------------------------


def test_the_arrows_choose_and_stop_at_the_ends(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("docs")
        seen = []
        for key in ("up", "down", "down", "down", "down", "up"):
            await person.press(key)
            seen.append(person.chosen)
        assert seen == ["asking", "failing", "working", "resting", "resting", "working"]

    sit(play)


def test_a_click_chooses_and_two_open(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("docs")
        line = next(number for number, line in enumerate(person.seen.splitlines()) if "parser" in line)
        await person.pilot.click(offset=(5, line))
        assert person.chosen == "working"
        await person.pilot.click(offset=(5, line), times=2)
        await person.until(lambda: isinstance(person.app.screen, DetailsScreen))

    sit(play)


def test_enter_shows_the_details_live_and_escape_returns(daemon, tmp_path):
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(
        '{"type":"assistant","message":{"role":"assistant","content":"All [b]done[/b].\\u001b[2J"}}\n'
    )
    now = int(time.time() * 1000)
    fields = {"project_path": "/home/ada/docs", "transcript_path": str(transcript)}
    daemon.post("prompt_submit", "s", ts=now - 600_000, **fields)
    daemon.post("tool_start", "s", ts=now - 400_000, tool_name="Bash", tool_params={"command": "make test"}, **fields)
    daemon.post("stop", "s", ts=now - 200_000, **fields)

    async def play(person):
        await person.sees("docs")
        await person.press("enter")
        await person.sees("/home/ada/docs", "All [b]done[/b].", "Bash  make test", "prompt submit")
        await person.sees("agent", "you", "idle 3m", "now", "● running 6m")
        daemon.post("prompt_submit", "s", **fields)
        await person.sees("● running")
        await person.press("escape")
        await person.sees("Running 1")

    sit(play)


def test_the_details_of_a_session_that_is_gone_show_that(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("shop")
        daemon.stop(signal.SIGKILL)
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, DetailsScreen))
        await person.press("escape")
        await person.until(lambda: len(person.app.screen_stack) == 1)
        daemon.start()
        await person.sees("live")
        plate = person.app.plates["asking"]
        daemon.ask("DELETE", "/plates/asking")
        person.app.post_message(PlateList.Opened(plate))
        await person.sees("shop: no such plate")

    sit(play)


def test_a_filter_is_typed_kept_and_taken_back(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("shop", "docs", "parser")
        await person.press("slash", *"ada")
        await person.press("space", *"AWAIT")
        await person.misses("docs", "parser")
        await person.sees("shop")
        await person.press("enter", "d")  # the keys are the list's again
        await person.sees("Nothing matches. Esc shows all.")
        await person.press("escape")
        await person.sees("docs", "parser")
        assert person.app.filter.value == ""
        await person.press("slash", "enter")
        assert person.app.focused is person.app.list

    sit(play)
    assert set(daemon.plates()) == {"working", "resting", "failing", "over"}


def test_letters_in_the_filter_are_not_keys(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("shop")
        await person.press("slash", *"dcq?/")
        assert person.app.filter.value == "dcq?/"

    sit(play)
    assert len(daemon.plates()) == 5


def test_d_dismisses_the_chosen_session(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("shop")
        await person.press("down", "d")
        await person.misses("mail")
        assert person.chosen == "working"

    sit(play)
    assert set(daemon.plates()) == {"asking", "working", "resting", "over"}


def test_a_dismissal_that_cannot_be_done_is_reported(daemon):
    populate(daemon)

    async def play(person):
        await person.sees("shop")
        daemon.stop(signal.SIGKILL)
        await person.press("d")
        await person.sees("shop stays: no")

    sit(play)


def test_c_shows_the_closed_ones_and_hides_them(daemon):
    daemon.post("tool_start", "over", project_path="/home/ada/legacy", tool_name="Bash", ts=1)
    daemon.post("session_end", "over", project_path="/home/ada/legacy", ts=2)

    async def play(person):
        await person.sees("All sessions are closed. Press c to see them.")
        await person.press("c")
        await person.sees("legacy", "· closed", "closed too")
        assert "Bash" not in person.seen
        await person.press("c")
        await person.misses("legacy")

    sit(play)


def test_the_question_mark_explains_the_keys(daemon):
    async def play(person):
        await person.sees("live")
        await person.press("question_mark")
        await person.sees("choose a session", "dismiss the session", "awaiting approval")
        await person.press("question_mark")
        await person.until(lambda: not isinstance(person.app.screen, HelpScreen))

    sit(play)


def test_q_quits(daemon):
    async def play(person):
        await person.sees("live")
        await person.press("q")
        assert person.app.return_code == 0

    sit(play)


# ---- a daemon that comes and goes --------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_is_restarted_is_found_again(daemon, how):
    populate(daemon)

    async def play(person):
        await person.sees("live", "shop")
        daemon.stop(how)
        await person.sees("no answer from the daemon, reconnecting", "shop")
        daemon.start()
        await person.sees("live")
        daemon.post("stop", "asking", project_path="/home/ada/shop")
        await person.sees("Other 2")

    sit(play)


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # it is to outlive the board
def test_a_daemon_that_stays_away_is_started(daemon, monkeypatch):
    monkeypatch.setattr(tui, "RESTART_DELAY_S", 0.2)
    monkeypatch.setenv("HOME", str(daemon.home))

    async def play(person):
        await person.sees("live")
        daemon.stop()
        await person.sees("no answer from the daemon")
        await person.pilot.pause(1)
        assert daemon.process is None
        assert "no answer from the daemon" in person.seen  # the user does not want one to be started
        monkeypatch.delenv("TAILHOOK_NO_AUTOSTART")
        await person.sees("live")

    try:
        sit(play)
    finally:
        end_of_the_started(daemon)


def end_of_the_started(daemon):
    """End a daemon that another program started."""
    found = subprocess.run(
        [sys.executable, "-c", FIND, str(daemon.home)], capture_output=True, text=True, check=True, timeout=60
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


def test_a_change_to_attention_alerts_once(daemon):
    populate(daemon)
    called = []

    async def play(person):
        await person.sees("live", "parser")
        daemon.post("permission_asked", "working", project_path="/home/ada/parser")
        await person.sees("Needs attention 3")
        daemon.post("tool_start", "working", project_path="/home/ada/parser", tool_name="AskUserQuestion")
        await person.until(lambda: person.seen.count("awaiting input") == 2)

    sit(play, alerts=[lambda app, plate: called.append((plate["session_id"], plate["status"].value))])
    assert called == [("working", "awaiting_approval")]


def test_a_session_alerts_that_appears_in_need_of_attention_but_not_one_that_waited_before_the_board_began(daemon):
    daemon.post("permission_asked", "waited before")
    called = []

    async def play(person):
        await person.sees("live", "Needs attention 1")
        daemon.post("permission_asked", "new")
        daemon.post("prompt_submit", "busy")
        await person.sees("Needs attention 2", "Running 1")
        daemon.stop()
        await person.sees("no answer")
        daemon.start().post("permission_asked", "came meanwhile")
        await person.sees("live", "Needs attention 3")

    sit(play, alerts=[lambda app, plate: called.append(plate["session_id"])])
    assert called == ["new", "came meanwhile"]


@pytest.mark.parametrize(
    ("program", "flags", "path"),
    [
        ("notify-send", ["--app-name=tailhook"], "/p/--&lt;b&gt;"),
        ("osascript", [word for line in SCRIPT for word in ("-e", line)], "/p/--<b>"),
    ],
)
def test_a_desktop_notification_uses_the_desktops_program(daemon, tmp_path, program, flags, path):
    tools = tmp_path / "bin"
    tools.mkdir()
    said = tmp_path / "said"
    script = f"#!/bin/sh\nPATH=/usr/bin:/bin\nprintf '%s\\n' \"$@\" > {said}.new; mv {said}.new {said}\n"
    (tools / program).write_text(script)
    (tools / program).chmod(0o755)
    daemon.post("prompt_submit", "s", project_path="/p/--<b>")
    env = {**daemon.env, "PATH": str(tools), "TERM": "xterm"}
    board = Terminal([*BOARD, "--notify", "--bell"], env, tmp_path)
    board.until("running")
    board.seen = ""  # the sequence that names the window ends in a bell's character
    daemon.post("permission_asked", "s", project_path="/p/--<b>")
    board.until("\x07")
    wait_until(said.exists)
    assert said.read_text().splitlines() == [*flags, "--", "--<b>: awaiting approval", path]
    os.write(board.fd, b"q")
    assert board.wait() == 0


# ---- the command -------------------------------------------------------------


def refused(daemon, *flags, **environment):
    """Return what the command prints in a terminal when it does not show a board."""
    board = Terminal([*BOARD, *flags], {**daemon.env, "TERM": "xterm", **environment}, daemon.home)
    assert board.wait() == 1
    return board.seen


def test_if_no_daemon_runs_and_none_may_be_started_it_prints_how_to_start_one(daemon):
    daemon.stop()
    assert refused(daemon) == "tailhook: no daemon answers. Start one:  tailhook plates serve\r\n"


def test_without_a_notification_program_notify_is_refused(daemon, tmp_path):
    assert "neither notify-send nor osascript" in refused(daemon, "--notify", PATH=str(tmp_path))


def test_if_no_daemon_runs_one_is_started(daemon):
    daemon.stop()
    del daemon.env["TAILHOOK_NO_AUTOSTART"]
    board = Terminal(BOARD, {**daemon.env, "TERM": "xterm"}, daemon.home)
    try:
        board.until("No sessions yet")
        os.write(board.fd, b"q")
        assert board.wait() == 0
    finally:
        end_of_the_started(daemon)


def test_without_a_terminal_it_names_the_other_commands(daemon):
    done = subprocess.run(BOARD, env=daemon.env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tailhook: the board needs a terminal. Without one:  tailhook plates list\n"


@pytest.mark.parametrize("missing", ["textual", "httpx_sse", "httpx"])
def test_without_its_packages_it_prints_what_to_install(daemon, missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from tailhook.cli import main; sys.exit(main(['board']))"
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=daemon.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "needs more packages. Install them with:  pip install 'tailhook[board]' (" in done.stderr
    assert done.stderr.count("\n") == 1


def close_slowly(monkeypatch):
    """Make the widgets of every screen take longer to close than the time between two drawings."""

    async def linger(self):
        await asyncio.sleep(1.5)

    monkeypatch.setattr(Footer, "on_unmount", linger, raising=False)


def test_a_board_that_closes_slowly_is_not_drawn_meanwhile(daemon, monkeypatch):
    populate(daemon)
    close_slowly(monkeypatch)

    async def play(person):
        await person.sees("shop", "docs", "parser")
        person.app.call_later(person.app.handle, "removed", {"session_id": "asking"})

    sit(play)


def test_details_that_close_slowly_are_not_drawn_meanwhile(daemon, monkeypatch):
    populate(daemon)
    close_slowly(monkeypatch)

    async def play(person):
        await person.sees("shop")
        await person.press("enter")
        await person.sees("AskUserQuestion", "Timeline")
        await person.press("escape")
        daemon.post("prompt_submit", "asking", project_path="/home/ada/shop")
        await person.sees("live", "Running 2")

    sit(play)
