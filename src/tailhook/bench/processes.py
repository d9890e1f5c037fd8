"""Processes, started like hooks by a host: their wall time and their processor time."""

import os
import shlex
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tailhook.errors import TailhookError
from tailhook.exits import signals_held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource import struct_rusage

# A process has waited if its wall time is at least so many times its processor time. On Linux 6.18, nearly every bare
# Python with a processor of its own took 1.02 to 1.1 times its processor time, and nearly every one with a shared
# processor 1.75 to 8 times. The count of interruptions (ru_nivcsw of getrusage(2)) does not separate them: on an idle
# computer, too, it is 1 or more.
MIN_WAITED = 1.25
MIN_OWN = 0.9  # of the processor time; if the process used less itself, its children used the rest


class HookTimeoutError(TailhookError):
    """A hook did not end within its time limit."""


class Sample(NamedTuple):
    """One run of a process, in milliseconds.

    wall: from its start to its end.
    cpu: its own, in user and system mode, without the work of a pool's worker.
    exit_code: negative if a signal ended it.
    waited: how long it was ready to run while others had the processor; None if unknown.
    system: how much of `cpu` was in system mode.
    """

    wall: float
    cpu: float
    exit_code: int
    waited: float | None = None
    system: float = 0.0


def run_once(
    argv: list[str],
    payload: Path,
    env: Mapping[str, str],
    limit_s: float | None = None,
    stdout: str = os.devnull,
    stderr: str = os.devnull,
) -> Sample:
    """Run a process in a process group of its own, with a payload on stdin. An exception here ends the group.

    limit_s: after so many seconds the process is ended; None for never. Only the main thread can give a limit.
    stdout, stderr: files for its output.

    Raises OSError, and HookTimeoutError.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(payload), os.O_RDONLY, 0),
        *(
            (os.POSIX_SPAWN_OPEN, fd, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for fd, path in ((1, stdout), (2, stderr))
        ),
    ]
    with time_limit(limit_s, argv):
        pid = 0
        try:
            with signals_held():
                started = time.perf_counter()
                pid = os.posix_spawnp(argv[0], argv, env, file_actions=actions, setpgroup=0)
            ended, status, usage, waited = wait_for(pid)
        except BaseException:
            if pid:
                end_group(pid)
            raise
    cpu, system = (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_stime * 1000
    return Sample((ended - started) * 1000, cpu, os.waitstatus_to_exitcode(status), waited, system)


def wait_for(pid: int) -> "tuple[float, int, struct_rusage, float | None]":
    """Wait until a process ends.

    Returns when it ended (`time.perf_counter`), its status and its resources (wait4(2)), and how many milliseconds it
    waited for a processor; None if that is not known.
    """
    if not hasattr(os, "waitid"):  # macOS has it from CPython 3.13 on
        _, status, usage = os.wait4(pid, 0)
        return time.perf_counter(), status, usage, None
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    ended = time.perf_counter()
    used, waited = scheduled_times(pid)
    _, status, usage = os.wait4(pid, 0)
    is_whole = used >= MIN_OWN * (usage.ru_utime + usage.ru_stime) * 1000
    return ended, status, usage, waited if is_whole else None


def scheduled_times(pid: int) -> tuple[float, float]:
    """Return how long a process that has ended used a processor and waited for one, in milliseconds.

    Its first thread counts alone. If the system does not count this, both are -1.

    Source: Linux, Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat".
    """
    try:
        used, waited, _ = Path(f"/proc/{pid}/schedstat").read_bytes().split()
    except (OSError, ValueError):
        return -1.0, -1.0
    return int(used) / 1e6, int(waited) / 1e6


def has_waited(sample: Sample) -> bool:
    """Return whether a process had no processor for a while: others had it, or it waited for something.

    Some systems measure no processor time for a process of a few milliseconds. Then this is unknown: False.
    """
    return 0 < sample.cpu * MIN_WAITED < sample.wall


@contextmanager
def time_limit(seconds: float | None, argv: list[str]) -> Iterator[None]:
    """Raise HookTimeoutError in the block after some seconds. A timer costs a run nothing; a thread would.

    argv: of the block's process.
    """
    if seconds is None:
        yield
        return

    def expire(*_: object) -> None:
        ended = f"it did not end within {seconds:g} s, and a host ends a hook after this time"
        raise HookTimeoutError(f"{shlex.join(argv)}: {ended}. Make it faster, or leave it out")

    former = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def end_group(pid: int) -> None:
    """Kill a process and its whole group, which it leads, and wait for it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.wait4(pid, 0)
