"""One worker of the pool: it answers hooks, one at a time, in place of the processes that hosts started.

A request brings the descriptors, the arguments and the environment of such a process. The worker takes them over, calls
the code of the cold hook, and gives them back. It keeps nothing of a request for the next one.
"""

import fcntl
import gc
import posix
import resource
import select
import signal
import socket
import struct
import sys
from contextlib import suppress
from time import CLOCK_MONOTONIC, clock_gettime_ns

from tailhook._core import (
    MAX_REQUEST_BYTES,
    MIN_FILES,
    REQUEST_DESCRIPTORS,
    REQUEST_MAGIC,
)
from tailhook.hook.answer import describe, write_output
from tailhook.hook.process import run_hook
from tailhook.pool.installation import ready_message
from tailhook.pool.loaded_files import LoadedFiles
from tailhook.pool.workers import BUSY, IDLE, RESIDENT_WORKERS, WorkerTable
from tailhook.stores.atomic import forget_folder
from tailhook.stores.hook_times import WARM, record_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

FIRST_BYTES = 1 << 15  # read at first; most requests are smaller
REQUEST_TIMEOUT_S = 1.0  # for a client to send its request, once the worker is ready
QUIET_S = 10.0  # idle, until a worker leaves unless it is one of the last
MAX_REQUESTS = 1000  # until a worker is replaced
MAX_UMASK = 0o777
MAX_GROWTH = 32 << 20  # bytes of memory; a worker that has grown by more is replaced
PEAK_UNIT = 1 if sys.platform == "darwin" else 1024  # of `ru_maxrss`
OPEN_FILES = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
WAITING_UMASK = 0o077


# magic, started_ns, size, arguments, umask and parent, as in `struct tailhook_request` (ext/os/request.h)
REQUEST_LAYOUT = struct.Struct("=QQIIIi")


class Request:
    """A client's request: see `ext/os/request.h`.

    started_ns: when the client started, by CLOCK_MONOTONIC.
    parent: the process that started the client.
    descriptors: stdin, stdout, stderr and the working folder.
    """

    __slots__ = ("arguments", "descriptors", "environment", "parent", "started_ns", "umask")

    def __init__(
        self,
        started_ns: int,
        umask: int,
        parent: int,
        arguments: list[str],
        environment: dict[bytes, bytes],
        descriptors: list[int],
    ) -> None:
        self.started_ns = started_ns
        self.umask = umask
        self.parent = parent
        self.arguments = arguments
        self.environment = environment
        self.descriptors = descriptors


