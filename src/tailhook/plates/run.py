"""The wrapper: a command in the foreground, and its end told to the daemon.

The command has the wrapper's terminal and process group, so that what is typed reaches it as without the wrapper. The
wrapper sees its signals in a queue: one that somebody sent to it alone goes on to the command. A command that stops
itself stops the wrapper too, where a shell waits for that to have its terminal back.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tailhook.errors import TailhookError
from tailhook.hook.answer import plain
from tailhook.stores.daemon import DATABASE_VARIABLE, TOKEN_VARIABLE, environment_without
from tailhook.stores.processes import process_start, uptime_ms
from tailhook.stores.spool import RUN_ENDED, RUN_ID_VARIABLE, append_record

if TYPE_CHECKING:
    from tailhook.stores.spool import SpoolRecord

PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGCONT,
)
TYPED = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)  # which a terminal sends to all of its foreground group
SI_USER = 0  # <signal.h>: sent by kill(); the kernel's own have another code
PATIENCE = 1.5  # seconds for the daemon to take the end
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes (POSIX, Shell Command Language, 2.8.2)
RESUMING = 0.05  # seconds in which one `fg` wakes both the wrapper and the command


def run(argv: Sequence[str]) -> int:
    """Run the command and return its exit code, or die of the signal that it died of.

    If the command cannot be started, print one line on stderr and return what a shell returns: 127 if there is no such
    file, otherwise 126.
    """
    run_id = uuid.uuid4().hex
    watched = {*PASSED_ON, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, they would leave no exit code

    def as_without_wrapper() -> None:
        signal.signal(signal.SIGCHLD, children)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)

    environment = {**dict(environment_without(TOKEN_VARIABLE, DATABASE_VARIABLE)), RUN_ID_VARIABLE: run_id.encode()}
    try:
        command = subprocess.Popen(list(argv), env=environment, preexec_fn=as_without_wrapper)  # noqa: S603 - the user's
    except OSError as error:
        sys.stderr.write(f"tailhook: {plain(argv[0])}: {error.strerror}\n")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    registering = threading.Thread(target=register, args=(run_id, command.pid), daemon=True)
    registering.start()
    while command.poll() is None:
        number, sent = next_signal(watched)
        if number == signal.SIGCHLD:
            stop_with(command.pid)
        elif sent or number not in TYPED:
            command.send_signal(number)
    deadline = time.monotonic() + PATIENCE
    registering.join(PATIENCE)
    tell_end(run_id, deadline)
    return leave_as(command.returncode)


def next_signal(watched: "set[signal.Signals]") -> tuple[int, bool]:
    """The next signal, and whether somebody sent it to this process."""
    if sys.platform == "darwin":
        number = signal.sigwait(watched)
        return number, number not in TYPED or not sys.stdin.isatty()
    found = signal.sigwaitinfo(watched)
    return found.si_signo, found.si_code <= SI_USER


def stop_with(pid: int) -> None:
    """Stop where the command has stopped, if a shell waits for that: the wrapper is in the terminal's foreground."""
    if is_stopped(pid) and is_foreground():
        time.sleep(RESUMING)
        if is_stopped(pid):
            os.kill(os.getpid(), signal.SIGSTOP)


def is_stopped(pid: int) -> bool:
    """Whether the child is stopped now."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has ended
        return False


def is_foreground() -> bool:
    """Whether this process is in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


def register(run_id: str, pid: int) -> None:
    """Show the session before it has said anything; without a daemon it shows itself."""
    try:
        from tailhook.plates import client  # takes longer to load than the command may wait for

        project, started = str(Path.cwd()), process_start(pid) or None
        fields = {"project_path": project, "run_id": run_id, "pid": pid, "pid_started": started}
        client.start()
        client.request("POST", "/plates/register", json=fields)
    except (TailhookError, OSError, ImportError):
        pass


def tell_end(run_id: str, deadline: float) -> None:
    """Tell the daemon that the session is over.

    Where none answers in time it finds that in the spool; so does one that knows nothing of the session: what the
    session told may wait there, too.  deadline: by the monotonic clock.
    """
    closed = 0
    try:
        from tailhook.plates import client

        left = max(0.1, deadline - time.monotonic())
        closed = client.request("POST", "/plates/stopped", timeout=left, json={"run_id": run_id})["closed"]
    except (TailhookError, OSError, ImportError):
        pass
    if not closed:
        record: SpoolRecord = {
            "event_id": uuid.uuid4().hex,
            "event_type": RUN_ENDED,
            "run_id": run_id,
            "ts": time.time_ns() // 1_000_000,
            "mono": uptime_ms(),
        }
        try:
            append_record(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            sys.stderr.write(f"tailhook: the end of the session is not known to the board: {error}\n")


def leave_as(code: int) -> int:
    """The exit code; dies of the signal where the command did."""
    if code >= 0:
        return code
    sys.stdout.flush()
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
    os.kill(os.getpid(), -code)
    return 128 - code
