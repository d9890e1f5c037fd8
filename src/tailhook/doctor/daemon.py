"""What the doctor says of the plates daemon: whether it runs, and whether what it needs is as it should be."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tailhook.doctor.finding import FAILURE, NOTE, OK, WARNING, Finding
from tailhook.errors import TailhookError
from tailhook.plates import paths
from tailhook.stores.atomic import state_folder_path
from tailhook.stores.daemon import DATABASE_FILE, SETTINGS_FILE, TOKEN_FILE, daemon_argv
from tailhook.stores.spool import SPOOL_FILE, WAKE_UP_SOCKET, runtime_folder

LARGE_SPOOL = 32 << 20  # bytes that wait for a daemon

PATIENCE = 5  # seconds for the database's server to answer


def finding(status: str, what: str, advice: str) -> Finding:
    """Return a finding about the daemon."""
    return Finding("plates", status, what, advice)


def examine() -> Iterator[Finding]:
    """Yield every finding about the daemon."""
    yield from daemon()
    yield from private_files()
    waiting = sum(path.stat().st_size for path in Path(state_folder_path()).glob(f"{SPOOL_FILE}*"))
    if waiting > LARGE_SPOOL:
        what = f"{state_folder_path()}/{SPOOL_FILE}: {waiting >> 20} MB wait for a daemon"
        yield finding(WARNING, what, "Start one, which takes them:  tailhook plates serve")


def daemon() -> Iterator[Finding]:
    """Whether the daemon answers; where it is away, whether it could."""
    start = "Start it, and see what it says:  tailhook plates serve"
    try:
        from tailhook.plates.client import AwayError, HangingError, request
    except ImportError as error:
        advice = "Install what the daemon needs:  pip install 'tailhook[serve]'"
        yield finding(WARNING, f"the daemon cannot run: {error}", advice)
        yield from failed_start(advice)
        return
    yield from set_aside()
    try:
        figures = request("GET", "/status")
    except HangingError as error:
        yield finding(FAILURE, str(error), start)
    except AwayError:
        yield from away(start)
        yield from database()
    except TailhookError as error:
        yield finding(FAILURE, f"the daemon's database cannot be read: {error}", start)
    else:
        what = (
            f"the daemon {figures['version']} answers: {sum(figures['plates'].values())} plates,"
            f" {figures['spool_bytes']} bytes in the spool, {figures['lag_ms']['p99']:.0f} ms from hook to board (p99)"
        )
        yield finding(OK, what, "")
        if lost := figures["spool_lost"]:
            what = (
                f"{state_folder_path()}/{SPOOL_FILE}: lines that were skipped since the daemon started, because they"
                f" are not events or the database refused them: {lost}"
            )
            advice = (
                "The board does not show these events; a session's next event corrects its row. Only hooks should write"
                " to this file. If the number grows, run the daemon in a terminal, where it prints what the database"
                " refuses:  tailhook plates serve"
            )
            yield finding(WARNING, what, advice)


def away(start: str) -> Iterator[Finding]:
    """Yield whether the next event can start the daemon.  start: the advice to start it by hand."""
    argv = daemon_argv()
    if not os.access(argv[0], os.X_OK):
        yield finding(FAILURE, f"the daemon's interpreter is gone: {argv[0]}", "Write it anew:  tailhook install")
    elif paths.start_failure():
        yield from failed_start(start)
    else:
        yield finding(NOTE, "the daemon does not run; the next event starts it", start)


def failed_start(advice: str) -> Iterator[Finding]:
    """Yield why the daemon did not start, if a hook has tried since it last ran."""
    if reason := paths.start_failure():
        yield finding(FAILURE, f"the daemon did not start when a hook last tried: {reason}", advice)


def set_aside() -> Iterator[Finding]:
    """Yield the databases that the daemon has set aside, as they were corrupt."""
    from tailhook.plates.opening import found_aside
    from tailhook.plates.options import kept_options

    with suppress(TailhookError):  # see `database`
        for path in found_aside(kept_options().url()):
            what = f"{path}: a corrupt database that was set aside; the sessions in it are not on the board"
            yield finding(WARNING, what, "Remove it, and the files that begin with its name, if you do not need it.")


def database() -> Iterator[Finding]:
    """Yield what is wrong with the database that hooks start the daemon with, if there is one."""
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

    from tailhook.plates.opening import first_line, is_corrupt
    from tailhook.plates.options import kept_options
    from tailhook.plates.tables import is_newer, plates

    try:
        url = sa.make_url(kept_options().url())
    except TailhookError as error:
        yield finding(FAILURE, str(error), "The daemon does not start meanwhile.")
        return
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        return
    if url.get_backend_name() == "postgresql":
        url = url.update_query_dict({"connect_timeout": str(PATIENCE)})
    try:
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.connect() as connection:
            if is_newer(connection):
                what = f"the database {url!r} was made by a newer tailhook"
                yield finding(FAILURE, what, "Install that newer version again, from a clone of its repository.")
                return
            connection.execute(sa.select(plates.c.session_id).limit(1))
    except (SQLAlchemyError, sqlite3.Error, ImportError) as error:
        what = f"the database {url!r} cannot be opened: {first_line(error)}"
        if is_corrupt(error):
            advice = "The daemon renames it at its next start and begins a new one:  tailhook plates serve"
        else:
            advice = "Is its server there, or its file readable?"
        yield finding(FAILURE, what, advice)


def private_files() -> Iterator[Finding]:
    """Files that nobody else may read or write."""
    state, runtime = Path(state_folder_path()), Path(runtime_folder())
    names = (TOKEN_FILE, DATABASE_FILE, SETTINGS_FILE, SPOOL_FILE)
    for path in (runtime, paths.http_socket_path(), runtime / WAKE_UP_SOCKET, *(state / name for name in names)):
        try:
            found = path.stat() if path.is_socket() else path.lstat()  # one may lead to the daemon's, elsewhere
        except FileNotFoundError:
            continue
        except OSError as error:
            advice = "Set XDG_STATE_HOME and XDG_RUNTIME_DIR to folders of yours."
            yield finding(FAILURE, f"{path}: {error.strerror}", advice)
            continue
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            advice = f"chmod go= '{path}', where the file is yours. Else remove it; it is made anew, yours alone."
            yield finding(FAILURE, f"{path}: a link, or another user's, or open to others", advice)
