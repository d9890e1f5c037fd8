"""A proxy that makes an object store unwell: it answers 503, ends connections and cuts bodies."""

import contextlib
import http.client
import socket
import struct
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

BUSY, RESET, CUT = "503", "reset", "cut"  # in place of an answer of the store


def every_second_request(*kinds):
    """Return faults for `unwell`: each object's odd requests fail, in one way after another."""
    return lambda path, number: kinds[(len(path) + number // 2) % len(kinds)] if number % 2 == 0 else None


def first_requests(kind, count):
    """Return faults for `unwell`: each object's first requests fail."""
    return lambda path, number: kind if number < count else None


@contextlib.contextmanager
def unwell(store, fault):
    """Stand in front of a store on loopback. Give the proxy's address, and the count of faults by path.

    store: its address.
    fault: takes a path with its query and the number of earlier requests for it. Returns BUSY, RESET or CUT, or None
        for the store's answer. A cut answer has half of its body.
    """
    place = urlsplit(store).netloc
    asked, faults = Counter(), Counter()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words):
            pass

        def answer(self):
            path = self.path
            with lock:
                kind = fault(path, asked[path])
                asked[path] += 1
                faults[path] += kind is not None
            if kind == BUSY:
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if kind == RESET:
                self.reset()
                return
            connection = http.client.HTTPConnection(place)
            given = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection.request(self.command, self.path, given, dict(self.headers))
            found = connection.getresponse()
            body = found.read()
            connection.close()
            self.send_response(found.status)
            for name, value in found.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection", "server", "date"):
                    self.send_header(name, value)
            size = found.getheader("Content-Length") if self.command == "HEAD" else str(len(body))
            self.send_header("Content-Length", size or "0")
            self.end_headers()
            if kind == CUT:
                self.wfile.write(body[: len(body) // 2])
                self.reset()
            else:
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = answer

        def reset(self):
            """End the connection without the rest."""
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", faults
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
