"""`tailhook bench`: how long the hooks take on this machine, beside bare Python."""

import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailhook.cli.output import CommandError, Commands, add_json, coloured, command, positive, print_json, say
from tailhook.hosts.command import hook_command, real_interpreter
from tailhook.machines import iso
from tailhook.stores.jwz import Store
from tailhook.stores.loop import TOPIC

ROUNDS = 200
SIZES = {"10 KB": 10 << 10, "100 MB": 100 << 20, "10 GB": 10 << 30}
DONE = "<loop-done>COMPLETE</loop-done>"


@dataclass(frozen=True)
class Case:
    """One thing a stop can come to.

    name: how the table calls it.  age: seconds since the loop's last change, None for no loop.  said: the agent's last
    words.  exit_code: what the hook must return.
    """

    name: str
    age: int | None
    said: str
    exit_code: int


CASES = (
    Case("no state", None, "All done.", 0),
    Case("active", 60, "Still at work: `make test` fails in two places.", 2),
    Case("completing", 60, f"All tests pass.\n\n{DONE}", 0),
    Case("stale", 8000, "Hello again.", 0),
)


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "bench",
        bench,
        "time this machine's hooks beside bare Python",
        "tailhook bench --max-ratio 1.35",
    )
    parser.add_argument("--against", metavar="CMD", help="another hook command, timed on the same payloads")
    parser.add_argument(
        "--max-ratio", type=float, metavar="R", help="fail when a hook takes more than R times bare Python"
    )
    parser.add_argument("--rounds", type=positive, default=ROUNDS, metavar="N", help=f"interleaved rounds ({ROUNDS})")
    add_json(parser)


def bench(arguments: argparse.Namespace) -> int:
    """Run the rounds, print the table; 1 when a ratio is over the limit."""
    against = shlex.split(arguments.against) if arguments.against else None
    with tempfile.TemporaryDirectory(prefix="tailhook-bench-") as folder:
        facts = measure(Path(folder), arguments.rounds, against)
    slow = [row for row in facts["hooks"] if arguments.max_ratio and row["ratio"] > arguments.max_ratio]
    if arguments.json:
        print_json(facts)
    else:
        say(*table(facts, arguments.max_ratio))
    for row in slow:
        sys.stderr.write(
            f"tailhook: {row['case']} at {row['transcript']} takes {row['ratio']:.2f} times bare Python, "
            f"over the limit of {arguments.max_ratio:g}\n"
        )
    return 1 if slow else 0


# ---- measuring ---------------------------------------------------------------


def measure(folder: Path, rounds: int, against: list[str] | None = None) -> dict[str, Any]:
    """Medians in milliseconds, of rounds in which every hook and bare Python take their turns."""
    bare = [real_interpreter(), "-I", "-S", "-c", "pass"]
    hook = hook_command("idle")
    stops = [Stop(folder / f"{case.name}-{size}", case, size) for case in CASES for size in SIZES]
    bare_times: list[float] = []
    times: dict[tuple[str, str], list[float]] = {(stop.case.name, stop.size): [] for stop in stops}
    their_times: dict[tuple[str, str], list[float]] = {key: [] for key in times}
    for number in range(rounds + 1):
        bare_milliseconds = spawn(bare, stops[0])
        for stop in stops:
            key = (stop.case.name, stop.size)
            stop.reset()
            milliseconds = spawn(hook, stop, stop.case.exit_code)
            if against:
                stop.reset()
                their_times[key].append(spawn(against, stop))
            times[key].append(milliseconds)
        bare_times.append(bare_milliseconds)
        if number == 0:  # that round filled the caches
            for values in (bare_times, *times.values(), *their_times.values()):
                values.clear()
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
    """The smallest value that `percent` of all do not exceed."""
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]


