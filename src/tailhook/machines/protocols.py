"""What a loop of tailhook's own asks about a stop. For type checkers only: a hook never imports this module."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from tailhook.machines.waiting import Work

Call = tuple[str, str, str] | None  # a failed call: its tool, its input and its error; None for one that did not fail


class Turn(Protocol):
    """What the agent did since the stop before, and its background work."""

    def refuse_end(self, fields: Mapping[str, Any], reason: str, signal: str) -> tuple[str, str]:
        """Return why an end of the loop does not count, for the agent, "" if it does; and a doubt for the person.

        fields: of the loop.
        reason: to save for the end.
        signal: what the agent has written, in a word.
        """
        ...

    def spent(self, fields: Mapping[str, Any]) -> str:
        """Return the mark of the tokens that the loop has used; "" if they cannot be counted.  fields: of the loop."""
        ...

    def work(self) -> Work | None:
        """Return the background work that ends by itself or wakes the agent once; None without any."""
        ...

    def place(self) -> str:
        """Return where the next turn begins in the transcript, without ":" and blank space."""
        ...

    def place_at(self, time: object) -> str:
        """Return the place of a time in ISO 8601, "" if it is unknown. Only what is newer counts there."""
        ...

    def used_tools(self, place: str) -> bool:
        """Return whether a tool was used since a place."""
        ...

    def calls(self, place: str) -> Iterable[Call]:
        """Yield the calls of tools since a place, newest first."""
        ...

    def words(self) -> bytes:
        """Return the agent's last words in UTF-8."""
        ...
