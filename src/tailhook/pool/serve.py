"""The parent of the pool: it listens, forks the workers, and notices when it is time to leave.

Once it listens, it runs no request, starts no thread and takes no lock. So a fork copies nothing in use.
"""

import gc
import posix
import select
import signal
import socket
import sys
from contextlib import suppress
from time import CLOCK_MONOTONIC, clock_gettime_ns, monotonic

from tailhook._core import caller_identity, caller_kind
from tailhook.hook.answer import describe, warn, write_output
from tailhook.hook.config import read_sections, user_bytes
from tailhook.hook.payload import user_config
from tailhook.pool.installation import (
    ATTEMPT,
    CLIENT_FILE,
    INSTALLATION_FILE,
    LEAVE_NOTE,
    PACKAGE,
    POOL_START_FILE,
    START_NOTE,
    STOP_NOTE,
    client_folder,
    is_served,
    lock_installation,
    read_if_there,
    remove_dead_sockets,
    socket_of,
    sockets_of,
    write_installation,
)
from tailhook.pool.loaded_files import LoadedFiles
from tailhook.pool.worker import OPEN_FILES, Worker
from tailhook.pool.workers import FREE, IDLE, RESIDENT_WORKERS, WorkerTable
from tailhook.stores.atomic import make_folders, read_file, remove_file

IDLE_EXIT_S = 1800.0
CHECK_INTERVAL_S = 60.0  # between two looks at the files, if the system cannot watch them
WORKER_END_TIMEOUT_S = 10.0  # for the workers to end their requests if a signal asks the pool to leave
START_TIMEOUT_S = 2.0  # how long another start may take
BACKLOG = 128  # connections that wait for a worker
MIN_WORKERS = 4  # at once; with more processors, twice their number
MAX_POOLS = 4  # of one installation; with more, the oldest leaves
SURPLUS_EXIT_S = 60.0  # its quiet time before that
MAX_SHORT_LIVES = 10  # workers in a row that failed while no request was answered
ASKED_FLAG = "--asked"  # a person started the pool
ROOMS = ("stores", "machines", "hook", "hosts")  # the folders of the modules that a hook may load
PROCESSORS = range(1 << 10)  # all possible ones; the system takes those that it allows
NOT_LOADED = ("entry", "protocols")  # the hook's own entry; a module for type checkers only


def main(argv: list[str], files: dict[str, posix.stat_result]) -> int:
    """Serve until there is a reason to leave; return the exit code.

    argv: the client's folder; ASKED_FLAG.
    files: as for `LoadedFiles`.
    """
    folder = next((word.rstrip("/") for word in argv if word.startswith("/")), "")
    try:
        open_standard_streams()
        close_descriptors()
        start = start_as_asked if ASKED_FLAG in argv else start_for_hook
        pool = start(folder or client_folder(sys.executable), files)
        if pool:
            pool.serve()
            if pool.has_failed:
                raise OSError(f"over {MAX_SHORT_LIVES} workers in a row ended without an answer, {LEAVE_NOTE}")
    except OSError as error:
        warn(f"tailhook: pool: {describe(error)}")
        return 1
    return 0


def start_as_asked(folder: str, files: dict[str, posix.stat_result]) -> "Pool":
    """Return a person's pool; it listens. Raises OSError.

    folder: the client's.
    files: as for `LoadedFiles`.
    """
    make_folders(folder)
    lock = lock_installation(folder, START_TIMEOUT_S)
    try:
        pool = Pool(folder, files, keeps_socket=False)
        if not pool.listen():
            raise OSError("a pool runs already. To end it:  tailhook pool stop")
        remove_file(f"{folder}/{POOL_START_FILE}")  # why an earlier start has failed
    finally:
        posix.close(lock)
    pid = posix.getpid()
    write_output(1, f"The pool runs: process {pid}. To end it, press Ctrl-C or run  tailhook pool stop\n".encode())
    return pool


def start_for_hook(folder: str, files: dict[str, posix.stat_result]) -> "Pool | None":
    """Return a hook's pool; it listens. Returns None if it is not needed. Raises OSError.

    Without the client it makes no file: an uninstall has removed the client meanwhile. It also leaves if a person has
    stopped the pool meanwhile.

    folder: the client's.
    files: as for `LoadedFiles`.
    """
    if read_sections(user_config(), user_bytes)["pool"].get("autostart") is False:
        return None
    try:
        lock = lock_installation(folder, START_TIMEOUT_S)
    except (FileNotFoundError, TimeoutError):
        return None
    try:
        if not all(read_if_there(f"{folder}/{name}") for name in (CLIENT_FILE, INSTALLATION_FILE)):
            return None
        if STOP_NOTE.encode() in read_if_there(f"{folder}/{POOL_START_FILE}").splitlines():
            return None
        pool = Pool(folder, files, keeps_socket=True)
        if not pool.listen():
            return None
    finally:
        posix.close(lock)
    use_all_processors()
    note_start()
    return pool


