"""Asks another installation for the benchmark."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tailhook.errors import TailhookError
from tailhook.exits import run_to_end
from tailhook.hook.answer import describe

OTHER_TIMEOUT_S = 30.0  # for an installation's answer, even on a busy computer


class OtherError(TailhookError):
    """An installation did not answer. The message has the reason."""


def printed_by(argv: "Sequence[str | Path]", env: Mapping[str, str] | None = None) -> Any:
    """Return the JSON value on the last line of a program's output: startup code may print earlier lines.

    argv: of the program.
    env: its environment, None for this one.

    Raises OtherError.
    """
    try:
        done = run_to_end(argv, env=env, stdin=subprocess.DEVNULL, timeout=OTHER_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise OtherError(f"it did not end within {OTHER_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise OtherError(describe(error)) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").splitlines()
        raise OtherError(said[-1] if said else "no reason given")
    lines = done.stdout.splitlines()
    try:
        return json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        raise OtherError("it printed something else") from None


def is_argv(value: object) -> bool:
    """Return whether a value is the argv of a program.

    >>> [is_argv(value) for value in (["/bin/true", "x"], [], ["/bin/true", 1], "/bin/true")]
    [True, False, False, False]
    """
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)
