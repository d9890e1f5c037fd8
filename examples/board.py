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

from tailhook.board.rows import draw_plate
from tailhook.board.tui import Board
from tailhook.board.view import read_plate, select_plates
from tailhook.plates.asked import read_asked
from tailhook.plates.context import describe_tokens
from tailhook.plates.display import (
    BOARD_GROUPS,
    ProjectNames,
    describe_event,
    describe_plate,
    describe_statuses,
    encode,
)
from tailhook.plates.markdown import read_markdown
from tailhook.plates.rows import empty_plate
from tailhook.plates.tables import Plate
from tailhook.plates.timeline import find_agents, find_periods, find_tools

NOW = datetime(2026, 3, 2, 14, 30, tzinfo=UTC).timestamp()
WIDTH, HEIGHT = 104, 21
WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # a picture needs nothing from elsewhere

# Project, branch, status, the open tool and what it is about, to-do progress, seconds in that status.
SESSIONS = (
    ("shop/checkout", "feature/coupons", "awaiting_input", "AskUserQuestion", "Two coupons: which counts?", "4/7", 312),
    ("infra/dns", "main", "awaiting_approval", "Bash", "nsupdate -k zone.key move.txt", "", 95),
    ("shop/mailer", "fix/bounces", "error", "", "", "1/3", 20),
    ("docs/handbook", "chapter-3", "idle", "", "", "9/9", 160),
    ("lib/parser", "main", "running", "Bash", "make fuzz", "5/6", 840),
    ("docs/guide", "chapter-4", "running", "Edit", "/home/ada/docs/guide/names.md", "2/9", 63),
    ("shop/search", "feature/synonyms", "running", "", "", "", 12),
    ("infra/backup", "release/2.4", "idle", "", "", "8/8", 2700),
    ("web/checkout", "main", "idle", "", "", "", 9000),
    ("lib/legacy", "cleanup", "closed", "", "", "3/3", 86400),
)
# The first line of the last prompt, and of the last message of a finished turn.
WORDS = {
    "shop/checkout": ("Coupons that may be combined", ""),
    "infra/dns": ("Move the zone to the new provider", ""),
    "shop/mailer": ("Bounced mail is sent again for ever", ""),
    "docs/handbook": ("Chapter 3: what a release is", "Chapter 3 stands. I left out the old table of ports."),
    "lib/parser": ("Read numbers as RFC 8259 has them", ""),
    "docs/guide": ("Chapter 4: how we name branches", ""),
    "shop/search": ("Synonyms from the shop's own words", ""),
    "infra/backup": ("Restore one table", "Restoring one table works."),
    "web/checkout": ("Why is the page slow?", "Two fonts block it."),
    "lib/legacy": ("Remove the old reader", ""),
}
CHOICES = ("the better one", "both")
CONTEXT = {"tokens": 129_200, "window": 258_400, "words": "129k of 258k tokens, 50 %"}
TOKENS = describe_tokens(31_000, 42_000, 1_120_000, 96_000)
TOKENS_USED = {"shop/checkout": TOKENS["used"], "infra/dns": "184k", "lib/parser": "2.9M", "docs/guide": "612k"}
TOKENS_USED |= {"shop/mailer": "95k", "docs/handbook": "340k", "shop/search": "5.4M"}
QUESTION = "Two coupons on one order: should the better one win, or should both count?\n\nBoth are a line in totals.py."
# What happens while one looks: seconds since the step before, project, status, tool, what it is about, to-do progress.
STEPS = (
    (0.8, "shop/search", "running", "Read", "/home/ada/shop/search/words.py", ""),
    (0.8, "docs/guide", "running", "Bash", "make html", "3/9"),
    (0.9, "shop/search", "awaiting_approval", "Bash", "pip download wordnet", ""),
    (0.8, "shop/checkout", "running", "Edit", "/home/ada/shop/checkout/totals.py", "4/7"),
    (0.9, "infra/dns", "running", "Bash", "nsupdate -k zone.key move.txt", ""),
    (0.7, "shop/checkout", "running", "Bash", "make test", "5/7"),
    (0.8, "lib/parser", "idle", "", "", "6/6"),
    (0.8, "shop/mailer", "running", "Bash", "make test", "1/3"),
)
# Seconds before NOW, event, tool, what about, status after it, sub-agent.
EVENTS = (
    (3720, "session_start", "", "", "running", ""),
    (3700, "prompt_submit", "", "", "running", ""),
    (3600, "tool_start", "Read", "src/cart/totals.py", "running", ""),
    (3500, "tool_call", "Read", "", "running", ""),
    (3300, "tool_start", "Edit", "src/cart/coupons.py", "running", ""),
    (2900, "tool_call", "Edit", "", "running", ""),
    (2800, "permission_asked", "", "", "awaiting_approval", ""),
    (2300, "tool_start", "Bash", "make test", "running", ""),
    (1700, "tool_call", "Bash", "", "running", ""),
    (1600, "stop", "", "", "idle", ""),
    (1000, "prompt_submit", "", "", "running", ""),
    (990, "subagent_start", "", "", None, "tests"),
    (980, "subagent_start", "", "", None, "docs"),
    (940, "tool_start", "Grep", "coupon", None, "docs"),
    (900, "tool_start", "Bash", "make test", "running", ""),
    (880, "tool_start", "Write", "tests/test_coupons.py", None, "tests"),
    (640, "tool_call", "Grep", "", None, "docs"),
    (600, "subagent_stop", "", "", None, "docs"),
    (480, "subagent_stop", "", "", None, "tests"),
    (450, "tool_call", "Bash", "", "running", ""),
    (312, "tool_start", "AskUserQuestion", "", "awaiting_input", ""),
)


