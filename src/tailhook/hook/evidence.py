"""Reads what happened in a session and its sub-agents since a loop began, and asks whether an end of the loop counts.

A stop imports it only if a signal would end a loop with checks, or if the gate machine is asked too.
"""

import posix
from time import localtime, monotonic, sleep, strftime, tzset

from tailhook._core import get_text, parse_json, preload, reverse_lines, unix_time
from tailhook.hook.answer import describe
from tailhook.hook.edits_and_commands import COMPACTION, EDITING_TOOLS, MAX_EDITS, Programs, RepeatedRecords, Walk
from tailhook.hook.event import CLOCK_TOLERANCE_S, MAX_TRANSCRIPT_BYTES, TAIL_BYTES, HookEvent
from tailhook.hook.payload import MAX_RECORD_BYTES
from tailhook.hook.session_files import FIRST_STRIDE, first_time, offset_before, sub_agents, time_at, time_in
from tailhook.machines import evidence
from tailhook.machines.rules import Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tailhook.machines.rules import Rule

    # When something happened (Unix seconds), and what. None: all else that was not read; False: read on for older ones.
    TimedHappening = tuple[float, Edit | str | bool | None]
    Head = tuple[float, Edit | str | bool | None, Iterator[TimedHappening]]

MAX_SUB_AGENTS = 500  # transcripts to read
FOREVER = float("inf")
LATE_MESSAGE_TIMEOUT_S = 1.0
MESSAGE_POLL_INTERVAL_S = 0.01
SPEAKERS = ("assistant", "user")


def refuse_end(event: "HookEvent", frame: "Mapping[str, object]", reason: str, signal: str) -> tuple[str, str]:
    """Return why an end of a loop does not count, "" if it does; and a doubt for the person, "" for none.

    Asks the gate machine, if the hook would ask it after the loop: it saves its blocks.

    frame: the loop's; for ralph, its front matter.
    reason: to save for the end.
    signal: what the agent has written, in a word.
    """
    missing = unknown = ""
    if evidence.needs_evidence(frame, reason):
        missing, unknown = read_evidence(event, frame, signal)
    else:
        wait_for_last_message(event, last_stop(frame))
    if missing:
        return missing, ""
    if "gate" in event.asked:
        preload("machines.gate", "hook.gate")
        from tailhook.hook.gate import ask_in_loop

        try:
            verdict = ask_in_loop(event)
        except Exception:  # only that machine fails; it is asked again after this one, and warns then
            verdict = None
        if verdict is not None and verdict.outcome == "block":
            return verdict.reason, ""
    return "", unknown and f" (its checks are unknown: {unknown})"


def read_evidence(event: "HookEvent", frame: "Mapping[str, object]", signal: str) -> tuple[str, str]:
    """Return what the transcripts of a session and its sub-agents show about the checks of its loop.

    Reads back to the loop's beginning, at most 64 MiB. Returns the same as `evidence.find_evidence`.
    """
    checks = evidence.parse_checks(frame)
    if not checks:
        return "", "they are not valid"
    if type(event) is not HookEvent:  # of another host than Claude Code
        return "", "the runs of tools in this host's transcripts are not read"
    wait_for_last_message(event, last_stop(frame))
    began = frame.get("began")
    since = unix_time(began) if isinstance(began, str) else None
    if since is not None and since > event.now:  # the clock was set back
        since = None
    try:
        happened = Happened(event, checks, since)
        missing, unknown = evidence.find_evidence(
            checks, happened, lambda: happened.unread, lambda: clock_time(since), signal
        )
    except (OSError, ValueError) as error:
        return "", f"a transcript cannot be read: {describe(error)}"
    if missing and happened.is_running:
        missing += "\nA command in the background counts when it has ended."
    return missing, unknown


def last_stop(frame: "Mapping[str, object]") -> float:
    """Return when the loop's previous stop was (Unix seconds), 0 if the loop does not know it.

    The place that a loop saves to judge its stillness has the time.
    """
    mark = frame.get("still")
    try:
        return float(mark.partition(" ")[0].partition("@")[2]) if isinstance(mark, str) else 0
    except ValueError:
        return 0


def wait_for_last_message(event: "HookEvent", since: float = 0) -> None:
    """Wait until the transcript has the agent's last message: what came before it is there, too.

    Claude Code 2.1.329 writes its records up to 70 ms after the hook's start, also the result of a tool. A second later
    the transcript is read as it is.

    since: when the previous stop was. An older message with the same words belongs to that stop.
    """
    deadline = monotonic() + LATE_MESSAGE_TIMEOUT_S
    words = event.last_text_block().strip()
    while words and not is_last_message(event.transcript_path(), words, since) and monotonic() < deadline:
        sleep(MESSAGE_POLL_INTERVAL_S)


