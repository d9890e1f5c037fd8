"""The running pool of an installation, as other programs see it."""

import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tailhook.pool.installation import INSTALLATION_FILE, POOL_START_FILE
from tailhook.stores.atomic import read_file

STOP_TIMEOUT_S = 15.0  # longer than a pool gives its workers to end their requests
STOP_POLL_INTERVAL_S = 0.005


class RunningPool(NamedTuple):
    """A pool that listens.

    pid: the parent's.
    workers: the workers' process ids; None if the system does not show them.
    memory: bytes of the parent and its workers together, with shared pages counted once (PSS); None if unknown.
    """

    socket: str
    pid: int
    workers: list[int] | None
    memory: int | None


def read_installation(folder: str) -> list[str]:
    """Return the fields of the file beside a client: format, socket, interpreter, entries of the hook and the pool.

    folder: the client's.

    Raises OSError.
    """
    data = read_file(f"{folder}/{INSTALLATION_FILE}").decode("utf-8", "surrogateescape")
    return data.split("\0")[:-1]


def find_pool(folder: str) -> RunningPool | None:
    """Return the pool that a client finds, None if none runs.

    folder: the client's.
    """
    try:
        path = read_installation(folder)[1]
    except (OSError, IndexError):
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        try:
            connection.connect(path)
        except OSError:
            return None
        pid = listener_pid(connection)
    workers = children_of(pid) if pid > 0 else None
    return RunningPool(path, pid, workers, memory_of([pid, *workers]) if workers is not None else None)


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


def stop_pool(folder: str) -> RunningPool | None:
    """End the pool that a client finds and wait until its processes have ended; return what it was.

    folder: the client's.

    Raises OSError, and TimeoutError if it does not end.
    """
    found = find_pool(folder)
    if found is None:
        return None
    if found.pid <= 0:
        raise OSError("the pool runs in another process namespace, such as a container. End it there")
    processes = [found.pid, *(found.workers or ())]
    os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while any(map(is_running, processes)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the pool (process {found.pid}) did not end within {STOP_TIMEOUT_S:g} s")
        time.sleep(STOP_POLL_INTERVAL_S)
    return found


def is_running(pid: int) -> bool:
    """Return whether a process exists, and is not one that has ended and is not yet reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return sys.platform != "linux"


def pool_start_failure(folder: str) -> str:
    """Return why no pool started when a client last tried, "" if that is not known.

    folder: the client's.
    """
    try:
        lines = read_file(f"{folder}/{POOL_START_FILE}").decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].removeprefix("tailhook: ") if lines else ""
