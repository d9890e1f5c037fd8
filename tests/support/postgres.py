"""A PostgreSQL server for the tests: the installed programs, in a folder of its own."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from support.host import HANGS_S, wait_until


def program(name):
    """Return the newest PostgreSQL program of a name, or None if it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    return str(found[-1]) if found else shutil.which(name)


@contextmanager
def postgres():
    """Yield the URL of a server; None if PostgreSQL is not installed. It runs until the block ends.

    It listens at a socket in its folder: another program could take a free port before the server does.
    """
    initdb, server = program("initdb"), program("postgres")
    if not initdb or not server:
        yield None
        return
    user = {"user": "nobody"} if os.geteuid() == 0 else {}  # it refuses to be root's
    with tempfile.TemporaryDirectory(prefix="tailhook-pg-") as folder:
        if user:
            shutil.chown(folder, "nobody")
        data, log = Path(folder) / "data", Path(folder) / "log"
        with log.open("wb") as out:
            options = {"stdout": out, "stderr": out, "cwd": folder, **user}
            subprocess.run([initdb, "-D", data, "-U", "tests", "-A", "trust", "-N"], check=True, **options)
            running = subprocess.Popen([server, "-D", data, "-h", "", "-k", folder, "-F"], **options)
        url = f"postgresql+psycopg://tests@/postgres?host={folder}"
        try:
            wait_until(lambda: running.poll() is not None or takes_connections(url))
            assert running.poll() is None, log.read_text()
            yield url
        finally:
            running.send_signal(signal.SIGQUIT)  # leaves at once, with clients connected
            running.wait(HANGS_S)


def takes_connections(url):
    """Return whether the server takes connections."""
    try:
        sa.create_engine(url, poolclass=sa.NullPool).connect().close()
    except sa.exc.OperationalError:
        return False
    return True
