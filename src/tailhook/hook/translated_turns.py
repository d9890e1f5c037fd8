"""What an agent of another host than Claude Code did since the stop before: for a loop that tailhook began.

Apart from `tailhook.hook.turns`, because a class costs a stop of Claude Code 0.1 million instructions.
"""

from tailhook.hook.event import HookEvent
from tailhook.hook.turns import TranscriptTurn, read_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tailhook.hook.turns import Use


class TranslatedTurn(TranscriptTurn):
    """The same as `TranscriptTurn`. It is unknown there which call failed, and tokens are not counted."""

    def __init__(self, event: HookEvent) -> None:
        event.final_text()  # waits for a late transcript
        super().__init__(event)

    def spent(self, fields: "Mapping[str, Any]") -> str:  # noqa: ARG002 - the interface of Claude Code's transcript
        """Return ""."""
        return ""

    def place_at(self, time: object) -> str:  # noqa: ARG002 - the times of records are unknown there
        """Return ""."""
        return ""

    def has_use_after(self, at: float, place: str) -> bool:  # noqa: ARG002 - the time of a use is unknown there
        """Return whether there is a use since a place. Raises OSError."""
        begun = read_place(place)
        messages = self.event.reverse_messages(self.fd, begun[0], self.size) if begun else ()
        return any(tools for _, _, tools in messages)

    def uses(self, place: str) -> "Iterator[Use]":  # noqa: ARG002 - the interface of Claude Code's transcript
        """Yield nothing."""
        return iter(())
