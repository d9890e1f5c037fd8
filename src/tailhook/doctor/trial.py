"""An installed hook tried out as the host would run it: in a temporary project, with a temporary home.

Nothing of the user's is read or moved: the trial has its own project, home and state folder, and none of the
environment.
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tailhook.install.command import ENTRY, argv_of, is_ours, machines_of

ROUNDS = 9  # in which the hook and bare Python take turns
PATIENCE = 30.0  # seconds for one run: the host would wait longer
LOOP = "---\nactive: true\nmode: loop\niteration: 1\nmax_iterations: 1000\n---\n\nTry the hook.\n"


class Trial(NamedTuple):
    """What came of it.

    fault: what is wrong, "" for nothing; advice: what to do then.  milliseconds, bare: medians of the hook's runs and
    of the same interpreter's that does nothing, 0 where it was not run.
    """

    fault: str = ""
    advice: str = ""
    milliseconds: float = 0.0
    bare: float = 0.0


OF_EVENT = {"Stop": {"last_assistant_message": "At work."}, "SessionStart": {"source": "compact"}}
INSTALL_AGAIN = "Write it anew:  tailhook install"


def try_hook(event: str, hook: Mapping[str, Any], rounds: int = ROUNDS) -> Trial:
    """Run a hook of a settings file on an event - a stop, a start after a compaction - of an agent that is in a loop.

    rounds: in how many it is timed.
    """
    argv = argv_of(hook)
    if not argv:
        return Trial("its command cannot be read", INSTALL_AGAIN)
    if is_ours(hook) and (fault := fault_of(argv)):
        return Trial(fault, INSTALL_AGAIN)
    with tempfile.TemporaryDirectory(prefix="tailhook-doctor-") as folder:
        stage = Stage(Path(folder), event)
        command = argv if isinstance(hook.get("args"), list) else ["/bin/sh", "-c", hook["command"]]
        fault = stage.fault(command, machines_of(argv))
        if fault:
            return Trial(fault, INSTALL_AGAIN)
        bare = [argv[0], "-I", "-S", "-c", "pass"]
        if not is_ours(hook) or not rounds:
            return Trial()
        times = [(stage.seconds(command), stage.seconds(bare)) for _ in range(rounds)]
    hook_median, bare_median = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
    return Trial(milliseconds=hook_median, bare=bare_median)


def fault_of(argv: Sequence[str]) -> str:
    """Why the interpreter or the package that the argv names would not start, "" where they do."""
    interpreter = argv[0]
    entry = next(word for word in argv if word.endswith(ENTRY))
    if not Path(interpreter).exists():
        return f"its interpreter is gone: {interpreter}"
    if not os.access(interpreter, os.X_OK):
        return f"its interpreter may not be run: {interpreter}"
    if not Path(entry).exists():
        return f"its package is gone: {entry}"
    code = (
        f"import sys; sys.path.insert(0, {entry.removesuffix(ENTRY)!r}); import tailhook._core, tailhook.hook.process"
    )
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter that the settings name
            [interpreter, "-I", "-S", "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its interpreter does not start: {error}"
    if done.returncode:
        return f"its package cannot be imported under -I -S: {(done.stderr.splitlines() or ['no reason given'])[-1]}"
    return ""


class Stage:
    """A project with a live loop, in which an agent is about to stop, or has just been compacted."""

    def __init__(self, folder: Path, event: str) -> None:
        self.event = event
        self.project = folder / "project"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".claude").mkdir()
        (self.project / ".claude" / "idle-loop.local.md").write_text(LOOP)
        payload = {"session_id": "doctor", "cwd": str(self.project), "hook_event_name": event}
        payload |= OF_EVENT.get(event, {})
        self.payload = json.dumps(payload).encode()
        home = str(folder / "home")
        self.environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "CLAUDE_CONFIG_DIR": home,
            "CLAUDE_PROJECT_DIR": str(self.project),
            "TAILHOOK_NO_AUTOSTART": "1",
        }

    def run(self, command: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
        """Run a command as the host runs a hook."""
        return subprocess.run(  # noqa: S603 - the command that the settings name
            command,
            input=self.payload,
            env=self.environment,
            cwd=self.project,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )

    def seconds(self, command: Sequence[str]) -> float:
        """How long one run takes."""
        started = time.perf_counter()
        self.run(command)
        return time.perf_counter() - started

    def fault(self, command: Sequence[str], machines: Sequence[str] | None) -> str:
        """What is wrong with the hook's answer, "" for nothing."""
        try:
            done = self.run(command)
        except subprocess.TimeoutExpired:
            return f"it did not end within {PATIENCE:g} s"
        except OSError as error:
            return f"it does not start: {error}"
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode not in (0, 2):
            return f"it ended with {done.returncode}: {said or 'nothing on stderr'}"
        try:
            answer = json.loads(done.stdout) if done.stdout else {}
        except ValueError:
            return f"its answer is no JSON: {done.stdout[:80]!r}"
        if machines is not None and "idle" not in machines:
            return ""
        told = {"Stop": "decision", "SessionStart": "hookSpecificOutput"}.get(self.event)
        return "" if told is None or told in answer else f"a live loop got no answer: {said or 'nothing on stderr'}"
