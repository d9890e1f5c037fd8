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


def is_stale(transcript_changed: float, last_event: float) -> bool:
    """Whether a transcript went on without an event, both in Unix seconds."""
    return transcript_changed > last_event + STALENESS_THRESHOLD
