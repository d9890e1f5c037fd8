"""Events of the plates machine written in words, and the situation of a session after them."""

from support.plate_events import parse_event
from tailhook.machines.plates import Detail, Situation, Status, attribute, follow

RUNNING, IDLE, INPUT, APPROVAL, ERROR, CLOSED = (
    Status.RUNNING,
    Status.IDLE,
    Status.AWAITING_INPUT,
    Status.AWAITING_APPROVAL,
    Status.ERROR,
    Status.CLOSED,
)


def happen(situation, words):
    """Apply an event written in words: `[AGENT/]KIND[:TOOL][=ID][(ABOUT)][ by host][ late]`."""
    words, is_late, _ = words.partition(" late")
    words, is_hosts, _ = words.partition(" by host")
    words, _, about = words.rstrip(")").partition("(")
    words, _, tool_use_id = words.partition("=")
    agent_id, _, words = words.rpartition("/")
    kind, _, tool = words.partition(":")
    short = words if kind in ("tool_start", "stop") and tool else kind
    event = parse_event(short) if short != "tool_start" else parse_event("tool_start: ")._replace(tool="")
    detail = Detail(tool_use_id, tool, about, agent_id, bool(is_hosts))
    return follow(situation, event, attribute(situation, event, detail), bool(is_late))


def play(*steps, situation=None):
    """Apply events to a running session and check the status after each; returns the last situation."""
    situation = situation or Situation(RUNNING)
    for number, (words, expected) in enumerate(steps, 1):
        situation, _ = happen(situation, words)
        assert situation.status is expected, f"step {number}: {words}"
    return situation
