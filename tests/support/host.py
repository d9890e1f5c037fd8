"""A stand-in for the agent's host: a project, its payloads and transcript, and the hook run on them as a process."""

import fcntl
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, TYPE_CHECKING, Any

from support.command_server import CommandServer
from support.oracles import jwz

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.both_forms import Forms

# The variables of a sanitizer's runtime are passed to the processes of a test.
SANITIZER = {name: os.environ[name] for name in ("LD_PRELOAD", "ASAN_OPTIONS", "PYTHONMALLOC") if name in os.environ}
COVERAGE = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_PROCESS_")}
READ_BY_PYTHON = re.compile("PYTHON|LANG|LC_|LD_|[A-Z]*SAN_OPTIONS").match  # names of variables
# A process that runs for so long hangs: no test waits for so long, even on a busy machine. The matrix of hosts waits
# shorter: there many sessions fail because a release does not report something.
HANGS_S = float(os.environ.get("TEST_HANGS_S", "600"))
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **SANITIZER, **COVERAGE}
# One round is enough to see that the doctor measures: all of its rounds start 40 processes, and only its own tests run
# them. Nothing is slow: a busy machine would be.
DOCTOR = {
    "tailhook.doctor.checks.ROUNDS": 1,
    "tailhook.doctor.checks.SLOW_RATIO": 1e9,
    "tailhook.doctor.checks.SLOW_START": 1e9,
    "tailhook.doctor.checks.SLOW_SAVE": 1e9,
    "tailhook.doctor.pool.SLOW_HOOK_MS": 1e9,
}
# Constants of a command in the tests. On a busy machine, daemons and pools take longer than the commands wait.
CONSTANTS = {
    "bench": {
        "tailhook.bench.warm.POOL_START_TIMEOUT_S": HANGS_S,
        "tailhook.bench.warm.FIRST_ANSWER_TIMEOUT_S": HANGS_S,
    },
    "doctor": DOCTOR,
    "uninstall": {"tailhook.cli.uninstall.DAEMON_STARTS_S": HANGS_S, "tailhook.cli.uninstall.DAEMON_ENDS_S": HANGS_S},
}


def measured(argv: list[str]) -> list[str]:
    """Return the argv of a hook; if coverage is measured, the argv of a measured hook."""
    if not COVERAGE or argv[3] == "-c":
        return argv
    return [sys.executable, "-I", str(Path(__file__).with_name("covered_hook.py")), *argv[3:]]


def run_on_payload(argv: Sequence[str | Path], payload: bytes, **options: Any) -> "subprocess.CompletedProcess[Any]":
    """Run a hook to its end. Its payload is in the pipe before it starts, if there is room.

    A hook waits a short time for its payload. The process that writes it may be away for longer on a busy machine.
    """
    options = {"capture_output": True, "check": False, "timeout": HANGS_S, **options}
    reading, writing = os.pipe()
    with open(reading, "rb") as stdin:
        os.set_blocking(writing, False)
        with open(writing, "wb", buffering=0) as out:
            is_whole = out.write(payload) == len(payload)
        if is_whole:
            return subprocess.run(argv, stdin=stdin, **options)
    return subprocess.run(argv, input=payload.decode() if options.get("text") else payload, **options)


MEMORABLE = "We chose A because of B.\nWe picked C over D."  # for the memory machine, two decisions
PROMPT = "Make the tests pass."
RECORD_NUMBERS = count(1)  # no two records have one uuid: the second would be old


class Started(subprocess.Popen):
    """A program that a test waits for. It is killed if the test fails meanwhile."""

    def __exit__(self, kind, error, traceback):
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, traceback)


@functools.cache
def command_server(imports_all: bool) -> CommandServer:
    """Return the process that forks commands, or daemons; each process of the tests has one."""
    return CommandServer(ENVIRONMENT, imports_all)


