"""Processes, as a host starts a hook: their wall time and their processor time."""

import os
import time
from collections.abc import Mapping
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
