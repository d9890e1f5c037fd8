"""Run every machine's hook on a large transcript with a host's argv, and print the decisions and their time.

Then show the board with made-up sessions for a few seconds; without a terminal, a picture of it in words.

usage: demo.py [MEGABYTES]        the transcript's size, 500 when not given
"""

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tailhook.bench.cases import write_transcript
from tailhook.cli.output import coloured, print_lines
from tailhook.install.command import hook_command
from tailhook.pool.installation import real_interpreter

SIGNAL = "<loop-done>COMPLETE</loop-done>"
STOPS = (
    ("reports what is left", "Two tests fixed, three still fail."),
    ("shows the signal in a fence", f"When all is done I will write:\n\n```\n{SIGNAL}\n```\n\nOne test still fails."),
    ("names the signal in backticks", f"I must not write `{SIGNAL}` yet: the linter complains."),
    ("gives the signal", f"All tests pass, the linter is quiet.\n\n{SIGNAL}"),
    ("stops once more", "Anything else?"),
)
RALPH_STOPS = (
    ("mentions the promise", "I will promise TESTS GREEN when the last test passes."),
    ("keeps it", "The last test passes. <promise>TESTS GREEN</promise>"),
)
TRIAGE_STOPS = (
    ("has one entry left to triage", "What is next?"),
    ("has investigated it", "That one is a false positive."),
)
MEMORY_STOPS = (
    ("has decided something", "We chose the queue because it survives restarts.\nWe picked one table over two."),
    ("stops again, having saved it", "Saved."),
)
ENTRY = {"name": "send_mail", "route": "llm-triage", "status": "pending", "result": None}
GREEN, YELLOW, BLUE, GREY = 32, 33, 34, 90


def main() -> None:
    """Play the session and print what became of each stop."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(prefix="tailhook-demo-") as folder:
        session = Session(Path(folder), megabytes << 20)
        size = session.transcript.stat().st_size
        print_lines(f"A transcript of {coloured(f'{size / (1 << 20):,.0f} MB', BLUE)}, one JSON record a line.", "")
        prompt = "Make the tests pass."
        print_lines(coloured(f"$ tailhook loop start --max 8 '{prompt}'", GREY))
        print_lines(session.tailhook("loop", "start", "--max", "8", prompt))
        bare = statistics.median(session.bare() for _ in range(20))
        session.play("idle", STOPS, bare)
        verdict = json.loads(session.tailhook("loop", "status", "--json"))
        assert verdict["state"]["event"] == "DONE", "the demo must end with a completed loop"
        assert verdict["state"]["reason"] == "COMPLETE"
        print_lines(f"The state in the store is {coloured('DONE', GREEN)}, with the reason COMPLETE.", "")

        command = ("ralph", "start", "--completion-promise", "TESTS GREEN", prompt)
        print_lines(coloured(f"$ tailhook {shlex.join(command)}", GREY), session.tailhook(*command))
        session.play("ralph", RALPH_STOPS, bare)
        assert not (session.folder / ".claude" / "ralph-loop.local.md").exists(), "the promise must end the loop"

        path = session.folder / ".claude" / "triage_state" / "demo_triage.json"
        path.parent.mkdir()
        print_lines(coloured("A triage pipeline with one entry left.", GREY))
        for stop, status in zip(TRIAGE_STOPS, ("pending", "completed"), strict=True):
            path.write_text(json.dumps({"phase": "triage", "entries": [{**ENTRY, "status": status}]}))
            session.play("triage", (stop,), bare)
        assert json.loads(path.read_text())["phase"] == "aggregation", "the pipeline must move on"

        print_lines(coloured("The memory machine, asked by name.", GREY))
        session.play("memory", MEMORY_STOPS, bare)

    print_lines(coloured("$ tailhook board", GREY), "Every session's status, live; these are made up.")
    sys.stdout.flush()
    board = [sys.executable, str(Path(__file__).with_name("board.py")), "--live"]
    subprocess.run(board, check=True)


class Session:
    """A project and its agent's session."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        (folder / ".git").mkdir()
        self.env = {"PATH": os.defpath, "HOME": str(folder), "CLAUDE_CODE_SESSION_ID": "demo"}
        self.transcript = folder / "session.jsonl"
        self.turns = 0
        write_transcript(self.transcript, size, "Reading the tests.")

    def tailhook(self, *words: str) -> str:
        """Run the command as the agent would."""
        done = subprocess.run(
            [sys.executable, "-m", "tailhook", *words],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def add_message(self, number: int, words: str) -> None:
        """The agent's last message of a turn, as the host writes it."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        message = {"id": f"msg_{number}", "role": "assistant", "content": [{"type": "text", "text": words}]}
        with self.transcript.open("a") as out:
            out.write(json.dumps({"type": "assistant", "message": message, "timestamp": stamp}) + "\n")

    def stop(self, machine: str, words: str) -> tuple[subprocess.CompletedProcess[str], float]:
        """Run the hook as the host does; returns the process and its milliseconds."""
        payload = {
            "session_id": "demo",
            "cwd": str(self.folder),
            "transcript_path": str(self.transcript),
            "hook_event_name": "Stop",
            "last_assistant_message": words,
        }
        return self.timed(hook_command(machine), json.dumps(payload))

    def bare(self) -> float:
        """Milliseconds of an interpreter that does nothing."""
        return self.timed([real_interpreter(), "-I", "-S", "-c", "pass"], "")[1]

    def timed(self, argv: list[str], stdin: str) -> tuple[subprocess.CompletedProcess[str], float]:
        """Run a process; returns it and its milliseconds."""
        started = time.perf_counter()
        done = subprocess.run(
            argv, input=stdin, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        return done, (time.perf_counter() - started) * 1000

    def play(self, machine: str, stops: Iterable[tuple[str, str]], bare: float) -> None:
        """Stop after stop: what the agent said, what the hook answered, how long it took."""
        for about, words in stops:
            self.turns += 1
            self.add_message(self.turns, words)
            done, milliseconds = self.stop(machine, words)
            said = [coloured(f"  │ {line}", GREY) for line in words.split("\n")]
            print_lines(f"{machine}, stop {self.turns}: the agent {about}.", *said)
            if done.stdout:
                decision, reason = coloured("go on", YELLOW), json.loads(done.stdout)["reason"].split("\n")
            else:
                decision, reason = coloured("may stop", GREEN), done.stderr.split("\n")[:1]
            print_lines(
                f"  {decision}  {reason[0] or '(nothing on stdout, exit code 0)'}",
                *(f"         {line}" for line in reason[1:3]),
            )
            print_lines(f"  {coloured(f'{milliseconds:.1f} ms', BLUE)}, bare Python {bare:.1f} ms", "")


if __name__ == "__main__":
    main()
