"""The daemon's process: one per user, on a Unix socket; also on a TCP port if a person starts it."""

import asyncio
import contextlib
import errno
import fcntl
import logging
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.machines.plates import STUCK_TIMEOUT
from tailhook.plates import paths
from tailhook.plates.app import make_app
from tailhook.plates.connections import raise_file_limit
from tailhook.plates.db import Database, SessionProject
from tailhook.plates.guard import LimitBody
from tailhook.plates.health import Health, find_process_start
from tailhook.plates.hub import Hub
from tailhook.plates.inbox import Inbox
from tailhook.plates.lister import Lister
from tailhook.plates.logs import log_fault
from tailhook.plates.notice_sending import Courier
from tailhook.plates.notice_settings import read_notice_settings, read_user_values
from tailhook.plates.notices import DELAY_S, NoticeQueue
from tailhook.plates.opening import CorruptDatabaseError, first_line, is_corrupt, open_database, set_aside
from tailhook.plates.options import DaemonOptions, load_options, make_absolute
from tailhook.plates.pg_notify import listen
from tailhook.plates.sockets import Port, Server, bind_unix_socket, drain_wake_ups, file_identity, open_port, server_of
from tailhook.plates.tables import Plate
from tailhook.plates.token_follower import TokenFollower
from tailhook.stores.daemon import HTTP_SOCKET, SOCKETS, SOCKETS_LOCK_FILE
from tailhook.stores.spool import WAKE_UP_SOCKET, runtime_folder

log = logging.getLogger("tailhook.plates")

PRUNE_INTERVAL_S = 3600  # between two removals of old plates
POLL_INTERVAL_S = 1.0  # of the sockets' paths, and of the spool if no wake-up comes
RETRY_DELAY_S = 1.0  # after a failure
# sys.setswitchinterval: storing an event releases the GIL about ten times; this bounds each wait
SWITCH_INTERVAL_S = 0.0005
TAKEOVER_TIMEOUT_S = 10.0  # for another daemon to exit
NO_NEW_FILES = (errno.EROFS, errno.ENOSPC, errno.EDQUOT)  # of a disk


class RunningError(TailhookError):
    """Another daemon of this user runs."""


def run_daemon(options: DaemonOptions, ready: Callable[[str], None] = lambda link: None) -> None:
    """Serve until SIGINT or SIGTERM.

    ready: called once the daemon answers requests, with the board's link or "" without a port.

    Raises RunningError, and TailhookError if it cannot serve.
    """
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the process that started it may have had signals blocked
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    raise_file_limit()
    port = None
    try:
        while True:
            runtime = paths.make_runtime_folder()
            locks = (paths.lock_path(), runtime / SOCKETS_LOCK_FILE)  # one for the user's spool, one for the sockets
            with_port = options.port is not None
            with single_instance(locks[0], with_port, runtime), single_instance(locks[1], with_port, runtime):
                port = port or open_port(options)
                daemon = Daemon(options, runtime, port)
                asyncio.run(daemon.run(ready))
                if daemon.corruption:
                    set_own_aside(options, daemon.corruption)
            if daemon.leaving.is_set() or not (daemon.is_cut_off or daemon.corruption):
                return
            ready = ignore_link
    finally:
        if port:
            port.listener.close()


def ignore_link(link: str) -> None:
    """Do nothing with the board's link, because it was printed before."""


