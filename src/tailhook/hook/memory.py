"""The memory machine's hook: reads a session's newest messages, scores them, and reports each summary once."""

import posix

from tailhook._core import fingerprint, parse_json, score_lines, write_json
from tailhook.hook.answer import describe
from tailhook.hook.event import MAX_TRANSCRIPT_BYTES, ends_with, find_repeated
from tailhook.hook.machines import decide_and_save
from tailhook.hook.payload import is_paused
from tailhook.machines import Verdict, memory
from tailhook.stores.atomic import (
    Lock,
    make_folder,
    make_folders,
    open_folder,
    read_file,
    remove_file,
    replace_file,
    state_folder,
    state_folder_path,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from tailhook.hook.event import HookEvent

FLAG_NAME = ".stop_hook_active"
MARKS_FOLDER = "memory"  # in the private state folder; it has 256 folders
MAX_MARK_AGE_S = 30 * 86400  # without a change, until a session's mark is removed
MAX_CUT_BYTES = 4096  # left out of a cut message, so that it ends with a line or a word
MAX_TIME_S = 1 << 53  # of a mark, in Unix seconds; a later one cannot be a time


def ask(event: "HookEvent") -> "Verdict[bool] | None":
    """Decide what to report. If there is something, make flag and mark. Return None if the machine is switched off.

    Reads the project's memory-config.json, and back through the transcript (at most 16 MiB).
    """
    settings = memory.MemorySettings(read_memory_config(event.root))
    if not settings.enabled:
        return None
    if is_paused(event.payload):
        return Verdict("allow", "paused: a background task is running")
    mark = Mark(event.session_id or event.transcript_path())
    if why := blocked_before(event, mark):
        return Verdict("allow", why)
    try:
        session = Session(event, settings.max_messages, mark)
        verdict = decide_session(event, session, settings, mark)
        if verdict.outcome == "block" and (repeated := session.find_repeated(event)):
            session = Session(event, settings.max_messages, mark, repeated)
            verdict = decide_session(event, session, settings, mark)
    except (OSError, ValueError) as error:
        return Verdict("allow", f"the transcript cannot be read: {describe(error)}")

    def decide() -> "Verdict[bool]":
        return Verdict("allow", "another hook of this session was faster") if mark.is_outdated else verdict

    def save(verdict: "Verdict[bool]") -> None:
        mark.save(session.end, session.said, mark.summarized or bool(verdict.change), event.now)
        make_flag(event)
        mark.remove_old(event.now)

    return decide_and_save(mark, decide, save)


def decide_session(
    event: "HookEvent", session: "Session", settings: memory.MemorySettings, mark: "Mark"
) -> "Verdict[bool]":
    """Decide what to report about a session's messages."""
    tuned = event.setting("memory", "profile") == "tuned"
    verdict = memory.decide(session.facts(tuned, settings.thresholds, mark.summarized))
    if session.is_cut:
        verdict.why += f"; only the newest {memory.MAX_TEXT_BYTES >> 10} KiB of text were scored"
    return verdict


def blocked_before(event: "HookEvent", mark: "Mark") -> str:
    """Return why a stop is allowed without reading the messages, "" if it is not.

    Uses up the project's flag and the session's own one. Then all messages so far are old, such as the agent's list of
    saved items: the mark moves to the transcript's end. The mark stays if another hook blocked the turn, if a person
    began another turn since the report, or if the flag is not certainly this session's: then nothing was reported.
    `stop_hook_active` does not count at a stop that ends a loop of this hook: the loop has blocked the turn.
    """
    is_active = event.payload.get("stop_hook_active") is True
    is_fresh, is_named = take_flag(event)
    was_blocked = mark.blocked > 0
    in_turn = is_active and (was_blocked or not event.has_ended_loop)
    lets_go = in_turn or is_fresh or (was_blocked and event.now - mark.blocked < memory.FLAG_SECONDS)
    if was_blocked or (lets_go and is_named):
        from tailhook.hook.memory_reports import settle_report

        settle_report(event, mark, lets_go, in_turn, was_blocked)
    if in_turn:
        return "this turn was blocked before (stop_hook_active)"
    return "this session got a report a moment ago" if lets_go else ""


def read_memory_config(root: str) -> object:
    """Return the JSON value of the project's `memory-config.json`, None if it cannot be read."""
    try:
        return parse_memory_config(memory_config_bytes(root))
    except (OSError, ValueError):
        return None


def memory_config_bytes(root: str) -> bytes:
    """Return the project's `memory-config.json`. Raises OSError."""
    folder = open_folder(root, ".claude", "memory")
    try:
        return read_file("memory-config.json", folder)
    finally:
        posix.close(folder)


def parse_memory_config(data: bytes) -> object:
    """Return the JSON value of a `memory-config.json`. Raises ValueError."""
    # Python's json writes these two, but they are not JSON. The names and strings read here do not contain them.
    return parse_json(data.replace(b"NaN", b"null").replace(b"Infinity", b"1e999"))


# ---- what was said -----------------------------------------------------------


class Session:
    """The newest, not yet scored messages of a transcript.

    messages: whether it is the assistant's, and its text in UTF-8, the oldest message first. The newest MAX_TEXT_BYTES
        of text are kept. If a message does not fit, its beginning is kept.
    is_cut: whether text was left out.
    tools: the names of the tools used since the first message.
    read: the iterator over the messages.
    start, end: the part of the transcript to read, in bytes, up to the transcript's end.
    said: a fingerprint of the newest text.
    """

    def __init__(self, event: "HookEvent", count: int, mark: "Mark", without: "Container[int]" = ()) -> None:
        """Read the messages.

        without: the offsets of lines to leave out.

        Raises OSError or ValueError if the transcript cannot be read.
        """
        self.messages: list[tuple[bool, bytes]] = []
        self.tools: list[str] = []
        self.is_cut = False
        self.room = memory.MAX_TEXT_BYTES
        newest = event.last_text_block()
        said = newest.encode("utf-8", "surrogatepass")
        self.said = fingerprint_of(said)
        bare = newest.strip()  # for comparison only: blank space at the beginning may make a line code
        if mark.end and self.said == mark.said:
            bare = ""
        fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
        try:
            self.end = posix.fstat(fd).st_size
            self.start = max(mark.end if mark.end <= self.end else 0, self.end - memory.MAX_READ_BYTES)
            messages = event.reverse_messages(fd, self.start, self.end, without)
            for is_assistant, words, tools in messages:
                self.tools += filter(None, tools)
                if not words or (not is_assistant and not memory.is_of_person(words)):
                    continue
                if mark.end and fingerprint_of(words) in (mark.said, mark.said_before):
                    continue
                if bare and not (is_assistant and ends_with(words, bare)):
                    self.add(True, said)  # the transcript lags
                bare = ""
                self.add(is_assistant, words)
                if len(self.messages) >= count:
                    break
            self.read = messages
        finally:
            posix.close(fd)
        if bare and self.end:
            self.add(True, said)
        self.messages = self.messages[:count][::-1]

    def find_repeated(self, event: "HookEvent") -> "Container[int] | None":
        """Return the offsets of records that a compaction wrote again; None if no message is among them.

        Raises OSError or ValueError if the transcript cannot be read.
        """
        may_repeat = getattr(self.read, "may_repeat", None)  # the messages of other hosts have no compactions
        if may_repeat is None:
            return None
        fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
        try:
            return find_repeated(fd) if may_repeat(fd, MAX_TRANSCRIPT_BYTES) else None
        finally:
            posix.close(fd)

    def add(self, is_assistant: bool, words: bytes) -> None:
        """Keep an older message, if there is room, or its beginning."""
        if len(words) > self.room:
            words, self.is_cut = words[: end_of_words(words, self.room)], True
            self.room = len(words)
        self.room -= len(words)
        self.messages.append((is_assistant, words))

    def facts(self, tuned: bool, thresholds: "dict[str, float]", summarized: bool) -> memory.Facts:
        """Return the facts for the machine."""
        spoken = [is_assistant for is_assistant, _ in self.messages]
        exchanges = sum(not first and spoken[place : place + 1] == [True] for place, first in enumerate(spoken, 1))
        return memory.Facts(
            score_lines([words for _, words in self.messages], tuned),
            len(self.tools),
            len(set(self.tools)),
            exchanges,
            thresholds,
            summarized,
        )


def end_of_words(text: bytes, room: int) -> int:
    """Return where to cut a text of more than `room` bytes: behind a line or a word, if one ends nearby."""
    start = max(0, room - MAX_CUT_BYTES)
    end = text.rfind(b"\n", start, room) + 1 or text.rfind(b" ", start, room) + 1 or room
    while end and text[end] & 0xC0 == 0x80:  # inside a letter of UTF-8
        end -= 1
    return end


def fingerprint_of(words: bytes) -> int:
    """Return a fingerprint of a message without the blank space around it."""
    return fingerprint(words.strip())


# ---- once per session --------------------------------------------------------


class Mark:
    """The mark: a session's last report, in a file of the private state folder. It also holds the session's flag.

    folder: the file's folder. It has a part of all sessions' marks: each report removes old ones in one part.
    path: the file's path.
    end: bytes of the transcript that are old; 0 if there was no report.
    said: a fingerprint of the newest message at that time. The host may write the message to the transcript later.
    said_before: the same of the mark before.
    summarized: whether its summary was reported.
    blocked: when a stop was blocked, in Unix seconds; 0 if the next stop was let go since. This is the flag.
    is_outdated: whether another hook has made a report since this was read.
    """

    def __init__(self, session: str) -> None:
        """Read the mark.

        session: the session's id, or another name for it.
        """
        name = f"{fingerprint_of(session.encode('utf-8', 'surrogatepass')):016x}"
        self.folder = f"{state_folder_path()}/{MARKS_FOLDER}/{name[:2]}"
        self.path = f"{self.folder}/{name}.memory"
        self.is_outdated = False
        self.parse()

    def parse(self) -> None:
        """Read the file. If it cannot be read or is broken, the session counts as without a report."""
        self.data = self.read()
        self.end, self.said, self.said_before, self.summarized, self.blocked = 0, 0, 0, False, 0.0
        try:
            found = parse_json(self.data)
        except ValueError:
            return
        if isinstance(found, dict) and isinstance(found.get("end"), int) and isinstance(found.get("said"), int):
            self.end, self.said, self.summarized = found["end"], found["said"], found.get("summarized") is True
            blocked = found.get("blocked")  # older versions did not write it
            self.said_before = before if isinstance(before := found.get("said_before"), int) else 0
            self.blocked = blocked if isinstance(blocked, (int, float)) and 0 < blocked < MAX_TIME_S else 0

    @classmethod
    def none(cls) -> "Mark":
        """Return the mark of a session without a report."""
        mark = cls.__new__(cls)
        mark.end, mark.said, mark.said_before, mark.summarized = 0, 0, 0, False
        return mark

    def read(self) -> bytes:
        """Return the file's bytes, b"" if it cannot be read."""
        try:
            return read_file(self.path)
        except OSError:
            return b""

    def lock(self) -> Lock:
        """Return the lock to hold from `reload` until it is saved; each session has its own. Raises OSError."""
        state_folder()
        make_folders(self.folder)
        return Lock(f"{self.path}.lock")

    def reload(self) -> bool:
        """Look at the file again; return whether it had changed."""
        self.is_outdated = self.read() != self.data
        return self.is_outdated

    def save(self, end: int, said: int, summarized: bool, blocked: float) -> None:
        """Write it. Only under the lock. Raises OSError."""
        fields = {"end": end, "said": said, "said_before": self.said, "summarized": summarized, "blocked": blocked}
        replace_file(self.path, write_json(fields) + b"\n")

    def remove_old(self, now: float) -> None:
        """Remove the old marks in this mark's folder. A failure changes nothing."""
        for name in posix.listdir(self.folder):
            path = f"{self.folder}/{name}"
            try:
                if name.endswith(".memory") and now - posix.lstat(path).st_mtime > MAX_MARK_AGE_S:
                    remove_file(path)
                    remove_file(f"{path}.lock")
            except OSError:
                pass  # another hook has removed it


# ---- once per project: the flag ------------------------------------------------
# `.claude/.stop_hook_active`: a session of the project just got a report, and its next stop is allowed. All sessions of
# a project share it, so each session's own flag, in its mark, decides too.


def take_flag(event: "HookEvent") -> "tuple[bool, bool]":
    """Return whether the flag is fresh, and whether it names this session. Remove it.

    Another session's flag stays, and does not count.
    """
    try:
        folder = open_folder(event.root, ".claude")
    except OSError:
        return False, False
    try:
        changed = posix.stat(FLAG_NAME, dir_fd=folder, follow_symlinks=False).st_mtime
        lines = read_file(FLAG_NAME, folder).decode("utf-8", "replace").split("\n")
        named = lines[1] if lines[1:] else ""
        if named not in ("", event.session_id):
            return False, False
        remove_file(FLAG_NAME, folder)
        return event.now - changed < memory.FLAG_SECONDS, bool(named)
    except OSError:
        return False, False
    finally:
        posix.close(folder)


def make_flag(event: "HookEvent") -> None:
    """Make the flag if there is none: another session's stays. If it cannot be made, the mark's flag is enough."""
    try:
        make_folder(f"{event.root}/.claude")
        folder = open_folder(event.root, ".claude")
    except OSError:
        return
    try:
        posix.lstat(FLAG_NAME, dir_fd=folder)
    except FileNotFoundError:
        text = f"{event.now:.3f}\n{event.session_id}\n"
        try:
            replace_file(FLAG_NAME, text.encode("utf-8", "surrogatepass"), folder)
        except OSError:
            pass
    finally:
        posix.close(folder)
