"""The timeline of a session: what it did when, computed from its events. Pure: no I/O, no clock."""

from collections.abc import Mapping, Sequence
from typing import Any

from tailhook.machines.plates import EventKind, Status
from tailhook.plates.display import STATUSES
from tailhook.plates.fields import PeriodOut

# Names of periods that are not named by their tool or by the words of their status.
LABELS = {Status.RUNNING: "thinking", Status.AWAITING_INPUT: "answer", Status.AWAITING_APPROVAL: "approve"}


def find_periods(events: Sequence[Mapping[str, Any]]) -> list[PeriodOut]:
    """Return what a session did when: periods without gaps between them. The last one lasts, unless it is closed.

    A tool's period ends with the next event that shows the session's activity, because hosts do not report the end of
    some tools.

    events: rows of the table `events`, oldest first.
    """
    periods: list[PeriodOut] = []
    for event in events:
        if event["status"] is None:
            continue
        status = Status(event["status"])
        is_tool = event["event_type"] == EventKind.TOOL_START.value and status is Status.RUNNING
        tool = (event["tool_name"] or "") if is_tool else ""
        at = event["ts"]
        if periods:
            last = periods[-1]
            if (last["status"], last["tool"]) == (status, tool):
                continue
            at = max(at, last["start"])
            last["end"] = at
            if last["start"] == at:
                periods.pop()
        periods.append(make_period(at, status, tool))
    if periods and periods[-1]["status"] is Status.CLOSED:
        periods.pop()
    return periods


def make_period(start: int, status: Status, tool: str) -> PeriodOut:
    """Return a period that lasts.

    start: Unix milliseconds.
    """
    return {
        "start": start,
        "end": None,
        "lane": "agent" if status in (Status.RUNNING, Status.STARTING) else "you",
        "status": status,
        "tool": tool,
        "label": tool or LABELS.get(status, STATUSES[status]["words"]),
        "tone": STATUSES[status]["tone"],
    }
