"""Where the daemon's files are: its database, its token, its sockets."""

import getpass
import os
import secrets
import stat
import sys
from pathlib import Path

from tailhook.errors import TailhookError
from tailhook.hook.plates import runtime_folder
from tailhook.stores.atomic import make_folders, read_file, replace_file, state_folder

ARGV = "daemon-argv"  # what the hook starts the daemon with
FLAGS = "daemon-flags"  # what it reads then: not in its argv, which everyone sees, as there may be a password in it
# No variable and no module of the folder that it is started in changes what runs: -E, and no "" in sys.path.
BY_ITSELF = "import sys; del sys.path[0]; from tailhook.cli.plates import serve_by_itself; serve_by_itself()"


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
    """The private state folder, made when it is not there."""
    return Path(state_folder())


def runtime() -> Path:
    """The folder of the sockets, made when it is not there; TailhookError where it is not this user's alone."""
    folder = runtime_folder()
    make_folders(folder)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise TailhookError(f"{folder} is not a folder of yours alone (mode 0700)")
    return Path(folder)


def http_socket() -> Path:
    """Where the daemon answers requests."""
    return Path(runtime_folder()) / "http"


def database_url() -> str:
    """The database, when no other is named."""
    return f"sqlite:///{private_state() / 'plates.db'}"


def token() -> str:
    """The token of the TCP port, made at the first start, readable by the user alone."""
    path = private_state() / "token"
    try:
        if path.is_symlink() or path.stat().st_mode & 0o077:
            raise TailhookError(f"{path} can be read by others, or is a link. Remove it; a new one is made")
        found = path.read_text().strip()
    except FileNotFoundError:
        found = ""
    if not found:
        found = secrets.token_urlsafe(32)
        replace_file(str(path), f"{found}\n".encode())
    return found


def leave_argv() -> None:
    """Leave for the hooks what starts the daemon."""
    argv = [sys.executable, "-E", "-c", BY_ITSELF, "plates", "serve", "--no-port"]
    replace_file(str(private_state() / ARGV), "\0".join(argv).encode("utf-8", "surrogateescape"))


def leave_flags(flags: list[str]) -> None:
    """Leave for the daemon that starts by itself what it serves with."""
    replace_file(str(private_state() / FLAGS), "\0".join(flags).encode("utf-8", "surrogateescape"))


def kept_flags() -> list[str]:
    """The flags that were left, empty for none."""
    try:
        return read_file(str(private_state() / FLAGS)).decode("utf-8", "surrogateescape").split("\0")
    except FileNotFoundError:
        return []
