"""The plates machine: what a session is doing, told by the events of its hooks.  (docs/machines/plates.md)

Pure: status and event in, status out. Who reports, keeps and shows plates is `tailhook.hook.plates` and
`tailhook.plates`.
"""

from enum import Enum
from typing import NamedTuple

HEALTH_CHECK_INTERVAL = 10  # seconds between two looks at the transcripts
STALENESS_THRESHOLD = 2  # seconds by which a transcript must be newer than the last event
MAX_RECOVERY_TIME = 12  # seconds at the most from the transcript's advance to the recovery: the two together


class Status(Enum):
    """What a session is doing."""

    STARTING = "starting"  # registered by the wrapper; its first event has not come
    RUNNING = "running"
    IDLE = "idle"  # the turn is over; the person's move
    AWAITING_INPUT = "awaiting_input"  # it asked the person something
    AWAITING_APPROVAL = "awaiting_approval"  # it wants a plan or a tool allowed
    ERROR = "error"
    CLOSED = "closed"  # its process is gone


class Kind(Enum):
    """What happened to a session. The hooks report all but the last three; these the daemon finds in transcripts."""

    SESSION_START = "session_start"
    PROMPT_SUBMIT = "prompt_submit"
    TOOL_START = "tool_start"
    TOOL_CALL = "tool_call"  # a tool has ended
    STOP = "stop"
    STOP_BLOCKED = "stop_blocked"  # a machine sent the agent on
    STOP_FAILURE = "stop_failure"  # the turn ended in an error of the API
    PERMISSION_ASKED = "permission_asked"
    SESSION_END = "session_end"
    TURN_ENDED = "turn_ended"
    INTERRUPTED = "interrupted"
    HEALTH_CHECK_RECOVERY = "health_check_recovery"


class Event(NamedTuple):
    """Something that happened.  tool: of TOOL_START, the tool's name.  has_error: of STOP, whether it was an error."""

    kind: Kind
    tool: str = ""
    has_error: bool = False


WAITING = {"AskUserQuestion": Status.AWAITING_INPUT, "ExitPlanMode": Status.AWAITING_APPROVAL}  # tools for the person
ATTENTION = (Status.AWAITING_INPUT, Status.AWAITING_APPROVAL, Status.ERROR)  # a person has to look
EXAMINED = (*ATTENTION, Status.RUNNING)  # the others are what their transcript says, too

# The status after an event, whatever it was before ...
AFTER = {
    Kind.SESSION_START: Status.RUNNING,
    Kind.PROMPT_SUBMIT: Status.RUNNING,
    Kind.TOOL_CALL: Status.RUNNING,
    Kind.STOP_BLOCKED: Status.RUNNING,
    Kind.STOP_FAILURE: Status.ERROR,
    Kind.PERMISSION_ASKED: Status.AWAITING_APPROVAL,
    Kind.SESSION_END: Status.CLOSED,
    Kind.INTERRUPTED: Status.IDLE,
}
# ... and where only some are left by it.
LEAVING = {
    Kind.TURN_ENDED: {Status.RUNNING: Status.IDLE},
    Kind.HEALTH_CHECK_RECOVERY: dict.fromkeys(ATTENTION, Status.IDLE),
}

PLAIN = {kind.value for kind in Kind} - {"tool_start"}  # short forms that are the kind alone


def transition(status: Status, event: Event) -> Status:
    """The status after an event: pure, and total.

    >>> transition(Status.RUNNING, parse_event("tool_start:AskUserQuestion"))
    <Status.AWAITING_INPUT: 'awaiting_input'>
    """
    if event.kind is Kind.TOOL_START:
        return WAITING.get(event.tool, Status.RUNNING)
    if event.kind is Kind.STOP:
        return Status.ERROR if event.has_error else Status.IDLE
    if event.kind in LEAVING:
        return LEAVING[event.kind].get(status, status)
    return AFTER[event.kind]


def parse_event(text: str) -> Event:
    """The event that a short form names: a Kind's value, `tool_start:NAME`, `stop:error`.  ValueError for others.

    >>> parse_event("stop:error")
    Event(kind=<Kind.STOP: 'stop'>, tool='', has_error=True)
    """
    word, _, rest = text.partition(":")
    if word == "tool_start" and rest:
        return Event(Kind.TOOL_START, tool=rest)
    if text == "stop:error":
        return Event(Kind.STOP, has_error=True)
    if text not in PLAIN:
        raise ValueError(f"{text!r} is no event")
    return Event(Kind(text))


def admits(status: Status, event: Event) -> bool:
    """Whether the event still means something: a closed session is opened again by a start or a prompt alone."""
    return status is not Status.CLOSED or event.kind in (Kind.SESSION_START, Kind.PROMPT_SUBMIT)


def precedes(at: int, mono: int | None, last_at: int, last_mono: int | None) -> bool:
    """Whether an event happened before the newest one that is known, though it came after it.

    at, last_at: by the hooks' clock; mono, last_mono: since their machine's start; milliseconds. A clock that was set
    back, or a machine that was started anew, makes no event an old one.
    """
    return at < last_at and (mono is None or last_mono is None or mono < last_mono)


def is_stale(transcript_changed: float, last_event: float) -> bool:
    """Whether a transcript went on without an event, both in Unix seconds."""
    return transcript_changed > last_event + STALENESS_THRESHOLD


class Look(NamedTuple):
    """What a transcript shows at its end.

    changed: when it was written last.  at: the time in its newest record of the session's own, None for none; both in
    Unix seconds.  interrupted: that record says that the person interrupted the agent.  turn_over: it ends a turn.
    """

    changed: float
    at: float | None = None
    interrupted: bool = False
    turn_over: bool = False


def examine(status: Status, last_event: float, look: Look, now: float, first: Look | None = None) -> Event | None:
    """What a transcript tells that no hook did; None for nothing.  last_event, now: Unix seconds.

    Who waits for a person, and whose transcript went on, waits no longer: it was written more than two seconds after
    the event, or its newest record is newer than the event. Where the clock was set back, so that the event is still to
    come, times tell nothing, and the transcript went on if it is not what it was at the first look since the event.
    """
    if last_event > now:
        newer = went_on = first is not None and look != first
    else:
        newer = look.at is not None and look.at > last_event
        went_on = newer or is_stale(look.changed, last_event)
    if status in ATTENTION and went_on:
        return Event(Kind.INTERRUPTED if newer and look.interrupted else Kind.HEALTH_CHECK_RECOVERY)
    if status is Status.RUNNING and newer and look.interrupted:
        return Event(Kind.INTERRUPTED)
    if status is Status.RUNNING and newer and look.turn_over and now > look.changed + STALENESS_THRESHOLD:
        return Event(Kind.TURN_ENDED)
    return None
