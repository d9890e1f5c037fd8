"""What an event changes in its plate. Pure: a plate and a report in, a plate out."""

from typing import NamedTuple, cast, get_args, get_type_hints

from tailhook.machines.plates import Event, EventKind, OpenTool, Situation, Status, admits, attribute, follow, precedes
from tailhook.plates.fields import IS_FACT, PlateFields
from tailhook.plates.schemas import STOP_PAUSED, Report
from tailhook.plates.tables import Plate

FACTS = [name for name, hint in get_type_hints(PlateFields, include_extras=True).items() if IS_FACT in get_args(hint)]

AFTER_STOPS = EventKind.TURN_ENDED, EventKind.SUBAGENT_STOP  # after them a session still stands as in LASTING
LASTING = STOP_PAUSED, EventKind.INTERRUPTED.value


class Change(NamedTuple):
    """What an event does to its plate.

    plate: after the event; None if the event changes nothing in it.
    status: of the session after the event; None if the event changes nothing that a timeline shows.
    """

    plate: Plate | None
    status: str | None


def situation_of(plate: Plate) -> Situation:
    """Return the situation of a plate's session, as the state machine knows it."""
    tools = tuple(
        OpenTool(
            tool_use_id or "",
            name or "",
            about or "",
            agent_id or "",
            Status(wait) if wait else None,
            tuple(choice or "" for choice in choices),
        )
        for tool_use_id, name, about, agent_id, wait, *choices in plate["tools"] or ()
    )
    beneath = Status(plate["beneath"]) if plate["beneath"] else None
    return Situation(Status(plate["status"]), tools, beneath)


def set_situation(plate: Plate, after: Situation, at: int, now: int) -> None:
    """Store a situation in a plate.

    at: when the event happened, in Unix milliseconds by its hook's clock.
    now: the time here. No status begins in the future, even if the hook's clock is ahead.
    """
    tools: list[list[str | None]] = [
        [tool.tool_use_id, tool.name, tool.about, tool.agent_id, tool.wait and tool.wait.value, *tool.choices]
        for tool in after.tools
    ]
    plate["tools"] = tools or None
    plate["beneath"] = after.beneath.value if after.beneath else None
    if after.status.value != plate["status"]:
        plate["status"] = after.status.value
        plate["since"] = min(at, now)


def apply_report(plate: Plate, report: Report, owner: str | None, now: int) -> Change:
    """Return what an event changes in its plate, which is not changed itself.

    A session keeps the project in which it began, even if its agent changes the folder. A person's prompt shows a
    hidden session again.

    Some events only fill empty columns and update the open tools: late ones, those of sub-agents, and those about
    another tool than the awaited one.

    owner: the spool's id of the daemon that looks after the plate from now on, or None.
    now: Unix milliseconds.
    """
    event = report.event()
    if event is None:
        return Change(None, None)
    before = situation_of(plate)
    detail = attribute(before, event, report.detail())
    is_late = precedes(report.ts, report.mono, plate["event_ts"], plate["event_mono"])
    is_admitted = admits(before.status, event)
    after, reaches = follow(before, event, detail, is_late) if is_admitted else (before, False)
    is_newest = is_admitted and not is_late
    is_own = not detail.agent_id
    if event.kind is EventKind.TURN_ENDED and plate["background"]:
        after, reaches = before, False  # the turn goes on when an agent in the background ends
    if event.kind in AFTER_STOPS and after == before and before.own is not Status.RUNNING:
        reaches = False  # the turn had ended before, and the boards show how
    is_moved = reaches or after.status is not before.status
    new = plate.copy()
    new["created_at"] = min(plate["created_at"], report.ts)
    if is_own and report.leads_to_a_prompt():
        new["project_path"] = report.project_path
    set_facts(new, report, only_empty=not (is_newest and is_own))
    if is_newest:
        set_process(new, report, event.kind)
        new["owner"] = owner
        new["silent_since"] = new["quiet_since"] = None
        new["background"] = count_background_agents(plate, report, event)
    if is_newest and is_own:
        here = report.folder or report.project_path
        new["folder"] = None if here == new["project_path"] else here
        if event.kind is EventKind.PROMPT_SUBMIT and not report.by_host:
            new["hidden_at"] = None
        # Without an uptime, an event time in the future would make all later events look late.
        new["event_ts"] = report.ts if report.mono is not None else min(report.ts, now)
        new["event_mono"] = report.mono
        new["transcript_size"] = report.transcript_size
        new["unprompted"] = report.leads_to_a_prompt()
        if event.kind in (EventKind.SESSION_START, EventKind.PROMPT_SUBMIT):
            new["terminal"] = report.terminal
    if is_newest and is_own:
        is_at_rest = report.leads_to_a_prompt() or before.own is Status.IDLE
        if event.kind is EventKind.SESSION_START and is_at_rest and new["finished_at"] is None:
            new["prompted_at"] = None  # the turn before was cut off: it never ends by itself
        follow_turn(new, event, has_become_idle(before, after), min(report.ts, now), report.by_host)
        if event.kind is EventKind.STOP:
            new["reply"] = report.reply
    follow_last_agent(new, before, after, min(report.ts, now))
    if is_moved:
        set_newest_event(new, report, event)
    if after != before:
        set_situation(new, after, report.ts, now)
    is_changed = is_newest or is_moved or new != plate
    return Change(new if is_changed else None, after.status.value if is_moved else None)


