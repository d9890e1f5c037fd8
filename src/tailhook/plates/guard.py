"""Access control for the TCP port: a bearer token, and checks of Host and Origin.

Any page can make the browser send requests to any address. The check of Host stops DNS rebinding, the check of Origin
stops requests of other pages (CSRF). There are no cookies, because a browser sends them to every port of a host.
"""

import hmac
import json
import re
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tailhook.plates.browsers import Browsers
from tailhook.plates.connections import Connection

MAX_BODY_BYTES = 8 << 20
SIGN_IN = "/sign-in"  # a browser posts a link's code to it, as the bearer token
# For the user's own programs only. A tab must not be able to renew its own access, and needs no session's terminal.
NOT_FOR_BROWSERS = re.compile(r"/(links|sign-out|terminals/.*)")

# What a browser may do with the answers: run the daemon's own scripts, talk to the daemon, and nothing else. The policy
# `tailhook` of trusted types allows one address: that of the board's shared worker.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types tailhook"
)
BROWSER_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class BrowserHeaders:
    """Adds the headers that restrict what a browser does with an answer, to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to its answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(BROWSER_HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)


class LimitBody:
    """Rejects bodies over 8 MiB, with or without Content-Length."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on unless its body is too large."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
            await refuse(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 8 MiB")
            return
        size, refused = 0, False

        async def receive_some() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_BODY_BYTES:
                raise OSError("the body is over 8 MiB")
            return message

        async def send_unless_too_large(message: Message) -> None:
            nonlocal refused
            if size <= MAX_BODY_BYTES:
                await send(message)
            elif not refused:  # the application may answer although it could not read the body
                refused = True
                await refuse(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 8 MiB")

        await self.app(scope, receive_some, send_unless_too_large)


class Guard:
    """Accepts a request if it names one of the daemon's hosts, comes from no other page, and has a token.

    The web board's own files need no token, because a browser asks for them before it has one; nothing secret is in
    them. Browsers have secrets in place of the token.

    token: of the port.  browsers: the signed-in ones.  hosts: the names under which the daemon is reached.
    """

    def __init__(self, app: ASGIApp, token: str, browsers: Browsers, hosts: Collection[str]) -> None:
        self.app = app
        self.token = token
        self.browsers = browsers
        self.hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        connection: Connection = scope["state"]["connection"]
        connection.wait()  # the time since the last answer must not end this one in the middle
        headers = Headers(scope=scope)
        given = bearer(headers)
        if fault := self.find_fault(scope, headers):
            await refuse(send, *fault)
        elif scope["path"] == SIGN_IN and scope["method"] == "POST":
            await self.sign_in(given, send)
        elif self.is_token(given):
            connection.admit()
            await self.app(scope, receive, send)
        elif sign_in := self.browsers.find(given):
            connection.admit()
            if NOT_FOR_BROWSERS.fullmatch(scope["path"]):
                await refuse(send, HTTPStatus.FORBIDDEN, "this is not for browsers, only for the user's own programs")
            else:
                with self.browsers.answering(sign_in, connection.drop):
                    await self.app(scope, receive, send)
        elif is_public(scope):
            await self.app(scope, receive, send)
        else:
            await refuse(send, HTTPStatus.UNAUTHORIZED, self.browsers.why_no_secret(given))
        connection.wait()

    async def sign_in(self, code: str, send: Send) -> None:
        """Answer with a browser's secret for the code of a link."""
        secret = self.browsers.sign_in(code)
        if secret is None:
            await refuse(send, HTTPStatus.UNAUTHORIZED, self.browsers.why_no_code(code))
        else:
            body = json.dumps({"secret": secret}).encode()
            await respond(send, HTTPStatus.OK, body, [("content-type", "application/json")])

    def find_fault(self, scope: Scope, headers: Headers) -> "tuple[HTTPStatus, str] | None":
        """Return status and message if Host or Origin is wrong, otherwise None."""
        hosts = headers.getlist("host")
        here = scope["server"][0]  # the address that the client connected to is not a DNS name
        if len(hosts) != 1 or host_name(hosts[0]) not in {*self.hosts, here}:
            return HTTPStatus.MISDIRECTED_REQUEST, "unknown Host header"
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{hosts[0]}":
            return HTTPStatus.FORBIDDEN, "the request comes from another page"
        return None

    def is_token(self, given: str) -> bool:
        """Return whether a bearer value is the port's token."""
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode())


def bearer(headers: Headers) -> str:
    """Return the bearer value of the Authorization header (RFC 6750, 2.1), or ""."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def is_public(scope: Scope) -> bool:
    """Return whether the request needs no token: it asks for the web board's files, or for /health."""
    is_for_a_file = scope["path"] == "/" or scope["path"].startswith("/web/")
    return scope["path"] == "/health" or (is_for_a_file and scope["method"] in ("GET", "HEAD"))


def host_name(host: str) -> str | None:
    """Return the host name in a Host header, or None if the header is invalid."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


async def refuse(send: Send, status: HTTPStatus, words: str) -> None:
    """Send an error in the form of all errors of the daemon."""
    headers = [("content-type", "application/json")]
    if status is HTTPStatus.UNAUTHORIZED:
        headers.append(("www-authenticate", "Bearer"))
    await respond(send, status, json.dumps({"error": words}).encode(), headers)


async def respond(send: Send, status: HTTPStatus, body: bytes, headers: "list[tuple[str, str]]") -> None:
    """Send an answer."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in [*headers, ("content-length", str(len(body)))]]
    await send({"type": "http.response.start", "status": int(status), "headers": raw})
    await send({"type": "http.response.body", "body": body})
