"""The sockets on which the daemon listens, and the servers behind them."""

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
from tailhook.plates.connections import Connection, Strangers, backlog
from tailhook.plates.guard import BrowserHeaders, Guard
from tailhook.plates.options import Options

# Of each address that means all of them: one outside (RFC 5737, RFC 3849: for examples), and the machine's own.
OUTSIDE = {"0.0.0.0": ("192.0.2.1", "127.0.0.1"), "::": ("2001:db8::1", "::1")}  # noqa: S104
LEAVING_S = 2  # that open connections have at the end


class Server(uvicorn.Server):
    """One of several in a process, which leaves the signals to the daemon."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing about signals."""
        yield


def server_of(app: ASGIApp, **more: Any) -> Server:
    """Return a server of an application.  more: of uvicorn's configuration."""
    return Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,  # a client could say in them where it is, and that decides whose the session is
            timeout_graceful_shutdown=LEAVING_S,
            **more,
        )
    )


@dataclass
class Port:
    """The TCP port. It stays open for the whole life of the process, also while the daemon moves its other sockets.

    If another program had it for a moment, open boards would send their secrets there.
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
        return server_of(guarded, http=connection, backlog=backlog())

    def link(self) -> str:
        """Return a link that signs a browser in, once."""
        host = reachable(self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.listener.getsockname()[1]}{self.browsers.new_link()}"


def open_port(options: Options) -> Port | None:
    """Listen on the TCP port, if there is to be one. Raises TailhookError."""
    if options.port is None:
        return None
    token = paths.load_token() if options.token is None else options.token
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token):
        raise TailhookError("the port needs a token of letters, digits and -._~+/= that cannot be guessed")
    return Port(listening(options.host, options.port), options.host, token)


def take_pokes(pokes: socket.socket, poked: asyncio.Event) -> None:
    """Take all wake-ups of the hooks, and note that there were some."""
    with contextlib.suppress(BlockingIOError):
        while pokes.recv(16):
            poked.set()


def bound(kind: socket.SocketKind, path: Path) -> socket.socket:
    """Return a Unix socket at the path that only the user can use. Removes what a dead daemon left there."""
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
    made.setblocking(False)
    return made


def mark_of(path: Path) -> "tuple[int, int] | None":
    """Return a file's device and inode, which change if it is replaced, or None if it is missing."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def listening(host: str, port: int) -> socket.socket:
    """Return a TCP socket. Raises TailhookError if the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise TailhookError(
            f"{host}:{port}: {error.strerror}. Another port:  tailhook plates serve --port N"
        ) from error


def reachable(host: str) -> str:
    """Return an address under which other machines reach the daemon.

    If it listens on all addresses, that is the one from which this machine sends to other networks.
    """
    if host not in OUTSIDE:
        return host
    outside, alone = OUTSIDE[host]
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect((outside, 9))  # sends nothing
        except OSError:
            return alone
        return str(way.getsockname()[0])
