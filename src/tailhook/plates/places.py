"""Where the daemon's files are: its database, its token, its sockets, and what starts it."""

import errno
import getpass
import os
import secrets
import stat
from pathlib import Path

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.hook.launch import ARGV, ATTEMPT, MAX_REASON_BYTES, failure, own_argv
from tailhook.hook.plates import runtime_folder
from tailhook.stores.atomic import check_folder, make_folders, read_file, remove_file, replace_file, state_folder

READ_BY_OTHERS = 0o077  # mode bits that a private file must not have


def here() -> dict[str, str]:
    """The host and the user of whom this daemon is."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # in a container that knows its user by number alone
        user = str(os.getuid())
    return {"host": os.uname().nodename, "user": user}


def lock() -> Path:
    """The file that the running daemon has locked; in it stand its process and more."""
    return private_state() / "daemon-lock"


def private_state() -> Path:
    """Return the private state folder; make it if it is missing. Raises OSError if another user could change it."""
    return Path(state_folder())


def runtime() -> Path:
    """Return the folder of the sockets; make it if it is missing.

    Raises OSError if another user could change it, and TailhookError if another user may look into it.
    """
    folder = runtime_folder()
    make_folders(folder)
    check_folder(folder)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & READ_BY_OTHERS:
        raise TailhookError(f"{folder} is not a folder of yours alone (mode 0700)")
    return Path(folder)


def http_socket() -> Path:
    """Return where the daemon answers requests. Raises OSError if another user could have put a socket there."""
    folder = runtime_folder()
    check_folder(folder)
    return Path(folder) / "http"


def token() -> str:
    """Return the token of the TCP port. It is made at the first start, and only the user can read it."""
    path = private_state() / "token"
    try:
        found = read_file(str(path), forbidden=READ_BY_OTHERS).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        found = ""
    except OSError as error:
        fault = f"{path} is a symbolic link" if error.errno == errno.ELOOP else describe(error)
        raise TailhookError(f"{fault}. Remove it; a new one is made") from error
    if not found:
        found = secrets.token_urlsafe(32)
        replace_file(str(path), f"{found}\n".encode())
    return found


def database_url() -> str:
    """Return the URL of the user's own database."""
    return f"sqlite:///{private_state() / 'plates.db'}"


# ---- how the daemon is started again -----------------------------------------


def leave_argv() -> None:
    """Write the file from which hooks start the daemon: the argv of this interpreter and this package."""
    replace_file(str(private_state() / ARGV), "\0".join(own_argv()).encode("utf-8", "surrogateescape"))


def failed_start() -> str:
    """Return why the daemon did not start when a hook last tried, "" if it did."""
    try:
        return failure(read_file(str(private_state() / ATTEMPT))[-MAX_REASON_BYTES:])
    except FileNotFoundError:
        return ""


def forget_attempt() -> None:
    """Remove what is kept of the last attempt to start the daemon: it runs now."""
    for name in (ATTEMPT, f"{ATTEMPT}-reported"):
        remove_file(str(private_state() / name))
