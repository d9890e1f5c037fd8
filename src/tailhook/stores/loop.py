"""The idle machine's loop on disk: a topic of the project's jwz store, or the fallback file.

Both give the state in the machine's form (docs/machines/idle.md, "Files") and save a changed one. Unchanged values keep
their bytes.
"""

import posix

from tailhook._core import edit_json, parse_json, write_json
from tailhook.stores import FALLBACK_FILE
from tailhook.stores.atomic import read_file, state_folder_path
from tailhook.stores.jwz import MESSAGES_FILE, Message, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tailhook.stores.atomic import Lock
    from tailhook.stores.fallback import FileLoop

TOPIC = "loop:current"


class JwzLoop:
    """The loop in a jwz store's topic `loop:current`."""

    def __init__(self, store: Store, newest: Message | None) -> None:
        self.store = store
        self.newest = newest
        self.parsed: tuple[Message | None, object] = (None, None)  # a message, and its body as a JSON value
        self.path = store.path

    def lock(self) -> "Lock":
        """Return the lock to hold from `reload` to `save`."""
        return self.store.lock()

    def reload(self) -> bool:
        """If the store has changed, read the newest message again; return whether it is newer.

        Raises OSError.
        """
        if not self.store.has_changed():
            return False
        newest = self.store.newest(TOPIC)
        before = self.newest
        if newest and before and (newest.offset, newest.id, newest.body) == (before.offset, before.id, before.body):
            return False
        self.newest = newest
        return newest is not before

    @property
    def state(self) -> object:
        """The newest body as a JSON value; None if it is not JSON, or if there is no message.

        Parsed once. So a changed state shares its unchanged values as the same objects, and `save` skips them at any
        depth.
        """
        if self.newest is not self.parsed[0]:
            self.parsed = self.newest, parse_body(self.newest.body) if self.newest else None
        return self.parsed[1]

    @property
    def goal(self) -> str:
        """The prompt that `tailhook loop start` stored for the top frame, "" when there is none."""
        state = self.state
        stack = state.get("stack") if isinstance(state, dict) else None
        top = stack[-1] if isinstance(stack, list) and stack else None
        return read_prompt(top.get("prompt_file")) if isinstance(top, dict) else ""

    def begin(self, state: "dict[str, Any]", now: float) -> None:
        """Post the first state of a loop. Only under the lock. Raises OSError."""
        self.newest = self.store.post(TOPIC, write_json(state).decode("utf-8"), now, self.newest)

    def save(self, state: "dict[str, Any]", now: float) -> None:
        """Post the next state. Only under the lock. Raises OSError."""
        old = self.state
        if self.newest and isinstance(old, dict):
            body = edit_json(self.newest.body.encode("utf-8", "surrogatepass"), list(edits_between(old, state)))
        else:
            body = write_json(state)
        self.newest = self.store.post(TOPIC, body.decode("utf-8"), now, self.newest)


def find_loop(folders: "Iterable[str]", seconds: float | None = None) -> "JwzLoop | FileLoop | None":
    """Return the loop of the first folder with one: a state in a store's message, otherwise a fallback file.

    The state of a loop that has ended is returned only if no other folder has a store with a loop.

    seconds: how long a large store may be read for the first time; None for as long as it takes.

    Raises OSError with its path if an existing store or file cannot be read, or only by following a link.
    """
    folders, ended = list(folders), None
    for folder in folders:
        store = Store.find(folder)
        if store is None:
            continue
        try:
            loop = JwzLoop(store, store.newest(TOPIC, seconds))
        except OSError as error:
            error.filename = f"{store.path}/{MESSAGES_FILE}"
            raise
        if loop.newest and is_state(loop.state):
            if not has_ended(loop.state):
                return loop
            ended = ended or loop
    if ended is not None:
        return ended
    for folder in folders:
        try:
            posix.lstat(f"{folder}/.claude/{FALLBACK_FILE}")
        except (FileNotFoundError, NotADirectoryError):
            continue
        from tailhook.stores.fallback import FileLoop

        return FileLoop(folder)
    return None


def remove_fallback(folders: "Iterable[str]") -> None:
    """Remove the fallback files of an aborted loop, each under its lock. If one cannot be removed, it stays."""
    for folder in folders:
        try:
            posix.lstat(f"{folder}/.claude/{FALLBACK_FILE}")
            from tailhook.stores.fallback import FileLoop

            file = FileLoop(folder)
            with file.lock():
                file.remove()
        except OSError:
            continue


def prompt_folder() -> str:
    """Return the folder of the prompts of loops."""
    return f"{state_folder_path()}/prompts"


def read_prompt(path: object) -> str:
    """Return a stored prompt; "" for any other file, because a clone's state must not reveal files."""
    name = path.rpartition("/")[2] if isinstance(path, str) else ""
    if not name or path != f"{prompt_folder()}/{name}":
        return ""
    try:
        return read_file(f"{prompt_folder()}/{name}").decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def parse_body(body: str) -> object:
    """Return the JSON value of a message's body, or None if it is not JSON."""
    try:
        return parse_json(body)
    except ValueError:
        return None


def is_state(body: object) -> bool:
    """Return whether a message's body is a state of the idle machine: an object without `schema` is another tool's."""
    return not isinstance(body, dict) or body.get("schema") is not None


def has_ended(state: object) -> bool:
    """Return whether a state is that of a loop that has ended: nothing is left to do at a stop."""
    return isinstance(state, dict) and (state.get("event") == "DONE" or not state.get("stack"))


def edits_between(
    old: object, new: object, path: "tuple[str | int, ...]" = ()
) -> "Iterator[tuple[tuple[str | int, ...], bytes | None]]":
    """Yield the edits that turn `old` into `new`: the smallest differing values."""
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key not in new:
                yield (*path, key), None
        for key, value in new.items():
            if key in old:
                yield from edits_between(old[key], value, (*path, key))
            else:
                yield (*path, key), write_json(value)
    elif isinstance(old, list) and isinstance(new, list) and 0 < len(new) <= len(old):
        for index, value in enumerate(new):
            yield from edits_between(old[index], value, (*path, index))
        for _ in range(len(old) - len(new)):
            yield (*path, -1), None
    elif old != new or type(old) is not type(new):
        yield path, write_json(new)
