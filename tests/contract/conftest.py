"""Daemons for the tests of whole processes."""

import tempfile
from pathlib import Path

import pytest
from support.daemon import daemon_in
from support.postgres import postgres, wait_for


@pytest.fixture
def short_path():
    """A folder with a short path: a socket's has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="tailhook-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def postgres_url():
    """The URL of a PostgreSQL server of the module's own; its tests are skipped if PostgreSQL is not installed."""
    with postgres() as url:
        if url is None:
            pytest.skip("PostgreSQL is not installed")
        wait_for(url)
        yield url


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A running daemon that the tests of a module share."""
    with daemon_in(tmp_path_factory.mktemp("daemon")) as one:
        yield one.start()


@pytest.fixture
def own(tmp_path):
    """A daemon of the test's own, not started."""
    with daemon_in(tmp_path) as one:
        yield one
