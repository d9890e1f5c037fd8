"""The gate machine's hook: it reads edits and commands from the transcript's end, and saves what it blocked for."""

import posix

from tailhook._core import fingerprint, get_text, parse_json, reverse_lines, reverse_tool_uses, write_json
from tailhook.hook.event import MAX_RECORD_BYTES, MAX_RECORDS, MAX_TRANSCRIPT_BYTES, find_repeated
from tailhook.hook.machines import decide_and_save
from tailhook.hook.payload import exists, is_paused, walk_up
from tailhook.machines import Verdict, gate
from tailhook.machines.shell_words import contains_name, program_name
from tailhook.stores.atomic import Lock, read_file, remove_file, replace_file, state_folder, state_folder_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailhook.hook.event import HookEvent

# What Claude Code (2.1.329) calls its tools and how it writes commands of other kinds is in this module and not in
# `tailhook.hosts.claude_code`: importing that would add 1.5 to 2.5 % to the instructions of each stop.
EDITING_TOOLS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
SHELL_TOOLS = ("Bash",)
TYPED_COMMAND = "<bash-input>"  # how the message begins that a person's `!command` leaves
TYPED_COMMAND_END = "</bash-input>"
MAX_KEPT_IDS = 1000  # of the edits and rules for which a stop was blocked; the newest ones of a project
MAX_STATE_AGE_S = 30 * 86400  # after which another project's file is removed
COMPACTION = b'"compact_boundary"'  # in the record that a compaction leaves
MAX_COMMANDS = 2000  # that are taken apart; an older one that names a program counts as its run
MAX_NOTICES = 20  # commands for which the end of a background task is looked for
MAX_NOTICE_BYTES = 1 << 16  # of the line behind the id in which the task's end is described
MAX_SEEN_BYTES = 1000  # of an input that is remembered
MAX_MARKS = 50  # of patterns that are looked for in an input before it is decoded
MAX_EDITS = 1000  # that are compared with the rules; older ones do not count
MAX_PATH_CHARS = 4096  # of an edited file; no system takes a longer path
MAX_FOLDERS = 200  # that are compared with the project's by more than their paths


def ask(event: "HookEvent") -> "Verdict[list[str]] | None":
    """Decide, and save what a stop was blocked for; return None if there are no rules.

    Reads back through the transcript (at most 64 MiB) until every rule is decided.
    """
    rules = gate.parse_rules(event.setting("gate", "rules", ()))
    if not rules:
        return None
    blocked = BlockedEdits(event.root, event.now)

    def decide() -> "Verdict[list[str]]":
        facts = gate.Facts(
            rules,
            happened(event, rules),
            is_paused(event.payload),
            event.payload.get("stop_hook_active") is True,
            set(blocked.ids),
        )
        try:
            return gate.decide(facts)
        except (OSError, ValueError) as error:
            return Verdict("allow", f"the transcript cannot be read: {error}")

    return decide_and_save(blocked, decide, lambda verdict: blocked.add(verdict.change or []))


# ---- what happened -----------------------------------------------------------


