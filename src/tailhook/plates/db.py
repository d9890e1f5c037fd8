"""Stores plates and their events in SQLite, or in PostgreSQL for a team of machines, through SQLAlchemy.

Each event is one transaction; while more than one waits in the spool, a transaction takes several. A plate is updated
only if its `version` is still the one that was read, so a recovery never overwrites a newer event.
"""

import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tailhook.hosts import DEFAULT
from tailhook.machines.plates import Detail, Event, EventKind, OpenTool, Status, follow, precedes
from tailhook.plates.changes import (
    follow_last_agent,
    follow_turn,
    has_become_idle,
    set_newest_type,
    set_situation,
    situation_of,
)
from tailhook.plates.rows import (
    PENDING,
    RacedError,
    Slice,
    Stored,
    add_counts,
    delete_old_events,
    delete_old_plates,
    delete_old_waits,
    delete_plates,
    empty_plate,
    find_plate,
    insert_ended_wait,
    insert_report,
    plate_of,
    register_placeholder,
    update,
)
from tailhook.plates.schemas import Report, unix_ms
from tailhook.plates.tables import (
    EVENT_COLUMNS,
    SELECT_PLATES,
    Plate,
    event_counts,
    events,
    migrate,
    open_engine,
    plates,
    spool,
    statements,
    unknown_events,
    waits,
)
from tailhook.plates.waits import WAIT_STATUSES, Wait
from tailhook.stores.processes import uptime_ms

CHANNEL = "tailhook_plates"  # the channel on which daemons send NOTIFY to each other
MAX_NOTE_CHARS = 1900  # PostgreSQL allows 7,999 bytes
# By the statuses of open ones, not by "not closed": so a database with many closed plates uses its index.
OPEN = [status.value for status in Status if status is not Status.CLOSED]
IS_OPEN = plates.c.status.in_(OPEN)
SELECT_OPEN = SELECT_PLATES.where(IS_OPEN)
SELECT_OWNED = SELECT_OPEN.where(plates.c.owner.is_not_distinct_from(sa.bindparam("owner")))
ROWS_AT_ONCE = 200  # read into memory at once, of many
# The waits that ended after a time, and the open ones. In one statement, a wait that ends meanwhile is found once.
SELECT_WAITS = sa.union_all(
    sa.select(waits.c.session_id, plates.c.project_path, waits.c.begun_at, waits.c.ended_at)
    .join(plates, plates.c.session_id == waits.c.session_id)
    .where(waits.c.ended_at > sa.bindparam("since")),
    sa.select(plates.c.session_id, plates.c.project_path, plates.c.since, plates.c.hidden_at).where(
        plates.c.status.in_(WAIT_STATUSES)
    ),
)
SELECT_NOTIFY = sa.select(sa.func.pg_notify(CHANNEL, sa.bindparam("words")))
DAY_MS = 86_400_000
MAX_TRANSACTION_S = 0.05  # of one transaction that stores a backlog; other writers wait meanwhile
PRUNE_PAUSE_S = 0.01  # between two transactions of the retention, so that events are stored too


class SpoolOffset(NamedTuple):
    """A position in the spool.

    file: see `Inbox.key`.
    end: the offset in bytes after the event's line.
    """

    file: str
    end: int


class Moment(NamedTuple):
    """When something happened.

    ts: Unix milliseconds.
    mono: milliseconds since the start of its machine, or None.
    """

    ts: int
    mono: int | None


class SessionProject(NamedTuple):
    """The project of a session, and whether it is open."""

    session_id: str
    project_path: str
    is_open: bool


class SpoolLine(NamedTuple):
    """A line of the spool.

    place: its position.
    report: its event; None if it is not an event.
    owner: the spool's id of the daemon that looks after the plate from now on, or None.
    """

    place: SpoolOffset | None
    report: Report | None = None
    owner: str | None = None


class Batch(NamedTuple):
    """What a transaction stored.

    lines: how many lines, the first ones.
    new: how many of their events were not stored before.
    """

    lines: int
    new: int


