"""Who sits in front of the board in the terminal: presses keys, and waits for what comes to be seen."""

import asyncio
import time

from tailhook.board.source import Daemon
from tailhook.board.tui import Board


class Person:
    """Who sits in front of the board."""

    def __init__(self, pilot):
        self.pilot = pilot
        self.app = pilot.app

    @property
    def seen(self):
        """What is on the screen."""
        return "\n".join(line.text for line in self.app.screen._compositor.render_strips())

    async def until(self, there, seconds=30):
        """Wait until it is so."""
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

    async def rests(self):
        """Wait until nothing on the screen has changed for a while."""
        before = ""
        while before != self.seen:
            before = self.seen
            await self.pilot.pause(0.3)

    async def press(self, *keys):
        """Press keys."""
        await self.pilot.press(*keys)

    @property
    def chosen(self):
        """The session that the cursor is on."""
        return self.app.list.chosen.session_id


def sit(play, size=(110, 30), **options):
    """Let a person play with a board of the daemon's."""

    async def run():
        async with Board(Daemon(), **options).run_test(size=size, notifications=True) as pilot:
            await play(Person(pilot))

    asyncio.run(run())
