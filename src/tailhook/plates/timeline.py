"""The timeline of a session: what it did when, computed from its events. Pure: no I/O, no clock."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tailhook.machines.plates import EventKind, Status
from tailhook.plates.display import STATUSES
from tailhook.plates.fields import Lane, PeriodOut, ToolOut
from tailhook.plates.schemas import STOP_PAUSED, find_subject

# Names of periods that are not named by their tool or by the words of their status.
LABELS = {Status.RUNNING: "thinking", Status.AWAITING_INPUT: "answer", Status.AWAITING_APPROVAL: "approve"}
IN_BACKGROUND = "in the background"  # the turn has ended, and sub-agents go on
MAX_AGENT_LANES = 6
MAX_TOOLS = 100
ENDS_OF_ALL = EventKind.INTERRUPTED.value, EventKind.SESSION_END.value  # no tool and no sub-agent goes on
STOPS = EventKind.STOP.value, STOP_PAUSED, EventKind.STOP_FAILURE.value


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
        goes_on = status is Status.RUNNING and event["event_type"] == EventKind.STOP.value
        period = make_period(event["ts"], status, tool, IN_BACKGROUND if goes_on else "")
        at = event["ts"]
        if periods:
            last = periods[-1]
            if (last["status"], last["label"]) == (status, period["label"]):
                continue
            at = max(at, last["start"])
            last["end"] = at
            if last["start"] == at:
                periods.pop()
        periods.append({**period, "start": at})
    if periods and periods[-1]["status"] is Status.CLOSED:
        periods.pop()
    return periods


def make_period(start: int, status: Status, tool: str, label: str = "", lane: Lane | None = None) -> PeriodOut:
    """Return a period that has not ended.

    start: Unix milliseconds.
    label: in place of the usual one.
    lane: in place of that of the status.
    """
    return {
        "start": start,
        "end": None,
        "lane": lane or ("agent" if status in (Status.RUNNING, Status.STARTING) else "you"),
        "status": status,
        "tool": tool,
        "label": label or tool or LABELS.get(status, STATUSES[status]["words"]),
        "tone": STATUSES[status]["tone"],
    }


def ends_everything(event: Mapping[str, Any]) -> bool:
    """Return whether no tool and no sub-agent of the session goes on after an event."""
    is_over = event["event_type"] in STOPS and event["status"] != Status.RUNNING.value
    return (is_over or event["event_type"] in ENDS_OF_ALL) and not event["agent_id"]


class AgentLanes(NamedTuple):
    """The work of sub-agents.

    lanes: at most MAX_AGENT_LANES.
    more: how many sub-agents have no lane.
    """

    lanes: list[list[PeriodOut]]
    more: int


def find_agents(events: Sequence[Mapping[str, Any]]) -> AgentLanes:
    """Return what the sub-agents of a session did when.

    events: rows of the table `events`, oldest first.
    """
    found: dict[str, list[PeriodOut]] = {}  # of each sub-agent
    for event in events:
        if ends_everything(event):
            for periods in found.values():
                end_last(periods, event["ts"])
        if not (agent_id := event["agent_id"]):
            continue
        periods = found.setdefault(agent_id, [])
        kind = event["event_type"]
        end_last(periods, event["ts"])
        if kind != EventKind.SUBAGENT_STOP.value:
            start = max(event["ts"], periods[-1]["end"] or 0) if periods else event["ts"]
            tool = (event["tool_name"] or "") if kind == EventKind.TOOL_START.value else ""
            periods.append(make_period(start, Status.RUNNING, tool, lane="sub-agent"))
    return share_lanes([periods for periods in found.values() if periods])


def end_last(periods: list[PeriodOut], at: int) -> None:
    """End the last period, unless it has ended."""
    if periods and periods[-1]["end"] is None:
        periods[-1]["end"] = max(at, periods[-1]["start"])


def share_lanes(agents: list[list[PeriodOut]]) -> AgentLanes:
    """Return the lanes of sub-agents: each one gets the first lane in which nothing begins before its end.

    The newest ones get lanes first if there are too few of them.
    """
    lanes: list[list[PeriodOut]] = []
    more = 0
    for periods in sorted(agents, key=lambda one: one[0]["start"], reverse=True):
        end = periods[-1]["end"]
        free = next((lane for lane in lanes if end is not None and end <= lane[0]["start"]), None)
        if free is not None:
            free[:0] = periods
        elif len(lanes) < MAX_AGENT_LANES:
            lanes.append(periods)
        else:
            more += 1
    return AgentLanes(lanes, more)


def find_tools(events: Sequence[Mapping[str, Any]]) -> list[ToolOut]:
    """Return the newest uses of tools, newest first.

    A use ends with the event of its end: with the same id, or with the same tool if the host sends no id. If the host
    reports no end, it ends when the turn does, or the sub-agent's.

    events: rows of the table `events`, oldest first.
    """
    found: list[ToolOut] = []
    running: dict[tuple[str, str], ToolOut] = {}  # by sub-agent, and by id or tool
    for event in events:
        kind, name = event["event_type"], event["tool_name"] or ""
        key = (event["agent_id"] or "", event["tool_use_id"] or name)
        if kind == EventKind.TOOL_START.value:
            tool: ToolOut = {
                "name": name,
                "about": find_subject(event["tool_params"] or {}),
                "agent_id": event["agent_id"],
                "start": event["ts"],
                "end": None,
                "error": "",
            }
            found.append(tool)
            running[key] = tool
        elif kind == EventKind.TOOL_CALL.value and (started := running.pop(key, None)):
            started["end"] = max(event["ts"], started["start"])
            started["error"] = event["error"] or ""
        elif kind == EventKind.SUBAGENT_STOP.value and event["agent_id"]:
            end_uses(running, event["agent_id"], event["ts"])
        elif ends_everything(event):
            end_uses(running, None, event["ts"])
    return found[: -MAX_TOOLS - 1 : -1]


def end_uses(running: dict[tuple[str, str], ToolOut], agent_id: str | None, at: int) -> None:
    """End the running uses of tools of a sub-agent, or all of them (None).

    at: Unix milliseconds.
    """
    for key in [key for key in running if agent_id in (None, key[0])]:
        left = running.pop(key)
        left["end"] = max(at, left["start"])
