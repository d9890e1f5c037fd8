"""The pool: workers answer as a cold hook does, and whatever ends or is unusual, the answer is right."""

import contextlib
import fcntl
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from support.host import ENVIRONMENT, SANITIZER, looping, short_folder, tailhook
from support.oracles import jwz
from support.pool import STARTS, Pool, is_alive, wait_until

from tailhook import _core
from tailhook.pool.control import children_of, pool_start_failure

PACKAGE = Path(__file__).parents[2] / "src" / "tailhook"
STOP = {"hook_event_name": "Stop", "session_id": "mine", "last_assistant_message": "Hm."}
pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="a client starts pools without a sanitizer's runtime")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def home():
    """Yield a home whose path is short."""
    with short_folder() as folder:
        yield Path(folder)


@pytest.fixture
def pool(home):
    """Yield a pool of its own for a test."""
    with Pool(home) as one:
        yield one


def looping_project(home: Path, name: str = "project") -> Path:
    """Return a project with a live loop that any session may continue."""
    folder = home / name
    (folder / ".git").mkdir(parents=True)
    jwz.post(folder, json.dumps(looping({"id": "f", "mode": "loop", "iter": 1, "max": 1000})))
    return folder


def iteration(project: Path) -> int:
    return jwz.newest(project)["stack"][0]["iter"]


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
        wait_until(lambda pid=pid: Path(f"/proc/{pid}/cwd").readlink() == Path("/"))
        assert {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)} == {"/dev/null"}
        names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert not [name for name in names if str(home) in name]
        assert "Umask:\t0077" in Path(f"/proc/{pid}/status").read_text()


@LINUX
def test_a_worker_leaves_no_ended_process_of_a_hook(home, pool):
    state = home / "state" / "tailhook"
    state.mkdir(parents=True, mode=0o700)
    (state / "daemon-argv").write_text("/bin/true")
    argv = [*pool.argv, "plates"]
    env = {"XDG_STATE_HOME": str(state.parent), "TAILHOOK_NO_AUTOSTART": "0"}

    def start(event):
        before = len(pool.ways(event))
        pool.hook({"hook_event_name": event, "session_id": "s"}, argv=argv, **env)
        return "w" in pool.ways(event)[before:] and (state / "daemon-start").exists()

    def ended():
        children = [word for pid in pool.workers() for word in children_of(pid)]
        return [pid for pid in children if not is_alive(pid)]

    wait_until(lambda: start("SessionStart"))
    for _ in range(20):
        pool.stop_until_warm()
    assert ended() == []


