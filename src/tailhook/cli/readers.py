"""The reader of a command's output: the main agent of its session, or a sub-agent."""

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tailhook._core import parse_json, reverse_lines
from tailhook.hook.payload import MAX_RECORD_BYTES
from tailhook.hosts import current_session
from tailhook.hosts.claude_code import NAME, TRANSCRIPT_FOLDERS
from tailhook.install.hooks_file import hooks_file_of

MAX_TAIL_BYTES = 1 << 20  # read from the end of a sub-agent's transcript
START = re.compile(r"\b(loop|ralph)\s+start\b")


def reading_session() -> str:
    """Return the session whose main agent reads this command's output; "" without one, or if a sub-agent reads it.

    A sub-agent's shell has the session's environment (Claude Code 2.1.329). But the newest record of its transcript is
    the call of this command. In Codex, CODEX_THREAD_ID is the sub-agent's own thread.
    """
    session = current_session()
    is_in_codex = bool(session) and os.environ.get("CODEX_SESSION_ID") == session
    if is_in_codex and os.environ.get("CODEX_THREAD_ID", session) != session:
        return ""
    return session if session and not any(map(is_starting, sub_agent_transcripts(session))) else ""


def sub_agent_transcripts(session: str) -> Iterator[Path]:
    """Yield the paths of the transcripts of a session's sub-agents in Claude Code 2.1.2 and later."""
    for folder in TRANSCRIPT_FOLDERS:
        transcripts = hooks_file_of(NAME).user_folder / folder
        yield from transcripts.glob(f"*/{glob.escape(session)}/subagents/**/agent-*.jsonl")


def is_starting(transcript: Path) -> bool:
    """Return whether the newest call in a transcript is a command that starts a loop, and has no result yet."""
    try:
        with transcript.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - MAX_TAIL_BYTES)
            for _, line in reverse_lines(file, start, None, MAX_RECORD_BYTES, b'"message"'):
                record = parse_json(line)
                if not isinstance(record, dict) or record.get("type") != "assistant":
                    return False
                if any(map(is_start, blocks_of(record))):
                    return True
    except (OSError, ValueError):
        pass
    return False


def blocks_of(record: dict[str, Any]) -> list[Any]:
    """Return the content blocks of a record's message, [] if there is none."""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def is_start(block: object) -> bool:
    """Return whether a content block is the call of a command that starts a loop."""
    given = block.get("input") if isinstance(block, dict) else None
    command = given.get("command") if isinstance(given, dict) else None
    return isinstance(command, str) and START.search(command) is not None