def happened(event: "HookEvent", rules: "Sequence[gate.Rule]") -> "Iterator[gate.Edit | str]":
    """Yield the edits and shell commands that did not fail, newest first. Raises OSError or ValueError.

    Without a result it is unknown whether a tool did anything: an edit is left out then, and a command counts. Commands
    that cannot concern the rules are left out, and so are older uses of the same input: the newer one has decided. What
    a compaction wrote again happened before (`RepeatedRecords`).
    Commands that a person ran come before the next older edit: only their order with edits matters.
    """
    fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    try:
        folders, programs, seen = ProjectFolders(event), Programs(rules), set()
        marks = [b"\\", *{pattern.mark() for rule in rules for pattern in rule.patterns}]
        if len(marks) > MAX_MARKS:
            marks = [b""]
        start = max(0, posix.fstat(fd).st_size - MAX_TRANSCRIPT_BYTES)
        tools = (*EDITING_TOOLS, *SHELL_TOOLS)
        uses = reverse_tool_uses(fd, tools, start, None, MAX_RECORD_BYTES, MAX_RECORDS)
        edits, repeated = 0, RepeatedRecords(fd)
        unsearched = None  # where the lines end whose commands of a person have not been yielded; None: the file's end
        for name, use_id, given, failed, offset in uses:
            if failed or given in seen:
                continue
            if name not in SHELL_TOOLS and not contains_any(given, marks):
                continue
            if name in SHELL_TOOLS:
                command = text_member(given, "command") if contains_any(given, programs.marks) else ""
                if not (command := programs.relevant(command)):
                    continue
                if offset in repeated:
                    continue
                if use_id and programs.count <= MAX_NOTICES and has_failed_later(fd, offset, use_id):
                    continue
                yield command
            elif failed is None or not (path := edited_path(given)):
                continue
            else:
                if offset in repeated:
                    continue
                if (edits := edits + 1) > MAX_EDITS:
                    return
                typed = [words for place, words in typed_commands(fd, offset, unsearched) if place not in repeated]
                yield from filter(None, map(programs.relevant, typed))
                unsearched = offset
                paths = folders.paths_of(path)
                yield gate.Edit(paths[-1], use_id or "", paths)
            if len(given) <= MAX_SEEN_BYTES:
                seen.add(given)
    finally:
        posix.close(fd)


class RepeatedRecords:
    """The records of an open transcript that an earlier line holds too: a compaction wrote them again.

    They are looked for when the transcript's reading, which goes backwards, has come to a compaction: what is newer
    than all compactions stands once.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.unsearched: int | None = None  # where the lines end in which no compaction was looked for
        self.offsets: set[int] | None = None  # None: no compaction was found so far

    def __contains__(self, offset: int) -> bool:
        if self.offsets is None and (self.unsearched is None or offset < self.unsearched):
            newer = reverse_lines(self.fd, offset, self.unsearched, MAX_RECORD_BYTES, COMPACTION)
            if next(newer, None) is not None:
                self.offsets = find_repeated(self.fd)
            self.unsearched = offset
        return self.offsets is not None and offset in self.offsets


class Programs:
    """The programs of the rules, which are looked for in commands.

    marks: one of them is in every input of a shell tool that runs one.
    count: of the commands that name one of them.
    """

    def __init__(self, rules: "Sequence[gate.Rule]") -> None:
        self.names = {program_name(rule.ran[0]) for rule in rules}
        self.marks = [b"\\", b"'", *(name.encode("utf-8", "surrogatepass") for name in self.names)]
        self.count = 0

    def relevant(self, command: str) -> str:
        """Return a command if it could run one of the programs, otherwise "".

        After MAX_COMMANDS, return a text that cannot be taken apart, so that it counts as a run of all programs in it.
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
    """Return the path of the file that an editing tool's input names, "" if there is none or it is too long."""
    path = (
        only_text_member(given, b"file_path") or text_member(given, "file_path") or text_member(given, "notebook_path")
    )
    return path if len(path) <= MAX_PATH_CHARS else ""