def switches_of(pid: int) -> int:
    """Return how often a process has waited."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("voluntary_ctxt")).split()[1])


@LINUX
def test_a_request_does_not_wake_the_parent(pool):
    pool.stop_until_warm()
    time.sleep(0.2)
    before = switches_of(pool.pid)
    for _ in range(5):
        pool.stop_until_warm()
    assert switches_of(pool.pid) <= before + 1  # a client that came while both workers were busy


@LINUX
def test_the_parent_of_a_pool_at_rest_is_not_woken_and_the_pool_is_small(pool):
    pool.stop_until_warm()
    time.sleep(0.2)
    before = switches_of(pool.pid)
    time.sleep(1)
    assert switches_of(pool.pid) == before
    assert pool.status()["memory"] <= 25 << 20


# ---- a pool that comes and goes ------------------------------------------------


def test_without_a_pool_the_hook_is_cold_and_starts_one(home):
    with Pool(home, starts=False) as pool:
        project = looping_project(home)
        assert pool.hook(STOP, cwd=project).returncode == 2
        assert iteration(project) == 2
        wait_until(lambda: pool.status()["running"])
        pool.stop_until_warm(cwd=project)


def test_a_warning_of_a_pool_that_started_does_not_count_as_a_failed_start(home):
    (home / ".config" / "tailhook").mkdir(parents=True)
    (home / ".config" / "tailhook" / "config.json").write_text("{")
    with Pool(home, starts=False) as pool:
        pool.hook(STOP)
        wait_until(lambda: pool.status()["running"])
        wait_until(lambda: (pool.folder / "pool-start").read_bytes() == b"\nstarted\n")
        with (pool.folder / "pool-start").open("a") as out:
            out.write("tailhook: pool: RuntimeError: a worker ended\n")
        assert pool_start_failure(str(pool.folder)) == ""


def test_a_start_that_failed_is_tried_again_after_a_minute_only(home):
    with Pool(home, starts=False) as pool:
        entry = pool.folder / "entry.py"
        entry.write_text("import sys; sys.exit('tailhook: pool: no luck')")
        fields = (pool.folder / "installation").read_bytes().split(b"\0")
        (pool.folder / "installation").write_bytes(b"\0".join([*fields[:4], os.fsencode(entry), b""]))
        attempt = pool.folder / "pool-start"
        assert pool.hook(STOP).returncode == 0
        wait_until(lambda: "no luck" in attempt.read_text())
        assert pool.status()["last_start"] == "pool: no luck"
        first = attempt.stat().st_mtime_ns
        pool.hook(STOP)
        assert attempt.stat().st_mtime_ns == first
        for other in (time.time() - 70, time.time() + 3600):  # also after the clock was set back
            os.utime(attempt, (other, other))
            pool.hook(STOP)
            wait_until(lambda: "no luck" in attempt.read_text())
            assert abs(attempt.stat().st_mtime - time.time()) < STARTS


def test_the_configuration_and_a_variable_switch_the_start_off(home):
    with Pool(home, starts=False) as pool:
        assert pool.hook(STOP, TAILHOOK_NO_POOL="1").returncode == 0
        assert not (pool.folder / "pool-start").exists()
        config = home / ".config" / "tailhook" / "config.json"
        config.parent.mkdir(parents=True)
        config.write_text('{"pool": {"autostart": false, "stats": false}}')
        before = pool.ways("Stop")
        pool.hook(STOP)
        assert (pool.folder / "pool-start").exists()
        time.sleep(0.5)
        assert not pool.status()["running"]
        assert pool.ways("Stop") == before


def test_two_pools_of_one_installation_do_not_run(home, pool):
    done = tailhook("pool", "serve", env={"HOME": str(home)}, cwd=home)
    assert (done.returncode, "runs already" in done.stderr) == (1, True)
    argv = [*pool.cold[:3], str(PACKAGE / "pool" / "entry.py"), f"{pool.folder}/"]
    for words, code, lines in (([], 0, 0), (["--asked"], 1, 1)):
        done = subprocess.run(
            [*argv, *words], env={"HOME": str(home)}, capture_output=True, text=True, check=False, timeout=STARTS
        )
        assert (done.returncode, done.stderr.count("\n")) == (code, lines)
    assert "a pool runs already" in done.stderr
    assert pool.status()["pid"] == pool.pid


def test_a_start_that_waits_in_vain_for_another_one_reports_it_if_a_person_asked(home):
    with Pool(home, starts=False) as pool, (pool.folder / "pool-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for words, code, lines in (([], 0, 0), (["--asked"], 1, 1)):
            done = subprocess.run(
                [*pool.serve_argv(), *words], env=pool.env, capture_output=True, text=True, timeout=STARTS
            )
            assert (done.returncode, done.stderr.count("\n")) == (code, lines)
        assert "is being started" in done.stderr


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_pool_that_is_ended_leaves_no_process_and_no_socket(pool, how):
    pool.stop_until_warm()
    processes = [pool.pid, *pool.workers()]
    path = pool.path
    pool.end(how)
    wait_until(lambda: not any(map(is_alive, processes)))
    assert not path.exists()


def test_the_pool_is_stopped_by_a_command(home, pool):
    done = tailhook("pool", "stop", env={"HOME": str(home)}, cwd=home)
    assert (done.returncode, "was stopped" in done.stdout) == (0, True)
    assert not pool.status()["running"]
    assert "No pool runs" in tailhook("pool", "stop", env={"HOME": str(home)}, cwd=home).stdout


def seconds_later(pool: Pool) -> None:
    """Let a client start a pool again at once: it does so once in a minute."""
    os.utime(pool.folder / "pool-start", (time.time() - 70, time.time() - 70))


LIMITED = ["sh", "-c", 'ulimit -f 1000 && exec "$@"', "sh"]


def test_a_caller_with_a_limit_starts_no_pool(home):
    with Pool(home, starts=False) as pool:
        assert pool.hook(STOP, argv=[*LIMITED, *pool.argv, "idle"]).returncode == 0
        assert not (pool.folder / "pool-start").exists()
        done = subprocess.run(
            [*LIMITED, *pool.serve_argv()], env=pool.env, capture_output=True, text=True, timeout=STARTS
        )
        assert (done.returncode, done.stderr.count("\n"), "ulimit" in done.stderr) == (1, 1, True)
        pool.hook(STOP)
        pool.stop_until_warm()


KINDS = {"nice": ["nice", "-n", "5"], "privileges": ["setpriv", "--no-new-privs"]}


@LINUX
@pytest.mark.parametrize("kind", KINDS)
def test_callers_of_different_kinds_have_a_pool_each_and_one_command_ends_all(home, kind):
    if shutil.which(KINDS[kind][0]) is None or subprocess.run([*KINDS[kind], "true"], check=False).returncode:
        pytest.skip("cannot run such a caller")
    with Pool(home, starts=False) as pool:
        own, other = pool.argv, [*KINDS[kind], *pool.argv]
        for pool.argv in (other, own):
            pool.hook(STOP)
            pool.stop_until_warm()
            seconds_later(pool)
        for pool.argv in (other, own):
            pool.stop_until_warm()
        pool.argv = own
        status = pool.status()
        pids = [status["pid"], *(one["pid"] for one in status["others"])]
        assert len(pids) == 2
        done = tailhook("pool", "stop", env=pool.own, cwd=home)
        assert all(str(pid) in done.stdout for pid in pids)
        assert not any(map(is_alive, pids))
        assert os.listdir(pool.path.parent) == []


@LINUX
def test_of_many_kinds_of_callers_the_last_ones_have_pools(home, site):
    serve = site / "pool" / "serve.py"
    text = (
        serve.read_text()
        .replace("MAX_POOLS = 4", "MAX_POOLS = 2")
        .replace("SURPLUS_EXIT_S = 60.0", "SURPLUS_EXIT_S = 0.0")
    )
    serve.write_text(text)
    with Pool(home, package=site) as pool, contextlib.ExitStack() as stack:
        folder = pool.path.parent
        later = []
        for count, nice in enumerate(("1", "2"), 2):
            assert is_alive(pool.pid)
            later.append(subprocess.Popen(["nice", "-n", nice, *pool.serve_argv(), "--asked"], env=pool.env))
            stack.callback(later[-1].communicate)
            stack.callback(later[-1].terminate)
            wait_until(lambda count=count: len(list(folder.iterdir())) == count or not is_alive(pool.pid))
        wait_until(lambda: not is_alive(pool.pid))
        assert [one.poll() for one in later] == [None, None]


@LINUX
def test_a_surplus_pool_leaves_when_it_has_been_quiet_for_long_enough(home, site):
    serve = site / "pool" / "serve.py"
    text = serve.read_text().replace("MAX_POOLS = 4", "MAX_POOLS = 1")
    serve.write_text(text.replace("SURPLUS_EXIT_S = 60.0", "SURPLUS_EXIT_S = 1.5"))
    with Pool(home, package=site) as pool:
        pool.stop_until_warm()
        later = subprocess.Popen(["nice", "-n", "1", *pool.serve_argv(), "--asked"], env=pool.env)
        try:
            wait_until(lambda: not is_alive(pool.pid))
            assert later.poll() is None
        finally:
            later.terminate()
            later.communicate()


@LINUX
def test_a_pool_that_a_hook_starts_may_use_all_processors_and_gets_few_variables(home):
    allowed = os.sched_getaffinity(0)
    with Pool(home, starts=False, SECRET="hunter2") as pool:
        os.sched_setaffinity(0, {min(allowed)})
        try:
            pool.hook(STOP)
        finally:
            os.sched_setaffinity(0, allowed)
        wait_until(lambda: pool.finds_socket())
        pid = pool.status()["pid"]
        assert os.sched_getaffinity(pid) == allowed
        assert b"hunter2" not in Path(f"/proc/{pid}/environ").read_bytes()
        tailhook("pool", "stop", env=pool.own, cwd=home)
        words = [sys.executable, "-m", "tailhook", "pool", "serve"]
        with subprocess.Popen(words, env=pool.env, cwd=home) as served:
            wait_until(lambda: pool.finds_socket())
            names = {one.partition(b"=")[0] for one in Path(f"/proc/{served.pid}/environ").read_bytes().split(b"\0")}
            served.terminate()
        assert names == {b"HOME", b""}


@LINUX
def test_a_pool_has_nothing_open_of_the_process_that_started_it(home):
    with Pool(home, starts=False) as pool:
        read, write = os.pipe()
        subprocess.run([*pool.argv, "idle"], env=pool.env, stdin=subprocess.DEVNULL, pass_fds=[write], check=True)
        os.close(write)
        assert select.select([read], [], [], STARTS)[0], "the pool does not close it"
        os.close(read)
        wait_until(lambda: pool.status()["running"])


@pytest.mark.parametrize("runtime", ["run", ""])
def test_after_the_computer_starts_again_the_next_hook_starts_a_pool(home, runtime):
    folder = home / "run"
    folder.mkdir(mode=0o700)
    with Pool(home, **({"XDG_RUNTIME_DIR": str(folder)} if runtime else {})) as pool:
        pool.stop_until_warm()
        assert (folder in pool.path.parents) == bool(runtime)
        pool.end(signal.SIGKILL)
        shutil.rmtree(folder)
        folder.mkdir(mode=0o700)
        pool.hook(STOP)
        wait_until(lambda: pool.status()["running"])
        pool.stop_until_warm()


def test_callers_with_and_without_a_runtime_folder_share_a_pool(home):
    folder = home / "run"
    folder.mkdir(mode=0o700)
    with Pool(home, starts=False) as pool:
        pool.hook(STOP)
        wait_until(lambda: pool.finds_socket())
        path, pid = pool.path, pool.status()["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not pool.finds_socket())
        seconds_later(pool)
        pool.hook(STOP, XDG_RUNTIME_DIR=str(folder))
        wait_until(lambda: pool.finds_socket())
        assert pool.path == path
        assert list(folder.iterdir()) == []


def test_a_new_hook_command_leaves_the_running_pool_where_it_is(home, pool):
    folder = home / "run"
    folder.mkdir(mode=0o700)
    path = pool.path
    done = tailhook("hook-command", "--warm", "idle", env={"HOME": str(home), "XDG_RUNTIME_DIR": str(folder)}, cwd=home)
    assert done.returncode == 0
    assert pool.path == path
    assert list(folder.iterdir()) == []
    pool.stop_until_warm()


# ---- processes that are killed or stopped ----------------------------------------


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


def stdin_of(pid: int) -> str:
    """Return what a process has as stdin, "" if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/fd/0")
    except OSError:
        return ""


