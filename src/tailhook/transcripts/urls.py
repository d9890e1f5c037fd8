"""Files at URLs: their addresses, and their bytes, fetched with obstore."""

from __future__ import annotations

import io
import os
import re
import time

from tailhook.errors import MissingExtraError, SourceError, install_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

URL_BLOCK_BYTES = 1 << 20  # fetched at a time
MAX_URL_BLOCKS = 4  # that are kept
WEB_SCHEMES = ("http", "https")
# Parameters of a query, in small letters, with credentials; and those of signatures of AWS, Google, CloudFront and
# Azure. All others may name the file.
SECRET_PARAMETERS = (
    *("signature", "sig", "x-amz-signature", "x-goog-signature"),
    *("token", "access_token", "auth_token", "api_key", "apikey", "secret", "password"),
)
SIGNED_PARAMETERS = (
    *("expires", "policy", "key-pair-id", "awsaccesskeyid", "googleaccessid"),
    *("sv", "se", "sp", "sr", "st", "spr", "sip", "skoid", "sktid", "skt", "ske", "sks", "skv", "sdd", "srt", "ss"),
)
SIGNED_PREFIXES = ("x-amz-", "x-goog-")
BUCKET_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")
# A busy or unreachable store is asked again, with growing pauses, until this time has passed since the first request.
URL_BUDGET_S = 30.0
FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 4.0
MAX_URL_RETRIES = 10_000  # obstore needs a number; the time ends the attempts
WEB_LISTING_BUDGET_S = 3.0  # a server that cannot list may answer 501 (for obstore: busy)
# Options of obstore's HTTP client; AWS_… sets each of them.
CLIENT_OPTIONS = (
    *("allow_invalid_certificates", "connect_timeout", "default_content_type", "http1_only", "http2_only"),
    *("http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "pool_idle_timeout"),
    *("pool_max_idle_per_host", "proxy_url", "timeout", "user_agent"),
)
SIGNAL_INTERVAL_S = 0.1  # between two looks for signals while waiting for a store
MAX_REASON_CHARS = 500  # of a server's answer
# Without credentials in the environment, obstore asks the server that has those of a cloud's own computers, at one of
# these addresses. Elsewhere there is no such server. The values are the variables to set.
AWS_VARIABLES = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket"
CREDENTIAL_VARIABLES = {
    "/latest/api/token": AWS_VARIABLES,
    "/latest/meta-data/": AWS_VARIABLES,
    "/computeMetadata/": "GOOGLE_APPLICATION_CREDENTIALS",
    "/metadata/identity/": "AZURE_STORAGE_ACCOUNT_KEY",
}
CUT_WORDS = "response body error"  # of obstore: a connection ended before its answer did
UNREACHABLE_WORDS = "error sending request"  # of obstore: there was no answer until the end of URL_BUDGET_S


class CutAnswerError(SourceError):
    """The answer of a store ended too early. The same request may succeed."""


class UnreachableError(SourceError):
    """No request has reached the server of a store, or none was answered."""

    OTHERS = "its server could not be reached for another source"  # why others of the server are not asked for


# ---- addresses ---------------------------------------------------------------


def is_url(source: str) -> bool:
    """Return whether a source is a URL; False for an existing file with such a name."""
    return "://" in source and not os.path.exists(source)  # noqa: PTH110 - a URL is not a Path


def split_url(url: str) -> tuple[str, str]:
    """Return the URL of a file's store, and the file's name in it.

    A bucket is a store, and the rest of its URL is the name, unchanged. Elsewhere the folder is the store, and the name
    is percent-decoded. The query of a web address belongs to the store: the store sends it with every name. A fragment
    is not sent.

    >>> split_url("s3://bucket/folder/a%20b.jsonl"), split_url("https://host/folder/a%20b.jsonl?signed=1#top")
    (('s3://bucket', 'folder/a%20b.jsonl'), ('https://host/folder?signed=1', 'a b.jsonl'))
    """
    scheme, _, rest = url.partition("://")
    if scheme in BUCKET_SCHEMES:
        bucket, _, name = rest.partition("/")
        return f"{scheme}://{bucket}", name
    from urllib.parse import unquote

    address = web_address(url)
    folder, _, name = address.rpartition("/")
    return folder + url[len(address) :].partition("#")[0], unquote(name)


def web_address(url: str) -> str:
    """Return a web address without its query and fragment. Paths and other URLs stay as they are.

    >>> web_address("https://host/a.jsonl?signed=1#top"), web_address("s3://bucket/what?.jsonl")
    ('https://host/a.jsonl', 's3://bucket/what?.jsonl')
    """
    is_web = url.partition("://")[0] in WEB_SCHEMES
    return url.partition("#")[0].partition("?")[0] if is_web else url


def store_server(url: str) -> str:
    """Return the beginning of a URL, up to the name of its server or bucket.

    >>> store_server("s3://bucket/folder/a.jsonl")
    's3://bucket'
    """
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def name_of(path: str) -> str:
    """Return the name of a file without its ending: the session of records without one.

    >>> name_of("/home/me/.claude/projects/p/0a1b.jsonl.gz")
    '0a1b'
    """
    name = os.path.basename(web_address(path).rstrip("/"))  # noqa: PTH119 - pathlib loads slowly
    found = re.match(r"(.*)\.jsonl", name, re.ASCII | re.IGNORECASE | re.DOTALL)
    return name if found is None else found[1]


def normalize_scheme(url: str) -> str:
    """Return a URL with its scheme in small letters. Capitals are the same scheme (RFC 3986, section 3.1)."""
    scheme, colon, rest = url.partition(":")
    return scheme.lower() + colon + rest


def without_credentials(url: str) -> str:
    """Return a URL for rows and messages: a web address without its user, signature and tokens.

    Each signing of an address gives another signature for the same file. The rest of a query may name the file, and
    stays. Paths and other URLs stay as they are.

    >>> without_credentials("https://me:pw@host/a.jsonl?X-Amz-Date=20261122&X-Amz-Signature=0f")
    'https://host/a.jsonl'
    >>> without_credentials("https://host/get?id=7&token=secret")
    'https://host/get?id=7'
    """
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in WEB_SCHEMES:
        return url
    from urllib.parse import unquote

    sent, sign, fragment = rest.partition("#")
    address, _, query = sent.partition("?")
    server, slash, name = address.partition("/")
    named = [(unquote(part.partition("=")[0]).lower(), part) for part in query.split("&")]
    is_signed = any(one.endswith("signature") or one == "sig" for one, _ in named)
    kept = [
        part
        for one, part in named
        if one not in SECRET_PARAMETERS
        and not (is_signed and (one in SIGNED_PARAMETERS or one.startswith(SIGNED_PREFIXES)))
    ]
    shown = f"{scheme}://{server.rpartition('@')[2]}{slash}{name}"
    return f"{shown}{'?' if query and kept else ''}{'&'.join(kept)}{sign}{fragment}"


# ---- files -------------------------------------------------------------------


class UrlVersion:
    """The version of a file at a URL: it shows whether the file is still the same."""

    __slots__ = ("etag", "modified", "size")

    def __init__(self, size: int, modified: float, etag: str) -> None:
        """modified: Unix seconds.  etag: "" if it has none."""
        self.size, self.modified, self.etag = size, modified, etag

    def differs_from(self, other: UrlVersion) -> bool:
        """Return whether it is another version.

        Azure lists etags without their quotes, and a server may mark the etag of the same file as a weak one.
        """
        if self.etag and other.etag:
            etags = [version.etag.removeprefix("W/").strip('"') for version in (self, other)]
            return etags[0] != etags[1]
        return self.size != other.size or int(self.modified) != int(other.modified)


class UrlFile(io.RawIOBase):
    """A file at a URL, fetched in blocks of 1 MiB. The last four blocks are kept."""

    def __init__(self, shown: str, store: Any, name: str, version: UrlVersion | None, has_query: bool) -> None:
        """Look up the file's size and version.

        shown, has_query: as for `find_facts`.
        store: of obstore.  name: the file's in the store.
        version: the wanted one; None for the current one.

        Raises FileNotFoundError or SourceError.
        """
        self._shown, self._store, self._name = shown, store, name
        self._position = 0
        self._blocks: dict[int, bytes] = {}
        self._version = version_of(find_facts(shown, store, name, has_query))
        if version is not None and self._version.differs_from(version):
            raise replaced_error(shown)
        self._size = self._version.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        start = self._position
        wanted = min(len(buffer), max(0, self._size - start))
        done = 0
        while done < wanted:
            number, inside = divmod(start + done, URL_BLOCK_BYTES)
            piece = self._block(number)[inside : inside + wanted - done]
            if not piece:
                break  # the file has become shorter
            buffer[done : done + len(piece)] = piece
            done += len(piece)
        self._position = start + done
        return done

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            start = number * URL_BLOCK_BYTES
            length = min(URL_BLOCK_BYTES, self._size - start)
            block = fetch_range(self._shown, self._store, self._name, start, length, self._version)
            while len(self._blocks) >= MAX_URL_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number] = block
        return self._blocks[number]


