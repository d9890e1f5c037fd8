"""The native client of this installation: written, tried, and removed."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.pool.control import read_installation, stop_pool
from tailhook.pool.installation import (
    CLIENT_FILE,
    built_client,
    client_folder,
    client_folder_of,
    real_interpreter,
    write_installation,
)
from tailhook.stores.atomic import remove_file

TRIAL_TIMEOUT_S = 10.0


class NoClientError(TailhookError):
    """The native client does not work here. The message has the reason."""


def client_path() -> str:
    """Return where the client of this installation is, or would be. Raises NoClientError if the package has none."""
    if not Path(built_client()).exists():
        raise NoClientError("this package was installed without the native client: no C compiler was found")
    try:
        return f"{client_folder(real_interpreter())}/{CLIENT_FILE}"
    except OSError as error:
        raise NoClientError(describe(error)) from None


def prepare_client() -> str:
    """Write the client, run it once, and return its path. Raises NoClientError if it does not work here."""
    path = client_path()
    try:
        write_installation(real_interpreter())
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
    """End the pool of this installation and remove the client with all its files; return whether there was one.

    Raises OSError.
    """
    folder = client_folder(real_interpreter())
    if not Path(folder).exists():
        return False
    remove_file(f"{folder}/{CLIENT_FILE}")  # from here on no hook starts a pool
    stop_pool(folder)
    with suppress(OSError, IndexError):
        socket = read_installation(folder)[1]
        remove_file(f"{socket}.lock")
        Path(client_folder_of(socket)).rmdir()
    shutil.rmtree(folder)
    with suppress(OSError):  # another installation has its client there
        Path(folder).parent.rmdir()
    return True