def waiting_hook(pool: Pool) -> tuple[subprocess.Popen, int]:
    """Return a warm hook and its worker, which waits for the end of the payload."""
    argv = [*pool.argv, "idle"]
    while True:
        hook = subprocess.Popen(argv, env=pool.env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pipe = os.readlink(f"/proc/self/fd/{hook.stdin.fileno()}")
        hook.stdin.write("{")
        hook.stdin.flush()
        deadline = time.monotonic() + 1  # the hook waits two seconds for its payload
        while time.monotonic() < deadline:
            for pid in pool.workers():
                if stdin_of(pid) == pipe:
                    return hook, pid
        hook.communicate(timeout=STARTS)  # it is a cold one: no worker was ready in time


@LINUX
def test_a_worker_that_is_killed_in_a_request_lets_the_agent_go_with_one_line(pool):
    pool.stop_until_warm()
    hook, worker = waiting_hook(pool)
    os.kill(worker, signal.SIGKILL)
    _, stderr = hook.communicate(timeout=STARTS)
    assert (hook.returncode, stderr.count("\n")) == (0, 1)
    assert "was killed" in stderr
    pool.stop_until_warm()


@LINUX
@pytest.mark.parametrize("reason", ["an upgrade", "a signal"])
def test_a_pool_that_leaves_waits_for_a_busy_worker_and_not_for_long_if_a_signal_asked(home, site, reason):
    serve = site / "pool" / "serve.py"
    serve.write_text(serve.read_text().replace("WORKER_END_TIMEOUT_S = 10.0", "WORKER_END_TIMEOUT_S = 0.1"))
    with Pool(home, package=site) as pool:
        pool.stop_until_warm()
        hook, _ = waiting_hook(pool)
        if reason == "an upgrade":
            serve.write_text(serve.read_text() + "# changed")
        else:
            pool.process.terminate()
        wait_until(lambda: not pool.finds_socket())
        time.sleep(0.5)
        _, stderr = hook.communicate(input='"hook_event_name": "Stop"}', timeout=STARTS)
        assert (hook.returncode, "was killed" in stderr) == (0, reason == "a signal")
        wait_until(lambda: not is_alive(pool.pid))


@LINUX
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_pool_without_descriptors_leaves_and_the_answers_are_right(home, pool, left):
    project = looping_project(home)
    pool.stop_until_warm(cwd=project)
    before = iteration(project)
    for pid in [pool.pid, *pool.workers()]:
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + left, used + left))
    answered = 0
    while is_alive(pool.pid):
        done = pool.hook(STOP, cwd=project)
        answered += done.returncode == 2
        assert done.returncode == 2 or "was killed" in done.stderr
    assert iteration(project) == before + answered
    assert answered
    pool.end()


