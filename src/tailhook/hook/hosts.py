"""Other agent hosts: their payloads in our words, and our answers in theirs.  (docs/installing.md, "Other hosts")

Loaded only where `--host` names one of them. Claude Code's names are ours; those of the others are told apart by
themselves, so one table serves for all. What differs by host is the answer, and the transcript.
"""

import posix
from time import monotonic, sleep

from tailhook._core import parse_json, reverse_lines, unix_time
from tailhook.hook.answer import SPACED, answer
from tailhook.hook.payload import text
from tailhook.hook.process import FARTHEST, NEAR_END, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tailhook.hook.payload import Payload

    Message = tuple[str, list[tuple[bytes, float | None]]]

LAG = 1.0  # seconds that are given to a transcript to catch up (Copilot 1.0.102 writes it after 100 ms of quiet)
READ_EXIT_2 = ("codex", "gemini")  # the others take exit code 2 for a failure of the hook: their blocks exit 0
EVENTS = {
    "AfterAgent": "Stop",  # Gemini
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "PreCompress": "PreCompact",
    "beforeSubmitPrompt": "UserPromptSubmit",  # Cursor; `stop`, `sessionStart` and so on differ by a capital alone
    "agentStop": "Stop",  # Copilot
    "userPromptSubmitted": "UserPromptSubmit",
}
FIELDS = {
    "prompt_response": "last_assistant_message",  # Gemini
    "conversation_id": "session_id",  # Cursor
    "sessionId": "session_id",  # Copilot, camelCase
    "transcriptPath": "transcript_path",
    "agentName": "agent_id",
    "agent_name": "agent_id",  # Copilot, for event names in PascalCase
}


def event_name(name: str) -> str:
    """Our name of a host's event."""
    return EVENTS.get(name) or name[:1].upper() + name[1:]


def our_payload(theirs: "Payload") -> "Payload":
    """A payload with our names beside the host's own."""
    ours = dict(theirs)
    for name, our_name in FIELDS.items():
        if name in theirs:
            ours.setdefault(our_name, theirs[name])
    ours["hook_event_name"] = event_name(text(theirs, "hook_event_name"))
    if ours["hook_event_name"] == "Stop" and theirs.get("status") in ("aborted", "error"):
        ours["hook_event_name"] = "StopFailure"  # Cursor: a person or an error ended the turn, not the agent
    roots = theirs.get("workspace_roots")
    if isinstance(roots, list) and roots:
        ours.setdefault("cwd", roots[0])
    if "loop_count" in theirs:
        ours.setdefault("stop_hook_active", theirs["loop_count"] not in (0, None))
    return ours


def their_answer(host: str, fields: "dict[str, Any]") -> "dict[str, Any]":
    """Our answer in the host's words; empty where it has none for it."""
    if host == "codex":  # the very schema, with no other key allowed in it
        return fields
    if host == "gemini":
        return {**fields, "decision": "deny"} if "decision" in fields else fields
    if "decision" not in fields:
        return {}
    if host == "cursor":
        return {"followup_message": fields["reason"]}
    return {"decision": "block", "reason": fields["reason"]}


class OtherEvent(Event):
    """An event of another host than Claude Code, and how to answer it.

    host: "codex", "gemini", "cursor" or "copilot".
    """

    def __init__(self, host: str, theirs: "Payload", name: str, broken: str) -> None:
        super().__init__(our_payload(theirs), event_name(name), broken)
        self.host = host
        self.reader = self.last_message
        self.is_behind = host == "copilot" and self.stopped() > 0
        if not self.transcript_path():
            self.newest = "unknown", []

    def answer(self, fields: "dict[str, Any]", style: int = SPACED) -> None:
        """The answer to the host: one line of JSON on stdout, or nothing."""
        if theirs := their_answer(self.host, fields):
            answer(theirs, style)

    def exit_code(self, wanted: int | None) -> int | None:
        """The exit code of a block, None where each machine has its own."""
        return wanted if self.host in READ_EXIT_2 else 0

    def final_text(self, since: float | None = None) -> bytes:
        """What the agent said last.

        Gemini 0.61.0 sends all that it answered to one prompt, what was sent back included; one by one the answers are
        in its transcript, which is never behind.
        """
        if self.host == "gemini":
            answers = text(self.payload, "last_assistant_message").rstrip()
            for words, _ in self.newest_message(NEAR_END)[1]:
                last = words.decode("utf-8", "surrogatepass")
                if answers.endswith(last.strip()):
                    self.payload["last_assistant_message"] = last
        return super().final_text(since)

    def newest_message(self, farthest: int = FARTHEST) -> "Message":
        """The newest words of the agent's in the host's own transcript.

        One that is behind is read again until it has a record of the moment of the stop, or is given up. Where no words
        are found the outcome is "unknown": what another host's transcript lacks ends no loop.
        """
        deadline = monotonic() + LAG
        while self.newest is None:
            outcome, texts = super().newest_message(farthest)
            self.newest = outcome if texts else "unknown", texts
            if self.is_behind and monotonic() < deadline:
                self.newest = None
                sleep(0.01)
        return self.newest

    def last_message(self, fd: int, farthest: int, longest: int, lines: int) -> "Message":
        """Return the newest words in an open transcript, as `tailhook._core.last_message` does."""
        start = max(0, posix.fstat(fd).st_size - farthest)
        newest = None
        for _, line in reverse_lines(fd, start, None, longest):
            lines -= 1
            if lines < 0:
                break
            if newest is None:
                newest = unix_time(text(parsed(line), "timestamp")) or 0
                self.is_behind = self.is_behind and round(newest * 1000) < self.stopped()
            if b"assistant" not in line and b"gemini" not in line:
                continue
            record = parsed(line)
            words = words_of(record)
            if words.strip():
                return "text", [(words.encode("utf-8", "surrogatepass"), unix_time(text(record, "timestamp")))]
        return "unknown", []

    def stopped(self) -> float:
        """When the agent stopped, in Unix milliseconds; 0 where the host does not say."""
        stamp = self.payload.get("timestamp")
        if isinstance(stamp, str):
            return round((unix_time(stamp) or 0) * 1000)
        return stamp if isinstance(stamp, (int, float)) else 0


def parsed(line: bytes) -> "dict[str, Any]":
    """A transcript's record, empty for a line that is none."""
    try:
        record = parse_json(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def words_of(record: "dict[str, Any]") -> str:
    """What the agent says in a record of a host's transcript, "" for nothing.

    Codex: {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [BLOCK…]}}.
    Gemini: {"type": "gemini", "content": "…"}.
    Cursor: {"role": "assistant", "message": {"content": [BLOCK…]}}.
    Copilot: {"type": "assistant.message", "data": {"content": "…"}}.
    """
    if record.get("type") == "assistant.message":
        message = record.get("data")
    elif record.get("type") == "gemini":
        message = record
    elif record.get("type") == "response_item":
        message = record.get("payload")
        if not isinstance(message, dict) or message.get("role") != "assistant":
            return ""
    else:
        message = record.get("message") if record.get("role") == "assistant" else None
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    return "\n".join(text(block, "text") for block in blocks if isinstance(block, dict) and text(block, "text").strip())
