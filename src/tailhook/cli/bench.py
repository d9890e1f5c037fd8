"""`tailhook bench`: how long the hooks take on this computer, beside bare Python."""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailhook._core import iso_time
from tailhook.cli.output import CommandError, Commands, add_json, coloured, command, positive, print_json, print_lines
from tailhook.hook import triage
from tailhook.hook.machines import MACHINES, machines_with
from tailhook.hook.memory import FLAG_NAME
from tailhook.install.command import hook_command
from tailhook.pool.installation import real_interpreter
from tailhook.stores import RALPH_FILE
from tailhook.stores.jwz import MESSAGES_FILE, Store
from tailhook.stores.loop import TOPIC

DEFAULT_ROUNDS = 200
ATTEMPTS = 3  # how often a hook is timed before it counts as too slow: what else a machine does slows some at random
SIZES = {"10 KB": 10 << 10, "100 MB": 100 << 20, "500 MB": 500 << 20, "10 GB": 10 << 30}
COMPARED = ("10 KB", "100 MB", "10 GB")
DONE = "<loop-done>COMPLETE</loop-done>"


@dataclass(frozen=True)
class Case:
    """One case of the benchmark.

    machine: the machines that are asked, comma-separated.
    about: the case's description in the table.
    said: the agent's last words.
    blocks: whether the machine blocks.
    begin: makes the machine's state in a project folder; returns the file that a stop changes or makes there, None if
        it changes nothing but the state folder.
    tools: the last uses of tools before those words: the tool and its input.
    label: what the table calls the machines, if not by their names.
    """

    machine: str
    about: str
    said: str
    blocks: bool
    begin: Callable[[Path], Path | None]
    tools: tuple[tuple[str, dict[str, str]], ...] = ()
    label: str = ""

    @property
    def name(self) -> str:
        """Machine and case. benches/instructions.json has it, so it does not change when a machine is added."""
        return f"{self.label or self.machine}, {self.about}"


def nothing(folder: Path) -> None:
    """Leave the project without a state."""


def idle_loop(age: int) -> Callable[[Path], Path]:
    """Return a function that makes a loop which changed `age` seconds ago."""

    def begin(folder: Path) -> Path:
        now = time.time()
        frame = {"id": "bench", "mode": "loop", "iter": 3, "max": 10, "session_id": "bench"}
        # A stop of a later round must find it as old as the first one did: the time is far from every limit.
        state = {"schema": 1, "event": "STATE", "run_id": "bench", "updated_at": iso_time(now - age), "stack": [frame]}
        store = Store.make(str(folder))
        with store.lock():
            store.post(TOPIC, json.dumps(state, separators=(",", ":")), now - age)
        return Path(store.path) / MESSAGES_FILE

    return begin


def ralph_loop(folder: Path) -> Path:
    """Make a ralph loop."""
    path = folder / ".claude" / RALPH_FILE
    path.parent.mkdir()
    path.write_text("---\niteration: 3\nmax_iterations: 10\ncompletion_promise: GREEN\n---\n\nMake the tests pass.\n")
    return path


def triage_pipeline(folder: Path) -> Path:
    """Make a pipeline with entries to investigate."""
    path = folder / next(iter(MACHINES["triage"].get("marker_files", ()))) / f"bench{triage.ENDING}"
    path.parent.mkdir(parents=True)
    entries = [{"name": f"f{n}", "route": "llm-triage", "status": "pending", "result": None} for n in range(20)]
    path.write_text(json.dumps({"phase": "triage", "batch_size": 5, "entries": entries}, indent=2))
    return path


def memory_folder(folder: Path) -> Path:
    """Make what the memory machine keeps: its flag."""
    (folder / ".claude").mkdir()
    return folder / ".claude" / FLAG_NAME


def gate_rules(folder: Path) -> None:
    """Make a configuration with a rule."""
    (folder / ".claude").mkdir()
    rules = {"gate": {"rules": [{"edited": ["*.py"], "ran": "pytest"}]}}
    (folder / ".claude" / "tailhook.json").write_text(json.dumps(rules))