@LINUX
def test_the_end_of_the_client_ends_the_request(pool):
    pool.stop_until_warm()
    hook, worker = waiting_hook(pool)
    pipe = stdin_of(worker)
    hook.kill()
    hook.communicate()
    wait_until(lambda: stdin_of(worker) != pipe)
    pool.stop_until_warm()


@LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_warm_hook_as_it_ends_a_cold_one(pool, number):
    pool.stop_until_warm()
    cold = subprocess.Popen(
        [*pool.cold, "idle"], env=pool.env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    cold.stdin.write("{")
    cold.stdin.flush()
    wait_until(lambda: fcntl.ioctl(cold.stdin, termios.FIONREAD, bytes(4)) == bytes(4))  # it has read that
    warm, worker = waiting_hook(pool)
    pipe = stdin_of(worker)
    ends = []
    for hook in (cold, warm):
        hook.send_signal(number)
        _, stderr = hook.communicate(timeout=STARTS)
        ends.append((hook.returncode, stderr.count("\n")))
    assert ends[0] == ends[1] == ((0, 1) if number == signal.SIGINT else (-number, 0))
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


def test_two_hundred_callers_at_once_count_exactly(home, pool):
    project = looping_project(home)
    payload = json.dumps({**STOP, "cwd": str(project)})
    hooks = []
    for _ in range(200):
        hook = subprocess.Popen(
            [*pool.argv, "idle"], env=pool.env, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        hook.stdin.write(payload)
        hook.stdin.close()
        hooks.append(hook)
    assert {hook.wait(timeout=60) for hook in hooks} == {2}
    assert iteration(project) == 201
    assert "w" in pool.ways("Stop")


# ---- unusual surroundings ------------------------------------------------------


def spoil_socket(pool, how):
    path = pool.path
    if how == "a file":
        path.unlink()
        path.write_text("")
    elif how == "another program":
        path.unlink()
        pool.listener = socket.socket(socket.AF_UNIX)
        pool.listener.bind(str(path))
        pool.listener.listen()
    elif how == "a folder for all":
        path.parent.chmod(0o755)
    elif how == "no folder":
        shutil.rmtree(path.parent)
    elif how == "a link":
        moved = path.parent.with_name("moved")
        path.parent.rename(moved)
        path.parent.symlink_to(moved)


@pytest.mark.parametrize("how", ["a file", "another program", "a folder for all", "no folder", "a link"])
def test_a_socket_that_is_not_the_pools_is_not_used(home, pool, how):
    project = looping_project(home)
    spoil_socket(pool, how)
    before = pool.ways("Stop")
    done = pool.hook(STOP, cwd=project)
    assert (done.returncode, iteration(project)) == (2, 2)
    assert pool.ways("Stop")[len(before) :] != ["w"]


def test_a_full_backlog_makes_the_hook_cold(home, pool):
    project = looping_project(home)
    for pid in [pool.pid, *pool.workers()]:
        os.kill(pid, signal.SIGSTOP)
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(str(pool.path))
        assert pool.hook(STOP, cwd=project).returncode == 2
        for pid in [pool.pid, *pool.workers()]:
            with contextlib.suppress(ProcessLookupError):  # the parent ends workers that it finds stopped
                os.kill(pid, signal.SIGCONT)
    assert iteration(project) == 2
    pool.stop_until_warm(cwd=project)


def test_clients_that_send_nothing_or_nonsense_get_no_answer_and_harm_nothing(home, pool):
    for data in (b"", b"x", b"x" * 200_000, bytes(40)):
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(STARTS)
            one.connect(str(pool.path))
            assert len(one.recv(100)) == 16
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                one.sendall(data)
                one.shutdown(socket.SHUT_WR)
                assert one.recv(100) == b""
    pool.stop_until_warm()


def test_a_client_that_sends_too_late_runs_the_cold_hook(pool):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(STARTS)
        one.connect(str(pool.path))
        assert len(one.recv(100)) == 16
        assert one.recv(100) == b""  # after a second
        with pytest.raises(BrokenPipeError):
            one.sendall(b"x")
    pool.stop_until_warm()


LIMITS = {"file size": "ulimit -f 1000", "descriptors": "ulimit -n 30", "memory": "ulimit -v 4000000"}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_of_the_caller_makes_the_hook_cold(home, pool, limit):
    pool.stop_until_warm()
    before = pool.ways("Stop")
    argv = ["sh", "-c", f'{LIMITS[limit]} && exec "$@"', "sh", *pool.argv, "idle"]
    assert pool.hook(STOP, argv=argv).returncode == 0
    assert pool.ways("Stop")[len(before) :] == ["u"]


@pytest.mark.skipif(not shutil.which("setpriv") or os.getuid() != 0, reason="cannot become another user")
def test_another_user_gets_no_answer_from_the_pool(home, pool):
    home.chmod(0o755)
    for folder in (pool.folder, *pool.folder.parents):
        if home in folder.parents:
            folder.chmod(0o755)
    (pool.folder / "tailhook-hook").chmod(0o755)
    (pool.folder / "installation").chmod(0o644)
    pool.stop_until_warm()
    before = len(pool.ways("Stop"))
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *pool.argv, "idle"]
    assert pool.hook(STOP, argv=argv).returncode == 0
    assert pool.ways("Stop")[before:].count("w") == 0


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")


@needs_root
def test_nothing_is_made_in_the_folders_of_another_user(home):
    """As in the shell of su(1), which keeps XDG_RUNTIME_DIR, or with the client of another user."""
    theirs = home / "run"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 65534, 65534)
    with Pool(home, starts=False, XDG_RUNTIME_DIR=str(theirs)) as pool:
        os.chown(pool.folder, 65534, 65534)
        assert pool.hook(STOP).returncode == 0
        assert not (pool.folder / "pool-start").exists()
        os.chown(pool.folder, os.getuid(), os.getgid())
        pool.hook(STOP)
        pool.stop_until_warm()
    assert list(theirs.iterdir()) == []


