"""The board's source of plates: the daemon, over its Unix socket."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import httpx
from httpx_sse import SSEError, aconnect_sse

from tailhook.hook.answer import describe
from tailhook.plates import client
from tailhook.plates.client import TIMEOUT_S, AwayError
from tailhook.plates.paths import http_socket_path

SILENCE_TIMEOUT_S = 40.0  # the daemon sends a ping every 15 s
MAX_EVENTS = 300  # in the details of a plate
CLOSED_AT_ONCE = 200  # closed ones in one request

AnswerT = TypeVar("AnswerT")  # what a function of the client returns


class Source(Protocol):
    """The requests of a board."""

    def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """Yield `statuses` with the answer to `GET /statuses`, then the events of the daemon's stream.

        That begins with all open plates; after a loss, with what has changed meanwhile if the daemon knows it. Raises
        AwayError, and VersionError if the daemon is of another version.
        """
        ...

    async def details(self, session_id: str) -> dict[str, Any]:
        """Return one plate with its events. Raises TailhookError."""
        ...

    async def closed(self, page: str = "") -> tuple[list[dict[str, Any]], str]:
        """Return a page of the closed plates, newest first, and the next page, "" after the last. Raises TailhookError.

        page: "" for the first.
        """
        ...

    async def terminal(self, session_id: str) -> dict[str, str]:
        """Return the environment variables that name a plate's terminal. Raises TailhookError."""
        ...

    async def mark(self, session_id: str, **marks: bool) -> None:
        """Hide a plate until its next prompt, show it again, or mark it as seen. Raises TailhookError.

        marks: `hidden` or `seen`.
        """
        ...

    async def wake(self) -> None:
        """Start the daemon if none runs and the user allows that. Raises TailhookError."""
        ...


class DaemonSource:
    """The daemon of this user."""

    def __init__(self) -> None:
        self.last_id = ""  # of the newest event of the stream that was handled

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """See Source."""
        timeout = httpx.Timeout(TIMEOUT_S, read=SILENCE_TIMEOUT_S)
        try:
            transport = httpx.AsyncHTTPTransport(uds=str(http_socket_path()), verify=False)  # a Unix socket has no TLS
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=timeout) as http:
                paths = ("/health", "/openapi.json", "/statuses")
                health, description, statuses = [(await http.get(path)).json() for path in paths]
                client.check_version(health["version"], description)
                yield "statuses", statuses
                async with aconnect_sse(http, "GET", "/stream", headers={"Last-Event-ID": self.last_id}) as stream:
                    async for event in stream.aiter_sse():
                        if event.data:  # httpx-sse 0.4 makes an event of each ping after the first id
                            yield event.event, json.loads(event.data)
                            self.last_id = event.id
        except (httpx.TransportError, SSEError, OSError) as error:
            raise AwayError("no daemon answers") from error

    async def details(self, session_id: str) -> dict[str, Any]:
        """See Source."""
        path = f"/plates/{quote(session_id)}"
        found: dict[str, Any] = await call_client(client.request, "GET", path, params={"events": MAX_EVENTS})
        return found

    async def closed(self, page: str = "") -> tuple[list[dict[str, Any]], str]:
        """See Source."""
        return await call_client(client.request_page, page or f"/plates?status=closed&limit={CLOSED_AT_ONCE}")

    async def terminal(self, session_id: str) -> dict[str, str]:
        """See Source."""
        found = await call_client(client.request, "GET", f"/terminals/{quote(session_id)}")
        return found["terminal"] or {}

    async def mark(self, session_id: str, **marks: bool) -> None:
        """See Source."""
        await call_client(client.request, "PATCH", f"/plates/{quote(session_id)}", json=marks)

    async def wake(self) -> None:
        """See Source."""
        await call_client(client.ensure_daemon)


async def call_client(call: Callable[..., AnswerT], *arguments: Any, **options: Any) -> AnswerT:
    """Call a function of the client in a thread. Raises AwayError also if the sockets' folder cannot be used."""
    try:
        return await asyncio.to_thread(call, *arguments, **options)
    except OSError as error:
        raise AwayError(describe(error)) from error
