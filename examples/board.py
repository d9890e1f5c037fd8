"""The terminal board with made-up sessions: run it to see it, or have its picture drawn.

usage: board.py [FILE.svg [KEYS...]]        the keys to press before the picture is drawn, such as: enter board.py
       --live [SECONDS]            sessions that change, for so long (8); without a terminal, their rows
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tailhook.board.rows import draw_wide
from tailhook.board.tui import Board
from tailhook.board.view import read_plate, select_plates
from tailhook.plates.display import (
    BOARD_GROUPS,
    ProjectNames,
    describe_event,
    describe_plate,
    describe_statuses,
    encode,
)
from tailhook.plates.rows import empty_plate
from tailhook.plates.tables import Plate
from tailhook.plates.timeline import find_periods

NOW = datetime(2026, 3, 2, 14, 30, tzinfo=UTC).timestamp()
WIDTH, HEIGHT = 104, 20
WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # a picture needs nothing from elsewhere

# Project, branch, status, tool, todo progress, seconds since the last change.
SESSIONS = (
    ("shop/checkout", "feature/coupons", "awaiting_input", "AskUserQuestion", "4/7", 312),
    ("infra/dns", "main", "awaiting_approval", "ExitPlanMode", "", 95),
    ("shop/mailer", "fix/bounces", "error", "Bash", "1/3", 20),
    ("docs/handbook", "chapter-4", "running", "Edit", "2/9", 3),
    ("lib/parser", "main", "running", "Bash", "5/6", 1),
    ("shop/search", "feature/synonyms", "running", "Task", "", 12),
    ("lib/clock", "main", "starting", "", "", 2),
    ("infra/backup", "release/2.4", "idle", "Write", "8/8", 2700),
    ("web/checkout", "main", "idle", "Read", "", 9000),
    ("lib/legacy", "cleanup", "closed", "Bash", "3/3", 86400),
)
QUESTION = "Two coupons on one order: should the better one win, or should both count?\n\nBoth are a line in totals.py."
# What happens while one looks: seconds since the step before, project, status, tool, todo progress.
STEPS = (
    (0.8, "lib/clock", "running", "Read", ""),
    (0.8, "docs/handbook", "running", "Bash", "3/9"),
    (0.7, "lib/parser", "idle", "Bash", "6/6"),
    (0.9, "shop/search", "awaiting_approval", "Bash", ""),
    (0.8, "shop/checkout", "running", "Edit", "4/7"),
    (0.6, "lib/clock", "running", "Edit", "1/4"),
    (0.9, "infra/dns", "running", "Write", ""),
    (0.7, "shop/checkout", "running", "Bash", "5/7"),
    (0.8, "shop/mailer", "running", "Bash", "1/3"),
)
# Seconds before NOW, event, tool, what about, status after it.
EVENTS = (
    (3720, "session_start", "", "", "running"),
    (3700, "prompt_submit", "", "", "running"),
    (3600, "tool_start", "Read", "src/cart/totals.py", "running"),
    (3500, "tool_call", "Read", "", "running"),
    (3300, "tool_start", "Edit", "src/cart/coupons.py", "running"),
    (2900, "tool_call", "Edit", "", "running"),
    (2800, "permission_asked", "", "", "awaiting_approval"),
    (2300, "tool_start", "Bash", "make test", "running"),
    (1700, "tool_call", "Bash", "", "running"),
    (1600, "stop", "", "", "idle"),
    (1000, "prompt_submit", "", "", "running"),
    (900, "tool_start", "Bash", "make test", "running"),
    (450, "tool_call", "Bash", "", "running"),
    (312, "tool_start", "AskUserQuestion", "", "awaiting_input"),
)


def unix_ms(before: float) -> int:
    """Return the Unix milliseconds of so many seconds before NOW."""
    return int((NOW - before) * 1000)


class Sessions:
    """The made-up sessions in the daemon's form."""

    def __init__(self) -> None:
        self.names = ProjectNames()
        self.plates: dict[str, Plate] = {}
        for number, (path, branch, status, tool, todo, since) in enumerate(SESSIONS):
            plate = empty_plate(path, f"/home/ada/{path}", unix_ms(86400 + number))
            plate["git_branch"] = branch or None
            plate["status"] = status
            plate["last_tool"] = tool or None
            plate["todo_progress"] = todo or None
            plate["error"] = "529 overloaded" if status == "error" else None
            plate["since"] = plate["updated_at"] = unix_ms(since)
            self.plates[path] = plate
            self.names.put(path, plate["project_path"])
        self.changed: asyncio.Queue[str] = asyncio.Queue()

    def describe(self, path: str) -> dict[str, Any]:
        """Return one of them as the daemon's JSON."""
        plate = self.plates[path]
        found: dict[str, Any] = json.loads(encode(describe_plate(plate, self.names.name_of(plate["project_path"]))))
        return found

    def describe_all(self) -> list[dict[str, Any]]:
        """Return all of them as the daemon's JSON."""
        return [self.describe(path) for path in self.plates]

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """Yield the statuses, all sessions, then each session that is hidden or shown."""
        yield "statuses", json.loads(encode(describe_statuses()))
        yield "plates", self.describe_all()
        while True:
            yield "plate", self.describe(await self.changed.get())

    async def details(self, session_id: str) -> dict[str, Any]:
        """Return one of them with its events."""
        rows = [
            {
                "event_type": kind,
                "tool_name": tool or None,
                "agent_id": None,
                "tool_params": {"command": about} if about else None,
                "error": None,
                "ts": int((NOW - before) * 1000),
                "status": status,
            }
            for before, kind, tool, about, status in EVENTS
        ]
        events, periods = [describe_event(row) for row in rows], find_periods(rows)
        more = {"asks": "", "last_message": QUESTION, "no_message": ""}
        found: dict[str, Any] = json.loads(encode({"events": events, "periods": periods, **more}))
        return {**self.describe(session_id), **found}

    async def hide(self, session_id: str, hidden: bool) -> None:
        """Hide one of them, or show it again."""
        self.plates[session_id]["hidden_at"] = 1 if hidden else None
        self.changed.put_nowait(session_id)

    async def wake(self) -> None:
        """Do nothing: there is no daemon to start."""


