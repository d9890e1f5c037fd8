"""The triage machine's stop: the pipeline's state found, decided on, and saved before the answer."""

from tailhook._core import fingerprint
from tailhook.hook.answer import warn
from tailhook.hook.machines import MACHINES
from tailhook.hook.payload import is_paused
from tailhook.machines import Verdict, triage
from tailhook.stores.atomic import read_file, replace_file
from tailhook.stores.jsonfile import JsonFile, files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tailhook.hook.process import Event

ENDING = "_triage.json"


class Pipeline:
    """One state file, as the machine reads it.  state: the value without its entries; None where it cannot be read."""

    __slots__ = ("entries", "file", "problem", "state")

    def __init__(self, file: JsonFile) -> None:
        self.file = file
        self.read()

    def read(self) -> None:
        """Look into the file's bytes."""
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
            if not set(triage.columns_for(self.state)).issubset(paths):  # the phase is said again behind the entries
                paths = triage.ALL_COLUMNS
                self.state, columns = self.file.columns("entries", lambda state: triage.ALL_COLUMNS)
            if columns is not None:
                self.entries = triage.Entries(paths, columns)
        except OSError as error:
            self.problem = f"the file cannot be read: {error.strerror}"
        except ValueError as error:
            self.problem = str(error)

    def is_complete(self) -> bool:
        """Whether there is nothing left to do."""
        return isinstance(self.state, dict) and self.state.get("phase") == "complete"


def ask(event: "Event") -> Verdict | None:
    """The verdict, saved; None where no pipeline is under way."""
    pipeline = find(event)
    if pipeline is None:
        return None
    verdict = decide(event, pipeline)
    if verdict.state is not None:
        try:
            with pipeline.file.lock():
                if pipeline.file.has_changed():
                    pipeline.read()
                    verdict = decide(event, pipeline)
                if verdict.state is not None:
                    changed = (("updated_at",), triage.iso_milliseconds(event.now))
                    pipeline.file.edit([*verdict.state, changed])
        except (OSError, KeyError) as error:
            warn(
                f"tailhook: {pipeline.file.path}: {error}. The pipeline's state could not be saved; the agent may stop."
            )
            return None
    if verdict.outcome == "block" and while_active(event):
        try:
            remember(pipeline.file)
        except OSError as error:
            warn(f"tailhook: {pipeline.file.path}: {error}. What this block saw could not be kept.")
            if event.payload.get("stop_hook_active") is True:
                return Verdict("allow", "it cannot be known whether anything changed since the last block")
    return verdict


def decide(event: "Event", pipeline: Pipeline) -> Verdict:
    """What the machine says of this event."""
    path = pipeline.file.path
    facts = triage.Facts(
        path=path,
        plans=f"{path.rpartition('/')[0]}/fix_plans",
        session_id=event.session_id,
        paused=is_paused(event.payload),
        stop_hook_active=event.payload.get("stop_hook_active") is True,
        while_active=while_active(event),
        moved=lambda: seen(pipeline.file) != fingerprint(pipeline.file.data()),
        unbound_acts=event.unbound_acts(),
    )
    if pipeline.problem:
        return triage.broken(pipeline.problem, facts)
    return triage.decide(pipeline.state, pipeline.entries, facts)


def find(event: "Event") -> Pipeline | None:
    """The first pipeline that is not complete: folders in order, in each the names in byte order."""
    for folder, names in state_folders(event):
        for file in files(folder, names, ENDING):
            pipeline = Pipeline(file)
            if not pipeline.is_complete():
                return pipeline
    return None


def state_folders(event: "Event") -> "Iterator[tuple[str, list[str]]]":
    """Where states are looked for: a folder, and the names below it that must not be links."""
    configured = event.setting("triage", "state_dirs")
    for path in configured or MACHINES["triage"]["marker_files"]:
        if isinstance(path, str) and path.startswith("/"):
            yield path, []
        elif isinstance(path, str):
            for folder in event.folders:
                yield folder, [name for name in path.split("/") if name not in ("", ".")]


def while_active(event: "Event") -> bool:
    """Whether a turn that was blocked before is blocked again as long as the state moves."""
    return bool(event.setting("triage", "while_active") == "progress")


# ---- what the last block saw -------------------------------------------------


def remember(file: JsonFile) -> None:
    """Keep a hash of the state. Raises OSError."""
    replace_file(file.private_file(".seen"), f"{fingerprint(file.data()):016x}\n".encode())


def seen(file: JsonFile) -> int | None:
    """Return the hash that the last block left, or None."""
    try:
        return int(read_file(file.private_file(".seen")), 16)
    except (OSError, ValueError):
        return None