EDIT_USE = ("Edit", {"file_path": "/project/src/app.py", "old_string": "a", "new_string": "b"})
CHECK_USE = ("Bash", {"command": "cd /project && .venv/bin/pytest -q 2>&1 | tail -5"})
WORKING = "Still at work: `make test` fails in two places."
DECIDING = [name for name in MACHINES if name not in machines_with("reports")]
CASES = (
    *(Case(name, "no state", WORKING, False, nothing) for name in DECIDING),
    Case("idle", "active", WORKING, True, idle_loop(60)),
    Case("idle", "completing", f"All tests pass.\n\n{DONE}", False, idle_loop(60)),
    Case("idle", "stale", "Hello again.", False, idle_loop(8000)),
    Case("ralph", "active", WORKING, True, ralph_loop),
    Case("ralph", "promise kept", "All tests pass: <promise>GREEN</promise>", False, ralph_loop),
    Case("triage", "waiting", WORKING, True, triage_pipeline),
    Case("memory", "nothing to save", WORKING, False, memory_folder),
    Case("memory", "reporting", "We chose A because of B.\nWe picked C over D.", True, memory_folder),
    Case("gate", "checked", WORKING, False, gate_rules, (EDIT_USE, CHECK_USE)),
    Case("gate", "not checked", WORKING, True, gate_rules, (CHECK_USE, EDIT_USE)),
    Case("plates", "reporting", WORKING, False, nothing),
    Case(",".join(DECIDING), "no state", WORKING, False, nothing, label="every machine that decides"),
    Case(",".join(MACHINES), "no state", WORKING, False, nothing, label="every machine"),
)


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "bench",
        bench,
        "compare the time of the hooks with bare Python on this computer",
        "tailhook bench --max-ratio 1.35",
    )
    parser.add_argument("--against", metavar="CMD", help="another hook command to time on the same payloads")
    parser.add_argument(
        "--max-ratio", type=float, metavar="R", help="fail if a hook takes more than R times as long as bare Python"
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        default=DEFAULT_ROUNDS,
        metavar="N",
        help=f"how often each hook is started (default: {DEFAULT_ROUNDS})",
    )
    add_json(parser)


def bench(arguments: argparse.Namespace) -> int:
    """Run the rounds, print the table; 1 when a ratio is over the limit."""
    against = shlex.split(arguments.against) if arguments.against else None
    with tempfile.TemporaryDirectory(prefix="tailhook-bench-") as folder:
        stops = waiting_stops(Path(folder))
        facts = measure(stops, arguments.rounds, against)
        slow = over(facts["hooks"], arguments.max_ratio)
        for _ in range(ATTEMPTS - 1):
            if not slow:
                break
            again = measure([stops[number] for number in slow], arguments.rounds, against)
            for number, row in zip(slow, again["hooks"], strict=True):
                facts["hooks"][number] = row
            slow = over(facts["hooks"], arguments.max_ratio)
    if arguments.json:
        print_json(facts)
    else:
        print_lines(*format_times(facts, arguments.max_ratio))
    for row in (facts["hooks"][number] for number in slow):
        sys.stderr.write(
            f"tailhook: {row['case']} at {row['transcript']} takes {row['ratio']:.2f} times bare Python, "
            f"over the limit of {arguments.max_ratio:g}\n"
        )
    return 1 if slow else 0


# ---- measuring ---------------------------------------------------------------


def over(rows: Sequence[dict[str, Any]], limit: float | None) -> list[int]:
    """Return the indices of the rows whose ratio is over the limit."""
    return [number for number, row in enumerate(rows) if limit and row["ratio"] > limit]


def waiting_stops(folder: Path) -> list["Stop"]:
    """Return a stop for each case and size. Runs each once: that checks what it decides, and fills the caches."""
    stops = [Stop(folder / f"{number}-{size}", case, size) for number, case in enumerate(CASES) for size in COMPARED]
    for stop in stops:
        stop.check()
    return stops


def measure(stops: Sequence["Stop"], rounds: int, against: list[str] | None = None) -> dict[str, Any]:
    """Return medians in milliseconds, of rounds in which every hook and bare Python take turns."""
    bare = [real_interpreter(), "-I", "-S", "-c", "pass"]
    bare_times: list[float] = []
    times: dict[tuple[str, str], list[float]] = {(stop.case.name, stop.size): [] for stop in stops}
    their_times: dict[tuple[str, str], list[float]] = {key: [] for key in times}
    for _ in range(rounds):
        bare_times.append(spawn(bare, stops[0]))
        for stop in stops:
            key = (stop.case.name, stop.size)
            stop.reset()
            times[key].append(spawn(stop.hook, stop))
            if against:
                stop.reset()
                their_times[key].append(spawn(against, stop))
    bare_median = statistics.median(bare_times)
    rows = []
    for (case, size), values in times.items():
        median = statistics.median(values)
        row: dict[str, Any] = {
            "case": case,
            "transcript": size,
            "median_ms": median,
            "p99_ms": percentile(values, 99),
            "ratio": median / bare_median,
        }
        if against:
            row["against_ms"] = statistics.median(their_times[case, size])
        rows.append(row)
    return {
        "python": f"{sys.implementation.name} {sys.version.split()[0]}",
        "rounds": rounds,
        "bare": {"median_ms": bare_median, "p99_ms": percentile(bare_times, 99)},
        "hooks": rows,
        "against": shlex.join(against) if against else None,
    }


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that `percent` of all do not exceed."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