class LiveSessions(Sessions):
    """Made-up sessions that go through the STEPS.

    now: returns Unix seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self.now = now

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """Yield the statuses, all sessions, then each step."""
        yield "statuses", json.loads(encode(describe_statuses()))
        yield "plates", self.describe_all()
        for pause, path, status, tool, todo in STEPS:
            await asyncio.sleep(pause)
            plate = self.plates[path]
            if status != plate["status"]:
                plate["since"] = int(self.now() * 1000)
            plate["status"], plate["last_tool"], plate["todo_progress"], plate["error"] = status, tool, todo, None
            yield "plate", self.describe(path)
        while True:
            yield "plate", self.describe(await self.changed.get())


async def show(seconds: float) -> None:
    """Show the board in this terminal for so many seconds, or until the person quits."""
    begun = time.monotonic()

    def now() -> float:
        return NOW + time.monotonic() - begun

    app = Board(LiveSessions(now), now=now)
    leaving = asyncio.get_running_loop().call_later(seconds, app.exit)
    await app.run_async()
    leaving.cancel()


def print_rows() -> None:
    """Print the board's rows."""
    console = Console(width=WIDTH, highlight=False)
    plates = map(read_plate, Sessions().describe_all())
    for group, same in groupby(select_plates(plates), lambda plate: plate["group"]):
        console.print(Text(f"\n {BOARD_GROUPS[group]['title']}", "bold"))
        for plate in same:
            console.print(draw_wide(plate, NOW, WIDTH))


def make_board() -> Board:
    """Return the board at the time for which the sessions are made up."""
    return Board(Sessions(), now=lambda: NOW)


async def draw(path: Path, keys: list[str]) -> None:
    """Write the picture to a file."""
    app = make_board()
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        await pilot.pause(0.5)
        await pilot.press(*keys)
        await pilot.pause(0.5)
        picture = app.export_screenshot(title="tailhook board")
        path.write_text(WEB_FONT.sub("", picture).replace("Fira Code", "DejaVu Sans Mono"))


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    if sys.argv[1:2] == ["--live"]:
        if sys.stdin.isatty() and sys.stdout.isatty():
            asyncio.run(show(float(sys.argv[2]) if len(sys.argv) > 2 else 8))
        else:
            print_rows()
    elif len(sys.argv) > 1:
        asyncio.run(draw(Path(sys.argv[1]), sys.argv[2:]))
    else:
        make_board().run()
