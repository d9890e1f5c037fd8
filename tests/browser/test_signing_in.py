"""Signing a browser in. Other users get nothing of it that opens the board."""

import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import BROWSER_TIMEOUT_MS
from playwright.sync_api import expect
from support.browser import row
from support.daemon import answers, request, wait_until

WORDS = re.compile(r"[A-Za-z0-9._~+/=-]{16,}")  # what could be a token or a secret


class Stranger:
    """Another user's server on a port: it keeps all that it receives, and answers every request."""

    def __init__(self, port=0, body=b"<!doctype html><title>mine</title>", kind="text/html"):
        self.received = received = []

        class Handler(BaseHTTPRequestHandler):
            timeout = 1  # seconds for connections that the browser opens and does not use

            def answer(self):
                head = f"{self.requestline}\r\n{self.headers}"
                received.append(head + self.rfile.read(int(self.headers.get("content-length", 0))).decode("latin-1"))
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = do_OPTIONS = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = False  # each closes its connection before the test ends
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def words(self):
        """Return each received word that could open a board."""
        return {word for head in self.received for word in WORDS.findall(head)}


@pytest.fixture
def stranger():
    """Make a server of another user; closed at the end."""
    made = []

    def make(*args, **options):
        made.append(Stranger(*args, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def signed_in(browser, own):
    """Open the link of a started daemon in a browser of its own; return the page."""
    contexts = []

    def open_link(link=None):
        context = browser.new_context()
        contexts.append(context)
        context.set_default_timeout(BROWSER_TIMEOUT_MS)
        page = context.new_page()
        page.goto(link or own.link)
        page.get_by_text("live", exact=True).wait_for()
        return page

    yield open_link
    for context in contexts:
        context.close()


def opens_the_board(base, word):
    """Return whether a word is a token or a secret of the daemon, however it is sent."""
    ways = [{"authorization": f"Bearer {word}"}, {"cookie": f"tailhook_token={word}"}, {"cookie": word}]
    return any(request("GET", f"{base}/plates", headers=headers).status_code == 200 for headers in ways)


# ---- the link --------------------------------------------------------------------


def test_a_link_signs_one_tab_in_and_leaves_the_address_bar(own, signed_in, browser):
    own.start().post("stop", project_path="/src/first")
    page = signed_in()
    expect(page).to_have_url(f"{own.base}/")
    expect(row(page, "first")).to_be_visible()
    assert page.evaluate("history.length") == 2  # the empty page and the board: no entry has the code
    assert page.context.cookies() == []
    assert page.evaluate("Object.keys(localStorage)") == []
    another = browser.new_context()
    try:
        late = another.new_page()
        late.goto(own.link)
        expect(late.locator("#away")).to_contain_text("its link was used before")
        expect(late.locator("#connection")).to_have_text("signed out")
        expect(late).to_have_url(f"{own.base}/")
        assert late.locator("#board li").count() == 0
    finally:
        another.close()


def test_the_code_of_a_link_is_sent_once_and_in_no_address(own, browser):
    own.start()
    code = own.link.partition("once=")[2]
    context = browser.new_context()
    sent = []
    try:
        page = context.new_page()
        page.on("request", lambda request: sent.append((request.url, request.all_headers(), request.post_data)))
        page.goto(own.link)
        page.get_by_text("live", exact=True).wait_for()
    finally:
        context.close()
    assert code
    assert not [url for url, _, _ in sent if code in url]
    assert [url for url, headers, body in sent if code in json.dumps([headers, body])] == [f"{own.base}/sign-in"]
    assert not [url for url, headers, _ in sent if "cookie" in headers]


def test_a_tab_stays_signed_in_when_it_is_loaded_again(own, signed_in):
    own.start().post("stop", project_path="/src/first")
    page = signed_in()
    page.reload()
    expect(page.locator("#connection")).to_have_text("live")
    expect(row(page, "first")).to_be_visible()


def test_a_new_tab_is_not_signed_in_and_explains_how_to_sign_in(own, signed_in):
    own.start()
    page = signed_in()
    other = page.context.new_page()
    other.goto(own.base)
    expect(other.locator("#away")).to_contain_text("This tab is not signed in. To sign in, start the daemon again")
    expect(other.locator("#connection")).to_have_text("signed out")


def test_a_tab_that_another_one_opens_with_its_storage_is_signed_in(own, signed_in):
    """As browsers duplicate a tab: the storage goes with it."""
    own.start().post("stop", project_path="/src/first")
    page = signed_in()
    with page.expect_popup() as popup:
        page.evaluate("window.open(location.href)")
    expect(popup.value.locator("#connection")).to_have_text("live")
    expect(row(popup.value, "first")).to_be_visible()


def test_a_link_that_is_opened_in_a_tab_that_shows_the_board_signs_it_in(own, signed_in, browser):
    """Only the fragment differs, so the browser does not load the page again."""
    own.start().post("stop", project_path="/src/first")
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(own.base)
        expect(page.locator("#connection")).to_have_text("signed out")
        page.evaluate("link => { location.href = link; }", own.link)
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#away")).to_be_hidden()
        expect(row(page, "first")).to_be_visible()
        expect(page).to_have_url(f"{own.base}/")
    finally:
        context.close()


def test_a_link_that_was_used_does_not_sign_a_tab_out(own, signed_in):
    own.start()
    page = signed_in()
    page.evaluate("link => { location.href = link; }", own.link)
    page.reload()
    expect(page.locator("#connection")).to_have_text("live")


def test_a_browser_that_keeps_nothing_is_signed_in_until_the_page_is_left(own, browser):
    own.start().post("stop", project_path="/src/first")
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    try:
        page = context.new_page()
        page.goto(own.link)
        expect(row(page, "first")).to_be_visible()
        page.reload()
        expect(page.locator("#connection")).to_have_text("signed out")
    finally:
        context.close()


# ---- the stream ------------------------------------------------------------------

STREAM = (
    b": a comment\r\n\r\nevent: plates\r\ndata: [\r\ndata: ]\r\n\r\n"
    b"event: plate\ndata:%b\n\n"
    b"event: unknown\rdata: {}\r\r"
    b"data: no name\n\nevent: plate\n\nretry: 5\nid: 7\ndata\n\n"
)
PLATE = {
    "session_id": "s",
    "project_path": "/src/caf\u00e9-\U0001f600",
    "status": "idle",
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 16])
def test_the_stream_is_read_however_it_is_cut(own, open_board, size):
    """Its lines end in all three ways, and the pieces cut characters and line ends in two."""
    page = open_board(own.start())
    found = page.evaluate(
        """async ([bytes, size]) => {
            const stream = new ReadableStream({
                start(controller) {
                    for (let at = 0; at < bytes.length; at += size)
                        controller.enqueue(new Uint8Array(bytes.slice(at, at + size)));
                    controller.close();
                }
            });
            const { events } = await import("/web/daemon.js");
            const found = [];
            for await (const event of events(stream)) found.push(event);
            return found;
        }""",
        [list(STREAM.replace(b"%b", json.dumps(PLATE, ensure_ascii=False).encode())), size],
    )
    assert found == [
        ["plates", "[\n]"],
        ["plate", json.dumps(PLATE, ensure_ascii=False)],
        ["unknown", "{}"],
        ["message", "no name"],
        ["message", ""],
    ]


# ---- away and back ---------------------------------------------------------------


def test_a_tab_shows_that_the_daemon_is_away_and_is_live_again_by_itself(own, open_board):
    """The run of the daemon goes on, so the secret counts: it only opens its sockets again."""
    own.start().post("prompt_submit", "s", ts=1)
    page = open_board(own)
    expect(row(page, "p").locator(".status")).to_have_text("running")
    page.evaluate(
        "window.said = []; new MutationObserver(() => said.push(document.querySelector('#connection')."
        "textContent)).observe(document.querySelector('#connection'), {childList: true, characterData: true,"
        " subtree: true})"
    )
    (own.runtime / "poke").unlink()
    wait_until(lambda: "away" in page.evaluate("said"))
    wait_until((own.runtime / "poke").exists)
    wait_until(lambda: answers(own))
    own.post("stop", "s", ts=2)
    own.post("stop", "new", project_path="/new", ts=3)
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#away")).to_be_hidden()
    expect(row(page, "p").locator(".status")).to_have_text("idle")
    expect(row(page, "new")).to_be_visible()


def test_a_tab_shows_that_the_daemon_is_away_while_it_is(own, open_board):
    own.start().post("prompt_submit", "s", ts=1)
    page = open_board(own)
    expect(row(page, "p")).to_be_visible()
    own.stop()
    expect(page.locator("#away")).to_contain_text("The daemon does not answer")
    expect(page.locator("#connection")).to_have_text("away")
    expect(row(page, "p")).to_be_visible()


def test_after_a_new_start_a_tab_explains_how_to_sign_in_and_sends_nothing_more(own, open_board):
    own.start().post("stop", project_path="/src/first")
    page = open_board(own)
    port = own.base.rpartition(":")[2]
    own.stop()
    expect(page.locator("#away")).to_contain_text("The daemon does not answer")
    own.start("--port", port)
    expect(page.locator("#away")).to_contain_text("This tab is not signed in any more: the daemon was started again.")
    expect(page.locator("#away")).to_contain_text("open the link that it prints:  tailhook plates serve")
    expect(page.locator("#connection")).to_have_text("signed out")
    assert page.evaluate("sessionStorage.length") == 0
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    page.wait_for_timeout(6000)  # longer than the pause between two attempts
    assert sent == []
    page.evaluate("link => { location.href = link; }", own.link)  # and the same tab is signed in by another link
    expect(page.locator("#connection")).to_have_text("live")
    page.close()
    assert all("401 (Unauthorized)" in fault for fault in open_board.faults)
    open_board.faults.clear()


# ---- other users -----------------------------------------------------------------


def test_a_server_on_another_port_gets_nothing_that_opens_the_board(own, signed_in, stranger):
    """A signed-in browser visits it, and its page tries to reach the daemon."""
    own.start().post("stop", project_path="/src/first")
    page = signed_in()
    script = f"""<!doctype html><title>mine</title><script>
        const tries = [
            fetch("{own.base}/plates", {{credentials: "include"}}).then(answer => answer.text()),
            fetch("{own.base}/plates", {{credentials: "include", mode: "no-cors"}}).then(answer => answer.text()),
            fetch("{own.base}/sign-in", {{method: "POST", mode: "no-cors", body: "x"}}).then(answer => answer.text()),
        ];
        Promise.allSettled(tries).then(found => fetch("/found", {{method: "POST", body: JSON.stringify(found)}}));
    </script><iframe src="{own.base}/"></iframe><img src="{own.base}/web/icon.svg">"""
    theirs = stranger(body=script.encode())
    visitor = page.context.new_page()
    visitor.goto(theirs.url)
    wait_until(lambda: any("POST /found" in head for head in theirs.received))
    found = next(head for head in theirs.received if "POST /found" in head)
    assert "first" not in found
    assert theirs.words()
    assert not [word for word in theirs.words() if opens_the_board(own.base, word)]
    assert not [head for head in theirs.received if "cookie:" in head.lower() or "authorization:" in head.lower()]
    assert row(page, "first").is_visible()


def test_a_server_that_takes_the_port_of_a_dead_daemon_gets_nothing_usable(own, signed_in, stranger):
    """The open tab keeps sending requests to the port; no person touches it."""
    own.start().post("stop", project_path="/src/first")
    token = own.token
    page = signed_in()
    port = int(own.base.rpartition(":")[2])
    own.stop()
    expect(page.locator("#connection")).to_have_text("away")
    theirs = stranger(port, b"event: plates\r\ndata: []\r\n\r\n", "text/event-stream")
    wait_until(lambda: len(theirs.received) >= 2)
    theirs.close()
    assert all(head.startswith("GET /stream ") for head in theirs.received)
    assert token not in "".join(theirs.received)
    own.start("--port", str(port))
    assert own.token == token
    assert theirs.words()
    assert not [word for word in theirs.words() if opens_the_board(own.base, word)]


def test_the_port_is_not_free_while_the_daemon_moves_its_sockets(own):
    """A run's secrets are valid as long as it lives, so no other process may get the port and be sent them."""
    own.start()
    port = int(own.base.rpartition(":")[2])
    secret = own.secret
    stop = threading.Event()
    taken = []

    def take_it():
        while not stop.is_set():
            try:
                socket.create_server(("127.0.0.1", port)).close()
                taken.append(port)
            except OSError:
                pass

    thread = threading.Thread(target=take_it)
    thread.start()
    try:
        for _ in range(3):
            (own.runtime / "poke").unlink()
            wait_until((own.runtime / "poke").exists)
            wait_until(lambda: answers(own))
            assert request("GET", f"{own.base}/health", timeout=30).status_code == 200
    finally:
        stop.set()
        thread.join()
    assert taken == []
    assert opens_the_board(own.base, secret)
