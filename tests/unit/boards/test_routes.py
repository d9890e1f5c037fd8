"""The daemon's routes are built when it starts, and not again at its first request."""

import asyncio

import httpx
import pydantic

from tailhook.plates.app import make_app


def test_a_request_builds_no_validators(monkeypatch):
    app = make_app(None, None, None)
    built = []
    monkeypatch.setattr(pydantic.TypeAdapter, "_init_core_attrs", lambda *_, **__: built.append(1))

    async def ask():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.get("/health")

    assert asyncio.run(ask()).json()["status"] == "ok"
    assert built == []
