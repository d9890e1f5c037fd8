"""The gate machine's hook: it reads edits and commands from the transcript's end and keeps for which it blocked."""

import posix

from tailhook._core import fingerprint, parse_json, reverse_lines, write_json
from tailhook.hook.event import MAX_RECORD_BYTES, MAX_RECORDS, MAX_TRANSCRIPT_BYTES
from tailhook.hook.machines import decide_and_save
from tailhook.hook.payload import get_text, is_paused
from tailhook.machines import Verdict, gate
from tailhook.stores.atomic import Lock, read_file, replace_file, state_folder, state_folder_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tailhook.hook.event import HookEvent

EDITING_TOOLS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
MAX_KEPT_IDS = 100  # of edits for which a stop was blocked; the newest ones


def ask(event: "HookEvent") -> "Verdict[list[str]] | None":
    """Decide, and keep for which edits a stop was blocked; return None if there are no rules.

    Reads back through the transcript (at most 64 MiB) until every rule is decided.
    """
    rules = gate.parse_rules(event.setting("gate", "rules", ()))
    if not rules:
        return None
    blocked = BlockedEdits(event.session_id or event.transcript_path())

    def decide() -> "Verdict[list[str]]":
        facts = gate.Facts(
            rules,
            happened(event),
            is_paused(event.payload),
            event.payload.get("stop_hook_active") is True,
            set(blocked.ids),
        )
        try:
            return gate.decide(facts)
        except (OSError, ValueError) as error:
            return Verdict("allow", f"the transcript cannot be read: {error}")

    return decide_and_save(blocked, decide, lambda verdict: blocked.add(verdict.change or []))


def happened(event: "HookEvent") -> "Iterator[gate.Edit | str]":
    """Yield the edits and shell commands that did not fail, newest first. Raises OSError or ValueError.

    Without a result it is unknown whether a tool did anything: an edit is left out then, and a command counts.
    """
    fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    try:
        failed: dict[str, bool] = {}  # by the id of a tool's use: whether its result is an error
        start = max(0, posix.fstat(fd).st_size - MAX_TRANSCRIPT_BYTES)
        for number, (_, line) in enumerate(reverse_lines(fd, start, None, MAX_RECORD_BYTES)):
            if number >= MAX_RECORDS:
                return
            if b'"tool_' not in line:
                continue
            for block in reversed(blocks_of(line)):
                if block.get("type") == "tool_result":
                    failed[get_text(block, "tool_use_id")] = block.get("is_error") is True
                elif block.get("type") == "tool_use":
                    yield from happening(block, failed, event.root)
    finally:
        posix.close(fd)


def blocks_of(line: bytes) -> "list[dict[str, Any]]":
    """Return the content blocks of a record's message; none if the line is not such a record."""
    try:
        record = parse_json(line)
    except ValueError:
        return []
    message = record.get("message") if isinstance(record, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def happening(block: "dict[str, Any]", failed: "dict[str, bool]", root: str) -> "Iterator[gate.Edit | str]":
    """Yield what a tool_use block did, if it is an edit or a shell command that did not fail."""
    given, use_id = block.get("input"), get_text(block, "id")
    if not isinstance(given, dict) or failed.get(use_id, False):
        return
    name = get_text(block, "name")
    if name == "Bash":
        yield get_text(given, "command")
    elif name in EDITING_TOOLS and use_id in failed:
        path = get_text(given, "file_path") or get_text(given, "notebook_path")
        yield gate.Edit(path.removeprefix(f"{root}/"), use_id)


class BlockedEdits:
    """The edits of a session for which a stop was blocked, in the private state folder.

    ids: of the uses of tools.
    """

    def __init__(self, session: str) -> None:
        self.name = f"{fingerprint(session.encode('utf-8', 'surrogatepass')):016x}.gate"
        self.path = f"{state_folder_path()}/{self.name}"
        self.ids: list[str] = []
        self.reload()

    def lock(self) -> Lock:
        """Return the lock to hold from `reload` until the ids are kept. Raises OSError."""
        return Lock(f"{state_folder()}/{self.name}.lock")

    def reload(self) -> bool:
        """Read the file again; return whether it had changed."""
        before = self.ids
        try:
            found = parse_json(read_file(self.path))
        except (OSError, ValueError):
            found = None
        self.ids = [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
        return self.ids != before

    def add(self, ids: list[str]) -> None:
        """Keep more ids. Only under the lock. Raises OSError."""
        kept = [*(one for one in self.ids if one not in ids), *ids][-MAX_KEPT_IDS:]
        replace_file(f"{state_folder()}/{self.name}", write_json(kept) + b"\n")
