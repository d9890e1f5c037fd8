"""The daemon's process: one per user, on a Unix socket, and on a port when a person starts it."""

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.machines.plates import HEALTH_CHECK_INTERVAL
from tailhook.plates import paths
from tailhook.plates.app import Hub, make_app
from tailhook.plates.connections import raise_file_limit
from tailhook.plates.db import Database
from tailhook.plates.guard import LimitBody
from tailhook.plates.health import Health, find_process_start
from tailhook.plates.inbox import Inbox
from tailhook.plates.logs import log_fault
from tailhook.plates.opening import CorruptDatabaseError, first_line, is_corrupt, open_database, set_aside
from tailhook.plates.options import Options, absolute, kept_options
from tailhook.plates.others import hear
from tailhook.plates.sockets import Port, Server, bound, mark_of, open_port, server_of, take_pokes
from tailhook.stores.daemon import HTTP_SOCKET, SOCKETS, SOCKETS_LOCK_FILE
from tailhook.stores.spool import WAKE_UP_SOCKET, runtime_folder

log = logging.getLogger("tailhook.plates")

SWEEP = 3600  # seconds between two looks for plates that are too old
QUIET = 1.0  # seconds after which the spool is looked at without a poke
AGAIN = 1.0  # seconds after a failure
SWITCH = 0.0005  # seconds; an event lets go of the interpreter ten times, and each time waits so long for busy threads
TAKING_OVER = 10.0  # seconds for another daemon to leave
WITH_PORT, WITHOUT_PORT = "port", "no-port"  # in the lock's file, behind the daemon's process and its start


class RunningError(TailhookError):
    """Another daemon of this user runs."""


def serve(options: Options, ready: Callable[[str], None] = lambda link: None) -> None:
    """Serve until SIGINT or SIGTERM.  ready: called with the board's link, "" without a port, once requests are taken.

    Raises RunningError, and TailhookError if it cannot serve.
    """
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the process that started it may have had signals blocked
    sys.setswitchinterval(SWITCH)
    raise_file_limit()
    port = None
    try:
        while True:
            runtime = paths.make_runtime_folder()
            locks = (paths.lock_path(), runtime / SOCKETS_LOCK_FILE)  # of the user's events, and of the sockets
            with_port = options.port is not None
            with only_one(locks[0], with_port, runtime), only_one(locks[1], with_port, runtime):
                port = port or open_port(options)
                daemon = Daemon(options, runtime, port)
                asyncio.run(daemon.run(ready))
                if daemon.corruption:
                    set_own_aside(options, daemon.corruption)
            if daemon.leaving.is_set() or not (daemon.is_cut_off or daemon.corruption):
                return
            ready = pass_over
    finally:
        if port:
            port.listener.close()


def pass_over(link: str) -> None:
    """Do nothing with the board's link: it was printed."""


