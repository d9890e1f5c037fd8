"""The browsers that are signed in at the daemon's port.

A browser never gets the port's token. The daemon prints a link with a code that is valid once. The page exchanges the
code for a secret. The secret is valid for this run of the daemon only.
"""

import hmac
import secrets


class Browsers:
    """Signs browsers in and checks their secrets."""

    def __init__(self) -> None:
        self.codes: set[str] = set()
        self.secrets: set[str] = set()

    def new_link(self) -> str:
        """Return the path of a link that signs a browser in, once.

        The code is in the fragment: browsers send that to no server.
        """
        code = secrets.token_urlsafe(16)
        self.codes.add(code)
        return f"/#once={code}"

    def sign_in(self, code: str) -> str | None:
        """Return a new secret for a link's code, or None if the code is not valid."""
        found = find_equal(code, self.codes)
        if found is None:
            return None
        self.codes.discard(found)
        secret = secrets.token_urlsafe(32)
        self.secrets.add(secret)
        return secret

    def has_signed_in(self, secret: str) -> bool:
        """Return whether this is the secret of a signed-in browser."""
        return find_equal(secret, self.secrets) is not None


def find_equal(word: str, words: set[str]) -> str | None:
    """Return the word if it is in the set, or None. The time does not depend on how many letters are equal."""
    given = word.encode("utf-8", "surrogateescape")
    return next((one for one in words if hmac.compare_digest(given, one.encode())), None)
