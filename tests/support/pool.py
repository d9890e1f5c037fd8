"""Pools of hook workers for tests, each in a home of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.host import ENVIRONMENT, tailhook

STARTS = 30  # seconds in which a pool starts even on a busy machine


def hook_command(form: str, home: Path, machines: str = "idle") -> list[str]:
    """Return the argv of a form of the hook.  form: "--cold" or "--warm"."""
    done = tailhook("hook-command", form, machines, env={"HOME": str(home)}, cwd=home)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def running_pool(home: Path, **env: str) -> Iterator[subprocess.Popen]:
    """Run a pool for the user with a home, and wait until it listens."""
    argv = [sys.executable, "-m", "tailhook", "pool", "serve"]
    pool = subprocess.Popen(argv, env={**ENVIRONMENT, "HOME": str(home), **env}, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + STARTS
        while not pool_status(home)["running"]:
            assert pool.poll() is None, pool.stderr.read()
            assert time.monotonic() < deadline
        yield pool
    finally:
        pool.terminate()
        pool.communicate(timeout=STARTS)


def pool_status(home: Path) -> dict:
    """Return what `tailhook pool status` prints."""
    done = tailhook("pool", "status", "--json", env={"HOME": str(home)}, cwd=home)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def client_folder(home: Path) -> Path:
    """Return the folder of the only client below a home."""
    (folder,) = (home / ".local" / "state" / "tailhook" / "pool").iterdir()
    return folder


def is_alive(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
