"""Where plates and their events are kept: SQLite, or PostgreSQL for a team of machines, through SQLAlchemy.

An event is one transaction. A plate is changed where it is still as it was read (its `version`), so that a recovery
never overwrites a newer event.
"""

import os
import secrets
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from tailhook.machines.plates import Detail, Event, Kind, OpenTool, Status, follow, precedes
from tailhook.plates.changes import columns_of, new_values, situation_of
from tailhook.plates.report import Report, milliseconds
from tailhook.plates.tables import (
    EVENT_COLUMNS,
    FIND,
    UPDATE,
    Plate,
    events,
    migrate,
    open_engine,
    plates,
    spool,
    statements,
    unknown_events,
)
from tailhook.stores.processes import uptime_ms

CHANNEL = "tailhook_plates"  # on which PostgreSQL tells the daemons of each other's changes
LONGEST_NOTE = 1900  # characters; PostgreSQL takes 7,999 bytes
# Of a placeholder, what its session's plate begins with.
HELD = ("created_at", "pid", "pid_started", "host", "user", "keeper", "status", "since", "event_ts", "event_mono")
FOUND = [kind.value for kind in (Kind.TURN_ENDED, Kind.INTERRUPTED, Kind.HEALTH_CHECK_RECOVERY)]  # by the daemon
UNCLOSED = sa.select(plates).where(plates.c.status != Status.CLOSED.value, plates.c.keeper == sa.bindparam("keeper"))
NOTIFY = sa.select(sa.func.pg_notify(CHANNEL, sa.bindparam("words")))
PENDING = "pending:"  # begins the id of a plate whose session has not said its own yet
DAY = 86_400_000  # milliseconds


class Place(NamedTuple):
    """Where in the spool an event stood.  file: as in the table.  end: the offset behind it."""

    file: str
    end: int


class Moment(NamedTuple):
    """When something happened, in milliseconds.  ts: Unix time.  mono: since its machine's start, None if not known."""

    ts: int
    mono: int | None


class Kept(NamedTuple):
    """What an event did.  is_new: it was not known.  plate: if it changed.  gone: a placeholder's id."""

    is_new: bool
    plate: Plate | None
    gone: str


class RacedError(Exception):
    """Another process changed the plate since it was read."""


