"""The board's screens, as they were when somebody looked at them and found them good.

After a change that is meant: `pytest tests/contract/test_board_pictures.py --snapshot-update`, and look at them again.
"""

import runpy
import time
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "board.py"


@pytest.fixture
def board(monkeypatch):
    """The board with made-up sessions, at one moment, at one place."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield runpy.run_path(str(EXAMPLE))["board"]()
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("size", "keys"),
    [
        pytest.param((104, 24), ["down"], id="list"),
        pytest.param((40, 24), [], id="narrow"),
        pytest.param((80, 24), ["c", "end"], id="closed"),
        pytest.param((80, 16), ["slash", "c", "h"], id="filtered"),
        pytest.param((104, 40), ["enter"], id="details"),
        pytest.param((40, 30), ["enter"], id="details_narrow"),
        pytest.param((80, 30), ["question_mark"], id="help"),
    ],
)
def test_the_screen_is_as_it_was(snap_compare, board, size, keys):
    async def press(pilot):
        await pilot.pause(0.5)
        await pilot.press(*keys)
        await pilot.pause(0.5)

    assert snap_compare(board, terminal_size=size, run_before=press)


def test_the_picture_in_the_readme_is_the_boards(tmp_path, board):
    drawn = runpy.run_path(str(EXAMPLE), run_name="picture")
    drawn["asyncio"].run(drawn["draw"](tmp_path / "board.svg", []))
    kept = EXAMPLE.parents[1] / "docs" / "images" / "board-terminal.svg"
    assert (tmp_path / "board.svg").read_text() == kept.read_text()
