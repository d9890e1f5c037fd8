"""A pool comes and goes: the hooks that start it, its end, and the report if it does not start."""

import contextlib
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from support.host import Started, tailhook
from support.pool import (
    HAS_LOWER_PRIORITY,
    LINUX,
    PACKAGE,
    STARTS,
    STOP,
    WITHOUT_SANITIZER,
    Gate,
    Pool,
    is_alive,
    iteration,
    let_pools_wait,
    looping_project,
    pids_of,
    set_constants,
    wait_until,
)

from tailhook.doctor.pool import check_pool
from tailhook.pool.control import is_running, pool_start_failure, start_fault, stop_pools

pytestmark = WITHOUT_SANITIZER


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


def add_bytes(path, data):
    path.write_bytes(path.read_bytes() + data)


def test_a_start_that_a_person_asked_for_ends_the_report_of_an_earlier_one(home):
    with Pool(home, starts=False) as pool:
        (pool.folder / "pool-start").write_text("\ntailhook: pool: no luck\n")
        assert pool.status()["last_start"] == "pool: no luck"
        pool.serve()
        pool.end()
        assert pool.status()["last_start"] is None


def test_a_pool_whose_workers_fail_leaves_with_a_reason(home, site):
    with (site / "pool" / "worker.py").open("a") as out:
        out.write("\n\ndef list_open_files():\n    raise OSError('no luck')\n")
    with Pool(home, package=site, starts=False) as pool:
        done = subprocess.run([*pool.serve_argv(), "--asked"], env=pool.env, capture_output=True, timeout=STARTS)
        assert done.returncode == 1
        last = done.stderr.decode().splitlines()[-1]
        assert last == "tailhook: pool: over 10 workers in a row ended without an answer, so the pool leaves"
        (pool.folder / "pool-start").write_text(f"\nstarted\ntailhook: pool: no luck\n{last}\n")
        assert pool_start_failure(str(pool.folder)) == last.removeprefix("tailhook: ")


def test_the_reason_stays_if_a_worker_that_did_not_fail_ends_last(home, site):
    with (site / "pool" / "worker.py").open("a") as out:
        out.write(f"""

sound = list_open_files


def list_open_files():
    try:
        posix.mkdir({str(home / "first")!r})
    except FileExistsError:
        raise OSError('no luck') from None
    return sound()
""")
    with Pool(home, package=site, starts=False) as pool:
        done = subprocess.run([*pool.serve_argv(), "--asked"], env=pool.env, capture_output=True, timeout=STARTS)
        assert (done.returncode, done.stderr.count(b"no luck")) == (1, 11)
        assert done.stderr.endswith(b"workers in a row ended without an answer, so the pool leaves\n")


def test_a_pool_is_ended_whose_file_is_of_another_version(home):
    with Pool(home) as pool:
        file = pool.folder / "installation"
        file.write_bytes(file.read_bytes().replace(b"tailhook-hook 1", b"tailhook-hook 0"))
        (ended,) = stop_pools(str(pool.folder))
        assert not is_running(ended.pid)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: (folder / "tailhook-hook").chmod(0o600), "/tailhook-hook cannot be executed"),
        (lambda folder: (folder / "installation").write_text("x"), "/installation is damaged"),
        (lambda folder: add_bytes(folder / "installation", b"x"), "/installation is damaged"),
        (lambda folder: (folder / "pool-start").mkdir(), "/pool-start is not a regular file"),
        (lambda folder: (folder / "pool-start").symlink_to("/nowhere"), "/pool-start is not a regular file"),
        (lambda folder: (folder / "installation").unlink(), "/installation: No such file or directory"),
    ],
)
def test_why_hooks_cannot_start_a_pool_is_reported(home, spoil, reason):
    with Pool(home, starts=False) as pool:
        spoil(pool.folder)
        done = tailhook("pool", "status", env=pool.own, cwd=home)
        assert done.stdout == f"No pool runs; hooks can start none: {pool.folder}{reason}.\n"


def test_a_removed_package_keeps_hooks_from_starting_a_pool(home, site):
    with Pool(home, package=site, starts=False) as pool:
        (site / "pool" / "entry.py").unlink()
        assert start_fault(str(pool.folder)) == f"{site}/pool/entry.py is missing"


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
    assert "the next hook starts one" in tailhook("pool", "status", env={"HOME": str(home)}, cwd=home).stdout
    attempt = pool.folder / "pool-start"
    attempt.write_text("started\n")
    os.utime(attempt, (time.time() + 20,) * 2)  # counts as 20 s ago, and becomes younger first
    output = tailhook("pool", "status", env={"HOME": str(home)}, cwd=home).stdout
    (finding,) = check_pool(pool.argv[0])
    for text in (output, finding.what):
        assert re.search(r"a hook starts one, in ([45]\d|60) s at the earliest", text), text


