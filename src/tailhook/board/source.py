"""Where the board gets its plates from: the daemon's Unix socket."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any, Protocol
from urllib.parse import quote

import httpx
from httpx_sse import SSEError, aconnect_sse

from tailhook.plates import client
from tailhook.plates.client import PATIENCE, AwayError
from tailhook.plates.paths import http_socket_path

SILENCE = 40.0  # seconds; a daemon gives a sign of life every 15
EVENTS = 300  # of a plate, how many are shown


class Source(Protocol):
    """What a board asks.

    changes: `plates` with all of them, then `plate` and `removed` as they change; raises AwayError.
    details: one plate with its events.  dismiss: remove a plate.  wake: start the daemon, when it is not there and may
    be started.  These three raise TailhookError.
    """

    def changes(self) -> AsyncGenerator[tuple[str, Any], None]: ...
    async def details(self, session_id: str) -> dict[str, Any]: ...
    async def dismiss(self, session_id: str) -> None: ...
    async def wake(self) -> None: ...


class Daemon:
    """The daemon of this user."""

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """See Source."""
        transport = httpx.AsyncHTTPTransport(uds=str(http_socket_path()))
        timeout = httpx.Timeout(PATIENCE, read=SILENCE)
        try:
            async with (
                httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=timeout) as http,
                aconnect_sse(http, "GET", "/stream") as stream,
            ):
                async for event in stream.aiter_sse():
                    yield event.event, json.loads(event.data)
        except (httpx.TransportError, SSEError) as error:
            raise AwayError("no daemon answers") from error

    async def details(self, session_id: str) -> dict[str, Any]:
        """See Source."""
        path = f"/plates/{quote(session_id)}"
        found: dict[str, Any] = await asyncio.to_thread(client.request, "GET", path, params={"events": EVENTS})
        return found

    async def dismiss(self, session_id: str) -> None:
        """See Source."""
        await asyncio.to_thread(client.request, "DELETE", f"/plates/{quote(session_id)}")

    async def wake(self) -> None:
        """See Source."""
        await asyncio.to_thread(client.start)
