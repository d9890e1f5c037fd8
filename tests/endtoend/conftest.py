"""The real hosts without a model: each test has an empty home, a project, and what `tailhook install` wrote there."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from host import tailhook
from hosts import host_path
from model import Model

BIN = Path(sys.executable).parent
SLOW = 120  # seconds after which a session is taken for hung


@pytest.fixture(scope="session", autouse=True)
def _alone():
    """Only loopback may be there: a host that calls home would not be one without a model."""
    if (devices := [name for _, name in socket.if_nameindex()]) != ["lo"]:
        pytest.skip(f"not in a network namespace of its own (devices: {', '.join(devices)}): `make host` makes one")


@dataclass
class Session:
    """What a run of the host came to."""

    result: dict
    transcript: Path
    requests: list = field(default_factory=list)

    @property
    def id(self) -> str:
        """The session's id, by which it can be resumed."""
        return self.result["session_id"]

    def records(self, kind: str) -> list[dict]:
        """The transcript's records of a type, oldest first."""
        return [one for line in self.transcript.read_text().splitlines() if (one := json.loads(line))["type"] == kind]

    def hooks(self) -> list[dict]:
        """What the host noted of each Stop hook that it ran: {"command", "durationMs"}."""
        stops = [one for one in self.records("system") if one.get("subtype") == "stop_hook_summary"]
        return [hook for stop in stops for hook in stop["hookInfos"]]


@dataclass
class ClaudeCode:
    """Claude Code in an empty home, with a project."""

    home: Path
    project: Path

    def __post_init__(self) -> None:
        for folder in (self.home, self.project):
            folder.mkdir()
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
        """The user's settings file."""
        return self.home / ".claude" / "settings.json"

    def tailhook(self, *words: str) -> str:
        """Run the command as the person would; its stdout."""
        done = tailhook(*words, env=self.env, cwd=self.project)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, model: Model, prompt: str = "Do the work.", *flags: str, resume: str | None = None) -> Session:
        """One headless session, whole."""
        argv = [str(host_path("claude")), "-p", prompt, "--output-format", "json", "--dangerously-skip-permissions"]
        if resume:
            argv += ["--resume", resume]
        done = subprocess.run(
            [*argv, *flags],
            env={**self.env, "ANTHROPIC_BASE_URL": model.url},
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SLOW,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        result = json.loads(done.stdout)
        [transcript] = self.home.glob(f".claude/projects/*/{result['session_id']}.jsonl")
        return Session(result, transcript)


@pytest.fixture
def claude(tmp_path) -> ClaudeCode:
    """Claude Code with no hook installed."""
    if not host_path("claude").exists():
        pytest.skip("Claude Code is not installed: `make host` fetches it")
    return ClaudeCode(tmp_path / "home", tmp_path / "project")