@LINUX
def test_a_pool_that_a_hook_has_just_started_leaves_if_the_pool_is_stopped(home):
    """Python begins slowly: the pool reads nothing before the command has ended."""
    with Pool(home, starts=False) as pool, Gate(home / "gate") as gate:
        entry, attempt = pool.folder / "entry.py", pool.folder / "pool-start"
        fields = (pool.folder / "installation").read_bytes().split(b"\0")
        argv = f"[sys.executable, '-I', '-S', {os.fsdecode(fields[4])!r}, *sys.argv[1:]]"
        entry.write_text(f"import os, sys; open({gate.path!r}).readline(); os.execv(sys.executable, {argv})")
        (pool.folder / "installation").write_bytes(b"\0".join([*fields[:4], os.fsencode(entry), b""]))
        assert pool.hook(STOP).returncode == 0
        (starting,) = pids_of(str(entry))
        os.utime(attempt, ns=(5, attempt.stat().st_mtime_ns - 20 * 10**9))
        begun = attempt.stat().st_mtime_ns
        done = tailhook("pool", "stop", env=pool.own, cwd=home)
        assert (done.returncode, "No pool runs" in done.stdout) == (0, True)
        gate.open()
        wait_until(lambda: not is_alive(starting))
        status = pool.status()
        assert (status["running"], status["last_start"], pool.path.exists()) == (False, None, False)
        assert attempt.stat().st_mtime_ns == begun  # a hook starts the next pool as soon as without the command
        os.utime(attempt, ns=(5, 5))
        pool.hook(STOP)
        gate.open()
        wait_until(lambda: pool.status()["running"])


@LINUX
def test_a_pool_that_writes_its_files_is_ended_by_the_command(home, site):
    code = f"import sys; sys.path.insert(0, {str(site.parent)!r}); import tailhook.pool.control as one; "
    code += f"one.STOP_TIMEOUT_S = {STARTS}; from tailhook.cli import main; main()"
    with Pool(home, package=site, starts=False) as pool:
        let_pools_wait(site)
        (pool.folder / "pool-start").write_text("\n")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with Started(pool.serve_argv(), env=pool.env, **pipes) as starting:
            assert starting.stdout.read(5) == b"found"
            argv = [sys.executable, "-I", "-c", code, "pool", "stop"]
            with Started(argv, env=pool.env, stdout=subprocess.PIPE) as stopping:
                lock = str(pool.folder / "pool-lock")
                wait_until(lambda: lock in [file.path for file in psutil.Process(stopping.pid).open_files()])
                starting.stdin.close()
                assert f"process {starting.pid}" in stopping.stdout.read().decode()
            starting.wait(timeout=STARTS)
        assert not pool.path.exists()


@LINUX
def test_a_pool_that_was_stopped_by_a_signal_is_ended_by_the_command(home, pool):
    processes = [pool.pid, *pool.workers()]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    done = tailhook("pool", "stop", env={"HOME": str(home)}, cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(map(is_alive, processes))
    assert not pool.path.exists()


def test_a_pool_that_ignores_the_signal_is_killed(home, site, monkeypatch):
    with (site / "pool" / "serve.py").open("a") as out:
        out.write("\n\nPool.end = lambda *_: None\n")
    monkeypatch.setattr("tailhook.pool.control.STOP_TIMEOUT_S", 0.2)
    with Pool(home, package=site) as pool:
        (ended,) = stop_pools(str(pool.folder))
        assert ended.pid == pool.pid
        assert pool.process.wait(STARTS) == -signal.SIGKILL


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
@HAS_LOWER_PRIORITY
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
@HAS_LOWER_PRIORITY
def test_of_many_kinds_of_callers_the_last_ones_have_pools(home, site):
    set_constants(site / "pool" / "serve.py", MAX_POOLS=2, SURPLUS_EXIT_S=0.0)
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
@HAS_LOWER_PRIORITY
def test_a_surplus_pool_leaves_when_it_has_been_quiet_for_long_enough(home, site):
    set_constants(site / "pool" / "serve.py", MAX_POOLS=1, SURPLUS_EXIT_S=1.5)
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
        with Started(words, env=pool.env, cwd=home) as served:
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
