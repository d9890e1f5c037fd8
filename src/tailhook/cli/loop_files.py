"""The files of a loop, for its commands: errors with path and advice, and whether a hook could save them."""

import argparse
import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tailhook.cli.output import CommandError, Run
from tailhook.hook.answer import describe
from tailhook.machines import Verdict
from tailhook.machines.waiting import describe_waiting
from tailhook.stores.atomic import IS_LINK, SAFE
from tailhook.stores.fallback import FileLoop
from tailhook.stores.jwz import MESSAGES_FILE
from tailhook.stores.loop import JwzLoop
from tailhook.stores.ralph import RalphFile

Loop = JwzLoop | FileLoop | RalphFile

GIVE_ACCESS, MAKE_ROOM = "Give your user access to it.", "Make room on its disk."
ADVICE = {
    errno.EACCES: GIVE_ACCESS,
    errno.EPERM: GIVE_ACCESS,
    errno.EROFS: "Make it writable.",
    errno.ENOSPC: MAKE_ROOM,
    errno.EDQUOT: MAKE_ROOM,
    IS_LINK: "Put a file or a folder of the project in place of the link.",
}
TRIAL_BYTES = 4096  # of a file that is written and removed: as much as a usual state


def judge_next_stop(loop: Loop, fields: Mapping[str, Any], decide: Callable[[], "Verdict[Any]"]) -> "Verdict[Any]":
    """Return the verdict of the next stop: an allow if the loop waits, or the hook could not read or save its state.

    Takes the loop's lock, and writes a temporary file beside the state, if the verdict has something to save.

    fields: of the loop, as they were saved.
    decide: returns the machine's verdict. May raise OSError.
    """
    try:
        verdict = decide()
        if verdict.change is not None:
            try_to_save(loop)
    except OSError as error:
        return Verdict("allow", f"the hook would fail: {describe(error)}")
    if verdict.outcome == "block" and fields.get("began") and (waiting := describe_waiting(fields.get("waits"))):
        return Verdict("allow", waiting)
    return verdict


def try_to_save(loop: Loop) -> None:
    """Raise OSError if a hook could not save the state of a loop."""
    folder = folder_of_files(loop)
    with naming_files(folder), loop.lock():
        if isinstance(loop, JwzLoop):
            path = f"{folder}/{MESSAGES_FILE}"
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | SAFE))
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(TRIAL_BYTES))


@contextmanager
def changing(loop: Loop) -> Iterator[None]:
    """Hold the lock of a loop whose state is read again. Raises OSError with the path of the file."""
    with naming_files(folder_of_files(loop)), loop.lock():
        loop.reload()
        yield


def folder_of_files(loop: Loop) -> str:
    """Return the folder that has the files of a loop."""
    return loop.path if isinstance(loop, JwzLoop) else str(Path(loop.path).parent)


@contextmanager
def naming_files(folder: str) -> Iterator[None]:
    """Give an OSError the path of its file.  folder: of a file that the error names without one."""
    try:
        yield
    except OSError as error:
        if not error.errno and isinstance(error, TimeoutError):
            raise TimeoutError(Path(folder, str(error))) from None
        if error.errno and not isinstance(error, BrokenPipeError):
            error.filename = str(Path(folder, error.filename or ""))
        raise


def advise(run: Run, ways_out: str = "") -> Run:
    """Return a command whose errors of the file system have advice.

    ways_out: what lets the agent stop although the command fails.
    """

    def advised(arguments: argparse.Namespace) -> int | None:
        try:
            return run(arguments)
        except (BrokenPipeError, FileNotFoundError):  # of the output's reader; of a folder that was removed
            raise
        except OSError as error:
            advice = (describe(error), ADVICE.get(error.errno or 0, ""), ways_out)
            raise CommandError(". ".join(part.rstrip(".") for part in advice if part)) from error

    return advised


def known_goal(loop: JwzLoop | FileLoop) -> str:
    """Return the prompt of a loop's top frame; "" if it is unknown, or cannot be read."""
    return known_prompt(lambda: loop.goal)


def known_prompt(read: Callable[[], str]) -> str:
    """Return the prompt that `read` returns; "" if it cannot be read."""
    try:
        return read()
    except OSError:
        return ""
