"""The board's screens look like the saved pictures. A person has checked these.

After a change of the screens, run `pytest tests/contract/boards/test_board_pictures.py --snapshot-update`, and look at
them again.
"""

import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.board_user import Person
from support.host import ENVIRONMENT
from support.terminal import Terminal
from textual.widgets import Input

EXAMPLE = Path(__file__).parents[3] / "examples" / "board.py"


@pytest.fixture
def board(monkeypatch):
    """Return the board with made-up sessions, at one time and in one time zone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield runpy.run_path(str(EXAMPLE))["make_board"]()
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("size", "keys", "words"),
    [
        pytest.param((104, 24), ["down"], ["AT REST 2"], id="list"),
        pytest.param((40, 24), [], ["WAITS FOR YOU 3"], id="narrow"),
        pytest.param((80, 24), ["c", "end"], ["legacy"], id="closed"),
        pytest.param((80, 16), ["slash", "c", "h"], ["search"], id="filtered"),
        pytest.param((104, 40), ["enter"], ["Two coupons"], id="details"),
        pytest.param((40, 30), ["enter"], ["Two coupons"], id="details_narrow"),
        pytest.param((80, 30), ["question_mark"], ["hide the session"], id="help"),
    ],
)
def test_the_screen_is_as_it_was(snap_compare, board, size, keys, words):
    async def press(pilot):
        person = Person(pilot)
        await person.sees("WAITS FOR YOU 3")
        board.query_one(Input).cursor_blink = False
        for key in keys:
            await person.press(key)
            await person.rests()
        await person.sees(*words)

    assert snap_compare(board, terminal_size=size, run_before=press)


def test_the_picture_in_the_readme_is_the_boards(tmp_path, board):
    drawn = runpy.run_path(str(EXAMPLE), run_name="picture")
    drawn["asyncio"].run(drawn["draw"](tmp_path / "board.svg", []))
    kept = EXAMPLE.parents[1] / "docs" / "images" / "board-terminal.svg"
    assert (tmp_path / "board.svg").read_text() == kept.read_text()


def test_the_demo_shows_the_board_in_a_terminal_and_otherwise_prints_its_rows(tmp_path):
    argv = [sys.executable, str(EXAMPLE), "--live", "2"]
    env = {**ENVIRONMENT, "TERM": "xterm-256color"}
    terminal = Terminal(argv, env, tmp_path)
    terminal.until("checkout")
    terminal.until("wait for you")
    assert terminal.wait() == 0
    words = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in words.splitlines() if line] == [
        *("WAITS", "?", "Two", "!", "asks", "✗", "waits"),
        *("FINISHED,", "✓", "Chapter"),
        *("STUCK", "▲", "quiet", "WORKING", "●", "●"),
        *("AT", "○", "○"),
    ]
