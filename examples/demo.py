"""A loop from its start to its completion, on a large transcript, through the argv that a host would run.

usage: demo.py [MEGABYTES]        the transcript's size, 500 when not given
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tailhook.cli.output import coloured, say
from tailhook.hosts.command import hook_command, real_interpreter

SIGNAL = "<loop-done>COMPLETE</loop-done>"
STOPS = (
    ("says what is left", "Two tests fixed, three still fail."),
    ("shows the signal in a fence", f"When all is done I will write:\n\n```\n{SIGNAL}\n```\n\nOne test still fails."),
    ("names the signal in backticks", f"I must not write `{SIGNAL}` yet: the linter complains."),
    ("gives the signal", f"All tests pass, the linter is quiet.\n\n{SIGNAL}"),
    ("stops once more", "Anything else?"),
)
GREEN, YELLOW, BLUE, GREY = 32, 33, 34, 90


def main() -> None:
    """Play the session and print what became of each stop."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(prefix="tailhook-demo-") as folder:
        session = Session(Path(folder), megabytes << 20)
        size = session.transcript.stat().st_size
        say(f"A transcript of {coloured(f'{size / (1 << 20):,.0f} MB', BLUE)}, one JSON record a line.", "")
        prompt = "Make the tests pass."
        say(coloured(f"$ tailhook loop start --max 8 '{prompt}'", GREY))
        say(session.tailhook("loop", "start", "--max", "8", prompt))
        bare = statistics.median(session.bare() for _ in range(20))
        for number, (about, words) in enumerate(STOPS, 1):
            session.show(number, about, words, bare)
        verdict = json.loads(session.tailhook("loop", "status", "--json"))
        assert verdict["state"]["event"] == "DONE", "the demo must end with a completed loop"
        assert verdict["state"]["reason"] == "COMPLETE"
        say(f"The store says {coloured('DONE', GREEN)}, reason COMPLETE.")


class Session:
    """A project and its agent's session."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        (folder / ".git").mkdir()
        self.env = {"PATH": os.defpath, "HOME": str(folder), "CLAUDE_CODE_SESSION_ID": "demo"}
        self.hook = hook_command("idle")
        self.transcript = folder / "session.jsonl"
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "output line\\n" * 80}
        filler = json.dumps({"type": "user", "message": {"role": "user", "content": [result]}, "uuid": "u"}) + "\n"
        block = filler * 1000
        with self.transcript.open("w") as out:
            for _ in range(max(1, size // len(block))):
                out.write(block)

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

    def say(self, number: int, words: str) -> None:
        """The agent's last message of a turn, as the host writes it."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        message = {"id": f"msg_{number}", "role": "assistant", "content": [{"type": "text", "text": words}]}
        with self.transcript.open("a") as out:
            out.write(json.dumps({"type": "assistant", "message": message, "timestamp": stamp}) + "\n")

    def stop(self, words: str) -> tuple[subprocess.CompletedProcess[str], float]:
        """Run the hook as the host does; returns the process and its milliseconds."""
        payload = {
            "session_id": "demo",
            "cwd": str(self.folder),
            "transcript_path": str(self.transcript),
            "hook_event_name": "Stop",
            "last_assistant_message": words,
        }
        return self.timed(self.hook, json.dumps(payload))

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

    def show(self, number: int, about: str, words: str, bare: float) -> None:
        """One stop: what the agent said, what the hook answered, how long it took."""
        self.say(number, words)
        done, milliseconds = self.stop(words)
        say(f"Stop {number}: the agent {about}.", *(coloured(f"  │ {line}", GREY) for line in words.split("\n")))
        if done.returncode == 2:
            decision = coloured("go on", YELLOW)
            reason = json.loads(done.stdout)["reason"].partition(". ")[0] + "."
        else:
            decision, reason = coloured("may stop", GREEN), "(nothing on stdout, exit code 0)"
        say(f"  {decision}  {reason}")
        took = coloured(f"{milliseconds:.1f} ms", BLUE)
        say(f"  {took}, bare Python {bare:.1f} ms", "")


if __name__ == "__main__":
    main()
