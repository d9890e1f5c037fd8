"""The files that a hook of ours starts: the native client, the interpreter and the package. Starts nothing."""

import os
from collections.abc import Sequence
from pathlib import Path

from tailhook.hook.answer import describe
from tailhook.install.command import ENTRY, client_of, is_ours
from tailhook.pool.control import read_installation
from tailhook.pool.installation import client_folder_of


def cold_argv(client: str, argv: Sequence[str]) -> list[str]:
    """Return the argv that a client runs if no worker answers. Raises OSError.

    argv: the client's.
    """
    if not os.access(client, os.X_OK):
        raise OSError(f"{client} is missing, or not executable")
    fields = read_installation(client_folder_of(client))
    return [fields[2], "-I", "-S", fields[3], *argv[1:]]


def find_entry(argv: Sequence[str]) -> str:
    """Return the path of the package's entry in an argv of ours."""
    return next(word for word in argv if word.endswith(ENTRY))


def find_missing(interpreter: str, entry: str) -> str:
    """Return why an interpreter or a package is not there, "" if both are."""
    if not Path(interpreter).exists():
        return f"its interpreter does not exist: {interpreter}"
    if not os.access(interpreter, os.X_OK):
        return f"its interpreter is not executable: {interpreter}"
    return "" if Path(entry).exists() else f"its package does not exist: {entry}"


def why_not_startable(argv: Sequence[str]) -> str:
    """Return why a hook cannot start, "" if its files are there or it is not an argv of ours."""
    if not is_ours(argv):
        return ""
    client = client_of(argv)
    try:
        in_python = cold_argv(client, argv) if client else argv
    except OSError as error:
        return f"its client cannot be used: {describe(error)}"
    return find_missing(in_python[0], find_entry(in_python)) if in_python[0].startswith("/") else ""
