"""Codex, Gemini and Copilot CLI in an empty home, each with the hook that docs/installing.md has people write down."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from model import Model, use
from model_gemini import GeminiModel
from model_openai import ResponsesModel
from run_hosts import FOLDER, host_path
from support.host import tailhook

BIN = Path(sys.executable).parent
SLOW = 120  # seconds after which a session is taken for hung


@dataclass
class OtherHost:
    """A host in an empty home, with a project."""

    home: Path
    project: Path

    name = ""  # as `--host` has it
    model = Model  # the kind of model that it talks to
    shell = "", ""  # its tool that runs a command, and that tool's parameter

    def __post_init__(self) -> None:
        for folder in (self.home, self.project):
            folder.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        (self.home / ".profile").write_text(f"PATH={shlex.quote(str(BIN))}:$PATH\n")  # of the tool's login shell
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "GEMINI_CLI_NO_RELAUNCH": "true",  # or it is two processes, of which a hung run leaves one
        }

    def bash(self, command: str) -> list[dict]:
        """A message that runs a command."""
        tool, parameter = self.shell
        return [use(tool, **{parameter: command, "description": "run it"})]

    def tailhook(self, *words: str, **env: str) -> str:
        """Run the command as the person would; its stdout."""
        done = tailhook(*words, env={**self.env, **env}, cwd=self.project)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, *flags: str, machines: str = "idle") -> None:
        """Write the hook down, and behind it one that keeps each payload."""
        argv = json.loads(self.tailhook("hook-command", machines))
        ours = shlex.join([*argv, "--host", self.name, *flags])
        self.write_hooks(ours, f"(cat; echo) >> {shlex.quote(str(self.payloads))}")

    def write_hooks(self, *commands: str) -> None:
        """The host's settings, with these commands at the agent's stop."""
        raise NotImplementedError

    def argv(self, prompt: str) -> list[str]:
        """The host's arguments for a session without a person."""
        raise NotImplementedError

    def variables(self, url: str) -> dict[str, str]:
        """What the environment has to say of the model."""
        raise NotImplementedError

    @property
    def payloads(self) -> Path:
        """The file of the payloads."""
        return self.home / "payloads.jsonl"

    def sent(self) -> list[dict]:
        """What the host sent to the hooks, oldest first."""
        return [json.loads(line) for line in self.payloads.read_text().splitlines() if line]

    def run(self, model: Model, prompt: str = "Do the work.") -> subprocess.CompletedProcess[str]:
        """One headless session, whole."""
        done = subprocess.run(
            [str(host_path(self.name)), *self.argv(prompt)],
            env={**self.env, **self.variables(model.url)},
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SLOW,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    @staticmethod
    def groups(commands: tuple[str, ...]) -> list[dict]:
        """The commands in the form of Claude Code's settings, which Codex and Gemini share."""
        return [{"hooks": [{"type": "command", "command": command} for command in commands]}]


class Codex(OtherHost):
    """Codex CLI."""

    name = "codex"
    model = ResponsesModel
    shell = "exec_command", "cmd"
    settings = ""  # more lines of its configuration

    def write_hooks(self, *commands: str) -> None:
        """~/.codex/hooks.json."""
        folder = self.home / ".codex"
        folder.mkdir()
        groups = self.groups(commands)
        (folder / "hooks.json").write_text(json.dumps({"hooks": {"Stop": groups, "SessionStart": groups}}))

    def argv(self, prompt: str) -> list[str]:
        """Without asking for trust in the hooks, which a person gives once."""
        return [
            "exec",
            "--dangerously-bypass-approvals-and-sandbox",
            "--dangerously-bypass-hook-trust",
            "-c",
            "model=none",
            prompt,
        ]

    def variables(self, url: str) -> dict[str, str]:
        """None: the model's address is in config.toml."""
        provider = f'name = "loopback"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        (self.home / ".codex" / "config.toml").write_text(
            f'model_provider = "loopback"\n{self.settings}[model_providers.loopback]\n{provider}'
        )
        return {}


class Gemini(OtherHost):
    """Gemini CLI."""

    name = "gemini"
    model = GeminiModel
    shell = "run_shell_command", "command"

    def write_hooks(self, *commands: str) -> None:
        """~/.gemini/settings.json."""
        folder = self.home / ".gemini"
        folder.mkdir()
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "hooks": {"AfterAgent": self.groups(commands)},
        }
        (folder / "settings.json").write_text(json.dumps(settings))

    def argv(self, prompt: str) -> list[str]:
        """All tools allowed, the folder trusted."""
        return ["--yolo", "--skip-trust", "--model", "gemini-2.5-flash", "--prompt", prompt]

    def variables(self, url: str) -> dict[str, str]:
        """A key, and an address in place of Google's."""
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}


class Copilot(OtherHost):
    """Copilot CLI, offline, with a model of its user's."""

    name = "copilot"
    shell = "bash", "command"
    event = "agentStop"
    session = "--trust-folder"  # or the flag that resumes one

    def write_hooks(self, *commands: str) -> None:
        """~/.copilot/hooks/*.json."""
        folder = self.home / ".copilot" / "hooks"
        folder.mkdir(parents=True)
        hooks = [{"type": "command", "bash": command} for command in commands]
        (folder / "tailhook.json").write_text(json.dumps({"version": 1, "hooks": {self.event: hooks}}))

    def argv(self, prompt: str) -> list[str]:
        """All tools allowed, the folder trusted."""
        return ["--allow-all-tools", self.session, "--prompt", prompt]

    def variables(self, url: str) -> dict[str, str]:
        """A provider that speaks the Messages API."""
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_MODEL": "claude-sonnet-4",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_BASE_URL": url,
            "XDG_CACHE_HOME": str(FOLDER / "cache"),  # where it unpacks itself, 235 MB
        }
