"""The hardest cases for a hook: stores, transcripts, messages and states in their worst shape.

Each case writes what it needs into a folder and returns whether the hook must block. `test_hook_worst_cases.py` times
them, `instructions.py` counts their instructions, both beside bare Python.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tailhook._core import iso_time
from tailhook.bench.cases import (
    DONE,
    BenchProject,
    Case,
    gate_rules,
    idle_loop,
    memory_folder,
    no_state,
    ralph_loop,
    triage_pipeline,
)

NOT_YET = "Not yet."
ALL = "idle,ralph,triage,memory"
TOOL_OUTPUT = (
    json.dumps({"type": "user", "message": {"content": [{"type": "tool_result", "content": "x" * 4000}]}}) + "\n"
)
KEYWORDS = "We decided on it because of the error, fixed by a workaround; cannot prefer it, TODO for now.\n"
NOTE = b'{"type":"message","id":"01HNOTE0000000000000000000","topic_id":"01HOTHER00000000000000000","body":"%s"}\n' % (
    b"x" * 170
)
Write = Callable[[IO[str]], object]


def said(words: str, number: int = 0) -> str:
    """Return a line of a transcript with words of the assistant."""
    message = {"id": f"m{number}", "role": "assistant", "content": [{"type": "text", "text": words}]}
    return json.dumps({"type": "assistant", "message": message, "timestamp": iso_time(2e9)}) + "\n"


# ---- transcripts -------------------------------------------------------------


def line_of_1_gb(out: IO[str]) -> None:
    out.write(said(DONE))
    out.write('{"type":"user","message":{"content":"')
    for _ in range(1024):
        out.write("x" * (1 << 20))
    out.write('"}}\n')


def tool_output_of_1_gb(out: IO[str]) -> None:
    out.write(said(DONE))
    block = TOOL_OUTPUT * 1000
    for _ in range((1 << 30) // len(block) + 1):
        out.write(block)


def backticks(out: IO[str]) -> None:
    runs = "".join("`" * length + " " for length in range(1, 3000))
    out.write(said(f"{runs}\n\n{DONE}"))


def message_of_16_mb(out: IO[str]) -> None:
    out.write(said("word `code` word\n" * 920_000 + f"\n{DONE}"))


def tiny_records(out: IO[str]) -> None:
    out.write(said(DONE))
    out.write('{"type":"mode"}\n' * 100_000)


def repeated(line: str, size: int) -> Write:
    """Return a writer of `size` bytes of one line after the last message."""

    def write(out: IO[str]) -> None:
        out.write(said(DONE))
        block = line * (1 + (1 << 20) // len(line))
        for _ in range(size // len(block) + 1):
            out.write(block)

    return write


def joined_objects(out: IO[str]) -> None:
    out.write(said(DONE))
    for _ in range(4):
        out.write("{}" * 7_500_000 + "\n")


def blank_blocks(out: IO[str]) -> None:
    blocks = [{"type": "text", "text": " "}] * 500_000
    out.write(said(DONE))
    out.write(json.dumps({"type": "assistant", "message": {"id": "b", "content": blocks}}) + "\n")


def long_session(out: IO[str]) -> None:
    """Write fifty messages among a megabyte of tool output."""
    work = "- `parse` reads the *whole* line now, see `src/lines.py`; the test beside it shows why.\n"
    why = "We decided on one pass, because it is faster.\n\n```sh\nmake test\n```\n\nAlways run it first.\n\n"
    for number in range(50):
        out.write(TOOL_OUTPUT * 5 + said(why + work * 10, number))


def keyword_messages(count: int, size: int) -> Write:
    """Return a writer of `count` messages of `size` bytes, all keywords."""

    def write(out: IO[str]) -> None:
        for number in range(count):
            out.write(said(KEYWORDS * (size // len(KEYWORDS)), number))

    return write


def negated_keywords(out: IO[str]) -> None:
    out.write(said("not decided " * 27_000 + "decided"))


def small_tool_uses(out: IO[str]) -> None:
    """16 MiB of uses of tools that decide nothing: edits of other files, other commands, reads, and their results."""
    kinds = (
        ("Edit", "file_path", "/project/{}.md"),
        ("Bash", "command", "ls {}"),
        ("Read", "file_path", "/project/{}.py"),
    )
    number = 0
    while out.tell() < 16 << 20:
        name, key, value = kinds[number % 3]
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {key: value.format(number)}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "is_error": False}
        for kind, block in (("assistant", use), ("user", result)):
            out.write(json.dumps({"type": kind, "message": {"content": [block]}}) + "\n")
        number += 1


HARD_COMMANDS = (
    ("env", " -S a", ""),
    ("echo", " $(( '(' ) )", ""),
    ("echo ", "@()", ""),
    ('echo "', "`a` ", '"'),
    ("nix ", "-c ", ""),
    ("nice " * 25, "-n a ", ""),
    ("cat <<a\n", "$(a)\n", "a\n"),
    ("[[ a ]]", " && [[ a\n]]", ""),
)


def hard_commands(out: IO[str]) -> None:
    """An edit, and commands of 20 KB that name the program and are hard to take apart: some count as runs for that."""
    for number, (head, part, tail) in enumerate([("", "", ""), *HARD_COMMANDS]):
        command = f"echo pytest; {head}{part * (20_000 // max(1, len(part)))}{tail}"
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        if not head:
            use = {**use, "name": "Edit", "input": {"file_path": "/project/a.py"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "is_error": False}
        for kind, block in (("assistant", use), ("user", result)):
            out.write(json.dumps({"type": kind, "message": {"content": [block]}}) + "\n")


def nothing_more(out: IO[str]) -> None:
    """Write nothing: the transcript stays as it is."""


# ---- states ------------------------------------------------------------------


def prompt_of_128_kib(folder: Path) -> Path:
    path = ralph_loop(folder)
    path.write_text(path.read_text() + "x" * (128 << 10))
    return path


def triage_state_of_2_mb(folder: Path, pending: int = 500) -> Path:
    path = triage_pipeline(folder)
    result = {"is_true_positive": False, "group_id": "g", "root_cause": "c" * 100, "reasoning": "because " * 60}
    entry = {"name": "f", "signature": "s" * 120, "diagnosis": "d" * 80, "route": "llm-triage", "result": result}
    statuses = ["completed"] * (2000 - pending) + ["pending"] * pending
    entries = [{**entry, "name": f"f{n}", "status": status} for n, status in enumerate(statuses)]
    path.write_text(json.dumps({"phase": "triage", "batch_size": 5, "entries": entries}, indent=2))
    return path


def groups_with_like_names(folder: Path) -> Path:
    """Write two thousand groups whose folders would have one name; work goes on in the last one."""
    path = triage_pipeline(folder)
    groups = {
        f"detection-of-callbacks-that-are-registered-by-name-only-in-module-{number}": {
            "root_cause": "c" * 100, "entry_count": 2, "sub_phase": "complete", "plans_written": 10,
            "synthesis_written": True, "reviews_written": 4, "task_file": "/plans/task.md",
        }
        for number in range(2000)
    }  # fmt: skip
    groups[list(groups)[-1]].update(sub_phase="planning", plans_written=0)
    state = {"phase": "fix-planning", "entries": [], "fix_planning": {"fix_plans_dir": "/plans", "groups": groups}}
    path.write_text(json.dumps(state, indent=2))
    return path


def triage_state_that_moves(folder: Path) -> Path:
    return triage_state_of_2_mb(folder, pending=0)


def store_of_a_million(topic: str) -> Callable[[Path], Path]:
    """Return a function that writes a store: a million messages of another topic around the loop's."""

    def begin(folder: Path) -> Path:
        path = idle_loop(60)(folder)
        loop = path.read_bytes()
        first, second = loop.splitlines(keepends=True)
        notes = NOTE * 1_000_000
        pieces = {
            "first": (first, notes, second),
            "last": (notes, loop),
            "absent": (notes,),
            "buried": (loop, notes),
        }[topic]
        with path.open("wb") as out:
            for piece in pieces:
                out.write(piece)
        return path

    return begin


