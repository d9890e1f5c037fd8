"""Where a transcript comes from: a path, a URL or a binary file, as it is or compressed."""

from __future__ import annotations

import io
import os
import stat

from tailhook.errors import MissingExtraError, SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO, TypeAlias

    TranscriptSource: TypeAlias = str | os.PathLike[str] | BinaryIO
    SeekableFile: TypeAlias = BinaryIO | io.FileIO

GZIP_MARK = b"\x1f\x8b"  # RFC 1952, section 2.3.1
ZSTD_MARK = b"\x28\xb5\x2f\xfd"  # RFC 8878, section 3.1.1
ZSTD_SKIPPED_MARK = b"\x2a\x4d\x18"  # of a skippable frame, after its first byte (section 3.1.2)
COMPRESSION_MARK_BYTES = 4  # in which a compressed file is recognized
COPY_BYTES = 1 << 20  # that are copied at a time
URL_BLOCK_BYTES = 1 << 20  # that are fetched at a time
MAX_URL_BLOCKS = 4  # that are kept
MAX_URL_RETRIES = 3
WEB_SCHEMES = ("http", "https")
# Parameters of a query, in small letters, that let the caller in; and those that belong to a signature of AWS, Google,
# CloudFront and Azure. All others may name the file.
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
URL_TIMEOUT_S = 30  # for a request with its retries
SIGNAL_INTERVAL_S = 0.1  # how often a wait for a store looks for signals
MAX_REASON_CHARS = 500  # of what a server answers


class OpenSource:
    """A source that is open.

    file: a seekable file of the transcript's own bytes, decompressed if they were compressed.
    is_owned: whether `close` closes the file.
    path: the path or URL that it was opened by, or None.
    is_live: whether a program may still be writing it: it is neither compressed nor at a URL.
    version: how often its content was replaced by another, as far as `restart` was called.
    """

    def __init__(self, file: SeekableFile, is_owned: bool, path: str | None, is_live: bool) -> None:
        self.file, self.is_owned, self.path, self.is_live = file, is_owned, path, is_live
        self.version = 0
        self._replaced: list[SeekableFile] = []  # which an iteration may still read

    def restart(self, file: SeekableFile | None = None) -> None:
        """Note that other content has replaced it.

        file: the one that has taken the path, which belongs to this object. None: it is the same file.
        """
        if file is not None:
            if self.file.closed or os.path.samestat(os.fstat(file.fileno()), os.fstat(self.file.fileno())):
                file.close()
                return
            self._replaced.append(self.file)
            self.file = file
        self.version += 1

    def close(self) -> None:
        for file in (self.file, *self._replaced) if self.is_owned else ():
            file.close()


def open_source(source: TranscriptSource, version: UrlVersion | None = None) -> OpenSource:
    """Open a path, a URL or a seekable binary file.

    A compressed source is recognized by its first bytes, and decompressed into a temporary file.

    version: of a URL, that is wanted; None for the one that is there.

    Raises TypeError for anything else, FileNotFoundError and the other errors of opening a file, SourceError for a
    pipe, a damaged compressed file or a URL that cannot be read, MissingExtraError if a library is not installed.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if not isinstance(path, str):
            raise TypeError(f"a transcript's path is a str, not {type(path).__name__}")
        at_url = is_url(path)
        path = with_small_scheme(path) if at_url else path
        found = OpenSource(open_url(path, version) if at_url else open_path(path), True, path, not at_url)
    elif is_seekable_binary(source):
        found = OpenSource(source, False, None, True)
    else:
        raise TypeError(f"a transcript is a path, a URL or a seekable binary file, not {type(source).__name__}")
    try:
        plain = decompress(found.file, without_credentials(found.path) if found.path else "the transcript")
    except BaseException:
        found.close()
        raise
    if plain is not None:
        found.close()
        found = OpenSource(plain, True, found.path, False)
    return found


def is_url(source: str) -> bool:
    """Return whether a source is a URL, and not a file whose name looks like one."""
    return "://" in source and not os.path.exists(source)  # noqa: PTH110 - a URL is not a Path


def is_seekable_binary(source: object) -> bool:
    """Return whether it is a binary file that the core can read at any offset."""
    if isinstance(source, io.TextIOBase) or not (hasattr(source, "seek") and hasattr(source, "readinto")):
        return False
    seekable = getattr(source, "seekable", None)
    return seekable is None or bool(seekable())


def open_path(path: str) -> io.FileIO:
    """Open a regular file. Raises SourceError for a pipe or a device, without waiting for a writer; OSError."""
    file = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SourceError(f"{path} is not a regular file: copy what it gives to a file, and open that")
    return file


# ---- compressed files --------------------------------------------------------


def decompress(file: SeekableFile, name: str) -> io.FileIO | None:
    """Return an unnamed temporary file with the decompressed bytes of a gzip or zstd file; None if it is neither.

    All at once, because a transcript is read from its end as often as from its beginning.

    name: of the source, for messages. Raises SourceError if the file is cut off or damaged.
    """
    start = read_start(file, COMPRESSION_MARK_BYTES)
    if not is_compressed(start):
        return None
    if start.startswith(GZIP_MARK):
        import gzip
        import zlib

        packed = gzip.GzipFile(fileobj=file, mode="rb")
        return copy_to_temporary(packed, (gzip.BadGzipFile, zlib.error), name)
    zstd = import_zstd(name)
    return copy_to_temporary(zstd.ZstdFile(file), (zstd.ZstdError,), name)


def is_compressed(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of gzip or zstd."""
    return start.startswith((GZIP_MARK, ZSTD_MARK)) or (start[1:4] == ZSTD_SKIPPED_MARK and start[0] >> 4 == 5)


