"""Fixtures: a page in a real browser that is signed in at a running daemon.

The folder's tests share a browser, a daemon and a page. All three end before a test of another folder begins: the
browser's client has an event loop of its own in this thread, and no other test may run in it.
"""

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from support.browser import BROWSER_TIMEOUT_MS, launch, load  # noqa: E402
from support.daemon import daemon_in  # noqa: E402

VIEWPORT = {"width": 1280, "height": 720}  # Playwright's own
LOST = "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE"  # a connection
sync_api.expect.set_options(timeout=BROWSER_TIMEOUT_MS)


@pytest.fixture(scope="package")
def browser():
    """Yield the browser."""
    with sync_api.sync_playwright() as playwright:
        one = launch(playwright)
        if isinstance(one, str):
            pytest.skip(one)
        yield one
        one.close()


@pytest.fixture(scope="package")
def shared(tmp_path_factory):
    """Yield a running daemon."""
    with daemon_in(tmp_path_factory.mktemp("browser")) as one:
        yield one.start()


@pytest.fixture
def daemon(shared):
    """Return a running daemon without plates."""
    shared.remove_plates()
    return shared


@pytest.fixture
def own(tmp_path):
    """Yield a daemon for one test, which is not started."""
    with daemon_in(tmp_path) as one:
        yield one


@pytest.fixture
def new_context(browser):
    """Call it with a context's options: a new context, closed at the end."""
    contexts = []

    def make(**options):
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(BROWSER_TIMEOUT_MS)
        return contexts[-1]

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def open_board(new_context):
    """Call it with a daemon and a context's options: its board in a page and a context of its own, signed in.

    script: runs in the page before its own.

    Its `faults` are the errors that the page logs, and the browser's refusals. They fail the test.
    """

    def open_one(daemon, script="", **options):
        context = new_context(**options)
        context.add_init_script(f"sessionStorage.setItem('tailhook.secret', '{daemon.secret}');{script}")
        page = context.new_page()
        watch(page, open_one.faults)
        load(page, daemon)
        return page

    open_one.faults = []
    yield open_one
    assert open_one.faults == []


def watch(page, faults):
    """Append the errors that a page logs, and the browser's refusals, to `faults`."""
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if is_fault(said) else None)


def is_fault(said) -> bool:
    """Return whether a console line is an error other than a lost connection."""
    return said.type == "error" and not any(name in said.text for name in LOST)


@pytest.fixture(scope="package")
def shared_page(browser, shared):
    """Yield a page that is signed in at the shared daemon, and the list of its faults.

    Another tab stays open, so the worker with the daemon's stream goes on when the page is loaded again.
    """
    context = browser.new_context(viewport=VIEWPORT)
    context.set_default_timeout(BROWSER_TIMEOUT_MS)
    context.add_init_script(f"sessionStorage.setItem('tailhook.secret', '{shared.secret}')")
    load(context.new_page(), shared)
    page, faults = context.new_page(), []
    watch(page, faults)
    yield page, faults
    context.close()


@pytest.fixture
def board(daemon, shared_page):
    """Yield the shared page with the shared daemon's board, loaded again.

    A load does not end a script or a clock in the page: a test with one of them uses `open_board`.
    """
    page, faults = shared_page
    page.goto("about:blank")  # open details of the last test may have asked for a plate that is deleted now
    faults.clear()
    load(page, daemon)
    page.get_by_text("No sessions yet").wait_for()  # the worker knows that the plates of other tests are deleted
    yield page
    page.unroute_all()
    page.evaluate("localStorage.clear()")
    page.mouse.move(0, 0)
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(color_scheme="null", reduced_motion="null")
    assert faults == []
