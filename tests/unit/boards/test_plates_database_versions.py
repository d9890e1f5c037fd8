"""A database is made once, and one of an earlier version is brought to the newest one."""

import subprocess
import sys

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory
from support.plate_reports import ended, report, status

from tailhook.plates.db import Database
from tailhook.plates.tables import metadata, migration_config

REVISIONS = [one.revision for one in ScriptDirectory.from_config(migration_config()).walk_revisions()]  # newest first


def columns_in(connection):
    """The columns of each table."""
    found = sa.inspect(connection)
    tables = set(metadata.tables) & set(found.get_table_names())
    return {name: {column["name"] for column in found.get_columns(name)} for name in tables}


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_a_database_of_every_earlier_version_is_brought_to_the_newest_one_and_back(url, revision):
    engine = sa.create_engine(url)
    config = migration_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        before = columns_in(connection)
        row = {"session_id": "s", "project_path": "/p", "status": "awaiting_input"}
        row |= {"created_at": 1, "updated_at": 77, "since": 77, "event_ts": 0, "version": 3}
        names = [name for name in row if name in before["plates"]]
        values = ", ".join(f":{name}" for name in names)
        connection.execute(sa.text(f"INSERT INTO plates ({', '.join(names)}) VALUES ({values})"), row)
        event = {"event_id": "e", "session_id": "s", "event_type": "stop", "ts": 5, "received_at": 6}
        connection.execute(sa.text(f"INSERT INTO events ({', '.join(event)}) VALUES (:{', :'.join(event)})"), event)
        if "event_counts" in before:
            connection.execute(sa.text("INSERT INTO event_counts (event_type, count) VALUES ('stop', 1)"))
    database = Database(url)
    plate = database.get("s")
    assert (plate["since"], plate["tools"], plate["unprompted"], plate["owner"]) == (77, None, None, None)
    assert {plate[name] for name in ("folder", "background", "hidden_at", "silent_since", "title")} == {None}
    assert database.event_counts() == {"stop": 1}
    database.record(ended("AskUserQuestion", "a"))
    assert status(database) == "running"
    database.close()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
        assert columns_in(connection) == before
    engine.dispose()


OPEN = "import sys; from tailhook.plates.db import Database; Database(sys.argv[1]).close()"
SIX_AT_ONCE = """
import os, sys
from tailhook.plates.db import Database
waiting, begin = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        os.close(begin)
        os.read(waiting, 1)  # until all have been started
        Database(sys.argv[1]).close()
        os._exit(0)
os.close(begin)
sys.exit(any(os.wait()[1] for _ in range(6)))
"""
DIES = """
import os, sys
from alembic.operations import Operations
make = Operations.create_table
def make_one(*words, **more):
    make(*words, **more)
    os._exit(7)
Operations.create_table = make_one
"""


def opening(code, url):
    """Start a process that opens the database."""
    return subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE, text=True)


def test_one_that_is_killed_while_it_makes_the_tables_is_not_a_hindrance(url):
    killed = opening(DIES + OPEN, url)
    assert (killed.communicate()[1], killed.returncode) == ("", 7)
    again = Database(url)
    again.record(report("stop"))
    again.close()


def test_several_at_once_make_the_tables_once(url):
    processes = opening(SIX_AT_ONCE, url)
    assert (processes.communicate()[1], processes.returncode) == ("", 0)