@contextlib.contextmanager
def single_instance(path: Path, with_port: bool, runtime: Path) -> Iterator[None]:
    """Hold a lock that only one daemon of a user can have, as a context manager.

    If another daemon has it, link the sockets in `runtime` to that daemon's sockets and raise RunningError.

    with_port: whether a person starts this daemon. It replaces one that a hook started.
    runtime: the folder of this daemon's sockets.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        advice = "" if error.errno in NO_NEW_FILES else ". Remove it; a new one is made"
        raise TailhookError(f"{path}: {error.strerror}{advice}") from error
    with os.fdopen(fd, "rb"):
        end = time.monotonic() + TAKEOVER_TIMEOUT_S
        signalled = 0
        while not try_lock(fd):
            pid, kind, theirs = read_lock(fd)
            if not with_port or kind == paths.WITH_PORT or time.monotonic() > end:
                if pid:
                    link_sockets(runtime, Path(theirs))
                if not pid:
                    raise RunningError(f"a daemon is running already; its process is unknown ({path})")
                link = ". For a link to its board:  tailhook plates link" if kind == paths.WITH_PORT else ""
                raise RunningError(f"a daemon is running already (process {pid}){link}. To end it:  kill {pid}")
            if pid not in (0, signalled):
                signalled = pid
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            time.sleep(0.1)
        os.truncate(fd, 0)
        kind = paths.WITH_PORT if with_port else paths.WITHOUT_PORT
        os.pwrite(fd, os.fsencode(f"{os.getpid()} {find_process_start(os.getpid())} {kind} {runtime}"), 0)
        try:
            yield
        finally:
            os.truncate(fd, 0)


def read_lock(fd: int) -> tuple[int, str, str]:
    """Return the id of the process that has the lock, its kind, and the folder of its sockets; 0 and "" if unknown.

    The file may still hold the process id of a killed daemon. If another process has that id now, its start differs.
    """
    try:
        pid, started, kind, runtime = os.fsdecode(os.pread(fd, 5000, 0)).split(" ", 3)
        if int(pid) > 0 and find_process_start(int(pid)) == float(started):
            return int(pid), kind, runtime
    except ValueError:
        pass
    return 0, "", ""


def link_sockets(here: Path, there: Path) -> None:
    """Link our sockets to the running daemon's: its XDG_RUNTIME_DIR may differ from ours."""
    for name in SOCKETS if here != there else ():
        (here / name).unlink(missing_ok=True)
        (here / name).symlink_to(there / name)


def try_lock(fd: int) -> bool:
    """Take the lock if it is free. Returns whether it was taken."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_stuck_timeout() -> float:
    """Return the seconds after which a quiet session is stuck, from the user's configuration. 0 there means never."""
    return float(read_user_values().get("stuck_after", STUCK_TIMEOUT)) or math.inf


