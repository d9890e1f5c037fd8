"""The tables of the plates, the statements on them, and how they are opened and brought to their newest form."""

import sqlite3
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.event import listen
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError, StatementError

metadata = sa.MetaData()

plates = sa.Table(
    "plates",
    metadata,
    sa.Column("session_id", sa.Text, primary_key=True),
    sa.Column("project_path", sa.Text, nullable=False),
    sa.Column("transcript_path", sa.Text),
    sa.Column("git_branch", sa.Text),
    sa.Column("status", sa.Text, nullable=False, index=True),
    sa.Column("last_event_type", sa.Text),
    sa.Column("last_tool", sa.Text),
    sa.Column("todo_progress", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("run_id", sa.Text, index=True),
    sa.Column("pid", sa.BigInteger),
    sa.Column("pid_started", sa.Float),  # as `health.process_start` tells it; known once the process was seen
    sa.Column("pid_is_guess", sa.Boolean),  # it may be a shell around a hook: one event alone named it
    sa.Column("host", sa.Text),
    sa.Column("user", sa.Text),
    sa.Column("keeper", sa.Text),  # the spool's id of the daemon that looks at its transcript and process; or null
    sa.Column("created_at", sa.BigInteger, nullable=False),  # Unix milliseconds, as all times here
    sa.Column("updated_at", sa.BigInteger, nullable=False, index=True),
    # When the event happened that last changed the status: by its hook's clock, and never later than it was received.
    sa.Column("since", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("event_ts", sa.BigInteger, nullable=False),  # of the newest event, by its hook's clocks
    sa.Column("event_mono", sa.BigInteger),
    sa.Column("transcript_size", sa.BigInteger),  # bytes, at the newest event
    sa.Column("tools", sa.JSON),  # what is open, as `changes.situation_of` reads it
    sa.Column("beneath", sa.Text),  # the own agent's status while a sub-agent waits for the person
    sa.Column("unprompted", sa.Boolean),  # the session has started and was given no prompt
    sa.Column("version", sa.BigInteger, nullable=False),
)
events = sa.Table(
    "events",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("event_id", sa.Text, nullable=False, unique=True),
    sa.Column(
        "session_id", sa.Text, sa.ForeignKey("plates.session_id", ondelete="CASCADE"), nullable=False, index=True
    ),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("tool_name", sa.Text),
    sa.Column("tool_use_id", sa.Text),
    sa.Column("agent_id", sa.Text),
    sa.Column("tool_params", sa.JSON),
    sa.Column("error", sa.Text),
    sa.Column("ts", sa.BigInteger, nullable=False),
    sa.Column("received_at", sa.BigInteger, nullable=False),
    sa.Column("status", sa.Text),  # after the event; null if the event changed nothing
)
# Events of unknown types from sessions that have no plate: such an event begins none.
unknown_events = sa.Table(
    "unknown_events",
    metadata,
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("ts", sa.BigInteger, nullable=False),
    sa.Column("received_at", sa.BigInteger, nullable=False, index=True),
)
spool = sa.Table(
    "spool",
    metadata,
    sa.Column("file", sa.Text, primary_key=True),  # see Inbox.key: a spool's file may get another name
    sa.Column("offset", sa.BigInteger, nullable=False),  # bytes of it that are in `events`
)


class Plate(TypedDict):
    """One row of the table `plates`, which says what the columns mean."""

    session_id: str
    project_path: str
    transcript_path: str | None
    git_branch: str | None
    status: str
    last_event_type: str | None
    last_tool: str | None
    todo_progress: str | None
    error: str | None
    run_id: str | None
    pid: int | None
    pid_started: float | None
    pid_is_guess: bool | None
    host: str | None
    user: str | None
    keeper: str | None
    created_at: int
    updated_at: int
    since: int
    event_ts: int
    event_mono: int | None
    transcript_size: int | None
    tools: list[list[str | None]] | None
    beneath: str | None
    unprompted: bool | None
    version: int


# ---- statements --------------------------------------------------------------
#
# Made once: SQLAlchemy takes longer to put one together than SQLite to execute it.

EVENT_COLUMNS = [column.name for column in events.columns if column.name != "id"]
UNKNOWN_EVENT_COLUMNS = [column.name for column in unknown_events.columns]
PLATE_COLUMNS = [column.name for column in plates.columns]
FIND = sa.select(plates).where(plates.c.session_id == sa.bindparam("id"))
UPDATE = (
    sa.update(plates)
    .where(plates.c.session_id == sa.bindparam("id"), plates.c.version == sa.bindparam("read"))
    .values({name: sa.bindparam(name) for name in PLATE_COLUMNS if name not in ("session_id", "created_at")})
)


class Statements(NamedTuple):
    """Those that databases spell in their own way."""

    keep_event: Any
    keep_unknown_event: Any
    begin_plate: Any
    move_offset: Any


@cache
def statements(dialect: str) -> Statements:
    """The statements of a dialect: "sqlite" or "postgresql"."""
    insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[dialect]

    def filled(table: sa.Table, columns: Iterable[str]) -> Any:
        return insert(table).values({name: sa.bindparam(name) for name in columns})

    offset = filled(spool, ("file", "offset"))
    return Statements(
        # psycopg has no row count of such an INSERT, so the new event's id is asked for.
        filled(events, EVENT_COLUMNS).on_conflict_do_nothing(index_elements=["event_id"]).returning(events.c.event_id),
        filled(unknown_events, UNKNOWN_EVENT_COLUMNS)
        .on_conflict_do_nothing(index_elements=["event_id"])
        .returning(unknown_events.c.event_id),
        filled(plates, PLATE_COLUMNS).on_conflict_do_nothing(index_elements=["session_id"]),
        offset.on_conflict_do_update(index_elements=["file"], set_={"offset": offset.excluded.offset}),
    )


# ---- opening -----------------------------------------------------------------

BUSY = 10  # seconds to wait for another process
# Begins a migration. Python's sqlite3 begins no transaction by itself before a CREATE TABLE.
ALONE = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(8386099895470092139)"}


def open_engine(url: str) -> Engine:
    """An engine for the URL; SQLite's connections as they should be."""
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        listen(engine, "connect", prepare_sqlite)
    return engine


def prepare_sqlite(connection: Any, _: object) -> None:
    """A journal that readers need not wait for, and foreign keys; another process is waited for first of all."""
    connection.execute(f"PRAGMA busy_timeout = {BUSY * 1000}")
    deadline = time.monotonic() + BUSY
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:  # SQLite itself does not wait for one that changes it just now
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def migrate(engine: Engine) -> None:
    """Bring the tables to the newest version: all of it or nothing, and one process after the other."""
    config = migrations()
    with engine.begin() as connection:
        connection.exec_driver_sql(ALONE[engine.dialect.name])
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_of_a_row(error: SQLAlchemyError) -> bool:
    """Return whether an error comes from the values of a row, and not from a database that is away, full or broken."""
    return isinstance(error, (IntegrityError, DataError)) or type(error) is StatementError


def is_newer(connection: Connection) -> bool:
    """Whether the tables are of a version that is not known here."""
    known = {migration.revision for migration in ScriptDirectory.from_config(migrations()).walk_revisions()}
    return not known.issuperset(MigrationContext.configure(connection).get_current_heads())


def migrations() -> Config:
    """Where Alembic finds them."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    return config
