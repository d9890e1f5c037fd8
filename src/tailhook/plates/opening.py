"""Opens the daemon's database, and renames a corrupt one."""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tailhook.errors import TailhookError, install_command
from tailhook.plates.db import Database
from tailhook.plates.tables import NewerDatabaseError, Plate, known_versions, migrate, open_engine, stored_version

DRIVERS = ("sqlite", "postgresql+psycopg")
DRIVER_ADVICE = f"PostgreSQL needs its driver:  {install_command('psycopg[binary]')}"
CORRUPT, NOT_A_DATABASE = 11, 26  # result codes (sqlite.org/rescode.html)
ASIDE = ".corrupt-"  # followed by the time, in the name of a renamed database
COMPANIONS = ("-wal", "-shm")  # suffixes of the files that SQLite keeps beside a database


class CorruptDatabaseError(TailhookError):
    """SQLite cannot read the database's file."""


def open_database(
    url: str, changed: Callable[[Plate], None] = lambda plate: None, removed: Callable[[str], None] = lambda name: None
) -> Database:
    """Open the database.

    changed, removed: see `Database`.

    Raises CorruptDatabaseError, and TailhookError if it cannot be opened for another reason.
    """
    try:
        check_kind(url)
        probe(url)
        migrate_in_child(url)
        return Database(url, changed, removed)
    except NewerDatabaseError as error:
        what = f"the database {make_url(url)!r} was made by a newer tailhook"
        raise TailhookError(f"{what}. Upgrade tailhook, or give another database with --db") from error
    except ImportError as error:
        raise TailhookError(f"the database cannot be opened: {first_line(error)}. {DRIVER_ADVICE}") from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        kind = CorruptDatabaseError if is_corrupt(error) else TailhookError
        raise kind(f"the database cannot be opened: {first_line(error)}") from error


def check_kind(url: str) -> None:
    """Raise TailhookError for a database that tailhook cannot use: SQLAlchemy would ask for its driver."""
    parsed = make_url(url)
    if parsed.drivername not in DRIVERS:
        known = " or ".join(f"{name}://..." for name in DRIVERS)
        raise TailhookError(f"the database cannot be opened: {parsed.drivername}:// is not supported. Give {known}")


def probe(url: str) -> None:
    """Read a little of an SQLite database, if there is one, without the right to write.

    Opened for writing, SQLite removes the log beside a file that is not a database. Raises sqlite3.DatabaseError if the
    file is corrupt; other faults are found when it is opened.
    """
    parsed = make_url(url)
    path = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite" or not path.is_file():
        return
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except sqlite3.DatabaseError as error:
            if is_corrupt(error):
                raise


def migrate_in_child(url: str) -> None:
    """Migrate a database in a child process, so that the memory for that is free afterwards.

    If it fails, the caller's own attempt raises the error. A process with threads cannot be forked safely, so it
    migrates the database itself.
    """
    if threading.active_count() > 1:
        return
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            is_current = stored_version(connection) == max(known_versions())
    finally:
        engine.dispose()
    if is_current:
        return
    pid = os.fork()
    if pid == 0:
        exit_code = 1
        try:
            engine = open_engine(url)
            migrate(engine)
            engine.dispose()
            exit_code = 0
        finally:
            os._exit(exit_code)
    os.waitpid(pid, 0)


def first_line(error: BaseException) -> str:
    """Return an error's message without the statement and the link that SQLAlchemy adds."""
    return str(error).partition("\n")[0]


def is_corrupt(error: BaseException) -> bool:
    """Return whether an error of SQLite means that the file is corrupt or is not a database."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(origin, sqlite3.DatabaseError):
        return False
    code: int = getattr(origin, "sqlite_errorcode", 0)  # the module's own errors have none
    return code & 0xFF in (CORRUPT, NOT_A_DATABASE)


def set_aside(url: str) -> Path:
    """Rename a database's file and the files that SQLite keeps beside it. Returns the new path; it contains the time.

    The companions are renamed first: if this is interrupted, the database is still corrupt and is renamed next time.
    Beside a new database, SQLite would delete the companions or use them.
    """
    path = Path(make_url(url).database or "")
    second, nanosecond = divmod(time.time_ns(), 10**9)  # one reading of the clock, so that the names sort by time
    clock = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
    aside = path.with_name(f"{path.name}{ASIDE}{clock}-{nanosecond:09}")
    for end in (*COMPANIONS, ""):
        file = path.with_name(f"{path.name}{end}")
        if file.exists():
            file.rename(aside.with_name(f"{aside.name}{end}"))
    return aside


def find_set_aside(url: str) -> list[Path]:
    """Return the renamed databases, oldest first."""
    path = Path(make_url(url).database or "")
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return sorted(
        one for one in beside if one.name.startswith(f"{path.name}{ASIDE}") and not one.name.endswith(COMPANIONS)
    )
