"""The triage machine's hook: finds the pipeline's state, asks the machine to decide, and saves the new state."""

from tailhook._core import fingerprint, iso_time
from tailhook.hook.answer import describe, warn
from tailhook.hook.machines import MACHINES, decide_and_save
from tailhook.hook.payload import is_paused
from tailhook.machines import Verdict, triage
from tailhook.stores.atomic import read_file, replace_file
from tailhook.stores.jsonfile import JsonFile, find_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tailhook.hook.event import HookEvent
    from tailhook.stores.atomic import Lock

ENDING = "_triage.json"


class Pipeline:
    """One state file, in the machine's form.

    state: the value without its entries; None if it cannot be read.
    entries: None if they are missing or not an array.
    problem: why the file cannot be read, "" if it can.
    """

    __slots__ = ("entries", "file", "problem", "state")

    def __init__(self, file: JsonFile) -> None:
        self.file = file
        self.read()

    @property
    def path(self) -> str:
        """The file's path."""
        return self.file.path

    @property
    def plans(self) -> str:
        """The folder of the fix plans, beside the file."""
        return f"{self.path.rpartition('/')[0]}/fix_plans"

    def lock(self) -> "Lock":
        """Return the lock to hold from `reload` until the state is saved."""
        return self.file.lock()

    def reload(self) -> bool:
        """Read the state again if the file has changed; return whether it had. Raises OSError."""
        if not self.file.has_changed():
            return False
        self.read()
        return True

    def read(self) -> None:
        """Read the state; note its fault."""
        self.state: object = None
        self.entries: triage.Entries | None = None
        self.problem = ""
        paths: tuple[tuple[str, ...], ...] = ()

        def choose(state: "dict[str, Any]") -> "tuple[tuple[str, ...], ...]":
            nonlocal paths
            paths = triage.columns_for(state)
            return paths

        try:
            self.state, columns = self.file.columns("entries", choose)
            # The member `phase` may occur again after the entries, with another value. The last value counts.
            if not set(triage.columns_for(self.state)).issubset(paths):
                paths = triage.ALL_COLUMNS
                self.state, columns = self.file.columns("entries", lambda state: triage.ALL_COLUMNS)
            if columns is not None:
                self.entries = triage.Entries(paths, columns)
        except OSError as error:
            self.problem = f"the file cannot be read: {error.strerror}"
        except ValueError as error:
            self.problem = self.with_line(str(error))

    def with_line(self, complaint: str) -> str:
        """Return a complaint about the file with a line and a column in place of its byte."""
        from tailhook.hook.config import name_position

        try:
            return name_position(self.file.data(), complaint)
        except OSError:
            return complaint

    def is_complete(self) -> bool:
        """Return whether nothing is left to do."""
        return isinstance(self.state, dict) and self.state.get("phase") == "complete"


def ask(event: "HookEvent") -> "Verdict[triage.StateEdits] | None":
    """Decide and save the new state; return the verdict, or None if no pipeline is running.

    Reads the state files of the project's folders until the session may run one that is not complete. If
    `triage.while_active` is "progress" and the verdict is a block, keeps a hash of the state in the private state
    folder.
    """
    pipeline = find_pipeline(
        event.folders,
        event.setting("triage", "state_dirs"),
        lambda found: triage.may_run(found.state, event.session_id, event.unbound_acts),
    )
    if pipeline is None:
        return None

    def save(verdict: "Verdict[triage.StateEdits]") -> None:
        changed = (("updated_at",), iso_time(event.now, milliseconds=True))
        pipeline.file.edit([*(verdict.change or ()), changed])

    verdict = decide_and_save(pipeline, lambda: decide_pipeline(pipeline, triage_facts(event, pipeline)), save)
    if verdict is not None and verdict.outcome == "block" and while_active(event):
        try:
            save_hash(pipeline.file, event.session_id)
        except OSError as error:
            warn(f"tailhook: {pipeline.path}: the state's hash could not be saved ({describe(error)}).")
            if event.payload.get("stop_hook_active") is True:
                return Verdict("allow", "it cannot be known whether anything changed since the last block")
    return verdict


def triage_facts(event: "HookEvent", pipeline: Pipeline) -> triage.Facts:
    """Return the facts for the machine."""
    return triage.Facts(
        path=pipeline.path,
        plans=pipeline.plans,
        session_id=event.session_id,
        paused=is_paused(event.payload),
        stop_hook_active=event.payload.get("stop_hook_active") is True,
        while_active=while_active(event),
        has_changed=lambda: load_hash(pipeline.file, event.session_id) != fingerprint(pipeline.file.data()),
        unbound_acts=event.unbound_acts,
    )


def decide_pipeline(pipeline: Pipeline, facts: triage.Facts) -> "Verdict[triage.StateEdits]":
    """Decide what happens to the pipeline."""
    if pipeline.problem:
        return triage.broken(pipeline.problem, facts)
    return triage.decide(pipeline.state, pipeline.entries, facts)


def find_pipeline(
    folders: "Sequence[str]",
    state_dirs: "Sequence[str] | None",
    is_ours: "Callable[[Pipeline], bool]" = lambda found: True,
) -> Pipeline | None:
    """Return the first pipeline that is not complete: folders in order, in each the names in byte order.

    Another session's is returned only if all are.

    folders: the ones to search for a project's files.
    state_dirs: the configured folders of states, absolute or below one of `folders`; None for the default ones.
    is_ours: returns whether the session may run a pipeline.
    """
    theirs = None
    for folder, names in state_folders(folders, state_dirs or MACHINES["triage"].get("marker_files", ())):
        for file in find_files(folder, names, ENDING):
            pipeline = Pipeline(file)
            if pipeline.is_complete():
                continue
            if is_ours(pipeline):
                return pipeline
            theirs = theirs or pipeline
    return theirs


def state_folders(folders: "Sequence[str]", state_dirs: "Sequence[str]") -> "Iterator[tuple[str, list[str]]]":
    """Yield the places of states: a folder, and the names below it. The names must not be links."""
    for path in state_dirs:
        if path.startswith("/"):
            yield path, []
        else:
            for folder in folders:
                yield folder, [name for name in path.split("/") if name not in ("", ".")]


def while_active(event: "HookEvent") -> bool:
    """Return whether to block a turn again as long as the state changes."""
    return bool(event.setting("triage", "while_active") == "progress")


# ---- the state at the last block ---------------------------------------------


def hash_file(file: JsonFile, session_id: str) -> str:
    """Return the path of the private file with the state's hash: one for each session. Raises OSError."""
    return file.private_file(f"-{fingerprint(session_id.encode('utf-8', 'surrogatepass')):016x}.seen")


def save_hash(file: JsonFile, session_id: str) -> None:
    """Save a hash of the state in the private state folder. Raises OSError."""
    replace_file(hash_file(file, session_id), f"{fingerprint(file.data()):016x}\n".encode())


def load_hash(file: JsonFile, session_id: str) -> int | None:
    """Return the saved hash of the state at the session's last block, or None."""
    try:
        return int(read_file(hash_file(file, session_id)), 16)
    except (OSError, ValueError):
        return None
