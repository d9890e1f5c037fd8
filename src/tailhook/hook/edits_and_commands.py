"""Reads the edits and the shell commands in a transcript of Claude Code, from its end."""

from tailhook._core import get_text, parse_json, preload, reverse_lines, reverse_tool_uses
from tailhook.hook.event import find_repeated
from tailhook.hook.payload import MAX_RECORD_BYTES, MAX_RECORDS
from tailhook.machines.rules import Edit
from tailhook.machines.shell_words import contains_name, program_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailhook.hook.event import HookEvent
    from tailhook.machines.rules import Rule

# The names of Claude Code's tools and the forms of its other commands (2.1.329) are here and not in
# `tailhook.hosts.claude_code`: importing that would add 1.5 to 2.5 % to the instructions of each stop.
EDITING_TOOLS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
SHELL_TOOLS = ("Bash",)
COMPACTION = b'"compact_boundary"'  # in the record of a compaction
MAX_COMMANDS = 2000  # to take apart; an older command with a program's name counts as its run
MAX_NOTICES = 20  # commands with a search for the end of their background task
MAX_NOTICE_BYTES = 1 << 16  # of the line behind the id, with the description of the task's end
MAX_SEEN_BYTES = 1000  # of a remembered input
MAX_MARKS = 50  # of patterns to search in an input before it is decoded
MAX_EDITS = 1000  # to compare with the rules; older ones do not count
MAX_PATH_CHARS = 4096  # of an edited file; no system takes a longer path


class Walk:
    """The edits and shell commands in an open transcript that did not fail, newest first.

    Without a result it is unknown whether a tool did anything: an edit is left out then, and a command counts. Commands
    that cannot concern the rules are left out. So are older uses of the same input, since the newer one has decided,
    and records that a compaction wrote again (`RepeatedRecords`). A person's commands come before the next older edit:
    only their order with edits matters.

    fd: of the transcript.
    event: the stop at which it is read.
    start: where to stop reading.
    running: the ids of background tasks whose commands are left out, since they may still fail.
    has_typed: whether to yield the commands that a person typed with `!`, too.
    offset, use_id: the line of the newest yielded one, and the id of its use ("" for none).
    is_cut: whether it ended before `start`.
    is_running: whether a command was left out because it still runs.
    """

    def __init__(
        self,
        fd: int,
        event: "HookEvent",
        rules: "Sequence[Rule]",
        start: int,
        running: "Sequence[bytes]" = (),
        has_typed: bool = True,
    ) -> None:
        self.fd = fd
        self.event = event
        self.rules = rules
        self.start = start
        self.running = running
        self.has_typed = has_typed
        self.programs = Programs(rules)
        self.repeated = RepeatedRecords(fd)
        # End of the lines from which a person's commands are yet to be yielded; None: the file's end.
        self.unsearched: int | None = None
        self.offset, self.use_id, self.is_cut, self.is_running = 0, "", False, False

    def __iter__(self) -> "Iterator[Edit | str]":
        programs, repeated, seen, edits = self.programs, self.repeated, set(), 0
        marks: list[bytes] = []
        tools = (*EDITING_TOOLS, *SHELL_TOOLS)
        uses = reverse_tool_uses(self.fd, tools, self.start, None, MAX_RECORD_BYTES, MAX_RECORDS)
        for name, use_id, given, failed, offset in uses:
            if failed or given in seen:
                continue
            if name in SHELL_TOOLS:
                command = text_member(given, "command") if contains_any(given, programs.marks) else ""
                if not (command := programs.relevant(command)):
                    continue
                if offset in repeated:
                    continue
                if use_id and programs.count <= MAX_NOTICES and not self.check_success(offset, use_id):
                    continue
                self.offset, self.use_id = offset, use_id or ""
                yield command
            elif (
                failed is None
                or not contains_any(given, marks := marks or self.marks())
                or not (path := edited_path(given))
            ):
                continue
            else:
                if offset in repeated:
                    continue
                if (edits := edits + 1) > MAX_EDITS:
                    self.is_cut = True
                    return
                if self.has_typed:
                    yield from self.typed_since(offset)
                self.offset, self.use_id = offset, use_id or ""
                paths = all_paths(path, self.event)
                yield Edit(paths[-1], use_id or "", paths)
            if len(given) <= MAX_SEEN_BYTES:
                seen.add(given)

    def marks(self) -> list[bytes]:
        """Return texts to search in the input of an editing tool: without any of them, it concerns no rule."""
        found = [b"\\", *{pattern.mark() for rule in self.rules for pattern in rule.patterns()}]
        return found if len(found) <= MAX_MARKS else [b""]

    def check_success(self, offset: int, use_id: str) -> bool:
        """Return whether a command without an error in its result has ended, and may have succeeded.

        Sets `is_running` if it has not ended.

        offset: of the line of its use.
        """
        if self.running:
            mark = use_id.encode("utf-8", "surrogatepass")
            for _, line in reverse_lines(self.fd, offset, None, MAX_RECORD_BYTES, mark):
                if any(task in line for task in self.running):
                    self.is_running = True
                    return False
        return not has_failed_later(self.fd, offset, use_id)

    def typed_since(self, offset: int) -> "Iterator[str]":
        """Yield a person's commands from an offset on that were not yet yielded, newest first."""
        preload("hook.typed_commands")
        from tailhook.hook.typed_commands import typed_commands

        typed = [one for one in typed_commands(self.fd, offset, self.unsearched) if one[0] not in self.repeated]
        for self.offset, command in typed:
            self.use_id = ""
            if command := self.programs.relevant(command):
                yield command
        self.unsearched = offset


