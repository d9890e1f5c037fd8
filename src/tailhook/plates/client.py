"""The client of the daemon, for the user's own programs: over the Unix socket."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tailhook.errors import TailhookError
from tailhook.hook.event import load_config
from tailhook.hook.payload import project_root
from tailhook.plates import paths
from tailhook.stores.daemon import daemon_argv, spawn_daemon

TIMEOUT_S = 5.0  # for a daemon to answer, or to start


class AwayError(TailhookError):
    """No daemon answers."""


class HangingError(AwayError):
    """A daemon runs but does not answer."""


@contextmanager
def connect(timeout: float = TIMEOUT_S) -> Iterator[httpx.Client]:
    """Yield a client of the daemon. The block raises AwayError if no daemon answers."""
    transport = httpx.HTTPTransport(uds=str(paths.http_socket_path()))
    with httpx.Client(transport=transport, base_url="http://localhost", timeout=timeout) as client:
        try:
            yield client
        except httpx.ReadTimeout as error:
            pid = paths.lock_path().read_text(errors="replace").partition(" ")[0]
            advice = f"Kill it (kill -9 {pid}), then start a new one:  tailhook plates serve"
            raise HangingError(f"the daemon does not answer. {advice}") from error
        except httpx.TransportError as error:
            raise AwayError("no daemon answers. Start one:  tailhook plates serve") from error


def request(method: str, path: str, timeout: float = TIMEOUT_S, **options: Any) -> Any:
    """Send a request and return the answer's JSON.

    Raises AwayError if no daemon answers, and TailhookError if it refuses the request.
    """
    with connect(timeout) as client:
        response = client.request(method, path, **options)
    if response.is_error:
        raise TailhookError(str(response.json().get("error", response.reason_phrase)))
    return response.json()


def ensure_daemon() -> None:
    """Start the daemon in the background if none answers and the user allows that.

    Raises AwayError if no daemon answers after that.
    """
    end = time.monotonic() + TIMEOUT_S
    started = False
    while True:
        try:
            request("GET", "/health")
            return
        except AwayError:
            if time.monotonic() > end or not is_autostart_allowed():
                raise
        if not started:
            paths.write_argv()
            spawn_daemon(daemon_argv())
            started = True
        time.sleep(0.05)


def is_autostart_allowed() -> bool:
    """Return whether the user allows programs to start the daemon."""
    forbidden = load_config(project_root({})).get("plates", {}).get("autostart") is False
    return not forbidden and os.environ.get("TAILHOOK_NO_AUTOSTART") != "1"
