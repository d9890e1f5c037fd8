"""Other hosts than Claude Code in an empty home, each with the hooks that `tailhook install --host` writes."""

import json
import os
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from model import Model, use
from model_gemini import GeminiModel
from model_openai import ResponsesModel
from run_hosts import FOLDER, host_path
from support.host import tailhook
from support.terminal import Terminal

from tailhook.hook.machines import MACHINES
from tailhook.install.hooks_file import HooksFile, hooks_file_of
from tailhook.install.toml_text import add_entry

BIN = Path(sys.executable).parent
SLOW = 120  # seconds, then a session counts as hung


class HostTerminal(Terminal):
    """A session in a terminal. It answers what Codex asks the terminal."""

    ANSWERS = (
        ("\x1b[6n", b"\x1b[1;1R"),
        ("\x1b[c", b"\x1b[?62c"),
        ("\x1b[?u", b"\x1b[?0u"),
        ("\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
    )

    def __init__(self, argv, env, cwd):
        super().__init__(argv, env, cwd)
        termios.tcsetwinsize(self.fd, (40, 120))  # Codex draws nothing in a terminal without a size

    def read(self, end):
        """Read once, and answer a question in it."""
        before = len(self.seen)
        went_on = super().read(end)
        for question, answer in self.ANSWERS:
            if question in self.seen[before:]:
                os.write(self.fd, answer)
        return went_on


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
            "GEMINI_CLI_NO_RELAUNCH": "true",  # or it is two processes, and a hung run leaves one
            "QWEN_CODE_NO_RELAUNCH": "true",
            "TAILHOOK_NO_AUTOSTART": "1",
        }

    def bash(self, command: str) -> list[dict]:
        """Return a message that runs a command."""
        tool, parameter = self.shell
        return [use(tool, **{parameter: command, "description": "run it"})]

    def tailhook(self, *words: str, **env: str) -> str:
        """Run the command as a person would; return its stdout."""
        done = tailhook(*words, env={**self.env, **env}, cwd=self.project)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, machines: str = "idle", *flags: str, exit_code: str = "0", scope: str = "user") -> None:
        """Install the hooks, and beside them one that keeps each payload.

        flags: more of the command.  exit_code: of a block.
        """
        self.prepare()
        others = ",".join(name for name in MACHINES if name not in machines.split(","))
        self.tailhook(
            "install", "--yes", "--host", self.name, "--scope", scope, "--with", machines, "--without", others, *flags
        )
        path = self.hooks_file(scope)
        path.write_text(path.read_text().replace("--exit 0", f"--exit {exit_code}"))
        file = hooks_file_of(self.name)
        self.edit_hooks(scope, lambda hooks: [hooks[event].append(self.witness(file)) for event in (*hooks,)])

    def prepare(self) -> None:
        """Write the settings that the host needs besides the hooks."""

    def hooks_file(self, scope: str = "user") -> Path:
        """Return the hooks file of a scope."""
        file = hooks_file_of(self.name)
        if scope == "user":
            return self.home / file.folder / file.paths[scope]
        return self.project / file.paths[scope]

    def edit_hooks(self, scope: str, change: Callable[[dict], object]) -> None:
        """Change the hooks by event in the hooks file of a scope."""
        path = self.hooks_file(scope)
        values = json.loads(path.read_text())
        change(values["hooks"])
        path.write_text(json.dumps(values))

    def witness(self, file: HooksFile) -> dict:
        """Return an entry of the hooks file that keeps each payload."""
        command = f"(cat; echo) >> {shlex.quote(str(self.payloads))}"
        hook = {"type": "command", file.command_members[0]: command}
        return {"hooks": [hook]} if file.has_groups else hook

    def spooled(self) -> list[dict]:
        """Return the events that were reported for the board, oldest first."""
        spool = self.home / ".local" / "state" / "tailhook" / "events"
        return [json.loads(line) for line in spool.read_text().splitlines()] if spool.exists() else []

    def events(self) -> list[str]:
        """Return the types of the events that were reported for the board, oldest first."""
        return [event["event_type"] for event in self.spooled()]

    def argv(self, prompt: str) -> list[str]:
        """Return the host's arguments for a session without a person."""
        raise NotImplementedError

    def terminal_argv(self, *prompt: str) -> list[str]:
        """Return the host's arguments for a session in a terminal, which may begin with a prompt."""
        raise NotImplementedError

    def variables(self, url: str) -> dict[str, str]:
        """Return the environment variables that name the model."""
        raise NotImplementedError

    @property
    def payloads(self) -> Path:
        """Return the file that keeps the payloads."""
        return self.home / "payloads.jsonl"

    def sent(self) -> list[dict]:
        """Return the payloads that the host sent to the hooks, oldest first."""
        return [json.loads(line) for line in self.payloads.read_text().splitlines() if line]

    def run(self, model: Model, prompt: str = "Do the work.") -> subprocess.CompletedProcess[str]:
        """Run a session without a person to its end."""
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

    @contextmanager
    def terminal(self, model: Model, *prompt: str) -> Iterator[HostTerminal]:
        """Start a session in a terminal, as a person does; kill it at the end of the block."""
        env = {**self.env, **self.variables(model.url), "TERM": "xterm-256color"}
        terminal = HostTerminal([str(host_path(self.name)), *self.terminal_argv(*prompt)], env, self.project)
        try:
            yield terminal
        finally:
            os.killpg(terminal.pid, signal.SIGKILL)  # its own processes, too
            os.waitpid(terminal.pid, 0)


