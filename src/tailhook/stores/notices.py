"""The notices that a person gets once: a file in the private state folder, with a line for each given notice."""

import posix

from tailhook._core import fingerprint
from tailhook.stores.atomic import SAFE, read_file, replace_file, state_folder, write_all

NOTICES = "notices"
MAX_NOTICES_BYTES = 64 << 10  # then only the newer half stays


def save_notice(*words: str) -> bool:
    """Save that a notice is given now. Return whether it was not given before.

    Saves before the notice is given: a hook that is killed between both loses it, and no hook repeats it. Two hooks at
    once may both return True.

    words: what the notice is about; only a hash of them is saved.

    Raises OSError if it cannot be saved.
    """
    path = f"{state_folder()}/{NOTICES}"
    line = b"%016x" % fingerprint("\0".join(words).encode("utf-8", "surrogatepass"))
    try:
        given = read_file(path)
    except FileNotFoundError:
        given = b""
    if line in given.split():
        return False
    if len(given) > MAX_NOTICES_BYTES:
        replace_file(path, given[-MAX_NOTICES_BYTES // 2 :] + b"\n" + line)
        return True
    fd = posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | SAFE, 0o600)
    try:
        write_all(fd, b"\n" + line)
    finally:
        posix.close(fd)
    return True
