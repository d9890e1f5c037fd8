"""A PostgreSQL server for the tests: the installed programs, a folder of its own, a port of its own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from support.host import HANGS_S


def program(name):
    """Return the newest PostgreSQL program of a name, or None if it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    return str(found[-1]) if found else shutil.which(name)


@contextmanager
def postgres():
    """Yield the URL of a starting server; None if PostgreSQL is not installed. It runs until the block ends."""
    initdb, server = program("initdb"), program("postgres")
    if not initdb or not server:
        yield None
        return
    user = {"user": "nobody"} if os.geteuid() == 0 else {}  # it refuses to be root's
    with tempfile.TemporaryDirectory(prefix="tailhook-pg-") as folder:
        if user:
            shutil.chown(folder, "nobody")
        data = Path(folder) / "data"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **user}
        subprocess.run([initdb, "-D", data, "-U", "tests", "-A", "trust", "-N"], check=True, **quiet)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        argv = [server, "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder, "-F"]
        running = subprocess.Popen(argv, **quiet)
        try:
            subprocess.run(
                [program("pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-t", "30"], check=False, **quiet
            )
            yield f"postgresql+psycopg://tests@127.0.0.1:{port}/postgres"
        finally:
            running.send_signal(signal.SIGQUIT)  # leaves at once, with clients connected
            running.wait(30)


def wait_for(url):
    """Wait until the server takes connections."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    end = time.monotonic() + HANGS_S
    while True:
        try:
            engine.connect().close()
            return
        except sa.exc.OperationalError:
            assert time.monotonic() < end
            time.sleep(0.05)
