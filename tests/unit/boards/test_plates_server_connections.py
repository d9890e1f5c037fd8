"""Connections to a PostgreSQL server: one that was cut without a word is noticed within a minute, not within hours."""

import asyncio
import json
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from tailhook.plates.app import answer_failure
from tailhook.plates.hub import Hub
from tailhook.plates.pg_notify import listen
from tailhook.plates.tables import SERVER_OPTIONS, open_engine, server_options

psycopg = pytest.importorskip("psycopg")
URL = "postgresql+psycopg://me@host/plates"


class RefusedError(Exception):
    """Ends an attempt to connect."""


@pytest.mark.parametrize(
    ("more", "kept"), [("", {}), ("?keepalives_idle=600&connect_timeout=3", {"keepalives_idle", "connect_timeout"})]
)
def test_what_the_url_sets_counts(more, kept):
    assert server_options(sa.make_url(URL + more)).keys() == SERVER_OPTIONS.keys() - kept
    assert server_options(sa.make_url("sqlite:///plates.db")) == {}


def test_the_database_connects_with_these_options():
    engine, seen = open_engine(URL), []

    def connect(*arguments):
        seen.append(arguments[-1])
        raise RefusedError

    sa.event.listen(engine, "do_connect", connect)
    with pytest.raises(RefusedError):
        engine.connect()
    assert SERVER_OPTIONS.items() <= seen[0].items()


def test_the_listener_to_other_daemons_connects_with_these_options(monkeypatch):
    seen = []

    async def connect(url, **options):
        seen.append(options)
        raise asyncio.CancelledError

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", connect)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(listen(SimpleNamespace(engine=open_engine(URL)), Hub()))
    assert SERVER_OPTIONS.items() <= seen[0].items()


def test_a_request_without_the_server_fails_with_one_line():
    error = sa.exc.OperationalError("SELECT 1", {}, psycopg.OperationalError("connection failed\nIs it running?"))
    answer = asyncio.run(answer_failure(None, error))
    assert json.loads(answer.body) == {"error": "OperationalError: (psycopg.OperationalError) connection failed"}
