"""The database lists, deletes and forgets."""

import threading
import time
from itertools import pairwise

import pytest
import sqlalchemy as sa
from support.plate_reports import report

from tailhook.machines.plates import Event, EventKind
from tailhook.plates.db import DAY_MS, Database, SpoolOffset
from tailhook.plates.rows import SLICE_ROWS, add_counts
from tailhook.plates.schemas import unix_ms
from tailhook.plates.tables import events, metadata, plates
from tailhook.stores.processes import uptime_ms


def test_plates_are_listed_newest_first_and_filtered(database):
    for session, project in (("a", "/one"), ("b", "/two"), ("c", "/one")):
        database.record(report("session_start", session=session, project_path=project))
        time.sleep(0.002)
    database.record(report("stop", session="a", project_path="/one"))
    assert [plate["session_id"] for plate in database.all()] == ["a", "c", "b"]
    assert [plate["session_id"] for plate in database.all(status="running")] == ["c", "b"]
    assert [plate["session_id"] for plate in database.all(project="/one")] == ["a", "c"]
    assert [plate["session_id"] for plate in database.all(status="idle", project="/two")] == []
    assert database.counts()["running"] == 2


def test_the_pages_of_a_list_hold_every_plate_once_even_if_many_changed_at_one_time(database):
    for number in range(7):
        database.record(report("session_end" if number % 2 else "stop", session=f"s{number}"))
    with database.engine.begin() as tx:
        tx.execute(sa.update(plates).values(updated_at=5))
    found, page = [], database.all(limit=2)
    while page:
        found += [plate["session_id"] for plate in page]
        page = database.all(limit=2, before=(page[-1]["updated_at"], page[-1]["session_id"]))
    assert found == [f"s{number}" for number in reversed(range(7))]
    assert [plate["session_id"] for plate in database.all(status="closed", limit=2)] == ["s5", "s3"]
    assert {plate["session_id"] for plate in database.iter_open()} == {"s0", "s2", "s4", "s6"}


