"""The parent of the pool: it listens, forks the workers, and notices when it is time to leave.

It runs no request, starts no thread and takes no lock once it listens, so that a fork copies nothing that is in use.
"""

import gc
import posix
import select
import signal
import socket
import sys
from contextlib import suppress
from time import CLOCK_MONOTONIC, clock_gettime_ns, monotonic

from tailhook._core import caller_identity, caller_kind, flock_within
from tailhook.hook.answer import describe, warn
from tailhook.hook.config import read_sections, user_bytes
from tailhook.hook.payload import user_config
from tailhook.pool.installation import (
    INSTALLATION_FILE,
    PACKAGE,
    POOL_LOCK_FILE,
    client_folder_of,
    is_served,
    read_if_there,
    remove_dead_sockets,
    socket_of,
    sockets_of,
    write_installation,
)
from tailhook.pool.sources import Sources
from tailhook.pool.worker import OPEN_FILES, Worker
from tailhook.pool.workers import FREE, IDLE, RESIDENT_WORKERS, WorkerTable
from tailhook.stores.atomic import SAFE, read_file, remove_file

IDLE_EXIT_S = 1800.0
CHECK_INTERVAL_S = 60.0  # between two looks at the files, if the system cannot watch them
WORKER_END_TIMEOUT_S = 10.0  # in which workers end their requests if a signal asks the pool to leave
START_TIMEOUT_S = 2.0  # how long another start may take
BACKLOG = 128  # connections that wait for a worker
MIN_WORKERS = 4  # that there may be at once; with more processors, twice as many as there are
MAX_POOLS = 4  # of one installation; if more kinds of callers have one, the oldest leaves
SURPLUS_EXIT_S = 60.0  # how long it must have been quiet for that
MAX_SHORT_LIVES = 10  # workers in a row that failed while no request was answered
ASKED_FLAG = "--asked"  # a person started the pool
ATTEMPT = b"\n"  # what a client writes into POOL_START_FILE; an empty file would be no attempt
ROOMS = ("stores", "machines", "hook", "hook/hosts")  # the folders of what a hook may load
NOT_LOADED = ("entry", "protocols")  # the hook's own entry; what only type checkers read


def main(argv: list[str], files: dict[str, posix.stat_result]) -> int:
    """Serve until there is a reason to leave; return the exit code.

    argv: the client's folder; ASKED_FLAG.
    files: as for `Sources`.
    """
    close_descriptors()
    folder = next((word.rstrip("/") for word in argv if word.startswith("/")), "")
    try:
        if ASKED_FLAG not in argv and not read_if_there(f"{folder}/{INSTALLATION_FILE}"):
            return 0  # the client was removed while it started this
        if ASKED_FLAG not in argv and read_sections(user_config(), user_bytes)["pool"].get("autostart") is False:
            return 0
        pool = Pool(folder, files, ASKED_FLAG in argv)
        if not pool.listen():
            return 0
        if ASKED_FLAG not in argv:
            forget_warnings()
        pool.serve()
    except OSError as error:
        warn(f"tailhook: pool: {describe(error)}")
        return 1
    return 0


def forget_warnings() -> None:
    """Let POOL_START_FILE have no reason for a failed start, since this one has not failed: stderr is that file."""
    with suppress(OSError):
        posix.ftruncate(2, len(ATTEMPT))


def close_descriptors() -> None:
    """Close what the process that started this one had open: locks, and pipes whose readers wait for their end."""
    for name in posix.listdir(OPEN_FILES):
        if int(name) > 2:
            with suppress(OSError):  # that of the listing
                posix.close(int(name))


def load_hook_modules() -> None:
    """Import everything that a hook may load."""
    for room in ROOMS:
        package = f"tailhook.{room.replace('/', '.')}"
        __import__(package)
        for name in sorted(posix.listdir(f"{PACKAGE}/{room}")):
            stem, _, ending = name.rpartition(".")
            if ending == "py" and stem not in (*NOT_LOADED, "__init__"):
                __import__(f"{package}.{stem}")