class Database:
    """The plates of everyone who reports here.

    url: an SQLAlchemy URL, `sqlite:///…` or `postgresql+psycopg://…`.  changed: called with each plate that changed,
    after the transaction, in the order of the changes; removed: likewise with the id of one that is gone. Neither may
    call anything here.
    """

    def __init__(
        self,
        url: str,
        changed: Callable[[Plate], None] = lambda plate: None,
        removed: Callable[[str], None] = lambda session_id: None,
    ) -> None:
        self.engine = open_engine(url)
        self.changed = changed
        self.removed = removed
        # SQLite has one writer, and waiting here is fairer than its own waiting; and what changed is told in its order.
        self.writing = threading.Lock()
        self.name = secrets.token_hex(8)  # among the daemons on the same database
        migrate(self.engine)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    # ---- events ----

    def record(self, report: Report, place: Place | None = None, keeper: str | None = None) -> bool:
        """Keep an event and do to its plate what it says; False for one that is known already.

        place: where in the spool it stood; the offset moves in the same transaction.  keeper: the spool's id of the
        daemon that is to look after the plate, None for none.
        """
        with self.writing:
            while True:
                try:
                    with self.engine.begin() as tx:
                        kept = keep(tx, report, keeper)
                        if place:
                            move_offset(tx, place)
                        self.tell_others(tx, kept.gone, kept.plate["session_id"] if kept.plate else "")
                    break
                except RacedError:
                    continue
            if kept.gone:
                self.removed(kept.gone)
            if kept.plate:
                self.changed(kept.plate)
        return kept.is_new

    def apply(self, plate: Plate, event: Event, at: Moment | None = None, tool: OpenTool | None = None) -> bool:
        """Apply an event of the daemon's own to a plate. Returns False if the plate changed since it was read.

        at: when it happened; now if not given.
        tool: the tool that the event is about, if any.
        """
        now = milliseconds()
        event_id = f"{plate['session_id']}:{event.kind.value}:{plate['version']}"
        detail = Detail(tool.tool_use_id, tool.name, tool.about, tool.agent_id) if tool else Detail()
        try:
            with self.writing:
                with self.engine.begin() as tx:
                    row = find(tx, plate["session_id"])
                    if row is None or row["version"] != plate["version"]:
                        return False
                    at = at or Moment(now, uptime_ms() if row["host"] == os.uname().nodename else None)
                    after, _ = follow(situation_of(row), event, detail)
                    kept = {
                        **dict.fromkeys(EVENT_COLUMNS),
                        "event_id": event_id,
                        "session_id": plate["session_id"],
                        "event_type": event.kind.value,
                        "tool_name": detail.tool or None,
                        "tool_use_id": detail.tool_use_id or None,
                        "agent_id": detail.agent_id or None,
                        "ts": at.ts,
                        "received_at": now,
                        "status": after.status.value,
                    }
                    tx.execute(statements(tx.dialect.name).keep_event, kept)
                    new = {
                        **columns_of(row, after, at.ts, now),
                        "last_event_type": event.kind.value,
                        "unprompted": False,
                    }
                    # Nothing older than the closing may open a plate again. A session that goes on has no error.
                    is_closed = after.status is Status.CLOSED
                    new |= {"event_ts": at.ts, "event_mono": at.mono} if is_closed else {"error": None}
                    changed = update(tx, row, new, now)
                    self.tell_others(tx, plate["session_id"])
                self.changed(changed)
        except RacedError:
            return False
        return True

    def seen(self, plate: Plate, started: float) -> None:
        """Note that the plate's process was seen, and so is no guess, and when it started."""
        condition = sa.and_(plates.c.session_id == plate["session_id"], plates.c.pid == plate["pid"])
        with self.writing, self.engine.begin() as tx:
            tx.execute(sa.update(plates).where(condition).values(pid_started=started, pid_is_guess=False))

    # ---- sessions that the wrapper runs ----

    def register(self, project_path: str, run_id: str | None = None, **facts: Any) -> Plate:
        """A placeholder for a session that is about to start, or the plate of one that was faster.

        facts: pid, pid_started, host, user, keeper.
        """
        with self.writing:
            while True:
                try:
                    with self.engine.begin() as tx:
                        plate = hold(tx, project_path, run_id, facts)
                        self.tell_others(tx, plate["session_id"])
                    break
                except RacedError:
                    continue
            self.changed(plate)
        return plate

    def stopped(
        self,
        run_id: str | None = None,
        session_id: str | None = None,
        project_path: str | None = None,
        at: Moment | None = None,
    ) -> list[Plate]:
        """Close the plates of a process that ended; by its project alone only where that means one plate.

        at: when it ended, now if not given; a plate that went on after that stays open.
        """
        if run_id:
            condition = plates.c.run_id == run_id
        elif session_id:
            condition = plates.c.session_id == session_id
        else:
            condition = plates.c.project_path == project_path
        with self.engine.connect() as tx:
            found = tx.execute(sa.select(plates).where(condition, plates.c.status != Status.CLOSED.value)).mappings()
            rows = [dict(row) for row in found]
        if not run_id and not session_id and len(rows) > 1:
            return []
        return [row for row in rows if self.close_plate(row, at)]

    def close_plate(self, plate: Plate | None, at: Moment | None) -> bool:
        """Close a plate, whatever happens to it meanwhile; False where somebody else did, or where it went on since."""
        while plate and plate["status"] != Status.CLOSED.value:
            if at and precedes(*at, plate["event_ts"], plate["event_mono"]):
                return False
            if self.apply(plate, Event(Kind.SESSION_END), at):
                return True
            plate = self.get(plate["session_id"])
        return False

    # ---- reading ----

    def all(self, status: str | None = None, project: str | None = None) -> list[Plate]:
        """The plates, the one that changed last first."""
        query = sa.select(plates).order_by(plates.c.updated_at.desc(), plates.c.session_id)
        if status is not None:
            query = query.where(plates.c.status == status)
        if project is not None:
            query = query.where(plates.c.project_path == project)
        with self.engine.connect() as tx:
            return [dict(row) for row in tx.execute(query).mappings()]

    def kept_by(self, keeper: str) -> list[Plate]:
        """The plates that this daemon looks after and that are not closed."""
        with self.engine.connect() as tx:
            return [dict(row) for row in tx.execute(UNCLOSED, {"keeper": keeper}).mappings()]

    def get(self, session_id: str) -> Plate | None:
        """One plate."""
        with self.engine.connect() as tx:
            row = find(tx, session_id)
            return None if row is None else dict(row)

    def events_of(self, session_id: str, limit: int) -> list[dict[str, Any]]:
        """The last events of a plate, the oldest of them first."""
        query = sa.select(events).where(events.c.session_id == session_id).order_by(events.c.id.desc()).limit(limit)
        with self.engine.connect() as tx:
            return [dict(row) for row in tx.execute(query).mappings()][::-1]

    def counts(self) -> dict[str, int]:
        """How many plates have each status."""
        query = sa.select(plates.c.status, sa.func.count()).group_by(plates.c.status)
        with self.engine.connect() as tx:
            found = {status: int(count) for status, count in tx.execute(query)}
        return {status.value: found.get(status.value, 0) for status in Status}

    def event_counts(self) -> dict[str, int]:
        """Return how many events of each type are kept."""
        counts: dict[str, int] = {}
        with self.engine.connect() as tx:
            for table in (events, unknown_events):
                query = sa.select(table.c.event_type, sa.func.count()).group_by(table.c.event_type)
                for kind, count in tx.execute(query):
                    counts[kind] = counts.get(kind, 0) + int(count)
        return counts

    def lags(self, limit: int) -> list[int]:
        """Milliseconds from the hook's clock to the database of the last events that hooks reported."""
        query = sa.select(events.c.received_at - events.c.ts).where(events.c.event_type.not_in(FOUND))
        with self.engine.connect() as tx:
            return [max(0, lag) for lag in tx.execute(query.order_by(events.c.id.desc()).limit(limit)).scalars()]

    # ---- leaving ----

    def delete(self, session_id: str) -> bool:
        """Remove a plate and its events."""
        with self.writing:
            with self.engine.begin() as tx:
                was_there = bool(tx.execute(sa.delete(plates).where(plates.c.session_id == session_id)).rowcount)
                self.tell_others(tx, session_id)
            if was_there:
                self.removed(session_id)
        return was_there

    def forget(self, days: float) -> int:
        """Remove the plates that did not change for so many days, and what older events there are of the others.

        Returns how many plates are gone.
        """
        before = milliseconds() - int(days * DAY)
        with self.writing:
            with self.engine.begin() as tx:
                query = sa.delete(plates).where(plates.c.updated_at < before).returning(plates.c.session_id)
                gone = list(tx.execute(query).scalars())
                for table in (events, unknown_events):
                    tx.execute(sa.delete(table).where(table.c.received_at < before))
                self.tell_others(tx, *gone)
            for session_id in gone:
                self.removed(session_id)
        return len(gone)

    # ---- other daemons on the same database ----

    def tell_others(self, tx: Connection, *session_ids: str) -> None:
        """Tell them, once the transaction is done, which plates changed; where the database can: PostgreSQL."""
        if tx.dialect.name == "postgresql":
            for session_id in filter(None, session_ids):
                tx.execute(NOTIFY, {"words": f"{self.name} {session_id}"[:LONGEST_NOTE]})

    def heard(self, words: str) -> None:
        """What another daemon told: tell of the plate as it is now."""
        name, _, session_id = words.partition(" ")
        if name == self.name:
            return
        with self.writing:
            plate = self.get(session_id)
            if plate:
                self.changed(plate)
            else:
                self.removed(session_id)

    # ---- the spool ----

    def offset(self, file: str) -> int:
        """How far a file of the spool is read."""
        with self.engine.connect() as tx:
            return tx.execute(sa.select(spool.c.offset).where(spool.c.file == file)).scalar() or 0

    def move_offset(self, place: Place) -> None:
        """Pass over what is no event."""
        with self.writing, self.engine.begin() as tx:
            move_offset(tx, place)

    def settle(self) -> bool:
        """Bring all that was kept to the disk; False while a reader hinders that.

        SQLite's log is not synchronised with each transaction; it is when it goes into the database's file.
        """
        if self.engine.dialect.name != "sqlite":
            return True
        connection = self.engine.raw_connection()  # outside of a transaction
        try:
            with self.writing:
                cursor = connection.cursor()
                busy, logged, moved = cursor.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                cursor.close()
        finally:
            connection.close()
        return bool(not busy and logged == moved)

    def forget_file(self, file: str) -> None:
        """A file of the spool is about to be removed; another one may get its inode."""
        with self.writing, self.engine.begin() as tx:
            tx.execute(sa.delete(spool).where(spool.c.file == file))