class Codex(OtherHost):
    """Codex CLI."""

    name = "codex"
    model = ResponsesModel
    shell = "exec_command", "cmd"
    settings = ""  # more lines of its configuration
    session: tuple[str, ...] = ()  # the words that resume, fork or review
    model_name = "none"
    approval = "--dangerously-bypass-approvals-and-sandbox"

    def argv(self, prompt: str) -> list[str]:
        """Return arguments that allow all tools."""
        return ["exec", self.approval, "-c", f"model={self.model_name}", *self.session, prompt]

    def terminal_argv(self, *prompt: str) -> list[str]:
        """Return the same in a terminal."""
        return [self.approval, "-c", f"model={self.model_name}", *prompt]

    def variables(self, url: str) -> dict[str, str]:
        """Write the model's address and a person's trust into config.toml; return no variables."""
        provider = f'name = "loopback"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
        (self.home / ".codex").mkdir(exist_ok=True)
        config = self.home / ".codex" / "config.toml"
        config.write_text(
            f'model_provider = "loopback"\n{self.settings}[model_providers.loopback]\n{provider}'
            f'[projects."{self.project}"]\ntrust_level = "trusted"\n'
        )
        with config.open("a") as more:
            more.writelines(
                f'[hooks.state."{one["key"]}"]\ntrusted_hash = "{one["currentHash"]}"\n' for one in self.hooks()
            )
        return {}

    def hooks(self) -> list[dict]:
        """Return the hooks that Codex finds, each with its hash. A person trusts that hash in Codex's /hooks.

        In `codex exec` 0.137.0 to 0.139.0, --dangerously-bypass-hook-trust has no effect (openai/codex#26434).
        """
        requests = [
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [str(self.project)]}},
        ]
        argv = [str(host_path("codex")), "app-server"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(argv, env=self.env, text=True, **pipes) as server:
            server.stdin.writelines(f"{json.dumps(one)}\n" for one in requests)
            server.stdin.flush()  # it ends without an answer if its input ends
            answers = (json.loads(line) for line in server.stdout)
            found = next(answer for answer in answers if answer.get("id") == 2)
            server.kill()
        return found["result"]["data"][0]["hooks"]


class Gemini(OtherHost):
    """Gemini CLI."""

    name = "gemini"
    model = GeminiModel
    shell = "run_shell_command", "command"
    session: tuple[str, ...] = ()  # the words that resume one
    permissions: tuple[str, ...] = ("--yolo",)

    def prepare(self) -> None:
        """Write which kind of key the host uses, and that the project is trusted."""
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
        }
        folder = self.hooks_file().parent
        folder.mkdir()
        self.hooks_file().write_text(json.dumps(settings))
        (folder / "trustedFolders.json").write_text(json.dumps({str(self.project): "TRUST_FOLDER"}))

    def argv(self, prompt: str) -> list[str]:
        """Return arguments that allow all tools."""
        return [*self.permissions, "--model", "gemini-2.5-flash", *self.session, "--prompt", prompt]

    def terminal_argv(self, *prompt: str) -> list[str]:
        """Return the same in a terminal."""
        return [*self.permissions, "--model", "gemini-2.5-flash", "--prompt-interactive", *prompt]

    def variables(self, url: str) -> dict[str, str]:
        """Return a key, and the address of the test's model instead of Google's servers."""
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}


