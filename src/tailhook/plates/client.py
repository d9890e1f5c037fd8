"""The daemon as a program of the same user talks to it: over its Unix socket."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tailhook.errors import TailhookError
from tailhook.hook.payload import project_root
from tailhook.hook.process import load_config
from tailhook.plates import paths
from tailhook.stores.daemon import daemon_argv, spawn

PATIENCE = 5.0  # seconds for a daemon to answer, or to start


class AwayError(TailhookError):
    """No daemon answers."""


class HangingError(AwayError):
    """A daemon is there, and does not answer."""


@contextmanager
def daemon(timeout: float = PATIENCE) -> Iterator[httpx.Client]:
    """A client; in the block AwayError where no daemon answers."""
    transport = httpx.HTTPTransport(uds=str(paths.http_socket_path()))
    with httpx.Client(transport=transport, base_url="http://localhost", timeout=timeout) as client:
        try:
            yield client
        except httpx.ReadTimeout as error:
            pid = paths.lock_path().read_text(errors="replace").partition(" ")[0]
            raise HangingError(f"the daemon does not answer. End it, and start another one:  kill -9 {pid}") from error
        except httpx.TransportError as error:
            raise AwayError("no daemon answers. Start one:  tailhook plates serve") from error


def request(method: str, path: str, timeout: float = PATIENCE, **options: Any) -> Any:
    """The daemon's answer.  Raises AwayError, and TailhookError for what it refuses."""
    with daemon(timeout) as client:
        response = client.request(method, path, **options)
    if response.is_error:
        raise TailhookError(str(response.json().get("error", response.reason_phrase)))
    return response.json()


def start() -> None:
    """Start the daemon in the background where none answers, unless the user does not want that.

    Raises AwayError where none answers in the end.
    """
    end = time.monotonic() + PATIENCE
    started = False
    while True:
        try:
            request("GET", "/health")
            return
        except AwayError:
            if time.monotonic() > end or not may_start():
                raise
        if not started:
            paths.write_argv()
            spawn(daemon_argv())
            started = True
        time.sleep(0.05)


def may_start() -> bool:
    """Whether the user wants a daemon that starts by itself."""
    forbidden = load_config(project_root({})).get("plates", {}).get("autostart") is False
    return not forbidden and os.environ.get("TAILHOOK_NO_AUTOSTART") != "1"