@contextlib.contextmanager
def only_one(path: Path, with_port: bool, runtime: Path) -> Iterator[None]:
    """Hold the lock that a user's one daemon has.

    with_port: a person starts this one, and it takes the place of one that was started by itself.  runtime: where its
    sockets are; where another daemon has the lock, those there lead to its own.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TailhookError(f"{path}: {error.strerror}. Remove it; it is made anew") from error
    with os.fdopen(fd, "rb"):
        end = time.monotonic() + TAKING_OVER
        told = 0
        while not locked(fd):
            pid, kind, theirs = holder(fd)
            if not with_port or kind == WITH_PORT or time.monotonic() > end:
                if pid:
                    lead(runtime, Path(theirs))
                who = f" (process {pid}). To end it:  kill {pid}" if pid else f", and says not which ({path})"
                raise RunningError(f"a daemon is running already{who}")
            if pid not in (0, told):
                told = pid
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            time.sleep(0.1)
        os.truncate(fd, 0)
        kind = WITH_PORT if with_port else WITHOUT_PORT
        os.pwrite(fd, os.fsencode(f"{os.getpid()} {find_process_start(os.getpid())} {kind} {runtime}"), 0)
        try:
            yield
        finally:
            os.truncate(fd, 0)


def holder(fd: int) -> tuple[int, str, str]:
    """The process that has the lock, its kind, and the folder of its sockets; 0 and "" where the file does not say.

    What a killed daemon wrote may stand, and its number be another process's by now: that one started at another time.
    """
    try:
        pid, started, kind, runtime = os.fsdecode(os.pread(fd, 5000, 0)).split(" ", 3)
        if int(pid) > 0 and find_process_start(int(pid)) == float(started):
            return int(pid), kind, runtime
    except ValueError:
        pass
    return 0, "", ""


def lead(here: Path, there: Path) -> None:
    """Lead whoever looks for the sockets here to those of the running daemon: XDG_RUNTIME_DIR is not set everywhere."""
    for name in SOCKETS if here != there else ():
        (here / name).unlink(missing_ok=True)
        (here / name).symlink_to(there / name)


def locked(fd: int) -> bool:
    """Take the lock, if nobody has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Daemon:
    """Everything that runs in the process."""

    def __init__(self, options: Options, runtime: Path, port: Port | None) -> None:
        self.options = options
        self.runtime = runtime
        self.port = port
        self.marks: dict[str, object] = {}  # of its sockets
        self.is_cut_off = False  # whether nobody finds its sockets any more
        self.corruption: CorruptDatabaseError | None = None  # of the database, found while it served
        self.leaving = asyncio.Event()  # a signal told it to leave, and to serve no more
        self.hub = Hub()
        self.database = open_or_begin_anew(options, self.hub)
        self.hub.names.load(self.database.project_paths())
        self.inbox = Inbox(paths.state_path(), self.database)
        self.health = Health(self.database, self.inbox.id, self.inbox.is_drained)

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve until a signal comes, or until `stay` returns. Raises TailhookError if a server ends by itself."""
        loop = self.hub.loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_fault)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.leaving.set)
        poked = asyncio.Event()
        with self.no_socket_left(), self.bind(socket.SOCK_DGRAM, WAKE_UP_SOCKET) as pokes:
            loop.add_reader(pokes, take_pokes, pokes, poked)
            servers = self.servers()
            serving = [server.serve([listener]) for server, listener in servers]
            works: list[Coroutine[Any, Any, object]] = [
                self.leaving.wait(),
                self.stay(),
                self.take(poked),
                self.check(),
                self.forget(),
            ]
            if self.database.engine.dialect.name == "postgresql":
                works.append(hear(self.database, self.hub))
            tasks = [asyncio.create_task(work) for work in [*serving, *works]]
            while not all(server.started for server, _ in servers):
                await asyncio.sleep(0.01)
                if failed := [task for task in tasks if task.done()]:
                    failed[0].result()
            self.prepare_next_start()
            ready(self.port.link() if self.port else "")
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = [task for task in tasks if task.done()]
            loop.remove_reader(pokes)
            self.inbox.stopping = True
            self.hub.put(None)
            for server, _ in servers:
                server.should_exit = True
            await asyncio.gather(*tasks[: len(servers)], return_exceptions=True)
            for task in tasks[len(servers) :]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for error in filter(None, (task.exception() for task in ended)):
            raise TailhookError(f"the daemon ends, as a part of it failed: {error!r}") from error

    def prepare_next_start(self) -> None:
        """Write the file from which hooks start the daemon. If that fails, log it and serve."""
        try:
            paths.write_argv()
            paths.clear_attempt()
            self.options.keep()
        except OSError as error:
            log.warning("hooks may not be able to start the daemon again: %s", describe(error))

    # ---- sockets ----

    def bind(self, kind: socket.SocketKind, name: str) -> socket.socket:
        """Return a new Unix socket in the runtime folder, and note its device and inode.

        name: WAKE_UP_SOCKET or HTTP_SOCKET.
        """
        made = bound(kind, self.runtime / name)
        self.marks[name] = mark_of(self.runtime / name)
        return made

    def is_found(self) -> bool:
        """Whether who looks for the sockets finds these: a login's folder goes with the login, and may come again.

        What cannot be looked at is not known to be gone.
        """
        try:
            return Path(runtime_folder()) == self.runtime and all(
                mark_of(self.runtime / name) == mark for name, mark in self.marks.items()
            )
        except OSError:
            return True

    @contextlib.contextmanager
    def no_socket_left(self) -> Iterator[None]:
        """Remove its sockets in the end, and close the database."""
        try:
            yield
        finally:
            for name, mark in self.marks.items():
                with contextlib.suppress(OSError):
                    if mark_of(self.runtime / name) == mark:
                        (self.runtime / name).unlink()
            self.database.close()

    def servers(self) -> list[tuple[Server, socket.socket]]:
        """Return the servers of the Unix socket and of the port, each with the socket on which it listens."""
        app = LimitBody(make_app(self.database, self.inbox, self.hub))
        found = [(server_of(app), self.bind(socket.SOCK_STREAM, HTTP_SOCKET))]
        if self.port:
            found.append((self.port.server_of(app), self.port.listener.dup()))
        return found

    # ---- work ----

    async def stay(self) -> None:
        """Return when no program finds the sockets any more, or when the database is corrupt."""
        while self.is_found():
            if self.corruption:
                return
            await asyncio.sleep(QUIET)
        self.is_cut_off = True

    async def take(self, poked: asyncio.Event) -> None:
        """Take events out of the spool whenever there are some."""
        while True:
            poked.clear()
            await self.again("the spool", self.inbox.take)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(poked.wait(), QUIET)

    async def check(self) -> None:
        """Look for what no hook told, at an even pace."""
        loop = asyncio.get_running_loop()
        at = loop.time()
        while True:
            at = max(at + HEALTH_CHECK_INTERVAL, loop.time())
            await asyncio.sleep(at - loop.time())
            await self.again("the health check", self.health.check)

    async def forget(self) -> None:
        """Remove what is too old."""
        while True:
            await self.again("the retention", lambda: self.database.forget(self.options.retention))
            await asyncio.sleep(SWEEP)

    async def again(self, what: str, work: Callable[[], object]) -> None:
        """Do it in a thread. If it fails, log that, and do it again a second later: no failure ends the daemon.

        If the database is corrupt, wait for the end: `stay` ends this run, and the next one begins a new database.
        """
        while True:
            try:
                await asyncio.to_thread(work)
                return
            except Exception as error:
                if is_corrupt(error):
                    self.corruption = CorruptDatabaseError(f"the database cannot be used: {first_line(error)}")
                    await asyncio.Event().wait()  # until `stay` ends this run
                is_foreseen = isinstance(error, (OSError, SQLAlchemyError))
                words = error if is_foreseen else repr(error)
                log.warning("%s failed: %s", what, words, exc_info=None if is_foreseen else error)
            await asyncio.sleep(AGAIN)


def open_or_begin_anew(options: Options, hub: Hub) -> Database:
    """Open the database, and report its changes to the hub. If it is the daemon's own and corrupt, begin a new one."""
    try:
        return open_database(options.url(), hub.changed, hub.removed)
    except CorruptDatabaseError as error:
        set_own_aside(options, error)
        return open_database(options.url(), hub.changed, hub.removed)


def set_own_aside(options: Options, error: CorruptDatabaseError) -> None:
    """Set a corrupt database aside, and log that.

    Raises the error if the daemon has never served with the file: it may be something else, named by mistake.
    """
    url = absolute(options.url())
    if url not in (paths.default_database_url(), absolute(kept_options().url())):
        raise error
    log.warning("%s. Its file is now %s; a new one begins with what is in the spool", error, set_aside(url))
