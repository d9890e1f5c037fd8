"""Files at URLs: the objects of a URL, and their bytes, fetched ahead of the scan."""

from __future__ import annotations

import io
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from tailhook._core import is_transcript_name
from tailhook.errors import TailhookError
from tailhook.fleet.plan import (
    HEAD_BYTES,
    MARK_BYTES,
    FileRange,
    ScanProblem,
    SourceFile,
    problem_of,
    tail_digest,
)
from tailhook.transcripts.sources import check_encoding, is_compressed, open_source
from tailhook.transcripts.urls import (
    BUCKET_SCHEMES,
    WEB_LISTING_BUDGET_S,
    WEB_SCHEMES,
    CutAnswerError,
    UnreachableError,
    UrlVersion,
    ask_store,
    attempts,
    call_interruptibly,
    fetch_range,
    find_facts,
    normalize_scheme,
    open_store,
    split_url,
    store_error,
    store_server,
    version_of,
    web_address,
    without_credentials,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from tailhook.transcripts.sources import OpenSource

BLOCK_BYTES = 8 << 20  # of a request
OVER_BYTES = 1 << 18  # requested at a time after the end of a range, until its last line has ended
MAX_AHEAD_BYTES = 24 << 20  # requested before they are needed, and then one block more
MAX_AHEAD = 16  # requests at once
GLOB_SIGN = re.compile(r"\*\*/|\*|\?")
GLOB_PARTS = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}


# ---- listing -----------------------------------------------------------------


def find_objects(url: str, problems: list[ScanProblem], unreachable: set[str]) -> Iterator[SourceFile]:
    """Yield the objects of a URL: one object, all transcripts below a prefix, or those of a glob.

    A prefix ends with a whole name: `s3://bucket/2026` has `s3://bucket/2026/a.jsonl`. Only buckets have globs.
    A web server lists its files if it is one of WebDAV. An address with a query is one object.

    problems: gets the reason if it cannot be listed.
    unreachable: the servers and buckets that could not be reached for earlier URLs. They are not asked again, as that
        takes URL_BUDGET_S each time. Gets the one of this URL if it cannot be reached, either.
    """
    url = normalize_scheme(url)
    scheme = url.partition("://")[0]
    server = store_server(url)
    shown = without_credentials(url)
    if server in unreachable:
        problems.append(ScanProblem(shown, UnreachableError.OTHERS))
        return
    wanted = None
    folder = url
    if scheme in BUCKET_SCHEMES and (magic := GLOB_SIGN.search(url)):
        folder = url[: url.rindex("/", 0, magic.start()) + 1]
        wanted = glob_pattern(url)
    address = web_address(url)
    may_be_object = not address.endswith("/") and wanted is None
    found = False
    try:
        if may_be_object and (one := find_object(url)) is not None:
            yield one
            return
    except (OSError, TailhookError) as error:
        if isinstance(error, UnreachableError):
            unreachable.add(server)
        problems.append(problem_of(shown, error))
        return
    try:
        for file in objects_below(folder) if address == url else ():
            if is_transcript_name(file.path.rpartition("/")[2]) if wanted is None else wanted.fullmatch(file.path):
                found = True
                yield file
    except (OSError, TailhookError) as error:
        if isinstance(error, UnreachableError):
            unreachable.add(server)
        if not (may_be_object and scheme in WEB_SCHEMES):  # most web servers list nothing
            problems.append(problem_of(shown, error))
            return
    if not found:
        problems.append(ScanProblem(shown, "no file matches" if wanted else "nothing is there"))


def glob_pattern(url: str) -> re.Pattern[str]:
    """Return a glob as a pattern: `*` and `?` stand for letters between slashes, `**/` for any folders.

    >>> glob_pattern("s3://b/**/a*.jsonl").fullmatch("s3://b/x/y/a1.jsonl") is not None
    True
    """
    parts = re.split(f"({GLOB_SIGN.pattern})", url)
    return re.compile("".join(GLOB_PARTS.get(part) or re.escape(part) for part in parts), re.DOTALL)