class Stop:
    """A project in which an agent is about to stop."""

    def __init__(self, folder: Path, case: Case, size: str) -> None:
        self.folder, self.case, self.size = folder, case, size
        (folder / ".git").mkdir(parents=True)
        transcript = folder / "transcript.jsonl"
        write_transcript(transcript, SIZES[size], case.said)
        payload = {
            "session_id": "bench",
            "transcript_path": str(transcript),
            "cwd": str(folder),
            "hook_event_name": "Stop",
        }
        self.payload = folder / "payload.json"
        self.payload.write_text(json.dumps(payload))
        self.env = {"PATH": os.defpath, "HOME": str(folder), "CLAUDE_PROJECT_DIR": str(folder)}
        self.messages = folder / ".jwz" / "messages.jsonl"
        self.before = b""
        if case.age is not None:
            self.begin(case.age)

    def begin(self, age: int) -> None:
        """Start the loop, changed `age` seconds ago."""
        now = time.time()
        frame = {"id": "bench", "mode": "loop", "iter": 3, "max": 10, "session_id": "bench"}
        # A stop of a later round must find it as old as the first one did: the time is far from every limit.
        state = {"schema": 1, "event": "STATE", "run_id": "bench", "updated_at": iso(now - age), "stack": [frame]}
        store = Store.make(str(self.folder))
        with store.lock():
            store.post(TOPIC, json.dumps(state, separators=(",", ":")), now - age)
        self.before = self.messages.read_bytes()

    def reset(self) -> None:
        """Put the state back as it was."""
        if self.before:
            self.messages.write_bytes(self.before)


def write_transcript(path: Path, size: int, said: str) -> None:
    """A transcript of `size` bytes whose last message is `said`; beyond 1 GB the file's beginning is a hole."""
    now = iso(time.time())
    blocks = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x" * 800}]
    before = {"type": "user", "message": {"role": "user", "content": blocks}, "uuid": "u1", "timestamp": now}
    message = {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": said}]}
    last = {"type": "assistant", "message": message, "uuid": "u2", "timestamp": now}
    line, end = (f"{json.dumps(record, separators=(',', ':'))}\n".encode() for record in (before, last))
    with path.open("wb") as out:
        if size > 1 << 30:
            out.truncate(size - 64 * len(line) - len(end))
            out.seek(0, os.SEEK_END)
            out.write(b"\n")
        lines = (size - out.tell() - len(end)) // len(line)
        block = line * 1000
        for _ in range(lines // 1000):
            out.write(block)
        out.write(line * (lines % 1000) + end)


def spawn(argv: list[str], stop: Stop, expected: int | None = None) -> float:
    """Run a process with the stop's payload on stdin, as a host does; returns its milliseconds."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(stop.payload), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    started = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, stop.env, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    milliseconds = (time.perf_counter() - started) * 1000
    code = os.waitstatus_to_exitcode(status)
    if expected is not None and code != expected:
        raise CommandError(f"the hook for {stop.case.name!r} ended with {code}, not {expected}: {shlex.join(argv)}")
    return milliseconds


# ---- printing ----------------------------------------------------------------


def table(facts: dict[str, Any], limit: float | None) -> list[str]:
    """The figures as lines for a person."""
    bare = facts["bare"]
    head = f"{'hook':<12}{'transcript':>12}{'median':>12}{'p99':>12}{'x bare':>9}"
    lines = [
        f"{facts['python']}, medians of {facts['rounds']} interleaved rounds",
        "",
        head + (f"{'against':>12}" if facts["against"] else ""),
        f"{'bare python':<12}{'':>12}{bare['median_ms']:>9.2f} ms{bare['p99_ms']:>9.2f} ms{1:>9.2f}",
    ]
    for row in facts["hooks"]:
        ratio = f"{row['ratio']:>9.2f}"
        if limit:
            ratio = coloured(ratio, 31 if row["ratio"] > limit else 32)
        theirs = f"{row['against_ms']:>9.2f} ms" if facts["against"] else ""
        times = f"{row['median_ms']:>9.2f} ms{row['p99_ms']:>9.2f} ms"
        lines.append(f"{row['case']:<12}{row['transcript']:>12}{times}{ratio}{theirs}")
    return lines
