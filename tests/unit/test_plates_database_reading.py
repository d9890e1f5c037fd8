"""What the database lists, deletes and forgets."""

import time

import sqlalchemy as sa
from support.plate_reports import report

from tailhook.plates.db import Database, SpoolOffset
from tailhook.plates.tables import events, metadata


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
