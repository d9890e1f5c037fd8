"""The sockets on which the daemon listens, and their servers."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from tailhook.errors import TailhookError
from tailhook.plates import paths
from tailhook.plates.browsers import Browsers
from tailhook.plates.connections import Connection, Strangers, accept_backlog
from tailhook.plates.guard import BrowserHeaders, Guard
from tailhook.plates.options import DaemonOptions

# For each address that means "all addresses": an address in another network (RFC 5737, RFC 3849), and loopback.
ANY_ADDRESSES = {"0.0.0.0": ("192.0.2.1", "127.0.0.1"), "::": ("2001:db8::1", "::1")}  # noqa: S104
SHUTDOWN_TIMEOUT_S = 2  # for open connections at the end


class Server(uvicorn.Server):
    """A uvicorn server without signal handlers and without a timer; the daemon stops it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ending = asyncio.Event()

    def end(self) -> None:
        """Let it close its connections and return."""
        self.should_exit = True
        self.ending.set()

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn's own loop would wake ten times a second to check for it."""
        await self.on_tick(0)
        await self.ending.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing about signals."""
        yield


def server_of(app: ASGIApp, **more: Any) -> Server:
    """Return a server of an application.

    more: options of uvicorn.
    """
    return Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,  # otherwise a client could forge its address, and with it whether a session is local
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
            **more,
        )
    )


@dataclass
class Port:
    """The TCP port. It stays open for the whole life of the process, also while the daemon moves its other sockets.

    Otherwise another program could take the port for a moment, and open boards would send it their secrets.
    """

    listener: socket.socket
    host: str
    token: str
    browsers: Browsers = field(default_factory=Browsers)

    def server_of(self, app: ASGIApp) -> Server:
        """Return the port's server of an application."""
        names = {"127.0.0.1", "localhost", "::1", self.host.lower()}
        guarded = BrowserHeaders(Guard(app, self.token, self.browsers, names))
        connection = type("PortConnection", (Connection,), {"strangers": Strangers()})
        return server_of(guarded, http=connection, backlog=accept_backlog())

    def link(self) -> str:
        """Return a link that signs a browser in, once."""
        host = reachable_address(self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.listener.getsockname()[1]}{self.browsers.new_link()}"


def open_port(options: DaemonOptions) -> Port | None:
    """Listen on the TCP port, if there is to be one. Raises TailhookError."""
    if options.port is None:
        return None
    token = paths.load_token() if options.token is None else options.token
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token):
        raise TailhookError("the token of the port must not be empty and may contain only letters, digits and -._~+/=")
    return Port(listen_tcp(options.host, options.port), options.host, token)


def drain_wake_ups(wake_ups: socket.socket, woken: asyncio.Event) -> None:
    """Receive all wake-ups of the hooks, and set `woken` if there were any."""
    with contextlib.suppress(BlockingIOError):
        while wake_ups.recv(16):
            woken.set()


def bind_unix_socket(kind: socket.SocketKind, path: Path) -> socket.socket:
    """Return a Unix socket at a path. Only the user can use it. Removes the socket of a dead daemon.

    A stream socket listens at once, so a client that finds it is not refused, but waits.
    """
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, kind)
    try:
        made.bind(str(path))
    except OSError as error:
        made.close()
        if error.errno:
            raise
        advice = "set XDG_RUNTIME_DIR to a folder whose path is shorter"
        raise TailhookError(f"{path} is too long for a socket: {advice}") from error
    path.chmod(0o600)
    if kind == socket.SOCK_STREAM:
        made.listen()
    made.setblocking(False)
    return made


def file_identity(path: Path) -> "tuple[int, int] | None":
    """Return a file's device and inode, or None if it is missing. They change if the file is replaced."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def listen_tcp(host: str, port: int) -> socket.socket:
    """Return a TCP socket. Raises TailhookError if the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise TailhookError(
            f"{host}:{port}: {error.strerror}. To use another port:  tailhook plates serve --port N"
        ) from error


def reachable_address(host: str) -> str:
    """Return an address for the board's link.

    If the daemon listens on all addresses, this is the source address of the default route.
    """
    if host not in ANY_ADDRESSES:
        return host
    outside, alone = ANY_ADDRESSES[host]
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((outside, 9))  # sends nothing
        except OSError:
            return alone
        return str(way.getsockname()[0])