def find_object(url: str) -> SourceFile | None:
    """Return the object at a URL, or None. Raises SourceError and MissingExtraError."""
    base, name = split_url(url)
    if not name:
        return None
    try:
        shown = without_credentials(url)
        facts = find_facts(shown, open_store(base, shown), name, "?" in base)
    except FileNotFoundError:
        return None
    return source_file(url, facts)


def objects_below(folder: str) -> Iterator[SourceFile]:
    """Yield all objects below a URL. Raises SourceError and MissingExtraError."""
    base, name = split_url(f"{folder.rstrip('/')}/")
    in_bucket = base.partition("://")[0] in BUCKET_SCHEMES
    shown = without_credentials(folder)
    store = open_store(base, shown, None if in_bucket else WEB_LISTING_BUDGET_S)
    path = None  # of the newest object: a cut listing continues behind it
    tries = attempts()
    while True:
        is_last = next(tries)
        try:
            pages = iter(ask_store("list", shown, store, prefix=name.strip("/") or None, offset=path))
            while (page := next_page(pages, shown)) is not None:
                for facts in page:
                    path = facts["path"]
                    yield source_file(f"{base}/{path if in_bucket else quote(path)}", facts)
                tries = attempts()  # the time counts from the newest page on
            return
        except CutAnswerError:
            if is_last:
                raise


def next_page(pages: Iterator[Any], shown: str) -> Any:
    """Return the next part of a listing, or None after the last one. Raises SourceError."""
    from obstore.exceptions import BaseError

    try:
        return call_interruptibly(next, pages, None)
    except (BaseError, OSError) as error:
        raise store_error(f"{shown} cannot be listed", error) from None


def source_file(url: str, facts: Any) -> SourceFile:
    """Return an object as a file to scan."""
    version = version_of(facts)
    return SourceFile(without_credentials(url), version.size, version.modified, version.etag, url=url)


# ---- reading -----------------------------------------------------------------


class ByteSpan(NamedTuple):
    """One request for bytes of an object: `length` of them from `start`.

    number: of the part in its task.
    path, url: as in FileRange.
    version: of the object.
    """

    number: int
    path: str
    url: str
    version: UrlVersion
    start: int
    length: int


def spans(parts: Iterable[FileRange]) -> Iterator[ByteSpan]:
    """Yield the requests to make ahead: for each part the file's beginning, then the part from the byte before it.

    That byte shows whether a line begins at the part's start. The first request for the part's own bytes asks for it,
    too.
    """
    for number, part in enumerate(parts):
        if part.version is None or part.end is None:
            continue
        if needs_head(part):
            yield ByteSpan(number, part.path, part.url, part.version, 0, min(HEAD_BYTES, part.size))
        end = part.size if part.end is None else min(part.end, part.size)
        for start in range(part.start, end, BLOCK_BYTES):
            first = max(0, start - 1) if start == part.start else start
            yield ByteSpan(number, part.path, part.url, part.version, first, min(start + BLOCK_BYTES, end) - first)


def needs_head(part: FileRange) -> bool:
    """Return whether the first bytes of a part are not the first 1 MiB of its file."""
    return part.start > 0 or (part.end is not None and part.end < min(HEAD_BYTES, part.size))


