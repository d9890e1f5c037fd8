"""Holds connections to a port on this machine, like a hostile program.

usage: holds_connections.py PORT NUMBER silent|half|garbage|again SECONDS

silent: they send nothing.  half: they send half of a request's header.  garbage: they send what is not HTTP.  again: as
silent, and each that is closed is made again; prints "closed" once as many were closed.  Prints "ready" once all were
begun. At the end, or once no connection is left, prints how many were closed.
"""

import contextlib
import resource
import selectors
import socket
import sys
import time

HALF = b"GET /plates HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half:"


def main(port: int, number: int, kind: str, seconds: float) -> None:
    """Hold connections of a kind for some seconds."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    words = {"half": HALF, "garbage": b"\0garbage\r\n\r\n"}.get(kind, b"")
    selector = selectors.DefaultSelector()

    def begin() -> None:
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
        selector.register(one, selectors.EVENT_READ | (selectors.EVENT_WRITE if words else 0))

    for _ in range(number):
        begin()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    closed, end = 0, time.monotonic() + seconds
    while selector.get_map() and time.monotonic() < end:
        for key, events in selector.select(0.1):
            data = None
            if events & selectors.EVENT_READ:
                with contextlib.suppress(OSError):
                    data = key.fileobj.recv(1 << 16)
                if not data:
                    closed += 1
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    if kind == "again":
                        begin()
                        if closed == number:
                            sys.stdout.write("closed\n")
                            sys.stdout.flush()
            elif events & selectors.EVENT_WRITE:
                with contextlib.suppress(OSError):
                    key.fileobj.send(words)
                selector.modify(key.fileobj, selectors.EVENT_READ)
    sys.stdout.write(f"{closed}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
