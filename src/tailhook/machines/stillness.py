"""Does a loop stand still: the same words, or the same failing call?  (docs/machines/idle.md, "Standing still")

Pure, like the machines that use it. They import it only for a loop that tailhook began.
"""

from tailhook._core import fingerprint
from tailhook.machines import clip_field, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tailhook.machines.protocols import Call, Turn

CALLS_A_STOP = 3  # calls of a tool that weigh as much as a stop without any
MAX_QUOTED_CHARS = 200  # of what was repeated, in a message
FOLDED_DIGITS = bytes.maketrans(b"123456789", b"000000000")


def mark_beginning(fields: "Mapping[str, Any]", turn: "Turn | None") -> str:
    """Return what a loop saves when its first turn begins, "" if it never ends because it stands still.

    fields: of the loop.
    """
    return f"{turn.place()} 0 0 0 0" if turn and whole_number(fields.get("stuck_after")) else ""


def look_for_stillness(fields: "Mapping[str, Any]", turn: "Turn | None") -> "tuple[str, str]":
    """Return what a loop saves at a stop, and what was repeated too often: "" if nothing was.

    fields: of the loop.
    """
    stuck_after = whole_number(fields.get("stuck_after"))
    if not (turn and stuck_after):
        return "", ""
    return judge_stillness(fields.get("still"), turn, stuck_after, fields.get("began"), bool(fields.get("briefed")))


def judge_stillness(
    mark: object, turn: "Turn", stuck_after: int, began: object = None, has_started: bool = False
) -> "tuple[str, str]":
    """Return the same as `look_for_stillness`.

    mark: what it saved at the stop before: the place, and a hash and a count of the words and of the calls.
    Without one this turn is the loop's first one.
    stuck_after: stops, or a third of the calls, until the loop stands still.
    began: when the loop began.
    has_started: whether the agent has started the loop itself, so that its first turn has used a tool.
    """
    words = turn.words()
    said = hash_words(words)
    place, saved_words, stops, saved_call, calls = read_mark(mark)
    has_worked = has_started and not place
    place = place or turn.place_at(began)
    if not place:
        return f"{turn.place()} {said} 0 0 0", ""
    saved_call, calls, call = count_calls(turn.calls(place), saved_call, calls, CALLS_A_STOP * stuck_after)
    has_worked = has_worked or turn.used_tools(place) or not words.strip()
    stops = 0 if has_worked else stops + 1 if said == saved_words else 1
    new = f"{turn.place()} {said} {stops} {saved_call} {calls}"
    if stops >= stuck_after:
        shown = quote_beginning(words.decode("utf-8", "replace"))
        times = "a stop" if stops == 1 else f"{stops} stops in a row"
        return new, f"{times} without a tool, with the words {shown}"
    if call and calls >= CALLS_A_STOP * stuck_after:
        name, given, error = clip_field(call[0], MAX_QUOTED_CHARS), quote_beginning(call[1]), quote_beginning(call[2])
        return new, f"{calls} calls of {name} with the same input {given} and the same error {error}"
    return new, ""


def count_calls(found: "Iterable[Call]", saved: str, before: int, enough: int) -> "tuple[str, int, Call]":
    """Return the hash of the newest call, how many in a row are the same, and the call; "0", 0, None if it worked.

    Without a new call the saved ones stay.

    found: the new calls, newest first.  saved, before: the hash and the number at the stop before.
    """
    newest, count, call = "", 0, None
    for one in found:
        hashed = hash_words("\0".join(one).encode("utf-8", "surrogatepass")) if one else "0"
        if newest and hashed != newest:
            return newest, count, call
        if hashed == "0":
            return "0", 0, None
        newest, count, call = hashed, count + 1, call or one
        if count >= enough:
            return newest, count, call
    if not newest:
        return saved, before, None
    return newest, count + before if newest == saved else count, call


def read_mark(mark: object) -> "tuple[str, str, int, str, int]":
    """Return the parts of a saved mark; the place is "" if it is missing or not readable."""
    parts = mark.split(" ") if isinstance(mark, str) else []
    if len(parts) == 5:
        stops, calls = whole_number(parts[2]), whole_number(parts[4])
        if stops is not None and calls is not None:
            return parts[0], parts[1], stops, parts[3], calls
    return "", "", 0, "", 0


def hash_words(words: bytes) -> str:
    """Return a hash of words in which each run of blank space and each number counts as one."""
    folded = b" ".join(words.split()).translate(FOLDED_DIGITS)
    while b"00" in folded:
        folded = folded.replace(b"00", b"0")
    return f"{fingerprint(folded):016x}"


def quote_beginning(words: str) -> str:
    """Return the beginning of repeated words, as a quotation for a message."""
    words = " ".join(words.split())
    return f'"{clip_field(words, MAX_QUOTED_CHARS)}{"…" if len(words) > MAX_QUOTED_CHARS else ""}"'