class ObjectReader:
    """Fetches the objects of a task, some blocks ahead of the caller. It reads the parts in their order.

    marks: of the objects that were read to their end, by path, if needed.
    """

    def __init__(self, with_marks: bool = False) -> None:
        self.spans: Iterator[ByteSpan] | None = None  # of the task, once a part of it is opened
        self.waiting: deque[tuple[ByteSpan, Future[bytes]]] = deque()
        self.ahead_bytes = 0
        self.stores: dict[str, Any] = {}
        self.pool: ThreadPoolExecutor | None = None
        self.with_marks = with_marks
        self.marks: dict[str, str] = {}

    def open(self, task: Sequence[FileRange], number: int) -> ObjectFile:
        """Return the file of a part of the task, which is always the same one. Raises OSError and TailhookError."""
        self.spans = self.spans or spans(task)
        head = self.head(number, task[number])
        check_encoding(head, task[number].path)
        return ObjectFile(task[number], head)

    def head(self, number: int, part: FileRange) -> bytes:
        """Return at least the first 1 MiB of a part's file, or all of it. Raises OSError and TailhookError."""
        self.ask_ahead(number)
        if not self.waiting or self.waiting[0][0].number != number:
            return b""
        data = self.waiting[0][1].result()
        if needs_head(part):
            self.drop_first()
        return data

    def blocks(self, number: int, part: FileRange) -> Iterator[bytes]:
        """Yield bytes from the one before a part to the end of its file. The caller stops when it has enough.

        Raises OSError and TailhookError.
        """
        end = max(0, part.start - 1)
        last = b""
        self.ask_ahead(number)
        while self.waiting and self.waiting[0][0].number == number:
            span, found = self.waiting[0]
            data = found.result()
            end = span.start + span.length
            if self.with_marks:
                last = last[-MARK_BYTES:] + data[-MARK_BYTES:]
                if end == part.size:  # noted now, because the caller may need no more than this block
                    self.marks[part.path] = tail_digest(self.end_bytes(span, last))
            yield data
            self.drop_first()
            self.ask_ahead(number)
        while end < part.size and part.version is not None:
            span = ByteSpan(number, part.path, part.url, part.version, end, min(OVER_BYTES, part.size - end))
            yield self.fetch(span)
            end += span.length

    def end_bytes(self, span: ByteSpan, last: bytes) -> bytes:
        """Return the last MARK_BYTES of an object, or all of a smaller one. Raises OSError and TailhookError.

        span: ends with the object. last: the bytes read before that end; missing ones are fetched.
        """
        size = span.version.size
        start, known = max(0, size - MARK_BYTES), size - len(last)
        if start < known:
            last = self.fetch(span._replace(start=start, length=known - start)) + last
        return last[-MARK_BYTES:]

    def ask_ahead(self, number: int) -> None:
        """Begin as many requests as may run at once, and forget those of earlier parts."""
        while True:
            while self.waiting and self.waiting[0][0].number < number:
                self.drop_first()
            if len(self.waiting) >= MAX_AHEAD or self.ahead_bytes >= MAX_AHEAD_BYTES:
                return
            if self.spans is None or (span := next(self.spans, None)) is None:
                return
            if span.number >= number:
                from concurrent.futures import ThreadPoolExecutor  # loads slowly, and files need none

                self.pool = self.pool or ThreadPoolExecutor(MAX_AHEAD, thread_name_prefix="tailhook-fetch")
                self.waiting.append((span, self.pool.submit(self.fetch, span)))
                self.ahead_bytes += span.length

    def drop_first(self) -> None:
        """Forget the first request. If it has not begun, it does not begin."""
        span, data = self.waiting.popleft()
        data.cancel()
        self.ahead_bytes -= span.length

    def fetch(self, span: ByteSpan) -> bytes:
        """Return the bytes of a request. Raises OSError and TailhookError."""
        base, name = split_url(span.url)
        store = self.stores.get(base)
        if store is None:
            store = self.stores[base] = open_store(base, span.path)
        return fetch_range(span.path, store, name, span.start, span.length, span.version)

    def close(self) -> None:
        """End the requests that have not begun."""
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)


class ObjectFile(io.RawIOBase):
    """An object as a seekable file. Its head is known. The rest is fetched when it is read."""

    def __init__(self, part: FileRange, head: bytes) -> None:
        self._part, self._head = part, head
        self.is_compressed = is_compressed(head)
        self._position = 0
        self._opened: OpenSource | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._part.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        piece = self._head[self._position : self._position + len(buffer)]
        if not piece and self._position < self._part.size:
            if self._opened is None:
                self._opened = open_source(self._part.source, self._part.version)
            self._opened.file.seek(self._position)
            piece = self._opened.file.read(len(buffer))
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        super().close()
