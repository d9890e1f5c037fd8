"""Runs an installed hook as its host would: in a temporary project, with a temporary home.

Does not read or change the user's files: the trial has its own project, home and state folder, and only the variables
that the host sets.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tailhook.hook.answer import describe
from tailhook.hook.machines import MACHINES
from tailhook.install.command import ENTRY, client_of, is_ours, machines_of, shell_command
from tailhook.install.hooks import Hook
from tailhook.install.hooks_file import HooksFile
from tailhook.pool.control import find_pool, read_installation
from tailhook.pool.installation import client_folder_of
from tailhook.stores import FALLBACK_FILE

ROUNDS = 9  # in which the hook and bare Python take turns
RUN_TIMEOUT_S = 30.0  # a host would wait longer
STAGED_FILE = f".claude/{FALLBACK_FILE}"
STAGED_MACHINE = next(name for name, row in MACHINES.items() if STAGED_FILE in row.get("marker_files", ()))
LOOP = "---\nactive: true\nmode: loop\niteration: 1\nmax_iterations: 1000\n---\n\nTry the hook.\n"


class Trial(NamedTuple):
    """The result of running a hook.

    fault: what is wrong, "" for nothing.
    advice: what to do about it.
    cold: the median time in milliseconds of the hook that starts Python, 0 if it was not measured.
    bare: the median time of the same interpreter without a program, 0 if it was not measured.
    warm: the median time of the hook that a worker answers, 0 if no pool runs or the hook is not in the warm form.
    nothing: the median time of a native program that does nothing, 0 as for `warm`.
    """

    fault: str = ""
    advice: str = ""
    cold: float = 0.0
    bare: float = 0.0
    warm: float = 0.0
    nothing: float = 0.0


def try_hook(file: HooksFile, hook: Hook, rounds: int = ROUNDS) -> Trial:
    """Run a hook for its event in the session of an agent that is in a loop.

    file: the description of the host's hooks file.
    rounds: how often it is run to measure its time.
    """
    advice = f"Reinstall the hooks:  {file.install_command}"
    if not hook.argv:
        return Trial("its command cannot be read", advice)
    client = client_of(hook.argv)
    try:
        in_python = cold_argv(client, hook.argv) if client else hook.argv
    except (OSError, IndexError) as error:
        return Trial(f"its client cannot be used: {describe(error)}", advice)
    if is_ours(hook.argv) and (fault := fault_of(in_python)):
        return Trial(fault, advice)
    with tempfile.TemporaryDirectory(prefix="tailhook-doctor-") as folder:
        stage = Stage(Path(folder), file, hook.event, bool(client))
        in_shell = ["/bin/sh", "-c", shell_command(hook.fields, file.command_members)]
        command = hook.argv if isinstance(hook.fields.get("args"), list) else in_shell
        fault = stage.fault(command, machines_of(hook.argv))
        if fault:
            return Trial(fault, advice)
        if not is_ours(hook.argv) or not rounds:
            return Trial()
        commands = [in_python if client else command, [in_python[0], "-I", "-S", "-c", "pass"]]
        if client and find_pool(client_folder_of(client)):
            commands += [command, ["/bin/true"]]
        stage.environment.pop("TAILHOOK_NO_POOL")
        times = [[stage.seconds(one) for one in commands] for _ in range(rounds)]
    return Trial("", "", *(statistics.median(column) * 1000 for column in zip(*times, strict=True)))


def cold_argv(client: str, argv: Sequence[str]) -> list[str]:
    """Return what a client runs in its own place if no worker answers. Raises OSError, and IndexError.

    argv: the client's.
    """
    if not os.access(client, os.X_OK):
        raise OSError(f"{client} is missing, or not executable")
    fields = read_installation(client_folder_of(client))
    return [fields[2], "-I", "-S", fields[3], *argv[1:]]


def fault_of(argv: Sequence[str]) -> str:
    """Return why the interpreter or the package that the argv names does not start, "" if it does."""
    interpreter = argv[0]
    entry = next(word for word in argv if word.endswith(ENTRY))
    if not Path(interpreter).exists():
        return f"its interpreter does not exist: {interpreter}"
    if not os.access(interpreter, os.X_OK):
        return f"its interpreter is not executable: {interpreter}"
    if not Path(entry).exists():
        return f"its package does not exist: {entry}"
    code = (
        f"import sys; sys.path.insert(0, {entry.removesuffix(ENTRY)!r}); import tailhook._core, tailhook.hook.process"
    )
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter that the settings name
            [interpreter, "-I", "-S", "-c", code], capture_output=True, text=True, check=False, timeout=RUN_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its interpreter does not start: {error}"
    if done.returncode:
        return f"its package cannot be imported under -I -S: {(done.stderr.splitlines() or ['no reason given'])[-1]}"
    return ""


class Stage:
    """A project with a live loop and a host's payload of an event.

    keeps_no_times: the hook's time is not one of those that `check_pool` reports.
    """

    def __init__(self, folder: Path, file: HooksFile, event: str, keeps_no_times: bool) -> None:
        self.file = file
        self.event = event
        self.project = folder / "project"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".claude").mkdir()
        (self.project / STAGED_FILE).write_text(LOOP)
        payload = json.dumps(dict(file.payload))
        for name, value in (("{folder}", str(self.project)), ("{event}", event)):
            payload = payload.replace(name, json.dumps(value)[1:-1])
        self.payload = payload.encode()
        home = str(folder / "home")
        if keeps_no_times:
            config = folder / "home" / ".config" / "tailhook" / "config.json"
            config.parent.mkdir(parents=True)
            config.write_text('{"pool": {"stats": false}}')
        self.environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "TAILHOOK_NO_AUTOSTART": "1",
            "TAILHOOK_NO_POOL": "1",
            **dict.fromkeys(file.project_variables, str(self.project)),
        }

    def run(self, command: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
        """Run a command as the host runs a hook. Raises OSError and TimeoutExpired."""
        return subprocess.run(  # noqa: S603 - the command that the settings name
            command,
            input=self.payload,
            env=self.environment,
            cwd=self.project,
            capture_output=True,
            check=False,
            timeout=RUN_TIMEOUT_S,
        )

    def seconds(self, command: Sequence[str]) -> float:
        """Return how long one run takes."""
        started = time.perf_counter()
        self.run(command)
        return time.perf_counter() - started

    def fault(self, command: Sequence[str], machines: Sequence[str] | None) -> str:
        """Return what is wrong with the hook's answer, "" for nothing.

        machines: those that its argv names, None if it names none.
        """
        try:
            done = self.run(command)
        except subprocess.TimeoutExpired:
            return f"it did not end within {RUN_TIMEOUT_S:g} s"
        except OSError as error:
            return f"it does not start: {error}"
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode not in (0, 2):
            return f"its exit code is {done.returncode}, not 0 or 2: {said or 'nothing on stderr'}"
        try:
            answer = json.loads(done.stdout) if done.stdout else {}
        except ValueError:
            return f"its answer is not JSON: {done.stdout[:80]!r}"
        if (machines is None or STAGED_MACHINE in machines) and not self.is_answered(answer):
            return f"it did not answer for a running loop: {said or 'nothing on stderr'}"
        return ""

    def is_answered(self, answer: object) -> bool:
        """Return whether an answer is what the event of a live loop needs."""
        if not isinstance(answer, dict):
            return False
        if self.event == self.file.stop_event:
            block = self.file.host.answer({"decision": "block", "reason": ""})
            return set(block) <= set(answer) and answer.get("decision") == block.get("decision")
        return self.event != self.file.repeat_event or "hookSpecificOutput" in answer