def open_url(url: str, version: UrlVersion | None = None) -> BinaryIO:
    """Open a URL: https, http, s3, gs, az and file. Raises MissingExtraError, FileNotFoundError or SourceError.

    version: the wanted one; None for the current one. If the file is replaced by another version, reading it
        raises SourceError.

    Credentials and regions come from the environment, as obstore reads it (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …).
    The server must answer requests for a range of bytes.
    """
    base, name = split_url(url)
    shown = without_credentials(url)
    return UrlFile(shown, open_store(base, shown), name, version, "?" in base)  # type: ignore[return-value]


# ---- stores ------------------------------------------------------------------


def open_store(base: str, shown: str, budget_s: float | None = None) -> Any:
    """Return the store of obstore at a URL. Raises MissingExtraError or SourceError.

    base: of the store, from `split_url`.
    shown: the URL for messages, from `without_credentials`; the same in the functions below.
    budget_s: how long a request is repeated if the store is busy or unreachable; None for URL_BUDGET_S.
    """
    try:
        from datetime import timedelta

        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise MissingExtraError(f"{shown} is a URL: {install_command('tailhook[s3]')}") from None
    options: dict[str, Any] = {}
    if base.startswith("http://"):
        options["client_options"] = {"allow_http": True}
    elif base.startswith("s3") and is_endpoint_plain():
        options["client_options"] = {**client_options(), "allow_http": True}
    if not base.startswith("file://"):
        options["retry_config"] = {
            "max_retries": MAX_URL_RETRIES,
            "retry_timeout": timedelta(seconds=URL_BUDGET_S if budget_s is None else budget_s),
            "backoff": {
                "init_backoff": timedelta(seconds=FIRST_PAUSE_S),
                "max_backoff": timedelta(seconds=MAX_PAUSE_S),
                "base": 2,
            },
        }
    try:
        return from_url(base, **options)
    except (BaseError, ValueError, TypeError) as error:  # TypeError: a kind of store that takes no options
        raise SourceError(f"{shown} cannot be opened: {store_reason(error)}") from None