# ---- one plate ---------------------------------------------------------------


def find(tx: Connection, session_id: str) -> RowMapping | None:
    """The plate's row."""
    return tx.execute(FIND, {"id": session_id}).mappings().first()


def empty_plate(session_id: str, project_path: str, now: int) -> Plate:
    """A plate of which nothing is known yet."""
    return {
        **dict.fromkeys(plates.c.keys()),
        "session_id": session_id,
        "project_path": project_path,
        "status": Status.STARTING.value,
        "created_at": now,
        "updated_at": now,
        "since": now,
        "event_ts": 0,
        "version": 0,
    }


def keep(tx: Connection, report: Report, keeper: str | None) -> Kept:
    """Keep an event and change its plate. An event of an unknown type begins no plate.

    Raises RacedError.
    """
    now = milliseconds()
    there, gone = find(tx, report.session_id), ""
    if report.event() is None and (not there or is_unknown_event(tx, report.event_id)):
        stranger = {name: getattr(report, name) for name in ("event_id", "session_id", "event_type", "ts")}
        kept = tx.execute(statements(tx.dialect.name).keep_unknown_event, {**stranger, "received_at": now})
        return Kept(kept.first() is not None, None, "")
    if there:
        row = there
    else:
        row, gone = begin_plate(tx, report, now)
    begun = None if there else dict(row)
    new, status = new_values(row, report, keeper, now)
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
    kept = tx.execute(statements(tx.dialect.name).keep_event, event)
    if kept.first() is None:
        return Kept(False, begun, gone)
    return Kept(True, update(tx, row, new, now) if new else begun, gone)


