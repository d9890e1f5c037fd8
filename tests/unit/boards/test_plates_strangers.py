"""How long a connection without a token lasts."""

import asyncio
from types import SimpleNamespace

import pytest
import uvicorn

from tailhook.plates.browsers import Browsers
from tailhook.plates.connections import Connection, Strangers
from tailhook.plates.guard import Guard

HEADER = b"GET /web/board.js HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: "


class SimulatedTime:
    """An event loop's clock and its timers."""

    def __init__(self):
        self.now, self.timers = 0.0, []

    def call_later(self, delay, function):
        timer = SimpleNamespace(at=self.now + delay, run=function, cancel=lambda: self.timers.remove(timer))
        self.timers.append(timer)
        return timer

    def advance(self, seconds):
        """Let the time pass, and run the timers that are due."""
        self.now += seconds
        for timer in [timer for timer in self.timers if timer.at <= self.now]:
            timer.run()


class Transport:
    """The socket of a connection. It keeps when it was closed, by the simulated clock."""

    def __init__(self, time):
        self.time, self.closed_at = time, None

    def get_extra_info(self, name):
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else None

    def abort(self):
        self.closed_at = self.time.now


@pytest.fixture
def time():
    """Return a simulated clock."""
    return SimulatedTime()


@pytest.fixture
def connect(time):
    """Return a function that makes a connection: it and its transport."""
    config, state, kind = uvicorn.Config(None), uvicorn.server.ServerState(), type("OfTest", (Connection,), {})
    kind.strangers = Strangers()

    def make():
        connection, transport = kind(config, state, {}, time), Transport(time)
        connection.connection_made(transport)
        return connection, transport

    return make


@pytest.mark.parametrize("sent", [b"", HEADER[:1], HEADER])
def test_a_connection_without_a_whole_header_lasts_five_seconds(connect, time, sent):
    time.advance(1000)
    connection, transport = connect()
    if sent:
        connection.data_received(sent)
    time.advance(4.99)
    assert transport.closed_at is None
    time.advance(0.01)
    assert transport.closed_at == 1005


def test_a_header_that_comes_byte_by_byte_does_not_prolong_the_five_seconds(connect, time):
    connection, transport = connect()
    for byte in HEADER[:10]:
        connection.data_received(bytes([byte]))
        time.advance(0.5)
    assert transport.closed_at == 5


def test_each_connection_has_its_own_five_seconds_and_a_lost_one_is_forgotten(connect, time):
    (lost, gone), (_, first) = connect(), connect()
    time.advance(3)
    _, second = connect()
    lost.connection_lost(ConnectionResetError())
    assert len(lost.strangers.connections) == 2
    time.advance(2)
    assert (gone.closed_at, first.closed_at, second.closed_at) == (None, 5, None)
    time.advance(3)
    assert second.closed_at == 8
    assert (lost.strangers.connections, time.timers) == ({}, [])


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
