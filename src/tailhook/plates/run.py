"""`tailhook run`: runs a command in the foreground and reports its end to the daemon.

The command shares the wrapper's terminal and process group, so it gets all input. The wrapper forwards a signal that
was sent only to it. If the command stops itself, the wrapper stops too, so that a shell gets its terminal back.
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
from contextlib import suppress
from pathlib import Path

from tailhook.errors import TailhookError
from tailhook.hook.answer import plain
from tailhook.stores.daemon import DATABASE_VARIABLE, TOKEN_VARIABLE, environment_without
from tailhook.stores.processes import process_start, uptime_ms
from tailhook.stores.spool import RUN_ENDED, RUN_ID_VARIABLE, append_record

FORWARDED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGCONT,
)
FROM_TERMINAL = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGWINCH,
)  # a terminal sends these to its whole foreground group
SI_USER = 0  # <signal.h>: si_code of a signal sent by kill(); the kernel's own have larger ones
END_TIMEOUT_S = 1.5  # for the report to the daemon
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes (POSIX, Shell Command Language, 2.8.2)
RESUME_DELAY_S = 0.05  # one `fg` resumes both the wrapper and its command


def run_wrapped(argv: Sequence[str]) -> int:
    """Run the command and return its exit code, or end by the signal that ended the command.

    If the command cannot be started, print one line on stderr and return what a shell returns: 127 if there is no such
    file, otherwise 126.
    """
    run_id = uuid.uuid4().hex
    watched = {*FORWARDED, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, they would leave no exit code

    def restore_signals() -> None:
        signal.signal(signal.SIGCHLD, children)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)

    environment = {**dict(environment_without(TOKEN_VARIABLE, DATABASE_VARIABLE)), RUN_ID_VARIABLE: run_id.encode()}
    try:
        command = subprocess.Popen(list(argv), env=environment, preexec_fn=restore_signals)  # noqa: S603 - the user's
    except OSError as error:
        sys.stderr.write(f"tailhook: {plain(argv[0])}: {error.strerror}\n")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    started = process_start(command.pid)  # now: it may have ended when the modules for the registration are loaded
    registering = threading.Thread(target=register, args=(run_id, command.pid, started), daemon=True)
    registering.start()
    while command.poll() is None:
        number, sent = next_signal(watched)
        if number == signal.SIGCHLD:
            stop_like(command.pid)
        elif sent or number not in FROM_TERMINAL:
            command.send_signal(number)
    deadline = time.monotonic() + END_TIMEOUT_S
    registering.join(END_TIMEOUT_S)
    report_end(run_id, deadline)
    return exit_like(command.returncode)


def next_signal(watched: "set[signal.Signals]") -> tuple[int, bool]:
    """Wait for a signal. Returns its number, and whether a process sent it to this process alone."""
    if sys.platform == "darwin":
        number = signal.sigwait(watched)
        return number, number not in FROM_TERMINAL or not sys.stdin.isatty()
    found = signal.sigwaitinfo(watched)
    return found.si_signo, found.si_code <= SI_USER


def stop_like(pid: int) -> None:
    """Stop this process if the command has stopped and a shell waits for that.

    A shell waits if this process is in the terminal's foreground.
    """
    if is_stopped(pid) and is_foreground():
        time.sleep(RESUME_DELAY_S)
        if is_stopped(pid):
            os.kill(os.getpid(), signal.SIGSTOP)


def is_stopped(pid: int) -> bool:
    """Return whether the child is stopped now; False if that is unknown (on macOS before CPython 3.13)."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has ended
        return False


def is_foreground() -> bool:
    """Return whether this process is in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


def register(run_id: str, pid: int, started: int) -> None:
    """Register the session, so that the boards show it before its first event. Without a daemon, do nothing.

    If its end was reported before this, the daemon learns of the end from the process alone.

    started: of `process_start`. 0 on Linux: the process has ended, and nothing is registered.
    """
    if not started and sys.platform == "linux":
        return
    try:
        from tailhook.plates import client  # imported here because it loads slowly

        fields = {"project_path": str(Path.cwd()), "run_id": run_id, "pid": pid, "pid_started": started or None}
        with suppress(client.VersionError):  # it may know the route all the same
            client.ensure_daemon()
        client.request("POST", "/plates/register", json=fields)
    except (TailhookError, OSError, ImportError):
        pass


def report_end(run_id: str, deadline: float) -> None:
    """Report to the daemon that the session has ended.

    If the daemon does not answer in time, or does not know the session yet, append the end to the spool: the session's
    events may wait there, too.

    deadline: in seconds of the monotonic clock.
    """
    closed = 0
    try:
        from tailhook.plates import client

        left = max(0.1, deadline - time.monotonic())
        closed = client.request("POST", "/plates/stopped", timeout=left, json={"run_id": run_id})["closed"]
    except (TailhookError, OSError, ImportError):
        pass
    if not closed:
        record = {
            "event_id": uuid.uuid4().hex,
            "event_type": RUN_ENDED,
            "run_id": run_id,
            "ts": time.time_ns() // 1_000_000,
            "mono": uptime_ms(),
        }
        try:
            append_record(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            sys.stderr.write(f"tailhook: the end of the session could not be reported to the board: {error}\n")


def exit_like(code: int) -> int:
    """Return the command's exit code, or end this process by the signal that ended the command."""
    if code >= 0:
        return code
    sys.stdout.flush()
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
    os.kill(os.getpid(), -code)
    return 128 - code
