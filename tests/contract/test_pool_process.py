"""The pool: workers answer as a cold hook does, keep nothing, and rest without a wake-up."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from support.daemon import wait_for_end
from support.host import in_time, run_on_payload
from support.pool import (
    LINUX,
    STOP,
    WITHOUT_SANITIZER,
    is_alive,
    is_at_rest,
    iteration,
    looping_project,
    switches_of,
    wait_until,
    waiting_hook,
)

from tailhook.pool.control import children_of

pytestmark = WITHOUT_SANITIZER


def test_a_worker_answers_and_doctor_can_count_it(pool):
    pool.stop_until_warm()
    assert pool.ways("Stop")[-1] == "w"


@LINUX
def test_the_workers_parent_of_the_client_is_the_host(home, pool):
    argv = [*pool.argv, "plates"]
    state = home / "state"
    pool.hook({"hook_event_name": "SessionStart", "session_id": "s"}, argv=argv, XDG_STATE_HOME=str(state))
    (line,) = (state / "tailhook" / "events").read_text().splitlines()
    assert json.loads(line)["pid"] == os.getpid()


# ---- between two requests ------------------------------------------------------


@LINUX
def test_a_worker_keeps_nothing_of_a_request(home, pool):
    project = looping_project(home)
    pool.stop_until_warm(cwd=project, SECRET="hunter2")
    wait_until(lambda: pool.status()["workers"] >= 1)
    for pid in pool.workers():
        wait_until(lambda pid=pid: "Umask:\t0077" in Path(f"/proc/{pid}/status").read_text())
        assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
        assert {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)} == {"/dev/null"}
        names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert not [name for name in names if str(home) in name]


@LINUX
def test_a_worker_leaves_no_ended_process_of_a_hook(home, pool):
    state = home / "state" / "tailhook"
    state.mkdir(parents=True, mode=0o700)
    (state / "daemon-argv").write_text("/bin/true")
    argv = [*pool.argv, "plates"]
    env = {"XDG_STATE_HOME": str(state.parent), "TAILHOOK_NO_AUTOSTART": "0"}

    def start(event):
        before = pool.records(event)
        pool.hook({"hook_event_name": event, "session_id": "s"}, argv=argv, **env)
        return "w" in pool.ways_after(before, event) and (state / "daemon-start").exists()

    def is_reaped():
        hook, _ = waiting_hook(pool)  # so another worker answers the stop: each one reaps what it has started
        pool.stop_until_warm()
        hook.communicate("}")
        children = [word for pid in pool.workers() for word in children_of(pid)]
        return all(map(is_alive, children))

    wait_until(lambda: start("SessionStart"))
    wait_for_end(state)
    assert any(is_reaped() for _ in range(20))  # a worker reaps after the host has its answer


@LINUX
def test_a_request_does_not_wake_the_parent(pool):
    pool.stop_until_warm()

    def sleeps_during_five():
        """Run five stops. A client that comes while both workers are busy does wake it, as one on a busy machine."""
        before = switches_of(pool.pid)
        for _ in range(5):
            pool.stop_until_warm()
        return switches_of(pool.pid) <= before + 1

    wait_until(sleeps_during_five)


@LINUX
def test_the_parent_of_a_pool_at_rest_is_not_woken_and_the_pool_is_small(pool):
    pool.stop_until_warm()
    wait_until(lambda: is_at_rest([pool.pid]))
    assert pool.status()["memory"] <= 25 << 20


def test_two_hundred_callers_at_once_count_exactly(home, pool):
    project = looping_project(home)
    payload = json.dumps({**STOP, "cwd": str(project)}).encode()
    hook = partial(run_on_payload, [*pool.argv, "idle"], payload, env=pool.env, cwd=project)
    with ThreadPoolExecutor(200) as threads:
        done = list(threads.map(lambda _: in_time(hook), range(200)))
    assert {hook.returncode for hook in done} == {2}
    assert iteration(project) == 201
    wait_until(lambda: "w" in pool.ways("Stop"))
