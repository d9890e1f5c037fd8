"""The measured cases of every machine, and the projects in which their hooks run."""

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailhook._core import iso_time
from tailhook.errors import TailhookError
from tailhook.exits import run_to_end
from tailhook.hook import triage
from tailhook.hook.machines import MACHINES, machines_with
from tailhook.hook.memory import FLAG_NAME
from tailhook.install.command import hook_command
from tailhook.stores import RALPH_FILE
from tailhook.stores.jwz import MESSAGES_FILE, Store
from tailhook.stores.loop import TOPIC
from tailhook.stores.spool import SPOOL_FILE


class WrongDecisionError(TailhookError):
    """A hook did not decide as its case expects."""


# Fields that Claude Code (2.1.329) sends with an event, beside those of all events.
EVENT_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "Stop": {"stop_hook_active": False, "last_assistant_message": "Still at work: `make test` fails in two places."},
    "SubagentStop": {"stop_hook_active": False, "agent_id": "a1", "agent_type": "Explore"},
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "other"},
    "UserPromptSubmit": {"prompt": "Please mend the two tests."},
    "PreToolUse": {"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "make test"}},
    "PostToolUse": {
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": "2 failed, 98 passed\n", "stderr": "", "interrupted": False},
    },
    "Notification": {"message": "Claude needs your permission to use Bash", "notification_type": "permission_prompt"},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
}
# Seconds after which Claude Code (2.1.329) ends a hook: of these events, and of any other event.
TIMEOUTS_S: Mapping[str, float] = {"UserPromptSubmit": 30, "SessionEnd": 1.5}
DEFAULT_TIMEOUT_S = 600.0
SIZES = {"10 KB": 10 << 10, "100 MB": 100 << 20, "500 MB": 500 << 20, "10 GB": 10 << 30}
COMPARED = ("10 KB", "100 MB", "10 GB")
COMPARED_FOR_COMMANDS = COMPARED[:2]  # a program that reads its whole transcript would not end with 10 GB
TURN_BYTES = 8 << 10  # of a transcript: its last turn
DONE = "<loop-done>COMPLETE</loop-done>"


@dataclass(frozen=True)
class Case:
    """One case of the benchmark.

    machine: the machines to ask, comma-separated.
    about: the case's description in the table.
    said: the agent's last words.
    blocks: whether the machine blocks.
    begin: makes the machine's state in a project folder. Returns the file that a stop changes or makes there; None if a
        stop changes only the state folder.
    tools: the last uses of tools before those words, each with its input.
    label: words for the machines in the table, if not their names.
    event: the event of the payload.
    earlier: the agent's words in each message before the last.
    """

    machine: str
    about: str
    said: str
    blocks: bool
    begin: Callable[[Path], Path | None]
    tools: tuple[tuple[str, dict[str, str]], ...] = ()
    label: str = ""
    event: str = "Stop"
    earlier: str = ""

    @property
    def name(self) -> str:
        """Machine and case. It is a key of benches/instructions.json, so it stays when a machine is added."""
        return f"{self.label or self.machine}, {self.about}"


def no_state(folder: Path) -> None:
    """Leave the project without a state."""


def idle_loop(age: int, earlier: int = 0, **fields: Any) -> Callable[[Path], Path]:
    """Return a function that makes a loop, last changed `age` seconds ago.

    earlier: how many earlier iterations of the loop are in the store.
    fields: more of its frame.
    """

    def begin(folder: Path) -> Path:
        now = time.time()
        frame = {"id": "bench", "mode": "loop", "iter": 3, "max": earlier + 10, "session_id": "bench", **fields}
        # Later rounds must decide the same: the loop's age is far from every limit.
        state = {"schema": 1, "event": "STATE", "run_id": "bench", "updated_at": iso_time(now - age), "stack": [frame]}
        store, newest = Store.make(str(folder)), None
        with store.lock():
            for iteration in range(3, earlier + 4):
                frame["iter"] = iteration
                newest = store.post(TOPIC, json.dumps(state, separators=(",", ":")), now - age, newest)
        return Path(store.path) / MESSAGES_FILE

    return begin