class Worker:
    """One worker.

    number: its entry in the table.
    listener: the socket on which all workers accept connections.
    parent_pipe: a pipe; its other end is closed when the parent ends.
    growth: a descriptor; a byte in it asks the parent for one more worker.
    folder: the client's.
    """

    def __init__(
        self,
        number: int,
        table: WorkerTable,
        listener: socket.socket,
        parent_pipe: int,
        growth: int,
        loaded_files: LoadedFiles,
        folder: str,
    ) -> None:
        self.number = number
        self.table = table
        self.listener = listener
        self.parent_pipe = parent_pipe
        self.growth = growth
        self.loaded_files = loaded_files
        self.folder = folder
        self.ready = ready_message()
        self.stderr = posix.dup(2)  # not inheritable
        self.nothing = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)

    def run(self) -> "NoReturn":
        """Answer requests until there is a reason to leave; end the process."""
        code = 1
        try:
            self.prepare()
            poll = new_poll(self.listener.fileno(), self.parent_pipe)
            self.open_files = list_open_files()
            while self.wait(poll) and self.answer_next():
                pass
            code = 0
        except BaseException as error:
            write_output(self.stderr, f"tailhook: pool: {describe(error)}\n".encode("utf-8", "backslashreplace"))
        finally:
            posix._exit(code)

    def prepare(self) -> None:
        """Close and reset the things that belong only to the parent."""
        posix.setsid()  # the parent's terminal must not end a request (Ctrl-C) or stop one (reading)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGIO):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "darwin":  # SIGIO does nothing there by default (sigaction(2))
            signal.signal(signal.SIGIO, lambda *_: posix._exit(1))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.clear()
        gc.freeze()
        self.first_peak = peak_bytes()
        self.table.set_state(self.number, IDLE)

    def wait(self, poll: "Callable[[float | None], list[tuple[int, int]]]") -> bool:
        """Wait for a connection; return whether to stay. RESIDENT_WORKERS idle workers stay."""
        seconds: float | None = QUIET_S
        while True:
            found = poll(seconds)
            if any(fd == self.parent_pipe for fd, _ in found):
                return False
            if found:
                return True
            if sum(map(bool, self.table.states()[: self.number])) >= RESIDENT_WORKERS:
                return False
            seconds = None

    # ---- one request -----------------------------------------------------------

    def answer_next(self) -> bool:
        """Accept a connection and answer its request; return whether this worker stays.

        Raises OSError if there are too few descriptors for a request; then the client runs the cold hook.
        """
        if 0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] < MIN_FILES:  # -1: unlimited
            raise OSError(f"a worker must be able to open {MIN_FILES} files")
        try:
            connection, _ = self.listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # another worker has it, or the client has left
            return True
        self.table.set_state(self.number, BUSY)
        if IDLE not in self.table.states():
            ask_for_growth(self.growth)
        stays = True
        try:
            request = self.receive(connection)
            if request:
                stays = self.answer(connection, request)
        except OSError:  # the client has left, or is another program
            pass
        finally:
            connection.close()
            self.clear()
        if self.is_outdated() or list_open_files() != self.open_files:
            return False
        self.table.set_state(self.number, IDLE)
        return stays

    def receive(self, connection: socket.socket) -> Request | None:
        """Let the client send its request, and return it.

        Returns None if this worker must not answer: the client then runs the cold hook. Raises OSError.
        """
        if not is_own_peer(connection) or self.is_outdated():
            return None
        connection.send(self.ready)
        connection.settimeout(REQUEST_TIMEOUT_S)
        descriptors: list[int] = []
        try:
            data = receive_in_time(connection, FIRST_BYTES, descriptors)
            while (missing := missing_bytes(data)) > 0 and (more := receive_in_time(connection, missing, descriptors)):
                data += more
            connection.settimeout(None)
            return parse_request(data, descriptors)
        except BaseException:
            close_all(descriptors)
            raise

    def answer(self, connection: socket.socket, request: Request) -> bool:
        """Run the hook in the place of the client's process; return whether this worker stays."""
        for fd, given in enumerate(request.descriptors[:3]):
            posix.dup2(given, fd)
        posix.fchdir(request.descriptors[3])
        close_all(request.descriptors)
        posix.umask(request.umask)
        posix.environ = request.environment
        # If the host ends the client, the connection hangs up, and SIGIO ends this process, like a cold hook.
        flags = fcntl.fcntl(connection.fileno(), fcntl.F_GETFL)
        fcntl.fcntl(connection.fileno(), fcntl.F_SETOWN, posix.getpid())
        fcntl.fcntl(connection.fileno(), fcntl.F_SETFL, flags | fcntl.FASYNC)
        if has_hung_up(connection):
            return True
        code, event, failure = run_hook(request.arguments[1:], request.parent)
        fcntl.fcntl(connection.fileno(), fcntl.F_SETFL, flags)
        for fd in range(3):  # the host reads to the end of its pipes
            posix.dup2(self.nothing, fd)
        with suppress(OSError):  # the client may have left
            connection.send(bytes([code]))
        total = self.table.count_request(self.number, clock_gettime_ns(CLOCK_MONOTONIC))
        if event is not None and event.setting("pool", "stats") is not False:
            with suppress(OSError):  # doctor then shows less
                record_hook(self.folder, event.name, request.started_ns, WARM)
        return failure is None and total % MAX_REQUESTS != 0 and peak_bytes() - self.first_peak < MAX_GROWTH

    def is_outdated(self) -> bool:
        """Return whether the package has changed since this process loaded it."""
        may_be = self.table.may_be_outdated or self.loaded_files.may_have_changed()
        return self.loaded_files.have_moved() or (may_be and self.loaded_files.have_changed())

    def clear(self) -> None:
        """Keep nothing of a request."""
        for fd in range(3):
            posix.dup2(self.nothing, fd)
        posix.chdir("/")
        posix.umask(WAITING_UMASK)
        posix.environ = {}
        forget_folder()
        reap_children()
        gc.collect()


def reap_children() -> None:
    """Reap the ended programs that hooks have started, such as a daemon."""
    with suppress(ChildProcessError):
        while posix.waitpid(-1, posix.WNOHANG)[0]:
            pass


