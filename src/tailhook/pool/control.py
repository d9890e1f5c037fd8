"""The running pool of an installation, seen from other programs."""

import math
import os
import signal
import socket
import stat
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tailhook._core import POOL_RETRY_S, caller_kind
from tailhook.hook.answer import describe
from tailhook.hook.config import read_sections, user_bytes
from tailhook.hook.payload import user_config
from tailhook.pool.installation import (
    ATTEMPT,
    CLIENT_FILE,
    INSTALLATION_FIELDS,
    INSTALLATION_FILE,
    INSTALLATION_FORMAT,
    LEAVE_NOTE,
    POOL_START_FILE,
    START_NOTE,
    STOP_NOTE,
    lock_installation,
    ready_message,
    socket_of,
    sockets_of,
)
from tailhook.stores.atomic import read_file

STOP_TIMEOUT_S = 15.0  # longer than a pool gives its workers to end their requests
KILL_TIMEOUT_S = 5.0
STOP_POLL_INTERVAL_S = 0.005
READY_TIMEOUT_S = 1.0  # for the first message of a waiting worker


class RunningPool(NamedTuple):
    """A listening pool.

    is_own: whether it answers hooks of this process; while all its workers are busy, this is a guess.
    has_own_socket: whether such hooks look for its socket: then no other pool can answer them.
    pid: the parent's; 0 if it runs in another process namespace, such as a container.
    workers: the workers' process ids; None if the system does not show them.
    memory: bytes of the parent and its workers together, with shared pages counted once (PSS); None if unknown.
    """

    socket: str
    is_own: bool
    has_own_socket: bool
    pid: int
    workers: list[int] | None
    memory: int | None

    @property
    def pids(self) -> list[int]:
        """The known processes: the parent and its workers."""
        return [self.pid, *(self.workers or ())] if self.pid > 0 else []

    @property
    def place(self) -> str:
        """The place where it runs: its process, if that is known here."""
        return f"process {self.pid}" if self.pid > 0 else "in another process namespace"


def read_installation(folder: str) -> list[str]:
    """Return the fields of the file beside a client.

    The fields are the format, the prefix of the sockets' paths, the interpreter, and the
    entries of the hook and of the pool.

    folder: the client's.

    Raises OSError, also if the client would refuse the file (split_installation in ext/client/installation.h).
    """
    path = f"{folder}/{INSTALLATION_FILE}"
    *fields, rest = read_file(path).decode("utf-8", "surrogateescape").split("\0")
    has_form = len(fields) == INSTALLATION_FIELDS and fields[0] == INSTALLATION_FORMAT and not rest
    if not has_form or not all(field.startswith("/") for field in fields[2:]):
        raise OSError(f"{path} is damaged")
    return fields


def read_sockets_prefix(folder: str) -> str:
    """Return the prefix of the paths of an installation's sockets, "" if its file names none.

    It is the second field in all versions' files, so that each version can end the pools of others.

    folder: the client's.
    """
    try:
        fields = read_file(f"{folder}/{INSTALLATION_FILE}").decode("utf-8", "surrogateescape").split("\0")
    except OSError:
        return ""
    return fields[1] if len(fields) > 2 and fields[1].startswith("/") else ""


def find_pool(folder: str) -> RunningPool | None:
    """Return the pool that this process's clients find, None if none runs.

    folder: the client's.
    """
    return next((pool for pool in find_pools(folder) if pool.is_own), None)


def find_pools(folder: str) -> list[RunningPool]:
    """Return the pools of an installation: there may be one for each kind of callers.

    folder: the client's.
    """
    prefix = read_sockets_prefix(folder)
    if not prefix:
        return []
    own = own_socket(prefix)
    return [pool for path in sockets_of(prefix) if (pool := running_pool(path, path == own))]


def own_socket(prefix: str) -> str:
    """Return the socket of the pool for this process's hooks.

    prefix: of the paths of the installation's sockets.
    """
    return socket_of(prefix, caller_kind())


def running_pool(path: str, has_own_socket: bool) -> RunningPool | None:
    """Return the pool that listens on a socket, None if none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        try:
            connection.connect(path)
        except OSError:
            return None
        pid = listener_pid(connection)
        is_own = has_own_socket and answers_this_process(connection)
    workers = children_of(pid) if pid > 0 else None
    memory = memory_of([pid, *workers]) if workers is not None else None
    return RunningPool(path, is_own, has_own_socket, pid, workers, memory)


def answers_this_process(connection: socket.socket) -> bool:
    """Return whether the worker behind a connection answers this process's hooks; True if no worker is free."""
    connection.settimeout(READY_TIMEOUT_S)
    wanted = ready_message()
    try:
        return connection.recv(len(wanted), socket.MSG_WAITALL) in (b"", wanted)
    except OSError:
        return True


def listener_pid(connection: socket.socket) -> int:
    """Return the process that listens on the other side of a connection."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[0])
    return connection.getsockopt(0, 2)  # SOL_LOCAL, LOCAL_PEERPID (sys/un.h)


def children_of(pid: int) -> list[int] | None:
    """Return the children of a process with one thread; None if the system does not list them."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return None


