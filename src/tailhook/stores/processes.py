"""Shared by hook and daemon: when a process started, and the namespace of its id."""

import posix
import sys
from time import clock_gettime_ns

from tailhook.stores.atomic import read_file

CLOCK_BOOTTIME = 7 if sys.platform == "linux" else 4  # <time.h>: it goes on while the machine sleeps


def uptime_ms() -> int:
    """Return the milliseconds since the machine's start. Setting the clock does not change them."""
    return clock_gettime_ns(CLOCK_BOOTTIME) // 1_000_000


def process_start(pid: int) -> int:
    """Return when a process started, in clock ticks since the machine's start (proc(5)).

    Returns 0 if the process has ended, and on macOS.
    """
    try:
        fields = read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def pid_namespace() -> str:
    """Return the name of this process's PID namespace, or "" on macOS.

    Process ids can only be compared within one namespace. A container has its own.
    """
    try:
        return posix.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
