"""The doctor's checks of the plates daemon: whether it runs, and whether its files are in order."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tailhook.doctor.finding import FAILURE, NOTE, OK, WARNING, Finding
from tailhook.errors import UPGRADE_ADVICE, TailhookError, install_command, is_own_part
from tailhook.hook.payload import user_config
from tailhook.plates import paths
from tailhook.stores.atomic import state_folder_path
from tailhook.stores.daemon import DATABASE_FILE, SETTINGS_FILE, TOKEN_FILE, daemon_argv
from tailhook.stores.spool import SPOOL_FILE, WAKE_UP_SOCKET, runtime_folder

SLOW_LAG_MS = 1000
MAX_SPOOL_BYTES = 32 << 20
DATABASE_TIMEOUT_S = 5  # for the database's server


def finding(status: str, what: str, advice: str) -> Finding:
    """Return a finding about the daemon."""
    return Finding("plates", status, what, advice)


def check_daemon(install: str) -> Iterator[Finding]:
    """Yield every finding about the daemon.

    install: the command that writes the hooks again.
    """
    yield from check_answer(install)
    yield from check_private_files()
    waiting = sum(path.stat().st_size for path in Path(state_folder_path()).glob(f"{SPOOL_FILE}*"))
    if waiting > MAX_SPOOL_BYTES:
        what = f"{state_folder_path()}/{SPOOL_FILE}: {waiting >> 20} MiB of events wait for the daemon"
        yield finding(WARNING, what, "Start the daemon, which reads them:  tailhook plates serve")


def check_answer(install: str) -> Iterator[Finding]:
    """Yield whether the daemon answers; if not, whether it could start.

    install: see `check_daemon`.
    """
    start = "To see why, start it in a terminal:  tailhook plates serve"
    try:
        from tailhook.plates.client import AwayError, HangingError, VersionError, check_running_version, request
    except ImportError as error:
        missing = f"Install what the daemon needs:  {install_command('tailhook[serve]')}"
        advice = f"{UPGRADE_ADVICE}." if is_own_part(error) else missing
        yield finding(WARNING, f"the daemon cannot run: {error}", advice)
        yield from report_failed_start(advice)
        return
    yield from find_renamed_databases()
    try:
        check_running_version()  # the figures of another version may lack some
        figures = request("GET", "/status")
    except (HangingError, VersionError) as error:
        what, _, advice = str(error).partition(". ")
        yield finding(FAILURE, what, advice)
    except AwayError:
        yield from check_start(start, install)
        yield from check_database()
    except TailhookError as error:
        yield finding(FAILURE, f"the daemon's database cannot be read: {error}", start)
    else:
        sessions, lag = sum(figures["plates"].values()), figures["lag_ms"]
        waiting = f"{figures['spool_bytes']:,} bytes of events wait" if figures["spool_bytes"] else "no event waits"
        what = (
            f"the daemon {figures['version']} answers: {sessions} session{'s' * (sessions != 1)}, {waiting},"
            f" from hook to board {lag['median']:.0f} ms (median), {lag['p99']:.0f} ms (p99)"
        )
        is_slow = lag["p99"] > SLOW_LAG_MS
        advice = "Events wait while the daemon is away or starts. If it stays so long, the computer is too busy for it."
        yield finding(NOTE if is_slow else OK, what, advice if is_slow else "")
        if failure := figures.get("store_failure"):
            advice = "The boards are out of date. Is the disk full, or the database locked or not writable?"
            yield finding(FAILURE, f"the daemon cannot store what the hooks report: {failure}", advice)
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
        # a daemon of an older version does not report this
        for target, failure in figures.get("notice_failures", {}).items():
            what = f"the last notice of plates.notify.{target} was not sent: {failure}"
            advice = f"This is reported until a notice is sent. The section plates of {user_config()} has the settings."
            yield finding(WARNING, what, advice)
        if failure := figures.get("list_failure"):
            what = f"claude agents --json failed when a board was last open: {failure}"
            advice = "Sessions without hooks are not on the boards. Claude Code has had this list since 2.1.163."
            yield finding(NOTE, what, advice)


def check_start(start: str, install: str) -> Iterator[Finding]:
    """Yield whether the next event can start the daemon.

    start: the advice to start it by hand.
    install: the command that writes the hooks again.
    """
    argv = daemon_argv()
    if not os.access(argv[0], os.X_OK):
        what = f"the daemon's interpreter does not exist or is not executable: {argv[0]}"
        yield finding(FAILURE, what, f"Reinstall the hooks, which writes a new path:  {install}")
    elif paths.start_failure():
        yield from report_failed_start(start)
    else:
        yield finding(
            NOTE, "the daemon does not run; the next event starts it", "To start it now:  tailhook plates serve"
        )


def report_failed_start(advice: str) -> Iterator[Finding]:
    """Yield why the daemon did not start, if a hook has tried since its last run."""
    if reason := paths.start_failure():
        yield finding(FAILURE, f"the daemon did not start when a hook last tried: {reason}", advice)


def find_renamed_databases() -> Iterator[Finding]:
    """Yield the corrupt databases that the daemon has renamed."""
    from tailhook.plates.opening import find_set_aside
    from tailhook.plates.options import load_options

    with suppress(TailhookError):  # see `check_database`
        for path in find_set_aside(load_options().url()):
            what = f"{path}: a corrupt database that was renamed; the board does not show the sessions in it"
            yield finding(
                WARNING, what, "If you do not need it, remove it and the files whose names start with its name."
            )


def check_database() -> Iterator[Finding]:
    """Yield the faults of the database of a hook's daemon, if it exists."""
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

    from tailhook.plates.opening import DRIVER_ADVICE, first_line, is_corrupt
    from tailhook.plates.options import load_options
    from tailhook.plates.tables import is_newer, plates

    try:
        url = sa.make_url(load_options().url())
    except TailhookError as error:
        yield finding(FAILURE, str(error), "The daemon does not start until this is fixed.")
        return
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        return
    if url.get_backend_name() == "postgresql":
        url = url.update_query_dict({"connect_timeout": str(DATABASE_TIMEOUT_S)})
    try:
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.connect() as connection:
            if is_newer(connection):
                what = f"the database {url!r} was made by a newer tailhook"
                advice = "Upgrade tailhook, or start the daemon with another database:  tailhook plates serve --db URL"
                yield finding(FAILURE, what, advice)
                return
            connection.execute(sa.select(plates.c.session_id).limit(1))
    except (SQLAlchemyError, sqlite3.Error, ImportError) as error:
        what = f"the database {url!r} cannot be opened: {first_line(error)}"
        if isinstance(error, ImportError):
            advice = f"{DRIVER_ADVICE}."
        elif is_corrupt(error):
            advice = "The daemon renames it at its next start and begins a new one:  tailhook plates serve"
        else:
            advice = "Check that its server runs, or that its file is readable."
        yield finding(FAILURE, what, advice)


def check_private_files() -> Iterator[Finding]:
    """Yield the private files that other users may read or write, and symbolic links among them."""
    state, runtime = Path(state_folder_path()), Path(runtime_folder())
    names = (TOKEN_FILE, DATABASE_FILE, SETTINGS_FILE, SPOOL_FILE)
    for path in (runtime, paths.http_socket_path(), runtime / WAKE_UP_SOCKET, *(state / name for name in names)):
        try:
            found = path.stat() if path.is_socket() else path.lstat()  # a socket may be a link to the running daemon's
        except FileNotFoundError:
            continue
        except OSError as error:
            advice = "Set XDG_STATE_HOME and XDG_RUNTIME_DIR to folders that belong to you."
            yield finding(FAILURE, f"{path}: {error.strerror}", advice)
            continue
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            advice = f"If the file is yours:  chmod go= '{path}'. Otherwise remove it; a new private one is made."
            yield finding(
                FAILURE, f"{path}: it is a symbolic link, belongs to another user, or other users can use it", advice
            )
