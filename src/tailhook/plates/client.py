"""The client of the daemon, for the user's own programs: over the Unix socket."""

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from traceback import walk_tb
from typing import Any

import httpx

from tailhook import __version__
from tailhook.errors import TailhookError
from tailhook.hook.event import load_config
from tailhook.hook.payload import project_root
from tailhook.plates import fields, paths
from tailhook.stores.daemon import own_argv, spawn_daemon

TIMEOUT_S = 20.0  # for a daemon to answer: on a busy computer, it takes seconds
OTHER_START_TIMEOUT_S = 5.0  # for a daemon that another program may have started
DAEMON_START_TIMEOUT_S = 60.0  # for a daemon that was started here and still runs; on a busy machine it takes seconds
EXIT_TIMEOUT_S = 10.0  # for a daemon of an older version to exit
ANSWERS = [kind for name, kind in vars(fields).items() if name.endswith("Out")]


class AwayError(TailhookError):
    """No daemon answers."""


class HangingError(AwayError):
    """A daemon runs but does not answer."""


class MissingError(TailhookError):
    """The daemon does not have what was asked for."""


class VersionError(TailhookError):
    """The running daemon is of another version, so its answers have other fields."""

    def __init__(self, version: str) -> None:
        pid, _ = paths.find_lock_owner()
        end = f"kill {pid or 'PID'}"
        advice = f"End it:  {end}   Then start one of this version:  tailhook plates serve"
        if numbers_in(version) > numbers_in(__version__):
            advice = f"Use the newer tailhook, to which the daemon belongs. If that is gone, end the daemon:  {end}"
        self.version = version
        what = f"a daemon of another version runs ({version}); this is tailhook {__version__}"
        if version == __version__:  # of an older commit: see `check_version`
            what = f"an older daemon runs: it calls itself {version}, as this tailhook does, but lacks fields"
        super().__init__(f"{what}. {advice}")


@contextmanager
def connect(timeout: float = TIMEOUT_S) -> Iterator[httpx.Client]:
    """Yield a client of the daemon. The block raises AwayError if no daemon answers."""
    # A Unix socket has no TLS, and loading certificates takes longer than a request.
    transport = httpx.HTTPTransport(uds=str(paths.http_socket_path()), verify=False)
    with httpx.Client(transport=transport, base_url="http://localhost", timeout=timeout) as client:
        try:
            yield client
        except httpx.ReadTimeout as error:
            pid = paths.lock_path().read_text(errors="replace").partition(" ")[0]
            advice = (
                f"If the computer is not busy, kill it (kill -9 {pid}), then start a new one:  tailhook plates serve"
            )
            raise HangingError(f"the daemon does not answer within {timeout:g} s. {advice}") from error
        except httpx.TransportError as error:
            close_sockets(error)
            raise AwayError("no daemon answers. Start one:  tailhook plates serve") from error


def close_sockets(error: BaseException) -> None:
    """Close the sockets among the local variables of the frames in which an error began.

    httpcore 1.0 does not close the socket of a failed connection. From CPython 3.13 on it stays open until the garbage
    collector finds it. A program that tries again and again would have more and more open files.
    """
    while error.__cause__:
        error = error.__cause__
    for frame, _ in walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            if isinstance(value, socket.socket):
                value.close()


def request(method: str, path: str, timeout: float = TIMEOUT_S, **options: Any) -> Any:
    """Send a request and return the answer's JSON.

    Raises AwayError if no daemon answers, MissingError if it does not have what was asked for, and TailhookError if it
    refuses the request.
    """
    return send(method, path, timeout, **options).json()


def request_page(path: str) -> tuple[list[dict[str, Any]], str]:
    """Return one page of a list, and the path of the next one, "" after the last. Raises as `request` does."""
    response = send("GET", path, TIMEOUT_S)
    return response.json(), response.links.get("next", {}).get("url", "")


def send(method: str, path: str, timeout: float, **options: Any) -> httpx.Response:
    """Send a request and return the answer. Raises as `request` does."""
    with connect(timeout) as client:
        response = client.request(method, path, **options)
    if response.is_error:
        kind = MissingError if response.status_code == httpx.codes.NOT_FOUND else TailhookError
        raise kind(str(response.json().get("error", response.reason_phrase)))
    return response


def check_version(version: str, description: object) -> None:
    """Raise VersionError if the daemon is of another version. It outlives an upgrade of tailhook.

    version: from `GET /health`.
    description: what `GET /openapi.json` answered. Older daemons of the same version lack some fields.
    """
    if version != __version__ or not all(has_fields(description, kind) for kind in ANSWERS):
        raise VersionError(version)


def has_fields(description: Any, kind: Any) -> bool:
    """Return whether the daemon's answers of a kind have every field that they have in this version.

    description: see `check_version`.
    """
    try:
        found = description["components"]["schemas"][kind.__name__]["properties"]
    except (KeyError, TypeError):
        return False
    return bool(kind.__required_keys__ <= found.keys())


def check_running_version() -> None:
    """Raise VersionError if the running daemon is of another version, and AwayError if no daemon answers."""
    version = request("GET", "/health")["version"]
    with connect() as client:
        description = client.get("/openapi.json").json()
    check_version(version, description)


def ensure_daemon() -> None:
    """Start the daemon in the background if none answers and the user allows that.

    A daemon of an older version is replaced if no person started it.

    Raises AwayError if no daemon answers after that, and VersionError if one of another version does.
    """
    begun = time.monotonic()
    end = begun + OTHER_START_TIMEOUT_S
    started, replaced = 0, False
    while True:
        try:
            check_running_version()
            return
        except AwayError:
            if not is_autostart_allowed():
                raise
            if not started and not (replaced and paths.is_locked()):
                # Once it serves, it writes the argv for hooks. An older version cannot open a newer database.
                started = spawn_daemon(own_argv())
            is_starting = started and has_child(started)
            if time.monotonic() > (begun + DAEMON_START_TIMEOUT_S if is_starting else end):
                raise
        except VersionError as error:
            pid = 0 if replaced else find_replaceable(error.version)
            if time.monotonic() > end or not (replaced or pid):
                raise
            if pid:
                end = time.monotonic() + EXIT_TIMEOUT_S
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                replaced = True
        time.sleep(0.05)


def has_child(pid: int) -> bool:
    """Return whether a child process has not ended."""
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    return False


def find_replaceable(version: str) -> int:
    """Return the process id of the running daemon if a daemon of this version may replace it, otherwise 0.

    A newer one stays, because this version cannot open its database.

    version: of the running daemon.
    """
    pid, kind = paths.find_lock_owner()
    is_older = numbers_in(version) <= numbers_in(__version__)
    return pid if is_older and kind == paths.WITHOUT_PORT and paths.is_locked() and is_autostart_allowed() else 0


def numbers_in(version: str) -> list[int]:
    """Return the numbers of a version's release, which sort as the releases do.

    >>> numbers_in("0.10.2rc1")
    [0, 10, 2]
    """
    release = re.split(r"[^\d.]", version, maxsplit=1)[0]
    return [int(digits) for digits in re.findall(r"\d+", release)]


def is_autostart_allowed() -> bool:
    """Return whether the user allows programs to start the daemon."""
    try:
        project = project_root({})
    except FileNotFoundError:  # the folder in which this program was started is gone
        project = "/"
    forbidden = load_config(project).get("plates", {}).get("autostart") is False
    return not forbidden and os.environ.get("TAILHOOK_NO_AUTOSTART") != "1"
