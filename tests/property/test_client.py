"""The native client, built with sanitizers: no bytes that it reads from outside do more than make the hook cold."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.host import short_folder
from support.long_runs import examples

from tailhook._core import READY_MAGIC, caller_identity
from tailhook.pool.control import own_socket

SOURCE = Path(__file__).parents[2] / "ext" / "client.c"
COLD = 7  # the exit code of what stands for the cold hook

pytestmark = [
    pytest.mark.skipif(not SOURCE.exists() or not shutil.which("cc"), reason="needs the sources and a compiler"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="two sanitizers in one process"),
]


@pytest.fixture(scope="module")
def folder():
    """Yield a folder with a short path, with a client built with sanitizers and a stand-in for the cold hook."""
    with short_folder() as name:
        folder = Path(name)
        flags = ["-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        done = subprocess.run(["cc", *flags, "-I", SOURCE.parent, SOURCE, "-o", folder / "tailhook-hook"], check=False)
        if done.returncode:
            pytest.skip("this compiler has no sanitizers")
        (folder / "cold").write_text(f"#!/bin/sh\nexit {COLD}\n")
        (folder / "cold").chmod(0o755)
        (folder / "run").mkdir(mode=0o700)
        yield folder


def run(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """Run the client with an empty payload."""
    argv = [folder / "tailhook-hook", "hook", *words]
    env = {"LANG": "C.UTF-8", "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30)
    assert b"Sanitizer" not in done.stderr
    assert b"runtime error" not in done.stderr
    return done


def write_installation(folder: Path, path: str) -> None:
    cold = str(folder / "cold")
    fields = ("tailhook-hook 1", path, cold, cold, cold)
    (folder / "installation").write_bytes(b"".join(os.fsencode(field) + b"\0" for field in fields))


many = settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
FIELDS = st.lists(st.binary(max_size=30).map(lambda field: field.replace(b"\0", b"")), max_size=8)


@many
@given(
    st.one_of(
        st.binary(max_size=300),
        FIELDS.map(lambda fields: b"tailhook-hook 1\0" + b"".join(field + b"\0" for field in fields)),
        st.integers(0, 20_000).map(lambda size: b"x" * size),
    )
)
def test_a_file_with_any_bytes_lets_the_agent_go(folder, data):
    (folder / "installation").write_bytes(data)
    done = run(folder)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (0, b"", 1)


def answered(folder: Path, ready: bytes, code: bytes) -> subprocess.CompletedProcess:
    """Run the client against a worker that sends these bytes: when it accepts, and after the request."""
    name = str(folder / "run" / "socket")
    write_installation(folder, name)
    path = own_socket(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(30)

        def work() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(30)
                try:
                    connection.sendall(ready)
                    if connection.recv(1 << 20):
                        connection.sendall(code)
                except OSError:
                    pass  # the client has left

        worker = threading.Thread(target=work)
        worker.start()
        try:
            return run(folder, "idle")
        finally:
            worker.join()
            Path(path).unlink()


def ready_message(magic: int = READY_MAGIC, identity: int | None = None) -> bytes:
    numbers = magic, caller_identity() if identity is None else identity
    return b"".join(number.to_bytes(8, sys.byteorder) for number in numbers)


@many
@given(st.one_of(st.binary(max_size=40), st.integers(1, 2**64 - 1).map(lambda number: ready_message(identity=number))))
def test_a_worker_that_sends_any_other_bytes_gets_no_request(folder, ready):
    if ready[:16] == ready_message():
        return
    assert answered(folder, ready, b"\2").returncode == COLD


@many
@given(st.binary(min_size=1, max_size=10))
def test_the_first_byte_after_the_request_is_the_exit_code(folder, code):
    done = answered(folder, ready_message(), code)
    assert done.returncode in (code[0], COLD)  # a busy machine: the worker was not ready in time


def test_without_an_exit_code_the_agent_may_go(folder):
    for _ in range(20):
        done = answered(folder, ready_message(), b"")
        if done.returncode != COLD:
            break
    assert (done.returncode, done.stderr.count(b"\n")) == (0, 1)
