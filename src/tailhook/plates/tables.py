"""The tables of the plates, the statements on them, and how a database is opened and migrated."""

import json
import sqlite3
import time
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.event import listen
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError, StatementError

from tailhook.plates.fields import PlateFields

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).with_name("migrations")
metadata = sa.MetaData()


class Plate(PlateFields):
    """One row of the table `plates`. Times are Unix milliseconds.

    terminal: the variables that name its terminal, see `tailhook.hook.plates.TERMINAL_VARIABLES`.
    pid_started: see `health.find_process_start`; None until the process was seen.
    pid_is_guess: only one event named the process, so it may be a wrapper shell of the hook.
    owner: the spool's id of the daemon that checks the transcript and the process, or None.
    since: the time of the last event that changed the status, by its hook's clock; at most the time of its receipt.
    event_ts, event_mono: of the newest event, by the clocks of its hook.
    transcript_size: in bytes, at the newest event.
    tools: the open tools, see `changes.situation_of`.
    beneath: see `tailhook.machines.plates.Situation`.
    unprompted: whether the session has started and got no prompt yet.
    background: how many agents worked in the background when the turn ended; None after any other event.
    silent_since: when the last sign of the session came, in Unix milliseconds; None unless it has been silent for too
        long, see `tailhook.machines.plates.is_silent`.
    reply: the first line of the agent's last message, from the end of a turn to the next prompt.
    prompted_at: when a person's last prompt came, by its hook's clock; None if its turn was cut off by a new start.
    finished_at: when the last turn ended by itself, by its hook's clock; None during a turn, and after an interruption.
    seen_at: when a person looked at what the last turn did, by the daemon's clock.
    quiet_since: when the last event or write to a transcript came, in Unix milliseconds; None unless a running session
        has been quiet for too long, see `tailhook.machines.plates.is_stuck`.
    hidden_at: when a person hid the session from the boards, by the daemon's clock; None if it is shown.
    """

    status: str
    terminal: dict[str, str] | None
    pid_started: float | None
    pid_is_guess: bool | None
    owner: Annotated[str | None, {"name": "keeper"}]
    created_at: int
    updated_at: Annotated[int, {"index": True}]
    since: Annotated[int, {"server_default": "0"}]
    event_ts: int
    event_mono: int | None
    transcript_size: int | None
    tools: list[list[str | None]] | None
    beneath: str | None
    unprompted: bool | None
    background: int | None
    silent_since: int | None
    hidden_at: int | None
    reply: str | None
    prompted_at: int | None
    finished_at: int | None
    seen_at: int | None
    quiet_since: int | None
    version: int


COLUMN_TYPES: dict[type, Any] = {
    str: sa.Text,
    int: sa.BigInteger,
    float: sa.Float,
    bool: sa.Boolean,
    list: sa.JSON,
    dict: sa.JSON,
}


def column_of(name: str, hint: Any) -> "sa.Column[Any]":
    """Return the column of a field.

    hint: its annotation. A dict in an `Annotated` has arguments for the column.
    """
    options: dict[str, Any] = {"name": name}
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        for note in notes:
            options |= note if isinstance(note, dict) else {}
    alternatives = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kind = next(one for one in alternatives if one is not NoneType)
    return sa.Column(
        type_=COLUMN_TYPES[get_origin(kind) or kind], key=name, nullable=NoneType in alternatives, **options
    )


plates = sa.Table(
    "plates",
    metadata,
    *(column_of(name, hint) for name, hint in get_type_hints(Plate, include_extras=True).items()),
    sa.Index("ix_plates_status_updated_at", "status", "updated_at", "session_id"),
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
    sa.Column("received_at", sa.BigInteger, nullable=False, index=True),
    sa.Column("status", sa.Text),  # after the event; null if the event changed nothing
)
# Events of unknown types from sessions without a plate. Such an event does not create a plate.
unknown_events = sa.Table(
    "unknown_events",
    metadata,
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("ts", sa.BigInteger, nullable=False),
    sa.Column("received_at", sa.BigInteger, nullable=False, index=True),
)
# How many events of each type are stored in both tables. Kept, because counting takes seconds after a few weeks.
event_counts = sa.Table(
    "event_counts",
    metadata,
    sa.Column("event_type", sa.Text, primary_key=True),
    sa.Column("count", sa.BigInteger, nullable=False),
)
# The waits for a person that have ended, so that their history is read without the events. Unix milliseconds.
waits = sa.Table(
    "waits",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column(
        "session_id", sa.Text, sa.ForeignKey("plates.session_id", ondelete="CASCADE"), nullable=False, index=True
    ),
    sa.Column("begun_at", sa.BigInteger, nullable=False),
    sa.Column("ended_at", sa.BigInteger, nullable=False, index=True),
)
spool = sa.Table(
    "spool",
    metadata,
    sa.Column("file", sa.Text, primary_key=True),  # see Inbox.key: a file of the spool may be renamed
    sa.Column("offset", sa.BigInteger, nullable=False),  # bytes of the file whose events are stored
)


# ---- statements --------------------------------------------------------------
#
# Built once: SQLAlchemy takes longer to build a statement than SQLite to execute it.

