"""Processes of a pool that are killed or stopped: the answer is right, or one line lets the agent go."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from support.host import is_read
from support.pool import (
    LINUX,
    STARTS,
    STOP,
    WITHOUT_SANITIZER,
    Pool,
    is_alive,
    iteration,
    looping_project,
    set_constants,
    stdin_of,
    wait_until,
    waiting_hook,
)

pytestmark = WITHOUT_SANITIZER


def three_stops_after(pool: Pool, project: Path, ended: str, how: signal.Signals) -> list[int]:
    """Send a signal to processes of a pool; each of the next three stops is answered. Returns the processes."""
    pool.stop_until_warm(cwd=project)
    before = iteration(project)
    processes = {"parent": [pool.pid], "workers": pool.workers(), "all": [pool.pid, *pool.workers()]}[ended]
    for pid in processes:
        os.kill(pid, how)
    for number in range(1, 4):
        done = pool.hook(STOP, cwd=project)
        assert done.returncode == 2, done.stderr
        assert iteration(project) == before + number
    return processes


@pytest.mark.parametrize("ended", ["parent", "workers", "all"])
def test_after_a_kill_the_answer_is_right(home, pool, ended):
    processes = three_stops_after(pool, looping_project(home), ended, signal.SIGKILL)
    if ended == "parent":
        wait_until(lambda: not any(map(is_alive, processes)))


@pytest.mark.parametrize("ended", ["parent", "workers", "all"])
def test_with_a_stopped_process_the_answer_is_right(home, pool, ended):
    project = looping_project(home)
    for pid in three_stops_after(pool, project, ended, signal.SIGSTOP):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    pool.stop_until_warm(cwd=project)


@LINUX
def test_a_worker_that_is_killed_in_a_request_lets_the_agent_go_with_one_line(patient_pool):
    patient_pool.stop_until_warm()
    hook, worker = waiting_hook(patient_pool)
    os.kill(worker, signal.SIGKILL)
    _, stderr = hook.communicate(timeout=STARTS)
    assert (hook.returncode, stderr.count("\n")) == (0, 1)
    assert "was killed" in stderr
    patient_pool.stop_until_warm()


@LINUX
@pytest.mark.parametrize("reason", ["an upgrade", "a signal"])
def test_a_pool_that_leaves_waits_for_a_busy_worker_and_not_for_long_if_a_signal_asked(home, site, reason):
    serve = site / "pool" / "serve.py"
    set_constants(serve, WORKER_END_TIMEOUT_S=0.1)
    with Pool(home, package=site) as pool:
        pool.stop_until_warm()
        hook, worker = waiting_hook(pool)
        if reason == "an upgrade":
            serve.write_text(serve.read_text() + "# changed")
        else:
            pool.process.terminate()
        wait_until(lambda: not pool.finds_socket())
        if reason == "a signal":
            wait_until(lambda: not is_alive(worker))
        else:
            time.sleep(0.5)  # time for a wrong kill
        _, stderr = hook.communicate(input='"hook_event_name": "Stop"}', timeout=STARTS)
        assert (hook.returncode, "was killed" in stderr) == (0, reason == "a signal")
        wait_until(lambda: not is_alive(pool.pid))


@LINUX
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_pool_without_descriptors_leaves_and_the_answers_are_right(home, pool, left):
    project = looping_project(home)
    pool.stop_until_warm(cwd=project)
    before = iteration(project)

    def limit(pid):
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + left, used + left))

    limit(pool.pid)  # from now on, a new worker has this limit from its start
    for pid in pool.workers():
        limit(pid)
    answered = 0
    while is_alive(pool.pid):
        done = pool.hook(STOP, cwd=project)
        answered += done.returncode == 2
        assert done.returncode == 2 or "was killed" in done.stderr
    assert iteration(project) == before + answered
    assert answered
    pool.end()


@LINUX
def test_the_end_of_the_client_ends_the_request(patient_pool):
    patient_pool.stop_until_warm()
    hook, worker = waiting_hook(patient_pool)
    pipe = stdin_of(worker)
    hook.kill()
    hook.communicate()
    wait_until(lambda: stdin_of(worker) != pipe)
    patient_pool.stop_until_warm()


@LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_warm_hook_as_it_ends_a_cold_one(patient_pool, number):
    patient_pool.stop_until_warm()
    cold = subprocess.Popen(
        [*patient_pool.cold, "idle"], env=patient_pool.env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    cold.stdin.write("{")
    cold.stdin.flush()
    wait_until(lambda: is_read(cold.stdin))
    warm, worker = waiting_hook(patient_pool)
    pipe = stdin_of(worker)
    ends = []
    for hook in (cold, warm):
        hook.send_signal(number)
        assert hook.wait(STARTS) is not None  # at once, although its payload does not go on
        ends.append((hook.returncode, hook.communicate()[1]))
    line = "tailhook: the hook was interrupted. The agent may stop.\n"
    assert ends[0] == ends[1] == ((0, line) if number == signal.SIGINT else (-number, ""))
    wait_until(lambda: stdin_of(worker) != pipe)


@LINUX
def test_an_interrupt_before_the_request_is_sent_lets_the_agent_go_with_one_line(pool):
    """No worker gets this connection; the client is stopped while it waits for that."""
    pool.end()
    pool.listener = socket.socket(socket.AF_UNIX)
    pool.listener.bind(str(pool.path))
    pool.listener.listen()
    while True:
        hook = subprocess.Popen(
            [*pool.argv, "idle"], env=pool.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        with pool.listener.accept()[0]:
            hook.send_signal(signal.SIGSTOP)
            wait_until(lambda pid=hook.pid: " (stopped)" in Path(f"/proc/{pid}/status").read_text())
            is_client = Path(f"/proc/{hook.pid}/exe").readlink().name == "tailhook-hook"
            hook.send_signal(signal.SIGINT)
            hook.send_signal(signal.SIGCONT)
            _, stderr = hook.communicate(timeout=STARTS)
        if is_client:
            break
    assert (hook.returncode, stderr.count("\n"), "interrupted" in stderr) == (0, 1, True)