class Copilot(OtherHost):
    """Copilot CLI, offline, with a model that the user provides."""

    name = "copilot"
    shell = "bash", "command"
    session: tuple[str, ...] = ()  # the words that resume one
    permissions: tuple[str, ...] = ("--allow-all-tools",)

    def prepare(self) -> None:
        """Write that the project is trusted."""
        (self.home / ".copilot").mkdir(exist_ok=True)
        (self.home / ".copilot" / "config.json").write_text(json.dumps({"trusted_folders": [str(self.project)]}))

    def argv(self, prompt: str) -> list[str]:
        """Return arguments that allow all tools."""
        return [*self.permissions, *self.session, "--prompt", prompt]

    def terminal_argv(self, *prompt: str) -> list[str]:
        """Return the same in a terminal."""
        return [*self.permissions, *prompt]

    def variables(self, url: str) -> dict[str, str]:
        """Return a provider that speaks the Messages API."""
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_MODEL": "claude-sonnet-4",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_BASE_URL": url,
            "XDG_CACHE_HOME": str(FOLDER / "cache"),  # where it unpacks itself, 235 MB
        }


class Qwen(OtherHost):
    """Qwen Code, with a model that speaks the Messages API."""

    name = "qwen"
    shell = "run_shell_command", "command"
    session: tuple[str, ...] = ()  # the words that resume one
    permissions: tuple[str, ...] = ("--yolo",)

    def prepare(self) -> None:
        """Write that nothing is reported to its maker, and that it asks no model after a turn what to remember."""
        settings = {
            "privacy": {"usageStatisticsEnabled": False},
            "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        }
        self.hooks_file().parent.mkdir()
        self.hooks_file().write_text(json.dumps(settings))

    def argv(self, prompt: str) -> list[str]:
        """Return arguments that allow all tools."""
        return ["--auth-type", "anthropic", *self.permissions, *self.session, "--prompt", prompt]

    def terminal_argv(self, *prompt: str) -> list[str]:
        """Return the same in a terminal."""
        return ["--auth-type", "anthropic", *self.permissions, "--prompt-interactive", *prompt]

    def variables(self, url: str) -> dict[str, str]:
        """Return a key, and the address of the test's model."""
        return {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_MODEL": "claude-sonnet-4"}


class Kimi(OtherHost):
    """Kimi Code, with a model that speaks the Messages API. It needs a newer Node than other hosts."""

    name = "kimi"
    shell = "Bash", "command"

    def prepare(self) -> None:
        """Write a provider. The address of the test's model is not known yet."""
        self.env["PATH"] = f"{FOLDER / 'node_modules' / 'node' / 'bin'}:{self.env['PATH']}"
        self.hooks_file().parent.mkdir()
        self.hooks_file().write_text(
            'default_model = "m"  # the only one\ntelemetry = false\n'
            '[providers.loopback]\ntype = "anthropic"\napi_key = "none"\nbase_url = "URL"\n'
            '[models.m]\nprovider = "loopback"\nmodel = "claude-sonnet-4"\nmax_context_size = 200000\n'
        )

    def install(self) -> None:
        """Install the hooks of the board, and beside them one that keeps each payload."""
        self.prepare()
        self.tailhook("install", "--yes", "--host", self.name)
        keep = f"given=$(cat); printf '%s\\n' \"$given\" >> {shlex.quote(str(self.payloads))}"  # hooks run in parallel
        text = self.hooks_file().read_text()
        for event in hooks_file_of(self.name).events:
            text = add_entry(text, "hooks", {"event": event, "command": keep})
        self.hooks_file().write_text(text)

    def argv(self, prompt: str) -> list[str]:
        """Return arguments for one prompt; all tools are allowed then."""
        return ["--prompt", prompt]

    def terminal_argv(self, *prompt: str) -> list[str]:
        """Return none: a session in a terminal gets its prompt there."""
        return [*prompt]

    def variables(self, url: str) -> dict[str, str]:
        """Write the model's address into config.toml; return no variables."""
        self.hooks_file().write_text(self.hooks_file().read_text().replace('"URL"', json.dumps(url)))
        return {}
