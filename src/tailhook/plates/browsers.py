"""The browser tabs that are signed in at the daemon's port.

A browser never gets the port's token. The daemon prints a link with a code that is valid once. The page exchanges the
code for a secret. The secret is valid for this run of the daemon only. The number and the age of both are limited, so
that a forgotten link or tab opens nothing for ever.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tailhook.stores.processes import CLOCK_BOOTTIME

CODE_LIFETIME_MIN = 10  # from the making of a link
MAX_CODES = 20  # links that are not used yet
SECRET_LIFETIME_DAYS = 7  # from a tab's last request
MAX_SECRETS = 100  # tabs that are signed in
MAX_ENDED = 1000  # codes and secrets whose end can be explained
SECRET_PREFIX = "tab-"  # noqa: S105 - by it the secret of an earlier run is known

HOW_TO_SIGN_IN = "To sign in, open the link that this command prints:  tailhook plates link"
SIGNED_OUT = "`tailhook plates sign-out` signed all tabs out"
USED = "the link was used before"
EXPIRED = f"the link has expired: it was valid for {CODE_LIFETIME_MIN} minutes"
REPLACED = f"the link has expired: {MAX_CODES} newer ones were made"
UNKNOWN_CODE = "the link is not complete, or the daemon was started again since"
UNSEEN = f"the tab was not used for {SECRET_LIFETIME_DAYS} days"
CROWDED_OUT = f"more than {MAX_SECRETS} tabs were signed in, and this one was not used for the longest time"
RESTARTED = "the daemon was started again"


@dataclass
class SignIn:
    """A tab that is signed in.

    seen: when its last request began or ended.
    requests: for each unanswered request, a function that closes its connection.
    """

    seen: float
    requests: set[Callable[[], None]] = field(default_factory=set)


class Browsers:
    """Signs tabs in and out, and checks their secrets. All methods run in the event loop's thread.

    clock: returns seconds that never go back, and go on while the machine sleeps.
    """

    def __init__(self, clock: Callable[[], float] = lambda: time.clock_gettime(CLOCK_BOOTTIME)) -> None:
        self.clock = clock
        self.codes: dict[str, float] = {}  # when each was made, oldest first
        self.sign_ins: dict[str, SignIn] = {}  # by secret
        self.ended: dict[str, str] = {}  # why codes and secrets are no longer valid, oldest first

    def new_link(self) -> str:
        """Return the path of a link that signs a tab in, once.

        The code is in the fragment: browsers send that to no server.
        """
        self.end_old()
        if len(self.codes) >= MAX_CODES:
            self.end_code(next(iter(self.codes)), REPLACED)
        code = secrets.token_urlsafe(16)
        self.codes[code] = self.clock()
        return f"/#once={code}"

    def sign_in(self, code: str) -> str | None:
        """Return a new secret for a link's code, or None if the code is not valid."""
        self.end_old()
        found = find_equal(code, self.codes)
        if found is None:
            return None
        self.end_code(found, USED)
        if len(self.sign_ins) >= MAX_SECRETS:
            self.end_secret(min(self.sign_ins, key=self.last_seen), CROWDED_OUT)
        secret = SECRET_PREFIX + secrets.token_urlsafe(32)
        self.sign_ins[secret] = SignIn(self.clock())
        return secret

    def find(self, given: str) -> SignIn | None:
        """Return the signed-in tab with this secret, or None."""
        self.end_old()
        secret = find_equal(given, self.sign_ins)
        return None if secret is None else self.sign_ins[secret]

    @contextmanager
    def answering(self, sign_in: SignIn, close: Callable[[], None]) -> Iterator[None]:
        """Note that a request of a tab is answered during the block. A tab with an open stream is not old.

        close: closes the request's connection, at the tab's sign-out.
        """
        sign_in.seen = self.clock()
        sign_in.requests.add(close)
        try:
            yield
        finally:
            sign_in.requests.discard(close)
            sign_in.seen = self.clock()

    def sign_out(self) -> int:
        """End all tabs and links. Returns how many tabs were signed in."""
        self.end_old()
        count = len(self.sign_ins)
        for code in list(self.codes):
            self.end_code(code, SIGNED_OUT)
        for secret in list(self.sign_ins):
            self.end_secret(secret, SIGNED_OUT)
        return count

    def why_no_code(self, code: str) -> str:
        """Return why a code is not valid, and what to do."""
        return f"{self.ended.get(code, UNKNOWN_CODE)}. {HOW_TO_SIGN_IN}"

    def why_no_secret(self, given: str) -> str:
        """Return why a bearer value is not valid, and what to do."""
        if given.startswith(SECRET_PREFIX):
            return f"{self.ended.get(given, RESTARTED)}. {HOW_TO_SIGN_IN}"
        return f"a valid token (Authorization: Bearer …) or a signed-in browser tab is needed. {HOW_TO_SIGN_IN}"

    def last_seen(self, secret: str) -> float:
        """Return when a tab was last seen. One with an open request is seen now."""
        sign_in = self.sign_ins[secret]
        return self.clock() if sign_in.requests else sign_in.seen

    def end_old(self) -> None:
        """End the codes and the secrets whose time is over."""
        now = self.clock()
        for code in [code for code, made in self.codes.items() if now - made > CODE_LIFETIME_MIN * 60]:
            self.end_code(code, EXPIRED)
        for secret in [one for one in self.sign_ins if now - self.last_seen(one) > SECRET_LIFETIME_DAYS * 86_400]:
            self.end_secret(secret, UNSEEN)

    def end_code(self, code: str, why: str) -> None:
        """Make a code invalid."""
        del self.codes[code]
        self.explain(code, why)

    def end_secret(self, secret: str, why: str) -> None:
        """Make a secret invalid, and close the connections of its open requests."""
        requests = self.sign_ins.pop(secret).requests
        self.explain(secret, why)
        for close in list(requests):
            close()

    def explain(self, word: str, why: str) -> None:
        """Keep why a code or a secret is no longer valid."""
        if len(self.ended) >= MAX_ENDED:
            del self.ended[next(iter(self.ended))]
        self.ended[word] = why


def find_equal(word: str, words: Iterable[str]) -> str | None:
    """Return the word if it is among the words, or None. The time does not depend on how many letters are equal."""
    given = word.encode("utf-8", "surrogateescape")
    return next((one for one in words if hmac.compare_digest(given, one.encode())), None)