EVENT_COLUMNS = [column.name for column in events.columns if column.name != "id"]
UNKNOWN_EVENT_COLUMNS = [column.name for column in unknown_events.columns]
PLATE_COLUMNS = plates.columns.keys()
SELECT_PLATES = sa.select(*(column.label(name) for name, column in plates.columns.items()))
FIND = SELECT_PLATES.where(plates.c.session_id == sa.bindparam("id"))
UPDATE = (
    sa.update(plates)
    .where(plates.c.session_id == sa.bindparam("id"), plates.c.version == sa.bindparam("read"))
    .values({name: sa.bindparam(name) for name in PLATE_COLUMNS if name != "session_id"})
)

INSERT_WAIT = sa.insert(waits)


class Statements(NamedTuple):
    """The statements that differ between SQLite and PostgreSQL."""

    insert_event: Any
    insert_unknown_event: Any
    insert_plate: Any
    move_offset: Any
    add_count: Any


@cache
def statements(dialect: str) -> Statements:
    """Return the statements of a dialect: "sqlite" or "postgresql"."""
    insert: Any = import_module(f"sqlalchemy.dialects.{dialect}").insert

    def insert_into(table: sa.Table, columns: Iterable[str]) -> Any:
        return insert(table).values({name: sa.bindparam(name) for name in columns})

    offset = insert_into(spool, ("file", "offset"))
    count = insert_into(event_counts, ("event_type", "count"))
    return Statements(
        # psycopg has no row count for such an INSERT, so it returns the new event's id.
        insert_into(events, EVENT_COLUMNS)
        .on_conflict_do_nothing(index_elements=["event_id"])
        .returning(events.c.event_id),
        insert_into(unknown_events, UNKNOWN_EVENT_COLUMNS)
        .on_conflict_do_nothing(index_elements=["event_id"])
        .returning(unknown_events.c.event_id),
        insert_into(plates, PLATE_COLUMNS).on_conflict_do_nothing(index_elements=["session_id"]),
        offset.on_conflict_do_update(index_elements=["file"], set_={"offset": offset.excluded.offset}),
        count.on_conflict_do_update(
            index_elements=["event_type"], set_={"count": event_counts.c.count + count.excluded.count}
        ),
    )


# ---- opening -----------------------------------------------------------------

BUSY_TIMEOUT_S = 10  # for another process that writes
# Of libpq. A network or a server may go away without a word, for example while the computer sleeps. By default, libpq
# notices that on an idle connection after two hours.
SERVER_OPTIONS = {
    "connect_timeout": 10,  # seconds, and the next ones
    "keepalives_idle": 15,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 45_000,  # milliseconds
}
# Begins a migration. Python's sqlite3 begins no transaction by itself before a CREATE TABLE.
LOCK_STATEMENTS = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(8386099895470092139)"}


def open_engine(url: str) -> Engine:
    """Return an engine for a URL. SQLite's connections get the pragmas of `prepare_sqlite`.

    A server can cut an idle connection, so each is tested before its use, and replaced if needed.
    """
    options = server_options(sa.make_url(url))
    engine = sa.create_engine(
        url, pool_pre_ping=bool(options), connect_args=options, json_deserializer=read_json_column
    )
    if engine.dialect.name == "sqlite":
        listen(engine, "connect", prepare_sqlite)
    return engine


def server_options(url: sa.URL) -> dict[str, int]:
    """Return the options of connections to a server that the URL does not set itself; for SQLite, none."""
    is_server = url.get_backend_name() != "sqlite"
    return {name: value for name, value in SERVER_OPTIONS.items() if is_server and name not in url.query}


def read_json_column(text: "str | bytes") -> Any:
    """Return the value of a JSON column, or None if it is damaged: one row must not make all of them unreadable."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def prepare_sqlite(connection: Any, _: object) -> None:
    """Switch an SQLite connection to write-ahead logging and foreign keys, and let it wait for other processes."""
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:  # SQLite does not wait if another process changes the mode
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def migrate(engine: Engine) -> None:
    """Migrate the tables to the newest version in one transaction, if they are older. Other processes wait.

    Raises NewerDatabaseError.
    """
    with engine.begin() as connection:
        connection.exec_driver_sql(LOCK_STATEMENTS[engine.dialect.name])
        if stored_version(connection) == max(known_versions()):
            return
        if is_newer(connection):
            raise NewerDatabaseError
        from alembic import command  # it takes 8 MB

        config = migration_config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def is_row_error(error: SQLAlchemyError) -> bool:
    """Return whether the values of a row caused an error; False if the database is unreachable, full or broken."""
    return isinstance(error, (IntegrityError, DataError)) or type(error) is StatementError


class NewerDatabaseError(Exception):
    """A newer tailhook made the tables."""


def stored_version(connection: Connection) -> str | None:
    """Return the version of the tables, or None if there are none."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()


def known_versions() -> set[str]:
    """Return the versions of the tables that this tailhook knows: the numbers of the migrations' files."""
    return {path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py")}


def is_newer(connection: Connection) -> bool:
    """Return whether a newer tailhook made the tables."""
    return stored_version(connection) not in {None, *known_versions()}


def migration_config() -> "Config":
    """Return Alembic's configuration."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config
