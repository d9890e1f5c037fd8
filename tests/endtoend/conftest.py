"""The real hosts without a model: each test has an empty home, a project, and what `tailhook install` wrote there."""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from model import Model
from run_hosts import host_path
from support.host import short_folder, tailhook, wait_until

BIN = Path(sys.executable).parent
SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # linux/sockios.h, linux/if.h
SLOW = 120  # seconds without a line, then a session counts as hung

# A second Stop hook. It notes whether the transcript has the payload's last message.
WITNESS = """
import json, sys
stop = json.load(sys.stdin)
there = json.dumps(stop["last_assistant_message"]) in open(stop["transcript_path"]).read()
print(json.dumps({**stop, "there": there}), file=open(sys.argv[1], "a"))
"""


@pytest.fixture(scope="session", autouse=True)
def _alone():
    """Skip unless loopback is the only network device."""
    if (devices := [name for _, name in socket.if_nameindex()]) != ["lo"]:
        pytest.skip(f"not in a network namespace of its own (devices: {', '.join(devices)}): `make host` makes one")
    with socket.socket() as any_socket:  # what `ip link set lo up` does
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))


@dataclass
class Session:
    """The result of a run of the host."""

    result: dict
    transcript: Path

    @property
    def id(self) -> str:
        """Return the session's id, with which it can be resumed."""
        return self.result["session_id"]

    def records(self, kind: str) -> list[dict]:
        """Return the transcript's records of a type, oldest first."""
        return [one for line in self.transcript.read_text().splitlines() if (one := json.loads(line))["type"] == kind]

    def hooks(self) -> list[dict]:
        """Return the host's notes about each Stop hook: {"command", "durationMs"}."""
        stops = [one for one in self.records("system") if one.get("subtype") == "stop_hook_summary"]
        return [hook for stop in stops for hook in stop["hookInfos"]]


@dataclass
class ClaudeCode:
    """Claude Code in a home, which is made if it is missing, with a new project."""

    home: Path
    project: Path
    wrapper: list[str] = field(default_factory=list)  # the argv before the host's own

    def __post_init__(self) -> None:
        self.home.mkdir(exist_ok=True)
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "IS_SANDBOX": "1",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
        }

    @property
    def settings(self) -> Path:
        """Return the path of the user's settings file."""
        return self.home / ".claude" / "settings.json"

    def tailhook(self, *words: str) -> str:
        """Run the command as a person would; return its stdout."""
        done = tailhook(*words, env=self.env, cwd=self.project)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def once_written(self, results: int, words: str) -> Callable[[object], str]:
        """Return an answer that waits until the host has written so many results of tools.

        The host writes some 70 ms late, and a model takes longer than that.
        """

        def are_written() -> bool:
            files = self.home.glob(".claude/projects/*/*.jsonl")
            return sum(file.read_text().count('"type":"tool_result"') for file in files) >= results

        return lambda _: words if wait_until(are_written) else ""

    def run(self, model: Model, *flags: str, prompt: str = "Do the work.", resume: str | None = None) -> Session:
        """Run a session without a person, new or resumed."""
        return self.turns(model, [prompt], *flags, *(["--resume", resume] if resume else []))

    def turns(self, model: Model, prompts: list[str], *flags: str) -> Session:
        """Run a session without a person, with a turn for each prompt."""
        argv = [str(host_path("claude")), "-p", "--verbose", "--dangerously-skip-permissions", *flags]
        streams = ["--input-format", "stream-json", "--output-format", "stream-json"]
        with subprocess.Popen(
            [*self.wrapper, *argv, *streams],
            env={**self.env, "ANTHROPIC_BASE_URL": model.url},
            cwd=self.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as host:
            lines = lines_of(host)
            try:
                for prompt in prompts:
                    message = {"role": "user", "content": [{"type": "text", "text": prompt}]}
                    print(json.dumps({"type": "user", "message": message}), file=host.stdin, flush=True)
                    result = next_result(lines)
                host.stdin.close()
                for _ in lines:
                    pass
            except BaseException:  # a host whose model has failed would ask it again for minutes
                host.kill()
                raise
        [transcript] = self.home.glob(f".claude/projects/*/{result['session_id']}.jsonl")
        return Session(result, transcript)


def lines_of(process: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the lines that a process prints; kill it if it prints none for a while."""
    while True:
        timer = threading.Timer(SLOW, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if not line:
            return
        yield line


def next_result(lines: Iterable[str]) -> dict:
    """Return the next turn's result from the lines that the host prints."""
    printed = []
    for line in lines:
        printed.append(line)
        if line.startswith("{") and (event := json.loads(line))["type"] == "result":
            return event
    raise AssertionError("the host ended without a result:\n" + "".join(printed))


@pytest.fixture
def tmp_path():
    """Yield a folder with a short path: the path of a daemon's socket has at most 107 bytes.

    At the end, the processes of hosts in it are ended: one that still writes would hinder its removal. Claude Code's
    `daemon stop` leaves those that it holds ready for the next session.
    """
    with short_folder() as folder:
        yield Path(folder)
        while left := [process for process in psutil.process_iter() if is_at_home_in(process, folder)]:
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left)


def is_at_home_in(process: psutil.Process, folder: str) -> bool:
    """Return whether a process has its home in a folder."""
    try:
        return f"{process.environ().get('HOME')}/".startswith(f"{folder}/")
    except psutil.Error:
        return False


@pytest.fixture
def claude(tmp_path) -> ClaudeCode:
    """Return Claude Code with no hook installed."""
    if not host_path("claude").exists():
        pytest.skip("Claude Code is not installed: `make host` fetches it")
    return ClaudeCode(tmp_path / "home", tmp_path / "project")


@pytest.fixture
def installed(claude):
    """Return Claude Code with the hooks installed, and no limit on blocks in a row."""
    claude.tailhook("install", "--yes", "--block-cap", "0")
    return claude


@pytest.fixture
def stops(claude):
    """Return a function that returns the Stop payloads; `there`: whether the transcript had the last message."""
    log = claude.home / "stops.jsonl"
    witness = {"type": "command", "command": sys.executable, "args": ["-c", WITNESS, str(log)]}
    folder = claude.project / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"hooks": {"Stop": [{"hooks": [witness]}]}}))
    return lambda: [json.loads(line) for line in log.read_text().splitlines()]