def budgets_with_8_kb_to_read(folder: Path) -> Path:
    """Make a loop with budgets whose last stop has read the transcript but for its end."""
    [transcript] = folder.parent.glob("*.jsonl")
    there, at = transcript.stat(), time.time()
    read, at_ms = there.st_size - 8192, round(at * 1000)
    marks = {"spent": f"5000 {at_ms} {there.st_ino}:{read}:{at_ms} -", "still": f"{read}@{at:.3f} 0 1 0 0"}
    began = {"began": iso_time(at - 3600), "briefed": "bench", "stuck_after": 4}
    return idle_loop(60, **began, tokens=10**9, minutes=10**6, **marks)(folder)


def store_of_5_gb(folder: Path) -> Path:
    """Make a store of one line without an end."""
    path = folder / ".jwz" / "messages.jsonl"
    path.parent.mkdir()
    path.touch()
    os.truncate(path, 5 << 30)
    return path


# ---- the cases ---------------------------------------------------------------


ACTIVE = idle_loop(60)  # seconds ago


@dataclass(frozen=True)
class Worst:
    """One case.

    about: its name in the table.
    write: appends to the transcript.
    machine: the machine that is asked.
    begin: writes the state, as in `Case`.
    blocks: whether the agent must continue.
    size: the size of the transcript before `write`, one of `tailhook.bench.cases.SIZES`.
    profile: the profile of the memory machine.
    """

    about: str
    write: Write = nothing_more
    machine: str = "idle"
    begin: Callable[[Path], Path | None] = ACTIVE
    blocks: bool = True
    size: str = "10 KB"
    profile: str = "seed"