def is_last_message(path: str, words: str, since: float) -> bool:
    """Return whether a session's conversation ends with an agent's words, also if that cannot be known.

    since: how old they may be (Unix seconds).
    """
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (OSError, ValueError):
        return True
    try:
        start = max(0, posix.fstat(fd).st_size - TAIL_BYTES)
        for _, line in reverse_lines(fd, start, None, MAX_RECORD_BYTES, b'"message"'):
            record = parse_json(line)
            if not isinstance(record, dict) or record.get("isSidechain") or record.get("type") not in SPEAKERS:
                continue
            content = (record.get("message") or {}).get("content")
            texts = [content] if isinstance(content, str) else [get_text(block, "text") for block in content or ()]
            at = unix_time(get_text(record, "timestamp"))
            is_new = record["type"] == "assistant" and (at is None or at >= since)
            return is_new and any(text.rstrip().endswith(words) for text in texts)
    except (OSError, ValueError, TypeError, AttributeError):
        return True
    finally:
        posix.close(fd)
    return True


def clock_time(at: float | None) -> str:
    """Return a time (Unix seconds) as HH:MM in the local zone, "" if it is unknown."""
    if zone := posix.environ.get(b"TZ"):  # a resident worker was started with another environment
        posix.putenv(b"TZ", zone)
    else:
        posix.unsetenv(b"TZ")
    tzset()
    try:
        return "" if at is None else strftime("%H:%M", localtime(at))
    except (OverflowError, OSError, ValueError):
        return ""


class Happened:
    """The edits and shell commands of a session and its sub-agents since a time, newest first. Raises OSError.

    Within one transcript the order of its lines counts. Between transcripts, a command counts from its beginning, and
    an edit from its end: a command that ran meanwhile may not have seen the edit.

    since: in Unix seconds; None for any time.
    unread: why older ones are unknown, "" if all were read.
    is_running: whether one was left out because it still runs in the background.
    """

    def __init__(self, event: "HookEvent", checks: "Sequence[Rule]", since: float | None) -> None:
        self.checks = checks
        self.since = since
        self.event = event
        self.running = running_tasks(event)
        self.bytes_left = MAX_TRANSCRIPT_BYTES
        self.unread = ""
        self.is_running = False
        self.path = event.transcript_path()
        oldest = -FOREVER if since is None else since - CLOCK_TOLERANCE_S
        found = [one for one in sub_agents(self.path, event.session_id) if one[0] >= oldest]
        found.sort(reverse=True)
        self.sub_agents = found

    def __iter__(self) -> "Iterator[Edit | str]":
        # For each transcript: a time at or after its next happening; that happening, or False if it was not read yet;
        # and the reader. The newest is yielded first. A transcript is opened when it may have the newest. What a person
        # typed is read before the first edit: the order of commands does not matter.
        typed: Head | None = (FOREVER, False, self.read(self.path, self.read_typed))
        heads: list[Head] = [
            (FOREVER, False, self.read(self.path, self.read_open)),
            *(
                (changed + CLOCK_TOLERANCE_S, False, self.read(path, self.read_open))
                for changed, path in self.sub_agents[:MAX_SUB_AGENTS]
            ),
        ]
        if len(self.sub_agents) > MAX_SUB_AGENTS:
            heads.append((self.sub_agents[MAX_SUB_AGENTS][0], None, iter(())))
        while heads or typed:
            at = max(range(len(heads)), key=lambda index: heads[index][0], default=-1)
            if typed and (at < 0 or not isinstance(heads[at][1], (bool, str))):
                heads.append(typed)
                typed = None
                continue
            when, happening, source = heads[at]
            if isinstance(happening, bool):
                following = next(source, None)
                if following is None:
                    del heads[at]
                else:
                    heads[at] = (*following, source)
            elif happening is None:
                self.unread = self.unread or f"over {MAX_SUB_AGENTS} sub-agents"
                return
            else:
                yield happening
                heads[at] = when, False, source

    def read(self, path: str, read_open: "Callable[[int], Iterator[TimedHappening]]") -> "Iterator[TimedHappening]":
        """Yield what happened in one transcript, newest first.  read_open: reads it from its descriptor."""
        try:
            fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
        except FileNotFoundError:
            if path == self.path:
                raise
            return  # a sub-agent's, removed meanwhile
        try:
            yield from read_open(fd)
        finally:
            posix.close(fd)

    def read_open(self, fd: int) -> "Iterator[TimedHappening]":
        """Yield the edits and commands of an agent in an open transcript, newest first."""
        size = posix.fstat(fd).st_size
        lowest = max(0, size - self.bytes_left)
        start = end = max(lowest, size - FIRST_STRIDE)
        yield from self.walk(fd, start, size)  # has what most ends ask for: then nothing else is read
        begun = None if self.since is None else offset_before(fd, size, lowest, self.since)
        if start > lowest and begun != start:
            start = lowest if begun is None else begun
            yield from self.walk(fd, start, end)
        if begun is not None and has_compaction(fd, begun, size):
            start, end, begun = max(0, begun - self.bytes_left), begun, None
            yield from self.walk(fd, start, end)
        if begun is None and start > 0:
            self.unread = f"over {MAX_TRANSCRIPT_BYTES >> 20} MiB"
            at = time_at(fd, start)
            yield -FOREVER if at is None else at, None

    def walk(self, fd: int, start: int, end: int) -> "Iterator[TimedHappening]":
        """Yield what an agent did in a part of an open transcript, newest first."""
        self.bytes_left -= end - start
        walk = Walk(fd, self.event, self.checks, start, self.running, has_typed=False)  # see `read_typed`
        for happening in walk:
            if walk.offset >= end:
                continue
            at = time_at(fd, walk.offset)
            if isinstance(happening, Edit):
                if at is not None and self.sub_agents:
                    at = self.ending(walk) or at
                if self.is_old(at):
                    continue
                happening.clock = clock_time(at)
                yield -FOREVER if at is None else at, happening
            elif not self.is_old(at) or not self.is_old(self.ending(walk) or at):
                if at is not None and self.sub_agents:
                    ends = [time_of_result(fd, offset, use_id) for offset, use_id in edits_beside(walk)]
                    at = max([at, *(end for end in ends if end is not None)])
                yield FOREVER if at is None else at, happening
        self.is_running = self.is_running or walk.is_running
        if walk.is_cut:
            self.unread = f"more than {MAX_EDITS:,} edits"
            at = time_at(fd, walk.offset)
            yield -FOREVER if at is None else at, None

    def read_typed(self, fd: int) -> "Iterator[TimedHappening]":
        """Yield the commands that a person typed with `!` in an open transcript, newest first.

        Reads growing parts. After each part it yields a time and False: no command before that part is newer.
        """
        preload("hook.typed_commands")
        from tailhook.hook.typed_commands import typed_commands

        end = size = posix.fstat(fd).st_size
        lowest = max(0, size - MAX_TRANSCRIPT_BYTES)
        programs, repeated = Programs(self.checks), RepeatedRecords(fd)
        stride, is_repeated = FIRST_STRIDE, False
        while end > lowest:
            part = max(lowest, end - stride)
            for offset, command in typed_commands(fd, part, end):
                at = time_at(fd, offset)
                if programs.relevant(command) and not self.is_old(at) and offset not in repeated:
                    yield FOREVER if at is None else at, command
            is_repeated = is_repeated or has_compaction(fd, part, end)
            at = None if is_repeated else first_time(fd, part, end)
            if self.is_old(at):
                return
            yield FOREVER if at is None else at, False
            end, stride = part, stride * 4

    def is_old(self, at: float | None) -> bool:
        """Return whether a time is before the loop's beginning."""
        return at is not None and self.since is not None and at < self.since

    @staticmethod
    def ending(walk: Walk) -> float | None:
        """Return when the newest use of a walk had its result, None if that is unknown."""
        return time_of_result(walk.fd, walk.offset, walk.use_id) if walk.use_id else None