def read_start(file: SeekableFile, size: int) -> bytes:
    """Return the first bytes of a file, and leave it at its beginning."""
    file.seek(0)
    start = bytearray()
    while len(start) < size and (more := file.read(size - len(start))):
        start += more
    file.seek(0)
    return bytes(start)


def import_zstd(name: str) -> Any:
    """Return the module for zstd. Raises MissingExtraError before Python 3.14 without backports.zstd."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise MissingExtraError(f"{name} is compressed with zstd: pip install 'tailhook[zstd]'") from None
    return zstd


def write_chunk(plain: Any, chunk: bytes, name: str) -> None:
    """Write a part of a temporary copy.  name: of the source, for messages. Raises SourceError."""
    import tempfile

    view = memoryview(chunk)
    try:
        while view:
            view = view[plain.write(view) :]
    except OSError as error:
        reason = f"{tempfile.gettempdir()}: {error.strerror}"
        raise SourceError(f"{name} cannot be copied to a temporary file: {reason}") from None


def copy_to_temporary(source: Any, errors: tuple[type[Exception], ...], name: str) -> io.FileIO:
    """Return an unnamed temporary file with all bytes of a source, and close the source.

    source: a file, which may decompress what it reads.
    errors: what it raises for damaged data.
    name: of the source, for messages.

    Raises SourceError if the data is damaged or there is no room for the copy.
    """
    import tempfile

    plain: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the caller closes it
    try:
        with source:
            while chunk := source.read(COPY_BYTES):
                write_chunk(plain, chunk, name)
    except BaseException as error:
        plain.close()
        if isinstance(error, EOFError):
            raise SourceError(f"{name} is cut off: its compressed data has no end") from None
        if isinstance(error, errors):
            raise SourceError(f"{name} cannot be decompressed: {error}") from None
        raise
    return plain  # type: ignore[no-any-return]


# ---- URLs --------------------------------------------------------------------


class UrlVersion:
    """By what it is known whether a file at a URL is still the same."""

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
    """A file at a URL, fetched in blocks of 1 MiB, of which the last four are kept."""

    def __init__(self, url: str, store: Any, name: str, version: UrlVersion | None) -> None:
        """store: of obstore.  name: the file's in the store.  version: that is wanted; None for the one that is there.

        Raises FileNotFoundError or SourceError.
        """
        self._url, self._store, self._name = url, store, name
        self._position = 0
        self._blocks: dict[int, bytes] = {}
        self._version = version_of(find_facts(url, store, name))
        if version is not None and self._version.differs_from(version):
            raise replaced_error(url)
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
                break  # the file is shorter than it was
            buffer[done : done + len(piece)] = piece
            done += len(piece)
        self._position = start + done
        return done

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            start = number * URL_BLOCK_BYTES
            length = min(URL_BLOCK_BYTES, self._size - start)
            block = fetch_range(self._url, self._store, self._name, start, length, self._version)
            while len(self._blocks) >= MAX_URL_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number] = block
        return self._blocks[number]


def open_url(url: str, version: UrlVersion | None = None) -> BinaryIO:
    """Open a URL: https, http, s3, gs, az and file. Raises MissingExtraError, FileNotFoundError or SourceError.

    version: that is wanted; None for the one that is there. If the file is replaced by another version, reading it
        raises SourceError.

    Credentials and regions come from the environment, as obstore reads it (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …).
    The server must answer requests for a range of bytes.
    """
    base, name = split_url(url)
    return UrlFile(url, open_store(base, url), name, version)  # type: ignore[return-value]


def split_url(url: str) -> tuple[str, str]:
    """Return the URL of the store in which a file is, and the file's name in it.

    A bucket is a store, and the rest of its URL is the name as it is. Elsewhere the folder is the store, and the name
    is what its percent-encoding stands for. The query of a web address belongs to the store, which sends it with every
    name. A fragment is not sent.

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


