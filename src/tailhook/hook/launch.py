"""Starts the daemon if a hook has found that none runs."""

import posix
from time import time

from tailhook._core import flock_within
from tailhook.hook.answer import warn
from tailhook.stores.atomic import SAFE, read_file, replace_file, state_folder
from tailhook.stores.daemon import (
    ATTEMPT_FILE,
    MAX_REASON_BYTES,
    REPORTED_FILE,
    daemon_argv,
    failure_reason,
    spawn_daemon,
)

RETRY_S, RETRY_AFTER_FAILURE_S = 10.0, 60.0  # between two attempts; a failed one takes a second of processor time


def start_daemon() -> None:
    """Start the daemon in the background, unless that was tried a short time ago.

    A file in the state folder has the time of the last attempt, and the daemon's stderr if it did not start. The daemon
    holds the file's lock until it serves. If the last attempt failed, print why on stderr, once.
    """
    path = f"{state_folder()}/{ATTEMPT_FILE}"
    size, age = 0, RETRY_S
    try:
        facts = posix.stat(path)
        size, age = facts.st_size, abs(time() - facts.st_mtime)  # the time may be in the future
        if not size and age < RETRY_S:
            return
    except FileNotFoundError:
        pass
    fd = posix.open(path, posix.O_RDWR | posix.O_CREAT | SAFE, 0o600)
    try:
        if not flock_within(fd, 0):
            return  # a daemon is starting
        if size:
            report_once(posix.pread(fd, MAX_REASON_BYTES, max(0, size - MAX_REASON_BYTES)))
            if age < RETRY_AFTER_FAILURE_S:
                return
        posix.ftruncate(fd, 0)
        posix.utime(fd)
        spawn_daemon(daemon_argv(), fd)
    except OSError as error:
        reason = f"{error}\n".encode("utf-8", "backslashreplace")
        posix.write(fd, reason)
        report_once(reason)
    finally:
        posix.close(fd)


def report_once(stderr: bytes) -> None:
    """Print why the daemon did not start, unless that reason was the last one printed.

    stderr: the daemon's output there.
    """
    reason = failure_reason(stderr)
    path = f"{state_folder()}/{REPORTED_FILE}"
    try:
        if read_file(path) == reason.encode():
            return
    except FileNotFoundError:
        pass
    replace_file(path, reason.encode())
    advice = "Events are recorded and will appear later. For details:  tailhook doctor"
    warn(f"tailhook: plates: the daemon does not start: {reason}. {advice}")