def all_paths(path: str, event: "HookEvent") -> list[str]:
    """Return all paths of an edited file: see `ProjectFolders`, which keeps what it finds for the next file."""
    if event.project_folders is None:
        preload("hook.project_folders")
        from tailhook.hook.project_folders import ProjectFolders

        event.project_folders = ProjectFolders(event)
    return event.project_folders.paths_of(path)


class RepeatedRecords:
    """The records of an open transcript that repeat an earlier line: a compaction wrote them again.

    The transcript is read backwards. They are searched when the reading comes to a compaction: records newer than all
    compactions occur once.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.unsearched: int | None = None  # end of the lines without a search for a compaction
        self.offsets: set[int] | None = None  # None: no compaction was found so far

    def __contains__(self, offset: int) -> bool:
        if self.offsets is None and (self.unsearched is None or offset < self.unsearched):
            newer = reverse_lines(self.fd, offset, self.unsearched, MAX_RECORD_BYTES, COMPACTION)
            if next(newer, None) is not None:
                self.offsets = find_repeated(self.fd)
            self.unsearched = offset
        return self.offsets is not None and offset in self.offsets


class Programs:
    """The programs of the rules, to search in commands.

    marks: every input of a shell tool that runs a program contains one of them.
    count: of the commands with a program's name.
    """

    def __init__(self, rules: "Sequence[Rule]") -> None:
        self.names = {program_name(rule.ran[0]) for rule in rules}
        self.marks = [b"\\", b"'", *(name.encode("utf-8", "surrogatepass") for name in self.names)]
        self.count = 0

    def relevant(self, command: str) -> str:
        """Return a command if it could run one of the programs, otherwise "".

        After MAX_COMMANDS, return a text that cannot be taken apart: it counts as a run of all programs in it.
        """
        if not any(contains_name(command, name) for name in self.names):
            return ""
        self.count += 1
        return command if self.count <= MAX_COMMANDS else f"({command}"


def contains_any(given: bytes, marks: "Sequence[bytes]") -> bool:
    """Return whether a tool's input contains one of the marks. Without one, it need not be decoded."""
    for mark in marks:  # noqa: SIM110 - faster than `any`, and most inputs of a long session end here
        if mark in given:
            return True
    return False


def edited_path(given: bytes) -> str:
    """Return the file's path in an editing tool's input, "" if there is none or it is too long."""
    path = (
        only_text_member(given, b"file_path") or text_member(given, "file_path") or text_member(given, "notebook_path")
    )
    return path if len(path) <= MAX_PATH_CHARS else ""


def only_text_member(given: bytes, key: bytes) -> str:
    """Return a string of a compact JSON object without decoding the others, "" if that cannot be done.

    In JSON, this text begins a member: a { or , then a quote, the key, a quote and a colon. Inside a string its quotes
    would be escaped. If the key occurs once more, the object must be decoded.
    """
    mark = b'"%s":"' % key
    at = given.find(mark)
    if at <= 0 or given[at - 1] not in b"{," or given.find(mark, at + len(mark)) >= 0:
        return ""
    start = at + len(mark)
    end = given.find(b'"', start)
    text = given[start:end]
    if end < 0 or b"\\" in text:
        return ""
    return text.decode("utf-8", "replace")


def text_member(given: bytes, key: str) -> str:
    """Return a string of a tool's input, "" if it is missing or the input is not an object in UTF-8."""
    try:
        value = parse_json(given)
    except ValueError:
        return ""
    return get_text(value, key) if isinstance(value, dict) else ""


def has_failed_later(fd: int, offset: int, use_id: str) -> bool:
    """Return whether a command that went on in the background has ended with an error.

    Claude Code 2.1.222 reports the end in a notification with the use's id, a status and, in the summary's last words,
    an exit code.

    offset: of the line of its use; newer lines are searched.
    """
    mark = b"<tool-use-id>%s</tool-use-id>" % use_id.encode("utf-8", "surrogatepass")
    for _, line in reverse_lines(fd, offset, None, MAX_RECORD_BYTES, mark):
        at = line.find(mark)
        notice = line[at : at + MAX_NOTICE_BYTES].partition(b"</summary>")[0]
        status = notice.partition(b"<status>")[2].partition(b"</status>")[0]
        if status and status != b"completed":
            return True
        code = notice.rpartition(b"exit code ")[2].rstrip(b") ")
        return status == b"completed" and code.isdigit() and int(code) != 0
    return False
