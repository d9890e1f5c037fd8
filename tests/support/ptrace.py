"""Run a process and kill it as it enters one of its system calls (Linux, ptrace(2))."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

import pytest

TRACEME, SYSCALL, SETOPTIONS = 0, 24, 0x4200
TRACE_SYSGOOD = 1
STOPPED_BY_SYSCALL = signal.SIGTRAP | 0x80


def run_until(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, stdin: str, is_last: Callable[[int], bool]
) -> tuple[int, int]:
    """Run `argv` to its end, or until it is killed on entering a system call.

    stdin: a file's path; output is thrown away.  is_last: asked on entering each call, by its number (from 1).
    Returns the exit code (-9 when killed) and how many calls it entered.
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("system calls are counted with Linux's ptrace")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
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
        if inside and is_last(entered):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -signal.SIGKILL, entered
