"""Limits for connections to the daemon's port that have not sent a token ("strangers").

Every local user can open connections, and with `--host` the network can. So only a few of them may be open at a time,
each for a short time. Connections with a token and those to the Unix socket are not affected.
"""

import asyncio
import contextlib
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_STRANGERS = 128
STRANGER_TIMEOUT_S = 5.0  # for a stranger's request, from the connection's start or the last answer; and for its answer
MAX_BACKLOG = 64  # connections that asyncio accepts in a row before it does anything else
MAX_OPEN_FILES = 10_240  # macOS reports no limit, but accepts no more


def raise_file_limit() -> None:
    """Let this process open as many files as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, MAX_OPEN_FILES):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return


def limit_by_files(max_connections: int, share: int) -> int:
    """Return the smaller of `max_connections` and the limit of open files divided by `share`, but at least 1."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max_connections if limit == resource.RLIM_INFINITY else max(1, min(max_connections, limit // share))


def accept_backlog() -> int:
    """Return how many connections are accepted at once. Up to three times as many are open until the oldest close."""
    return limit_by_files(MAX_BACKLOG, 16)


class Strangers:
    """The connections without a token, oldest first. One too many replaces the oldest.

    A client with a token sends it at once, so it never becomes the oldest, however many connections others hold.
    """

    def __init__(self) -> None:
        self.max_connections = limit_by_files(MAX_STRANGERS, 4)
        self.connections: dict[Connection, None] = {}

    def add(self, connection: "Connection") -> None:
        """Add a connection that was just made."""
        if len(self.connections) >= self.max_connections:
            next(iter(self.connections)).drop()
        self.connections[connection] = None

    def remove(self, connection: "Connection") -> None:
        """Remove a connection: it has sent a token, or it is lost."""
        self.connections.pop(connection, None)


class Connection(H11Protocol):
    """A connection to the port. It starts as a stranger's. The state of each request holds it.

    strangers: set in a subclass, because uvicorn creates the connections itself.
    """

    strangers: Strangers

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)
        self.end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start as a stranger."""
        super().connection_made(transport)
        self.strangers.add(self)
        self.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove this from the strangers."""
        self.admit()
        super().connection_lost(exc)

    def wait(self) -> None:
        """Start the timeout for the next request, or for its answer, unless a token was sent."""
        if self in self.strangers.connections:
            if self.end:
                self.end.cancel()
            self.end = self.loop.call_later(STRANGER_TIMEOUT_S, self.drop)

    def admit(self) -> None:
        """Remove this from the strangers: a token was sent, or the connection is lost."""
        self.strangers.remove(self)
        if self.end:
            self.end.cancel()
            self.end = None

    def drop(self) -> None:
        """Close it at once."""
        self.admit()
        self.transport.abort()