def needs_interpreter(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether a command needs an interpreter of its own: its test depends on Python's start."""
    is_plain = env["LANG"] == ENVIRONMENT["LANG"] and not any(READ_BY_PYTHON(name) for name in env if name != "LANG")
    return not is_plain or sys.platform != "linux" or bool(COVERAGE) or words[:1] == ("hook",)


def tailhook(
    *words: str, env: dict[str, str], cwd: Path, stdin: str | None = None, **constants: object
) -> subprocess.CompletedProcess[str]:
    """Run the `tailhook` command of this interpreter's environment.

    constants: values of the package's constants in this run, by module and name.
    """
    env = {**ENVIRONMENT, **env}
    if not needs_interpreter(words, env):
        constants = {**CONSTANTS.get("".join(words[:1]), {}), **constants}
        imports_all = words[:1] in (("run",), ("doctor",), ("plates",)) or "--resume" in words
        return command_server(imports_all).run(words, env, cwd, stdin, HANGS_S, constants)
    return subprocess.run(
        [sys.executable, "-m", "tailhook", *words],
        env=env,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )


def wait_until(there, seconds: float = HANGS_S):
    """Wait until `there()` is true. Returns its value."""
    end, pause = time.monotonic() + seconds, 0.01
    while not (found := there()):
        assert time.monotonic() < end, "it did not become true"
        time.sleep(pause)
        pause = min(1.2 * pause, 0.1)
    return found


# On a hook's stderr if it reached a time limit of its own.
GAVE_UP = re.compile("locked by another process for|is being read for the first time")


def in_time(run: "Callable[[], Any]") -> Any:
    """Run a hook or a command, and again while it gives up at a time limit of its own; return the result.

    It has then changed nothing. Many hooks at once reach such a limit on a busy machine.
    """

    def decided() -> Any:
        done = run()
        stderr = done.stderr if isinstance(done.stderr, str) else done.stderr.decode()
        return None if GAVE_UP.search(stderr) else done

    return wait_until(decided)


def is_read(pipe: IO[Any] | int) -> bool:
    """Return whether nothing is left in a pipe."""
    return fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) == bytes(4)


def short_folder() -> "tempfile.TemporaryDirectory[str]":
    """Return a temporary folder for sockets: a socket's path has at most 107 bytes, and 103 on macOS.

    There, the usual folder for temporary files has a path of 49 bytes.
    """
    return tempfile.TemporaryDirectory(prefix="tailhook-", dir="/tmp" if sys.platform == "darwin" else None)


@dataclass
class Stop:
    """The result of one run of the hook."""

    exit_code: int
    stdout: str
    stderr: str
    state: dict | None = None

    @property
    def answer(self) -> dict:
        """Return the one JSON object on stdout."""
        assert self.stdout.endswith("\n")
        assert self.stdout.count("\n") == 1
        return json.loads(self.stdout)

    @property
    def allowed(self) -> bool:
        """Return whether the agent may stop without an answer to the host."""
        return self.exit_code == 0 and self.stdout == ""


