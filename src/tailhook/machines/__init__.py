"""The state machines: pure functions, no I/O, no clock of their own. This module has their common parts."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Generic, TypeVar

    ChangeT = TypeVar("ChangeT")
else:  # importing `typing` would take longer than a hook does. Here, Generic[ChangeT] is object.
    ChangeT = 0
    Generic = (object,)

MAX_COUNT = 2**53  # beyond it, doubles are not exact, so readers may disagree about the value
MAX_FIELD_CHARS = 1000  # characters of a path, a branch or an issue in a reason
# Blank space and joiners of ordinary text (French, Japanese, Persian, emoji) that `str.isprintable` refuses.
ORDINARY = (
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u200c\u200d"
)
CLAIM = "claim"  # the session id of a loop for the next session that gets a prompt or stops


class Verdict(Generic[ChangeT]):
    """What happens to one stop.

    outcome: "block", "allow", or "fail" (an allow, but the state cannot be ended).
    why: the reason of the decision, for the log and, if `ended`, for the person.
    change: what to save, in a type that the machine defines; None if nothing changes.
    reason: the words to the agent when blocking.
    warning: a line for stderr, "" for none.
    ended: whether a loop ended here.
    end: the reason of the end, if it is to be saved beside the state; otherwise "".
    message: words for the person, also if no loop ended, "" for none.
    """

    __slots__ = ("change", "end", "ended", "message", "outcome", "reason", "warning", "why")

    def __init__(
        self,
        outcome: str,
        why: str,
        change: "ChangeT | None" = None,
        reason: str = "",
        warning: str = "",
        ended: bool = False,
        message: str = "",
    ) -> None:
        self.outcome = outcome
        self.why = why
        self.change = change
        self.reason = reason
        self.warning = warning
        self.ended = ended
        self.end = ""
        self.message = message


def owns(session_id: str, owners: "Iterable[object]", unbound_acts: bool) -> bool:
    """Return whether a session may act on a state.

    session_id: "" if the payload has none. Such a session owns no state that names a session.
    owners: an id or None, for each place of the state where a session may be named.
    unbound_acts: whether any session may act on a state that names none.
    """
    named = [owner for owner in owners if owner is not None]
    if not named:
        return unbound_acts
    return session_id != "" and all(owner in (session_id, CLAIM) for owner in named)


def whole_number(value: object, max_value: int = MAX_COUNT) -> int | None:
    """Return a count: an int, or a string of at most 64 decimal digits; None for another value, or over `max_value`."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 64:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= max_value:
        return value
    return None


def is_visible(letter: str) -> bool:
    """Return whether a character may be shown unchanged: it hides nothing and does not control a terminal."""
    return letter.isprintable() or letter in ORDINARY


def clip_field(words: str, max_chars: int = MAX_FIELD_CHARS) -> str:
    """Return a state's words for a prompt: one line, no control or format characters, not too long."""
    return "".join(letter if is_visible(letter) else "?" for letter in words[:max_chars])


def format_value(value: object) -> str:
    """Return a value of a state for a message: on one line, at most 80 characters; a container by its kind."""
    if isinstance(value, str):
        return clip_field(f'"{value}"')[:80]
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of over 60 digits"
    return repr(value)
