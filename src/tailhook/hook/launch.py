"""Starts the daemon by itself, for a hook that has found none."""

import posix
import sys
from time import time

from tailhook._core import flock_within
from tailhook.hook.answer import warn
from tailhook.hook.plates import RUN_ID
from tailhook.stores.atomic import SAFE, read_file, replace_file, state_folder, state_folder_path

ARGV = "daemon-argv"  # the file with what starts the daemon
ATTEMPT = "daemon-start"  # the file of the last attempt to start it
OTHERS_WRITE = 0o022  # mode bits
RETRY_S, RETRY_AFTER_FAILURE_S = 10.0, 60.0  # between two attempts; a failed one takes a second of processor time
MAX_REASON_BYTES = 1 << 12
TOKEN, DATABASE = b"TAILHOOK_TOKEN", b"TAILHOOK_DB"  # variables with the daemon's secrets
# The package comes after Python's own modules and before all others, and nothing comes from the current folder.
BY_ITSELF = (
    "import sys; sys.path[:1] = (); sys.path.append(sys.argv.pop(1)); import site; site.main();"
    " from tailhook.cli.plates import serve_by_itself; serve_by_itself()"
)


def start_daemon() -> None:
    """Start the daemon in the background, unless that was tried a short time ago.

    A file in the state folder has the time of the last attempt, and what the daemon wrote on stderr if it did not
    start. The daemon holds the file's lock until it serves. If the last attempt failed, print why on stderr, once.
    """
    path = f"{state_folder()}/{ATTEMPT}"
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
            complain_once(path, posix.pread(fd, MAX_REASON_BYTES, max(0, size - MAX_REASON_BYTES)))
            if age < RETRY_AFTER_FAILURE_S:
                return
        posix.ftruncate(fd, 0)
        posix.utime(fd)
        spawn(daemon_argv(), fd)
    except OSError as error:
        reason = f"{error}\n".encode("utf-8", "backslashreplace")
        posix.write(fd, reason)
        complain_once(path, reason)
    finally:
        posix.close(fd)


def complain_once(path: str, said: bytes) -> None:
    """Print why the daemon did not start, if the last complaint was another one.  said: what it wrote on stderr."""
    reason = failure(said)
    try:
        if read_file(f"{path}-reported") == reason.encode():
            return
    except FileNotFoundError:
        pass
    replace_file(f"{path}-reported", reason.encode())
    warn(f"tailhook: plates: the daemon does not start: {reason}. The events are kept. Look closer:  tailhook doctor")


def failure(said: bytes) -> str:
    """Return why the daemon did not start: the last line that it wrote on stderr."""
    lines = said.decode("utf-8", "replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "").removeprefix("tailhook: ").rstrip(".")


def spawn(argv: "list[str]", stderr: int | None = None) -> None:
    """Start the daemon without the variables that are a session's, that change Python, or that hold its port's token.

    stderr: a descriptor; /dev/null if it is None.
    """
    kept = {name: value for name, value in environment_without(RUN_ID, TOKEN) if not name.startswith(b"PYTHON")}
    nothing = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
    files = (nothing, nothing, nothing if stderr is None else stderr)
    actions = [(posix.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(files)]
    try:
        posix.posix_spawn(argv[0], argv, kept, file_actions=actions, setsid=True)
    finally:
        posix.close(nothing)


def environment_without(*names: bytes) -> "list[tuple[bytes, bytes]]":
    """Return the variables that this process was started with, without some, for a child that does not need these."""
    return [(name, value) for name, value in posix.environ.items() if name not in names]


def daemon_argv() -> "list[str]":
    """Return what starts the daemon: the argv that an install or the daemon itself left, otherwise `own_argv`.

    Raises OSError if it cannot be read, or if another user may have written it.
    """
    try:
        argv = read_file(f"{state_folder_path()}/{ARGV}", forbidden=OTHERS_WRITE)
    except FileNotFoundError:
        return own_argv()
    return argv.decode("utf-8", "surrogateescape").split("\0")


def own_argv() -> "list[str]":
    """Return what starts the daemon with this interpreter and this package.

    The packages that the daemon needs may not be installed for it: that is known once it is tried.
    """
    package = __file__.removesuffix("/tailhook/hook/launch.py")
    return [sys.executable, "-E", "-S", "-c", BY_ITSELF, package, "plates", "serve", "--no-port"]
