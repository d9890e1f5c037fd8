"""Who may talk to the daemon over TCP: the user's own programs and pages, by a token; nobody's web page, by any name.

Browsers send requests for every page they show, to any address: so Host must name this machine (a rebound name does
not), Origin must be the board's own, and the token is asked for on everything but /health.
"""

import hmac
import json
import secrets
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 8 << 20
COOKIE = "tailhook_token"

# What a browser may do with the answers: run the daemon's own scripts, talk to the daemon, and nothing else.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
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
    """Tells browsers how little the answers may do; on every answer, also on those that refuse."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and the answer with more headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(BROWSER_HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)


class LimitBody:
    """Refuses bodies over 8 MB, told or untold."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, as long as its body is not too large."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdigit() and int(told) > LARGEST_BODY:
            await refuse(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 8 MB")
            return
        size, refused = 0, False

        async def receive_some() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > LARGEST_BODY:
                raise OSError("the body is over 8 MB")
            return message

        async def send_unless_too_large(message: Message) -> None:
            nonlocal refused
            if size <= LARGEST_BODY:
                await send(message)
            elif not refused:  # whatever the application makes of a body that it could not read
                refused = True
                await refuse(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is over 8 MB")

        await self.app(scope, receive_some, send_unless_too_large)


class Guard:
    """Lets in who has the token and comes from where the daemon may be reached.

    token: str.  hosts: the names under which the daemon is reached.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str]) -> None:
        self.app = app
        self.token = token
        self.hosts = frozenset(hosts)
        self.links: set[str] = set()

    def new_link(self) -> str:
        """The query of a link that signs a browser in, once."""
        code = secrets.token_urlsafe(16)
        self.links.add(code)
        return f"/?once={code}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if fault := self.fault(scope, headers):
            await refuse(send, *fault)
        elif code := self.signed_in(scope):
            self.links.discard(code)
            cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
            await answer(send, HTTPStatus.SEE_OTHER, b"", [("location", "/"), ("set-cookie", cookie)])
        elif scope["path"] != "/health" and not self.has_token(headers):
            await refuse(send, HTTPStatus.UNAUTHORIZED, "a token is needed: Authorization: Bearer …")
        else:
            await self.app(scope, receive, send)

    def fault(self, scope: Scope, headers: Headers) -> "tuple[HTTPStatus, str] | None":
        """What is wrong with where the request comes from."""
        hosts = headers.getlist("host")
        here = scope["server"][0]  # the address that was asked: no name, so nobody can have it lead elsewhere
        if len(hosts) != 1 or name_of(hosts[0]) not in {*self.hosts, here}:
            return HTTPStatus.MISDIRECTED_REQUEST, "the daemon has not this name"
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{hosts[0]}":
            return HTTPStatus.FORBIDDEN, "another page's request"
        return None

    def signed_in(self, scope: Scope) -> str:
        """The code of the one-time link that this is, "" for none."""
        if scope["path"] != "/" or scope["method"] != "GET":
            return ""
        code = parse_qs(scope["query_string"].decode("ascii", "replace")).get("once", [""])[0]
        return code if code in self.links else ""

    def has_token(self, headers: Headers) -> bool:
        """Whether the request has the token, in its header or its cookie."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            given = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        return hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self.token.encode())


def name_of(host: str) -> str | None:
    """The name in a Host header, None for what is none."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


async def refuse(send: Send, status: HTTPStatus, words: str) -> None:
    """An error, as all of the daemon's are."""
    headers = [("content-type", "application/json")]
    if status is HTTPStatus.UNAUTHORIZED:
        headers.append(("www-authenticate", "Bearer"))
    await answer(send, status, json.dumps({"error": words}).encode(), headers)


async def answer(send: Send, status: HTTPStatus, body: bytes, headers: "list[tuple[str, str]]") -> None:
    """A whole answer."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in [*headers, ("content-length", str(len(body)))]]
    await send({"type": "http.response.start", "status": int(status), "headers": raw})
    await send({"type": "http.response.body", "body": body})
