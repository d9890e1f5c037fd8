"""Fuzz targets of whole processes: a hook, a worker of the pool, the native client."""

import atexit
import os
import socket
import struct
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from support.every_value import PLACES, Surroundings, check
from support.host import short_folder
from support.native_client import ALWAYS_SET, COLD, SanitizedClient, ready_message

from tailhook._core import REQUEST_DESCRIPTORS, REQUEST_MAGIC
from tailhook.pool.worker import Worker

SURROUNDINGS = Surroundings()
atexit.register(SURROUNDINGS.remove)


def hook(data):
    """Run a hook with all machines. The first byte chooses the file, or the payload, that the rest replaces."""
    check(SURROUNDINGS, PLACES[(data[0] if data else 0) % len(PLACES)], data[1:])


class Receiver(Worker):
    """A worker that takes requests and answers none."""

    def __init__(self):
        self.ready = b"ready"

    def is_outdated(self):
        return False


def expected_request(data):
    """Return the fields of a request, or None if it is not a whole one."""
    if len(data) < 32:
        return None
    magic, started_ns, size, count, umask, parent = struct.unpack("=QQIIIi", data[:32])
    strings = data[32:]
    if magic != REQUEST_MAGIC or size != len(strings) or not strings.endswith(b"\0") or umask > 0o777:
        return None
    strings = strings[:-1].split(b"\0")
    if not 1 <= count <= len(strings):
        return None
    pairs = [one.split(b"=", 1) for one in strings[count:] if b"=" in one]
    return (
        started_ns,
        umask,
        parent & 0xFFFFFFFF,
        [os.fsencode(os.fsdecode(one)) for one in strings[:count]],
        dict(pairs[::-1]),
    )


def pool_request(data):
    """Send a worker a request in two parts. The first two bytes choose the descriptors' number and the cut."""
    head, data = data[:2].ljust(2, b"\0"), data[2:]
    number, cut = head[0] % 6, 1 + head[1]  # no descriptors go without a byte
    before = os.listdir("/dev/fd")
    worker, client = socket.socketpair()
    with worker, client:
        socket.send_fds(client, [data[:cut]], [0] * number)
        client.sendall(data[cut:])
        client.shutdown(socket.SHUT_WR)
        request = Receiver().receive(worker)
        assert client.recv(9) == b"ready"
    expected = expected_request(data) if number >= REQUEST_DESCRIPTORS else None
    if request is None:
        assert expected is None
    else:
        size = int.from_bytes(data[16:20], sys.byteorder)
        expected = expected or expected_request(data[: 32 + size])  # the bytes behind it may not have been read
        arguments = [os.fsencode(argument) for argument in request.arguments]
        parent = request.parent & 0xFFFFFFFF
        assert (request.started_ns, request.umask, parent, arguments, request.environment) == expected
        for fd in request.descriptors:
            os.close(fd)
    assert os.listdir("/dev/fd") == before


@cache
def native_client():
    """Return a client with sanitizers in a folder that is removed at the end."""
    return SanitizedClient(Path(FOLDERS.enter_context(short_folder())))


FOLDERS = ExitStack()
atexit.register(FOLDERS.close)


def client_installation(data):
    """Start a client with a file of any bytes beside it: it lets the agent go."""
    done = native_client().run(data)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (0, b"", 1)


def client_answer(data):
    """Let a client connect to a worker that sends any bytes: as its first ones, or instead of an exit code.

    The first byte chooses. A client whose worker is not ready in time runs the cold hook.
    """
    ready = ready_message()
    as_code, data = bool(data) and data[0] % 2 == 1, data[1:]
    if as_code:
        done, _ = native_client().answered(ready, data)
        assert done.returncode in (data[0] if data else 0, COLD)
    elif data[: len(ready)] != ready:
        done, request = native_client().answered(data, b"\2")
        assert (done.returncode, request) == (COLD, b"")


def client_caller(data):
    """Start a client with any arguments and any environment: its worker gets them as they are.

    The first byte chooses how many of the strings, with a NUL between them, are arguments.
    """
    strings = data[1:].split(b"\0")
    count = data[0] % (len(strings) + 1) if data else 0
    variables = dict(one.split(b"=", 1) for one in strings[count:] if one.find(b"=") > 0)  # subprocess wants names
    variables.pop(b"TAILHOOK_NO_POOL", None)
    for _ in range(20):  # on a busy computer, a worker is not always ready in time
        done, request = native_client().answered(ready_message(), b"\2", strings[:count], variables)
        if request:
            break
    _, _, _, arguments, environment = expected_request(request)
    assert (done.returncode, arguments) == (2, [b"hook", *strings[:count]])
    assert environment == {**variables, **ALWAYS_SET}
