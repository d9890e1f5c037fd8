"""Runs `tailhook` commands in forks of a process with the package imported.

An interpreter takes 60 to 80 ms of processor time to start, import and end; a fork takes 7 ms. The command is still a
process with its own environment, folder, streams and exit code. Tests of imports, and of variables that the interpreter
reads, start an interpreter: see `support.host.tailhook`.
"""

import atexit
import contextlib
import gc
import json
import os
import pkgutil
import posix
import resource
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

STATUS = struct.Struct("q")
LENGTH = struct.Struct("!I")  # of a request, in front of it
FIRST_FREE_FD = 3
MAX_FDS = 1024
UNFLUSHED = 120  # the exit code of an interpreter that cannot write the rest of stdout
# These run when they are imported, or need an extra.
NOT_IMPORTED = tuple(
    f"tailhook.{name}"
    for name in (
        "__main__",
        "hook.entry",
        "pool.entry",
        "fleet.daft",
        "fleet.ray",
        "fleet.engines",
        "plates.migrations",
    )
)
LARGE = ("tailhook.board", "tailhook.plates")  # only the daemon, the boards and the doctor import all of them
IMPORTED_LATE = (  # by a running command, in place of its module
    "alembic.command",
    "anyio._backends._asyncio",
    "concurrent.futures.thread",
    "httpcore",
    "pyarrow.parquet",
    "sqlalchemy.dialects.sqlite",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


class Request(NamedTuple):
    """A command that a test runs.

    words: its argv without the interpreter.
    constants: values of the package's constants in this process, by module and name: {"tailhook.x.LIMIT": 1}.
    files: the soft and the hard limit of its open files, empty for this process's own.
    """

    words: list[str]
    env: dict[str, str]
    cwd: str
    umask: int
    processors: list[int]
    constants: dict[str, Any]
    files: Sequence[int]


class ForkedCommand:
    """A running command: the part of `subprocess.Popen` with pipes and text that tests use."""

    def __init__(self, words: list[str], pipes: list[int], status: int) -> None:
        self.args = words
        self.stdin, self.stdout, self.stderr = map(open, pipes, "wrr")
        self.status = status
        self.pid = self.read_status()
        self.returncode: int | None = None

    def read_status(self) -> int:
        """Return the next number that the server writes: the process id, then the exit code."""
        data = os.read(self.status, STATUS.size)
        assert data, "the server of commands has ended"
        return STATUS.unpack(data)[0]

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        return (
            self.wait(0) if self.returncode is None and select.select([self.status], [], [], 0)[0] else self.returncode
        )

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self.status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = self.read_status()
            os.close(self.status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def communicate(self, text: str = "", timeout: float | None = None) -> tuple[str, str]:
        """Write stdin, and return stdout and stderr once the process has ended. Raises TimeoutExpired."""
        if self.stdout.closed:
            return "", ""
        errors: list[str] = []
        threads = [
            threading.Thread(target=self.feed, args=(text,)),
            threading.Thread(target=lambda: errors.append(self.stderr.read())),
        ]
        for thread in threads:
            thread.start()
        timer = threading.Timer(timeout or threading.TIMEOUT_MAX, self.kill)
        timer.start()
        with self.stdout, self.stderr:
            written = self.stdout.read()
            for thread in threads:
                thread.join()
        self.wait()
        has_hung = not timer.is_alive()
        timer.cancel()
        if has_hung:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return written, errors[0]

    def feed(self, text: str) -> None:
        """Write the process's stdin, and close it."""
        with contextlib.suppress(BrokenPipeError), self.stdin:
            self.stdin.write(text)


class CommandServer:
    """The process from which commands are forked. It ends with the test process.

    imports_all: whether it also imports the large modules: of the daemon, the boards and Parquet files.
    """

    def __init__(self, env: dict[str, str], imports_all: bool = False) -> None:
        self.channel, theirs = socket.socketpair()
        self.lock = threading.Lock()
        with theirs:
            argv = [sys.executable, __file__, str(theirs.fileno()), *(["all"] if imports_all else [])]
            self.process = subprocess.Popen(argv, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self.close)

    def close(self) -> None:
        """End the server."""
        self.channel.close()
        self.process.wait()

    def start(
        self,
        words: Sequence[str | bytes],
        env: dict[str, str],
        cwd: Path,
        constants: dict[str, Any],
        files: Sequence[int] = (),
        stderr: int | None = None,
    ) -> ForkedCommand:
        """Start a command with pipes as its streams.

        stderr: a descriptor to use in place of a pipe.
        """
        argv = list(map(os.fsdecode, words))
        request = Request(argv, env, os.fspath(cwd), current_umask(), sorted(os.sched_getaffinity(0)), constants, files)
        reads, writes = zip(*(os.pipe() for _ in range(4)), strict=True)  # stdin, stdout, stderr, the status
        if stderr is not None:
            os.dup2(stderr, writes[2])
        given = [reads[0], *writes[1:]]
        text = json.dumps(request).encode()
        with self.lock:
            socket.send_fds(self.channel, [LENGTH.pack(len(text))], given)
            self.channel.sendall(text)
        for fd in given:
            os.close(fd)
        return ForkedCommand(argv, [writes[0], reads[1], reads[2]], reads[3])

    def run(
        self,
        words: Sequence[str | bytes],
        env: dict[str, str],
        cwd: Path,
        stdin: str | None,
        timeout: float,
        constants: dict[str, Any],
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as `subprocess.run` does with captured text. Raises TimeoutExpired."""
        running = self.start(words, env, cwd, constants)
        out, err = running.communicate(stdin or "", timeout)
        return subprocess.CompletedProcess(running.args, running.wait(), out, err)


def current_umask() -> int:
    """Return this process's umask."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


# ---- in the server ---------------------------------------------------------------


def import_package(imports_all: bool) -> None:
    """Import the package's modules, and the modules that they import later."""
    import tailhook

    but = NOT_IMPORTED if imports_all else (*NOT_IMPORTED, *LARGE)
    for module in pkgutil.walk_packages(tailhook.__path__, "tailhook."):
        if not module.name.startswith(but):
            import_module(module.name)
    if imports_all:
        os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"  # pyarrow would start a thread
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # so would numpy, which pyarrow loads if it is there
        for name in IMPORTED_LATE:
            with contextlib.suppress(ImportError):  # there is no pyarrow for some interpreters
                import_module(name)


def serve(channel: socket.socket) -> Request:
    """Fork a process for each request; return, in that process, its request. Exits when the tests end."""
    running: dict[int, tuple[int, int]] = {}  # the pid and where its exit code goes, by the pid's descriptor
    selector = selectors.PollSelector()
    selector.register(channel, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is channel:
                length, fds, _, _ = socket.recv_fds(channel, LENGTH.size, 4)
                if not length:
                    sys.exit()
                request = Request(*json.loads(channel.recv(LENGTH.unpack(length)[0], socket.MSG_WAITALL)))
                pid = os.fork()
                if not pid:
                    channel.detach()  # when it is freed later, its number may be that of a file of the command
                    take(fds)
                    return request
                os.write(fds[3], STATUS.pack(pid))
                for fd in fds[:3]:
                    os.close(fd)
                watched = os.pidfd_open(pid)
                running[watched] = pid, fds[3]
                selector.register(watched, selectors.EVENT_READ)
            else:
                selector.unregister(key.fd)
                os.close(key.fd)
                pid, status = running.pop(key.fd)
                os.write(status, STATUS.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
                os.close(status)


def take(fds: list[int]) -> None:
    """Make pipes the standard streams of this process, and close all others."""
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    os.closerange(FIRST_FREE_FD, MAX_FDS)


def run(request: Request) -> int:
    """Run a command in this process; return its exit code."""
    os.chdir(request.cwd)
    os.umask(request.umask)
    os.sched_setaffinity(0, request.processors)
    if request.files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (request.files[0], request.files[1]))
    os.environ.clear()
    os.environ.update(request.env)
    posix.environ.clear()
    posix.environ.update({os.fsencode(name): os.fsencode(value) for name, value in request.env.items()})
    time.tzset()
    sys.argv = [str(Path(import_module("tailhook").__file__).with_name("__main__.py")), *request.words]
    for place, value in request.constants.items():
        module, _, name = place.rpartition(".")
        getattr(import_module(module), name)
        setattr(import_module(module), name, value)
    from tailhook.cli import main

    try:
        return main()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # is shown as by an interpreter
        traceback.print_exc()
        return 1


def end(code: int) -> NoReturn:
    """End this process like an interpreter, but without freeing its objects: that takes longer than most commands."""
    threading._shutdown()  # waits for threads
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        traceback.print_exc()
        code = UNFLUSHED
    os._exit(code)


if __name__ == "__main__":
    del sys.path[0]  # this folder
    import_package(imports_all="all" in sys.argv[2:])
    assert len(os.listdir("/proc/self/task")) == 1, "a thread of this process would be missing in the commands"
    gc.freeze()
    end(run(serve(socket.socket(fileno=int(sys.argv[1])))))
