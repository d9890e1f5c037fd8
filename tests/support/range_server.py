"""A web server on loopback that answers requests for ranges of bytes, like object stores."""

import contextlib
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

PAGE_KEYS = 3  # of a bucket in one answer
NO_SUCH_BUCKET = b"<?xml version='1.0'?>\n<Error><Code>NoSuchBucket</Code><Message>It isn&#39;t there</Message></Error>"


def etag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def list_bucket(files, address):
    """Return an answer of S3's ListObjectsV2."""
    asked = {name: values[0] for name, values in parse_qs(address.query).items()}
    keys = [path for path in sorted(files) if path.startswith(f"{address.path}/{asked.get('prefix', '')}")]
    keys = [path for path in keys if path > f"{address.path}/{asked.get('start-after', '')}"]
    start = int(asked.get("continuation-token", 0))
    contents = "".join(
        f"<Contents><Key>{escape(path.removeprefix(f'{address.path}/'))}</Key><Size>{len(files[path])}</Size>"
        f"<LastModified>2026-11-22T08:00:00.000Z</LastModified><ETag>{escape(etag(files[path]))}</ETag></Contents>"
        for path in keys[start : start + PAGE_KEYS]
    )
    end = start + PAGE_KEYS
    token = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < len(keys) else ""
    return (
        f"<ListBucketResult><IsTruncated>{str(bool(token)).lower()}</IsTruncated>{token}{contents}</ListBucketResult>"
    ).encode()


@contextlib.contextmanager
def bucket(files):
    """Serve files, {key: bytes}, as `bucket`, named in the environment; give them and the list of requests."""
    found = {f"/bucket/{key}": data for key, data in files.items()}
    with served(found) as (address, asked), environment_of_bucket(address):
        yield found, asked


@contextlib.contextmanager
def environment_of_bucket(address):
    """Let the environment name a server of a bucket."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        yield


@contextlib.contextmanager
def served(files, with_ranges=True, with_head=True, with_etags=True, missing_bytes=0):
    """Serve files, {path: bytes}; give the server's address and the list of the requested ranges.

    A path may have a query.  with_head: answer HEAD; otherwise it is forbidden, as for an address signed for GET.
    missing_bytes: how many bytes of a range are left out at its end, although Content-Range counts them.
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words):
            pass

        def do_HEAD(self):
            data = files.get(unquote(self.path))
            self.answer(data, b"", 200 if with_head else 403, size=len(data or b""))

        def do_GET(self):
            address = urlsplit(self.path)
            if "list-type" in address.query and not address.path.startswith("/bucket"):
                self.answer(None, NO_SUCH_BUCKET)
                return
            if "list-type" in address.query:
                listing = list_bucket(files, address)
                self.answer(listing, listing)
                return
            data = files.get(unquote(self.path))
            span = self.headers.get("Range")
            if data is not None and span and with_ranges:
                first, last = (int(number) for number in span.removeprefix("bytes=").split("-"))
                asked.append((first, last + 1))
                total = f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}"
                body = data[first : last + 1]
                self.answer(data, body[: len(body) - missing_bytes], 206, total)
            else:
                self.answer(data, data or b"")

        def answer(self, data, body, status=200, span=None, size=None):
            """Answer with `body`, a part of `data`. `data` is None for a missing file."""
            self.send_response(404 if data is None else status)
            self.send_header("Content-Length", str(len(body) if size is None else size))
            self.send_header("Last-Modified", "Sun, 22 Nov 2026 08:00:00 GMT")
            if with_etags:
                self.send_header("ETag", etag(data or b""))
            if span:
                self.send_header("Content-Range", span)
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
