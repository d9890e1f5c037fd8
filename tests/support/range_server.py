"""A web server on loopback that answers requests for ranges of bytes, as object stores do."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def served(files, with_ranges=True):
    """Serve files, {path: bytes}, and give the server's address and the list of the ranges that were asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words):
            pass

        def do_HEAD(self):
            self.answer(b"", len(files.get(self.path, b"")))

        def do_GET(self):
            data = files.get(self.path, b"")
            span = self.headers.get("Range")
            if span and with_ranges:
                first, last = (int(number) for number in span.removeprefix("bytes=").split("-"))
                asked.append((first, last + 1))
                total = f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}"
                self.answer(data[first : last + 1], None, 206, total)
            else:
                self.answer(data, None)

        def answer(self, body, length, status=200, span=None):
            self.send_response(status if self.path in files else 404)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.send_header("Last-Modified", "Sun, 22 Nov 2026 08:00:00 GMT")
            self.send_header("ETag", '"1"')
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
