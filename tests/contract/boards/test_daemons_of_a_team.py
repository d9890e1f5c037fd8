"""Several daemons on one PostgreSQL: each takes its own spool, and every board shows the events of all."""

import os
from contextlib import ExitStack

import pytest
import sqlalchemy as sa
from support.daemon import beginning, daemon_in, listening, spooled, wait_until


@pytest.fixture
def team(postgres_url, short_path):
    """Yield two daemons on an empty database."""
    server = sa.create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    name = f"team_{os.urandom(4).hex()}"
    with server.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    server.dispose()
    with ExitStack() as stack:
        yield [
            stack.enter_context(daemon_in(short_path / word)).start(
                "--db", postgres_url.replace("/postgres", f"/{name}")
            )
            for word in ("one", "two")
        ]


def test_each_takes_its_own_spool(team):
    for number, daemon in enumerate(team):
        daemon.spool(*(spooled(one, session=f"of-{number}") for one in range(100)))
    for daemon in team:
        wait_until(lambda: sum(team[0].ask("GET", "/status").json()["events"].values()) == 200)
        assert daemon.ask("GET", "/status").json()["spool_bytes"] == 0
        assert daemon.plates().keys() == {"of-0", "of-1"}


def test_a_listener_of_one_daemon_gets_the_changes_of_another(team):
    one, two = team
    with listening(one) as reported:
        assert beginning(reported)[:2] == ({}, 0)
        two.post("prompt_submit", "s")
        name, plate, _ = next(reported)
        assert (name, plate["session_id"], plate["status"]) == ("plate", "s", "running")
        two.ask("DELETE", "/plates/s")
        assert next(reported)[:2] == ("removed", {"session_id": "s"})
        one.post("stop", "own")
        two.post("stop", "theirs")
        assert [next(reported)[1]["session_id"] for _ in range(2)] == ["own", "theirs"]  # its own once


def test_one_goes_on_when_its_connections_are_cut(team, postgres_url):
    one, two = team
    cut_connections(postgres_url)
    assert [daemon.ask("GET", "/status").status_code for daemon in team] == [200, 200]  # no request fails
    two.spool(*(spooled(number) for number in range(20)))
    wait_until(lambda: two.ask("GET", "/status").json()["events"] == {"tool_call": 20})
    cut_connections(postgres_url)

    def is_heard():
        with listening(one) as reported:
            beginning(reported)
            two.post("stop", "again")
            return next(reported)[0] == "plate"  # or "plates", if the connection for notifications is made only now

    assert wait_until(is_heard)


def cut_connections(postgres_url):
    """End the server's side of all connections of the team's daemons, and wait until they are gone."""
    server = sa.create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    cut = "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'team_%'"
    with server.connect() as connection:
        pids = set(connection.execute(sa.text(cut)).scalars())
        assert len(pids) >= 2
        is_open = sa.text("SELECT pid FROM pg_stat_activity")
        wait_until(lambda: pids.isdisjoint(connection.execute(is_open).scalars()))
    server.dispose()
