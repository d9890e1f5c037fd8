"""The pool's processes come and go: workers are replaced, grow with the requests, and leave when it is quiet."""

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from support.pool import (
    LINUX,
    STARTS,
    STOP,
    WITHOUT_SANITIZER,
    Pool,
    is_alive,
    is_at_rest,
    set_constants,
    wait_until,
    waiting_hook,
)

pytestmark = [WITHOUT_SANITIZER, LINUX]

FLOOR = 2  # workers that stay
READY_BYTES = 16  # that a worker sends when it has accepted a connection


def answer(pool: Pool) -> tuple[int, str]:
    """Let a worker answer a stop; return its process, and the hook's exit code and stderr in one text."""
    hook, worker = waiting_hook(pool)
    _, stderr = hook.communicate(input='"hook_event_name": "Stop"}', timeout=STARTS)
    return worker, f"{hook.returncode} {stderr}"


def wait_for_replacement(pool: Pool, worker: int) -> None:
    """Wait until a worker has ended and there are as many as there should be."""
    wait_until(lambda: worker not in pool.workers() and len(pool.workers()) >= FLOOR)
    assert is_alive(pool.pid)


# ---- workers that are replaced -------------------------------------------------------


def test_a_worker_is_replaced_after_its_last_request(home, site):
    set_constants(site / "pool" / "worker.py", MAX_REQUESTS=3)
    with Pool(home, package=site) as pool:
        answered = Counter()
        for _ in range(20):
            worker, outcome = answer(pool)
            assert outcome == "0 "
            answered[worker] += 1
            if answered[worker] == 3:
                break
        assert max(answered.values()) == 3
        wait_for_replacement(pool, worker)
        assert answer(pool)[1] == "0 "
        assert pool.end() == ""


def test_a_worker_whose_memory_has_grown_is_replaced(patient_pool):
    patient_pool.stop_until_warm()
    for size, is_replaced in ((1, False), (40, True)):  # MiB
        payload = json.dumps({**STOP, "x": "x" * (size << 20)})[1:]
        hook, worker = waiting_hook(patient_pool)
        _, stderr = hook.communicate(input=payload, timeout=STARTS)
        assert (hook.returncode, stderr) == (0, "")
        if is_replaced:
            wait_for_replacement(patient_pool, worker)
        else:
            answer(patient_pool)
            assert worker in patient_pool.workers()
    assert patient_pool.end() == ""


def test_after_an_exception_that_nothing_had_foreseen_the_worker_is_replaced(home, site):
    with (site / "hook" / "process.py").open("a") as out:
        out.write("\n\ndef ask_machines(*_):\n    raise RuntimeError('broken')\n")
    with Pool(home, package=site) as pool:
        for _ in range(12):  # more than the failed workers that end a pool
            worker, outcome = answer(pool)
            assert outcome == "0 tailhook: RuntimeError: broken. The agent may stop.\n"
            wait_for_replacement(pool, worker)
        assert pool.end() == ""


def test_a_worker_in_which_a_request_left_a_descriptor_open_is_replaced(home, site):
    with (site / "hook" / "process.py").open("a") as out:
        out.write("\n\nask = ask_machines\n\n\ndef ask_machines(*given):\n    posix.dup(2)\n    return ask(*given)\n")
    with Pool(home, package=site) as pool:
        for _ in range(3):
            worker, outcome = answer(pool)
            assert outcome == "0 "
            wait_for_replacement(pool, worker)
        assert pool.end() == ""


# ---- as many workers as there are requests -------------------------------------------