@needs_root
def test_without_proc_the_hook_is_cold(home, pool):
    project = looping_project(home)
    argv = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*argv, "true"], capture_output=True, check=False).returncode:
        pytest.skip("cannot mount anything here")
    assert pool.hook(STOP, cwd=project, argv=[*argv, *pool.argv, "idle"]).returncode == 2
    assert iteration(project) == 2
    pool.end()
    assert pool.hook(STOP, cwd=project, argv=[*argv, *pool.argv, "idle"]).returncode == 2
    assert pool.ways("Stop")[-1] == "u"
    assert (pool.folder / "pool-start").read_bytes() == b""
    done = subprocess.run([*argv, *pool.serve_argv()], env=pool.env, capture_output=True, text=True, timeout=STARTS)
    assert (done.returncode, done.stderr.count("\n"), "no /proc" in done.stderr) == (1, 1, True)


@needs_root
def test_a_pool_of_another_process_namespace_is_named_as_such_and_uninstall_goes_on(home, pool):
    argv = ["unshare", "--fork", "--pid", "--mount-proc", sys.executable]
    if not shutil.which("unshare") or subprocess.run([*argv, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("cannot make a namespace here")

    def run(*words):
        return subprocess.run([*argv, *words], env=pool.env, cwd=home, capture_output=True, text=True, timeout=STARTS)

    done = run("-m", "tailhook", "pool", "serve")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "runs already: in another process namespace" in done.stderr
    assert "in another process namespace" in run("-m", "tailhook", "pool", "status").stdout
    former = pool.folder.with_name("former")  # with a Python that is gone
    shutil.copytree(pool.folder, former)
    fields = (former / "installation").read_bytes().split(b"\0")
    (former / "installation").write_bytes(b"\0".join([fields[0], b"/gone/s", b"/gone/python3.9", *fields[3:]]))
    done = run("-c", "from tailhook.install.client import remove_client; remove_client()")
    assert (done.returncode, "in another process namespace" in done.stderr) == (1, True)
    assert not pool.folder.exists()
    assert not former.exists()
    wait_until(lambda: not is_alive(pool.pid))


@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_a_large_environment_is_answered(home, pool, size):
    project = looping_project(home)
    large = {f"LARGE_{number}": "x" * 50_000 for number in range(size // 50_000)}
    assert pool.hook(STOP, cwd=project, **large).returncode == 2
    assert iteration(project) == 2


def test_a_line_that_the_host_does_not_read_changes_nothing(pool):
    (pool.folder / "installation").unlink()
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*pool.argv, "idle"], env=pool.env, stdin=subprocess.DEVNULL, stderr=write, check=False)
    os.close(write)
    assert done.returncode == 0


def test_stdin_may_be_closed_a_directory_or_a_terminal(home, pool):
    for redirect in ("<&-", "< /", ">&-"):
        script = f'exec "$@" {redirect}'
        done = subprocess.run(
            ["sh", "-c", script, "sh", *pool.argv, "idle"], env=pool.env, cwd=home, check=False, timeout=STARTS
        )
        assert done.returncode == 0
    ours, theirs = pty.openpty()
    try:
        hook = subprocess.Popen([*pool.argv, "idle"], env=pool.env, cwd=home, stdin=theirs)
        os.write(ours, b"{}\n")
        assert hook.wait(timeout=STARTS) == 0
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_folder_may_be_gone_or_have_a_name_that_is_not_utf_8(home, pool):
    gone = home / "gone"
    gone.mkdir()
    script = f'cd {gone}; rmdir {gone}; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *pool.argv, "idle"], env=pool.env, input=json.dumps(STOP).encode(), check=False
    )
    assert done.returncode == 0
    odd = os.fsdecode(b"caf\xe9")
    project = looping_project(home, odd)
    assert pool.hook(STOP, cwd=project).returncode == 2
    assert iteration(project) == 2


def test_without_its_first_argument_the_client_does_nothing(home, pool):
    """A host that does not pass on the arguments would get the answer for another one."""
    project = looping_project(home)
    done = pool.hook(STOP, cwd=project, argv=pool.argv[:1])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1)
    assert iteration(project) == 1


