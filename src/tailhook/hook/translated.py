"""The event of another host than Claude Code: its payload in Claude Code's names, and the answer in the host's."""

import posix
from time import monotonic, sleep

from tailhook._core import get_text, reverse_lines, unix_time
from tailhook.hook.answer import SPACED, send_answer
from tailhook.hook.event import MAX_TRANSCRIPT_BYTES, TAIL_BYTES, HookEvent
from tailhook.hook.payload import MAX_RECORD_BYTES, MAX_RECORDS
from tailhook.hosts.reading import join_texts, parse_host_record, record_time, reverse_host_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from typing import Any

    from tailhook.hook.event import NewestMessage
    from tailhook.hook.payload import Payload
    from tailhook.hosts.protocols import TranslatedHost
    from tailhook.machines.protocols import Turn

LATE_TRANSCRIPT_TIMEOUT_S = 1.0
TRANSCRIPT_POLL_INTERVAL_S = 0.01
NAMES_OF_PLACES = "session_id", "cwd", "transcript_path"


def translate_event_name(host: "TranslatedHost", name: str) -> str:
    """Return Claude Code's name of a host's event."""
    return host.EVENTS.get(name) or name[:1].upper() + name[1:]


def translate_payload(host: "TranslatedHost", theirs: "Payload") -> "Payload":
    """Return a host's payload with Claude Code's fields beside its own.

    A null or an empty text in place of a session, a folder or a file is left out: Cursor 3.22 sends "" as the folder.
    """
    ours = {name: value for name, value in theirs.items() if value not in (None, "") or name not in NAMES_OF_PLACES}
    for name, our_name in host.FIELDS.items():
        if name in theirs:
            ours.setdefault(our_name, theirs[name])
    ours["hook_event_name"] = translate_event_name(host, get_text(theirs, "hook_event_name"))
    host.add_fields(ours)
    return ours


class TranslatedEvent(HookEvent):
    """An event of another host than Claude Code."""

    def __init__(self, host: "TranslatedHost", theirs: "Payload", name: str, broken: str, parent: int) -> None:
        super().__init__(translate_payload(host, theirs), translate_event_name(host, name), broken, parent)
        self.host = host
        self.agent_program = host.NAME
        self.gives_texts = bool(host.HOOKS_FILE.get("prompt_event"))
        self.is_late = host.WRITES_LATE and self.stopped_at_ms() > 0 and not super().last_text_block().strip()
        if not self.transcript_path():
            self.newest = "unknown", []

    def answer(self, fields: "dict[str, Any]", style: int = SPACED) -> None:
        """Write the answer in the host's words, one line of JSON on stdout; nothing if the host cannot express it."""
        if theirs := self.host.answer(fields):
            send_answer(dict(theirs), style)

    def exit_code(self, wanted: int | None) -> int | None:
        """Return the exit code of a block, None if each machine has its own."""
        return wanted if self.host.READS_EXIT_2 else 0

    def translated_turn(self) -> "Turn":
        """Return what the agent did since the stop before."""
        from tailhook.hook.translated_turns import TranslatedTurn

        return TranslatedTurn(self)

    def final_text(self, since: float | None = None) -> bytes:
        """Return the agent's last message in UTF-8: the payload's if the transcript may lack it."""
        said = super().last_text_block() if self.host.WRITES_LATE else ""
        return said.encode("utf-8", "surrogatepass") if said.strip() else super().final_text(since)

    def last_text_block(self) -> str:
        """Return the agent's last text. If the payload lists several, return the last one in the transcript.

        Waits for a late transcript.
        """
        text = super().last_text_block()
        if self.host.LISTS_ANSWERS or self.is_late:
            for words, _ in self.newest_message(TAIL_BYTES if text.strip() else MAX_TRANSCRIPT_BYTES)[1]:
                last = words.decode("utf-8", "surrogatepass")
                if text.rstrip().endswith(last.strip()):
                    return last
        return text

    def reverse_messages(
        self,
        fd: int,
        start: int,
        end: int,
        without: "Container[int]" = (),  # noqa: ARG002 - these hosts write no record twice
    ) -> "Iterator[tuple[bool, bytes, list[str | None]]]":
        """Yield the messages in a part of the host's open transcript, newest first."""
        for is_agents, words, tools, _ in reverse_host_messages(
            self.host, fd, start, end, MAX_RECORD_BYTES, MAX_RECORDS
        ):
            yield is_agents, words, [*tools]

    def newest_message(self, max_bytes: int = MAX_TRANSCRIPT_BYTES) -> "NewestMessage":
        """Return the newest assistant message in the host's own transcript.

        If the transcript is late, polls it for up to LATE_TRANSCRIPT_TIMEOUT_S until it has a record at least as new as
        the stop. Without any words the outcome is "unknown", so that a gap in another host's transcript ends no loop.
        """
        deadline = monotonic() + LATE_TRANSCRIPT_TIMEOUT_S
        while self.newest is None:
            outcome, texts = super().newest_message(max_bytes)
            self.newest = outcome if texts else "unknown", texts
            if self.is_late and monotonic() < deadline:
                self.newest = None
                sleep(TRANSCRIPT_POLL_INTERVAL_S)
        return self.newest

    def read_newest(self, fd: int, max_bytes: int) -> "NewestMessage":
        """Return the newest message in an open transcript, like `tailhook._core.last_message`. Raises OSError.

        Notes whether the transcript is late, by the time of its newest record.
        """
        start = max(0, posix.fstat(fd).st_size - max_bytes)
        newest = None
        for number, (_, line) in enumerate(reverse_lines(fd, start, None, MAX_RECORD_BYTES)):
            if number >= MAX_RECORDS:
                break
            if newest is None:
                newest = record_time(parse_host_record(line)) or 0
                self.is_late = self.is_late and round(newest * 1000) < self.stopped_at_ms()
            if self.host.RECORD_MARK not in line:
                continue
            record = parse_host_record(line)
            message = self.host.read_record(record)
            words = join_texts(message[1]) if message and message[0] else ""
            if words.strip():
                return "text", [(words.encode("utf-8", "surrogatepass"), record_time(record))]
        return "unknown", []

    def stopped_at_ms(self) -> float:
        """Return when the agent stopped, in Unix milliseconds; 0 if the payload has no time."""
        stamp = self.payload.get("timestamp")
        if isinstance(stamp, str):
            return round((unix_time(stamp) or 0) * 1000)
        return stamp if isinstance(stamp, (int, float)) else 0
