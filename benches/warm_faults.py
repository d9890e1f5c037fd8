"""Measures how much later than a cold hook an answer comes if something is wrong with the pool.

usage: warm_faults.py [--rounds N]   (60)

Prints a table; ends with 1 if the median of a fault is later than the goal.
"""

import argparse
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tailhook.bench.cases import CASES, Stop
from tailhook.bench.intervals import P99, estimate
from tailhook.bench.processes import run_once
from tailhook.bench.warm import pool_of_bench
from tailhook.install.command import hook_command
from tailhook.pool.control import find_pool, own_socket, read_installation
from tailhook.pool.installation import POOL_START_FILE, client_folder_of

GOAL_MS = 50.0
FULL = 300  # connections, more than a socket's backlog has places for
LARGE = {f"LARGE_{number}": "x" * 100_000 for number in range(10)}  # 1 MB of environment variables

Fault = Callable[[str], Iterator[Mapping[str, str]]]


def main() -> int:
    """Print a row for each fault; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    is_met = True
    sys.stdout.write("| fault | cold | median over cold | p99 over cold's p99 | goal |\n|-|-:|-:|-:|-:|\n")
    for name, fault in FAULTS.items():
        median, typical, worst = measure(fault, rounds)
        is_met = is_met and typical <= GOAL_MS
        sys.stdout.write(f"| {name} | {median:.1f} ms | {typical:.1f} ms | {worst:.1f} ms | {GOAL_MS:g} ms |\n")
    return 0 if is_met else 1


def measure(fault: Fault, rounds: int) -> tuple[float, float, float]:
    """Return the median of the cold hook, and how much later the faulty warm one is: the median and the p99, in ms."""
    case = next(case for case in CASES if case.machine == "idle" and "no state" not in case.name)
    with tempfile.TemporaryDirectory(prefix="tailhook-faults-") as folder, ExitStack() as stack:
        client = stack.enter_context(pool_of_bench(Path(folder, "pool")))
        stop = Stop(Path(folder, "project"), case, "10 KB")
        stop.check()
        Path(client_folder_of(client), POOL_START_FILE).write_text("\n")  # no hook starts another pool
        more = stack.enter_context(contextmanager(fault)(client_folder_of(client)))
        warm: list[float] = []
        cold: list[float] = []
        for _ in range(rounds):
            for argv, walls in ((hook_command("idle", client), warm), (hook_command("idle"), cold)):
                stop.reset()
                sample = run_once(argv, stop.payload, {**stop.env, **more})
                if sample.exit_code != 2:  # the loop goes on
                    raise SystemExit(f"{argv} ended with {sample.exit_code}")
                walls.append(sample.wall)
    median = estimate(cold).value
    return median, estimate(warm).value - median, estimate(warm, P99).value - estimate(cold, P99).value


# ---- faults: each takes the client's folder and yields more environment variables ----


def no_socket(folder: str) -> Iterator[Mapping[str, str]]:
    """Remove the socket."""
    Path(own_socket(read_installation(folder)[1])).unlink()
    yield {}


def no_folder(folder: str) -> Iterator[Mapping[str, str]]:
    """Remove the folder of the socket."""
    shutil.rmtree(Path(read_installation(folder)[1]).parent)
    yield {}


def no_listener(folder: str) -> Iterator[Mapping[str, str]]:
    """Leave a socket of a pool that has ended."""
    with socket_in_place(folder):
        yield {}


def silent_listener(folder: str) -> Iterator[Mapping[str, str]]:
    """Let another program listen, which never answers."""
    with socket_in_place(folder) as one:
        one.listen(1000)
        yield {}


@contextmanager
def socket_in_place(folder: str) -> Iterator[socket.socket]:
    """Yield a socket that has the path of the one of the pool."""
    path = Path(own_socket(read_installation(folder)[1]))
    path.unlink()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))
        yield one


def stopped(folder: str) -> Iterator[Mapping[str, str]]:
    """Stop all processes of the pool."""
    pool = find_pool(folder)
    assert pool is not None
    processes = [pool.pid, *(pool.workers or ())]
    for pid in processes:  # the parent first: it would end a stopped worker
        os.kill(pid, signal.SIGSTOP)
    yield {}
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def full(folder: str) -> Iterator[Mapping[str, str]]:
    """Stop all processes of the pool, and fill the places of the connections that wait."""
    path = own_socket(read_installation(folder)[1])
    with ExitStack() as stack:
        stack.enter_context(contextmanager(stopped)(folder))
        for _ in range(FULL):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(path)
        yield {}


def large_environment(folder: str) -> Iterator[Mapping[str, str]]:  # noqa: ARG001 - as the others
    """Have more environment variables than a request may have."""
    yield LARGE


FAULTS: Mapping[str, Fault] = {
    "no socket": no_socket,
    "no folder for the socket": no_folder,
    "a socket without a listener": no_listener,
    "another program listens and is silent": silent_listener,
    "all processes of the pool are stopped": stopped,
    "they are stopped, and the backlog is full": full,
    "1 MB of environment variables": large_environment,
}


if __name__ == "__main__":
    sys.exit(main())
