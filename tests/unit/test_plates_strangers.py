"""How long a connection without a token lasts."""

import asyncio

import uvicorn

from tailhook.plates.browsers import Browsers
from tailhook.plates.connections import Connection, Strangers
from tailhook.plates.guard import Guard


def test_the_time_since_a_connections_last_answer_does_not_end_the_next_answer_in_the_middle():
    timers = []

    async def answer(scope, receive, send):
        timers.append(scope["state"]["connection"].end)

    async def ask():
        class OfTest(Connection):
            strangers = Strangers()

        connection = OfTest(uvicorn.Config(answer), uvicorn.server.ServerState(), {})
        connection.strangers.add(connection)
        connection.wait()  # as after an answer
        before = connection.end
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/web/board.js",
            "scheme": "http",
            "server": ("127.0.0.1", 80),
            "headers": [(b"host", b"127.0.0.1")],
            "state": {"connection": connection},
        }
        await Guard(answer, "token", Browsers(), ())(scope, None, None)
        assert before.cancelled()
        assert timers != [before]
        assert not connection.end.cancelled()
        connection.admit()

    asyncio.run(ask())
    assert len(timers) == 1
