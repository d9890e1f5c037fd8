"""Pools of hook workers for tests, each in a home of its own."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.host import ENVIRONMENT, HANGS_S, SANITIZER, looping, run_on_payload, tailhook, wait_until
from support.oracles import jwz
from tailhook.pool.control import own_socket, read_installation
from tailhook.stores.hook_times import read_times

PACKAGE = Path(__file__).parents[2] / "src" / "tailhook"
STOP = {"hook_event_name": "Stop", "session_id": "mine", "last_assistant_message": "Hm."}
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
HAS_LOWER_PRIORITY = pytest.mark.skipif(os.nice(0) > 14, reason="a caller of another kind has a lower priority")
WITHOUT_SANITIZER = pytest.mark.skipif(bool(SANITIZER), reason="a client starts pools without a sanitizer's runtime")
STARTS = HANGS_S


def hook_command(form: str, home: Path, machines: str = "idle", **variables: str) -> list[str]:
    """Return the argv of a form of the hook.  form: "--cold" or "--warm"."""
    done = tailhook("hook-command", form, machines, env={"HOME": str(home), **variables}, cwd=home)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Pool:
    """A pool of the user with a home; a context manager.

    package: the package that it runs; that of the tests if it is not given.
    starts: whether the pool runs from the beginning.
    variables: more of the environment.
    """

    def __init__(self, home: Path, package: Path | None = None, starts: bool = True, **variables: str) -> None:
        self.home = home
        self.starts = starts
        self.own = {"HOME": str(home), **variables}
        self.env = {**ENVIRONMENT, **self.own, "TAILHOOK_NO_AUTOSTART": "1"}
        self.package = package
        self.process = None
        self.listener = None
        if package is None:
            self.argv = hook_command("--warm", home, **variables)[:2]
            self.cold = hook_command("--cold", home, **variables)[:4]
        else:
            path = f"import sys; sys.path.insert(0, {str(package.parent)!r}); from tailhook.cli import main; main()"
            words = ["hook-command", "--warm"]
            done = subprocess.run([sys.executable, "-I", "-c", path, *words], env=self.env, capture_output=True)
            assert done.returncode == 0, done.stderr
            self.argv = json.loads(done.stdout)
            self.cold = [sys.executable, "-I", "-S", str(package / "hook" / "entry.py")]
        self.folder = Path(self.argv[0]).parent

    def __enter__(self) -> "Pool":
        if self.starts:
            self.serve()
        return self

    def serve(self) -> None:
        """Start the pool and wait until it listens: it writes a line."""
        self.stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - a pipe without a reader could fill up
        argv = [*self.serve_argv(), "--asked"]
        self.process = subprocess.Popen(argv, env=self.env, stdout=subprocess.PIPE, stderr=self.stderr, text=True)
        self.pid = self.process.pid
        assert self.process.stdout.readline(), self.end()

    def serve_argv(self) -> list[str]:
        """Return the command with which the client starts a pool."""
        _, _, interpreter, _, entry = read_installation(str(self.folder))
        return [interpreter, "-I", "-S", entry, f"{self.folder}/"]

    def end(self, how: signal.Signals = signal.SIGTERM) -> str:
        """End the test's own pool; return its stderr."""
        written = ""
        if self.process is not None:
            workers = self.workers() if sys.platform == "linux" and self.process.poll() is None else []
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
                self.process.send_signal(how)
            self.process.communicate(timeout=STARTS)
            with self.stderr:
                self.stderr.seek(0)
                written = self.stderr.read()
            if how == signal.SIGKILL:
                wait_until(lambda: not any(map(is_alive, workers)))  # they listen for a moment
            self.process = None
        return written

    def __exit__(self, *_: object) -> None:
        self.end()
        if self.listener is not None:
            self.listener.close()
        tailhook("pool", "stop", env=self.own, cwd=self.home)  # those that clients of the tests' package started
        if self.package is not None:
            for pid in pids_of(str(self.package / "pool" / "entry.py")):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not pids_of(f"{self.folder}/"))

    @property
    def path(self) -> Path:
        """Return the path of the client's socket."""
        return Path(own_socket(read_installation(str(self.folder))[1]))

    def finds_socket(self) -> bool:
        """Return whether a pool listens on the client's socket."""
        with socket.socket(socket.AF_UNIX) as one:
            try:
                one.connect(str(self.path))
            except OSError:
                return False
        return True

    def hook(self, payload: dict, argv: list[str] | None = None, cwd: Path | None = None, **env: str):
        """Run a hook that asks the idle machine."""
        argv = argv or [*self.argv, "idle"]
        env = {**self.env, **env}
        return run_on_payload(argv, json.dumps(payload).encode(), env=env, cwd=cwd or self.home, text=True)

    def stop_until_warm(self, cwd: Path | None = None, **env: str) -> None:
        """Run stops until a worker answers one: on a busy machine a worker may not be ready in time."""
        deadline = time.monotonic() + STARTS
        while True:
            before = self.records("Stop")
            done = self.hook(STOP, cwd=cwd, **env)
            if "was killed" not in done.stderr and "w" in self.ways_after(before):  # a killed hook has no record
                return
            assert time.monotonic() < deadline, "no worker answers"

    def records(self, event: str) -> list[tuple[int, int, bytes]]:
        """Return the records of the last hooks of an event."""
        return read_times(str(self.folder)).get(event, [])

    def ways_after(self, before: list[tuple[int, int, bytes]], event: str = "Stop") -> list[str]:
        """Wait for a record that is not among some earlier ones, and return the ways of the new ones.

        A worker records a hook after the host has got its answer.
        """
        return [way.decode() for _, _, way in wait_until(lambda: set(self.records(event)).difference(before))]

    def ways(self, event: str) -> list[str]:
        """Return the way of each of the last hooks of an event, warm or cold."""
        return [way.decode() for _, _, way in self.records(event)]

    def status(self) -> dict:
        """Return the output of `tailhook pool status`."""
        done = tailhook("pool", "status", "--json", env=self.own, cwd=self.home)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def workers(self) -> list[int]:
        """Return the process ids of the workers."""
        return [int(word) for word in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


def stdin_of(pid: int) -> str:
    """Return the file of a process's stdin, "" if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/fd/0")
    except OSError:
        return ""


def waiting_hook(pool: Pool) -> tuple[subprocess.Popen[str], int]:
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
            time.sleep(0.001)  # the worker needs the processor
        hook.communicate(timeout=STARTS)  # it is a cold one: no worker was ready in time


def looping_project(home: Path, name: str = "project") -> Path:
    """Return a project with a live loop that any session may continue."""
    folder = home / name
    (folder / ".git").mkdir(parents=True)
    jwz.post(folder, json.dumps(looping({"id": "f", "mode": "loop", "iter": 1, "max": 1000})))
    return folder


def iteration(project: Path) -> int:
    """Return the iteration of a project's loop."""
    return jwz.newest(project)["stack"][0]["iter"]


def set_constants(file: Path, **values: float) -> None:
    """Give constants of a module other values.  file: of a copied package."""
    text = file.read_text()
    for name, value in values.items():
        text, count = re.subn(rf"^{name} = [^#\n]*", f"{name} = {value}  ", text, flags=re.MULTILINE)
        assert count == 1, f"{file.name} has no constant {name}"
    file.write_text(text)


def switches_of(pid: int) -> int:
    """Return how often a process has waited."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("voluntary_ctxt")).split()[1])


def is_at_rest(pids: Sequence[int], seconds: float = 1) -> bool:
    """Return whether no process is woken in so many seconds. Wait for it: earlier work may last longer."""
    before = [switches_of(pid) for pid in pids]
    time.sleep(seconds)
    return [switches_of(pid) for pid in pids] == before


def let_pools_wait(package: Path) -> None:
    """Change a package: before a pool writes its files, it prints `found` and waits for a byte on stdin, or its end."""
    path, begin = package / "pool" / "installation.py", "    program = read_file(built_client()"
    text = path.read_text()
    assert begin in text
    path.write_text(text.replace(begin, f"    posix.write(1, b'found')\n    posix.read(0, 1)\n{begin}"))


class Gate:
    """Keeps a process waiting until a test opens it: the process reads a line from a named pipe. A context manager."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self.pipe = os.open(path, os.O_RDWR)  # also without a reader, this does not wait

    def __enter__(self) -> "Gate":
        return self

    def open(self) -> None:
        """Let one process go on."""
        os.write(self.pipe, b"\n")

    def __exit__(self, *_: object) -> None:
        os.close(self.pipe)


def pids_of(word: str) -> list[int]:
    """Return the processes that have a word in their argv."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(word) in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def is_alive(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
