"""The pool in unusual surroundings: the hook is cold where a worker could answer otherwise, and the answer is right."""

import contextlib
import json
import os
import pty
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from itertools import count

import pytest
from support.host import Started, ralph_page, run_on_payload, tailhook
from support.native_client import ready_message
from support.pool import (
    LINUX,
    STARTS,
    STOP,
    WITHOUT_SANITIZER,
    Pool,
    is_alive,
    iteration,
    looping_project,
    wait_until,
)
from support.terminal import Terminal

pytestmark = WITHOUT_SANITIZER


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
    before = pool.records("Stop")
    done = pool.hook(STOP, cwd=project)
    assert (done.returncode, iteration(project)) == (2, 2)
    assert pool.ways_after(before) != ["w"]


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


# ---- other users -------------------------------------------------------------------

OTHER_UID = 65534
LISTENER = """
import os, socket, sys
path, uid, ready = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.setuid(uid)
listener.listen()  # the peer's credentials are those of this moment (unix(7))
print("listens", flush=True)
while True:
    connection, _ = listener.accept()
    try:
        connection.send(ready)
        print(len(connection.recv(1 << 20)), flush=True)
    except ConnectionError:  # the client has left
        print(0, flush=True)
    connection.close()
"""
CALLER = """
import os, socket, sys
path, uid = sys.argv[1], int(sys.argv[2])
found = os.open(path, os.O_PATH)  # before it may no longer enter the folder
os.setuid(uid)
caller = socket.socket(socket.AF_UNIX)
caller.settimeout(30)
caller.connect(f"/proc/self/fd/{found}")
print(len(caller.recv(100)))
"""
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@contextlib.contextmanager
def listener_of(uid, path):
    """Yield a user's process that acts like a worker on the pool's socket, up to the request."""
    words = [sys.executable, "-I", "-c", LISTENER, str(path), str(uid), ready_message().hex()]
    with Started(words, stdout=subprocess.PIPE, text=True) as listener:
        try:
            assert listener.stdout.readline() == "listens\n"
            yield listener
        finally:
            listener.kill()
    path.unlink()


@needs_root
def test_a_listener_of_another_user_on_the_pools_socket_gets_nothing(home, pool):
    project, path = looping_project(home), pool.path
    pool.end()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with listener_of(OTHER_UID, path) as listener:
        assert pool.hook(STOP, cwd=project).returncode == 2
        assert listener.stdout.readline() == "0\n"
    assert (iteration(project), pool.ways("Stop")) == (2, ["u"])
    with listener_of(os.getuid(), path) as listener:  # one of this user gets the request, if it is ready in time
        wait_until(lambda: pool.hook(STOP).returncode == 0 and int(listener.stdout.readline()) > 0)


@LINUX
@needs_root
def test_a_worker_refuses_a_caller_of_another_user(pool):
    """The folder would not let it in: it connects by a descriptor, to a socket that is writable for all."""
    pool.path.chmod(0o666)
    for uid, ready_bytes in ((os.getuid(), 16), (OTHER_UID, 0)):
        words = [sys.executable, "-I", "-c", CALLER, str(pool.path), str(uid)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=STARTS)
        assert (done.stdout, done.stderr) == (f"{ready_bytes}\n", "")
    pool.stop_until_warm()


# ---- limits and other surroundings ---------------------------------------------------

LIMITS = {"file size": "ulimit -f 1000", "descriptors": "ulimit -n 30", "memory": "ulimit -v 4000000"}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_of_the_caller_makes_the_hook_cold(home, pool, limit):
    pool.stop_until_warm()
    before = pool.records("Stop")
    argv = ["sh", "-c", f'{LIMITS[limit]} && exec "$@"', "sh", *pool.argv, "idle"]
    assert pool.hook(STOP, argv=argv).returncode == 0
    assert pool.ways_after(before) == ["u"]


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
    pool.end()  # a worker records a hook after its answer
    assert pool.ways("Stop")[before:].count("w") == 0


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


@pytest.mark.parametrize(
    "locale", ["C.UTF-8", "C.utf8", "en_US.utf-8", "en_US.UTF8", "de_DE.Utf-8@euro", "UTF-8", "C", "POSIX", ""]
)
def test_each_spelling_of_utf_8_is_answered_by_a_worker(pool, locale):
    pool.stop_until_warm(LANG=locale)


@pytest.mark.parametrize("locale", ["de_DE", "de_DE.ISO-8859-1", "ja_JP.eucJP", "C.UTF", "C.UTF-16", "utf-8x"])
def test_with_other_names_of_files_the_hook_is_cold(pool, locale):
    pool.stop_until_warm()
    pool.hook(STOP, LANG=locale)
    assert pool.ways("Stop")[-1] == "u"


