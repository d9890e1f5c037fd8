"""Daemons for the tests of whole processes."""

from pathlib import Path

import pytest
from support.daemon import daemon_in
from support.host import short_folder
from support.postgres import postgres, wait_for

# What these modules test of the hook's process must be the same whether a pool answers or Python is started.
IN_BOTH_FORMS = {
    f"test_{name}"
    for name in (
        *("hook_process", "hosts", "idle_process", "idle_store", "ralph_process", "ralph_complaints", "ralph_diagrams"),
        *("triage_process", "memory_process", "gate_process", "plates_process", "state_folder"),
    )
}


def pytest_generate_tests(metafunc):
    is_for_both = metafunc.module.__name__ in IN_BOTH_FORMS and not any(metafunc.definition.iter_markers("cold_form"))
    if "hook_argv" in metafunc.fixturenames and is_for_both:
        metafunc.parametrize("hook_argv", ["cold", "warm"], indirect=True)


@pytest.fixture
def short_path():
    """Yield a folder with a short path: the path of a socket has at most 107 bytes."""
    with short_folder() as folder:
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
