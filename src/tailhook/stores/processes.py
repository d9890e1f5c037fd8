"""Shared by hook and daemon: when a process started, which one started a hook, and the namespace of an id."""

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


def without_shell(pid: int) -> int:
    """Return the process that started a shell for one command, or the given one if it is not such a shell.

    `sh -c` of Debian stays until its command ends; that of other systems becomes the command. On macOS it is not known.
    """
    try:
        shell, _, rest = read_file(f"/proc/{pid}/cmdline").partition(b"\0")
        if not (shell.endswith(b"sh") and rest.startswith(b"-") and rest.partition(b"\0")[0].endswith(b"c")):
            return pid
        starter = int(read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    except OSError:
        return pid
    return starter if starter > 1 else pid  # 1 took it over: its starter has ended


def pid_namespace() -> str:
    """Return the name of this process's PID namespace, or "" on macOS.

    Process ids can only be compared within one namespace. A container has its own.
    """
    try:
        return posix.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