def has_become_idle(before: Situation, after: Situation) -> bool:
    """Return whether a session's own agent worked before an event, and is idle after it."""
    return before.own is Status.RUNNING and after.own is Status.IDLE


def follow_turn(plate: Plate, event: Event, becomes_idle: bool, at: int, by_host: bool = False) -> None:
    """Store what an event of a session shows of its turn: when it began, and when it ended by itself.

    becomes_idle: see `has_become_idle`. A host may report the end of a turn again later, also of an interrupted one.
    at: when the event happened, in Unix milliseconds.
    by_host: whether the host wrote the prompt.
    """
    if event.kind is EventKind.PROMPT_SUBMIT:
        plate["finished_at"] = plate["seen_at"] = plate["reply"] = None
        if not by_host or plate["prompted_at"] is None:
            plate["prompted_at"] = at
    elif event == Event(EventKind.STOP):
        plate["finished_at"], plate["seen_at"] = at, None
    elif event.kind is EventKind.TURN_ENDED and becomes_idle:
        if plate["prompted_at"] is not None and plate["finished_at"] is None:
            plate["finished_at"] = at
    elif event.kind is EventKind.INTERRUPTED:
        plate["finished_at"] = None
    elif event.kind is EventKind.SESSION_START and plate["finished_at"] is not None:
        plate["seen_at"] = at  # the person who starts it sees how it ended


def follow_last_agent(plate: Plate, before: Situation, after: Situation, at: int) -> None:
    """Store that a turn has ended if the last sub-agent has, after its session had stopped.

    at: when that happened, in Unix milliseconds.
    """
    stopped_at = plate["finished_at"]
    if stopped_at is not None and before.own is Status.IDLE and before.agents and after.status is Status.IDLE:
        plate["finished_at"], plate["seen_at"] = max(stopped_at, at), None


def count_background_agents(plate: Plate, report: Report, event: Event) -> int | None:
    """Return how many agents work in the background after the newest event of a session, or None."""
    if event.kind is EventKind.SUBAGENT_STOP:
        return max(0, (plate["background"] or 0) - 1) or None
    if event.kind is EventKind.TURN_ENDED or report.agent_id:
        return plate["background"]
    return report.background if report.has_background_work() else None


def set_newest_event(plate: Plate, report: Report, event: Event) -> None:
    """Store what a board shows of an event that changes the session's status."""
    has_failed = event.has_error or event.kind is EventKind.STOP_FAILURE
    set_newest_type(plate, report.event_type, event)
    plate["error"] = report.error if has_failed else None
    if report.tool_name and event.kind in (EventKind.TOOL_START, EventKind.PERMISSION_ASKED):
        plate["last_tool"] = report.tool_name


def set_newest_type(plate: Plate, event_type: str, event: Event) -> None:
    """Store the type of the newest event, unless the one before still describes the session."""
    if event.kind not in AFTER_STOPS or plate["last_event_type"] not in LASTING:
        plate["last_event_type"] = event_type


def set_facts(plate: Plate, report: Report, only_empty: bool) -> None:
    """Store the facts about the session that an event reports.

    only_empty: whether columns with a value stay as they are.
    """
    found = {name: getattr(report, name) for name in FACTS}
    before = dict(plate)
    facts = {
        name: value
        for name, value in found.items()
        if value is not None and not (only_empty and before[name] is not None)
    }
    plate.update(cast("Plate", facts))


def set_process(plate: Plate, report: Report, kind: EventKind) -> None:
    """Store what the event reports about the session's process.

    A guessed process is confirmed by a second event with the same process: a wrapper shell around one hook has exited
    by then. If a closed plate is opened again, its old process no longer counts.
    """
    if plate["status"] != Status.CLOSED.value:
        if report.pid is None:
            return
        starts = {report.pid_started, plate["pid_started"]} - {None}
        if report.pid == plate["pid"] and len(starts) < 2:
            plate["pid_started"] = next(iter(starts), None)
            plate["pid_is_guess"] = False
            return
        is_known = plate["pid"] is not None and not plate["pid_is_guess"]
        if is_known and report.pid_is_guess and kind is not EventKind.SESSION_START:
            return
    plate["pid"] = report.pid
    plate["pid_started"] = report.pid_started
    plate["pid_is_guess"] = report.pid_is_guess