def note_start() -> None:
    """Note in POOL_START_FILE that this start has not failed: stderr is that file."""
    with suppress(OSError):
        posix.ftruncate(2, len(ATTEMPT))
        posix.write(2, f"{START_NOTE}\n".encode())


def use_all_processors() -> None:
    """Run on all processors that the system allows, even if the starting hook may not (taskset(1))."""
    if sys.platform == "linux":
        with suppress(OSError):
            posix.sched_setaffinity(0, posix.sched_getaffinity(0).union(PROCESSORS))


def open_standard_streams() -> None:
    """Open /dev/null in place of each closed standard stream: otherwise the listener would take its number.

    Raises OSError.
    """
    for fd in (0, 1, 2):
        try:
            posix.fstat(fd)
        except OSError:
            posix.open("/dev/null", posix.O_RDWR)  # takes the lowest free number: this one
            posix.set_inheritable(fd, True)


def close_descriptors() -> None:
    """Close the descriptors of the starting process: locks, and pipes whose readers wait for their end.

    Raises OSError if the system does not list them.
    """
    try:
        names = posix.listdir(OPEN_FILES)
    except FileNotFoundError:
        raise OSError(f"there is no {OPEN_FILES}, so no pool starts from here") from None
    for name in names:
        if int(name) > 2:
            with suppress(OSError):  # the listing's own
                posix.close(int(name))


def load_hook_modules() -> None:
    """Import everything that a hook may load."""
    for room in ROOMS:
        package = f"tailhook.{room.replace('/', '.')}"
        __import__(package)
        for name in sorted(posix.listdir(f"{PACKAGE}/{room}")):
            stem, _, ending = name.rpartition(".")
            if ending == "py" and stem not in (*NOT_LOADED, "__init__") and is_file(f"{PACKAGE}/{room}/{name}"):
                __import__(f"{package}.{stem}")


def is_file(path: str) -> bool:
    """Return whether a path is a file of the package; False for an editor's own, such as a dangling link."""
    try:
        return bool(posix.stat(path)) and not path.rpartition("/")[2].startswith(".")
    except OSError:
        return False