def new_poll(listener: int, parent_pipe: int) -> "Callable[[float | None], list[tuple[int, int]]]":
    """Return a function that waits up to some seconds for a connection or for the parent's end.

    With epoll a connection wakes only one waiting worker (epoll_ctl(2), EPOLLEXCLUSIVE).
    """
    if sys.platform == "linux":
        waiting = select.epoll(2)
        waiting.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        waiting.register(parent_pipe, select.EPOLLIN)
        return waiting.poll
    polling = select.poll()
    polling.register(listener, select.POLLIN)
    polling.register(parent_pipe, select.POLLIN)
    return lambda seconds: polling.poll(None if seconds is None else seconds * 1000)


def missing_bytes(data: bytes) -> int:
    """Return the number of missing bytes of a request, or of its header if that is incomplete."""
    size = REQUEST_LAYOUT.size
    if len(data) >= size:
        _, _, strings_size, *_ = REQUEST_LAYOUT.unpack_from(data)
        size += strings_size
    return min(size, MAX_REQUEST_BYTES) - len(data)


def receive_in_time(connection: socket.socket, size: int, descriptors: list[int]) -> bytes:
    """Do the same as `receive_more`. If nothing comes in time, keep the client from sending more. Raises OSError.

    A client that cannot send its whole request runs the cold hook. The bytes that it has sent are still there.
    """
    try:
        return receive_more(connection, size, descriptors)
    except TimeoutError:
        connection.shutdown(socket.SHUT_RD)
        return receive_more(connection, size, descriptors)


def receive_more(connection: socket.socket, size: int, descriptors: list[int]) -> bytes:
    """Return up to `size` bytes, and add the descriptors that came with them. Raises OSError."""
    int_bytes = 4
    data, ancillary, _, _ = connection.recvmsg(
        size, socket.CMSG_SPACE(REQUEST_DESCRIPTORS * int_bytes), getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    )
    for level, kind, numbers in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            for at in range(0, len(numbers) - int_bytes + 1, int_bytes):
                descriptors.append(int.from_bytes(numbers[at : at + int_bytes], sys.byteorder))
    return data


def parse_request(data: bytes, descriptors: list[int]) -> Request | None:
    """Return the request in a client's bytes. If it is not whole, close the descriptors and return None."""
    if len(data) < REQUEST_LAYOUT.size:
        close_all(descriptors)
        return None
    magic, started_ns, size, count, umask, parent = REQUEST_LAYOUT.unpack_from(data)
    strings = data[REQUEST_LAYOUT.size :].split(b"\0")
    if (
        magic != REQUEST_MAGIC
        or size != len(data) - REQUEST_LAYOUT.size
        or len(descriptors) != REQUEST_DESCRIPTORS
        or strings[-1]
        or not 0 < count < len(strings)
        or umask > MAX_UMASK
    ):
        close_all(descriptors)
        return None
    environment: dict[bytes, bytes] = {}
    for string in strings[count:-1]:
        name, equals, value = string.partition(b"=")
        if equals:
            environment.setdefault(name, value)
    arguments = [string.decode("utf-8", "surrogateescape") for string in strings[:count]]
    return Request(started_ns, umask, parent, arguments, environment, descriptors)


def close_all(descriptors: list[int]) -> None:
    """Close the descriptors of a request, and forget them."""
    while descriptors:
        posix.close(descriptors.pop())


def is_own_peer(connection: socket.socket) -> bool:
    """Return whether the client is a process of this user."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(credentials[4:8], sys.byteorder) == posix.geteuid()
    credentials = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: struct xucred (sys/ucred.h)
    return int.from_bytes(credentials[4:8], sys.byteorder) == posix.geteuid()


def has_hung_up(connection: socket.socket) -> bool:
    """Return whether the client has ended.

    It ignores that the worker itself has stopped reading (`receive_in_time`): a request may have come just before.
    """
    polling = select.poll()
    polling.register(connection.fileno(), 0)  # reports POLLHUP alone
    return bool(polling.poll(0))


def ask_for_growth(growth: int) -> None:
    """Ask the parent for one more worker. If its pipe is full, it has been asked often enough."""
    with suppress(BlockingIOError):
        posix.write(growth, b"+")


def list_open_files() -> set[str]:
    """Return the numbers of the open descriptors, including the listing's own."""
    return set(posix.listdir(OPEN_FILES))


def peak_bytes() -> int:
    """Return the greatest memory use of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK_UNIT