class Stop:
    """A project in which an agent is about to stop."""

    def __init__(self, folder: Path, case: Case, size: str) -> None:
        self.folder, self.case, self.size = folder, case, size
        (folder / ".git").mkdir(parents=True)
        ending = zlib.crc32(repr((case.said, case.tools)).encode())
        self.transcript = folder.parent / f"{size}-{ending}.jsonl"  # cases share them
        if not self.transcript.exists():
            write_transcript(self.transcript, SIZES[size], case.said, case.tools)
        payload = {
            "session_id": "bench",
            "transcript_path": str(self.transcript),
            "cwd": str(folder),
            "hook_event_name": "Stop",
        }
        self.payload = folder / "payload.json"
        self.payload.write_text(json.dumps(payload))
        self.env = {
            "PATH": os.defpath,
            "HOME": str(folder),
            "CLAUDE_PROJECT_DIR": str(folder),
            "TAILHOOK_NO_AUTOSTART": "1",
        }
        self.hook = hook_command(case.machine)
        self.changed = case.begin(folder)
        self.before = self.changed.read_bytes() if self.changed and self.changed.exists() else None

    def reset(self) -> None:
        """Put the state back as it was. What hooks remember of a large store stays: every later stop has it."""
        if self.before is not None and self.changed:
            self.changed.write_bytes(self.before)
        elif self.changed:
            self.changed.unlink(missing_ok=True)
        for path in self.folder.glob(".local/state/tailhook/*"):
            if not path.name.startswith("jwz-"):
                path.unlink()

    def check(self) -> None:
        """Run the hook once. Raises CommandError if the decision is not the expected one."""
        with self.payload.open() as payload:
            done = subprocess.run(  # noqa: S603 - our own argv
                self.hook, stdin=payload, env=self.env, capture_output=True, text=True, check=False
            )
        if ('"block"' in done.stdout) is not self.case.blocks or done.returncode not in (0, 2):
            raise CommandError(f"the hook for {self.case.name!r} did not decide as it should: {done}")


def write_transcript(path: Path, size: int, said: str, tools: Sequence[tuple[str, dict[str, str]]] = ()) -> None:
    """Write a transcript of about `size` bytes whose last message is `said`.

    Beyond 1 GB the file's beginning is a hole.

    tools: what was used before that message, the tools and their inputs; no use failed.
    """
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x" * 800}]
    asked = [{"type": "text", "text": "Please go on with the next one."}]
    text = [{"type": "text", "text": "Reading the file and the test beside it.\n" * 5}]
    turn = record("user", asked, 1) + record("assistant", text, 2) + record("user", result, 3)
    end = b"".join(used(name, given, number) for number, (name, given) in enumerate(tools, 5))
    end += record("assistant", [{"type": "text", "text": said}], 4)
    with path.open("wb") as out:
        if size > 1 << 30:
            out.truncate(size - 64 * len(turn) - len(end))
            out.seek(0, os.SEEK_END)
            out.write(b"\n")
        turns = (size - out.tell() - len(end)) // len(turn)
        block = turn * 1000
        for _ in range(turns // 1000):
            out.write(block)
        out.write(turn * (turns % 1000) + end)


def used(name: str, given: dict[str, str], number: int) -> bytes:
    """Return the lines of a use of a tool and of its result."""
    use_id = f"toolu_{number}"
    use = {"type": "tool_use", "id": use_id, "name": name, "input": given}
    result = {"type": "tool_result", "tool_use_id": use_id, "content": "…", "is_error": False}
    return record("assistant", [use], number) + record("user", [result], number)


def record(kind: str, content: Sequence[dict[str, Any]], number: int) -> bytes:
    """Return a line of a transcript as Claude Code writes it.

    number: its message's; lines of one message have the same.
    """
    message = {"id": f"msg_{number}", "role": kind, "content": content}
    fields = {"type": kind, "message": message, "uuid": "u", "timestamp": iso_time(time.time())}
    return f"{json.dumps(fields, separators=(',', ':'))}\n".encode()


def spawn(argv: list[str], stop: Stop) -> float:
    """Run a process with the stop's payload on stdin, as a host does; returns its milliseconds."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(stop.payload), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    started = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, stop.env, file_actions=actions)
    os.waitpid(pid, 0)
    return (time.perf_counter() - started) * 1000


# ---- printing ----------------------------------------------------------------


def format_times(facts: dict[str, Any], limit: float | None) -> list[str]:
    """Return the figures as lines for a person."""
    bare = facts["bare"]
    head = f"{'hook':<42}{'transcript':>12}{'median':>12}{'p99':>12}{'x bare':>9}"
    lines = [
        f"{facts['python']}, medians of {facts['rounds']} interleaved rounds",
        "",
        head + (f"{'against':>12}" if facts["against"] else ""),
        f"{'bare python':<42}{'':>12}{bare['median_ms']:>9.2f} ms{bare['p99_ms']:>9.2f} ms{1:>9.2f}",
    ]
    for row in facts["hooks"]:
        ratio = f"{row['ratio']:>9.2f}"
        if limit:
            ratio = coloured(ratio, 31 if row["ratio"] > limit else 32)
        theirs = f"{row['against_ms']:>9.2f} ms" if facts["against"] else ""
        times = f"{row['median_ms']:>9.2f} ms{row['p99_ms']:>9.2f} ms"
        lines.append(f"{row['case']:<42}{row['transcript']:>12}{times}{ratio}{theirs}")
    return lines
