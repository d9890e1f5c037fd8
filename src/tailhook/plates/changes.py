"""What an event changes in its plate. Pure: a row and a report in, columns out."""

from typing import Any

from sqlalchemy.engine import RowMapping

from tailhook.machines.plates import Kind, OpenTool, Situation, Status, admits, follow, precedes
from tailhook.plates.report import Report
from tailhook.plates.tables import Plate


def situation_of(row: RowMapping | Plate) -> Situation:
    """Return where a plate's session stands."""
    tools = tuple(
        OpenTool(tool_use_id, name, about, agent_id, Status(wait) if wait else None)
        for tool_use_id, name, about, agent_id, wait in row["tools"] or ()
    )
    beneath = Status(row["beneath"]) if row["beneath"] else None
    return Situation(Status(row["status"]), tools, beneath)


def columns_of(row: RowMapping, after: Situation, at: int, now: int) -> dict[str, Any]:
    """Return what another situation changes, by its columns.

    at: when the event happened, in Unix milliseconds by its hook's clock.
    now: the time here. A clock that is ahead makes no status begin in the future.
    """
    tools = [[*tool[:-1], tool.wait.value if tool.wait else None] for tool in after.tools]
    new: dict[str, Any] = {"tools": tools or None, "beneath": after.beneath.value if after.beneath else None}
    if after.status.value != row["status"]:
        new |= {"status": after.status.value, "since": min(at, now)}
    return new


def new_values(row: RowMapping, report: Report, keeper: str | None, now: int) -> "tuple[dict[str, Any], str | None]":
    """Return what the event changes in its plate, and the status after it, or None if it changed nothing.

    An event that is late, belongs to a sub-agent, or is about a tool beside the one that is waited for fills what is
    empty, and says what is open.
    """
    event, detail = report.event(), report.detail()
    if event is None:
        return {}, None
    before = situation_of(row)
    is_late = precedes(report.ts, report.mono, row["event_ts"], row["event_mono"])
    is_admitted = admits(before.status, event)
    after, reaches = follow(before, event, detail, is_late) if is_admitted else (before, False)
    is_moved = reaches or after.status is not before.status
    new = facts_of(report)
    is_newest = is_admitted and not is_late
    if not is_newest or detail.agent_id:
        new = {name: value for name, value in new.items() if row[name] is None}
    if is_newest:
        new |= {**process_of(row, report, event.kind), "keeper": keeper}
    if is_newest and not detail.agent_id:
        new |= {
            "project_path": report.project_path,
            # Without the other clock, a time that is still to come would make all that follows late.
            "event_ts": report.ts if report.mono is not None else min(report.ts, now),
            "event_mono": report.mono,
            "transcript_size": report.transcript_size,
            "unprompted": report.leads_to_a_prompt(),
        }
    if is_moved:
        has_failed = event.has_error or event.kind is Kind.STOP_FAILURE
        new |= {"last_event_type": report.event_type, "error": report.error if has_failed else None}
        if report.tool_name and event.kind in (Kind.TOOL_START, Kind.PERMISSION_ASKED):
            new["last_tool"] = report.tool_name
    if after != before:
        new |= columns_of(row, after, report.ts, now)
    return new, after.status.value if is_moved else None


def facts_of(report: Report) -> dict[str, Any]:
    """Return what an event says about its session, by the columns for it."""
    facts = {
        "transcript_path": report.transcript_path,
        "git_branch": report.git_branch,
        "run_id": report.run_id,
        "host": report.host,
        "user": report.user,
        "todo_progress": report.todo_progress(),
    }
    return {name: value for name, value in facts.items() if value is not None}


def process_of(row: RowMapping, report: Report, kind: Kind) -> dict[str, Any]:
    """Return what the event changes in its plate's process.

    A guess is taken for the host once a second event names it too: a shell around a hook is gone by then. If a closed
    plate is opened again, its old process no longer counts.
    """
    said = {"pid": report.pid, "pid_started": report.pid_started, "pid_is_guess": report.pid_is_guess}
    if row["status"] == Status.CLOSED.value:
        return said
    if report.pid is None:
        return {}
    starts = {report.pid_started, row["pid_started"]} - {None}
    if report.pid == row["pid"] and len(starts) < 2:
        return {"pid_started": max(starts, default=None), "pid_is_guess": False}
    is_known = row["pid"] is not None and not row["pid_is_guess"]
    return {} if is_known and report.pid_is_guess and kind is not Kind.SESSION_START else said