def test_workers_grow_with_the_waiting_requests_and_leave_when_it_is_quiet(home, site):
    quiet_s = 0.5
    set_constants(site / "pool" / "worker.py", QUIET_S=quiet_s, REQUEST_TIMEOUT_S=60.0)
    most = max(4, 2 * os.cpu_count())
    with Pool(home, package=site) as pool, contextlib.ExitStack() as stack:
        wait_until(lambda: len(pool.workers()) == FLOOR)
        callers = []
        for _ in range(most + 2):
            caller = stack.enter_context(socket.socket(socket.AF_UNIX))
            caller.settimeout(STARTS)
            caller.connect(str(pool.path))
            callers.append(caller)
        for caller in callers[:most]:
            assert len(caller.recv(100)) == READY_BYTES  # each of these workers waits for the request
        assert select.select(callers[most:], [], [], 0.3)[0] == []
        assert len(pool.workers()) == most
        for caller in callers[:2]:
            caller.close()
        for caller in callers[most:]:
            assert len(caller.recv(100)) == READY_BYTES  # by a worker that is free again
        assert len(pool.workers()) == most

        started = time.monotonic()
        for caller in callers:
            caller.close()
        wait_until(lambda: len(pool.workers()) == FLOOR)
        assert time.monotonic() - started >= quiet_s
        left = pool.workers()
        wait_until(lambda: is_at_rest([pool.pid, *left], 2 * quiet_s))
        assert pool.workers() == left
        pool.stop_until_warm()
        assert pool.end() == ""


def test_no_process_of_a_pool_at_rest_is_woken(home, site):
    quiet_s = 0.3
    set_constants(site / "pool" / "worker.py", QUIET_S=quiet_s)
    with Pool(home, package=site) as pool:
        pool.stop_until_warm()
        wait_until(lambda: len(pool.workers()) == FLOOR and is_at_rest([pool.pid, *pool.workers()], 2))


# ---- the parent leaves ----------------------------------------------------------------


def test_the_pool_leaves_after_a_long_quiet_time(home, site):
    idle_exit_s = 2.0
    set_constants(site / "pool" / "serve.py", IDLE_EXIT_S=idle_exit_s)
    with Pool(home, package=site) as pool:
        for _ in range(6):
            last = time.monotonic()
            pool.stop_until_warm()
            processes, bound = [pool.pid, *pool.workers()], stamp_of(pool.path)
            with contextlib.suppress(subprocess.TimeoutExpired):
                pool.process.wait(idle_exit_s / 4)
                break  # this program had no processor for so long
        wait_until(lambda: not any(map(is_alive, processes)))
        assert time.monotonic() - last >= idle_exit_s
        assert (pool.process.wait(), pool.end()) == (0, "")
        assert stamp_of(pool.path) != bound  # a hook may have started another pool, if this program had no processor


def stamp_of(path):
    """Return what distinguishes a file from another one of its name, or None if there is none."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_ino, path.stat().st_mtime_ns


@pytest.mark.parametrize("notices", ["at once", "in time"])
@pytest.mark.parametrize("gone", ["the runtime folder", "the folder of the sockets", "the socket", "a socket replaced"])
def test_the_pool_leaves_if_its_socket_is_gone(home, site, gone, notices):
    if notices == "in time":  # as on systems that cannot watch folders
        set_constants(site / "pool" / "serve.py", CHECK_INTERVAL_S=0.2)
        with (site / "pool" / "loaded_files.py").open("a") as out:
            out.write("\n\ndef watch_folders(_):\n    return -1\n")
    runtime = home / "run"
    runtime.mkdir(mode=0o700)
    with Pool(home, package=site, XDG_RUNTIME_DIR=str(runtime)) as pool:
        pool.stop_until_warm()
        processes, path = [pool.pid, *pool.workers()], pool.path
        if gone == "the runtime folder":
            shutil.rmtree(runtime)
        elif gone == "the folder of the sockets":
            shutil.rmtree(path.parent)
        else:
            path.unlink()
        if gone == "a socket replaced":
            pool.listener = socket.socket(socket.AF_UNIX)
            pool.listener.bind(str(path))
        wait_until(lambda: not any(map(is_alive, processes)))
        assert (pool.process.wait(), path.exists()) == (0, gone == "a socket replaced")
        assert pool.end() == ""


# ---- threads ---------------------------------------------------------------------------


def test_each_process_of_a_pool_has_one_thread(pool):
    pool.stop_until_warm()
    for pid in (pool.pid, *pool.workers()):
        assert "Threads:\t1\n" in Path(f"/proc/{pid}/status").read_text()
