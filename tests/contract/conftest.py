"""Daemons for the tests of whole processes."""

import tempfile
from pathlib import Path

import pytest
from support.daemon import daemon_in
from support.postgres import postgres, wait_for


@pytest.fixture
def short_path():
    """Yield a folder with a short path: the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="tailhook-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def postgres_url():
    """Yield the URL of a PostgreSQL server for one module; skips its tests if PostgreSQL is not installed."""
    with postgres() as url:
        if url is None:
            pytest.skip("PostgreSQL is not installed")
        wait_for(url)
        yield url


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """Yield a running daemon that the tests of a module share."""
    with daemon_in(tmp_path_factory.mktemp("daemon")) as one:
        yield one.start()


@pytest.fixture
def own(tmp_path):
    """Yield a daemon for one test, which is not started."""
    with daemon_in(tmp_path) as one:
        yield one