class Database:
    """The database of the plates.

    url: an SQLAlchemy URL, `sqlite:///…` or `postgresql+psycopg://…`.
    changed: called with each changed plate after its transaction, in the order of the changes. It must not call the
        database.
    removed: called in the same way with the id of a plate that is gone.
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
        # SQLite allows one writer. This lock is fairer than SQLite's own, and keeps the changes in order.
        self.writing = threading.Lock()
        self.name = secrets.token_hex(8)  # of this daemon, in its notifications
        migrate(self.engine)
        self.opened = self.newest_event()  # before the events of a clock that was set ahead

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    # ---- events ----

    def record(self, report: Report, place: SpoolOffset | None = None, owner: str | None = None) -> bool:
        """Store an event and change its plate. Returns False if the event was stored before.

        place: the event's position in the spool. The offset moves in the same transaction.
        owner: the spool's id of the daemon that looks after the plate from now on, or None.
        """
        return self.record_lines([SpoolLine(place, report, owner)]).new == 1

    def record_lines(
        self,
        lines: Sequence[SpoolLine],
        is_over: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> Batch:
        """Store the events of lines of the spool and change their plates, in one transaction.

        Takes as many lines as there is time for, at least one. The offset moves in the same transaction. Of each
        changed plate, the newest state is published.

        is_over: returns whether to stop before the next line.
        clock: returns seconds.
        """
        with self.writing:
            while True:
                try:
                    with self.engine.begin() as tx:
                        end = clock() + MAX_TRANSACTION_S
                        stored: list[Stored] = []
                        read: dict[str, Plate] = {}
                        counts: Counter[str] = Counter()
                        for line in lines:
                            if stored and (is_over() or clock() > end):
                                break
                            found = insert_report(tx, line.report, line.owner, read) if line.report else Stored()
                            if line.report and found.is_new:
                                counts[line.report.event_type] += 1
                            stored.append(found)
                        if place := lines[len(stored) - 1].place:
                            move_offset(tx, place)
                        gone = [one.gone for one in stored if one.gone]
                        latest = {one.plate["session_id"]: one.plate for one in stored if one.plate}
                        changed = {name: update(tx, plate, plate["updated_at"]) for name, plate in latest.items()}
                        self.notify(tx, *gone, *changed)
                        add_counts(tx, counts)
                    break
                except RacedError:
                    continue
            for session_id in gone:
                self.removed(session_id)
            for plate in changed.values():
                self.changed(plate)
        for line, found in zip(lines, stored, strict=False):
            if line.report and found.is_new:
                self.close_earlier_sessions(line.report)
        return Batch(len(stored), counts.total())

    def close_earlier_sessions(self, report: Report) -> None:
        """Close the other sessions of a process in which a session has started.

        A process of Claude Code has one session (2.1.329). At /clear, the hook for the end of the earlier session
        may be killed. A guessed process may be a host's with several sessions.

        On macOS no hook knows when the process started. If another process has the same id, the first one has ended.
        """
        if not report.leads_to_a_prompt() or report.pid is None or report.pid_is_guess:
            return
        same = sa.tuple_(plates.c.pid, plates.c.host) == (report.pid, report.host)
        if report.pid_started is not None:
            same = sa.and_(same, plates.c.pid_started == report.pid_started)
        elif report.agent_program != DEFAULT:
            return
        others = sa.and_(plates.c.session_id != report.session_id, IS_OPEN)
        with self.engine.connect() as tx:
            rows = [plate_of(row) for row in tx.execute(SELECT_PLATES.where(same, others)).mappings()]
        for row in rows:
            self.close_plate(row, Moment(report.ts, report.mono))

    def apply(self, plate: Plate, event: Event, at: Moment | None = None, tool: OpenTool | None = None) -> bool:
        """Apply an event that the daemon made to a plate. Returns False if the plate changed after it was read.

        at: when it happened; now if not given.
        tool: the tool that the event is about, if any.
        """
        now = unix_ms()
        event_id = f"{plate['session_id']}:{event.kind.value}:{plate['version']}"
        detail = Detail(tool.tool_use_id, tool.name, tool.about, tool.agent_id) if tool else Detail()
        try:
            with self.writing:
                with self.engine.begin() as tx:
                    found = find_plate(tx, plate["session_id"])
                    if found is None or found["version"] != plate["version"]:
                        return False
                    at = at or Moment(now, uptime_ms() if found["host"] == os.uname().nodename else None)
                    before = situation_of(found)
                    after, _ = follow(before, event, detail)
                    stored = {
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
                    tx.execute(statements(tx.dialect.name).insert_event, stored)
                    new = found.copy()
                    set_situation(new, after, at.ts, now)
                    follow_turn(new, event, has_become_idle(before, after), min(at.ts, now))
                    follow_last_agent(new, before, after, min(at.ts, now))
                    set_newest_type(new, event.kind.value, event)
                    new["unprompted"] = False
                    new["silent_since"] = new["quiet_since"] = None
                    if after.own is not Status.RUNNING:  # the end of a sub-agent's wait ends no sub-agent
                        new["background"] = None
                    if after.status is Status.CLOSED:  # nothing older than the closing may open the plate again
                        new["event_ts"], new["event_mono"] = at
                    else:
                        new["error"] = None
                    insert_ended_wait(tx, found, new)
                    changed = update(tx, new, now)
                    self.notify(tx, plate["session_id"])
                    add_counts(tx, {event.kind.value: 1})
                self.changed(changed)
        except RacedError:
            return False
        return True

    def mark(self, session_id: str, hidden: bool | None = None, seen: bool = False) -> Plate | None:
        """Store what a person did with a plate on a board. Returns it, or None if it is missing.

        This is not an event of the session: its age and its place in the lists of all plates stay.

        hidden: whether to hide it until its next prompt, or to show it again; None to leave that as it is.
        seen: whether the person has looked at it.
        """
        now = unix_ms()
        values: dict[str, Any] = {"version": plates.c.version + 1}
        if hidden is not None:
            values["hidden_at"] = now if hidden else None
        if seen:
            values["seen_at"] = now
        with self.writing:
            with self.engine.begin() as tx:
                tx.execute(sa.update(plates).where(plates.c.session_id == session_id).values(values))
                plate = find_plate(tx, session_id)
                self.notify(tx, session_id)
            if plate:
                self.changed(plate)
        return plate

    def amend(self, plate: Plate) -> bool:
        """Store a plate with what the daemon found out. Returns False if it changed after it was read.

        This is not an event of the session: its age and its place in the lists of all plates stay.
        """
        try:
            with self.writing:
                with self.engine.begin() as tx:
                    changed = update(tx, plate, plate["updated_at"])
                    self.notify(tx, plate["session_id"])
                self.changed(changed)
        except RacedError:
            return False
        return True

    def confirm_process(self, plate: Plate, started: float) -> None:
        """Mark the plate's process id as confirmed and store when the process started."""
        condition = sa.and_(plates.c.session_id == plate["session_id"], plates.c.pid == plate["pid"])
        with self.writing, self.engine.begin() as tx:
            tx.execute(sa.update(plates).where(condition).values(pid_started=started, pid_is_guess=False))

    # ---- sessions that the wrapper runs ----

    def register(
        self,
        project_path: str,
        run_id: str | None = None,
        pid: int | None = None,
        pid_started: float | None = None,
        host: str | None = None,
        user: str | None = None,
        owner: str | None = None,
    ) -> Plate:
        """Return a placeholder for a session that is about to start, or its plate if it has started already.

        pid, pid_started: the session's process.
        owner: the spool's id of the daemon that looks after the plate, or None.
        """
        now = unix_ms()
        wanted = empty_plate(f"{PENDING}{project_path}", project_path, now)
        wanted["run_id"] = run_id
        wanted["pid"], wanted["pid_started"] = pid, pid_started
        wanted["host"], wanted["user"], wanted["owner"] = host, user, owner
        with self.writing:
            while True:
                try:
                    with self.engine.begin() as tx:
                        plate = register_placeholder(tx, wanted)
                        self.notify(tx, plate["session_id"])
                    break
                except RacedError:
                    continue
            self.changed(plate)
        return plate

    def remove_placeholders(self, owner: str, pids: Collection[int]) -> None:
        """Remove the open placeholders of processes whose sessions are known in another way.

        owner: the spool's id of the daemon that looks after them.
        """
        is_pending = plates.c.session_id.startswith(PENDING, autoescape=True)
        is_theirs = sa.and_(IS_OPEN, is_pending, plates.c.owner == owner, plates.c.pid.in_(pids))
        query = sa.select(plates.c.session_id).where(is_theirs)
        with self.engine.connect() as tx:
            found = tx.execute(query).scalars().all()
        for session_id in found:
            self.delete(session_id)

    def close_sessions(
        self,
        run_id: str | None = None,
        session_id: str | None = None,
        project_path: str | None = None,
        at: Moment | None = None,
    ) -> list[Plate]:
        """Close the plates of a process that ended, and return them.

        The first argument that is given selects them. A project selects its plate only if it has one open plate.

        at: when the process ended; now if not given. A plate with a newer event stays open.
        """
        if run_id:
            condition = plates.c.run_id == run_id
        elif session_id:
            condition = plates.c.session_id == session_id
        else:
            condition = plates.c.project_path == project_path
        with self.engine.connect() as tx:
            found = tx.execute(SELECT_OPEN.where(condition)).mappings()
            rows = [plate_of(row) for row in found]
        if not run_id and not session_id and len(rows) > 1:
            return []
        return [row for row in rows if self.close_plate(row, at)]

    def close_plate(self, plate: Plate | None, at: Moment | None) -> bool:
        """Close a plate, even if events change it meanwhile.

        Returns False if it was closed already, or has an event newer than `at`.
        """
        while plate and plate["status"] != Status.CLOSED.value:
            if at and precedes(*at, plate["event_ts"], plate["event_mono"]):
                return False
            if self.apply(plate, Event(EventKind.SESSION_END), at):
                return True
            plate = self.get(plate["session_id"])
        return False

    # ---- reading ----

    def all(
        self,
        status: str | None = None,
        project: str | None = None,
        limit: int | None = None,
        before: tuple[int, str] | None = None,
    ) -> list[Plate]:
        """Return the plates, newest change first.

        limit: how many at most.
        before: `updated_at` and id of a plate; only those after it.
        """
        order = sa.tuple_(plates.c.updated_at, plates.c.session_id)
        query = SELECT_PLATES.order_by(plates.c.updated_at.desc(), plates.c.session_id.desc()).limit(limit)
        if status is not None:
            query = query.where(plates.c.status == status)
        if project is not None:
            query = query.where(plates.c.project_path == project)
        if before is not None:
            query = query.where(order < before)
        with self.engine.connect() as tx:
            return [plate_of(row) for row in tx.execute(query).mappings()]

    def iter_open(self, statuses: Sequence[str] = OPEN) -> Iterator[Plate]:
        """Yield the plates with these statuses. All of them would need much memory at once."""
        query = SELECT_PLATES.where(plates.c.status.in_(statuses))
        with self.engine.connect() as tx:
            for row in tx.execution_options(yield_per=ROWS_AT_ONCE).execute(query).mappings():
                yield plate_of(row)

    def session_projects(self) -> list[SessionProject]:
        """Return where every session is."""
        query = sa.select(plates.c.session_id, plates.c.project_path, plates.c.status)
        closed = Status.CLOSED.value
        with self.engine.connect() as tx:
            return [
                SessionProject(session_id, path, status != closed) for session_id, path, status in tx.execute(query)
            ]

    def open_plates(self, owner: str | None) -> list[Plate]:
        """Return the open plates of the daemon with this spool's id.

        owner: None for those of no daemon.
        """
        with self.engine.connect() as tx:
            return [plate_of(row) for row in tx.execute(SELECT_OWNED, {"owner": owner}).mappings()]

    def get(self, session_id: str) -> Plate | None:
        """Return one plate, or None."""
        with self.engine.connect() as tx:
            return find_plate(tx, session_id)

    def events_of(self, session_id: str, limit: int) -> list[dict[str, Any]]:
        """Return the last events of a plate, the oldest of them first."""
        query = sa.select(events).where(events.c.session_id == session_id).order_by(events.c.id.desc()).limit(limit)
        with self.engine.connect() as tx:
            rows = [cast("dict[str, Any]", dict(row)) for row in tx.execute(query).mappings()]
        return rows[::-1]

    def counts(self) -> dict[str, int]:
        """Return how many plates have each status."""
        query = sa.select(plates.c.status, sa.func.count()).group_by(plates.c.status)
        with self.engine.connect() as tx:
            found = {status: int(count) for status, count in tx.execute(query)}
        return {status.value: found.get(status.value, 0) for status in Status}

    def event_counts(self) -> dict[str, int]:
        """Return how many events of each type are stored."""
        query = sa.select(event_counts.c.event_type, event_counts.c.count).where(event_counts.c.count > 0)
        with self.engine.connect() as tx:
            return {kind: int(count) for kind, count in tx.execute(query)}

    def waits_since(self, since: int, now: int) -> list[Wait]:
        """Return the waits that ended after a time, and the open ones. These end now, or when they were hidden.

        since, now: Unix milliseconds.
        """
        with self.engine.connect() as tx:
            rows = tx.execute(SELECT_WAITS, {"since": since})
            return [Wait(session_id, path, start, now if end is None else end) for session_id, path, start, end in rows]

    def oldest_event(self) -> int | None:
        """Return when the oldest stored event was received, in Unix milliseconds, or None if none is stored."""
        with self.engine.connect() as tx:
            return tx.execute(sa.select(sa.func.min(events.c.received_at))).scalar()

    def lags(self, limit: int) -> list[int]:
        """Return the milliseconds between the hook's clock and the database, for the last reported events.

        What the daemon found itself is left out: its ids are those of `apply`.
        """
        is_found = events.c.event_id.startswith(events.c.session_id + ":" + events.c.event_type + ":")
        query = sa.select(events.c.received_at - events.c.ts).where(~is_found)
        with self.engine.connect() as tx:
            return [max(0, lag) for lag in tx.execute(query.order_by(events.c.id.desc()).limit(limit)).scalars()]

    # ---- leaving ----

    def delete(self, session_id: str) -> bool:
        """Remove a plate and its events."""
        with self.writing:
            with self.engine.begin() as tx:
                was_there = bool(delete_plates(tx, [session_id]))
                self.notify(tx, session_id)
            if was_there:
                self.removed(session_id)
        return was_there

    def prune(self, days: float, is_over: Callable[[], bool] = lambda: False) -> int:
        """Remove the plates without a change for so many days of `sure_time`, and all older events and waits.

        Each transaction removes only a slice, so that events can be stored in between. Returns how many plates were
        removed.

        is_over: returns whether to stop before the next slice.
        """
        before = self.sure_time() - int(days * DAY_MS)
        slices: list[Callable[[Connection], Slice]] = [
            partial(delete_old_events, table=events, before=before),
            partial(delete_old_events, table=unknown_events, before=before),
            partial(delete_old_waits, before=before),
            partial(delete_old_plates, before=before),
        ]
        count = 0
        for remove in slices:
            has_more = True
            while has_more and not is_over():
                with self.writing:
                    with self.engine.begin() as tx:
                        gone, has_more = remove(tx)
                        self.notify(tx, *gone)
                    for session_id in gone:
                        self.removed(session_id)
                count += len(gone)
                time.sleep(PRUNE_PAUSE_S if has_more else 0)
        return count

    def sure_time(self) -> int:
        """Return a time in Unix milliseconds: it has surely come, also if the computer's clock was set ahead.

        It is the time of the newest event when the database was opened, and the uptime since.
        """
        ts, uptime = self.opened
        return min(unix_ms(), ts + uptime_ms() - uptime)

    def newest_event(self) -> tuple[int, int]:
        """Return when the newest event came, in Unix milliseconds (now without any), and the uptime of now."""
        now = unix_ms()
        with self.engine.connect() as tx:
            newest = tx.scalar(sa.select(sa.func.max(events.c.received_at)))
        return now if newest is None else min(now, newest), uptime_ms()

    # ---- other daemons on the same database ----

    def notify(self, tx: Connection, *session_ids: str) -> None:
        """Notify the other daemons of changed plates when the transaction ends. Does nothing on SQLite."""
        if tx.dialect.name == "postgresql":
            for session_id in filter(None, session_ids):
                tx.execute(SELECT_NOTIFY, {"words": f"{self.name} {session_id}"[:MAX_NOTE_CHARS]})

    def on_notify(self, words: str) -> None:
        """Handle a NOTIFY of another daemon: read the plate that it names, and publish it."""
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
        """Return up to which offset a file of the spool was read."""
        with self.engine.connect() as tx:
            return tx.execute(sa.select(spool.c.offset).where(spool.c.file == file)).scalar() or 0

    def move_offset(self, place: SpoolOffset) -> None:
        """Skip a line that is not an event."""
        with self.writing, self.engine.begin() as tx:
            move_offset(tx, place)

    def checkpoint(self) -> bool:
        """Write everything to the disk. Returns False if a reader prevents it.

        SQLite does not sync its log after each transaction, only when the log is copied into the database's file.
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
        """Remove the offset of a file that will be deleted, because another file may get its inode."""
        with self.writing, self.engine.begin() as tx:
            tx.execute(sa.delete(spool).where(spool.c.file == file))


def move_offset(tx: Connection, place: SpoolOffset) -> None:
    """Store up to which offset a file of the spool was read."""
    tx.execute(statements(tx.dialect.name).move_offset, {"file": place.file, "offset": place.end})