def is_endpoint_plain() -> bool:
    """Return whether AWS_ENDPOINT_URL names a server without TLS, and AWS_ALLOW_HTTP does not decide about that."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    return endpoint.lower().startswith("http://") and "AWS_ALLOW_HTTP" not in os.environ


def client_options() -> dict[str, Any]:
    """Return the options of obstore's HTTP client from AWS_… variables: our own options would replace all of them."""
    return {name: os.environ[key] for name in CLIENT_OPTIONS if (key := f"AWS_{name.upper()}") in os.environ}


def find_facts(shown: str, store: Any, name: str, has_query: bool) -> Any:
    """Return the size and other facts of a file in a store. Raises FileNotFoundError or SourceError.

    has_query: whether there is a query: the address may be signed for GET only, so its first byte is requested.
    """
    try:
        return ask_store("head", shown, store, name)
    except SourceError as error:
        if not has_query or isinstance(error, UnreachableError):
            raise
    found = ask_store("get", shown, store, name, options={"range": (0, 1)})
    call_store(shown, found.bytes)
    return found.meta


def version_of(facts: Any) -> UrlVersion:
    """Return the version of a file in a store.  facts: of obstore."""
    return UrlVersion(facts["size"], facts["last_modified"].timestamp(), facts["e_tag"] or "")


def replaced_error(shown: str) -> SourceError:
    """Return the error for a file that was replaced by another version during reading."""
    return SourceError(f"{shown} was replaced while it was read: read it again")


