"""What the doctor says of the plates daemon: whether it runs, and whether what it needs is as it should be."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tailhook.errors import TailhookError
from tailhook.hook.plates import daemon_argv, runtime_folder
from tailhook.plates import places
from tailhook.stores.atomic import state_folder_path

LARGE_SPOOL = 32 << 20  # bytes that wait for a daemon

T = TypeVar("T")
Say = Callable[[str, str, str], T]  # makes a finding of its status, what was found, and what to do


def examine(finding: Say[T]) -> Iterator[T]:
    """Every finding about the daemon, as `finding` makes them."""
    yield daemon(finding)
    yield from private_files(finding)
    waiting = sum(path.stat().st_size for path in Path(state_folder_path()).glob("events*"))
    if waiting > LARGE_SPOOL:
        what = f"{state_folder_path()}/events: {waiting >> 20} MB wait for a daemon"
        yield finding("warning", what, "Start one, which takes them:  tailhook plates serve")


def daemon(finding: Say[T]) -> T:
    """Whether the daemon answers."""
    start = "Start it, and see what it says:  tailhook plates serve"
    try:
        from tailhook.plates.client import AwayError, request
    except ImportError as error:
        advice = "Install what the daemon needs:  pip install 'tailhook[serve]'"
        return finding("warning", f"the daemon cannot run: {error}", advice)
    try:
        figures = request("GET", "/status")
    except AwayError:
        argv = daemon_argv()
        if argv and not os.access(argv[0], os.X_OK):
            advice = "Write it anew:  tailhook install"
            return finding("failure", f"the daemon's interpreter is gone: {argv[0]}", advice)
        if not argv:
            return finding("warning", "nothing is known that starts the daemon", "Write it:  tailhook install")
        return finding("note", "the daemon does not run; the next event starts it", start)
    except TailhookError as error:
        return finding("failure", f"the daemon's database cannot be read: {error}", start)
    what = (
        f"the daemon {figures['version']} answers: {sum(figures['plates'].values())} plates,"
        f" {figures['spool_bytes']} bytes in the spool, {figures['lag_ms']['p99']:.0f} ms from hook to board (p99)"
    )
    return finding("ok", what, "")


def private_files(finding: Say[T]) -> Iterator[T]:
    """Files that nobody else may read or write."""
    for path in (
        Path(runtime_folder()),
        places.http_socket(),
        Path(runtime_folder()) / "poke",
        Path(state_folder_path()) / "token",
        Path(state_folder_path()) / "events",
    ):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            advice = "Set XDG_STATE_HOME and XDG_RUNTIME_DIR to folders of yours."
            yield finding("failure", f"{path}: {error.strerror}", advice)
            continue
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            advice = "Remove it; it is made anew, yours alone."
            yield finding("failure", f"{path}: a link, or another user's, or open to others", advice)
