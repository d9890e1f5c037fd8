"""Drives the terminal board like a person: presses keys, and waits for text on the screen."""

import asyncio
import time

from support.host import HANGS_S
from tailhook.board.source import DaemonSource
from tailhook.board.tui import Board


class Person:
    """A person in front of the terminal board."""

    def __init__(self, pilot):
        self.pilot = pilot
        self.app = pilot.app

    @property
    def seen(self):
        """Return the text on the screen."""
        return "\n".join(line.text for line in self.app.screen._compositor.render_strips())

    async def until(self, there, seconds=HANGS_S):
        """Wait until `there()` is true."""
        end = time.monotonic() + seconds
        while not there():
            assert time.monotonic() < end, self.seen
            await self.pilot.pause(0.02)

    async def sees(self, *words):
        """Wait until all of the words are on the screen."""
        await self.until(lambda: all(word in self.seen for word in words))

    async def misses(self, *words):
        """Wait until none of the words is on the screen."""
        await self.until(lambda: not any(word in self.seen for word in words))

    @property
    def drawn(self):
        """Return the screen with its colours."""
        return list(self.app.screen._compositor.render_strips())

    async def rests(self):
        """Wait until the screen has stayed as it is 10 times in a row, and for 0.5 s.

        There are 10 looks because a busy machine may pause for longer than 0.5 s.
        """
        before, same = None, 0
        while same < 10:
            after = self.drawn
            same = same + 1 if before == after else 0
            before = after
            await self.pilot.pause(0.05)

    async def press(self, *keys):
        """Press keys."""
        await self.pilot.press(*keys)

    @property
    def chosen(self):
        """Return the id of the selected session."""
        return self.app.list.chosen["session_id"]


def sit(play, size=(110, 30), **options):
    """Run the board on the daemon, and call `play` with the person in front of it. Messages stay until it ends."""
    board = Board(DaemonSource(), **options)
    board.NOTIFICATION_TIMEOUT = HANGS_S  # otherwise five seconds, in which a busy machine may not look

    async def run():
        async with board.run_test(size=size, notifications=True) as pilot:
            await play(Person(pilot))

    asyncio.run(run())


def populate(daemon):
    """Post the events of five sessions."""
    daemon.post("prompt_submit", "working", project_path="/home/ada/parser", git_branch="main")
    daemon.post(
        "tool_start", "asking", project_path="/home/ada/shop", tool_name="AskUserQuestion", git_branch="coupons"
    )
    daemon.post("stop", "resting", project_path="/home/ada/docs")
    daemon.post("stop_failure", "failing", project_path="/home/ada/mail", error="529 overloaded")
    daemon.post("session_end", "over", project_path="/home/ada/legacy")