class Pool:
    """The parent process.

    folder: the client's; "" for that of this installation.
    files: as for `Sources`.
    was_asked: whether a person started it.

    Raises OSError.
    """

    def __init__(self, folder: str, files: dict[str, posix.stat_result], was_asked: bool) -> None:
        if not caller_identity():
            raise OSError("a limit of this process (ulimit) could end a hook early, so no pool starts from here")
        client, self.name = write_installation(sys.executable, folder, keeps_socket=not was_asked)
        self.path = socket_of(self.name, caller_kind())
        self.folder = client_folder_of(client)
        self.sources = Sources(PACKAGE, files, [self.folder, self.path.rpartition("/")[0]])
        load_hook_modules()
        if self.sources.have_changed():
            raise OSError(f"{PACKAGE} is being changed; the next hook starts another pool")
        self.table = WorkerTable(max(MIN_WORKERS, 2 * (posix.cpu_count() or 1)))
        self.workers: dict[int, int] = {}  # process id: number in the table
        self.answered = 0  # requests, when a worker last ended
        self.short_lives = 0  # how many workers have failed since then
        self.ends_by: float | None = None  # when to leave at the latest (monotonic), once a signal has asked for it

    def listen(self) -> bool:
        """Bind the socket; return False if another pool listens on it. Raises OSError."""
        lock = posix.open(f"{self.folder}/{POOL_LOCK_FILE}", posix.O_RDWR | posix.O_CREAT | SAFE, 0o600)
        try:
            if not flock_within(lock, START_TIMEOUT_S) or is_served(self.path):
                return False
            remove_dead_sockets(self.name)
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            posix.umask(0o177)
            self.listener.bind(self.path)
            posix.umask(0o077)
            self.listener.listen(BACKLOG)
            self.listener.settimeout(0)
            self.inode = posix.lstat(self.path).st_ino
        finally:
            posix.close(lock)
        return True

    # ---- the loop ---------------------------------------------------------------

    def serve(self) -> None:
        """Fork workers as they are needed, until there is a reason to leave."""
        self.life, self.life_end = new_pipe()
        self.growth, self.growth_end = new_pipe()
        signal.set_wakeup_fd(self.growth_end, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.end)
        signal.signal(signal.SIGCHLD, ignore_signal)
        posix.chdir("/")
        gc.collect()
        gc.freeze()
        self.started = monotonic()
        polling = select.poll()
        polling.register(self.growth, select.POLLIN)
        if self.sources.watch >= 0:
            polling.register(self.sources.watch, select.POLLIN)
        while self.ends_by is None:
            while len(self.workers) < RESIDENT_WORKERS and self.ends_by is None:
                self.grow()
            found = dict(polling.poll(self.wait_s() * 1000 if self.ends_by is None else 0))
            if self.growth in found:
                posix.read(self.growth, 1 << 12)
            self.reap()
            if self.should_leave(self.sources.watch in found):
                break
            if IDLE not in self.table.states():
                self.grow()
        self.leave()

    def wait_s(self) -> float:
        """Return how many seconds may pass until the next look: until the pool has been quiet for long enough."""
        left = max(0.0, IDLE_EXIT_S - self.quiet_s()) + 0.001
        return left if self.sources.watch >= 0 else min(left, CHECK_INTERVAL_S)

    def quiet_s(self) -> float:
        """Return for how many seconds no request has ended."""
        last = self.table.last_request_ns()
        waited = monotonic() - self.started
        return min(waited, (clock_gettime_ns(CLOCK_MONOTONIC) - last) / 1e9) if last else waited

    def should_leave(self, has_watched: bool) -> bool:
        """Return whether the pool is no longer needed, or no longer what its client expects.

        has_watched: something has changed in a watched folder.
        """
        if self.quiet_s() >= IDLE_EXIT_S or self.short_lives > MAX_SHORT_LIVES or self.sources.have_moved():
            return True
        if has_watched or self.sources.watch < 0:
            self.table.is_suspicious = True
            self.sources.read_events()
            if self.sources.have_changed() or not self.has_socket() or self.is_surplus():
                return True
            self.table.is_suspicious = False
        return False

    def has_socket(self) -> bool:
        """Return whether clients still find this pool's socket and the file that names it."""
        try:
            named = read_file(f"{self.folder}/{INSTALLATION_FILE}").split(b"\0")[1]
        except (OSError, IndexError):
            return False
        return named == self.name.encode("utf-8", "surrogateescape") and self.owns_socket()

    def owns_socket(self) -> bool:
        """Return whether the socket at its path is this pool's, and not that of a later one."""
        try:
            return posix.lstat(self.path).st_ino == self.inode
        except OSError:
            return False

    def is_surplus(self) -> bool:
        """Return whether enough later pools of this installation run, and this one is not in use.

        Callers that have a namespace of their own each time would otherwise leave many.
        """
        others = (path for path in sockets_of(self.name) if path != self.path)
        later = [path for path in others if started_at(path) > started_at(self.path)]
        return len(later) >= MAX_POOLS and self.quiet_s() >= SURPLUS_EXIT_S

    # ---- workers ----------------------------------------------------------------

    def grow(self) -> None:
        """Fork one more worker, unless there are as many as there may be."""
        states = self.table.states()
        number = next((at for at, state in enumerate(states) if state == FREE and at not in self.workers.values()), -1)
        if number < 0:
            return
        self.table.set_state(number, IDLE)
        try:
            pid = posix.fork()
        except OSError as error:  # too many processes: hooks are cold, and one of the next ones starts another pool
            warn(f"tailhook: pool: {describe(error)}")
            self.table.set_state(number, FREE)
            self.end()
            return
        if pid:
            self.workers[pid] = number
            return
        posix.close(self.life_end)
        posix.close(self.growth)
        Worker(number, self.table, self.listener, self.life, self.growth_end, self.sources, self.folder).run()

    def reap(self) -> None:
        """Take note of the workers that have ended. One that was stopped by a signal is ended."""
        while self.workers:
            try:
                pid, status = posix.waitpid(-1, posix.WNOHANG | posix.WUNTRACED)
            except ChildProcessError:
                return
            if not pid:
                return
            if posix.WIFSTOPPED(status):
                kill(pid, signal.SIGKILL)
                continue
            number = self.workers.pop(pid, None)
            if number is not None:
                answered = self.table.count_requests()
                is_callers = posix.WIFSIGNALED(status) and posix.WTERMSIG(status) == signal.SIGIO  # it has gone away
                has_failed = status != 0 and not is_callers and answered == self.answered
                self.short_lives = self.short_lives + 1 if has_failed else 0
                self.answered = answered
                self.table.set_state(number, FREE)

    def end(self, *_: object) -> None:
        """Leave at the next look; a signal asked for it."""
        if self.ends_by is None:
            self.ends_by = monotonic() + WORKER_END_TIMEOUT_S

    def leave(self) -> None:
        """Remove the socket and wait until the workers have ended their requests; if a signal asked, not for long."""
        if self.owns_socket():
            remove_file(self.path)
        self.listener.close()
        posix.close(self.life_end)
        self.reap()
        while self.workers:
            left = None if self.ends_by is None else max(0.0, self.ends_by - monotonic())
            if left == 0.0:
                break
            if select.select((self.growth,), (), (), left)[0]:  # each signal writes a byte
                posix.read(self.growth, 1 << 12)
            self.reap()
        for pid in self.workers:
            kill(pid, signal.SIGKILL)


def started_at(path: str) -> int:
    """Return when a pool made its socket, in Unix nanoseconds; 0 if that is gone."""
    try:
        return posix.lstat(path).st_mtime_ns
    except OSError:
        return 0


def new_pipe() -> tuple[int, int]:
    """Return the two ends of a pipe that never block; programs that are started do not get them."""
    ends = posix.pipe()  # not inheritable (PEP 446)
    for fd in ends:
        posix.set_blocking(fd, False)
    return ends


def ignore_signal(*_: object) -> None:
    """Let a signal only wake the loop."""


def kill(pid: int, number: int) -> None:
    """Send a signal to a worker that may have ended."""
    with suppress(ProcessLookupError):
        posix.kill(pid, number)
