"""The terminal board with made-up sessions: run it to see it, or have its picture drawn.

usage: board.py [FILE.svg [KEYS...]]        the keys that are pressed before the picture is drawn, such as: enter
       board.py --live [SECONDS]            sessions that change, for so long (8); without a terminal, their rows
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tailhook.board.rows import wide
from tailhook.board.tui import Board
from tailhook.board.view import GROUPS, group_of, names, ordered, read_plate

NOW = datetime(2026, 3, 2, 14, 30, tzinfo=timezone.utc).timestamp()
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


def iso(before: float) -> str:
    """So many seconds before NOW, as the daemon writes it."""
    return datetime.fromtimestamp(NOW - before, timezone.utc).isoformat()


class Sessions:
    """The made-up sessions, as a daemon would tell them."""

    def __init__(self) -> None:
        self.plates = {
            path: {
                "session_id": path,
                "project_path": f"/home/ada/{path}",
                "git_branch": branch or None,
                "status": status,
                "last_tool": tool or None,
                "todo_progress": todo or None,
                "error": "529 overloaded" if status == "error" else None,
                "created_at": iso(86400 + number),
                "updated_at": iso(since),
                "since": iso(since),
            }
            for number, (path, branch, status, tool, todo, since) in enumerate(SESSIONS)
        }
        self.removed: asyncio.Queue[str] = asyncio.Queue()

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """All of them; then those that are dismissed."""
        yield "plates", list(self.plates.values())
        while True:
            yield "removed", {"session_id": await self.removed.get()}

    async def details(self, session_id: str) -> dict[str, Any]:
        """One of them."""
        events = [
            {
                "event_type": kind,
                "tool_name": tool or None,
                "tool_params": {"about": about} if about else None,
                "error": None,
                "ts": int((NOW - before) * 1000),
                "status": status,
            }
            for before, kind, tool, about, status in EVENTS
        ]
        return {**self.plates[session_id], "events": events, "last_message": QUESTION}

    async def dismiss(self, session_id: str) -> None:
        """Remove one of them."""
        del self.plates[session_id]
        self.removed.put_nowait(session_id)

    async def wake(self) -> None:
        """There is nothing to start."""


class LiveSessions(Sessions):
    """Made-up sessions to which the STEPS happen.  now: Unix seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self.now = now

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """All of them; then each step."""
        yield "plates", list(self.plates.values())
        for pause, path, status, tool, todo in STEPS:
            await asyncio.sleep(pause)
            now = iso(NOW - self.now())
            facts = {"status": status, "last_tool": tool, "todo_progress": todo, "error": None, "updated_at": now}
            if status != self.plates[path]["status"]:
                facts["since"] = now
            self.plates[path] |= facts
            yield "plate", self.plates[path]
        async for change in super().changes():
            yield change


async def show(seconds: float) -> None:
    """The board in this terminal, for so long or until the person leaves it."""
    begun = time.monotonic()

    def now() -> float:
        return NOW + time.monotonic() - begun

    app = Board(LiveSessions(now), now=now)
    leaving = asyncio.get_running_loop().call_later(seconds, app.exit)
    await app.run_async()
    leaving.cancel()


def in_words() -> None:
    """The board's rows on stdout, as a terminal of that width would show them."""
    console = Console(width=WIDTH, highlight=False)
    plates = [read_plate(fields) for fields in Sessions().plates.values()]
    called = names(plates)
    for group, same in groupby(ordered(plates), group_of):
        console.print(Text(f"\n {GROUPS[group]}", "bold"))
        for plate in same:
            console.print(wide(plate, called[plate.path], NOW, WIDTH))


def board() -> Board:
    """The board at the time that the sessions are made up for."""
    return Board(Sessions(), now=lambda: NOW)


async def draw(path: Path, keys: list[str]) -> None:
    """Write the picture."""
    app = board()
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
            in_words()
    elif len(sys.argv) > 1:
        asyncio.run(draw(Path(sys.argv[1]), sys.argv[2:]))
    else:
        board().run()