def memory_of(pids: list[int]) -> int | None:
    """Return the sum of the proportional set sizes of some processes, in bytes; None if it is unknown."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            return None
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def stop_pools(folder: str) -> list[RunningPool]:
    """End the pools of an installation, wait until their processes have ended, and return the pools.

    Processes that do not end within STOP_TIMEOUT_S are killed. If another process than a pool listens on a socket, it
    is left alone.

    folder: the client's.

    Raises OSError, and TimeoutError if a process has not ended by then.
    """
    found = find_pools(folder)
    known = [pool for pool in found if pool.pid > 0]
    ended = [pool for pool in known if is_pool_of(pool.pid, folder)]
    for pool in ended:
        send_signal(pool.pid, signal.SIGTERM)
        for pid in pool.pids:
            send_signal(pid, signal.SIGCONT)  # a stopped one
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for pool in ended:
        while left := [pid for pid in pool.pids if is_running(pid)]:
            late_s = time.monotonic() - deadline
            if late_s > KILL_TIMEOUT_S:
                raise TimeoutError(f"the pool (process {pool.pid}) does not end")
            if late_s > 0:
                for pid in left:
                    send_signal(pid, signal.SIGKILL)
            time.sleep(STOP_POLL_INTERVAL_S)
    for pool in known:
        if pool not in ended:
            raise OSError(f"{pool.socket}: process {pool.pid} listens there and is not a pool. It was left alone")
    if known != found:
        raise OSError("a pool runs in another process namespace, such as a container. End it there")
    return ended


def call_off_start(folder: str) -> None:
    """Make a pool exit that a hook has just started, or wait until it listens.

    Hooks start the next one as late as before. If the files in the folder cannot be written, hooks start no pool, and
    this does nothing.

    folder: the client's.
    """
    path = f"{folder}/{POOL_START_FILE}"
    with suppress(OSError):
        lock = lock_installation(folder, STOP_TIMEOUT_S)
        try:
            if read_file(path) == ATTEMPT:
                begun = Path(path).stat().st_mtime_ns
                Path(path).write_bytes(ATTEMPT + f"{STOP_NOTE}\n".encode())
                os.utime(path, ns=(begun, begun))
        finally:
            os.close(lock)


def is_pool_of(pid: int, folder: str) -> bool:
    """Return whether a process runs the pool of an installation, by its argv; True if the system shows no argv.

    A process that is just ending has no argv. The folder may have been moved since the pool was started.

    folder: the client's.
    """
    if sys.platform != "linux":
        return True
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return not is_running(pid)
    name = os.fsencode(folder.rstrip("/").rpartition("/")[2])
    is_named = any(word.rstrip(b"/").endswith(b"/" + name) for word in words)
    return not any(words) or (is_named and any(word.endswith(b"/pool/entry.py") for word in words))


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended. Raises PermissionError if it is another user's."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_running(pid: int) -> bool:
    """Return whether a process exists and runs; False if it has ended but is not yet reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return sys.platform != "linux"


def next_start(folder: str) -> str:
    """Return words for a person: when a hook would start a pool, or why it would not.  folder: the client's."""
    if not may_hooks_start_pool():
        return "hooks start none, as pool.autostart is false"
    if why := start_fault(folder):
        return f"hooks can start none: {why}"
    try:
        facts = Path(folder, POOL_START_FILE).lstat()
    except OSError:
        return "the next hook starts one"
    seconds = math.ceil(POOL_RETRY_S - abs(time.time() - facts.st_mtime)) if facts.st_size else 0
    return "the next hook starts one" if seconds <= 0 else f"a hook starts one, in {seconds} s at the earliest"


def start_fault(folder: str) -> str:
    """Return why a client cannot start a pool, judged by its files; "" if it can.  folder: the client's."""
    if not os.access(f"{folder}/{CLIENT_FILE}", os.X_OK):
        return f"{folder}/{CLIENT_FILE} cannot be executed"
    if not os.access(folder, os.W_OK):
        return f"{folder} cannot be written"
    attempt = f"{folder}/{POOL_START_FILE}"
    try:
        if os.path.lexists(attempt) and not stat.S_ISREG(os.lstat(attempt).st_mode):
            return f"{attempt} is not a regular file"
        programs = read_installation(folder)[2:]
        room = os.statvfs(folder)
    except OSError as error:
        return describe(error)
    if missing := [path for path in programs if not Path(path).exists()]:
        return f"{missing[0]} is missing"
    free = room.f_bfree if os.geteuid() == 0 else room.f_bavail
    is_full = room.f_blocks > 0 and free == 0  # some file systems report no number of blocks
    return f"no space is left for files in {folder}" if is_full else ""


def may_hooks_start_pool() -> bool:
    """Return whether the user allows hooks to start a pool."""
    return read_sections(user_config(), user_bytes)["pool"].get("autostart") is not False


def pool_start_failure(folder: str) -> str:
    """Return why the last start of a pool failed, or why the pool left at once; "" if unknown.

    folder: the client's.
    """
    try:
        lines = read_file(f"{folder}/{POOL_START_FILE}").decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    if START_NOTE in lines or STOP_NOTE in lines:
        lines = [line for line in lines if line.endswith(LEAVE_NOTE)]
    return lines[-1].removeprefix("tailhook: ") if lines else ""
