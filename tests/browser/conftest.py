"""Fixtures: a page in a real browser that is signed in at a running daemon."""

from urllib.parse import quote

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from support.browser import launch  # noqa: E402
from support.daemon import daemon_in  # noqa: E402

BROWSER_TIMEOUT_MS = 30_000  # milliseconds that a busy machine may take
sync_api.expect.set_options(timeout=BROWSER_TIMEOUT_MS)


@pytest.fixture(scope="session")
def browser():
    """Yield the browser, one for all tests."""
    with sync_api.sync_playwright() as playwright:
        one = launch(playwright)
        if isinstance(one, str):
            pytest.skip(one)
        yield one
        one.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Yield a running daemon that a module's tests share."""
    with daemon_in(tmp_path_factory.mktemp("browser")) as one:
        yield one.start()


@pytest.fixture
def daemon(shared):
    """Return a running daemon without plates."""
    with shared.client() as client:
        for plate in client.get("/plates").json():
            client.delete(f"/plates/{quote(plate['session_id'], safe='')}").raise_for_status()
    return shared


@pytest.fixture
def own(tmp_path):
    """Yield a daemon for one test, which is not started."""
    with daemon_in(tmp_path) as one:
        yield one


@pytest.fixture
def open_board(browser):
    """Call it with a daemon and a context's options: its board in a page that is signed in.

    Its `faults` are the errors that the page logs, and the browser's refusals. They fail the test.
    """
    contexts, faults = [], []

    def open_one(daemon, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(BROWSER_TIMEOUT_MS)
        context.add_init_script(f"sessionStorage.setItem('tailhook.secret', '{daemon.secret}')")
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if is_fault(said) else None)
        page.goto(daemon.base)
        page.get_by_text("live", exact=True).wait_for()
        return page

    open_one.faults = faults
    yield open_one
    for context in contexts:
        context.close()
    assert faults == []


def is_fault(said) -> bool:
    """Return whether a console line is an error other than a lost connection."""
    return said.type == "error" and "ERR_CONNECTION_REFUSED" not in said.text and "ERR_INCOMPLETE" not in said.text


@pytest.fixture
def board(daemon, open_board):
    """Return a page with the shared daemon's board."""
    return open_board(daemon)