def edits_beside(walk: Walk) -> "Iterator[tuple[int, str]]":
    """Yield the edits up to the newest use of a walk in the same message of the agent: their lines and ids.

    A message's uses run side by side, so such an edit may end long after a later use has begun. The results of older
    messages came before that message.
    """
    message: object = None
    for offset, line in reverse_lines(walk.fd, 0, walk.offset + 1, MAX_RECORD_BYTES, b'"assistant"'):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        given = record.get("message") if isinstance(record, dict) and record.get("type") == "assistant" else None
        if not isinstance(given, dict):
            continue
        if message not in (None, given.get("id")):
            return
        content = given.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("name") in EDITING_TOOLS and get_text(block, "id"):
                yield offset, get_text(block, "id")
        message = given.get("id")
        if message is None:
            return


def running_tasks(event: "HookEvent") -> list[bytes]:
    """Return the ids of the payload's tasks that still run, as JSON texts."""
    tasks = event.payload.get("background_tasks")
    found = []
    for task in tasks if isinstance(tasks, list) else ():
        if isinstance(task, dict) and task.get("status") in (None, "running", "pending") and get_text(task, "id"):
            found.append(b'"%s"' % get_text(task, "id").encode("utf-8", "surrogatepass"))
    return found


# ---- times of records ----------------------------------------------------------


def has_compaction(fd: int, start: int, end: int) -> bool:
    """Return whether a part of an open transcript has a compaction, which may have written old records again."""
    return next(reverse_lines(fd, start, end, MAX_RECORD_BYTES, COMPACTION), None) is not None


def time_of_result(fd: int, offset: int, use_id: str) -> float | None:
    """Return when the result of a use was written, None if that is unknown.  offset: of the line of the use."""
    mark = b'"tool_use_id":"%s"' % use_id.encode("utf-8", "surrogatepass")
    return next((time_in(line) for _, line in reverse_lines(fd, offset, None, MAX_RECORD_BYTES, mark)), None)
