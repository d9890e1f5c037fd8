"""Daemons for the tests of whole processes."""

from pathlib import Path

import pytest
from support.daemon import daemon_in
from support.host import COVERAGE, SANITIZER, short_folder
from support.postgres import postgres, wait_for

# The tests of these modules run each hook cold and warm, and compare the two.
IN_BOTH_FORMS = {
    f"test_{name}"
    for name in (
        *("hook_process", "hosts", "idle_process", "idle_store", "ralph_process", "ralph_complaints", "ralph_diagrams"),
        *("triage_process", "memory_process", "gate_process", "plates_process", "state_folder"),
    )
}


def pytest_generate_tests(metafunc):
    """Let the tests of these modules run in both forms; `one_form`: each by itself, `cold_form`: one of them.

    A sanitizer's runtime and the measurement of coverage are only in processes that a test starts.
    """
    if metafunc.module.__name__ not in IN_BOTH_FORMS or "form" not in metafunc.fixturenames or SANITIZER or COVERAGE:
        return
    markers = {mark.name for mark in metafunc.definition.iter_markers()}
    if "cold_form" not in markers:
        metafunc.parametrize("form", ["cold", "warm"] if "one_form" in markers else ["both"])


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
