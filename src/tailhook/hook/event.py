"""One hook event. Facts for the machines are found out at their first use."""

import posix
from time import time

from tailhook._core import get_text, last_message, preload, repeated_records, reverse_messages
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import (
    MAX_RECORD_BYTES,
    MAX_RECORDS,
    environment,
    exists,
    project_folders,
    project_root,
    user_config,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from typing import Any

    from tailhook.hook.config import Config
    from tailhook.hook.payload import Payload
    from tailhook.hook.project_folders import ProjectFolders
    from tailhook.machines import Verdict
    from tailhook.machines.protocols import Turn

    # The result of `tailhook._core.last_message`: the outcome, and each text with its time.
    NewestMessage = tuple[str, list[tuple[bytes, float | None]]]

CLOCK_TOLERANCE_S = 2.0  # a record may be so much older than a state, and still count
MAX_TRANSCRIPT_BYTES = 64 << 20  # read from the end
TAIL_BYTES = 1 << 20  # read if the payload holds the last text block already


class HookEvent:
    """One hook event.

    payload: the host's, with Claude Code's names.
    broken: why the payload cannot be read, "" if it can.
    name: the event's, by Claude Code's name.
    now: the time, in Unix seconds.
    root: the project's folder: tailhook makes its files there.
    folders: the folders to search for a project's files, in order.
    parent: the id of the process that started the hook.
    has_ended_loop: whether an earlier machine has ended its loop at this stop.
    has_ended_own_loop: whether that was one of `tailhook loop start` or `tailhook ralph start`.
    has_paused_loop: whether the session's loop is paused at this stop.
    gives_texts: whether an answer at a prompt can give the agent a text.
    unbound_acts: whether any session may act on a state without a session.
    asked: the machines that the hook asks about it.
    agent_program: the name of the session's agent host, as in `tailhook.hosts.NAMES`.
    gate_verdict: of the gate machine, if a loop has asked it at this stop.
    project_folders: for the paths of edited files; None before the first.
    """

    has_ended_loop = False
    has_ended_own_loop = False
    has_paused_loop = False
    gives_texts = True
    agent_program = "claude-code"
    project_folders: "ProjectFolders | None" = None

    def __init__(self, payload: "Payload", name: str, broken: str = "", parent: int = 0) -> None:
        self.payload = payload
        self.broken = broken
        self.parent = parent
        self.name = get_text(payload, "hook_event_name") or name
        self.session_id = get_text(payload, "session_id")
        self.now = time()
        self.root = project_root(payload)
        self.folders = list(project_folders(payload))
        self.config = load_config(self.root)
        self.unbound_acts = self.setting("hook", "unbound") != "refuse"
        self.newest: NewestMessage | None = None
        self.asked: Sequence[str] = ()
        self.gate_verdict: Verdict[list[str]] | None = None

    def is_stop(self) -> bool:
        """Return whether the machines decide about it: an agent's own stop, not a sub-agent's."""
        return self.name in ("Stop", "") and not self.payload.get("agent_id")

    def machines(self) -> "Sequence[str]":
        """Return the configured machines, in the order of asking."""
        return configured_machines(self.config)

    def concerns(self, name: str) -> bool:
        """Return whether a machine could have something to decide."""
        machine = MACHINES[name]
        if self.broken and not machine.get("takes_broken_payload"):
            return False
        if self.setting(name, machine.get("marker_setting", "")):
            return True
        return "marker_files" not in machine or has_marker_files(name, self.folders)

    def setting(self, section: str, key: str, default: "Any" = None) -> "Any":
        """Return a value of the configuration."""
        return self.config.get(section, {}).get(key, default)

    def translated_turn(self) -> "Turn | None":
        """Return what the agent did since the stop before, if the transcript is another host's; otherwise None."""
        return None

    def final_text(self, since: float | None = None) -> bytes:
        """Return the agent's last message in UTF-8, unchanged: blank space at its beginning may make it code.

        The payload holds only the message's last text block. If the transcript's newest message ends with it, the whole
        message is returned (Claude Code 2.1.329 writes it 35 to 70 ms after the hook's start). Its time is checked, as
        an older message could end the same way.

        since: how old a message of the transcript may be (Unix seconds); None for any age.
        """

        def is_fresh(at: float | None) -> bool:
            return since is None or at is None or at >= since

        said = self.last_text_block()
        bare = said.strip()
        _, texts = self.newest_message(TAIL_BYTES if bare else MAX_TRANSCRIPT_BYTES)
        if not bare:
            return b"\n".join(words for words, at in texts if is_fresh(at))
        written = b"\n".join(words for words, _ in texts)
        if ends_with(written, bare) and is_fresh(texts[-1][1]):
            return written
        return said.encode("utf-8", "surrogatepass")

    def last_text_block(self) -> str:
        """Return the last text block of the agent's last message, "" if the payload does not hold it."""
        return get_text(self.payload, "last_assistant_message")

    def newest_message(self, max_bytes: int = MAX_TRANSCRIPT_BYTES) -> "NewestMessage":
        """Return the newest assistant message, in the form of `last_message`; ("unreadable", []) without a transcript.

        Reads the transcript at the first call only.

        max_bytes: how much to read of the transcript's end.
        """
        if self.newest is None:
            self.newest = "unreadable", []
            try:
                fd = posix.open(self.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
            except (OSError, ValueError):
                return self.newest
            try:
                self.newest = self.read_newest(fd, max_bytes)
            except OSError:
                pass
            finally:
                posix.close(fd)
        return self.newest

    def read_newest(self, fd: int, max_bytes: int) -> "NewestMessage":
        """Return the newest assistant message in an open transcript. Raises OSError."""
        return last_message(fd, max_bytes, MAX_RECORD_BYTES, MAX_RECORDS)

    def reverse_messages(
        self, fd: int, start: int, end: int, without: "Container[int]" = ()
    ) -> "Iterator[tuple[bool, bytes, list[str | None]]]":
        """Yield the messages in a part of an open transcript, newest first.

        Each is a tuple: whether it is the agent's, its words in UTF-8, the names of its tools (None: unknown).

        without: offsets of lines to leave out.
        """
        return reverse_messages(fd, start, end, MAX_RECORD_BYTES, MAX_RECORDS, without or None)

    def transcript_path(self) -> str:
        """Return the transcript's path in the payload, "" if there is none."""
        path = get_text(self.payload, "transcript_path")
        return f"{environment(b'HOME')}{path[1:]}" if path.startswith("~/") else path

    def folder(self, path: str) -> str | None:
        """Return the absolute form of `path` if it is a folder; a relative path is below the project's root."""
        path = path if path.startswith("/") else f"{self.root}/{path}"
        try:
            is_folder = posix.stat(path).st_mode & 0o170000 == 0o040000
        except (OSError, ValueError):
            return None
        return path if is_folder else None


def has_marker_files(name: str, folders: "Iterable[str]") -> bool:
    """Return whether one of the folders holds a marker file of the machine."""
    return any(exists(f"{folder}/{path}") for folder in folders for path in MACHINES[name].get("marker_files", ()))


def ends_with(written: bytes, bare: str) -> bool:
    """Return whether a message ends with words. Blank space after them is ignored.

    written: UTF-8; a lone surrogate is three bytes.
    """
    end = written.rstrip()
    if end[-1:] >= b"\x80" or b"\x1c" <= end[-1:] <= b"\x1f":  # possibly blank space beyond that of bytes.rstrip
        return written.decode("utf-8", "surrogatepass").rstrip().endswith(bare)
    return end.endswith(bare.encode("utf-8", "surrogatepass"))


def find_repeated(fd: int) -> "set[int]":
    """Return the offsets of records that repeat an earlier line of an open transcript. Reads at most 64 MiB.

    A second compaction writes old records again before its own, and so do resumed and forked sessions. Nothing else
    does: call it only if there was a compaction.
    """
    start = max(0, posix.fstat(fd).st_size - MAX_TRANSCRIPT_BYTES)
    return repeated_records(fd, start, None, MAX_RECORD_BYTES)


def load_config(root: str) -> "Config":
    """Return the configuration of the user and of the project at `root`.

    Imports the module that reads it only if there is a file.
    """
    if exists(user_config()) or exists(f"{root}/.claude/tailhook.json"):
        preload("hook.config")
        from tailhook.hook.config import load

        return load(root)
    return {}