@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"tailhook-hook 1\0/s\0/p\0", b"x" * 100_000])
def test_a_damaged_installation_file_lets_the_agent_go_with_one_line(home, pool, content):
    path = pool.folder / "installation"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    done = pool.hook(STOP)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1)
    assert "tailhook install" in done.stderr


# ---- upgrades --------------------------------------------------------------------


@pytest.fixture
def site(home):
    """Return a copy of the package that a test may change."""
    return shutil.copytree(PACKAGE, home / "site" / "tailhook", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.mark.parametrize("change", ["a module is written", "the core is replaced", "a module is removed"])
def test_an_upgrade_ends_the_pool_and_the_next_one_is_new(home, site, change):
    with Pool(home, package=site) as pool:
        project = looping_project(home)
        pool.stop_until_warm(cwd=project)
        before = iteration(project)
        if change == "a module is written":
            with (site / "machines" / "idle.py").open("a") as out:
                out.write("\n# changed\n")
        elif change == "the core is replaced":
            core = site / Path(_core.__file__).name  # other interpreters' may stand beside it
            shutil.copy(core, site / "new")
            (site / "new").rename(core)
        else:
            (site / "hook" / "hosts" / "cursor.py").unlink()
        ways = pool.ways("Stop")
        assert pool.hook(STOP, cwd=project).returncode == 2
        assert iteration(project) == before + 1
        assert "w" not in pool.ways("Stop")[len(ways) :]
        wait_until(lambda: not is_alive(pool.pid))
        with contextlib.suppress(FileNotFoundError):
            (pool.folder / "pool-start").unlink()
        pool.hook(STOP, cwd=project)
        wait_until(lambda: pool.finds_socket())
        pool.stop_until_warm(cwd=project)


@pytest.mark.parametrize("name", [".#idle.py", "lost.py"])
def test_a_link_to_nowhere_in_the_package_keeps_no_pool_from_starting(home, site, name):
    for folder in ("", "machines"):
        (site / folder / name).symlink_to("nowhere")
    with Pool(home, package=site) as pool:
        pool.stop_until_warm()


@pytest.mark.parametrize("change", ["a folder above is renamed", "a link is changed"])
def test_a_pool_leaves_if_another_package_has_its_path(home, site, change):
    for version in ("first", "second"):
        shutil.copytree(site, home / version / "tailhook")
    current = home / "current"
    if change == "a link is changed":
        current.symlink_to("first")
    else:
        (home / "first").rename(current)
    with Pool(home, package=current / "tailhook") as pool:
        pool.stop_until_warm()
        ways = pool.ways("Stop")
        if change == "a link is changed":
            (home / "new").symlink_to("second")
            (home / "new").rename(current)
        else:
            current.rename(home / "old")
            (home / "second").rename(current)
        assert pool.hook(STOP).returncode == 0
        assert "w" not in pool.ways("Stop")[len(ways) :]
        wait_until(lambda: not is_alive(pool.pid))
        pool.hook(STOP)
        wait_until(lambda: pool.finds_socket())
        pool.stop_until_warm()


def test_an_upgrade_while_a_pool_starts_ends_it(home, site):
    """The change comes when a module that is already loaded is replaced, before the last ones are loaded."""
    loaded = str(site / "stores" / "atomic.py")
    with (site / "pool" / "worker.py").open("a") as out:
        out.write(f"\nwith open({loaded!r}, 'a') as one:\n    one.write('# changed')\n")
    with Pool(home, package=site, starts=False) as pool:
        done = subprocess.run(
            [*pool.serve_argv(), "--asked"], env=pool.env, capture_output=True, text=True, check=False, timeout=5
        )
        assert (done.returncode, "is being changed" in done.stderr) == (1, True)


def test_an_upgrade_leaves_no_socket_of_a_pool_that_was_killed(home, site):
    with Pool(home, package=site) as pool:
        before = pool.path
        pool.end(signal.SIGKILL)
        init = site / "__init__.py"
        init.write_text(re.sub(r'__version__ = "[^"]*"', '__version__ = "9.9.9"', init.read_text()))
        pool.hook(STOP)
        wait_until(lambda: pool.finds_socket())
        assert pool.path != before
        assert [one.name for one in before.parent.iterdir()] == [pool.path.name]


def test_a_removed_environment_lets_the_agent_go_with_one_line_and_ends_the_pool(home, site):
    with Pool(home, package=site) as pool:
        pool.stop_until_warm()
        processes = [pool.pid, *pool.workers()]
        shutil.rmtree(site)
        done = pool.hook(STOP)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1)
        assert "is missing" in done.stderr
        wait_until(lambda: not any(map(is_alive, processes)))