def fetch_range(shown: str, store: Any, name: str, start: int, length: int, version: UrlVersion) -> bytes:
    """Return bytes of a version of a file in a store. Raises FileNotFoundError or SourceError.

    The version of the answer is compared. A condition in the request (If-Match) is not enough: servers may ignore it,
    and it never holds for a weak etag. For the same reason, if an answer was cut and the file has no strong etag,
    obstore does not request the rest. Then the whole is requested again.
    """
    data = b""
    for is_last in attempts():
        found = ask_store("get", shown, store, name, options={"range": (start, start + length)})
        if version_of(found.meta).differs_from(version):
            raise replaced_error(shown)
        try:
            data = bytes(call_store(shown, found.bytes))
            break
        except CutAnswerError:
            if is_last:
                raise
    if len(data) < length:
        raise SourceError(f"{shown} gave fewer bytes than asked for: {len(data):,} of {length:,}")
    return data


def attempts() -> Iterator[bool]:
    """Yield whether an attempt is the last one: until URL_BUDGET_S has passed, with growing pauses between them."""
    until = time.monotonic() + URL_BUDGET_S
    pause = FIRST_PAUSE_S
    while time.monotonic() < until:
        yield False
        time.sleep(pause)
        pause = min(2 * pause, MAX_PAUSE_S)
    yield True


def ask_store(function: str, shown: str, *arguments: Any, **options: Any) -> Any:
    """Return the result of a function of obstore. Raises FileNotFoundError or SourceError."""
    import obstore

    return call_store(shown, getattr(obstore, function), *arguments, **options)


def call_store(shown: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a function of a store. Raises FileNotFoundError or SourceError."""
    from obstore.exceptions import BaseError, NotFoundError

    try:
        return call_interruptibly(function, *arguments, **options)
    except (NotFoundError, FileNotFoundError):
        raise FileNotFoundError(f"nothing at {shown}") from None
    except (BaseError, OSError, ValueError) as error:
        raise store_error(f"{shown} cannot be read", error) from None


def store_error(what: str, error: Exception) -> SourceError:
    """Return the error for a failure of a store.  error: of obstore or the system."""
    kinds = {CUT_WORDS: CutAnswerError, UNREACHABLE_WORDS: UnreachableError}
    kind = next((kind for words, kind in kinds.items() if words in str(error)), SourceError)
    return kind(f"{what}: {store_reason(error)}")


def call_interruptibly(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a function of a store. In the main thread, Ctrl-C and other signals end the wait for it.

    Python handles signals in the main thread, between two of its instructions, but such a function may wait for a
    server for URL_BUDGET_S. So another thread calls it, and goes on even if the wait has ended. If no thread can be
    started, for example at Python's end, this thread calls it.
    """
    from threading import Thread, current_thread, main_thread

    if current_thread() is not main_thread():
        return function(*arguments, **options)
    given: list[Any] = []
    failed: list[BaseException] = []

    def call() -> None:
        try:
            given.append(function(*arguments, **options))
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=call, name="tailhook-store", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return function(*arguments, **options)
    while thread.is_alive():
        thread.join(SIGNAL_INTERVAL_S)  # a signal in another thread does not wake this one
    if failed:
        raise failed.pop()  # otherwise the exception would hold itself, through this frame
    return given[0]


def store_reason(error: Exception) -> str:
    """Return why a store failed, in one line: the words of obstore, with code and message of the server's answer.

    Web addresses in it are without credentials. If the environment has none for the store, the reason names the
    variables to set.

    >>> store_reason(OSError("404 Not Found: <Error>\\n<Code>NoSuchBucket</Code><Message>It is gone</Message></Error>"))
    '404 Not Found: NoSuchBucket: It is gone'
    """
    import re
    from html import unescape

    words = str(error).partition("\n\nDebug source:")[0]
    words = re.sub(r"""https?://[^\s"'<>]+""", lambda found: without_credentials(found[0]), words)
    parts = re.findall(r"<(?:Code|Message)>([^<]+)</", words)
    if parts:
        reason = ": ".join([words.partition("<")[0].rstrip(" :"), *map(unescape, parts)])
    else:
        reason = words.partition("\n")[0].rstrip(" :")
    if variables := next((value for part, value in CREDENTIAL_VARIABLES.items() if part in reason), None):
        reason = f"no credentials are in the environment: set {variables} ({reason})"
    return "".join(filter(str.isprintable, " ".join(reason.split())))[:MAX_REASON_CHARS]
