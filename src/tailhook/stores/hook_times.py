"""The times of each event's last hooks, and whether they were warm or cold, for `tailhook doctor`.

Each event has a file with RECORDS records of RECORD_BYTES. A new record replaces the oldest. If two hooks end at the
same moment, they may write to the same place; then only one record is lost.
"""

import posix
from time import CLOCK_MONOTONIC, clock_gettime_ns, time_ns

from tailhook.stores.atomic import SAFE, check_folder, state_folder_path

RECORDS = 100
RECORD_BYTES = 16  # big-endian: the time (8, Unix nanoseconds), the duration (7, nanoseconds), the way (1)
TIMES_FOLDER = "times"  # in the client's folder: the pool watches that one, but not the folders below it
CLIENTS_FOLDER = "/tailhook/pool/"  # in the path of a client's folder
MAX_EVENT_CHARS = 40  # of an event; longer names and other characters than letters share one file
WARM = b"w"


def record_hook(folder: str, event: str, started_ns: int, way: bytes) -> None:
    """Write how long a hook took.

    folder: the client's.
    event: its name.
    started_ns: when the client started, by CLOCK_MONOTONIC.
    way: WARM, or a letter of ext/os/request.h: why no worker answered.

    Raises OSError.
    """
    name = event if event.isascii() and event.isalpha() and len(event) <= MAX_EVENT_CHARS else "other"
    duration = max(0, clock_gettime_ns(CLOCK_MONOTONIC) - started_ns)
    record = time_ns().to_bytes(8, "big") + min(duration, 2**56 - 1).to_bytes(7, "big") + way
    path = f"{folder}/{TIMES_FOLDER}/{name}"
    try:
        fd = posix.open(path, posix.O_RDWR | SAFE)
    except FileNotFoundError:
        fd = posix.open(path, posix.O_RDWR | posix.O_CREAT | SAFE, 0o600)
        posix.fchmod(fd, 0o600)  # the caller's umask may have masked the owner's bits
    try:
        found = posix.pread(fd, RECORDS * RECORD_BYTES, 0)
        place = len(found) - len(found) % RECORD_BYTES
        if place == RECORDS * RECORD_BYTES:
            places = range(0, place, RECORD_BYTES)
            # If the clock was set back, records that are now in the future are replaced first.
            place = min(places, key=lambda at: (found[at : at + 8] <= record[:8], found[at : at + 8]))
        posix.pwrite(fd, record, place)
    finally:
        posix.close(fd)


def record_cold(mark: str, event: str) -> None:
    """Write the time of a cold hook that the client started. A failure changes nothing.

    mark: the client's variable in the environment: nanoseconds, a letter for why it is cold, and its folder.
    """
    digits = mark.partition("/")[0]
    folder = mark[len(digits) :]
    try:
        if not folder.startswith(f"{state_folder_path()}/"):
            if CLIENTS_FOLDER not in folder:
                return  # another program has set the variable
            check_folder(folder)  # the client was installed with another XDG_STATE_HOME
        record_hook(folder, event, int(digits[:-1]), digits[-1:].encode())
    except (OSError, ValueError):
        pass


def read_times(folder: str) -> "dict[str, list[tuple[int, int, bytes]]]":
    """Return the records of each event, the oldest first: the time (Unix ns), the duration (ns), and the way.

    folder: the client's.

    Raises OSError.
    """
    times = {}
    for event in sorted(posix.listdir(f"{folder}/{TIMES_FOLDER}")):
        fd = posix.open(f"{folder}/{TIMES_FOLDER}/{event}", posix.O_RDONLY | SAFE)
        try:
            found = posix.pread(fd, RECORDS * RECORD_BYTES, 0)
        finally:
            posix.close(fd)
        records = [found[at : at + RECORD_BYTES] for at in range(0, len(found) - RECORD_BYTES + 1, RECORD_BYTES)]
        times[event] = sorted(
            (int.from_bytes(one[:8], "big"), int.from_bytes(one[8:15], "big"), one[15:]) for one in records
        )
    return times
