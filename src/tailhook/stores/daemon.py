"""Shared by hooks and daemon: the names of the daemon's files and sockets, and how it is started.

The code for every event is in `tailhook.stores.spool`: a further module would cost each hook 0.8 % of its time.
"""

import posix
import sys

from tailhook.stores.atomic import read_file, state_folder_path
from tailhook.stores.spool import RUN_ID_VARIABLE, WAKE_UP_SOCKET

# Files in the private state folder.
ARGV_FILE = "daemon-argv"  # the command that starts the daemon; arguments are separated by NUL
ATTEMPT_FILE = "daemon-start"  # the last attempt to start it, with its stderr
REPORTED_FILE = "daemon-start-reported"  # the reason of the last failed attempt that a hook has printed
SETTINGS_FILE = "daemon-settings"  # the settings for a hook's daemon
LOCK_FILE = "daemon-lock"  # locked by the running daemon
TOKEN_FILE, DATABASE_FILE = "token", "plates.db"
# In `runtime_folder`.
HTTP_SOCKET = "http"
SOCKETS = (WAKE_UP_SOCKET, HTTP_SOCKET)
SOCKETS_LOCK_FILE = "lock"
TOKEN_VARIABLE, DATABASE_VARIABLE = b"TAILHOOK_TOKEN", b"TAILHOOK_DB"  # environment variables with its secrets

MAX_REASON_BYTES = 1 << 12  # of the last attempt's output, from its end
OTHERS_WRITE = 0o022  # mode bits
# The package comes after Python's own modules and before all others. The current folder is not in the path.
LAUNCHER = (
    "import sys; sys.path[:1] = (); sys.path.append(sys.argv.pop(1)); import site; site.main();"
    " from tailhook.cli.plates import serve_by_itself; serve_by_itself()"
)


def spawn_daemon(argv: "list[str]", stderr: int | None = None) -> int:
    """Start the daemon in a session of its own; return its process id.

    It does not get these variables: RUN_ID_VARIABLE, the port's token, and those that change Python.

    stderr: a descriptor; /dev/null if it is None.
    """
    variables = environment_without(RUN_ID_VARIABLE, TOKEN_VARIABLE)
    kept = {name: value for name, value in variables if not name.startswith(b"PYTHON")}
    try:
        posix.getcwd()
    except FileNotFoundError:
        posix.chdir("/")  # CPython 3.13 cannot import its own modules in a removed folder
    nothing = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
    files = (nothing, nothing, nothing if stderr is None else stderr)
    actions = [(posix.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(files)]
    try:
        return posix.posix_spawn(argv[0], argv, kept, file_actions=actions, setsid=True)
    finally:
        posix.close(nothing)


def environment_without(*names: bytes) -> "list[tuple[bytes, bytes]]":
    """Return this process's environment variables without some that a child does not need."""
    return [(name, value) for name, value in posix.environ.items() if name not in names]


def daemon_argv() -> "list[str]":
    """Return the saved command that starts the daemon, from an install or the daemon itself; otherwise `own_argv`.

    Raises OSError if the file cannot be read, or if another user may have written it.
    """
    try:
        argv = read_file(f"{state_folder_path()}/{ARGV_FILE}", forbidden=OTHERS_WRITE)
    except FileNotFoundError:
        return own_argv()
    return argv.decode("utf-8", "surrogateescape").split("\0")


def own_argv() -> "list[str]":
    """Return the command that starts the daemon with this interpreter and this package.

    The daemon's packages may not be installed there. Only an attempt shows that.
    """
    package = __file__.removesuffix("/tailhook/stores/daemon.py")
    return [sys.executable, "-E", "-S", "-c", LAUNCHER, package, "plates", "serve", "--no-port"]


def failure_reason(stderr: bytes) -> str:
    """Return why the daemon did not start: its last line on stderr."""
    lines = stderr.decode("utf-8", "replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "").removeprefix("tailhook: ").rstrip(".")
