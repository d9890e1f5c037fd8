"""Claude Code in a terminal, as a person uses it: permission prompts and questions appear only there."""

import json
import os
import re
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress

import httpx
import psutil
from model import Model
from run_hosts import host_path
from support.daemon import daemon_in, sse, wait_until
from support.terminal import Terminal

ENTER, ESCAPE, DOWN, TAB = "\r", "\x1b", "\x1b[B", "\t"
TYPING_S = 0.4  # the host takes keys that come faster for a paste
STARTS_S = 60
KEY = "none"  # the API key of the tests' environment
CONTROLS = re.compile(r"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>78]|\s")

# An MCP server with one tool, which asks the person for a name.
MCP_SERVER = r"""
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        info = {"name": "asker", "version": "1"}
        version = message["params"]["protocolVersion"]
        send(id=message["id"], result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        tool = {"name": "ask", "description": "asks", "inputSchema": {"type": "object", "properties": {}}}
        send(id=message["id"], result={"tools": [tool]})
    elif method == "tools/call":
        call = message["id"]
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        send(id="ask", method="elicitation/create", params={"message": "Your name?", "requestedSchema": schema})
    elif message.get("id") == "ask":
        send(id=call, result={"content": [{"type": "text", "text": json.dumps(message["result"])}]})
    elif method and "id" in message:
        send(id=message["id"], result={})
"""


class Interactive(Terminal):
    """A session of Claude Code in a terminal, and the statuses that the daemon reports for it.

    statuses: those that each session had, in their order, without repetitions. They begin with "running", "idle".
    """

    begins_idle = True  # whether to wait until the board shows the session at its prompt

    def __init__(self, claude, daemon, model: Model, *flags: str) -> None:
        answers = {"approved": [KEY], "rejected": []}
        trust = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": answers,
            "projects": {str(claude.project): trust},
            "messageIdleNotifThresholdMs": claude.idle_notification_ms,
        }
        if not (claude.home / ".claude.json").exists():
            (claude.home / ".claude.json").write_text(json.dumps(state))
        self.daemon = daemon
        self.statuses: dict[str, list[str]] = {}
        self.is_gone = False
        self.left: list[psutil.Process] = []
        threading.Thread(target=self.watch, daemon=True).start()
        env = {**claude.env, "TERM": "xterm-256color", "ANTHROPIC_BASE_URL": model.url}
        super().__init__([str(host_path("claude")), *flags], env, claude.project)
        self.drain()
        self.shows("modeon", "?forshortcuts")  # 2.1.329, 2.1.163
        self.shows("\u276f")  # the sign of the prompt
        time.sleep(1)
        if self.begins_idle:
            wait_until(lambda: self.status() == "idle")

    def watch(self) -> None:
        """Note every status that the daemon reports, until the daemon ends."""
        with (
            suppress(httpx.TransportError),
            self.daemon.client() as client,
            client.stream("GET", "/stream", timeout=None) as response,
        ):
            for name, sent in sse(response):
                for plate in sent if name in ("plates", "more") else [sent] if name == "plate" else []:
                    seen = self.statuses.setdefault(plate["session_id"], [])
                    if seen[-1:] != [plate["status"]]:
                        seen.append(plate["status"])

    def shows(self, *words: str, seconds: float = STARTS_S) -> None:
        """Wait until one of the words was drawn; blanks do not count."""
        wait_until(lambda: any(one in CONTROLS.sub("", self.seen) for one in words), seconds)

    def type(self, *keys: str) -> None:
        """Type keys or words, one after the other."""
        for key in keys:
            os.write(self.fd, key.encode())
            time.sleep(TYPING_S)

    def prompt(self, words: str) -> None:
        """Submit a prompt."""
        self.type(words, ENTER)

    @property
    def id(self) -> str:
        """Return the session's id."""
        return wait_until(lambda: list(self.statuses))[-1]

    def status(self) -> str:
        """Return the status of the newest session."""
        return self.statuses[self.id][-1]

    def comes_to(self, *statuses: str, seconds: float = 30) -> None:
        """Wait until the newest statuses of the session are these."""
        wait_until(lambda: self.statuses.get(self.id, [])[-len(statuses) :] == list(statuses), seconds)

    def stays(self, status: str, seconds: float) -> None:
        """Check that the stored status is this one, and does not change for some seconds."""
        stored = self.daemon.ask("GET", f"/plates/{self.id}").json()["status"]
        wait_until(lambda: self.status() == stored)  # what the daemon has stored may not have come yet
        before = list(self.statuses[self.id])
        assert before[-1] == status
        time.sleep(seconds)
        assert self.statuses[self.id] == before

    def events(self) -> list[dict]:
        """Return the session's events, oldest first."""
        return self.daemon.ask("GET", f"/plates/{self.id}?events=200").json()["events"]

    def happens(self, event_type: str, count: int = 1, **fields: object) -> None:
        """Wait until the session has `count` events of a type with these fields."""

        def has_happened() -> bool:
            found = [event for event in self.events() if event["event_type"] == event_type]
            return sum(all(event[name] == value for name, value in fields.items()) for event in found) >= count

        wait_until(has_happened)

    def kill(self) -> None:
        """Kill the host. The commands that it runs are killed at the end."""
        self.left = psutil.Process(self.pid).children(recursive=True)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.is_gone = True

    def end(self) -> None:
        """End the host, as a closed terminal does."""
        if self.is_gone:
            os.close(self.fd)
            for process in self.left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            return
        os.kill(self.pid, signal.SIGHUP)
        end = time.monotonic() + 10
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.05)
        os.close(self.fd)


@contextmanager
def session(claude, daemon, model: Model, *flags: str, mode: str = "default"):
    """Yield a session in a terminal; end it at the end of the block."""
    one = Interactive(claude, daemon, model, "--permission-mode", mode, *flags)
    try:
        yield one
    finally:
        one.end()


@contextmanager
def board_of(claude):
    """Yield a function that starts a session of Claude Code with its events reported to a running daemon."""
    claude.env["TAILHOOK_NO_AUTOSTART"] = "1"
    claude.idle_notification_ms = 60_000
    claude.tailhook("install", "--yes", "--with", "plates")
    with daemon_in(claude.home) as daemon:
        daemon.start()
        yield lambda model, *flags, **options: session(claude, daemon, model, *flags, **options)


def mcp_flags() -> list[str]:
    """Return the flags that give the host the MCP server and allow its tool."""
    server = {"command": sys.executable, "args": ["-c", MCP_SERVER]}
    return ["--allowedTools", "mcp__asker__ask", "--mcp-config", json.dumps({"mcpServers": {"asker": server}})]
