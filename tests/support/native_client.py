"""The native client, built with sanitizers, beside a stand-in for the cold hook and workers that send any bytes."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tailhook._core import READY_MAGIC, caller_identity
from tailhook.pool.control import own_socket

SOURCE = Path(__file__).parents[2] / "ext" / "client.c"
FLAGS = ("-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COLD = 7  # the exit code of what stands for the cold hook


class SanitizedClient:
    """A client in a folder with a short path, as a socket is in it.

    Raises CalledProcessError if there is no compiler with sanitizers.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "tailhook-hook"
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        subprocess.run(["cc", *FLAGS, "-I", SOURCE.parent, SOURCE, "-o", self.program], env=env, check=True)
        (folder / "cold").write_text(f"#!/bin/sh\nexit {COLD}\n")
        (folder / "cold").chmod(0o755)
        (folder / "run").mkdir(mode=0o700)

    def run(self, installation: bytes) -> "subprocess.CompletedProcess[bytes]":
        """Run the client with an empty payload and these bytes in its file."""
        (self.folder / "installation").write_bytes(installation)
        env = {"LANG": "C.UTF-8", "ASAN_OPTIONS": "detect_leaks=0"}
        argv = [self.program, "hook", "idle"]
        done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30)
        assert b"Sanitizer" not in done.stderr
        assert b"runtime error" not in done.stderr
        return done

    def answered(self, ready: bytes, code: bytes) -> "subprocess.CompletedProcess[bytes]":
        """Run the client against a worker that sends these bytes: when it accepts, and after the request."""
        prefix, cold = str(self.folder / "run" / "socket"), str(self.folder / "cold")
        fields = ("tailhook-hook 1", prefix, cold, cold, cold)
        path = own_socket(prefix)
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
                return self.run(b"".join(os.fsencode(field) + b"\0" for field in fields))
            finally:
                worker.join()
                Path(path).unlink()


def ready_message() -> bytes:
    """Return what a worker sends when it is ready for a caller like this process."""
    return b"".join(number.to_bytes(8, sys.byteorder) for number in (READY_MAGIC, caller_identity()))