class Pool:
    """The parent process.

    folder: the client's.
    files: as for `LoadedFiles`.
    keeps_socket: as for `write_installation`.

    The caller has the lock of the installation until the pool listens. Raises OSError.
    """

    def __init__(self, folder: str, files: dict[str, posix.stat_result], keeps_socket: bool) -> None:
        kind = caller_kind()
        if not kind:
            raise OSError("a limit of this process (ulimit) could end a hook early, so no pool starts from here")
        if not caller_identity():
            raise OSError("no /proc shows the namespaces of this process, so no pool starts from here")
        _, self.socket_prefix = write_installation(sys.executable, folder, keeps_socket)
        self.path = socket_of(self.socket_prefix, kind)
        self.folder = folder
        self.loaded_files = LoadedFiles(PACKAGE, files, [self.folder, self.path.rpartition("/")[0]])
        load_hook_modules()
        if self.loaded_files.have_changed():
            raise OSError(f"{PACKAGE} is being changed; the next hook starts another pool")
        self.table = WorkerTable(max(MIN_WORKERS, 2 * (posix.cpu_count() or 1)))
        self.workers: dict[int, int] = {}  # process id: number in the table
        self.answered = 0  # number of requests when a worker last ended
        self.short_lives = 0  # number of failed workers since then
        self.has_failed = False  # it leaves because too many have
        self.has_later = False  # whether enough later pools of this installation ran at the last look
        self.ends_by: float | None = None  # latest time to leave (monotonic), after a signal

    def listen(self) -> bool:
        """Bind the socket; return False if another pool listens on it. Raises OSError.

        From here on, a signal that ends the pool waits until the socket can be removed.
        """
        if is_served(self.path):
            return False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.end)
        remove_dead_sockets(self.socket_prefix)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        posix.umask(0o177)
        self.listener.bind(self.path)
        posix.umask(0o077)
        self.listener.listen(BACKLOG)
        self.listener.settimeout(0)
        self.inode = posix.lstat(self.path).st_ino
        return True

    # ---- the loop ---------------------------------------------------------------

    def serve(self) -> None:
        """Fork workers as they are needed, until there is a reason to leave."""
        self.parent_pipe, self.parent_pipe_end = new_pipe()
        self.growth, self.growth_end = new_pipe()
        signal.set_wakeup_fd(self.growth_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, ignore_signal)
        posix.chdir("/")
        gc.collect()
        gc.freeze()
        self.started = monotonic()
        polling = select.poll()
        polling.register(self.growth, select.POLLIN)
        if self.loaded_files.watch >= 0:
            polling.register(self.loaded_files.watch, select.POLLIN)
        while self.ends_by is None:
            while len(self.workers) < RESIDENT_WORKERS and self.ends_by is None:
                self.grow()
            found = dict(polling.poll(self.wait_s() * 1000 if self.ends_by is None else 0))
            if self.growth in found:
                posix.read(self.growth, 1 << 12)
            self.reap()
            if self.decide_to_leave(self.loaded_files.watch in found):
                break
            if IDLE not in self.table.states():
                self.grow()
        self.leave()

    def wait_s(self) -> float:
        """Return the seconds until the next look: until the pool has been quiet for long enough."""
        exit_s = SURPLUS_EXIT_S if self.has_later else IDLE_EXIT_S
        left = max(0.0, exit_s - self.quiet_s()) + 0.001
        return left if self.loaded_files.watch >= 0 else min(left, CHECK_INTERVAL_S)

    def quiet_s(self) -> float:
        """Return the seconds since the end of the last request."""
        last = self.table.last_request_ns()
        waited = monotonic() - self.started
        return min(waited, (clock_gettime_ns(CLOCK_MONOTONIC) - last) / 1e9) if last else waited

    def decide_to_leave(self, has_watched: bool) -> bool:
        """Decide whether to leave: the pool is no longer needed, or no longer matches its client.

        has_watched: something has changed in a watched folder.
        """
        self.has_failed = self.short_lives > MAX_SHORT_LIVES
        if self.has_failed or self.quiet_s() >= IDLE_EXIT_S or self.loaded_files.have_moved():
            return True
        if has_watched or self.loaded_files.watch < 0:
            self.table.may_be_outdated = True
            self.loaded_files.read_events()
            self.has_later = self.count_later() >= MAX_POOLS
            if self.loaded_files.have_changed() or not self.has_socket():
                return True
            self.table.may_be_outdated = False
        return self.check_surplus()

    def has_socket(self) -> bool:
        """Return whether clients still find this pool's socket and the file with its path."""
        try:
            named = read_file(f"{self.folder}/{INSTALLATION_FILE}").split(b"\0")[1]
        except (OSError, IndexError):
            return False
        return named == self.socket_prefix.encode("utf-8", "surrogateescape") and self.owns_socket()

    def owns_socket(self) -> bool:
        """Return whether the socket at its path is this pool's own, not a later pool's."""
        try:
            return posix.lstat(self.path).st_ino == self.inode
        except OSError:
            return False

    def check_surplus(self) -> bool:
        """Count the later pools if this one is not in use. Return whether enough of them run.

        Otherwise callers with a new namespace each time would leave many pools.
        """
        if self.has_later and self.quiet_s() >= SURPLUS_EXIT_S:
            self.has_later = self.count_later() >= MAX_POOLS
            return self.has_later
        return False

    def count_later(self) -> int:
        """Return the number of later pools of this installation with a socket."""
        others = (path for path in sockets_of(self.socket_prefix) if path != self.path)
        return sum(started_at(path) > started_at(self.path) for path in others)

    # ---- workers ----------------------------------------------------------------

    def grow(self) -> None:
        """Fork one more worker, unless the largest number is reached."""
        states = self.table.states()
        number = next((at for at, state in enumerate(states) if state == FREE and at not in self.workers.values()), -1)
        if number < 0:
            return
        self.table.set_state(number, IDLE)
        try:
            pid = posix.fork()
        except OSError as error:  # too many processes: hooks are cold, and one of the next hooks starts another pool
            warn(f"tailhook: pool: {describe(error)}")
            self.table.set_state(number, FREE)
            self.end()
            return
        if pid:
            self.workers[pid] = number
            return
        posix.close(self.parent_pipe_end)
        posix.close(self.growth)
        pipes = self.parent_pipe, self.growth_end
        Worker(number, self.table, self.listener, *pipes, self.loaded_files, self.folder).run()

    def reap(self) -> None:
        """Note the workers that have ended. A worker that was stopped by a signal is ended."""
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
        """Leave when the loop looks next, because a signal asked for it."""
        if self.ends_by is None:
            self.ends_by = monotonic() + WORKER_END_TIMEOUT_S

    def leave(self) -> None:
        """Remove the socket and wait until the workers have ended their requests; if a signal asked, not for long."""
        if self.owns_socket():
            remove_file(self.path)
        self.listener.close()
        posix.close(self.parent_pipe_end)
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
    """Return when a pool made its socket, in Unix nanoseconds; 0 if the socket is gone."""
    try:
        return posix.lstat(path).st_mtime_ns
    except OSError:
        return 0


def new_pipe() -> tuple[int, int]:
    """Return the two ends of a non-blocking pipe. Started programs do not inherit them."""
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