# ---- install and uninstall ---------------------------------------------------------


def test_install_gives_a_warm_hook_and_uninstall_leaves_nothing(home):
    (home / "project" / ".git").mkdir(parents=True)

    def run(*words):
        done = tailhook(*words, env={"HOME": str(home)}, cwd=home / "project")
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "the warm form" in run("install", "--yes", "--block-cap", "0")
    assert "Nothing to change" in run("install", "--yes", "--block-cap", "0")
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    hook = settings["hooks"]["Stop"][0]["hooks"][0]
    client = Path(hook["command"])
    assert (client.name, hook["args"][0]) == ("tailhook-hook", "hook")
    assert stat.S_IMODE(client.stat().st_mode) == 0o700
    env = {**ENVIRONMENT, "HOME": str(home)}
    done = subprocess.run([client, *hook["args"]], env=env, input=json.dumps(STOP), text=True, check=False)
    assert done.returncode == 0
    wait_until(lambda: json.loads(run("pool", "status", "--json"))["running"])
    facts = json.loads(run("doctor", "--json"))
    assert [one for one in facts["findings"] if one["check"] == "pool" and "a pool runs" in one["what"]]
    assert any("warm_ms" in one["figures"] for one in facts["findings"])
    pid = json.loads(run("pool", "status", "--json"))["pid"]
    former = client.parent.with_name("former")  # with a Python that is gone
    shutil.copytree(client.parent, former)
    fields = (former / "installation").read_bytes().split(b"\0")
    (former / "installation").write_bytes(b"\0".join([fields[0], b"/gone/s", b"/gone/python3.9", *fields[3:]]))
    dead = home / ".local" / "state" / "tailhook" / "run" / "pool" / f"{Path(os.fsdecode(fields[1])).name}.0badcafe"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(dead))
    assert "The pool was ended" in run("uninstall", "--yes")
    assert not is_alive(pid)
    left = [path for path in (home / ".local").rglob("*") if "pool" in str(path)]
    assert left == []


