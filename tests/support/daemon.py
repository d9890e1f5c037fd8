"""Runs a daemon as a process, in a home folder of the test."""

import fcntl
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx

from support.host import ENVIRONMENT, HANGS_S, command_server, needs_interpreter, tailhook, wait_until
from tailhook._core import send_wake_up

SERVE = [sys.executable, "-m", "tailhook", "plates", "serve"]
STARTS = HANGS_S


class Daemon:
    """A daemon with a folder of the test as its user's home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {**ENVIRONMENT, "HOME": str(home)}
        self.state = home / ".local" / "state" / "tailhook"
        self.runtime = self.state / "run"
        self.before: list[str] = []  # the argv before the daemon's own
        self.is_forked = True  # unless a test is about the process: a forked one shares memory with its parent
        self.finds_tables = False  # whether a forked one finds a database with empty tables at its first start
        self.process = None
        self.link = self.used = self.found = ""

    def start(self, *flags: str) -> "Daemon":
        """Start it on a free port; return when it answers requests."""
        words = ("plates", "serve", "--port", "0", *flags)
        if self.is_forked and not (self.before or needs_interpreter(words, self.env)):
            if self.finds_tables and not (flags or self.state.exists()):
                from support.databases import database_in  # it imports the daemon's modules

                self.state.mkdir(parents=True, mode=0o700)
                database_in(self.state)
            self.process = command_server(True).start(words, self.env, Path.cwd(), {})
        else:
            argv = [*self.before, sys.executable, "-m", "tailhook", *words]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            self.process = subprocess.Popen(argv, env=self.env, text=True, **pipes)
        words = self.process.stdout.readline()
        assert words, self.process.communicate()
        self.link = words.split()[-1]
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it; return the exit code."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        process.send_signal(how)
        process.communicate(timeout=STARTS)
        return process.returncode

    @property
    def base(self) -> str:
        """Return the URL of its port."""
        return self.link.partition("/#")[0]

    @property
    def secret(self) -> str:
        """Return the secret that a browser gets for the link of this run."""
        if self.link != self.used:
            bearer = f"Bearer {self.link.partition('once=')[2]}"
            self.used, answer = self.link, request("POST", f"{self.base}/sign-in", headers={"authorization": bearer})
            self.found = answer.raise_for_status().json()["secret"]
        return self.found

    @property
    def token(self) -> str:
        """Return the token of its port."""
        return (self.state / "token").read_text().strip()

    def ask(self, method: str, path: str, **options: object) -> httpx.Response:
        """Send a request over the Unix socket, like the user's own programs."""
        with self.client() as client:
            return client.request(method, path, **options)

    def client(self) -> httpx.Client:
        """Return a client of the Unix socket."""
        transport = httpx.HTTPTransport(uds=str(self.runtime / "http"), verify=False)
        return httpx.Client(transport=transport, base_url="http://localhost", timeout=HANGS_S)

    def post(self, event_type: str, session: str = "s", **fields: object) -> None:
        """Report an event over the Unix socket."""
        body = {"session_id": session, "project_path": "/p", "event_type": event_type, **fields}
        response = self.ask("POST", "/events", json=body)
        assert (response.status_code, response.json()) == (200, {"status": "ok"})

    def plates(self) -> dict[str, dict]:
        """Return all plates by their session."""
        return {plate["session_id"]: plate for plate in self.ask("GET", "/plates").json()}

    def remove_plates(self) -> None:
        """Remove all plates."""
        with self.client() as client:
            for plate in client.get("/plates").json():
                client.delete(f"/plates/{quote(plate['session_id'], safe='')}").raise_for_status()

    def has_plates_for_a_board(self) -> bool:
        """Return whether a new board gets a plate. It may share what was read for an earlier one."""
        with listening(self) as sent:
            return bool(beginning(sent)[0])

    def delete_stored(self, session: str) -> None:
        """Delete a plate in the database, while the daemon does not run."""
        with closing(sqlite3.connect(self.state / "plates.db")) as connection, connection:
            connection.execute("DELETE FROM plates WHERE session_id = ?", (session,))

    def make_older(self, seconds: int) -> None:
        """Move the newest events of all plates, and the writes to their transcripts, into the past."""
        with closing(sqlite3.connect(self.state / "plates.db", timeout=STARTS)) as connection, connection:
            found = connection.execute(
                "UPDATE plates SET updated_at = updated_at - ?, version = version + 1 RETURNING transcript_path",
                (seconds * 1000,),
            )
            paths = [Path(path) for (path,) in found if path]
        for path in filter(Path.exists, paths):
            written = path.stat().st_mtime - seconds
            os.utime(path, (written, written))

    def spool(self, *events: dict) -> None:
        """Append events to the spool and wake the daemon, like hooks."""
        self.state.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events).encode()
        fd = os.open(self.state / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, lines)
        os.close(fd)
        send_wake_up(os.fsencode(self.runtime / "poke"))


