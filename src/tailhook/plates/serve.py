"""The daemon's process: one per user, on a Unix socket, and on a port when a person starts it."""

import asyncio
import contextlib
import fcntl
import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from alembic.util import CommandError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from tailhook.errors import TailhookError
from tailhook.hook.plates import runtime_folder
from tailhook.machines.plates import HEALTH_CHECK_INTERVAL
from tailhook.plates import places
from tailhook.plates.app import Hub, make_app
from tailhook.plates.db import Database
from tailhook.plates.guard import BrowserHeaders, Guard, LimitBody
from tailhook.plates.health import Health, process_start
from tailhook.plates.inbox import Inbox
from tailhook.plates.options import Options
from tailhook.plates.others import hear

log = logging.getLogger("tailhook.plates")

SWEEP = 3600  # seconds between two looks for plates that are too old
QUIET = 1.0  # seconds after which the spool is looked at without a poke
AGAIN = 1.0  # seconds after a failure
SWITCH = 0.0005  # seconds; an event lets go of the interpreter ten times, and each time waits so long for busy threads
TAKING_OVER = 10.0  # seconds for another daemon to leave
WITH_PORT, WITHOUT_PORT = "port", "no-port"  # in the lock's file, behind the daemon's process and its start
SOCKETS = ("poke", "http")
# Of each address that means all of them: one outside (RFC 5737, RFC 3849: nobody's), and the machine's own.
OUTSIDE = {"0.0.0.0": ("192.0.2.1", "127.0.0.1"), "::": ("2001:db8::1", "::1")}  # noqa: S104
LEAVING = 2  # seconds that open connections have at the end


class RunningError(TailhookError):
    """Another daemon of this user runs."""


def serve(options: Options, ready: Callable[[str], None] = lambda link: None) -> None:
    """Serve until SIGINT or SIGTERM.  ready: called with the board's link, "" without a port, once requests are taken.

    Raises RunningError, and TailhookError for what cannot be served.
    """
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whoever started it may have had signals blocked
    sys.setswitchinterval(SWITCH)
    with_port = options.port is not None
    while True:
        runtime = places.runtime()
        locks = (places.lock(), runtime / "lock")  # of the user's events, and of the sockets
        with only_one(locks[0], with_port, runtime), only_one(locks[1], with_port, runtime):
            daemon = Daemon(options, runtime)
            asyncio.run(daemon.run(ready))
        if daemon.leaving.is_set() or not daemon.is_cut_off:
            return
        options, ready = replace(options, port=daemon.port), lambda link: None


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
        os.pwrite(fd, os.fsencode(f"{os.getpid()} {process_start(os.getpid())} {kind} {runtime}"), 0)
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
        if int(pid) > 0 and process_start(int(pid)) == float(started):
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


class Server(uvicorn.Server):
    """One of several in a process, which is told by that to leave."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the daemon."""
        yield


class Daemon:
    """Everything that runs in the process."""

    def __init__(self, options: Options, runtime: Path) -> None:
        self.options = options
        self.runtime = runtime
        self.port = options.port
        self.guard: Guard | None = None
        self.marks: dict[str, object] = {}  # of its sockets
        self.is_cut_off = False  # whether nobody finds its sockets any more
        self.leaving = asyncio.Event()  # a signal told it to leave, and to serve no more
        self.hub = Hub()
        self.database = open_database(options.url(), self.hub)
        self.inbox = Inbox(places.private_state(), self.database)
        self.health = Health(self.database, self.inbox.id, self.inbox.is_drained)

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve until a signal comes.  Raises TailhookError where a part of the daemon ends by itself."""
        loop = self.hub.loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.leaving.set)
        poked = asyncio.Event()
        with self.no_socket_left(), self.bind(socket.SOCK_DGRAM, "poke") as pokes:
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
            places.leave_argv()
            places.forget_attempt()
            self.options.keep()
            ready(self.link())
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

    # ---- sockets ----

    def bind(self, kind: socket.SocketKind, name: str) -> socket.socket:
        """A Unix socket: "poke", where the hooks say that there is something in the spool, or "http"."""
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
        """The servers of the Unix socket and of the port."""
        app = make_app(self.database, self.inbox, self.hub)
        found = [(self.server(LimitBody(app)), self.bind(socket.SOCK_STREAM, "http"))]
        if self.options.port is not None:
            token = places.token() if self.options.token is None else self.options.token
            if not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token):
                raise TailhookError("the port needs a token of letters, digits and -._~+/= that nobody guesses")
            names = {"127.0.0.1", "localhost", "::1", self.options.host.lower()}
            self.guard = Guard(LimitBody(app), token, names)
            found.append((self.server(BrowserHeaders(self.guard)), listening(self.options.host, self.options.port)))
            self.port = found[1][1].getsockname()[1]
        return found

    def server(self, app: "BrowserHeaders | LimitBody") -> Server:
        """A server of that application."""
        return Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                proxy_headers=False,  # whoever asks says in them where he is, and that decides whose the session is
                timeout_graceful_shutdown=LEAVING,
            )
        )

    def link(self) -> str:
        """The link that signs a browser in, once."""
        host = reachable(self.options.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}{self.guard.new_link()}" if self.guard else ""

    # ---- work ----

    async def stay(self) -> None:
        """Return when nobody finds the sockets any more."""
        while self.is_found():
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
        """Do it in a thread; a failure is logged, and tried again."""
        while True:
            try:
                await asyncio.to_thread(work)
                return
            except (OSError, SQLAlchemyError) as error:
                log.warning("%s: %s", what, error)
                await asyncio.sleep(AGAIN)


def open_database(url: str, hub: Hub) -> Database:
    """The database, its changes told to the hub.  Raises TailhookError where it cannot be opened."""
    try:
        return Database(url, hub.changed, hub.removed)
    except CommandError as error:
        raise TailhookError(f"the database {make_url(url)!r} was made by a newer tailhook. Install that") from error
    except (SQLAlchemyError, ImportError) as error:
        reason = str(error).partition("\n")[0]
        raise TailhookError(f"the database cannot be opened: {reason}") from error


def take_pokes(pokes: socket.socket, poked: asyncio.Event) -> None:
    """Somebody poked."""
    with contextlib.suppress(BlockingIOError):
        while pokes.recv(16):
            poked.set()


def bound(kind: socket.SocketKind, path: Path) -> socket.socket:
    """A Unix socket at the path, the user's alone; what a dead daemon left there is removed."""
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, kind)
    try:
        made.bind(str(path))
    except OSError as error:
        made.close()
        if error.errno:
            raise
        advice = "set XDG_RUNTIME_DIR to a folder whose path is shorter"
        raise TailhookError(f"{path} is too long for a socket: {advice}") from error
    path.chmod(0o600)
    made.setblocking(False)
    return made


def mark_of(path: Path) -> "tuple[int, int] | None":
    """What tells a file from another one with its name; None where there is none."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def listening(host: str, port: int) -> socket.socket:
    """A TCP socket.  Raises TailhookError where the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise TailhookError(
            f"{host}:{port}: {error.strerror}. Another port:  tailhook plates serve --port N"
        ) from error


def reachable(host: str) -> str:
    """An address under which others reach the daemon, where it listens on all of them: that of the way out of here."""
    if host not in OUTSIDE:
        return host
    outside, alone = OUTSIDE[host]
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((outside, 9))  # sends nothing
        except OSError:
            return alone
        return str(way.getsockname()[0])
