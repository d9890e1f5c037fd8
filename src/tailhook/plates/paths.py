"""The daemon's own paths: its database, token and sockets, and the files that hooks need to start it."""

import errno
import fcntl
import getpass
import os
import secrets
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from tailhook._core import flock_within
from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.stores.atomic import check_folder, make_folders, read_file, remove_file, replace_file, state_folder
from tailhook.stores.daemon import (
    ARGV_FILE,
    ATTEMPT_FILE,
    DATABASE_FILE,
    HTTP_SOCKET,
    LOCK_FILE,
    MAX_REASON_BYTES,
    REPORTED_FILE,
    TOKEN_FILE,
    failure_reason,
    own_argv,
)
from tailhook.stores.spool import runtime_folder

OTHERS_USE = 0o077  # mode bits that a private file must not have
# In the lock file: whether a person started the daemon (with a port), or a hook or a board did.
WITH_PORT, WITHOUT_PORT = "port", "no-port"


def local_identity() -> dict[str, str]:
    """Return the host and the user that this daemon runs on, by the names `host` and `user`."""
    return {"host": os.uname().nodename, "user": user_name()}


@cache
def user_name() -> str:
    """Return the name of this process's user. It is read once: the daemon needs it for each event."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may know its user by number only
        return str(os.getuid())


def state_path() -> Path:
    """Return the private state folder; make it if it is missing. Raises OSError if another user could change it."""
    return Path(state_folder())


def lock_path() -> Path:
    """Return the file that the running daemon has locked. It holds the daemon's process id, start and sockets."""
    return state_path() / LOCK_FILE


def find_lock_owner() -> tuple[int, str]:
    """Return the process id and the kind of the daemon in the lock file; 0 and "" if they are unknown."""
    try:
        pid, _, kind, _ = lock_path().read_text(errors="replace").split(" ", 3)
        return int(pid), kind
    except (OSError, ValueError):
        return 0, ""


def is_locked() -> bool:
    """Return whether a daemon still has the lock."""
    with lock_path().open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def make_runtime_folder() -> Path:
    """Return the folder of the sockets; make it if it is missing.

    Raises OSError if another user could change it, and TailhookError if another user may look into it.
    """
    folder = runtime_folder()
    check_folder(folder)  # checked before a socket is made in another user's folder
    make_folders(folder)
    check_folder(folder)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & OTHERS_USE:
        raise TailhookError(f"{folder} must be a folder that only you can access (mode 0700)")
    return Path(folder)


def http_socket_path() -> Path:
    """Return the path of the daemon's HTTP socket. Raises OSError if another user could write there."""
    folder = runtime_folder()
    check_folder(folder)
    return Path(folder) / HTTP_SOCKET


def load_token() -> str:
    """Return the token of the TCP port; make it if it is missing. Only the user can read its file.

    Raises TailhookError if the file cannot be used.
    """
    path = state_path() / TOKEN_FILE
    try:
        found = read_file(str(path), forbidden=OTHERS_USE).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        found = ""
    except OSError as error:
        fault = f"{path} is a symbolic link" if error.errno == errno.ELOOP else describe(error)
        raise TailhookError(f"{fault}. Remove it; a new one is made") from error
    if not found:
        found = secrets.token_urlsafe(32)
        replace_file(str(path), f"{found}\n".encode())
    return found


def default_database_url() -> str:
    """Return the URL of the user's own database."""
    return f"sqlite:///{state_path() / DATABASE_FILE}"


# ---- how the daemon is started again -----------------------------------------


def write_argv() -> None:
    """Write the argv with which hooks start the daemon: this interpreter and this package.

    If it replaces another one, the record of the last attempt is removed: that one was started with the other argv.
    """
    path, words = state_path() / ARGV_FILE, "\0".join(own_argv()).encode("utf-8", "surrogateescape")
    is_another = path.exists() and path.read_bytes() != words
    replace_file(str(path), words)
    if is_another:
        clear_attempt()


def remove_argv() -> None:
    """Remove the files by which hooks start the daemon."""
    for name in (ARGV_FILE, ATTEMPT_FILE, REPORTED_FILE):
        remove_file(str(state_path() / name))


def wait_for_start(seconds: float) -> None:
    """Wait until a daemon that a hook is just starting serves or has failed, but no longer than some seconds."""
    with suppress(OSError), (state_path() / ATTEMPT_FILE).open("rb") as attempt:
        flock_within(attempt.fileno(), seconds)


def start_failure() -> str:
    """Return why the daemon did not start when a hook last tried, or "" if it did."""
    try:
        return failure_reason(read_file(str(state_path() / ATTEMPT_FILE))[-MAX_REASON_BYTES:])
    except FileNotFoundError:
        return ""


def clear_attempt() -> None:
    """Remove the record of the last attempt to start the daemon, because the daemon runs now."""
    for name in (ATTEMPT_FILE, REPORTED_FILE):
        remove_file(str(state_path() / name))