def loop_with_every_field(folder: Path) -> Path:
    """Make a loop of tailhook's own with every field that it can have. Its last turn used tools."""
    transcript = Path(json.loads((folder / "payload.json").read_text())["transcript_path"])
    facts, now = transcript.stat(), time.time()
    before_ms, offset = round((now - 600) * 1000), max(0, facts.st_size - TURN_BYTES)
    place = f"{offset}@{now - 600:.3f}"
    fields: dict[str, Any] = {
        "began": iso_time(now - 3600),
        "briefed": "bench",
        "checks": ["make test"],
        "check_files": ["src/*.py"],
        "tokens": 10**9,
        "minutes": 10**6,
        "spent": f"5000 {before_ms} {facts.st_ino}:{offset}:{before_ms} -",
        "stuck_after": 4,
        "still": f"{place} 0 1 0 0",
        "waits": f"{place}:0",
    }
    return idle_loop(60, **fields)(folder)


def loop_with_a_check(folder: Path) -> Path:
    """Make a loop of tailhook's own that ends only after a successful check."""
    return idle_loop(60, began=iso_time(time.time() - 3600), checks=["pytest -q"])(folder)


def ralph_loop(folder: Path) -> Path:
    """Make a ralph loop."""
    path = folder / ".claude" / RALPH_FILE
    path.parent.mkdir()
    path.write_text("---\niteration: 3\nmax_iterations: 10\ncompletion_promise: GREEN\n---\n\nMake the tests pass.\n")
    an_hour_ago = time.time() - 3600  # ralph believes only a promise that is newer than the file
    os.utime(path, (an_hour_ago, an_hour_ago))
    return path


def triage_pipeline(folder: Path) -> Path:
    """Make a pipeline with entries to investigate."""
    path = folder / next(iter(MACHINES["triage"].get("marker_files", ()))) / f"bench{triage.ENDING}"
    path.parent.mkdir(parents=True)
    entries = [{"name": f"f{n}", "route": "llm-triage", "status": "pending", "result": None} for n in range(20)]
    path.write_text(json.dumps({"phase": "triage", "batch_size": 5, "entries": entries}, indent=2))
    return path


def memory_folder(folder: Path) -> Path:
    """Make the memory machine's flag."""
    (folder / ".claude").mkdir()
    return folder / ".claude" / FLAG_NAME


def gate_rules(folder: Path) -> None:
    """Make a configuration with a rule."""
    (folder / ".claude").mkdir()
    rules = {"gate": {"rules": [{"edited": ["*.py"], "ran": "pytest"}]}}
    (folder / ".claude" / "tailhook.json").write_text(json.dumps(rules))


SHORT_WORDS = "Reading the file and the test beside it.\n" * 5
# As long and as mixed as agents' answers between two prompts.
LONG_WORDS = """I have looked at why the upload fails for large files, and it is not the timeout.

The client splits a file into parts of 8 MB and sends each with its own checksum. The server keeps the parts in
`/var/spool/uploads` until the last one has come, then joins them. If two clients send a file with the same name, their
parts are mixed, because the folder's name has only the file's name in it:

```python
def folder_of(upload: Upload) -> Path:
    return SPOOL / upload.name          # two uploads of "report.pdf" share this folder
```

What I changed:

1. `folder_of` takes the upload's id, which is unique, so parts of two uploads never meet.
2. `join_parts` checks the number of parts before it opens the target, and leaves the parts where they are if one is
   missing. Before, it wrote a file that was too short and answered 200.
3. The test `test_two_uploads_of_one_name` starts both at once, a hundred times.

| test | before | now |
|------|--------|-----|
| unit | 212 passed | 214 passed |
| upload, 4 GB | passes in 7 of 10 runs | passes in 10 of 10 runs |

The folders of unfinished uploads are removed after a day anyway. I did not touch `client/send.py`; it looks right, but
nothing tests what happens if the *last* part is sent twice. Should I add that?
"""
EDIT_USE = ("Edit", {"file_path": "/project/src/app.py", "old_string": "a", "new_string": "b"})
CHECK_USE = ("Bash", {"command": "cd /project && .venv/bin/pytest -q 2>&1"})
DECISIONS = "We chose A because of B.\nWe picked C over D."
WORKING = "Still at work: `make test` fails in two places."
DECIDING = [name for name in MACHINES if name not in machines_with("reports")]
CASES = (
    *(Case(name, "no state", WORKING, False, no_state) for name in DECIDING),
    Case("idle", "active", WORKING, True, idle_loop(60)),
    Case("idle", "iteration 500", WORKING, True, idle_loop(60, earlier=500)),
    Case("idle", "every field", WORKING, True, loop_with_every_field, (EDIT_USE, CHECK_USE)),
    Case("idle", "completing", f"All tests pass.\n\n{DONE}", False, idle_loop(60)),
    Case("idle", "checked end", f"All tests pass.\n\n{DONE}", False, loop_with_a_check, (EDIT_USE, CHECK_USE)),
    Case("idle", "stale", "Hello again.", False, idle_loop(8000)),
    Case("ralph", "active", WORKING, True, ralph_loop),
    Case("ralph", "promise kept", "All tests pass: <promise>GREEN</promise>", False, ralph_loop),
    Case("triage", "waiting", WORKING, True, triage_pipeline),
    Case("memory", "nothing to save", WORKING, False, memory_folder, earlier=LONG_WORDS),
    Case("memory", "reporting", DECISIONS, True, memory_folder, earlier=LONG_WORDS),
    Case("gate", "checked", WORKING, False, gate_rules, (EDIT_USE, CHECK_USE)),
    Case("gate", "not checked", WORKING, True, gate_rules, (CHECK_USE, EDIT_USE)),
    Case("plates", "reporting", WORKING, False, no_state),
    Case(",".join(DECIDING), "no state", WORKING, False, no_state, label="every machine that decides"),
    Case(",".join(MACHINES), "no state", WORKING, False, no_state, label="every machine"),
)


