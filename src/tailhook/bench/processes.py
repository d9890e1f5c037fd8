"""Processes, as a host starts a hook: their wall time, their processor time and their instructions."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    """One run of a process, in milliseconds.

    wall: from its start to its end.
    cpu: of its own, in user and system mode. What a worker of the pool does for it is not in it.
    exit_code: negative if a signal ended it.
    """

    wall: float
    cpu: float
    exit_code: int


def run_once(argv: list[str], payload: Path, env: Mapping[str, str]) -> Sample:
    """Run a process with a payload on stdin and nothing that reads its output. Raises OSError."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(payload), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    started = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, env, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    return Sample(wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000, os.waitstatus_to_exitcode(status))


def can_count_instructions() -> bool:
    """Return whether valgrind is installed, which counts the instructions."""
    return shutil.which("valgrind") is not None


def count_instructions(argv: Sequence[str], payload: Path, env: Mapping[str, str]) -> int:
    """Return how many instructions a process executes from its start to its end, with the processes that it starts.

    Raises OSError, and ValueError if valgrind cannot count them.
    """
    with payload.open("rb") as stdin:
        done = subprocess.run(  # noqa: S603 - the command that the caller measures
            ["valgrind", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=/dev/null", *argv],  # noqa: S607
            stdin=stdin,
            env={**env, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.findall(r"Collected : (\d+)", done.stderr)
    if not found:
        raise ValueError(f"valgrind counted nothing: {(done.stderr.splitlines() or ['no output'])[-1]}")
    return sum(map(int, found))
