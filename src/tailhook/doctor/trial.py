"""Runs an installed hook like its host, but in a temporary project, with a temporary home.

Does not read or change the user's files: the trial has its own project, home and state folder, and only the variables
that the host sets.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tailhook.exits import run_to_end, temporary_folder
from tailhook.hook.answer import describe
from tailhook.hook.machines import MACHINES
from tailhook.install.command import ENTRY, client_of, is_ours, machines_of, shell_command
from tailhook.install.hooks import Hook
from tailhook.install.hooks_file import HooksFile
from tailhook.install.programs import cold_argv, find_entry, find_missing
from tailhook.pool.control import find_pool
from tailhook.pool.installation import client_folder_of
from tailhook.pool.reference_programs import nothing_program
from tailhook.stores import FALLBACK_FILE

ROUNDS = 9  # of the hook and bare Python, in turns
MAX_CLIENT_CPU = 0.5  # of bare Python's processor time; a client with more has started Python
RUN_TIMEOUT_S = 30.0  # longer than a host waits: the answer is judged, also on a busy computer
STAGED_FILE = f".claude/{FALLBACK_FILE}"
STAGED_MACHINE = next(name for name, row in MACHINES.items() if STAGED_FILE in row.get("marker_files", ()))
LOOP = "---\nactive: true\nmode: loop\niteration: 1\nmax_iterations: 1000\n---\n\nTry the hook.\n"


class Timed(NamedTuple):
    """How long a process took, and its processor time, in seconds."""

    wall: float
    cpu: float


class Trial(NamedTuple):
    """The result of running a hook.

    fault: what is wrong, "" for nothing.
    advice: what to do about it.
    cold_ms: the median time of the hook that starts Python, 0 if it was not measured.
    bare_ms: the median time of the same interpreter without a program, 0 if it was not measured.
    warm_ms: the median time of the hook that a worker answers, 0 if it was not measured.
    true_ms: the median time of a native program that does nothing, 0 as for `warm_ms`.
    why_not_warm: why a hook in the warm form has no `warm_ms`.
    """

    fault: str = ""
    advice: str = ""
    cold_ms: float = 0.0
    bare_ms: float = 0.0
    warm_ms: float = 0.0
    true_ms: float = 0.0
    why_not_warm: str = ""

    @property
    def cold_ratio(self) -> float:
        """The cold form's time, times that of bare Python."""
        return self.cold_ms / self.bare_ms

    @property
    def warm_ratio(self) -> float:
        """The warm form's time as a multiple of the native program's."""
        return self.warm_ms / self.true_ms


def try_hook(file: HooksFile, hook: Hook, rounds: int = ROUNDS, path: str = "") -> Trial:
    """Run a hook for its event, in the session of an agent in a loop.

    file: the description of the host's hooks file.
    rounds: how often it is run to measure its time.
    path: of the file, for the advice; "" for the user's.
    """
    advice = f"Reinstall the hooks:  {file.install_command(path)}"
    if not hook.argv:
        return Trial("its command cannot be read", advice)
    client = client_of(hook.argv)
    try:
        in_python = cold_argv(client, hook.argv) if client else hook.argv
    except OSError as error:
        return Trial(f"its client cannot be used: {describe(error)}", advice)
    if is_ours(hook.argv) and (fault := fault_of(in_python[0], find_entry(in_python))):
        return Trial(fault, advice)
    with temporary_folder("tailhook-doctor-") as folder:
        stage = Stage(Path(folder), file, hook.event, bool(client))
        in_shell = ["/bin/sh", "-c", shell_command(hook.fields, file.command_members)]
        command = hook.argv if isinstance(hook.fields.get("args"), list) else in_shell
        fault = stage.fault(command, machines_of(hook.argv))
        if fault:
            return Trial(fault, advice)
        if not is_ours(hook.argv) or not rounds:
            return Trial()
        stage.environment.pop("TAILHOOK_NO_POOL")
        try:
            return time_hook(stage, command, in_python, client, rounds)
        except (OSError, subprocess.TimeoutExpired) as error:  # it was removed meanwhile, or it hangs now and then
            return Trial(f"it answered once, and then {describe_failure(error)}", advice)