def test_an_uninstall_while_a_pool_starts_leaves_nothing(home, site):
    """The pool has found its client, and has not yet written its files."""
    installation = site / "pool" / "installation.py"
    begin = "    program = read_file(built_client()"
    text = installation.read_text()
    assert begin in text
    installation.write_text(text.replace(begin, f"    __import__('time').sleep(0.5)\n{begin}"))
    code = f"import sys; sys.path.insert(0, {str(site.parent)!r}); import tailhook.install.client as one; "
    with Pool(home, package=site, starts=False) as pool:
        folder, sockets = pool.folder, pool.path.parent
        with subprocess.Popen(pool.serve_argv(), env=pool.env, stderr=subprocess.PIPE, text=True) as starting:
            time.sleep(0.25)
            words = [sys.executable, "-I", "-c", f"{code}one.remove_client()"]
            done = subprocess.run(words, env=pool.env, capture_output=True, text=True, check=False, timeout=STARTS)
            assert (done.returncode, done.stderr) == (0, "")
            starting.wait(timeout=STARTS)
        assert (folder.exists(), sockets.exists()) == (False, False)


def test_a_hook_starts_no_pool_without_its_client(home):
    with Pool(home, starts=False) as pool:
        argv, sockets = pool.serve_argv(), pool.path.parent
        for removed in (pool.folder / "tailhook-hook", pool.folder):
            removed.unlink() if removed.is_file() else shutil.rmtree(removed)
            done = subprocess.run(argv, env=pool.env, capture_output=True, text=True, check=False, timeout=STARTS)
            assert (done.returncode, done.stderr) == (0, "")
        assert (pool.folder.exists(), list(sockets.iterdir())) == (False, [])


def test_the_cold_form_can_be_installed_and_the_warm_one_again(home):
    def command(*words):
        done = tailhook("install", "--yes", *words, env={"HOME": str(home)}, cwd=home)
        assert done.returncode == 0, done.stderr
        return json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]

    assert "python" in Path(command("--cold")).name
    assert Path(command()).name == "tailhook-hook"
    assert "python" in Path(command("--cold")).name


def test_the_hook_command_hands_on_to_the_client(home, pool):
    pool.stop_until_warm()
    project = looping_project(home)
    for _ in range(20):
        before = len(pool.ways("Stop"))
        done = tailhook("hook", "idle", env={"HOME": str(home)}, cwd=project, stdin=json.dumps(STOP))
        assert done.returncode == 2
        if pool.ways("Stop")[before:] == ["w"]:
            return
    pytest.fail("no worker answered")
