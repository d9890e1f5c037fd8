"""The spool: the events of the hooks, one JSON object per line, until the daemon has read them; and the wake-up.

A hook appends its event in one write and never waits for the daemon. A full file is renamed, and the next hook makes a
new one. The daemon reads each file from its last offset, and removes a renamed file after reading all of it. If a hook
finds its file renamed after its write, it writes the event again; the daemon ignores known events.
"""

import posix
from time import time_ns

from tailhook._core import send_wake_up
from tailhook.stores.atomic import SAFE, state_folder, state_folder_path, sync, write_all

SPOOL_FILE = "events"  # in the private state folder
MAX_SPOOL_FILE_BYTES = 16 << 20  # a file that is larger gets another name
RECORD_START = b'{"event_id":'  # of every record; with it, the record after a cut-off one on the same line is found
WAKE_UP_SOCKET = "poke"  # in `runtime_folder`; hooks of older versions know the wake-up's socket by this name
NO_DAEMON = (2, 111, 61)  # errno if no daemon runs: ENOENT; ECONNREFUSED on Linux and on macOS
RUN_ID_VARIABLE = b"TAILHOOK_RUN_ID"  # environment variable of the command of `tailhook run`
RUN_ENDED = "run_ended"  # the event type of `tailhook run` for the end of its command


def append_record(line: bytes) -> None:
    """Append a line to the spool. line: with its newline. Raises OSError."""
    try:
        fd = open_spool(state_folder_path())
    except FileNotFoundError:
        fd = open_spool(state_folder())
    try:
        write_all(fd, line)
        sync(fd)
        state = posix.fstat(fd)
        is_kept = is_current(state)  # while the file is open, no other file gets its inode
    finally:
        posix.close(fd)
    if not is_kept:
        append_record(line)
    elif state.st_size > MAX_SPOOL_FILE_BYTES:
        rename_full_file(state)


def is_current(state: "posix.stat_result") -> bool:
    """Return whether the file still has the name that hooks append to."""
    try:
        return posix.lstat(f"{state_folder_path()}/{SPOOL_FILE}").st_ino == state.st_ino
    except FileNotFoundError:
        return False


def open_spool(folder: str) -> int:
    """Open the file that hooks append to, and return its descriptor; make the file if it is missing."""
    flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | SAFE
    return posix.open(f"{folder}/{SPOOL_FILE}", flags, 0o600)


def rename_full_file(state: "posix.stat_result") -> None:
    """Rename a full file to a name with a number at its end. The daemon reads the files in the order of the numbers.

    The number contains the process id, because another hook may compute the next number at the same time.
    """
    path = f"{state_folder_path()}/{SPOOL_FILE}"
    try:
        if is_current(state):  # no other hook was faster
            posix.rename(path, f"{path}.{max([time_ns(), *file_numbers()]) + posix.getpid()}")
    except FileNotFoundError:
        pass


def file_numbers() -> list[int]:
    """Return the numbers in the names of the full files: times, or larger ones if the clock was set back."""
    names = [name.rpartition(".") for name in posix.listdir(state_folder_path())]
    return [int(number) for stem, _, number in names if stem == SPOOL_FILE and number.isdecimal()]


# ---- the wake-up -------------------------------------------------------------


def wake_daemon() -> bool:
    """Send the daemon the wake-up datagram: then it reads the spool. Returns False if no daemon runs. Never waits."""
    socket = f"{runtime_folder()}/{WAKE_UP_SOCKET}"
    return send_wake_up(socket.encode("utf-8", "surrogateescape")) not in NO_DAEMON


def runtime_folder(state: str = "") -> str:
    """Return the folder of the sockets: `$XDG_RUNTIME_DIR/tailhook`, or `run` in the private state folder.

    The second one is used if the variable is not set, or if its folder does not exist or belongs to another user. A
    login's folder is deleted at logout, but programs that run on keep the variable. So does the shell of su(1).

    state: the private state folder, "" for the environment's.
    """
    base = posix.environ.get(b"XDG_RUNTIME_DIR", b"").decode("utf-8", "surrogateescape")
    try:
        if base.startswith("/") and posix.stat(f"{base}/.").st_uid == posix.geteuid():
            return f"{base}/tailhook"
    except OSError:
        pass
    return f"{state or state_folder_path()}/run"
