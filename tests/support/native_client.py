"""The native client with sanitizers, beside workers that send any bytes, and a stand-in for the cold hook."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from support.host import HANGS_S
from tailhook._core import READY_MAGIC, caller_identity
from tailhook.pool.control import own_socket

SOURCE = Path(__file__).parents[2] / "ext" / "client.c"
FLAGS = ("-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
EMPTY: Mapping[bytes, bytes] = MappingProxyType({})
ALWAYS_SET = {b"LC_ALL": b"C.UTF-8", b"ASAN_OPTIONS": b"detect_leaks=0"}  # in the client's environment
COLD = 7  # the exit code of the stand-in for the cold hook


class SanitizedClient:
    """A client in a folder with a short path, because the folder has a socket.

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

    def run(
        self, installation: bytes, arguments: Sequence[bytes] = (), variables: Mapping[bytes, bytes] = EMPTY
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run the client with an empty payload and these bytes in its file.

        arguments: those after "hook".  variables: of the environment, beside ALWAYS_SET.
        """
        (self.folder / "installation").write_bytes(installation)
        env = {**variables, **ALWAYS_SET}
        argv = [self.program, "hook", *arguments]
        done = subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=HANGS_S
        )
        assert b"Sanitizer" not in done.stderr
        assert b"runtime error" not in done.stderr
        return done

    def answered(
        self, ready: bytes, code: bytes, arguments: Sequence[bytes] = (), variables: Mapping[bytes, bytes] = EMPTY
    ) -> "tuple[subprocess.CompletedProcess[bytes], bytes]":
        """Run the client against a worker. It sends some bytes when it accepts, and some after the request.

        Return the client's result and its request; b"" if there was none.
        """
        prefix, cold = str(self.folder / "run" / "socket"), str(self.folder / "cold")
        fields = ("tailhook-hook 1", prefix, cold, cold, cold)
        path = own_socket(prefix)
        request = bytearray()
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
                        while len(request) < 32 or len(request) < 32 + int.from_bytes(request[16:20], sys.byteorder):
                            some = connection.recv(1 << 20)
                            if not some:
                                return
                            request.extend(some)
                        connection.sendall(code)
                    except OSError:
                        pass  # the client has left

            worker = threading.Thread(target=work)
            worker.start()
            try:
                done = self.run(b"".join(os.fsencode(field) + b"\0" for field in fields), arguments, variables)
            finally:
                worker.join()
                Path(path).unlink()
        return done, bytes(request)


def ready_message() -> bytes:
    """Return a worker's first message to a caller like this process."""
    return b"".join(number.to_bytes(8, sys.byteorder) for number in (READY_MAGIC, caller_identity()))