def time_hook(stage: "Stage", command: Sequence[str], in_python: Sequence[str], client: str, rounds: int) -> Trial:
    """Return the times of a hook that answers. Raises OSError and TimeoutExpired.

    command: of the hook.
    in_python: the hook's cold form.
    client: the path of the hook's native client, "" for the cold form.
    """
    bare = [in_python[0], "-I", "-S", "-c", "pass"]
    if not client:
        return time_cold(stage, [command, bare], rounds)
    why_not = why_not_warm(client)
    if why_not:
        return time_cold(stage, [in_python, bare], rounds)._replace(why_not_warm=why_not)
    return time_both(stage, [in_python, bare, command, [nothing_program()]], rounds)


def describe_failure(error: OSError | subprocess.TimeoutExpired) -> str:
    """Return why a run of a hook has no answer."""
    if isinstance(error, OSError):
        return f"it does not start: {error}"
    return f"it did not end within {RUN_TIMEOUT_S:g} s"


def why_not_warm(client: str) -> str:
    """Return why a client's warm form cannot be timed, "" if it can."""
    if not find_pool(client_folder_of(client)):
        return "no pool runs for it"
    try:
        nothing_program()
    except FileNotFoundError as error:
        return describe(error)
    return ""


def time_cold(stage: "Stage", commands: Sequence[Sequence[str]], rounds: int) -> Trial:
    """Return the times of the cold form.  commands: it, and bare Python."""
    cold, bare = stage.timed(commands, rounds)
    return Trial(cold_ms=median_ms(cold), bare_ms=median_ms(bare))


def time_both(stage: "Stage", commands: Sequence[Sequence[str]], rounds: int) -> Trial:
    """Return the times of both forms.  commands: the cold form, bare Python, the warm form, and `true`."""
    cold, bare, warm, nothing = stage.timed(commands, rounds)
    trial = Trial(cold_ms=median_ms(cold), bare_ms=median_ms(bare))
    if statistics.median(run.cpu for run in warm) > MAX_CLIENT_CPU * statistics.median(run.cpu for run in bare):
        return trial._replace(why_not_warm="no worker answers here")
    return trial._replace(warm_ms=median_ms(warm), true_ms=median_ms(nothing))


def children_cpu_s() -> float:
    """Return the processor time of all ended child processes, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def median_ms(runs: Sequence[Timed]) -> float:
    """Return the median wall time, in milliseconds."""
    return statistics.median(run.wall for run in runs) * 1000


@cache
def fault_of(interpreter: str, entry: str) -> str:
    """Return why an interpreter or a package does not start, "" if both do.

    The hooks of most events have the same two, and each try starts an interpreter.
    """
    if missing := find_missing(interpreter, entry):
        return missing
    code = (
        f"import sys; sys.path.insert(0, {entry.removesuffix(ENTRY)!r}); import tailhook._core, tailhook.hook.process"
    )
    try:
        done = run_to_end([interpreter, "-I", "-S", "-c", code], text=True, timeout=RUN_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its interpreter does not start: {error}"
    if done.returncode:
        return f"its package cannot be imported under -I -S: {(done.stderr.splitlines() or ['no reason given'])[-1]}"
    return ""


class Stage:
    """A project with a live loop and a host's payload of an event.

    keeps_no_times: whether the hook records no time for `check_pool`.
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
        return run_to_end(command, input=self.payload, env=self.environment, cwd=self.project, timeout=RUN_TIMEOUT_S)

    def timed(self, commands: Sequence[Sequence[str]], rounds: int) -> list[list[Timed]]:
        """Return the time of each command in each round.

        The commands take turns in a random order, because each fills or empties the processor's caches for the next
        one.
        """
        found: list[list[Timed]] = [[] for _ in commands]
        for _ in range(rounds):
            for number in random.sample(range(len(commands)), len(commands)):
                found[number].append(self.time(commands[number]))
        return found

    def time(self, command: Sequence[str]) -> Timed:
        """Return how long one run takes."""
        began, before = time.perf_counter(), children_cpu_s()
        self.run(command)
        return Timed(time.perf_counter() - began, children_cpu_s() - before)

    def fault(self, command: Sequence[str], machines: Sequence[str] | None) -> str:
        """Return what is wrong with the hook's answer, "" for nothing.

        machines: in its argv, None if it names none.
        """
        try:
            done = self.run(command)
        except (OSError, subprocess.TimeoutExpired) as error:
            return describe_failure(error)
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
        """Return whether an answer fits the event of a live loop."""
        if not isinstance(answer, dict):
            return False
        if self.event == self.file.stop_event:
            block = self.file.host.answer({"decision": "block", "reason": ""})
            return set(block) <= set(answer) and answer.get("decision") == block.get("decision")
        return self.event != self.file.repeat_event or "hookSpecificOutput" in answer