def only_text_member(given: bytes, key: bytes) -> str:
    """Return a string of a compact JSON object without decoding the others, "" if that cannot be done.

    In JSON, a quote behind { or , that is followed by the key, a quote and a colon begins a key: in a string it would
    be escaped. If the key occurs once more, the object must be decoded.
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


def typed_commands(fd: int, start: int, end: int | None) -> "Iterator[tuple[int, str]]":
    """Yield the commands that a person ran with `!`, and where, in a part of an open transcript, newest first.

    The message that follows such a command has its output and no exit code, so it is unknown whether it failed.

    end: of the part; None for the file's end.
    """
    for offset, line in reverse_lines(fd, start, end, MAX_RECORD_BYTES, TYPED_COMMAND.encode()):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        message = record.get("message") if isinstance(record, dict) and record.get("type") == "user" else None
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else [{"text": content}]
        for block in blocks:
            text = get_text(block, "text") if isinstance(block, dict) else ""
            if text.startswith(TYPED_COMMAND):
                yield offset, text[len(TYPED_COMMAND) :].partition(TYPED_COMMAND_END)[0]


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


class ProjectFolders:
    """The folders that a pattern's path may begin in: the project's root, the agent's folder, its repository."""

    def __init__(self, event: "HookEvent") -> None:
        cwd = get_text(event.payload, "cwd")
        top = event.folders[-1] if exists(f"{event.folders[-1]}/.git") else event.root  # a worktree is outside the root
        self.paths = [folder for folder in {event.root: 1, cwd: 1, top: 1} if folder.startswith("/")]
        self.by_parent: dict[str, list[str]] = {}  # what `relative_to` returned for a file's folder

    def paths_of(self, path: str) -> list[str]:
        """Return all paths that lead to a file: the absolute one, and those from the folders; the longest last."""
        path = without_dots(path)
        if not path.startswith("/"):
            return [path]
        parent, _, name = path.rpartition("/")
        if parent not in self.by_parent:
            full = len(self.by_parent) >= MAX_FOLDERS
            self.by_parent[parent] = [] if full else self.relative_to(parent)
        found = [f"{folder}{name}" for folder in self.by_parent[parent]]
        return [path, *sorted(found, key=len)]

    def relative_to(self, parent: str) -> list[str]:
        """Return a folder's path from each of the project's folders that it is in, "" or with a slash at its end.

        Folders are compared by device and inode if their paths differ: a link may lead to the project.
        """
        ids = {identity(folder) for folder in self.paths} - {None}
        found = []
        for folder in walk_up(parent):
            if folder in self.paths or (ids and identity(folder) in ids):
                found.append(f"{parent[len(folder) :].lstrip('/')}/".removeprefix("/"))
        return found


def identity(path: str) -> "tuple[int, int] | None":
    """Return the device and inode of a file or folder, None if it cannot be looked at."""
    try:
        facts = posix.stat(path)
    except (OSError, ValueError):
        return None
    return facts.st_dev, facts.st_ino


def without_dots(path: str) -> str:
    """Return a path without "." and ".." in it, without looking at the disk."""
    if "/." not in path and not path.startswith("."):
        return path
    names: list[str] = []
    for name in path.split("/"):
        if name == ".." and names and names[-1] not in ("", ".."):
            names.pop()
        elif name != ".":
            names.append(name)
    return "/".join(names)


# ---- blocked once for each edit and rule ---------------------------------------


class BlockedEdits:
    """The edits and rules for which a stop in a project was blocked, in the private state folder.

    A session that is forked or resumed has the same edits, so the file is the project's.

    ids: those of `gate.block_id`; in a file that an older version wrote, the ids of the uses of tools.
    """

    def __init__(self, root: str, now: float) -> None:
        self.now = now
        self.name = f"{fingerprint(root.encode('utf-8', 'surrogatepass')):016x}.gate"
        self.path = f"{state_folder_path()}/{self.name}"
        self.ids: list[str] = []
        self.reload()

    def lock(self) -> Lock:
        """Return the lock to hold from `reload` until the ids are saved; each project has its own. Raises OSError."""
        return Lock(f"{state_folder()}/{self.name}.lock")

    def reload(self) -> bool:
        """Read the file again; return whether it had changed."""
        before = self.ids
        try:
            found = parse_json(read_file(self.path))
        except (OSError, ValueError):
            found = None
        self.ids = [value for value in found if isinstance(value, str)] if isinstance(found, list) else []
        return self.ids != before

    def add(self, ids: list[str]) -> None:
        """Save more ids, and remove files that have not changed for long. Only under the lock. Raises OSError."""
        kept = [*(known for known in self.ids if known not in ids), *ids][-MAX_KEPT_IDS:]
        folder = state_folder()
        replace_file(f"{folder}/{self.name}", write_json(kept) + b"\n")
        for name in posix.listdir(folder):
            path = f"{folder}/{name}"
            try:
                if name.endswith(".gate") and self.now - posix.lstat(path).st_mtime > MAX_STATE_AGE_S:
                    remove_file(path)
            except OSError:
                pass  # another hook has removed it, or it is a folder
