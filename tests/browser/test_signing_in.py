"""Signing a browser in. Other users get nothing of it that opens the board."""

import contextlib
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import Page, expect
from support.browser import BROWSER_TIMEOUT_MS, at, row
from support.daemon import Daemon, answers, daemon_in, request, wait_until
from support.host import command_server, tailhook

from tailhook import __version__

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


class Recorder(ThreadingTCPServer):
    """Passes connections on to a port, and keeps all bytes: what a browser sends and gets, also that of its workers."""

    def __init__(self, port):
        self.sent, self.received = sent, received = bytearray(), bytearray()

        class Handler(BaseRequestHandler):
            def handle(self):
                with socket.create_connection(("127.0.0.1", port)) as daemon:
                    back = threading.Thread(target=pass_on, args=(daemon, self.request, received))
                    back.start()
                    pass_on(self.request, daemon, sent)
                    back.join()

        super().__init__(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self.thread.start()

    def server_close(self):
        self.shutdown()
        super().server_close()
        self.thread.join()


def pass_on(source, target, kept):
    """Pass on what a connection sends, until it ends, and append it to `kept`. Then end both directions."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            kept += data
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class SignedIn(NamedTuple):
    """A page that a daemon's link signed in, and what the page sent: addresses, headers and bodies."""

    daemon: Daemon
    page: Page
    sent: list[tuple[str, dict[str, str], str | None]]


@pytest.fixture(scope="module")
def signed_in(browser, tmp_path_factory):
    """Yield a daemon, and a page that its link signed in. A session of `first` has ended its turn."""
    with daemon_in(tmp_path_factory.mktemp("signed-in")) as daemon:
        daemon.start().post("stop", project_path="/src/first")
        context = browser.new_context()
        context.set_default_timeout(BROWSER_TIMEOUT_MS)
        page, sent = context.new_page(), []

        def keep(request):
            sent.append((request.url, request.all_headers(), request.post_data))

        page.on("request", keep)
        page.goto(daemon.link)
        page.get_by_text("live", exact=True).wait_for()
        page.remove_listener("request", keep)
        yield SignedIn(daemon, page, sent)
        context.close()


@pytest.fixture
def new_tab(signed_in):
    """Call it with a page's address: that page in another tab of the same browser, closed at the end."""
    tabs = []

    def open_tab(address):
        tabs.append(signed_in.page.context.new_page())
        tabs[-1].goto(address)
        return tabs[-1]

    yield open_tab
    for tab in tabs:
        tab.close()


def opens_the_board(base, word):
    """Return whether a word is a token or a secret of the daemon, however it is sent."""
    ways = [{"authorization": f"Bearer {word}"}, {"cookie": f"tailhook_token={word}"}, {"cookie": word}]
    return any(request("GET", f"{base}/plates", headers=headers).status_code == 200 for headers in ways)


# ---- the link --------------------------------------------------------------------


def test_a_link_signs_one_tab_in_and_leaves_the_address_bar(signed_in, new_context):
    daemon, page, _ = signed_in
    expect(page).to_have_url(f"{daemon.base}/")
    expect(row(page, "first")).to_be_visible()
    assert page.evaluate("history.length") == 2  # the empty page and the board: no entry has the code
    assert page.context.cookies() == []
    assert page.evaluate("Object.keys(localStorage)") == []
    late = new_context().new_page()
    late.goto(daemon.link)
    expect(late.locator("#away")).to_have_text(
        "This tab is not signed in: the link was used before. To sign in, open the link that this command prints: "
        " tailhook plates link"
    )
    expect(late.locator("#connection")).to_have_text("signed out")
    expect(late).to_have_url(f"{daemon.base}/")
    assert late.locator("#board li").count() == 0


def test_the_code_of_a_link_is_sent_once_and_in_no_address(signed_in):
    daemon, _, sent = signed_in
    code = daemon.link.partition("once=")[2]
    assert code
    assert not [url for url, _, _ in sent if code in url]
    assert [url for url, headers, body in sent if code in json.dumps([headers, body])] == [f"{daemon.base}/sign-in"]
    assert not [url for url, headers, _ in sent if "cookie" in headers]


def test_a_tab_stays_signed_in_when_it_is_loaded_again(signed_in):
    page = signed_in.page
    page.reload()
    expect(page.locator("#connection")).to_have_text("live")
    expect(row(page, "first")).to_be_visible()


def test_a_new_tab_is_not_signed_in_and_explains_how_to_sign_in(signed_in, new_tab):
    other = new_tab(signed_in.daemon.base)
    expect(other.locator("#away")).to_have_text(
        "This tab is not signed in. To sign in, duplicate a signed-in tab, or open the link that this command prints:  "
        "tailhook plates link"
    )
    expect(other.locator("#connection")).to_have_text("signed out")


def test_a_tab_that_another_one_opens_with_its_storage_is_signed_in_and_a_used_link_does_not_sign_it_out(signed_in):
    """As browsers duplicate a tab: the storage goes with it."""
    with signed_in.page.expect_popup() as popup:
        signed_in.page.evaluate("window.open(location.href)")
    tab = popup.value
    expect(tab.locator("#connection")).to_have_text("live")
    expect(row(tab, "first")).to_be_visible()
    tab.evaluate("link => { location.href = link; }", signed_in.daemon.link)
    tab.reload()
    expect(tab.locator("#connection")).to_have_text("live")
    tab.close()


def test_a_link_that_is_opened_in_a_tab_that_shows_the_board_signs_it_in(own, new_context):
    """Only the fragment differs, so the browser does not load the page again."""
    own.start().post("stop", project_path="/src/first")
    page = new_context().new_page()
    page.goto(own.base)
    expect(page.locator("#connection")).to_have_text("signed out")
    page.evaluate("link => { location.href = link; }", own.link)
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#away")).to_be_hidden()
    expect(row(page, "first")).to_be_visible()
    expect(page).to_have_url(f"{own.base}/")


def new_link(daemon):
    """Return the link that the command prints."""
    done = tailhook("plates", "link", env=daemon.env, cwd=daemon.home)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_tab_is_signed_in_by_a_link_of_the_running_daemon(signed_in, new_tab):
    tab = new_tab(signed_in.daemon.base)
    expect(tab.locator("#connection")).to_have_text("signed out")
    tab.goto(new_link(signed_in.daemon))
    expect(tab.locator("#connection")).to_have_text("live")
    expect(row(tab, "first")).to_be_visible()
    expect(tab).to_have_url(f"{signed_in.daemon.base}/")
    expect(signed_in.page.locator("#connection")).to_have_text("live")


def test_an_expired_link_explains_how_to_get_another_one(own, new_context):
    constants = {"tailhook.plates.browsers.CODE_LIFETIME_MIN": 0}
    own.process = command_server(True).start(("plates", "serve", "--port", "0"), own.env, own.home, constants)
    own.link = own.process.stdout.readline().split()[-1]
    page = new_context().new_page()
    page.goto(own.link)
    expect(page.locator("#away")).to_contain_text("This tab is not signed in: the link has expired")
    expect(page.locator("#away")).to_contain_text("open the link that this command prints:  tailhook plates link")
    expect(page.locator("#connection")).to_have_text("signed out")


@pytest.mark.parametrize("with_worker", [True, False], ids=["shared worker", "stream in the page"])
def test_a_sign_out_reaches_every_open_tab_and_each_can_be_signed_in_again(own, new_context, with_worker):
    own.start().post("stop", project_path="/src/first")
    context = new_context()
    if not with_worker:
        context.add_init_script("delete globalThis.SharedWorker;")
    pages = [context.new_page() for _ in range(3)]
    for page, link in zip(pages, [own.link, new_link(own), new_link(own)], strict=True):
        page.goto(link)
        expect(row(page, "first")).to_be_visible()
    done = tailhook("plates", "sign-out", env=own.env, cwd=own.home)
    assert done.stdout.startswith("Signed out 3 browser tabs.")
    for page in pages:
        expect(page.locator("#away")).to_have_text(
            "What you see is old. This tab is not signed in any more: `tailhook plates sign-out` signed all tabs out. "
            "To sign in, open the link that this command prints: tailhook plates link"
        )
        expect(page.locator("#connection")).to_have_text("signed out")
        assert page.evaluate("sessionStorage.length") == 0
    pages[1].evaluate("link => { location.href = link; }", new_link(own))
    expect(pages[1].locator("#connection")).to_have_text("live")
    expect(pages[0].locator("#connection")).to_have_text("signed out")


def test_a_tab_shares_no_stream_with_a_tab_of_another_version(own, new_context):
    own.start().post("stop", project_path="/src/first")
    context = new_context()
    context.add_init_script(
        "globalThis.names = [];"
        "SharedWorker = class extends SharedWorker {"
        "  constructor(url, options) { super(url, options); names.push(options.name); } };"
    )
    page = context.new_page()
    page.goto(own.link)
    expect(row(page, "first")).to_be_visible()
    assert page.evaluate("names") == [f"tailhook {__version__}"]


@pytest.mark.parametrize("version", [__version__, "99.0"])
def test_a_link_in_a_tab_of_another_version_loads_the_daemons_own_page(own, new_context, version):
    page = new_context().new_page()
    page.route("**/health", lambda route: route.fulfill(json={"status": "ok", "version": version}))
    page.goto(own.start().link)
    expect(page.locator("#connection")).to_have_text("live")
    tailhook("plates", "sign-out", env=own.env, cwd=own.home)
    expect(page.locator("#connection")).to_have_text("signed out")
    page.evaluate("link => { globalThis.isOld = true; location.href = link; }", new_link(own))
    expect(page.locator("#connection")).to_have_text("live")
    assert page.evaluate("globalThis.isOld === true") == (version == __version__)


def test_a_browser_that_keeps_nothing_is_signed_in_until_the_page_is_left(own, new_context):
    own.start().post("stop", project_path="/src/first")
    context = new_context()
    context.add_init_script(
        "Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    page = context.new_page()
    page.goto(own.link)
    expect(row(page, "first")).to_be_visible()
    page.reload()
    expect(page.locator("#connection")).to_have_text("signed out")


# ---- the token -------------------------------------------------------------------


def use_board(page, daemon):
    """Use the board: details, hiding, filter, groups, the history, a change, and the page loaded again."""
    row(page, "first").click()
    expect(page.get_by_role("dialog").locator(".events li")).to_have_count(2)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Hide first").click()
    page.get_by_role("button", name="Undo").click()
    page.keyboard.press("g")
    page.keyboard.press("w")  # the row that comes back may move the history away from a click
    expect(page.locator("#history tbody tr").first).to_be_visible()
    daemon.post("prompt_submit", project_path="/src/first", ts=at(3))
    expect(row(page, "first").locator(".status")).to_have_text("running")
    page.reload()
    expect(page.locator("#connection")).to_have_text("live")
    page.get_by_role("searchbox").fill("first")
    expect(row(page, "first")).to_be_visible()


KEPT = """async () => JSON.stringify([
    Object.entries(sessionStorage), Object.entries(localStorage), document.cookie, await indexedDB.databases(),
    await caches.keys(), history.state, name, location.href, document.documentElement.outerHTML
])"""


@pytest.mark.parametrize("script", ["", "delete globalThis.SharedWorker;"], ids=["shared worker", "stream in the page"])
def test_the_token_of_the_port_is_in_nothing_that_a_browser_sends_gets_or_keeps(own, new_context, script):
    own.start().post("prompt_submit", project_path="/src/first", ts=at(1))
    own.post("permission_asked", project_path="/src/first", tool_name="Bash", tool_params={"command": "make"}, ts=at(2))
    token, port = own.token, int(own.base.rpartition(":")[2])
    with Recorder(port) as wire, contextlib.closing(new_context()) as context:
        context.add_init_script(script)
        page = context.new_page()
        page.goto(own.link.replace(str(port), str(wire.server_address[1])))
        expect(row(page, "first")).to_be_visible()
        use_board(page, own)
        kept = page.evaluate(KEPT)
        assert context.cookies() == []
    code, secret = own.link.partition("once=")[2], re.search(r"tab-[\w-]+", kept)[0]
    assert f"Bearer {code}".encode() in wire.sent
    assert f"Bearer {secret}".encode() in wire.sent
    assert b"first" in wire.received
    pieces = {token[start : start + 12] for start in range(len(token) - 11)}  # an answer comes in chunks
    assert len(pieces) > 30
    everything = wire.sent + wire.received + kept.encode()
    assert not [piece for piece in pieces if piece.encode() in everything]


# ---- the stream ------------------------------------------------------------------

STREAM = (
    b": a comment\r\n\r\nevent: plates\r\ndata: [\r\ndata: ]\r\n\r\n"
    b"event: plate\ndata:%b\n\n"
    b"event: unknown\rdata: {}\r\r"
    b"data: no name\n\nevent: plate\n\nretry: 5\nid: 7\ndata\n\nevent: later\ndata: 1\n\n"
)
PLATE = {
    "session_id": "s",
    "project_path": "/src/caf\u00e9-\U0001f600",
    "status": "idle",
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
}


def test_the_stream_is_read_however_it_is_cut(board):
    """Its lines end in all three ways, and the pieces cut characters and line ends in two."""
    for size in (1, 2, 3, 7, 1 << 16):
        assert read_stream(board, size) == [
            ["plates", "[\n]", ""],
            ["plate", json.dumps(PLATE, ensure_ascii=False), ""],
            ["unknown", "{}", ""],
            ["message", "no name", ""],
            ["message", "", "7"],
            ["later", "1", "7"],
        ], size


def read_stream(page, size):
    """Return the events that the page reads from the stream in pieces of `size` bytes."""
    return page.evaluate(
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


# ---- away and back ---------------------------------------------------------------


def test_a_stream_from_which_nothing_comes_counts_as_lost_and_is_opened_again(daemon, open_board):
    """The connection stays open, as without a network."""
    found = open_board(daemon).evaluate(
        """async (secret) => {
            const { Stream } = await import("/web/stream.js");
            const stream = new Stream();
            stream.silenceMs = 1000;
            const found = [];
            await new Promise((done) => {
                stream.add((name) => {
                    found.push(name);
                    if (name === "closed" && found.includes("away")) done();
                })(secret);
                stream.run();
            });
            return found;
        }""",
        daemon.secret,
    )
    assert found.index("closed") < found.index("away")


def test_a_tab_shows_that_the_daemon_is_away_and_is_live_again_by_itself(daemon, board):
    """The run of the daemon goes on, so the secret counts: it only opens its sockets again."""
    daemon.post("prompt_submit", "s", ts=1)
    expect(row(board, "p").locator(".status")).to_have_text("running")
    board.evaluate(
        "window.said = []; new MutationObserver(() => said.push(document.querySelector('#connection')."
        "textContent)).observe(document.querySelector('#connection'), {childList: true, characterData: true,"
        " subtree: true})"
    )
    (daemon.runtime / "poke").unlink()
    wait_until(lambda: "away" in board.evaluate("said"))
    wait_until((daemon.runtime / "poke").exists)
    wait_until(lambda: answers(daemon))
    daemon.post("stop", "s", ts=2)
    daemon.post("stop", "new", project_path="/new", ts=3)
    expect(board.locator("#connection")).to_have_text("live")
    expect(board.locator("#away")).to_be_hidden()
    expect(row(board, "p").locator(".status")).to_have_text("finished")
    expect(row(board, "new")).to_be_visible()


NOTED = """
delete globalThis.SharedWorker;
window.asked = [];
window.fetch = new Proxy(fetch, {
  apply(send, page, [path, options]) {
    if (path === "/stream") asked.push(options.headers["Last-Event-ID"]);
    return Reflect.apply(send, page, [path, options]);
  },
});
"""


def test_a_tab_whose_connection_was_cut_asks_only_for_what_changed_since(own, open_board):
    page = open_board(own.start(), script=NOTED)
    for name in ("still", "changed", "gone"):
        own.post("prompt_submit", name, project_path=f"/p/{name}", ts=at(1))
        expect(row(page, name)).to_be_visible()
    (own.runtime / "poke").unlink()  # the daemon opens its sockets again
    wait_until(lambda: page.evaluate("asked.length") > 1)
    wait_until(lambda: answers(own))
    own.post("stop", "changed", project_path="/p/changed", ts=at(2))
    own.ask("DELETE", "/plates/gone")
    expect(row(page, "changed").locator(".status")).to_have_text("finished")
    expect(row(page, "gone")).to_have_count(0)
    expect(row(page, "still").locator(".status")).to_have_text("running")
    first, *later = page.evaluate("asked")
    assert first == ""
    assert all(re.fullmatch("[0-9a-f]{8}-[0-9]+", one) for one in later)


# Without shared workers, the stream is in the page: the page's clock is its clock.
COUNTED = """
delete globalThis.SharedWorker;
window.sent = 0;
window.fetch = new Proxy(fetch, {
  apply(send, page, given) { window.sent++; return Reflect.apply(send, page, given); },
});
"""


@pytest.mark.parametrize("script", ["", COUNTED], ids=["shared worker", "stream in the page"])
def test_a_tab_shows_that_the_daemon_is_away_and_after_a_new_start_explains_how_to_sign_in_and_sends_nothing_more(
    own, open_board, script
):
    own.start().post("prompt_submit", project_path="/src/first", ts=1)
    page = open_board(own, script)
    expect(row(page, "first")).to_be_visible()
    port = own.base.rpartition(":")[2]
    own.stop()
    expect(page.locator("#away")).to_contain_text("The daemon does not answer")
    expect(page.locator("#connection")).to_have_text("away")
    expect(row(page, "first")).to_be_visible()
    if script:
        page.clock.install()
    own.start("--port", port)
    expect(page.locator("#away")).to_contain_text("This tab is not signed in any more: the daemon was started again.")
    expect(page.locator("#away")).to_contain_text("open the link that this command prints:  tailhook plates link")
    expect(page.locator("#connection")).to_have_text("signed out")
    assert page.evaluate("sessionStorage.length") == 0
    if script:
        sent = page.evaluate("sent")
        page.clock.fast_forward("01:00:00")  # longer than any pause between two attempts
        assert page.evaluate("sent") == sent > 0
    page.evaluate("link => { location.href = link; }", own.link)  # and the same tab is signed in by another link
    expect(page.locator("#connection")).to_have_text("live")
    page.close()
    assert all("401 (Unauthorized)" in fault for fault in open_board.faults)
    open_board.faults.clear()


# ---- other users -----------------------------------------------------------------


def test_a_server_on_another_port_gets_nothing_that_opens_the_board(signed_in, new_tab, stranger):
    """A signed-in browser visits it, and its page tries to reach the daemon."""
    base = signed_in.daemon.base
    script = f"""<!doctype html><title>mine</title><script>
        const tries = [
            fetch("{base}/plates", {{credentials: "include"}}).then(answer => answer.text()),
            fetch("{base}/plates", {{credentials: "include", mode: "no-cors"}}).then(answer => answer.text()),
            fetch("{base}/sign-in", {{method: "POST", mode: "no-cors", body: "x"}}).then(answer => answer.text()),
        ];
        Promise.allSettled(tries).then(found => fetch("/found", {{method: "POST", body: JSON.stringify(found)}}));
    </script><iframe src="{base}/"></iframe><img src="{base}/web/icon.svg">"""
    theirs = stranger(body=script.encode())
    new_tab(theirs.url)
    wait_until(lambda: any("POST /found" in head for head in theirs.received))
    found = next(head for head in theirs.received if "POST /found" in head)
    assert "first" not in found
    assert theirs.words()
    assert not [word for word in theirs.words() if opens_the_board(base, word)]
    assert not [head for head in theirs.received if "cookie:" in head.lower() or "authorization:" in head.lower()]
    assert row(signed_in.page, "first").is_visible()


def test_a_server_that_takes_the_port_of_a_dead_daemon_gets_nothing_usable(own, open_board, stranger):
    """The open tab keeps sending requests to the port; no person touches it."""
    own.start().post("stop", project_path="/src/first")
    token = own.token
    page = open_board(own)
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


def test_the_port_is_not_free_while_the_daemon_moves_its_sockets(daemon):
    """A run's secrets are valid as long as it lives, so no other process may get the port and be sent them."""
    port = int(daemon.base.rpartition(":")[2])
    stop = threading.Event()
    taken = []

    def take_it():
        while not stop.is_set():
            try:
                socket.create_server(("127.0.0.1", port)).close()
                taken.append(port)
            except OSError:
                pass

    def is_served():
        with contextlib.suppress(httpx.RemoteProtocolError):  # a stranger that is served too late is sent away
            return request("GET", f"{daemon.base}/health").status_code == 200

    thread = threading.Thread(target=take_it)
    thread.start()
    try:
        for _ in range(3):
            (daemon.runtime / "poke").unlink()
            wait_until((daemon.runtime / "poke").exists)
            wait_until(lambda: answers(daemon))
            wait_until(is_served)
    finally:
        stop.set()
        thread.join()
    assert taken == []
    assert opens_the_board(daemon.base, daemon.secret)