class BenchProject:
    """A project for measuring a hook: the files of a case, and the payload of its event."""

    def __init__(self, folder: Path, case: Case, size: str) -> None:
        self.folder, self.case, self.size = folder, case, size
        (folder / ".git").mkdir(parents=True)
        ending = zlib.crc32(repr((case.said, case.tools, case.earlier)).encode())
        self.transcript = folder.parent / f"{size}-{ending}.jsonl"  # cases share them
        if not self.transcript.exists():
            write_transcript(self.transcript, SIZES[size], case.said, case.tools, case.earlier or SHORT_WORDS)
        payload = {
            "session_id": "bench",
            "transcript_path": str(self.transcript),
            "cwd": str(folder),
            "hook_event_name": case.event,
            **(EVENT_FIELDS[case.event] if case.event != "Stop" else {}),
        }
        self.payload = folder / "payload.json"
        self.payload.write_text(json.dumps(payload))
        self.env = {
            "PATH": os.defpath,
            "HOME": str(folder),
            "CLAUDE_PROJECT_DIR": str(folder),
            "TAILHOOK_NO_AUTOSTART": "1",
        }
        self.limit_s = TIMEOUTS_S.get(case.event, DEFAULT_TIMEOUT_S)
        self.hook = hook_command(case.machine)
        self.changed = case.begin(folder)
        self.before = self.changed.read_bytes() if self.changed and self.changed.exists() else None
        self.changed_at = self.changed.stat().st_mtime_ns if self.changed and case.machine == "ralph" else None

    def reset(self) -> None:
        """Restore the state. Files that every later stop finds stay: locks, the spool, the index of a store."""
        if self.before is not None and self.changed:
            self.changed.write_bytes(self.before)
            if self.changed_at is not None:
                os.utime(self.changed, ns=(self.changed_at, self.changed_at))
        elif self.changed:
            self.changed.unlink(missing_ok=True)
        for path in self.folder.glob(".local/state/tailhook/**/*"):
            is_kept = path.name.startswith("jwz-") or path.suffix == ".lock" or path.name == SPOOL_FILE
            if not is_kept and path.is_file():
                path.unlink()

    def check(self, argv: list[str] | None = None) -> None:
        """Run the hook once. Raises WrongDecisionError if the decision is not the expected one.

        argv: of the hook, None for the cold form.
        """
        with self.payload.open() as payload:
            done = run_to_end(argv or self.hook, stdin=payload, env=self.env, text=True)
        if ('"block"' in done.stdout) is not self.case.blocks or done.returncode not in (0, 2):
            raise WrongDecisionError(f"the hook for {self.case.name!r} did not decide as it should: {done}")


def write_transcript(
    path: Path, size: int, said: str, tools: Sequence[tuple[str, dict[str, str]]] = (), earlier: str = SHORT_WORDS
) -> None:
    """Write a transcript of about `size` bytes whose last message is `said`.

    Beyond 1 GB the file's beginning is a hole.

    tools: the tools used before that message, with their inputs; no use failed.
    earlier: the agent's words in each message before.
    """
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x" * 800}]
    asked = [{"type": "text", "text": "Please go on with the next one."}]
    text = [{"type": "text", "text": earlier}]
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
    """Return a line of a transcript of Claude Code.

    number: its message's; lines of one message have the same.
    """
    message = {"id": f"msg_{number}", "role": kind, "content": content}
    fields = {"type": kind, "message": message, "uuid": "u", "timestamp": iso_time(time.time())}
    return f"{json.dumps(fields, separators=(',', ':'))}\n".encode()
