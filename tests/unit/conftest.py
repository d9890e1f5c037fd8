"""Fixtures that several unit test modules share. They import the daemon's modules only where they are used."""

import os
from itertools import count

import pytest
import sqlalchemy as sa

numbers = count(1)  # of the databases on PostgreSQL


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Return the URL of an empty database; with empty tables if the test takes it as `database`."""
    has_tables = "database" in request.fixturenames
    if request.param == "sqlite":
        from support.databases import database_in

        return database_in(tmp_path) if has_tables else f"sqlite:///{tmp_path}/plates.db"
    if has_tables:
        return emptied(request.getfixturevalue("tables"))
    return new_database(request.getfixturevalue("postgres_url"))


@pytest.fixture(scope="session")
def tables(postgres_url):
    """Return the URL of a database on the PostgreSQL server that tests share, one after the other."""
    return new_database(postgres_url)


def emptied(url):
    """Delete all rows of a database, if it has tables. Returns its URL."""
    from tailhook.plates.tables import metadata

    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        if sa.inspect(connection).has_table("plates"):
            connection.execute(sa.text(f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY"))
    return url


def new_database(base):
    """Make a database on the PostgreSQL server. Returns its URL."""
    name = f"test_{os.getpid()}_{next(numbers)}"
    admin = sa.create_engine(base, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    admin.dispose()
    return base.replace("/postgres", f"/{name}")


@pytest.fixture
def database(url):
    """Yield an open database; `reported` lists its changed plates, `gone` the ids of its removed sessions."""
    from tailhook.plates.db import Database

    reported, gone = [], []
    made = Database(url, reported.append, gone.append)
    made.reported, made.gone = reported, gone
    yield made
    made.close()


@pytest.fixture
def world(tmp_path):
    """Yield a health check on an empty database; the test sets its clock, transcripts and processes."""
    from support.health_check import World

    made = World(tmp_path)
    yield made
    made.database.close()


@pytest.fixture
def file(tmp_path):
    """Yield a file that is open for reading and writing."""
    with open(tmp_path / "t.jsonl", "w+b") as opened:
        yield opened
