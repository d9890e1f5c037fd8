"""A daemon as a process of its own, in a home of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.host import ENVIRONMENT
from tailhook._core import poke

SERVE = [sys.executable, "-m", "tailhook", "plates", "serve"]
STARTS = 30  # seconds that a daemon may take to start on a busy machine


class Daemon:
    """The daemon of a user whose home is a folder of the test's."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {**ENVIRONMENT, "HOME": str(home)}
        self.state = home / ".local" / "state" / "tailhook"
        self.runtime = self.state / "run"
        self.before: list[str] = []  # the argv before the daemon's own
        self.process = None
        self.link = self.used = self.found = ""

    def start(self, *flags: str) -> "Daemon":
        """Start it on a free port; it takes requests when this returns."""
        argv = [*self.before, *SERVE, "--port", "0", *flags]
        self.process = subprocess.Popen(argv, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        words = self.process.stdout.readline()
        assert words, self.process.communicate()
        self.link = words.split()[-1]
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it; returns the exit code."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        process.send_signal(how)
        process.communicate(timeout=STARTS)
        return process.returncode

    @property
    def base(self) -> str:
        """The URL of its port."""
        return self.link.partition("/#")[0]

    @property
    def secret(self) -> str:
        """What a browser gets that opens the link of this run."""
        if self.link != self.used:
            bearer = f"Bearer {self.link.partition('once=')[2]}"
            self.used, answer = self.link, httpx.post(f"{self.base}/sign-in", headers={"authorization": bearer})
            self.found = answer.raise_for_status().json()["secret"]
        return self.found

    @property
    def token(self) -> str:
        """The token of its port."""
        return (self.state / "token").read_text().strip()

    def ask(self, method: str, path: str, **options: object) -> httpx.Response:
        """A request over the Unix socket, as the user's own programs send it."""
        with self.client() as client:
            return client.request(method, path, **options)

    def client(self) -> httpx.Client:
        """A client of the Unix socket."""
        transport = httpx.HTTPTransport(uds=str(self.runtime / "http"))
        return httpx.Client(transport=transport, base_url="http://localhost", timeout=30)

    def post(self, event_type: str, session: str = "s", **fields: object) -> None:
        """Report an event over the Unix socket."""
        body = {"session_id": session, "project_path": "/p", "event_type": event_type, **fields}
        response = self.ask("POST", "/events", json=body)
        assert (response.status_code, response.json()) == (200, {"status": "ok"})

    def plates(self) -> dict[str, dict]:
        """All plates by their session."""
        return {plate["session_id"]: plate for plate in self.ask("GET", "/plates").json()}

    def spool(self, *events: dict) -> None:
        """Append events as hooks do, and poke."""
        self.state.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events).encode()
        fd = os.open(self.state / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, lines)
        os.close(fd)
        poke(os.fsencode(self.runtime / "poke"))


@contextmanager
def daemon_in(home: Path):
    """A daemon that is not started yet, and is ended afterwards."""
    home.mkdir(exist_ok=True)
    one = Daemon(home)
    try:
        yield one
    finally:
        one.stop(signal.SIGKILL)


def wait_until(there, seconds: float = STARTS):
    """Wait until it is so; returns what `there` gave."""
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end, "it did not come to be so"
        time.sleep(0.01)
    return found


def answers(one: Daemon) -> bool:
    """Return whether a daemon listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(one.runtime / "http")) == 0


def daemon_pid(one: Daemon) -> int:
    """The process that listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(one.runtime / "http"))
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little")


def spooled(number: int, session: str = "s", **fields: object) -> dict:
    """An event as a hook appends it."""
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
    """What a daemon says that does not start."""
    done = subprocess.run([*SERVE, *flags], env=one.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    return done.stderr


def sse(response: httpx.Response):
    """The server-sent events of a response: name and value."""
    name = ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)