def is_unknown_event(tx: Connection, event_id: str) -> bool:
    """Return whether the event is kept among those that begin no plate."""
    query = sa.select(unknown_events.c.event_id).where(unknown_events.c.event_id == event_id)
    return tx.execute(query).first() is not None


def hold(tx: Connection, project_path: str, run_id: str | None, facts: dict[str, Any]) -> Plate:
    """A placeholder for a run, or its session's plate where that is there, with the process.  Raises RacedError."""
    now = milliseconds()
    is_ours = sa.and_(plates.c.run_id == (run_id or ""), plates.c.status != Status.CLOSED.value)
    if begun := tx.execute(sa.select(plates).where(is_ours)).mappings().first():
        is_known = begun["pid"] is not None and not begun["pid_is_guess"]
        process = {name: facts.get(name) for name in ("pid", "pid_started")} | {"pid_is_guess": False}
        return dict(begun) if is_known or not process["pid"] else update(tx, begun, process, now)
    name = f"{PENDING}{project_path}"
    there = find(tx, name)
    if there and there["status"] == Status.CLOSED.value:
        tx.execute(sa.delete(plates).where(plates.c.session_id == name))
    elif there and there["run_id"] != run_id:
        name = f"{name}#{run_id}"
    row = {**empty_plate(name, project_path, now), "run_id": run_id, **facts}
    tx.execute(statements(tx.dialect.name).begin_plate, row)
    return dict(find(tx, name) or row)


def begin_plate(tx: Connection, report: Report, now: int) -> tuple[RowMapping, str]:
    """A new plate, in place of its wrapper's placeholder when it has one, whose id is the second."""
    gone = ""
    row = empty_plate(report.session_id, report.project_path, now)
    if report.run_id:
        is_pending = plates.c.session_id.startswith(PENDING, autoescape=True)
        query = sa.select(plates).where(plates.c.run_id == report.run_id, is_pending)
        if held := tx.execute(query).mappings().first():
            row |= {name: held[name] for name in HELD}
            gone = held["session_id"]
            tx.execute(sa.delete(plates).where(plates.c.session_id == gone))
    tx.execute(statements(tx.dialect.name).begin_plate, row)
    found = find(tx, report.session_id)
    if found is None:
        raise RacedError
    return found, gone


def update(tx: Connection, row: RowMapping, new: dict[str, Any], now: int) -> Plate:
    """Change a plate; returns it as it is now.  Raises RacedError."""
    plate = {**row, **new, "updated_at": now, "version": row["version"] + 1}
    if not tx.execute(UPDATE, {**plate, "id": row["session_id"], "read": row["version"]}).rowcount:
        raise RacedError
    return plate


def move_offset(tx: Connection, place: Place) -> None:
    """Note how far the file is read."""
    tx.execute(statements(tx.dialect.name).move_offset, {"file": place.file, "offset": place.end})
