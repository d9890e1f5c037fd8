"""The hook's input: one JSON object on stdin, and what it says of the session and the project."""

import posix
from time import monotonic

from tailhook._core import JsonFramer, parse_json, wait_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Payload = dict[str, Any]

SECONDS = 2.0  # for the first byte and for the whole: a host that sends nothing must not be kept waiting
CHUNK = 1 << 16  # bytes that are read at a time: what a pipe holds
LARGEST = 64 << 20
PAUSING = ("subagent", "workflow", "teammate", "agent", "session")  # kinds of task that wake the agent when they end
BOM = b"\xef\xbb\xbf"


def read(fd: int = 0, first: float = SECONDS) -> "Payload | None":
    """The payload: the first JSON object that comes, complete within 2 s; None when it does not come, or without end.

    first: seconds to wait for the first byte; 0 takes what is there.  Raises ValueError for anything else than an
    object. Does not wait for the end of input once the object is complete: hosts do not always close stdin.
    """
    framer, data, deadline = JsonFramer(), bytearray(), monotonic() + SECONDS
    end, left = -1, first
    while end < 0:
        if len(data) >= LARGEST or not wait_readable(fd, left):
            return None
        chunk = posix.read(fd, CHUNK)
        if not chunk:
            raise ValueError("the payload ends before it is complete" if data else "the payload is empty")
        data += chunk
        end = framer.feed(chunk)
        left = deadline - monotonic()
        if end < 0 and left <= 0:
            return None
    try:
        payload = parse_json(bytes(data[:end]).removeprefix(BOM))
    except ValueError as error:
        raise ValueError(f"the payload is {error}") from None
    if not isinstance(payload, dict):
        raise ValueError("the payload is no JSON object")
    return payload


def text(payload: "Payload", key: str) -> str:
    """The string member `key`, "" when it is absent or no string."""
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def is_paused(payload: "Payload") -> bool:
    """Whether a background task of the payload will wake the agent again (a dev server will not)."""
    tasks = payload.get("background_tasks")
    for task in tasks if isinstance(tasks, list) else ():
        if not isinstance(task, dict) or task.get("status") not in (None, "running"):
            continue
        kind = task.get("type")
        if isinstance(kind, str) and any(word in kind.lower() for word in PAUSING):
            return True
    return False


# ---- where things are ----------------------------------------------------------


def environment(name: bytes) -> str:
    """An environment variable, "" when it is not set."""
    return posix.environ.get(name, b"").decode("utf-8", "surrogateescape")


def folder_of(name: bytes) -> str:
    """A folder that the environment names, one spelling for each (locks go by it), "" when it names none."""
    return environment(name).rstrip("/")


def project_root(payload: "Payload") -> str:
    """The folder that the files we make go to."""
    if root := folder_of(b"CLAUDE_PROJECT_DIR"):
        return root
    cwd = working_folder(payload)
    return next((folder for folder in upwards(cwd) if exists(f"{folder}/.git")), cwd)


def project_folders(payload: "Payload") -> "Iterator[str]":
    """The folders a project's files are looked for in, in order, each once."""
    root = folder_of(b"CLAUDE_PROJECT_DIR")
    if root:
        yield root
    home = folder_of(b"HOME")
    for folder in upwards(working_folder(payload)):
        if folder != root:
            yield folder
        if folder == home or exists(f"{folder}/.git"):
            return


def working_folder(payload: "Payload") -> str:
    """Return the agent's folder: the payload's, else the hook's own, or the project's if that is gone."""
    cwd = text(payload, "cwd")
    if cwd.startswith("/") and is_path(cwd):
        return cwd
    try:
        return posix.getcwd()
    except FileNotFoundError:
        if root := folder_of(b"CLAUDE_PROJECT_DIR"):
            return root
        raise


def upwards(folder: str) -> "Iterator[str]":
    """`folder` and its parents, up to the root."""
    folder = folder.rstrip("/")
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield "/"


def is_path(name: str) -> bool:
    """Return whether the system can take `name` as a path: no NUL, no lone surrogate that stands for no byte."""
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return "\0" not in name


def user_config() -> str:
    """Where the user's configuration is, or would be."""
    base = environment(b"XDG_CONFIG_HOME")
    if not base.startswith("/"):
        base = f"{environment(b'HOME')}/.config"
    return f"{base}/tailhook/config.json"


def exists(path: str) -> bool:
    """Whether something is at `path`, a broken link included."""
    try:
        posix.lstat(path)
    except OSError:
        return False
    return True
