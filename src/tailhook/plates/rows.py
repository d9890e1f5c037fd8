"""One plate and its events in the database: each function is a part of a transaction of `tailhook.plates.db`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from tailhook.machines.plates import Status
from tailhook.plates.changes import apply_report
from tailhook.plates.schemas import Report, unix_ms
from tailhook.plates.tables import (
    FIND,
    INSERT_WAIT,
    PLATE_COLUMNS,
    SELECT_PLATES,
    UPDATE,
    Plate,
    events,
    plates,
    statements,
    unknown_events,
    waits,
)
from tailhook.plates.waits import find_ended_wait

PENDING = "pending:"  # prefix of a placeholder's id
# Rows that the retention removes in one transaction. A small number, so that events do not wait long.
SLICE_ROWS = 1000
SLICE_PLATES = 100


class Stored(NamedTuple):
    """The result of storing an event.

    is_new: whether the event was not stored before.
    plate: the changed plate, or None. It is not stored yet.
    gone: the id of the placeholder that the plate replaced, or "".
    """

    is_new: bool = False
    plate: Plate | None = None
    gone: str = ""


class Slice(NamedTuple):
    """What one transaction of the retention removed.

    gone: the ids of the removed plates.
    has_more: whether there may be more to remove.
    """

    gone: list[str]
    has_more: bool


class RacedError(Exception):
    """Another process changed the plate after it was read."""


def plate_of(row: RowMapping) -> Plate:
    """Return a row of the table `plates`."""
    return cast("Plate", dict(row))


def find_plate(tx: Connection, session_id: str) -> Plate | None:
    """Return a plate, or None if there is none."""
    row = tx.execute(FIND, {"id": session_id}).mappings().first()
    return None if row is None else plate_of(row)


def empty_plate(session_id: str, project_path: str, now: int) -> Plate:
    """Return a new plate of a session without events.

    now: Unix milliseconds.
    """
    plate = dict.fromkeys(PLATE_COLUMNS) | {
        "session_id": session_id,
        "project_path": project_path,
        "status": Status.STARTING.value,
        "created_at": now,
        "updated_at": now,
        "since": now,
        "event_ts": 0,
        "version": 0,
    }
    return cast("Plate", plate)


def insert_report(tx: Connection, report: Report, owner: str | None, read: dict[str, Plate]) -> Stored:
    """Store an event. An event of an unknown type does not create a plate. Raises RacedError.

    read: the plates that this transaction has read, by id, as its events have left them. The event changes its plate
        there; the caller stores the changed ones at the end. So a plate with many events is read and written once.
    """
    now = unix_ms()
    there, gone = read.get(report.session_id) or find_plate(tx, report.session_id), ""
    if report.event() is None and (not there or is_unknown_event(tx, report.event_id)):
        stranger = {name: getattr(report, name) for name in ("event_id", "session_id", "event_type", "ts")}
        stored = tx.execute(statements(tx.dialect.name).insert_unknown_event, {**stranger, "received_at": now})
        return Stored(stored.first() is not None, None, "")
    if there:
        plate, begun = there, None
    else:
        plate, gone = insert_plate(tx, report, now)
        begun = plate
        read.pop(gone, None)
    read[report.session_id] = plate
    new, status = apply_report(plate, report, owner, now)
    event = {
        "event_id": report.event_id,
        "session_id": report.session_id,
        "event_type": report.event_type,
        "tool_name": report.tool_name,
        "tool_use_id": report.tool_use_id,
        "agent_id": report.agent_id,
        "tool_params": report.tool_params,
        "error": report.error,
        "ts": report.ts,
        "received_at": now,
        "status": status,
    }
    stored = tx.execute(statements(tx.dialect.name).insert_event, event)
    if stored.first() is None:
        return Stored(False, begun, gone)
    if new:
        new["updated_at"] = now
        read[report.session_id] = new
        insert_ended_wait(tx, plate, new)
    return Stored(True, new or begun, gone)


def insert_ended_wait(tx: Connection, before: Plate, after: Plate) -> None:
    """Store the wait that an event has ended, if it has ended one."""
    if wait := find_ended_wait(before, after):
        tx.execute(INSERT_WAIT, {"session_id": wait.session_id, "begun_at": wait.start, "ended_at": wait.end})


def is_unknown_event(tx: Connection, event_id: str) -> bool:
    """Return whether the event is stored as one of an unknown type."""
    query = sa.select(unknown_events.c.event_id).where(unknown_events.c.event_id == event_id)
    return tx.execute(query).first() is not None


def register_placeholder(tx: Connection, wanted: Plate) -> Plate:
    """Store a placeholder for a run, or its process in the run's plate if the session has started already.

    Returns what is stored. Raises RacedError.
    """
    is_ours = sa.and_(plates.c.run_id == (wanted["run_id"] or ""), plates.c.status != Status.CLOSED.value)
    if row := tx.execute(SELECT_PLATES.where(is_ours)).mappings().first():
        begun = plate_of(row)
        is_known = begun["pid"] is not None and not begun["pid_is_guess"]
        if is_known or not wanted["pid"]:
            return begun
        begun["pid"], begun["pid_started"], begun["pid_is_guess"] = wanted["pid"], wanted["pid_started"], False
        return update(tx, begun, wanted["created_at"])
    there = find_plate(tx, wanted["session_id"])
    if there and there["status"] == Status.CLOSED.value:
        delete_plates(tx, [wanted["session_id"]])
    elif there and there["run_id"] != wanted["run_id"]:
        wanted = {**wanted, "session_id": f"{wanted['session_id']}#{wanted['run_id']}"}
    tx.execute(statements(tx.dialect.name).insert_plate, wanted)
    return find_plate(tx, wanted["session_id"]) or wanted


def insert_plate(tx: Connection, report: Report, now: int) -> tuple[Plate, str]:
    """Store a new plate. It replaces the placeholder of its wrapper, if there is one.

    Returns the plate, and the placeholder's id or "". Raises RacedError.
    """
    gone = ""
    plate = empty_plate(report.session_id, report.project_path, min(now, report.ts))
    if report.run_id:
        is_pending = plates.c.session_id.startswith(PENDING, autoescape=True)
        query = SELECT_PLATES.where(plates.c.run_id == report.run_id, is_pending)
        if row := tx.execute(query).mappings().first():
            placeholder = plate_of(row)
            gone = placeholder["session_id"]
            plate = {
                **plate,
                "created_at": placeholder["created_at"],
                "pid": placeholder["pid"],
                "pid_started": placeholder["pid_started"],
                "host": placeholder["host"],
                "user": placeholder["user"],
                "owner": placeholder["owner"],
                "status": placeholder["status"],
                "since": placeholder["since"],
                "event_ts": placeholder["event_ts"],
                "event_mono": placeholder["event_mono"],
            }
            delete_plates(tx, [gone])
    tx.execute(statements(tx.dialect.name).insert_plate, plate)
    found = find_plate(tx, report.session_id)
    if found is None:
        raise RacedError
    return found, gone


def add_counts(tx: Connection, counts: Mapping[str, int]) -> None:
    """Add to the numbers of stored events, by type.

    Always in the same order and at the end of a transaction, so that no two transactions wait for each other.
    """
    rows = [{"event_type": kind, "count": count} for kind, count in sorted(counts.items()) if count]
    if rows:
        tx.execute(statements(tx.dialect.name).add_count, rows)


def delete_plates(tx: Connection, session_ids: Iterable[str]) -> list[str]:
    """Remove plates and their events. Returns the ids of the removed plates."""
    ids = list(session_ids)
    kinds = tx.execute(sa.delete(events).where(events.c.session_id.in_(ids)).returning(events.c.event_type)).scalars()
    removed = Counter(kinds)
    gone = tx.execute(sa.delete(plates).where(plates.c.session_id.in_(ids)).returning(plates.c.session_id)).scalars()
    found = list(gone)
    add_counts(tx, {kind: -count for kind, count in removed.items()})
    return found


def delete_events(tx: Connection, table: sa.Table, condition: "sa.ColumnElement[bool]") -> bool:
    """Remove the events of a table that meet a condition, at most SLICE_ROWS. Returns whether there may be more."""
    slice_ids = sa.select(table.c.event_id).where(condition).limit(SLICE_ROWS).scalar_subquery()
    query = sa.delete(table).where(table.c.event_id.in_(slice_ids)).returning(table.c.event_type)
    removed = Counter(tx.execute(query).scalars())
    add_counts(tx, {kind: -count for kind, count in removed.items()})
    return removed.total() == SLICE_ROWS


def delete_old_events(tx: Connection, table: sa.Table, before: int) -> Slice:
    """Remove events of a table that were received before a time, in Unix milliseconds."""
    return Slice([], delete_events(tx, table, table.c.received_at < before))


def delete_old_waits(tx: Connection, before: int) -> Slice:
    """Remove waits that ended before a time, in Unix milliseconds."""
    slice_ids = sa.select(waits.c.id).where(waits.c.ended_at < before).limit(SLICE_ROWS).scalar_subquery()
    return Slice([], tx.execute(sa.delete(waits).where(waits.c.id.in_(slice_ids))).rowcount == SLICE_ROWS)


def delete_old_plates(tx: Connection, before: int) -> Slice:
    """Remove all events of the plates without a change since a time, then the plates."""
    query = sa.select(plates.c.session_id).where(plates.c.updated_at < before).limit(SLICE_PLATES)
    ids = list(tx.execute(query).scalars())
    if ids and delete_events(tx, events, events.c.session_id.in_(ids)):
        return Slice([], True)
    return Slice(delete_plates(tx, ids), bool(ids))


def update(tx: Connection, plate: Plate, now: int) -> Plate:
    """Store a changed plate and return it with its new version. Raises RacedError if another process was faster.

    plate: with the version that was read.
    """
    new: Plate = {**plate, "updated_at": now, "version": plate["version"] + 1}
    if not tx.execute(UPDATE, {**new, "id": plate["session_id"], "read": plate["version"]}).rowcount:
        raise RacedError
    return new
