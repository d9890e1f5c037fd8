"""Loops that tailhook began, for tests of the pure machines."""

from support.idle_states import NOW
from tailhook.machines.own_loops import OwnLoop


class QuietTurn:
    """A turn in which nothing happened: no tool, no words, no background work, no tokens. Every end counts."""

    def refuse_end(self, fields, reason, signal):
        return "", ""

    def spent(self, fields):
        return ""

    def work(self):
        return None

    def place(self):
        return "0@0"

    def place_at(self, time):
        return ""

    def used_tools(self, place):
        return bool(list(self.calls(place)))

    def calls(self, place):
        return ()

    def words(self):
        return b""


def own_loop(turn=None, now=NOW):
    """Return the function with which a machine finds its own loop.  turn: what the agent did, None if unknown."""
    return lambda fields: OwnLoop(fields, turn, now)
