"""The spool: events of the hooks, one JSON object a line, until the daemon has taken them.

Hooks append, each in one write, and wait for nobody. A file that is full gets another name, and the next hook makes a
new one. The daemon reads the files from where it was, and removes those with another name once it has read them:
a hook that finds its file renamed after it wrote writes again, and the daemon drops an event that it knows.
"""

import posix
from time import time_ns

from tailhook.stores.atomic import SAFE, state_folder, state_folder_path, sync, write_all

NAME = "events"
MAX_SPOOL_FILE_BYTES = 16 << 20  # bytes from which on a file gets another name


def append(line: bytes) -> None:
    """Append a line, its newline included. Raises OSError."""
    try:
        fd = open_file(state_folder_path())
    except FileNotFoundError:
        fd = open_file(state_folder())
    try:
        write_all(fd, line)
        sync(fd)
        state = posix.fstat(fd)
        is_kept = is_current(state)  # while the file is open, no other one gets its inode
    finally:
        posix.close(fd)
    if not is_kept:
        append(line)
    elif state.st_size > MAX_SPOOL_FILE_BYTES:
        set_aside(state)


def is_current(state: "posix.stat_result") -> bool:
    """Return whether the file still has the name under which hooks find it."""
    try:
        return posix.lstat(f"{state_folder_path()}/{NAME}").st_ino == state.st_ino
    except FileNotFoundError:
        return False


def open_file(folder: str) -> int:
    """Return a descriptor of the file to append to; make the file if it is missing. Raises OSError."""
    flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | SAFE
    return posix.open(f"{folder}/{NAME}", flags, 0o600)


def set_aside(state: "posix.stat_result") -> None:
    """Give the file that is full another name; the number in it is the order in which they are read.

    The process is in it, as another hook may be about to take the next one.
    """
    path = f"{state_folder_path()}/{NAME}"
    try:
        if is_current(state):  # no other hook was faster
            posix.rename(path, f"{path}.{max([time_ns(), *numbers()]) + posix.getpid()}")
    except FileNotFoundError:
        pass


def numbers() -> list[int]:
    """Return the numbers in the names of full files: times, or the next number if the clock was set back."""
    names = [name.rpartition(".") for name in posix.listdir(state_folder_path())]
    return [int(number) for stem, _, number in names if stem == NAME and number.isdecimal()]
