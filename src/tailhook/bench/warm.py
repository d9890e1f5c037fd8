"""A pool for the benchmark alone: the user's own is left as it is."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.pool.control import find_pool
from tailhook.pool.installation import POOL_ENTRY, POOLS, real_interpreter, write_installation
from tailhook.pool.serve import ASKED_FLAG

POOL_START_TIMEOUT_S = 10.0


class NoPoolError(TailhookError):
    """No pool can be run here. The message has the reason."""


@contextmanager
def pool_of_bench(folder: Path) -> Iterator[str]:
    """Run a pool with its files in a folder, and yield the path of its client. Raises NoPoolError.

    folder: made if it is missing. Its path should be short: a socket's path has at most 107 bytes.
    """
    clients = folder / POOLS / "bench"
    try:
        client, _ = write_installation(real_interpreter(), str(clients))
    except OSError as error:
        raise NoPoolError(describe(error)) from None
    argv = [real_interpreter(), "-I", "-S", POOL_ENTRY, f"{clients}/", ASKED_FLAG]
    with subprocess.Popen(argv, env={"HOME": str(folder)}, stderr=subprocess.PIPE) as pool:  # noqa: S603 - our own
        try:
            deadline = time.monotonic() + POOL_START_TIMEOUT_S
            while (found := find_pool(str(clients))) is None or found.pid != pool.pid:  # not the user's own
                if pool.poll() is not None or time.monotonic() > deadline:
                    raise NoPoolError("the pool does not start")
                time.sleep(0.005)
            yield client
        finally:
            pool.terminate()