def request(method: str, url: str, **options: object) -> httpx.Response:
    """Send a request to a port, always without TLS: loading certificates takes longer than a request."""
    return httpx.request(method, url, verify=False, **{"timeout": HANGS_S, **options})


@contextmanager
def daemon_in(home: Path):
    """Yield a daemon that is not started; kill it at the end of the block."""
    home.mkdir(exist_ok=True)
    one = Daemon(home)
    try:
        yield one
    finally:
        one.stop(signal.SIGKILL)


def has_ended(state: Path) -> bool:
    """Return whether the last program that a hook started in place of the daemon has ended."""
    with (state / "daemon-start").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def wait_for_end(state: Path) -> None:
    """Wait for the end of the program that a hook started in place of the daemon."""
    wait_until(lambda: has_ended(state))


def answers(one: Daemon) -> bool:
    """Return whether a daemon listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(one.runtime / "http")) == 0


def daemon_pid(one: Daemon) -> int:
    """Return the process id of the daemon that listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(one.runtime / "http"))
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little")


def spooled(number: int, session: str = "s", **fields: object) -> dict:
    """Return an event in the form of a hook."""
    return {
        "event_id": f"{session}-{number}",
        "event_type": "tool_call",
        "ts": number,
        "mono": number,
        "session_id": session,
        "project_path": "/p",
        **fields,
    }


def refused(one: Daemon, *flags: str) -> str:
    """Return the output of a daemon that does not start. The default port may be another daemon's: it is not used."""
    port = [] if "--port" in flags or "--no-port" in flags else ["--no-port"]
    done = tailhook("plates", "serve", *flags, *port, env=one.env, cwd=Path.cwd())
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    return done.stderr


def sse(response: httpx.Response):
    """Yield the server-sent events of a response: name and value."""
    for name, value, _ in sse_with_ids(response):
        yield name, value


def sse_with_ids(response: httpx.Response):
    """Yield the server-sent events of a response: name, value, and the id of the last event that has one."""
    name, value, last = "", None, ""
    for line in response.iter_lines():
        field, _, words = line.partition(": ")
        if field == "event":
            name = words
        elif field == "id":
            last = words
        elif field == "data":
            value = json.loads(words)
        elif not line and name:
            yield name, value, last
            name = ""


@contextmanager
def listening(daemon: Daemon, last_id: str = ""):
    """Yield the events of a new stream, see `sse_with_ids`."""
    with daemon.client() as client, client.stream("GET", "/stream", headers={"Last-Event-ID": last_id}) as response:
        yield sse_with_ids(response)


def beginning(sent):
    """Return the plates with which a stream begins, the number of closed ones, and the stream's id then."""
    plates: dict[str, dict] = {}
    for name, value, last in sent:
        if name == "closed":
            return plates, value["sessions"], last
        assert name == ("more" if plates else "plates")
        plates |= {plate["session_id"]: plate for plate in value}
    raise AssertionError(plates)
