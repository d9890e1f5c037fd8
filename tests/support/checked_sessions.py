"""Writes sessions of Claude Code (2.1.329) with edits and commands, by the agent and by sub-agents, at given times."""

import json
import os
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

numbers = count(1)


def stamp(at: float) -> str:
    """Return Unix seconds in the form of a record's timestamp."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Agent:
    """The agent of a session, or one of its sub-agents.

    path: of its transcript.
    folder: in which it works.
    agent_id: of a sub-agent; "" for the session's own agent.
    """

    def __init__(self, path: Path, folder: Path, session: str = "mine", agent_id: str = "") -> None:
        self.path = path
        self.folder = folder
        self.session = session
        self.agent_id = agent_id

    def record(self, kind: str, content: object, at: float, **members: object) -> dict:
        """Return a record of the agent."""
        message: dict = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"model": "m", "id": f"msg_{next(numbers)}", "type": "message"}
        agent = {"agentId": self.agent_id} if self.agent_id else {}
        return {
            "parentUuid": None,
            "isSidechain": bool(self.agent_id),
            **agent,
            "userType": "external",
            "cwd": str(self.folder),
            "sessionId": self.session,
            "version": "2.1.329",
            "message": message,
            "type": kind,
            "uuid": f"00000000-0000-4000-8000-{next(numbers):012}",
            "timestamp": stamp(at),
            **members,
        }

    def write(self, *records: dict) -> None:
        """Append records to the transcript, at the time of the last one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as out:
            out.writelines(f"{json.dumps(one, separators=(',', ':'))}\n" for one in records)
        if "timestamp" in records[-1]:
            at = datetime.fromisoformat(records[-1]["timestamp"]).timestamp()
            os.utime(self.path, (at, at))

    def write_words(self, words: str, at: float) -> None:
        """Write a message."""
        self.write(self.record("assistant", [{"type": "text", "text": words}], at))

    def use(self, name: str, at: float, takes: float = 0.5, failed: bool = False, task: str = "", **given) -> str:
        """Write a use of a tool, and its result after some seconds; return the use's id.

        task: the id of the background task that the result names; "" for none.
        """
        use, result = self.records_of(name, at, takes, failed, task, **given)
        self.write(use)
        self.write(result)
        return use["message"]["content"][0]["id"]

    def records_of(
        self, name: str, at: float, takes: float = 0.5, failed: bool = False, task: str = "", **given
    ) -> tuple[dict, dict]:
        """Return the records of a use and its result; see `use`."""
        use_id = f"toolu_{next(numbers):024}"
        use = self.record("assistant", [{"type": "tool_use", "id": use_id, "name": name, "input": given}], at)
        text = (
            f"Command running in background with ID: {task}. Output is being written to: /tmp/{task}" if task else "ok"
        )
        result = {"tool_use_id": use_id, "type": "tool_result", "content": text, "is_error": failed}
        printed = {"stdout": text, **({"backgroundTaskId": task} if task else {})}
        return use, self.record("user", [result], at + takes, toolUseResult=printed)

    def edit(self, path: str, at: float, name: str = "Edit", **more) -> str:
        """Edit a file of the project, or any file by its absolute path."""
        key = "notebook_path" if name == "NotebookEdit" else "file_path"
        return self.use(name, at, **{key: str(self.folder / path), "new_string": "x"}, **more)

    def run(self, command: str, at: float, **more) -> str:
        """Run a shell command."""
        return self.use("Bash", at, command=command, description="run it", **more)

    def begin(self, command: str, at: float, task: str) -> str:
        """Run a shell command in the background; return the use's id."""
        return self.use("Bash", at, task=task, command=command, description="run it", run_in_background=True)

    def notice(self, use_id: str, at: float, task: str, code: int) -> None:
        """Write the notification about the end of a command in the background."""
        status = "completed" if code == 0 else "failed"
        words = (
            f"<task-notification>\n<task-id>{task}</task-id>\n<tool-use-id>{use_id}</tool-use-id>\n"
            f"<output-file>/tmp/{task}.output</output-file>\n<status>{status}</status>\n"
            f'<summary>Background command "run it" {status} (exit code {code})</summary>\n</task-notification>'
        )
        self.write(self.record("user", words, at))

    def type_command(self, command: str, at: float) -> None:
        """Write a command that a person typed with `!`, and its output."""
        self.write(self.record("user", f"<bash-input>{command}</bash-input>", at))
        self.write(self.record("user", "<bash-stdout>ok</bash-stdout><bash-stderr></bash-stderr>", at + 0.5))

    def sub_agent(self, agent_id: str, folder: str = "") -> "Agent":
        """Return a sub-agent of the session.  folder: of its transcript in that of the sub-agents."""
        place = self.path.with_suffix("") / "subagents" / folder
        return Agent(place / f"agent-{agent_id}.jsonl", self.folder, self.session, agent_id)

    def compact(self, at: float, again: int = 0) -> None:
        """Compact the session.  again: the number of old records that are written a second time."""
        lines = self.path.read_text().splitlines()[:again]
        with self.path.open("a") as out:
            out.writelines(f"{line}\n" for line in lines)
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
        self.write({**boundary, "uuid": f"c{next(numbers)}", "timestamp": stamp(at), "sessionId": self.session})
        self.write(self.record("user", "This session is being continued.", at, isCompactSummary=True))
