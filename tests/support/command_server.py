"""Runs `tailhook` commands in processes that are forked from one that has imported the package.

To start Python, to import and to end takes 60 to 80 ms of processor time, a fork 7 ms. The command is a
process all the same, with its own environment, folder, streams and exit code. Tests of what a process imports, and
commands under variables that the interpreter reads, start an interpreter: see `support.host.tailhook`.
"""

import atexit
import contextlib
import gc
import io
import json
import os
import pkgutil
import posix
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

LENGTH = struct.Struct("!I")  # of a request, in front of it
FIRST_FREE_FD = 3
MAX_FDS = 1024
UNFLUSHED = 120  # the exit code of an interpreter that cannot write the rest of stdout
# These run when they are imported, need an extra, start a thread (pyarrow's), or belong to long-running programs.
NOT_IMPORTED = tuple(
    f"tailhook.{name}"
    for name in ("__main__", "hook.entry", "pool.entry", "fleet.daft", "fleet.ray", "fleet.engines", "board", "plates")
)


class Request(NamedTuple):
    """A command that a test runs.

    words: its argv without the interpreter.
    constants: values of the package's constants in this process, by module and name: {"tailhook.x.LIMIT": 1}.
    """

    words: list[str]
    env: dict[str, str]
    cwd: str
    umask: int
    processors: list[int]
    constants: dict[str, Any]


class CommandServer:
    """The process from which commands are forked. It ends with the test process."""

    def __init__(self, env: dict[str, str]) -> None:
        self.channel, theirs = socket.socketpair()
        self.lock = threading.Lock()
        with theirs:
            argv = [sys.executable, __file__, str(theirs.fileno())]
            self.process = subprocess.Popen(argv, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self.close)

    def close(self) -> None:
        """End the server."""
        self.channel.close()
        self.process.wait()

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
        request = Request(
            list(map(os.fsdecode, words)),
            env,
            os.fspath(cwd),
            current_umask(),
            sorted(os.sched_getaffinity(0)),
            constants,
        )
        reads, writes = zip(*(os.pipe() for _ in range(4)), strict=True)  # stdin, stdout, stderr, the exit code
        given = [reads[0], *writes[1:]]
        text = json.dumps(request).encode()
        with self.lock:
            socket.send_fds(self.channel, [LENGTH.pack(len(text))], given)
            self.channel.sendall(text)
        for fd in given:
            os.close(fd)
        feeder = threading.Thread(target=feed, args=(writes[0], (stdin or "").encode()))
        feeder.start()
        try:
            out, err, status = read_all(reads[1:], timeout, words)
        finally:
            feeder.join()
        assert status, "the server of commands has ended"
        code = int(status.split()[1])
        return subprocess.CompletedProcess(words, code, universal(out), universal(err))


def current_umask() -> int:
    """Return this process's umask."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


def universal(text: bytes) -> str:
    """Return text as a stream in text mode reads it."""
    return io.TextIOWrapper(io.BytesIO(text), encoding="utf-8").read()


def feed(fd: int, text: bytes) -> None:
    """Write what a command reads from stdin, and close it."""
    with contextlib.suppress(BrokenPipeError), open(fd, "wb", buffering=0) as pipe:
        while text:
            text = text[pipe.write(text) :]


def read_all(fds: tuple[int, ...], timeout: float, words: Sequence[str | bytes]) -> list[bytes]:
    """Return what is written into pipes until all are closed; the last one names the process first."""
    found = dict.fromkeys(fds, b"")
    end = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for fd in fds:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0, end - time.monotonic()))
            if not ready:
                os.kill(int(found[fds[-1]].split()[0]), signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, timeout)
            for key, _ in ready:
                part = os.read(key.fd, 1 << 16)
                found[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return list(found.values())


# ---- in the server ---------------------------------------------------------------


def import_package() -> None:
    """Import the package's modules, and what they import when they are used."""
    import tailhook

    for module in pkgutil.walk_packages(tailhook.__path__, "tailhook."):
        if not module.name.startswith(NOT_IMPORTED):
            import_module(module.name)


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
                    take(fds)
                    return request
                os.write(fds[3], b"%d " % pid)
                for fd in fds[:3]:
                    os.close(fd)
                watched = os.pidfd_open(pid)
                running[watched] = pid, fds[3]
                selector.register(watched, selectors.EVENT_READ)
            else:
                selector.unregister(key.fd)
                os.close(key.fd)
                pid, status = running.pop(key.fd)
                os.write(status, b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
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
    except BaseException:  # is shown as an interpreter shows it
        traceback.print_exc()
        return 1


def end(code: int) -> NoReturn:
    """End this process as an interpreter does, but without taking it apart: that takes longer than most commands."""
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
    import_package()
    assert len(os.listdir("/proc/self/task")) == 1, "a thread of this process would be missing in the commands"
    gc.freeze()
    end(run(serve(socket.socket(fileno=int(sys.argv[1])))))
