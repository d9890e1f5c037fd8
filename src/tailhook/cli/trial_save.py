"""What the next stop of a loop would get: a hook that cannot save the state lets the agent stop."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tailhook.hook.answer import describe
from tailhook.machines import Verdict
from tailhook.stores.atomic import SAFE
from tailhook.stores.fallback import FileLoop
from tailhook.stores.jwz import MESSAGES_FILE
from tailhook.stores.loop import JwzLoop
from tailhook.stores.ralph import RalphFile

TRIAL_BYTES = 4096  # of a file that is written and removed: as much as a usual state


def judge_next_stop(loop: JwzLoop | FileLoop | RalphFile, decide: Callable[[], "Verdict[Any]"]) -> "Verdict[Any]":
    """Return the verdict of the next stop: an allow if the hook could not read or save what it needs.

    Takes the loop's lock, and writes a temporary file beside the state, if the verdict has something to save.

    decide: returns the machine's verdict. May raise OSError.
    """
    try:
        verdict = decide()
        if verdict.change is not None:
            try_to_save(loop)
    except OSError as error:
        return Verdict("allow", f"the hook would fail: {describe(error)}")
    return verdict


def try_to_save(loop: JwzLoop | FileLoop | RalphFile) -> None:
    """Raise OSError if a hook could not save the state of a loop."""
    folder = loop.path if isinstance(loop, JwzLoop) else str(Path(loop.path).parent)
    with loop.lock():
        if isinstance(loop, JwzLoop):
            path = f"{folder}/{MESSAGES_FILE}"
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | SAFE))
        try:
            with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                file.write(bytes(TRIAL_BYTES))
        except OSError as error:
            error.filename = folder
            raise


def known_goal(loop: JwzLoop | FileLoop) -> str:
    """Return the prompt of a loop's top frame; "" if it is unknown, or cannot be read."""
    try:
        return loop.goal
    except OSError:
        return ""
