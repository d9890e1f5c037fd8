"""A pool for the benchmark alone, and the number of runs that its workers answered."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import tailhook
from tailhook.bench.other import OtherError, is_argv, printed_by
from tailhook.errors import TailhookError
from tailhook.exits import run_to_end, signals_held
from tailhook.hook.answer import describe
from tailhook.pool.control import find_pool
from tailhook.pool.installation import POOLS, client_folder_of
from tailhook.stores.hook_times import RECORDS, WARM, read_times

POOL_START_TIMEOUT_S = 10.0
FIRST_ANSWER_TIMEOUT_S = 3.0
SIGNAL_AT_PARENTS_END = 1  # PR_SET_PDEATHSIG (prctl(2))
RECORD_TIMEOUT_S = 0.05  # a worker records a hook after the host has its answer
# Works with every installation that has a pool: it uses only these names.
PREPARE = """
import json, sys
sys.path[:0] = sys.argv[2:]
from tailhook.pool.installation import POOL_ENTRY, real_interpreter, write_installation
from tailhook.pool.serve import ASKED_FLAG
client, _ = write_installation(real_interpreter(), sys.argv[1])
print(json.dumps([client, real_interpreter(), "-I", "-S", POOL_ENTRY, sys.argv[1] + "/", ASKED_FLAG]))
"""


class NoPoolError(TailhookError):
    """No pool can be run here. The message has the reason."""


@contextmanager
def pool_of_bench(folder: Path, python: str = "") -> Iterator[str]:
    """Run a pool with its files in a folder, and yield the path of its client.

    Raises NoPoolError if it does not start, or if no worker answers a hook.

    folder: made if it is missing. Its path should be short: a socket's path has at most 107 bytes.
    python: an interpreter that imports the pool's tailhook; "" for this one.
    """
    clients = folder / POOLS / "bench"
    # No XDG_RUNTIME_DIR: the user's own pool has its socket there. Its hooks start no pool of their own.
    env = {"HOME": str(folder), "PATH": os.defpath, "TAILHOOK_NO_AUTOSTART": "1"}
    package = [] if python else [str(Path(tailhook.__file__).parents[1])]
    try:
        printed = printed_by([python or sys.executable, "-I", "-c", PREPARE, str(clients), *package], env)
    except OtherError as error:
        raise NoPoolError(str(error)) from None
    if not (is_argv(printed) and len(printed) > 1):
        raise NoPoolError("it printed something else")
    client, *argv = printed
    with ExitStack() as stack:
        with signals_held():
            pool = stack.enter_context(
                subprocess.Popen(  # noqa: S603 - our own
                    argv,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # a reader may wait for the end of our pipe
                    stderr=subprocess.PIPE,
                    preexec_fn=end_with_parent,
                )
            )
            stack.callback(pool.terminate)
        deadline = time.monotonic() + POOL_START_TIMEOUT_S
        while (found := find_pool(str(clients))) is None or found.pid != pool.pid:
            if pool.poll() is not None or time.monotonic() > deadline:
                pool.terminate()
                words = (pool.communicate()[1] or b"").decode("utf-8", "replace").splitlines()
                raise NoPoolError(words[-1].removeprefix("tailhook: ") if words else "the pool does not start")
            time.sleep(0.005)
        wait_for_worker(client, env)
        yield client


def end_with_parent() -> None:
    """Let the system end this process when its parent has ended, even if the parent was killed. Only on Linux.

    For Linux, the parent is the thread that started this process: the main one.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SIGNAL_AT_PARENTS_END, signal.SIGTERM, 0, 0, 0)


def wait_for_worker(client: str, env: dict[str, str]) -> None:
    """Run hooks until a worker answers one. Raises NoPoolError if none does."""
    answered = AnsweredRuns(client)
    deadline = time.monotonic() + FIRST_ANSWER_TIMEOUT_S
    while not answered.count()[""]:
        if time.monotonic() > deadline:
            raise NoPoolError(
                "no worker of the pool answers here. If a limit is set (ulimit), leave it out. "
                "Other reasons:  tailhook doctor"
            )
        began = time.time_ns()
        payload = '{"hook_event_name": "Stop", "session_id": "bench"}'
        run_to_end([client, "hook"], input=payload, env=env, cwd=env["HOME"], text=True)
        answered.add(began, time.time_ns(), "")


class AnsweredRuns:
    """Counts the runs of a client that a worker answered, from the workers' records of the last hooks.

    The runs must follow one another: a record belongs to the run in which its hook began.

    client: its path.
    """

    def __init__(self, client: str) -> None:
        self.folder = client_folder_of(client)
        self.waiting: list[tuple[int, int, str]] = []  # the runs without a record
        self.new_runs = 0  # since the records were read
        self.answered: Counter[str] = Counter()

    def add(self, began: int, ended: int, name: str) -> None:
        """Add a run, from its beginning to its end (Unix nanoseconds).

        name: under which the run is counted.

        Raises NoPoolError if the records cannot be read.
        """
        self.waiting.append((began, ended, name))
        self.new_runs += 1
        if self.new_runs >= RECORDS // 2:  # before new records replace theirs
            self.read()

    def count(self) -> Mapping[str, int]:
        """Return the number of answered runs by name. Waits a moment for the last record.

        Raises NoPoolError if the records cannot be read.
        """
        deadline = time.monotonic() + RECORD_TIMEOUT_S
        self.read()
        while self.waiting and time.monotonic() < deadline:
            time.sleep(0.005)
            self.read()
        return self.answered

    def read(self) -> None:
        """Read the records, and count the runs that have a record. Raises NoPoolError if they cannot be read."""
        self.new_runs = 0
        try:
            times = read_times(self.folder).values()
        except OSError as error:
            raise NoPoolError(describe(error)) from None
        begins = sorted(at - duration for records in times for at, duration, way in records if way == WARM)
        waiting = []
        for began, ended, name in self.waiting:
            place = bisect_left(begins, began)
            if place < len(begins) and begins[place] <= ended:
                self.answered[name] += 1
            else:
                waiting.append((began, ended, name))
        self.waiting = waiting[-RECORDS // 2 :]