def test_a_umask_without_the_owners_bits_does_not_keep_later_hooks_cold(home):
    with Pool(home, starts=False) as pool:
        assert pool.hook(STOP, argv=["sh", "-c", 'umask 777; exec "$@"', "sh", *pool.argv, "idle"]).returncode == 0
        pool.stop_until_warm()
        kept = [pool.folder / name for name in ("pool-start", "pool-lock", "times/Stop")]
        assert [path.stat().st_mode & 0o777 for path in kept] == [0o600] * 3


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_pool_may_be_started_without_standard_streams(home, closed):
    with Pool(home, starts=False) as pool:
        argv = ["sh", "-c", f'exec "$@" {closed}', "sh", *pool.serve_argv(), "--asked"]
        with Started(argv, env=pool.env) as process:
            wait_until(pool.finds_socket)
            pool.stop_until_warm()
            process.terminate()
            assert process.wait(STARTS) == 0


def test_closed_streams_are_unusual_surroundings(pool):
    pool.stop_until_warm()
    pool.hook(STOP, argv=["sh", "-c", 'exec "$@" 2>&-', "sh", *pool.argv, "idle"])
    assert pool.ways("Stop")[-1] == "u"


def test_hooks_with_another_state_folder_are_counted_in_both_forms(home, pool):
    pool.stop_until_warm(XDG_STATE_HOME=str(home / "other"))
    pool.hook(STOP, XDG_STATE_HOME=str(home / "other"), TAILHOOK_NO_POOL="1")
    assert pool.ways("Stop")[-1] == "o"


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
    first, *others = run("-m", "tailhook", "pool", "status").stdout.splitlines()
    assert first == "No pool runs; none can be started while one runs for processes in another container."
    assert others == [
        "Another one, for processes with other rights, another nice value or container: in another process namespace."
    ]
    former = pool.folder.with_name("former")  # with a Python that is gone
    shutil.copytree(pool.folder, former)
    fields = (former / "installation").read_bytes().split(b"\0")
    (former / "installation").write_bytes(b"\0".join([fields[0], b"/gone/s", b"/gone/python3.9", *fields[3:]]))
    done = run("-c", "from tailhook.install.client import remove_clients; remove_clients()")
    assert (done.returncode, "in another process namespace" in done.stderr) == (1, True)
    assert not pool.folder.exists()
    assert not former.exists()
    wait_until(lambda: not is_alive(pool.pid))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_pool_that_is_ended_as_soon_as_it_listens_leaves_no_socket(pool, number):
    pool.end()
    for _ in range(5):
        with Started([*pool.serve_argv(), "--asked"], env=pool.env, stderr=subprocess.PIPE) as one:
            while not pool.path.exists():
                assert one.poll() is None
            one.send_signal(number)
            _, stderr = one.communicate(timeout=STARTS)
        assert (one.returncode, stderr, pool.path.exists()) == (0, b"", False)


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


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_folder_as_stdin_is_an_empty_payload_warm_and_cold(home, pool, spoilt):
    found = []
    for no_pool in ("0", "1"):
        project = looping_project(home, f"project{no_pool}")
        state = project / ".claude" / "ralph-loop.local.md"
        state.parent.mkdir(exist_ok=True)
        state.write_text(ralph_page())
        if spoilt:
            (project / ".claude" / "tailhook.json").write_text("{")
        with open_folder("/") as folder:
            done = subprocess.run(
                [*pool.argv, "ralph"],
                stdin=folder,
                env={**pool.env, "TAILHOOK_NO_POOL": no_pool, "CLAUDE_PROJECT_DIR": str(project)},
                cwd=project,
                capture_output=True,
                timeout=STARTS,
            )
        found.append((done.returncode, done.stdout, done.stderr.replace(os.fsencode(project), b""), state.exists()))
    assert found[0] == found[1]
    assert b"the payload is empty" in found[0][2]


@contextlib.contextmanager
def open_folder(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def test_a_folder_may_be_gone_or_have_a_name_that_is_not_utf_8(home, pool):
    gone = home / "gone"
    gone.mkdir()
    script = f'cd {gone}; rmdir {gone}; exec "$@"'
    done = run_on_payload(["sh", "-c", script, "sh", *pool.argv, "idle"], json.dumps(STOP).encode(), env=pool.env)
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


def test_a_hook_may_read_from_the_terminal_of_its_pool(home):
    with Pool(home, starts=False) as pool:
        serve, hook = (shlex.join(argv) for argv in ([*pool.serve_argv(), "--asked"], [*pool.argv, "idle"]))
        script = (
            f"{serve} & n=0; while echo asked $n && read -r _; do {hook}; echo code $? of $n; n=$((n+1)); done; wait"
        )
        terminal = Terminal(["/bin/sh", "-c", script], pool.env, home)
        wait_until(pool.finds_socket)
        for number in count():
            terminal.until(f"asked {number}")
            os.write(terminal.fd, b"\n" + json.dumps(STOP).encode() + b"\n")  # a hook reads no further than the object
            terminal.until(f"code 0 of {number}")
            if "w" in pool.ways("Stop"):  # on a busy machine no worker may be ready in time
                break
        os.write(terminal.fd, b"\x04")
        assert "killed" not in terminal.seen
        tailhook("pool", "stop", env=pool.own, cwd=home)
        assert terminal.wait() == 0
