"""How many instructions a process executes: the processor counts them (perf_event_open), otherwise valgrind."""

import ctypes
import os
import platform
import re
import shutil
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tailhook.bench.processes import run_once
from tailhook.errors import TailhookError
from tailhook.exits import run_to_end

Count = Callable[[Sequence[str], Path, Mapping[str, str]], int]  # of a process: argv, payload, environment

# perf_event_open(2) and linux/perf_event.h. The C library has no function for the system call.
PERF_SYSCALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319}
INSTRUCTIONS = (0, 1)  # PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS
TASK_CLOCK = (1, 1)  # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK: nanoseconds, counted without a hardware counter
ATTRIBUTES = struct.Struct("IIQQQQQIIQ")  # perf_event_attr in its first version
TIMES_TOO = 1 | 2  # read_format: PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING
DISABLED, INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR, ENABLE_ON_EXEC = (1 << bit for bit in (0, 1, 5, 6, 12))
CLOSE_ON_EXEC = 8  # PERF_FLAG_FD_CLOEXEC


class CountError(TailhookError):
    """The instructions of a process cannot be counted. The message has the reason."""


def open_counter(event: tuple[int, int] = INSTRUCTIONS) -> int:
    """Return a descriptor of a counter for this process's future children, in user mode.

    event: type and number.

    Raises OSError if the kernel or the processor cannot count it, or does not allow it.
    """
    number = PERF_SYSCALLS.get(platform.machine()) if sys.platform == "linux" and struct.calcsize("P") == 8 else None
    if number is None:
        raise OSError(f"perf_event_open is not known on {sys.platform}, {platform.machine()}")
    flags = DISABLED | INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | ENABLE_ON_EXEC
    attributes = ATTRIBUTES.pack(event[0], ATTRIBUTES.size, event[1], 0, 0, TIMES_TOO, flags, 0, 0, 0)
    system_call = ctypes.CDLL(None, use_errno=True).syscall
    system_call.restype = ctypes.c_long
    words = (number, ctypes.c_char_p(attributes), 0, -1, -1, CLOSE_ON_EXEC)  # this process, any processor, no group
    fd = system_call(*(ctypes.c_long(word) if isinstance(word, int) else word for word in words))
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"perf_event_open: {os.strerror(error)}")
    return int(fd)


def count_by_processor(
    argv: Sequence[str], payload: Path, env: Mapping[str, str], event: tuple[int, int] = INSTRUCTIONS
) -> int:
    """Return the number of instructions that a process and its children execute in user mode.

    event: counted in place of instructions.

    Raises OSError, and CountError if the processor's counters are in use.
    """
    fd = open_counter(event)
    try:
        run_once(list(argv), payload, env)
        count, enabled_ns, running_ns = memoryview(os.read(fd, 24)).cast("Q")
    finally:
        os.close(fd)
    if not running_ns:
        raise CountError("the processor counted nothing: another program uses its counters")
    return round(count * enabled_ns / running_ns)  # shared counters count only a part of the time


def count_by_valgrind(argv: Sequence[str], payload: Path, env: Mapping[str, str]) -> int:
    """Return the number of instructions that a process and its children execute from start to end.

    Raises OSError, and CountError if valgrind cannot count them.
    """
    valgrind = shutil.which("valgrind") or "valgrind"  # the hook's environment has another PATH
    with payload.open("rb") as stdin:
        done = run_to_end(
            [valgrind, "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=/dev/null", *argv],
            stdin=stdin,
            env={**env, "PYTHONHASHSEED": "0"},
            text=True,
            errors="replace",
        )
    found = re.findall(r"Collected : (\d+)", done.stderr)
    if not found:
        raise CountError(f"valgrind counted nothing: {(done.stderr.splitlines() or ['no output'])[-1]}")
    return sum(map(int, found))


def processor_counts() -> bool:
    """Return whether the processor counts instructions: the counter of some virtual ones stays 0."""
    try:
        return count_by_processor(["true"], Path(os.devnull), {}) > 0
    except (OSError, CountError):
        return False


def instruction_counter(slow: bool) -> Count | None:
    """Return a function that counts the instructions of a process here, None if there is none.

    slow: whether valgrind may be used: it takes a second for a process.
    """
    if processor_counts():
        return count_by_processor
    return count_by_valgrind if slow and shutil.which("valgrind") else None
