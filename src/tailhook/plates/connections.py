"""The connections to the daemon's port of which no token is known yet.

Every local user can open connections, and with `--host` the network can. So there are few of them, none lasts long,
and all other connections are safe from them: those that have shown a token, and those to the Unix socket.
"""

import asyncio
import contextlib
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_STRANGERS = 128
PATIENCE_S = 5.0  # for a request of a stranger: from the connection's beginning, or from the last answer
MAX_BACKLOG = 64  # connections that asyncio accepts in one go: while it does, nothing else is done
OPEN_MAX = 10_240  # files; what macOS takes at the most, which calls its limit infinite


def raise_file_limit() -> None:
    """Let this process open as many files as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, OPEN_MAX):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return


def part_of_files(most: int, share: int) -> int:
    """Return a number of connections: `most`, or that share of the files that this process may open if it is less."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if limit == resource.RLIM_INFINITY else max(1, min(most, limit // share))


def backlog() -> int:
    """Return how many connections are accepted in one go. Up to three times as many are open until the oldest go."""
    return part_of_files(MAX_BACKLOG, 16)


class Strangers:
    """The connections without a token, oldest first. One too many takes the place of the oldest.

    A client with a token sends it at once, so it is never the oldest for long, however many connections others hold.
    """

    def __init__(self) -> None:
        self.most = part_of_files(MAX_STRANGERS, 4)
        self.connections: dict[Connection, None] = {}

    def add(self, connection: "Connection") -> None:
        """Add a connection that was just made."""
        if len(self.connections) >= self.most:
            next(iter(self.connections)).drop()
        self.connections[connection] = None

    def remove(self, connection: "Connection") -> None:
        """Remove a connection that has shown a token, or that is lost."""
        self.connections.pop(connection, None)


class Connection(H11Protocol):
    """A connection to the port: uvicorn's, and a stranger's at first. The state of each request holds it.

    strangers: given by a subclass, as uvicorn makes the connections itself.
    """

    strangers: Strangers

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)
        self.end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin as a stranger."""
        super().connection_made(transport)
        self.strangers.add(self)
        self.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the strangers."""
        self.welcome()
        super().connection_lost(exc)

    def wait(self) -> None:
        """Wait for the next request, if no token is known yet not for long."""
        if self in self.strangers.connections:
            if self.end:
                self.end.cancel()
            self.end = self.loop.call_later(PATIENCE_S, self.drop)

    def welcome(self) -> None:
        """Leave the strangers: a token was shown, or the connection is lost."""
        self.strangers.remove(self)
        if self.end:
            self.end.cancel()
            self.end = None

    def drop(self) -> None:
        """Close it at once."""
        self.welcome()
        self.transport.abort()