CASES = [
    Worst("one line of 1 GB after the last text", line_of_1_gb),
    Worst("1 GB of tool output after the last text", tool_output_of_1_gb),
    Worst("a last message of nothing but backticks, 4.5 MB", backticks, blocks=False),
    Worst("a last message of 16 MB", message_of_16_mb, blocks=False),
    Worst("100,000 tiny records", tiny_records, blocks=False),
    Worst("64 MB of empty lines", repeated("\n", 64 << 20)),
    Worst("64 MB of {} lines", repeated("{}\n", 64 << 20)),
    Worst("64 MB of the shortest lines that are read", repeated('{"a":"0123456789ab"}\n', 64 << 20)),
    Worst("four lines of 15 MB {}{}…", joined_objects, blocks=False),
    Worst("half a million blank text blocks", blank_blocks, blocks=False),
    *(
        Worst(f"a store of a million messages, the topic {topic}", begin=store_of_a_million(topic))
        for topic in ("first", "last", "buried")
    ),
    Worst("a store of a million messages, the topic absent", begin=store_of_a_million("absent"), blocks=False),
    Worst("a loop of 2,000 iterations", begin=idle_loop(60, earlier=2000)),
    Worst("budgets of a loop, 10 KB", begin=budgets_with_8_kb_to_read),
    Worst("budgets of a loop, 10 GB", begin=budgets_with_8_kb_to_read, size="10 GB"),
    Worst("a store of 5 GB", begin=store_of_5_gb, blocks=False),
    Worst("a prompt of 128 KiB, all machines", machine=ALL, begin=prompt_of_128_kib, size="500 MB"),
    Worst("a triage state of 2 MB, all machines", machine=ALL, begin=triage_state_of_2_mb, size="500 MB"),
    Worst("a triage state of 2 MB that moves on", machine="triage", begin=triage_state_that_moves),
    Worst("a triage state of 2,000 groups with like names", machine="triage", begin=groups_with_like_names),
    Worst("memory, 50 long messages", long_session, "memory", memory_folder),
    Worst("memory, 50 messages of 1 MB", keyword_messages(50, 1 << 20), "memory", memory_folder),
    Worst("memory, one message of 15 MB", keyword_messages(1, 15 << 20), "memory", memory_folder),
    Worst("memory, a line of 320 KB of negations", negated_keywords, "memory", memory_folder, False, profile="tuned"),
    Worst("memory, 64 MB of empty lines", repeated("\n", 64 << 20), "memory", memory_folder, False),
    Worst("memory, four lines of 15 MB {}{}…", joined_objects, "memory", memory_folder, False),
    Worst("gate, 16 MB of small tool uses", small_tool_uses, "gate", gate_rules, False),
    Worst("gate, commands that are hard to take apart", hard_commands, "gate", gate_rules, False),
    Worst("a transcript of 500 MB, all machines", machine=ALL, begin=memory_folder, blocks=False, size="500 MB"),
]  # fmt: skip


class WorstStop(BenchProject):
    """An agent that is about to stop, with the files of a case."""

    def __init__(self, folder: Path, worst: Worst, transcript: Path | None = None) -> None:
        """transcript: the transcript to stop with, instead of the one that the case wrote."""
        super().__init__(
            folder / "project", Case(worst.machine, worst.about, NOT_YET, worst.blocks, no_state), worst.size
        )
        self.large: Path | None = None
        changed = worst.begin(self.folder)
        if changed and changed.name == "messages.jsonl":
            self.large, self.length = changed, changed.stat().st_size
        else:
            self.changed = changed
            self.before = changed.read_bytes() if changed and changed.exists() else None
        with self.transcript.open("a" if worst.write is nothing_more else "w") as out:
            worst.write(out)
        if transcript:
            payload = json.loads(self.payload.read_text())
            self.payload.write_text(json.dumps({**payload, "transcript_path": str(transcript)}))
        if worst.profile != "seed":
            config = self.folder / ".config" / "tailhook" / "config.json"
            config.parent.mkdir(parents=True)
            config.write_text(json.dumps({"memory": {"profile": worst.profile}}))

    def reset(self) -> None:
        """Put the state back as it was. A store has only grown, so it is cut."""
        super().reset()
        if self.large:
            os.truncate(self.large, self.length)

    def check(self) -> None:
        """Run the hook until a large store has been read for the first time, and check its decision."""
        while self.large and "for the first time" in self.run_once():
            continue
        self.reset()
        super().check()

    def run_once(self) -> str:
        """Run the hook and return its words on stderr."""
        with self.payload.open() as payload:
            done = subprocess.run(self.hook, stdin=payload, env=self.env, capture_output=True, text=True, check=False)
        return done.stderr

    def remove(self) -> None:
        """Remove the case's files; some are large."""
        shutil.rmtree(self.folder.parent)