def test_nothing_that_runs_often_reads_the_closed_plates(database):
    """Queries for open plates and pages use an index; SQLite's own plan shows it."""
    if database.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL chooses by what the tables hold")
    asked = []

    @sa.event.listens_for(database.engine, "before_cursor_execute")
    def note(_connection, _cursor, statement, parameters, _context, _many):
        asked.append((statement, parameters))

    database.record(report("session_start", pid=7, pid_started=1.0, run_id="r"))
    list(database.iter_open())
    database.open_plates("spool")
    database.remove_placeholders("spool", [7])
    database.all(status="closed", limit=200)
    database.all(status="closed", limit=200, before=(5, "s"))
    database.close_sessions(run_id="r")
    database.close_sessions(session_id="s")
    database.close_sessions(project_path="/p")
    with database.engine.connect() as tx:
        plans = {
            statement: [row[3] for row in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            for statement, parameters in asked
            if statement.lstrip().startswith(("SELECT", "UPDATE", "DELETE"))
        }
    assert len(plans) > 5
    slow = {statement: plan for statement, plan in plans.items() if any("SCAN" in step for step in plan)}
    assert slow == {}
    pages = [plan for statement, plan in plans.items() if "ORDER BY plates.updated_at" in statement]
    assert len(pages) == 2
    assert not any("TEMP B-TREE" in step for plan in pages for step in plan)


def test_a_deleted_plate_takes_its_events_along(database):
    database.record(report("session_start"))
    assert database.delete("s")
    assert not database.delete("s")
    assert database.gone == ["s"]
    assert database.get("s") is None
    assert database.event_counts() == {}


def test_what_did_not_change_for_too_long_is_forgotten(database):
    database.record(report("session_start"))
    assert database.prune(days=1) == 0
    time.sleep(0.01)
    assert database.prune(days=0.005 / 86400) == 1
    assert len(database.gone) == 1
    assert database.all() == []


def test_a_clock_that_is_set_ahead_lets_the_retention_remove_nothing(url, monkeypatch):
    """Neither if it is set while the daemon runs, nor before its start. Real days do."""
    database = Database(url)
    database.record(report("session_start"))
    assert database.prune(days=30) == 0
    now, uptime = unix_ms(), uptime_ms()
    monkeypatch.setattr("tailhook.plates.db.unix_ms", lambda: now + 90 * DAY_MS)
    assert database.prune(days=30) == 0
    database.close()
    monkeypatch.setattr("tailhook.plates.rows.unix_ms", lambda: now + 90 * DAY_MS)
    database = Database(url)
    database.record(report("session_start", "from the clock that was set"))
    assert database.prune(days=30) == 0
    assert len(database.all()) == 2
    monkeypatch.setattr("tailhook.plates.db.uptime_ms", lambda: uptime + 31 * DAY_MS)
    assert database.prune(days=30) == 1
    database.close()


def test_after_a_long_time_without_a_daemon_the_retention_counts_from_the_newest_event(url):
    database = Database(url)
    database.record(report("session_start", "old"))
    with database.engine.begin() as tx:
        long_ago = unix_ms() - 31 * DAY_MS
        tx.execute(sa.update(plates).values(updated_at=long_ago))
        tx.execute(sa.update(events).values(received_at=long_ago))
    database.close()
    for number, left in enumerate((["new", "old"], ["new"])):
        database = Database(url)
        database.record(report("session_start", "new"))
        assert database.prune(days=30) == number
        assert [plate["session_id"] for plate in database.all()] == left
        database.close()


def test_old_events_of_a_living_plate_are_forgotten_and_its_status_is_not(database):
    database.record(report("session_start", event_id="old", git_branch="main"))
    database.record(report("tool_start:AskUserQuestion", event_id="last"))
    with database.engine.begin() as tx:
        tx.execute(sa.update(events).values(received_at=0))
    before = database.get("s")
    database.record(report("coffee_break", event_id="new"))
    assert database.prune(days=1) == 0
    assert [event["event_id"] for event in database.events_of("s", 9)] == ["new"]
    assert database.get("s") == before
    assert database.gone == []


class CountingLock:
    """A lock that counts how often it was taken."""

    def __init__(self):
        self.lock = threading.Lock()
        self.taken = 0

    def __enter__(self):
        self.lock.acquire()
        self.taken += 1

    def __exit__(self, *_):
        self.lock.release()


def insert_events(database, number):
    """Store events of the session `s` that were received long ago."""
    row = {"session_id": "s", "event_type": "tool_call", "ts": 1, "received_at": 1}
    with database.engine.begin() as tx:
        tx.execute(sa.insert(events), [{**row, "event_id": f"old{one}"} for one in range(number)])
        add_counts(tx, {"tool_call": number})


@pytest.mark.parametrize("is_plate_old", [False, True])
def test_the_retention_never_holds_the_lock_over_a_thousand_events(database, is_plate_old, monkeypatch):
    database.record(report("stop"))
    insert_events(database, 2 * SLICE_ROWS + 500)
    if is_plate_old:
        with database.engine.begin() as tx:
            tx.execute(sa.update(plates).values(updated_at=1))
            tx.execute(sa.update(events).values(received_at=unix_ms()))
    database.writing = CountingLock()
    left = [2 * SLICE_ROWS + 501]
    monkeypatch.setattr(time, "sleep", lambda _: left.append(sum(database.event_counts().values())))
    assert database.prune(days=1) == is_plate_old
    assert [before - after for before, after in pairwise(left) if before != after] == (
        [SLICE_ROWS, SLICE_ROWS, 501 if is_plate_old else 500]
    )
    assert database.writing.taken == len(left) - 1
    assert database.event_counts() == ({} if is_plate_old else {"stop": 1})
    assert len(database.all()) == (not is_plate_old)


def test_the_retention_stops_between_two_slices_when_the_daemon_ends(database):
    database.record(report("stop"))
    insert_events(database, 2 * SLICE_ROWS)
    asked = []
    database.prune(1, lambda: asked.append(0) or len(asked) > 1)
    assert database.event_counts() == {"stop": 1, "tool_call": SLICE_ROWS}


@pytest.mark.parametrize("kind", ["SELECT event_id FROM events WHERE received_at < 5 LIMIT 1000"])
def test_the_retention_finds_old_events_by_an_index(tmp_path, kind):
    database = Database(f"sqlite:///{tmp_path}/plates.db")
    with database.engine.connect() as tx:
        plan = " ".join(str(row) for row in tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {kind}"))
    assert "USING INDEX ix_events_received_at" in plan
    database.close()


def test_the_figures_of_the_status_read_no_event(database):
    """After a few weeks, a count of the events takes seconds."""
    database.record(report("stop"))
    database.record(report("coffee_break"))
    statements = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert database.event_counts() == {"stop": 1, "coffee_break": 1}
    assert all("FROM event_counts" in statement for statement in statements)


def test_the_numbers_of_events_are_those_that_are_stored_whatever_removes_them(database):
    database.register("/p", "run")
    database.close_sessions("run")  # an event that the daemon finds itself
    database.register("/p", "other")  # takes the closed one's place, with its events
    assert database.event_counts() == {}
    database.record(report("session_start", run_id="other"))
    database.apply(database.get("s"), Event(EventKind.TURN_ENDED))
    assert database.event_counts() == {"session_start": 1, "turn_ended": 1}
    database.delete("s")
    assert database.event_counts() == {}


def test_the_offset_of_a_spool_moves_with_its_event(database):
    assert database.offset("f") == 0
    database.record(report("stop"), SpoolOffset("f", 10))
    database.record(report("stop"), SpoolOffset("f", 25))
    database.move_offset(SpoolOffset("g", 5))
    assert (database.offset("f"), database.offset("g")) == (25, 5)
    database.forget_file("f")
    assert database.offset("f") == 0


def test_opening_again_changes_nothing_and_the_tables_are_those_of_the_code(database, url):
    database.record(report("stop"))
    again = Database(url)
    assert len(again.all()) == 1
    found = sa.inspect(again.engine)
    for table in metadata.tables.values():
        assert {column["name"] for column in found.get_columns(table.name)} == {column.name for column in table.columns}
    again.close()
