"""Run a process, or attach to one, and kill it as it enters one of its system calls (Linux, ptrace(2))."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

import pytest

from support.pool import is_alive

TRACEME, ATTACH, DETACH, SYSCALL, SETOPTIONS = 0, 16, 17, 24, 0x4200
TRACE_SYSGOOD = 1
STOPPED_BY_SYSCALL = signal.SIGTRAP | 0x80


def run_until(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, stdin: str, is_last: Callable[[int], bool]
) -> tuple[int, int]:
    """Run `argv` to its end, or until it is killed on entering a system call.

    stdin: a file's path; output is thrown away.  is_last: asked on entering each call, by its number (from 1).
    Returns the exit code (-9 when killed) and how many calls it entered.
    """
    libc = libc_with_ptrace()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            if libc.ptrace(TRACEME, 0, None, None) == 0:
                os.execve(argv[0], list(argv), dict(env))
        finally:
            os._exit(127)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        pytest.skip("this machine does not allow ptrace")
    return follow(libc, pid, is_last)


def kill_when(
    pid: int, begin: Callable[[], None], is_last: Callable[[int], bool], has_ended: Callable[[], bool]
) -> int | None:
    """Attach to a process that waits, and kill it on entering a system call; return how many calls it entered.

    Returns None if the process has ended before it is traced. Nothing is begun then.

    begin: called when the process is traced; makes it work.
    is_last: asked on entering each call, by its number (from 1).
    has_ended: asked too; the process is let go when it is true.
    """
    libc = libc_with_ptrace()
    if libc.ptrace(ATTACH, pid, None, None) < 0:
        if is_alive(pid):
            pytest.skip("this machine does not allow ptrace")
        return None
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        return None
    begin()
    _, entered = follow(libc, pid, is_last, has_ended)
    return entered


def libc_with_ptrace() -> ctypes.CDLL:
    """Return the C library."""
    if not sys.platform.startswith("linux"):
        pytest.skip("system calls are counted with Linux's ptrace")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    return libc


def follow(
    libc: ctypes.CDLL, pid: int, is_last: Callable[[int], bool], has_ended: Callable[[], bool] = lambda: False
) -> tuple[int, int]:
    """Let a stopped process go on from system call to system call; return its exit code and how many calls it entered.

    The exit code is 0 if it was let go.
    """
    libc.ptrace(SETOPTIONS, pid, None, TRACE_SYSGOOD)
    entered, inside, passed_on = 0, False, 0
    while True:
        libc.ptrace(SYSCALL, pid, None, passed_on)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status), entered
        passed_on = 0
        if os.WSTOPSIG(status) != STOPPED_BY_SYSCALL:
            passed_on = os.WSTOPSIG(status)
            continue
        inside = not inside
        entered += inside
        if has_ended():
            libc.ptrace(DETACH, pid, None, None)
            return 0, entered
        if inside and is_last(entered):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -signal.SIGKILL, entered
