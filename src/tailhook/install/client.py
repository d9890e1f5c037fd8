"""The native client of this installation: written, tried, and removed."""

import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.pool.control import read_installation, stop_pools
from tailhook.pool.installation import (
    CLIENT_FILE,
    HOOK_ENTRY,
    built_client,
    client_folder,
    client_folder_of,
    lock_installation,
    real_interpreter,
    remove_dead_sockets,
    write_installation,
)
from tailhook.stores.atomic import remove_file

TRIAL_TIMEOUT_S = 10.0
LOCK_TIMEOUT_S = 10.0  # in which a pool that is just being started has written its files
REMOVAL_TIMEOUT_S = 1.0  # in which hooks that began before have written theirs


class NoClientError(TailhookError):
    """The native client does not work here. The message has the reason."""


def client_path() -> str:
    """Return where the client of this installation is, or would be. Raises NoClientError if the package has none."""
    if not Path(built_client()).exists():
        raise NoClientError("this package has no native client: it could not be built (on Windows there is none)")
    try:
        return f"{client_folder(real_interpreter())}/{CLIENT_FILE}"
    except OSError as error:
        raise NoClientError(describe(error)) from None


def prepare_client() -> str:
    """Write the client, run it once, and return its path. Raises NoClientError if it does not work here."""
    path = client_path()
    try:
        write_installation(real_interpreter(), keeps_socket=True)
        environment = {"PATH": os.defpath, "TAILHOOK_DISABLE": "1", "TAILHOOK_NO_POOL": "1"}
        done = subprocess.run(  # noqa: S603 - the package's own program
            [path, "hook"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            check=False,
            timeout=TRIAL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise NoClientError(f"{path} did not end within {TRIAL_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise NoClientError(describe(error)) from None
    if done.returncode or done.stderr:
        said = done.stderr.decode("utf-8", "replace").strip() or f"its exit code is {done.returncode}"
        raise NoClientError(f"{path} does not run: {said}")
    return path


def remove_client() -> bool:
    """End the pools of this installation and remove the client with all its files; return whether there was one.

    Also removes what this package has left with another version of Python, if that is gone. Raises OSError.
    """
    folder = Path(client_folder(real_interpreter()))
    exists = folder.exists()
    failures = []
    for one in [folder] * exists + [other for other in folder.parent.glob("*") if is_left_over(other)]:
        try:
            remove_client_of(one)
        except OSError as error:
            failures.append(error)
    with suppress(OSError):  # another installation has its client there
        folder.parent.rmdir()
    if failures:
        raise failures[0]
    return exists


def remove_client_of(folder: Path) -> None:
    """End the pools of an installation and remove its client's folder and its sockets. Raises OSError."""
    remove_file(f"{folder}/{CLIENT_FILE}")  # from here on no hook starts a pool
    lock = lock_installation(str(folder), LOCK_TIMEOUT_S)  # one that was started before leaves without it
    try:
        stop_pools(str(folder))
    finally:  # a pool that another process namespace has leaves when it notices this
        with suppress(OSError, IndexError):
            name = read_installation(str(folder))[1]
            remove_dead_sockets(name)
            Path(client_folder_of(name)).rmdir()
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


def is_left_over(folder: Path) -> bool:
    """Return whether a client's folder is that of this package with a version of Python that is gone."""
    try:
        _, _, interpreter, entry, _ = read_installation(str(folder))
    except (OSError, ValueError):
        return False
    return without_version(entry) == without_version(HOOK_ENTRY) and not (
        Path(interpreter).exists() and Path(entry).exists()
    )


def without_version(path: str) -> str:
    """Return a path without the version in the name of Python's folder, as in `lib/python3.12/site-packages`."""
    return re.sub(r"/python3\.\d+t?/", "/python3/", path)
