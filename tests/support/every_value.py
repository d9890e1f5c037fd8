"""A project with a decision for every machine. Any one file, or the payload, is replaced by any value.

One hook runs in this process. Each machine that is asked leaves a trace: a decision in the log, or an event in the
spool. So a fault in one machine shows in the traces of the others. The memory machine blocks, and no machine is asked
after a block. The gate comes after it, so it has a run of its own.
"""

import json
import os
import posix
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from support.host import assistant, frame, looping, ralph_page
from support.triage import entry, pipeline
from tailhook import _core
from tailhook.hook import process
from tailhook.hook.gate import BlockedEdits
from tailhook.hook.memory import fingerprint_of

MACHINES = ("idle", "ralph", "triage", "memory")
GATE = ("gate",)
GATE_READS = ("user config", "project config", "transcript", "git head")
RULES = {"rules": [{"edited": ["*.py"], "ran": "pytest -q"}]}
SAID = (
    "We chose A because of B.\nWe picked C over D.\n\n<loop-done>COMPLETE</loop-done>\n\n<promise>TESTS GREEN</promise>"
)
DECIDED = {
    "idle": "allow",
    "ralph": "allow",
    "triage": "allow",
    "memory": "block",
    "gate": "block",
}  # if nothing is replaced
# The name on stderr of an exception that no code expected.
UNFORESEEN = re.compile(r"\b(?!FileNotFound)[A-Z]\w+(?:Error|Exception|Exit|Interrupt): ")


def deep(opening: str, closing: str, depth: int = 1000) -> str:
    """Return the JSON text of nested containers; the hook's own parser accepts 1,024 levels."""
    return opening * depth + "1" + closing * depth


# Every kind of JSON value, as text.
JSON_VALUES = [
    "null", "true", "false", "0", "-0", "1", "-1", "1.5", "1e999", "-1e999", str(2**53 + 1), "9" * 400, "9" * 5000,
    '""', '"x"', '"8"', '"Stop"', '"claim"', '"/"', '"/dev/null"', '"~/x"', '"2026-01-02 03:04:05Z"',
    '"9999-99-99T99:99:99Z"', '"' + "y" * 5000 + '"', r'"a\u0000b"', r'"/a\u0000b"', r'"\ud800"', r'"/\udcff/\ud800"',
    "[]", "{}", "[null]", '[""]', '[[1], {"a": 2}, "b"]', '{"x": null}', r'["/\ud800", "\u0000", "a\ud800"]',
    deep("[", "]"), deep('{"a":', "}"),
]  # fmt: skip
ROOT_FOLDER = Path("/.claude")
# Every kind of value of a front matter's key.
TEXT_VALUES = [
    b"", b" ", b"null", b"~", b"true", b"false", b"0", b"-1", b"1.5", b"08", b"9" * 400, b"9" * 5000, b'""', b"''",
    b'"x', b"'", b'"\\UFFFFFFFF"', b'"\\ud800"', b'"\\U0000d800x"', b'"\\u0000"', b'"\\x"', b'"\\xzz"', b"[1]",
    b"{a: 1}", b"# nothing", b"|", b"claim", b"\xff\xfe", b"a\0b", b"y" * 5000, "\u2028é\u202e".encode(),
]  # fmt: skip

PLACES = (
    "payload", "user config", "project config", "memory config", "idle body", "idle store", "idle file", "ralph file",
    "triage file", "transcript", "stop flag", "memory mark", "git head", "store index", "daemon argv", "triage mark",
    "gate edits",
)  # fmt: skip
# The machines whose decision a place may change. The others decide as always.
ALL = (*MACHINES, *GATE)
CONCERNED = {
    "user config": ALL,
    "project config": ALL,
    "payload": ALL,
    "transcript": ALL,
    "memory config": ("memory",),
    "idle body": ("idle",),
    "idle store": ("idle",),
    "idle file": ("idle",),
    "ralph file": ("ralph",),
    "triage file": ("triage",),
    "stop flag": ("memory",),
    "memory mark": ("memory",),
    "git head": (),
    "store index": ("idle",),
    "daemon argv": (),
    "triage mark": ("triage",),
    "gate edits": ("gate",),
}