class Daemon:
    """One run of the daemon: its sockets, servers and background tasks."""

    def __init__(self, options: DaemonOptions, runtime: Path, port: Port | None) -> None:
        self.options = options
        self.runtime = runtime
        self.port = port
        self.identities: dict[str, object] = {}  # device and inode of each socket
        self.is_cut_off = False  # whether its sockets are gone from their paths
        self.corruption: CorruptDatabaseError | None = None  # of the database, if it was found while serving
        self.leaving = asyncio.Event()  # set by a signal: exit
        self.hub = Hub()
        self.database = open_or_replace_database(options, self.hub)
        self.inbox = Inbox(paths.state_path(), self.database, self.hub.catching_up)
        self.stuck_timeout = read_stuck_timeout()
        self.health = Health(self.database, self.inbox.id, self.inbox.is_drained, stuck_timeout=self.stuck_timeout)
        self.notices = NoticeQueue(self.inbox.id, self.stuck_timeout)
        self.notices_wait = asyncio.Event()
        self.courier = Courier(self.hub.notice_failures)
        self.lister = Lister(self.hub, self.inbox.id, partial(self.database.remove_placeholders, self.inbox.id))
        self.token_follower = TokenFollower(self.hub, self.database, self.inbox.id)
        self.database.changed = self.publish
        self.database.removed = self.publish_removal

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve until a signal comes, or until `watch` returns.

        Raises TailhookError if a server ends by itself.
        """
        loop = self.hub.loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_fault)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.leaving.set)
        woken, due = asyncio.Event(), asyncio.Event()
        with self.remove_sockets_at_end(), self.bind(socket.SOCK_DGRAM, WAKE_UP_SOCKET) as wake_ups:
            loop.add_reader(wake_ups, drain_wake_ups, wake_ups, woken)
            servers = self.servers()
            serving = [server.serve([listener]) for server, listener in servers]
            works: list[Coroutine[Any, Any, object]] = [
                self.leaving.wait(),
                self.watch(woken, due, [server for server, _ in servers]),
                self.ingest_when_woken(woken),
                self.check_health(due),
                self.prune(),
                self.send_notices(),
                self.lister.follow(),
                self.token_follower.follow(),
            ]
            if self.database.engine.dialect.name == "postgresql":
                works.append(listen(self.database, self.hub))
            tasks = [asyncio.create_task(work) for work in [*serving, *works]]
            while not all(server.started for server, _ in servers):
                await asyncio.sleep(0.01)
                if failed := [task for task in tasks if task.done()]:
                    failed[0].result()
            self.prepare_next_start()
            ready(self.port.link() if self.port else "")
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = [task for task in tasks if task.done()]
            loop.remove_reader(wake_ups)
            self.inbox.stopping = True
            self.hub.end()
            for server, _ in servers:
                server.end()
            await asyncio.gather(*tasks[: len(servers)], return_exceptions=True)
            for task in tasks[len(servers) :]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for error in filter(None, (task.exception() for task in ended)):
            raise TailhookError(f"the daemon stopped because a part of it failed: {error!r}") from error

    def prepare_next_start(self) -> None:
        """Write the file from which hooks start the daemon. If that fails, log it and go on."""
        try:
            paths.write_argv()
            paths.clear_attempt()
            self.options.save()
        except OSError as error:
            log.warning("hooks may not be able to start the daemon again: %s", describe(error))

    # ---- sockets ----

    def bind(self, kind: socket.SocketKind, name: str) -> socket.socket:
        """Return a new Unix socket in the runtime folder, and note its device and inode.

        name: WAKE_UP_SOCKET or HTTP_SOCKET.
        """
        made = bind_unix_socket(kind, self.runtime / name)
        self.identities[name] = file_identity(self.runtime / name)
        return made

    def is_reachable(self) -> bool:
        """Return whether our sockets are still at their paths: XDG_RUNTIME_DIR is deleted at logout.

        Returns True if the paths cannot be checked.
        """
        try:
            return Path(runtime_folder()) == self.runtime and all(
                file_identity(self.runtime / name) == mark for name, mark in self.identities.items()
            )
        except OSError:
            return True

    @contextlib.contextmanager
    def remove_sockets_at_end(self) -> Iterator[None]:
        """Remove the sockets and close the database at the end of the block."""
        try:
            yield
        finally:
            for name, mark in self.identities.items():
                with contextlib.suppress(OSError):
                    if file_identity(self.runtime / name) == mark:
                        (self.runtime / name).unlink()
            self.database.close()

    def servers(self) -> list[tuple[Server, socket.socket]]:
        """Return the servers of the Unix socket and of the port, each with its socket."""
        app = LimitBody(make_app(self.database, self.inbox, self.hub, self.stuck_timeout, self.port))
        found = [(server_of(app), self.bind(socket.SOCK_STREAM, HTTP_SOCKET))]
        if self.port:
            found.append((self.port.server_of(app), self.port.listener.dup()))
        return found

    # ---- work ----

    def publish(self, plate: Plate) -> None:
        """Send a changed plate to the boards. The health check looks at it soon."""
        self.hub.changed(plate)
        self.health.note(plate)
        if self.hub.loop:
            self.hub.loop.call_soon_threadsafe(self.note_for_notices, plate)

    def publish_removal(self, session_id: str) -> None:
        """Send to the boards that a plate is gone. It gives no notice any more."""
        self.hub.removed(session_id)
        if self.hub.loop:
            self.hub.loop.call_soon_threadsafe(self.notices.forget, session_id)

    def note_for_notices(self, plate: Plate) -> None:
        """Note a changed plate for the notices, in the event loop's thread."""
        self.notices.note(plate, time.time(), time.monotonic())
        if self.notices.waiting:
            self.notices_wait.set()

    async def watch(self, woken: asyncio.Event, due: asyncio.Event, servers: list[Server]) -> None:
        """Check each second what no event reports. A daemon at rest has only this timer.

        Sets `woken` if the spool changed without a wake-up, and `due` if a health check may find something. Keeps the
        time in the servers' answers. Waits until the sockets are gone from their paths or the database is corrupt.
        """
        while self.is_reachable():
            if self.corruption:
                return
            if self.inbox.has_changed():
                woken.set()
            if not due.is_set() and self.health.take_news():
                due.set()
            for server in servers:
                await server.on_tick(0)
            await asyncio.sleep(POLL_INTERVAL_S)
        self.is_cut_off = True

    async def ingest_when_woken(self, woken: asyncio.Event) -> None:
        """Load the projects' names and the sessions' groups; then read the spool now, and whenever it changed."""
        await self.hub.load(self.read_session_projects)
        found: list[Plate] = []
        await self.retry("the open sessions", lambda: found.extend(self.database.open_plates(self.inbox.id)))
        self.notices.load(found)
        while True:
            woken.clear()
            await self.retry("the spool", self.inbox.ingest)
            await woken.wait()

    async def read_session_projects(self) -> list[SessionProject]:
        """Return where all sessions are. Retries until the database can be read."""
        found: list[SessionProject] = []
        await self.retry("the projects' names", lambda: found.extend(self.database.session_projects()))
        return found

    async def check_health(self, due: asyncio.Event) -> None:
        """Run the health check whenever it is due. `watch` asks for the next one after its end."""
        while True:
            await due.wait()
            await self.retry("the health check", self.health.check)
            due.clear()

    async def send_notices(self) -> None:
        """Send the notices of changed sessions, some seconds after each change; none while the daemon catches up.

        Reads the configuration before each sending, so a change of it needs no new start.
        """
        while True:
            await self.notices_wait.wait()
            await asyncio.sleep(DELAY_S)
            if self.inbox.backlog:
                continue
            settings = await asyncio.to_thread(read_notice_settings)
            time.tzset()  # the user may have changed the time zone
            now = time.localtime()
            due = self.notices.take(settings, time.monotonic(), now.tm_hour * 60 + now.tm_min, self.hub.names.name_of)
            if not self.notices.waiting:
                self.notices_wait.clear()
            await self.courier.send(due, settings)

    async def prune(self) -> None:
        """Remove old plates and events, at an interval."""
        while True:
            await self.retry(
                "the retention", lambda: self.database.prune(self.options.retention, lambda: self.inbox.stopping)
            )
            await asyncio.sleep(PRUNE_INTERVAL_S)

    async def retry(self, what: str, work: Callable[[], object]) -> None:
        """Run `work` in a thread until it succeeds, with a delay after each failure. No failure ends the daemon.

        If the database is corrupt, wait: `watch` ends this run, and the next run makes a new database.

        what: the name of the work in the log.
        """
        while True:
            try:
                await asyncio.to_thread(work)
                return
            except Exception as error:
                if is_corrupt(error):
                    self.corruption = CorruptDatabaseError(f"the database cannot be used: {first_line(error)}")
                    await asyncio.Event().wait()
                is_foreseen = isinstance(error, (OSError, SQLAlchemyError))
                words = error if is_foreseen else repr(error)
                log.warning("%s failed: %s", what, words, exc_info=None if is_foreseen else error)
            await asyncio.sleep(RETRY_DELAY_S)


def open_or_replace_database(options: DaemonOptions, hub: Hub) -> Database:
    """Open the database and connect it to the hub. If it is the daemon's own and corrupt, make a new one."""
    try:
        return open_database(options.url(), hub.changed, hub.removed)
    except CorruptDatabaseError as error:
        set_own_aside(options, error)
        return open_database(options.url(), hub.changed, hub.removed)


def set_own_aside(options: DaemonOptions, error: CorruptDatabaseError) -> None:
    """Rename a corrupt database, and log that.

    Raises the error if the daemon has never served with the file: its path may be a mistake.
    """
    url = make_absolute(options.url())
    if url not in (paths.default_database_url(), make_absolute(load_options().url())):
        raise error
    log.warning("%s. Its file is now %s; a new one begins with what is in the spool", error, set_aside(url))
