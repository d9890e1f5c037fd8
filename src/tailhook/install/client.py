"""The native client of this installation: written, tried, and removed."""

import os
import shutil
import subprocess
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tailhook.errors import TailhookError
from tailhook.exits import run_to_end
from tailhook.hook.answer import describe
from tailhook.install.command import client_of
from tailhook.install.hooks import SettingsError, find_ours
from tailhook.install.hooks_file import hooks_files
from tailhook.install.settings import Settings
from tailhook.pool.control import read_sockets_prefix, stop_pools
from tailhook.pool.installation import (
    CLIENT_FILE,
    POOLS,
    built_client,
    client_folder,
    lock_installation,
    real_interpreter,
    remove_dead_sockets,
    remove_sockets_folder,
    write_installation,
)
from tailhook.stores.atomic import remove_file
from tailhook.stores.spool import runtime_folder

TRIAL_TIMEOUT_S = 10.0
LOCK_TIMEOUT_S = 10.0  # for a starting pool to write its files
REMOVAL_TIMEOUT_S = 1.0  # for hooks that began before to write theirs


class NoClientError(TailhookError):
    """The native client does not work here. The message has the reason."""


def client_path() -> str:
    """Return the path of this installation's client, written or not. Raises NoClientError if the package has none."""
    if not Path(built_client()).exists():
        raise NoClientError("this package has no native client: it could not be built (on Windows there is none)")
    try:
        path = f"{client_folder(real_interpreter())}/{CLIENT_FILE}"
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise NoClientError("its path would not be UTF-8, and a hooks file cannot have such a path") from None
    except OSError as error:
        raise NoClientError(describe(error)) from None
    return path


def prepare_client() -> str:
    """Write the client, run it once, and return its path. Raises NoClientError if it does not work here."""
    path = client_path()
    try:
        write_installation(real_interpreter(), keeps_socket=True)
        environment = {"PATH": os.defpath, "TAILHOOK_DISABLE": "1", "TAILHOOK_NO_POOL": "1"}
        done = run_to_end([path, "hook"], stdin=subprocess.DEVNULL, env=environment, timeout=TRIAL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise NoClientError(f"{path} did not end within {TRIAL_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise NoClientError(describe(error)) from None
    if done.returncode or done.stderr:
        said = done.stderr.decode("utf-8", "replace").strip() or f"its exit code is {done.returncode}"
        raise NoClientError(f"{path} does not run: {said}")
    return path


def remove_clients(kept: Collection[str] = ()) -> bool:
    """End the pools of all installations and remove their clients with all their files; return whether there was one.

    kept: the paths of clients that stay.

    Raises OSError.
    """
    folders = client_folders(kept)
    failures = []
    for folder in folders:
        try:
            remove_client_of(folder)
        except OSError as error:
            failures.append(error)
    with suppress(OSError):  # a client stays there
        clients_folder().rmdir()
        state = clients_folder().parent
        for sockets in (f"{runtime_folder(str(state))}/{POOLS}", f"{state}/run/{POOLS}"):
            remove_sockets_folder(sockets)  # those of an installation with no other in its file
    if failures:
        raise failures[0]
    return bool(folders)


def client_folders(kept: Collection[str] = ()) -> list[Path]:
    """Return the folders of the clients of all installations. kept: the paths to leave out."""
    folder = clients_folder()
    return [one for one in folder.glob("*") if one.is_dir() and f"{one}/{CLIENT_FILE}" not in kept]


def clients_folder() -> Path:
    """Return the parent folder of all installations' client folders. It may not exist."""
    return Path(client_folder(real_interpreter())).parent


def remove_client_of(folder: Path) -> None:
    """End the pools of an installation and remove its client's folder and its sockets. Raises OSError."""
    remove_file(f"{folder}/{CLIENT_FILE}")  # from here on no hook starts a pool
    lock = lock_installation(str(folder), LOCK_TIMEOUT_S)  # a pool that was started before leaves without it
    try:
        stop_pools(str(folder))
    finally:  # a pool of another process namespace leaves when it notices this
        if prefix := read_sockets_prefix(str(folder)):
            with suppress(OSError):
                remove_dead_sockets(prefix)
            remove_sockets_folder(prefix.rpartition("/")[0])
        try:
            remove_folder(folder)
        finally:
            os.close(lock)


def remove_folder(folder: Path) -> None:
    """Remove a folder, although hooks that began before may still write their times there. Raises OSError."""
    deadline = time.monotonic() + REMOVAL_TIMEOUT_S
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError:
            if time.monotonic() > deadline:
                raise


def files_by_client() -> dict[str, str]:
    """Return the clients in hooks of the user or of this project, each with a file that names it."""
    found: dict[str, str] = {}
    for file in hooks_files():
        for path in map(file.path, file.paths):
            with suppress(OSError, SettingsError, ValueError):
                text = Settings(file, path, is_changed=False).text_or_new
                found |= {client: path for hook in find_ours(file, text) if (client := client_of(hook.argv))}
    return found