def unix_ms(before: float) -> int:
    """Return the Unix milliseconds of so many seconds before NOW."""
    return int((NOW - before) * 1000)


def set_tool(plate: Plate, tool: str, about: str) -> None:
    """Let one tool of a session be open, or none. It waits if the session does."""
    wait = plate["status"] if plate["status"].startswith("awaiting") else None
    choices = CHOICES if tool == "AskUserQuestion" else ()
    plate["tools"] = [["", tool, about, None, wait, *choices]] if tool else None


class Sessions:
    """The made-up sessions in the daemon's form."""

    def __init__(self) -> None:
        self.names = ProjectNames()
        self.plates: dict[str, Plate] = {}
        for number, (path, branch, status, tool, about, todo, since) in enumerate(SESSIONS):
            headline, reply = WORDS[path]
            plate = empty_plate(path, f"/home/ada/{path}", unix_ms(86400 + number))
            plate["git_branch"], plate["status"], plate["prompt"] = branch, status, headline
            plate["todo_progress"] = todo or None
            plate["error"] = "Overloaded (529)" if status == "error" else None
            plate["last_event_type"] = "stop_failure" if status == "error" else None
            plate["since"] = plate["updated_at"] = unix_ms(since)
            plate["prompted_at"] = unix_ms(since + 1080)
            plate["quiet_since"] = unix_ms(since) if path == "lib/parser" else None
            if status == "idle":
                plate["reply"], plate["finished_at"] = reply, unix_ms(since)
                plate["seen_at"] = unix_ms(since) if since > 1000 else None
            set_tool(plate, tool, about)
            self.plates[path] = plate
            self.names.put(path, plate["project_path"])
        self.changed: asyncio.Queue[str] = asyncio.Queue()

    def describe(self, path: str) -> dict[str, Any]:
        """Return one of them as the daemon's JSON."""
        plate = self.plates[path]
        name = self.names.name_of(plate["project_path"])
        found: dict[str, Any] = json.loads(encode(describe_plate(plate, name, TOKENS_USED.get(path))))
        return found

    def beginning(self) -> list[tuple[str, Any]]:
        """Return the events with which the daemon's stream begins: of all that are not closed."""
        found = [self.describe(path) for path, plate in self.plates.items() if plate["status"] != "closed"]
        statuses = json.loads(encode(describe_statuses()))
        return [("statuses", statuses), ("plates", found), ("closed", {"sessions": len(self.plates) - len(found)})]

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """Yield the statuses, all sessions, then each session that is hidden or shown."""
        for event in self.beginning():
            yield event
        while True:
            yield "plate", self.describe(await self.changed.get())

    async def details(self, session_id: str) -> dict[str, Any]:
        """Return one of them with its events."""
        rows = [
            {
                "event_type": kind,
                "tool_name": tool or None,
                "tool_use_id": None,
                "agent_id": agent or None,
                "tool_params": {"command": about} if about else None,
                "error": None,
                "ts": int((NOW - before) * 1000),
                "status": status,
            }
            for before, kind, tool, about, status, agent in EVENTS
        ]
        events, periods = [describe_event(row) for row in rows], find_periods(rows)
        asked = read_asked(self.plates[session_id], can_read=False)
        agents = find_agents(rows)
        work = {"periods": periods, "agent_lanes": agents.lanes, "more_agents": agents.more, "tools": find_tools(rows)}
        more = {
            "asked": asked,
            "context": CONTEXT,
            "tokens": TOKENS,
            "last_message": QUESTION,
            "message": read_markdown(QUESTION),
            "no_message": "",
        }
        found: dict[str, Any] = json.loads(encode({"events": events, **work, **more}))
        return {**self.describe(session_id), **found}

    async def closed(self, page: str = "") -> tuple[list[dict[str, Any]], str]:  # noqa: ARG002
        """Return the closed ones, on one page."""
        return [self.describe(path) for path, plate in self.plates.items() if plate["status"] == "closed"], ""

    async def terminal(self, _):
        """Return no variables, because the sessions run in no terminal."""
        return {}

    async def mark(self, session_id: str, **marks: bool) -> None:
        """Hide one of them, show it again, or mark it as seen."""
        plate = self.plates[session_id]
        if "hidden" in marks:
            plate["hidden_at"] = 1 if marks["hidden"] else None
        if "seen" in marks:
            plate["seen_at"] = 1
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
        for event in self.beginning():
            yield event
        for pause, path, status, tool, about, todo in STEPS:
            await asyncio.sleep(pause)
            plate = self.plates[path]
            at = int(self.now() * 1000)
            if status != plate["status"]:
                plate["since"] = at
            plate["status"], plate["todo_progress"], plate["error"], plate["quiet_since"] = status, todo, None, None
            if status == "idle":
                plate["finished_at"], plate["reply"] = at, "All 10,000 inputs are read as the standard has it."
            set_tool(plate, tool, about)
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
    made_up = Sessions()
    plates = map(read_plate, map(made_up.describe, made_up.plates))
    for group, same in groupby(select_plates(plates), lambda plate: plate["group"]):
        console.print(Text(f" {BOARD_GROUPS[group]['title'].upper()}", "bold"))
        for plate in same:
            console.print(Text("\n").join(draw_plate(plate, NOW, WIDTH)))


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
