"""The gate machine's hook: it reads edits and commands from the transcript's end, and saves the blocked edits."""

import posix

from tailhook._core import fingerprint, parse_json, write_json
from tailhook.hook.answer import describe
from tailhook.hook.edits_and_commands import Walk
from tailhook.hook.event import MAX_TRANSCRIPT_BYTES
from tailhook.hook.machines import decide_and_save
from tailhook.hook.payload import is_paused
from tailhook.machines import Verdict, gate
from tailhook.stores.atomic import Lock, read_file, remove_file, replace_file, state_folder, state_folder_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailhook.hook.event import HookEvent
    from tailhook.machines.rules import Edit, Rule

MAX_KEPT_IDS = 1000  # of the blocked edits and rules; the newest ones of a project
MAX_STATE_AGE_S = 30 * 86400  # until another project's file is removed


def ask(event: "HookEvent") -> "Verdict[list[str]] | None":
    """Decide about a stop and save the edits that block it. Returns None if there are no rules.

    Reads back through the transcript (at most 64 MiB) until every rule is decided. If a signal would end a loop at this
    stop, `ask_in_loop` has decided already. If a loop has just ended without a signal, that loop blocked the stop
    before, not this machine.
    """
    if event.gate_verdict is not None:
        return event.gate_verdict
    return decide_once(event, event.payload.get("stop_hook_active") is True and not event.has_ended_own_loop)


def ask_in_loop(event: "HookEvent") -> "Verdict[list[str]] | None":
    """Decide about a stop that would end a loop, once. The loop blocked the stop before, so `stop_hook_active` is set.

    Returns None if there are no rules.
    """
    if event.gate_verdict is None:
        event.gate_verdict = decide_once(event, is_blocked=False)
    return event.gate_verdict


def decide_once(event: "HookEvent", is_blocked: bool) -> "Verdict[list[str]] | None":
    """Decide about a stop and save the edits that block it. Returns None if there are no rules.

    is_blocked: whether this turn was blocked before.
    """
    rules = gate.parse_rules(event.setting("gate", "rules", ()))
    if not rules:
        return None
    blocked = BlockedEdits(event.root, event.now)

    def decide() -> "Verdict[list[str]]":
        facts = gate.Facts(rules, happened(event, rules), is_paused(event.payload), is_blocked, set(blocked.ids))
        try:
            return gate.decide(facts)
        except (OSError, ValueError) as error:
            return Verdict("allow", f"the transcript cannot be read: {describe(error)}")

    return decide_and_save(blocked, decide, lambda verdict: blocked.add(verdict.change or []))


def happened(event: "HookEvent", rules: "Sequence[Rule]") -> "Iterator[Edit | str]":
    """Yield the edits and shell commands in the event's transcript, newest first. Raises OSError or ValueError."""
    fd = posix.open(event.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    try:
        start = max(0, posix.fstat(fd).st_size - MAX_TRANSCRIPT_BYTES)
        yield from Walk(fd, event, rules, start)
    finally:
        posix.close(fd)


# ---- blocked once for each edit and rule ---------------------------------------


class BlockedEdits:
    """The blocked edits and rules of a project, in the private state folder.

    A forked or resumed session has the same edits, so the file is the project's.

    ids: of `gate.block_id`; in an older version's file, the ids of the uses of tools.
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
        """Save more ids, and remove old files. Only under the lock. Raises OSError."""
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