def with_small_scheme(url: str) -> str:
    """Return a URL with its scheme in small letters. Capitals are the same scheme (RFC 3986, section 3.1)."""
    scheme, colon, rest = url.partition(":")
    return scheme.lower() + colon + rest


def without_credentials(url: str) -> str:
    """Return a URL as rows and messages show it: a web address without its user, a signature and tokens.

    Each time an address is signed, its signature is another one, but the file is the same. What else is in a query may
    name the file, and stays. Paths and other URLs stay as they are.

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


def open_store(base: str, url: str) -> Any:
    """Return the store of obstore at a URL. Raises MissingExtraError or SourceError.  url: for messages."""
    try:
        from datetime import timedelta

        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise MissingExtraError(f"{without_credentials(url)} is a URL: pip install 'tailhook[s3]'") from None
    options: dict[str, Any] = {"client_options": {"allow_http": True}} if base.startswith("http://") else {}
    if base.startswith("s3") and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        os.environ.setdefault("AWS_ALLOW_HTTP", "true")  # client_options would replace all that AWS_… variables set
    if not base.startswith("file://"):
        timeout = timedelta(seconds=URL_TIMEOUT_S)
        options["retry_config"] = {"max_retries": MAX_URL_RETRIES, "retry_timeout": timeout}
    try:
        return from_url(base, **options)
    except (BaseError, ValueError, TypeError) as error:  # TypeError: a kind of store that takes no options
        raise SourceError(f"{without_credentials(url)} cannot be opened: {store_reason(error)}") from None


def find_facts(url: str, store: Any, name: str) -> Any:
    """Return the size and other facts of a file in a store. Raises FileNotFoundError or SourceError.

    url: of the file, for messages.

    An address with a query may be signed for GET only. Then its first byte is asked for.
    """
    try:
        return ask_store("head", url, store, name)
    except SourceError:
        if "?" not in url[len(web_address(url)) :]:
            raise
    found = ask_store("get", url, store, name, options={"range": (0, 1)})
    call_store(url, found.bytes)
    return found.meta


def version_of(facts: Any) -> UrlVersion:
    """Return the version of a file in a store.  facts: of obstore."""
    return UrlVersion(facts["size"], facts["last_modified"].timestamp(), facts["e_tag"] or "")


def replaced_error(url: str) -> SourceError:
    """Return the error for a file of which another version was found than the one that is read."""
    return SourceError(f"{without_credentials(url)} was replaced while it was read: read it again")


def fetch_range(url: str, store: Any, name: str, start: int, length: int, version: UrlVersion) -> bytes:
    """Return bytes of a version of a file in a store. Raises FileNotFoundError or SourceError.

    url: of the file, for messages.

    The version of the answer is compared. A condition in the request (If-Match) would not do: servers may ignore it,
    and it never holds for a weak etag.
    """
    found = ask_store("get", url, store, name, options={"range": (start, start + length)})
    if version_of(found.meta).differs_from(version):
        raise replaced_error(url)
    data = bytes(call_store(url, found.bytes))
    if len(data) < length:
        shown = without_credentials(url)
        raise SourceError(f"{shown} gave fewer bytes than asked for: {len(data):,} of {length:,}")
    return data


def ask_store(function: str, url: str, *arguments: Any, **options: Any) -> Any:
    """Return what a function of obstore gives. Raises FileNotFoundError or SourceError.  url: for messages."""
    import obstore

    return call_store(url, getattr(obstore, function), *arguments, **options)


def call_store(url: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what a function of a store gives. Raises FileNotFoundError or SourceError.  url: for messages."""
    from obstore.exceptions import BaseError, NotFoundError

    try:
        return call_interruptibly(function, *arguments, **options)
    except (NotFoundError, FileNotFoundError):
        raise FileNotFoundError(f"nothing at {without_credentials(url)}") from None
    except (BaseError, OSError, ValueError) as error:
        raise SourceError(f"{without_credentials(url)} cannot be read: {store_reason(error)}") from None


def call_interruptibly(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what a function of a store gives. In the main thread, Ctrl-C and other signals end the wait for it.

    Python looks for signals in the main thread, between two of its instructions, and such a function may wait for a
    server for URL_TIMEOUT_S. So another thread calls it, and goes on if the wait has ended. If no thread can be
    started, as while Python ends, this one calls it.
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
        thread.join(SIGNAL_INTERVAL_S)  # the system may hand a signal to any thread, which does not wake this one
    if failed:
        raise failed.pop()  # or the exception would hold itself, through this frame
    return given[0]


def store_reason(error: Exception) -> str:
    """Return why a store failed, in one line: the words of obstore, with code and message of the server's answer.

    Web addresses in it are without credentials.

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
    return "".join(filter(str.isprintable, " ".join(reason.split())))[:MAX_REASON_CHARS]