@dataclass
class Project:
    """A project folder, the home of its user, and a transcript.

    forms: if given, each hook is run cold and warm, and they are compared.
    """

    folder: Path
    home: Path
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    forms: "Forms | None" = None

    def __post_init__(self) -> None:
        (self.folder / ".git").mkdir(parents=True)
        self.home.mkdir()
        self.transcript = self.home / "session.jsonl"
        self.env = {**ENVIRONMENT, "HOME": str(self.home), "TAILHOOK_NO_AUTOSTART": "1", **self.env}

    def payload(self, **fields: object) -> dict:
        """Return a Stop payload; a field with the value None is left out."""
        common = {
            "session_id": "mine",
            "transcript_path": str(self.transcript),
            "cwd": str(self.folder),
            "hook_event_name": "Stop",
            "stop_hook_active": False,
            **fields,
        }
        return {key: value for key, value in common.items() if value is not None}

    def hook(self, stdin: bytes, *flags: str, timeout: float = HANGS_S, read: bool = True) -> Stop:
        """Run the hook on raw input, and read the store that it left."""

        def run(argv: list[str]) -> "subprocess.CompletedProcess[bytes]":
            return run_on_payload(argv, stdin, env=self.env, cwd=self.folder, timeout=timeout)

        done = self.run([*self.argv, *flags], run)
        state = jwz.newest(self.folder) if read else None
        return Stop(done.returncode, done.stdout.decode(), done.stderr.decode(), state)

    def run(self, argv: list[str], run: "Callable[[list[str]], CompletedProcess[bytes]]") -> "CompletedProcess[bytes]":
        """Run a hook in the form of the test, or cold and warm; return the last one's result.

        argv: may be a shell whose script holds the hook's argv.
        run: starts an argv and waits for its end.
        """
        if self.forms:
            return self.forms.run(argv, (self.folder, self.home), run)
        return run(measured(argv))

    def stop(self, said: str | None = None, *flags: str, **fields: object) -> Stop:
        """Run the hook for an agent that stops; `said` is its last message."""
        return self.hook(json.dumps(self.payload(last_assistant_message=said, **fields)).encode(), *flags)

    def write(self, *records: dict) -> None:
        """Append records to the transcript."""
        with self.transcript.open("a") as out:
            for record in records:
                out.write(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n")

    def tailhook(self, *words: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the command in the project."""
        return tailhook(*words, env={**self.env, **env}, cwd=self.folder, stdin=stdin)

    def as_agent(self, group: str, *words: str, session: str | None = None, **options: Any) -> CompletedProcess[str]:
        """Run `tailhook GROUP …` in the project, as an agent's shell of `session` does."""
        if session:
            options["CLAUDE_CODE_SESSION_ID"] = session
        return self.tailhook(group, *words, **options)

    def ralph(self, prompt: str = PROMPT, **values: object) -> Path:
        """Write the state file of a ralph loop and let the hook ask the ralph machine; return the file."""
        self.argv = [*self.argv[:-1], "ralph"]
        path = self.folder / ".claude" / "ralph-loop.local.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(ralph_page(prompt, **values))
        return path

    def triage(self, state: object, where: str = ".claude/triage_state", name: str = "x_triage.json") -> Path:
        """Write the state of a triage pipeline and let the hook ask the triage machine; return the file."""
        self.argv = [*self.argv[:-1], "triage"]
        path = self.folder / where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(state if isinstance(state, str) else json.dumps(state))
        return path

    def loop(self, *frames: dict, **fields: object) -> dict:
        """Post a state into the store like another program; return the state."""
        state = looping(*frames, **fields)
        jwz.post(self.folder, json.dumps(state))
        return state


def ralph_page(prompt: str = PROMPT, **values: object) -> str:
    """Return a ralph state file in the form of `tailhook ralph start`, with other values. None leaves a key out."""
    common = {"active": "true", "iteration": 1, "max_iterations": 10, "completion_promise": '"TESTS GREEN"', **values}
    lines = [f"{key}: {value}" for key, value in common.items() if value is not None]
    return "\n".join(("---", *lines, "---", "", prompt, ""))


def frame(**fields: object) -> dict:
    """Return the frame of a loop that has just begun."""
    return {"id": "f", "mode": "loop", "iter": 1, "max": 10, **fields}


def looping(*frames: dict, age: float = 60, **fields: object) -> dict:
    """Return the live state of a loop with the given frames, or with one frame."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age))
    stack = list(frames) or [frame()]
    return {"schema": 1, "event": "STATE", "run_id": "r", "updated_at": stamp, "stack": stack, **fields}


def assistant(*texts: str, at: float | None = None, id: str = "msg_1", **fields: object) -> dict:
    """Return Claude Code's transcript record of an assistant message."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() if at is None else at))
    content = [{"type": "text", "text": words} for words in texts]
    message = {"id": id, "type": "message", "role": "assistant", "content": content}
    uuid = f"00000000-0000-4000-8000-{next(RECORD_NUMBERS):012}"
    return {"isSidechain": False, "message": message, "type": "assistant", "uuid": uuid, "timestamp": stamp, **fields}