def json_lines(*values: object) -> bytes:
    """Return JSON lines in the form of jwz and the hosts."""
    return b"".join(
        json.dumps(value, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n" for value in values
    )


NOTIFY = {
    "terminal": ["osc9"],
    "command": ["notify"],
    "webhook": "http://localhost:9/a",
    "format": "slack",
    "on": ["waits"],
    "quiet": "22:00-07:00",
}


class Surroundings:
    """A home and a project in a temporary folder, made again by each `run`."""

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="every-value-"))
        self.home = self.top / "home"
        self.project = self.top / "project"
        self.state = self.home / ".local/state/tailhook"
        self.transcript = self.home / "session.jsonl"
        self.log = self.top / "log"
        self.is_root_new = not ROOT_FOLDER.exists()

    def remove(self) -> None:
        """Remove the folder, and the files that root's hook has written if its project is `/`."""
        shutil.rmtree(self.top, ignore_errors=True)
        if self.is_root_new:
            shutil.rmtree(ROOT_FOLDER, ignore_errors=True)

    def originals(self, place: str = "") -> dict[str, bytes]:
        """Return the content of each place if nothing replaces it; the payload lets the hook read `place`."""
        body = looping(frame(session_id="mine"), note={"kept": [1.0, None]}, session_id="mine")
        message = {"type": "message", "id": "M", "topic_id": "T", "body": json.dumps(body), "created_at": 1}
        topic = {"type": "topic", "id": "T", "name": "loop:current", "description": "", "created_at": 1}
        state = pipeline("aggregation", entry(), aggregation={"status": "failed"}, session_id="mine", patterns=[1])
        payload = {
            "session_id": "mine",
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": "Stop",
            "stop_hook_active": place == "triage mark",
            "last_assistant_message": SAID,
            "permission_mode": "default",
            "background_tasks": [{"id": "b", "type": "shell", "status": "running"}],
            "agent_id": None,
            "tool_name": "Bash",
            "tool_input": {"command": "make", "file_path": "/x", "todos": [{"status": "completed"}]},
            "error": "none",
            "notification_type": "x",
            "source": "compact",
        }
        edit = {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": {"file_path": f"{self.project}/a.py"}}
        edited = {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": False}
        records = [
            assistant("Hm."),
            {"type": "user", "message": {"role": "user", "content": "Go."}},
            {"type": "assistant", "message": {"role": "assistant", "id": "msg_0", "content": [edit]}},
            {"type": "user", "message": {"role": "user", "content": [edited]}},
            assistant(SAID),
        ]
        memory = {"triage": {"enabled": True, "max_messages": 50, "thresholds": {"decision": 0.4}}}
        config = {
            "hook": {"machines": ["idle"], "unbound": "act", "log": str(self.top / "other.log")},
            "idle": {"stale_after": 7200, "next_issue": "gh issue list"},
            "triage": {"state_dirs": [".claude/triage_state"], "while_active": "progress"},
            "memory": {"profile": "seed"},
            "gate": RULES,
            "plates": {"autostart": False, "notify": NOTIFY, "stuck_after": 900},
        }
        return {
            "payload": json.dumps(payload).encode(),
            "user config": json.dumps(config).encode(),
            "project config": json.dumps(config).encode(),
            "memory config": json.dumps(memory).encode(),
            "idle body": json.dumps(body).encode(),
            "idle store": json_lines(topic, message),
            "idle file": b"---\nactive: true\nmode: loop\niteration: 1\nmax_iterations: 9\nsession_id: mine\n---\nGo.",
            "ralph file": ralph_page(session_id="mine", promise_own_line="true").encode(),
            "triage file": json.dumps(state).encode(),
            "transcript": json_lines(*records),
            "stop flag": b"1767312245.0\nanother session\n",
            "memory mark": b'{"end":0,"said":0,"summarized":false,"blocked":0}\n',
            "git head": b"ref: refs/heads/main\n",
            "store index": b'{"offset":0,"witness":0,"topic_id":null,"newest_at":null}\n',
            "daemon argv": b"/bin/true\0x",
            "triage mark": b"0000000000000000\n",
            "gate edits": b'["toolu_0"]\n',
        }

    def write(self, place: str, content: bytes, machines: Iterable[str] = MACHINES) -> None:
        """Write the originals for a run of these machines, with `content` in one place."""
        contents = {**self.originals(place), place: content}
        for folder in (self.home, self.project):
            shutil.rmtree(folder, ignore_errors=True)
        if place == "idle body":
            topic, message = map(json.loads, contents["idle store"].splitlines())
            message["body"] = content.decode("utf-8", "surrogateescape")
            contents["idle store"] = json_lines(topic, message)
        files = {
            "user config": self.home / ".config/tailhook/config.json",
            "project config": self.project / ".claude/tailhook.json",
            "memory config": self.project / ".claude/memory/memory-config.json",
            "idle store": self.project / ".jwz/messages.jsonl",
            "ralph file": self.project / ".claude/ralph-loop.local.md",
            "triage file": self.project / ".claude/triage_state/x_triage.json",
            "transcript": self.transcript,
            "stop flag": self.project / ".claude/.stop_hook_active",
            "git head": self.project / ".git/HEAD",
            "daemon argv": self.state / "daemon-argv",
        }
        if place == "idle file":
            files = {**files, "idle file": self.project / ".claude/idle-loop.local.md"}
            del files["idle store"]
        for name, path in files.items():
            if name in ("user config", "project config") and name != place:
                continue
            if machines == GATE and name not in GATE_READS:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents[name])
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        if place == "memory mark":
            name = f"{fingerprint_of(b'mine'):016x}"
            folder = self.state / "memory" / name[:2]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.memory").write_bytes(content)
        elif place == "store index":
            self.write_index(content)
        elif place == "triage mark":
            self.write_triage_mark(content)
        elif place == "gate edits":
            (self.state / BlockedEdits(str(self.project), 0).name).write_bytes(content)
        if machines == GATE and place not in ("user config", "project config"):
            files["project config"].parent.mkdir(parents=True, exist_ok=True)
            files["project config"].write_text(json.dumps({"gate": RULES}))
        self.payload = contents["payload"]

    def write_index(self, content: bytes) -> None:
        """Make the store a large one, let the hook save its index, and put `content` in place of the index.

        Members of an object replace those of the hook; its others stay, and are true of this store.
        """
        with (self.project / ".jwz/messages.jsonl").open("ab") as out:
            out.write(b'{"type":"message","topic_id":"OTHER"}\n' * 10_000)
        self.payload = json.dumps({"session_id": "other", "cwd": str(self.project)}).encode()
        self.run_hook(["idle"])
        (index,) = self.state.glob("jwz-*")
        original = json.loads(self.originals()["store index"])
        try:
            given = json.loads(content)
            changed = {key: value for key, value in given.items() if key not in original or value != original[key]}
            content = json.dumps({**json.loads(index.read_bytes()), **changed}).encode()
        except (ValueError, AttributeError, RecursionError):
            pass
        index.write_bytes(content)

    def write_triage_mark(self, content: bytes) -> None:
        """Write `content` as the mark of the last block, and a configuration with which the hook reads it."""
        config = self.project / ".claude/tailhook.json"
        config.write_text('{"triage": {"while_active": "progress"}}')
        path = self.project / ".claude/triage_state/x_triage.json"
        folder = os.stat(path.parent)
        digest = _core.fingerprint(path.name.encode())
        session = _core.fingerprint(b"mine")
        mark = self.state / f"{path.name}-{folder.st_dev:x}-{folder.st_ino:x}-{digest:016x}-{session:016x}.seen"
        mark.write_bytes(content)

    def run(self, place: str, content: bytes, machines: Iterable[str] = MACHINES) -> "Outcome":
        """Run the hook with these machines and plates, and with `content` in one place."""
        self.write(place, content, machines)
        return self.run_hook([",".join((*machines, "plates"))])

    def run_hook(self, argv: list[str]) -> "Outcome":
        """Run the hook in this process, with files as its standard descriptors."""
        environment = {
            b"HOME": os.fsencode(self.home),
            b"TAILHOOK_LOG": os.fsencode(self.log),
            b"TAILHOOK_NO_AUTOSTART": b"1",
        }
        self.log.unlink(missing_ok=True)
        names = [self.top / name for name in ("stdin", "stdout", "stderr")]
        names[0].write_bytes(self.payload)
        kept = dict(posix.environ)
        saved = [os.dup(fd) for fd in (0, 1, 2)]
        cwd = os.getcwd()
        try:
            for fd, name in enumerate(names):
                opened = os.open(name, os.O_RDWR | (os.O_CREAT | os.O_TRUNC if fd else 0), 0o600)
                os.dup2(opened, fd)
                os.close(opened)
            posix.environ.clear()
            posix.environ.update(environment)
            os.chdir(self.project)
            code, _ = process.answer_event(argv, 1)
        finally:
            os.chdir(cwd)
            posix.environ.clear()
            posix.environ.update(kept)
            for fd, copy in enumerate(saved):
                os.dup2(copy, fd)
                os.close(copy)
        decided = (
            [tuple(line.split("\t")[1:3]) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        )
        spool = self.state / "events"
        return Outcome(
            code, names[1].read_bytes(), names[2].read_text(), decided, spool.read_bytes() if spool.exists() else b""
        )


class Outcome:
    """The result of one run of the hook.  decided: (machine, decision) of each machine that was asked, in order."""

    def __init__(self, code: int, stdout: bytes, stderr: str, decided: list, spool: bytes) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.decided = decided
        self.spool = spool

    def check_answer(self) -> None:
        """Check that the answer is valid, and that no unexpected exception was reported."""
        assert self.code in (0, 1, 2)
        assert self.stdout.count(b"\n") == (1 if self.stdout else 0)
        assert not self.stdout or isinstance(json.loads(self.stdout), dict)
        assert not UNFORESEEN.search(self.stderr), self.stderr

    def check_machines(self, machines: tuple, concerned: tuple) -> None:
        """Check that every machine was asked until one blocked, and that only those concerned decided otherwise."""
        asked = [name for name, _ in self.decided]
        assert asked == list(machines[: len(asked)]), self.decided
        assert len(asked) == len(machines) or (asked and self.decided[-1][1] == "block"), (self.decided, self.stderr)
        for name, decision in self.decided:
            assert name in concerned or decision == DECIDED[name], (self.decided, self.stderr)


def check(surroundings: Surroundings, place: str, content: bytes) -> None:
    """Run the hook with `content` in one place. Raises AssertionError if that changes another machine's decision."""
    check_run(surroundings, place, content, MACHINES)
    if "gate" in CONCERNED[place]:
        check_run(surroundings, place, content, GATE)


def check_run(surroundings: Surroundings, place: str, content: bytes, machines: tuple) -> None:
    """Run the hook with some machines and check its traces."""
    outcome = surroundings.run(place, content, machines)
    outcome.check_answer()
    if place == "payload":
        check_payload(outcome, content, machines)
        return
    if outcome.decided or machines != GATE or "config" not in place:  # without rules the gate is not asked
        outcome.check_machines(machines, CONCERNED[place])
    events = [json.loads(line) for line in outcome.spool.splitlines()]
    assert [event["session_id"] for event in events] == ["mine"]
    kind = "stop_blocked" if "block" in [decision for _, decision in outcome.decided] else "stop"
    assert events[0]["event_type"] in (kind, f"{kind}_paused")


def check_payload(outcome: Outcome, content: bytes, machines: tuple) -> None:
    """Check that a payload reaches every machine if it is an object and an agent's own stop."""
    try:
        payload = json.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return
    if not isinstance(payload, dict) or payload.get("agent_id"):
        return
    name = payload.get("hook_event_name")
    if name in ("Stop", "") or not isinstance(name, str):
        cwd = payload.get("cwd")
        if isinstance(cwd, str) and cwd.startswith("/") and "project" not in cwd:
            return  # another project, if it can be one
        outcome.check_machines(machines, CONCERNED["payload"])
        session = payload.get("session_id")
        assert bool(outcome.spool) is (isinstance(session, str) and session != "")


# ---- every value at every place ----------------------------------------------


def paths_in(value: object, path: tuple = ()) -> list[tuple]:
    """Return the path to each value in a JSON value, itself included."""
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += paths_in(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += paths_in(inner, (*path, index))
    return found


def replaced(value: object, path: tuple, written: str) -> bytes:
    """Return the JSON text of `value` with another value at `path`."""
    marked = json.loads(json.dumps(value))
    if not path:
        return written.encode()
    inner = marked
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = "@@"
    return json.dumps(marked).replace('"@@"', written, 1).encode()


def every_json_value(text: bytes) -> list[bytes]:
    """Return the JSON text with each of its values replaced by each kind of value."""
    value = json.loads(text)
    return [replaced(value, path, written) for path in paths_in(value) for written in JSON_VALUES]


def every_line_value(text: bytes) -> list[bytes]:
    """Return JSON lines with each value of each line replaced by each kind of value."""
    lines = text.splitlines()
    return [
        b"\n".join((*lines[:number], changed, *lines[number + 1 :], b""))
        for number, line in enumerate(lines)
        for changed in every_json_value(line)
    ]


def every_text_value(text: bytes) -> list[bytes]:
    """Return a front matter with each of its values replaced by each kind of value."""
    return [
        text[: match.end(1)] + b" " + value + text[match.end() :]
        for match in re.finditer(rb"^(\w+:)(.*)$", text, re.M)
        for value in TEXT_VALUES
    ] + TEXT_VALUES


def contents(place: str, original: bytes) -> list[bytes]:
    """Return the contents to try in a place."""
    if place in ("idle file", "ralph file"):
        return every_text_value(original)
    if place in ("idle store", "transcript"):
        return every_line_value(original)
    if place in ("stop flag", "git head", "daemon argv", "triage mark"):
        return [*TEXT_VALUES, *(value.encode() for value in JSON_VALUES)]
    return every_json_value(original)
