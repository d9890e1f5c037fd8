"""The hook's input: one JSON object on stdin, and the folders of its project."""

import posix
from time import monotonic

from tailhook._core import JsonFramer, get_text, parse_json, wait_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Payload = dict[str, Any]

PAYLOAD_TIMEOUT_S = 2.0  # for the first byte and for the whole, so that a host that sends nothing does not wait long
MAX_FOLDER_BYTES = 3800  # of a path: the system opens paths of 4,095 bytes, and names of files are added
PIPE_BYTES = 1 << 16  # read at a time: the size of a pipe
MAX_PAYLOAD_BYTES = 64 << 20
MAX_RECORD_BYTES = 16 << 20  # of a transcript; a longer record is skipped
MAX_RECORDS = 250_000  # read at most; 64 MiB of a real transcript have a quarter as many
WAKING_TASKS = ("subagent", "workflow", "teammate", "agent", "session")  # kinds of task that wake the agent


def read_payload(fd: int = 0, first_byte_timeout: float = PAYLOAD_TIMEOUT_S) -> "Payload | None":
    """Return the first JSON object on stdin; None if it does not come within 2 s, or is too large.

    Does not wait for the end of input once the object is complete: hosts do not always close stdin.

    first_byte_timeout: seconds to wait for the first byte; 0 takes what is already buffered.

    Raises ValueError if it is not an object, or not complete.
    """
    framer, data, deadline = JsonFramer(), bytearray(), monotonic() + PAYLOAD_TIMEOUT_S
    end, left = -1, first_byte_timeout
    while end < 0:
        if len(data) >= MAX_PAYLOAD_BYTES or not wait_readable(fd, left):
            return None
        chunk = posix.read(fd, PIPE_BYTES)
        if not chunk:
            raise ValueError("the payload ends before it is complete" if data else "the payload is empty")
        data += chunk
        end = framer.feed(chunk)
        left = deadline - monotonic()
        if end < 0 and left <= 0:
            return None
    try:
        payload = parse_json(bytes(memoryview(data)[:end]))
    except ValueError as error:
        raise ValueError(f"the payload is {error}") from None
    if not isinstance(payload, dict):
        raise ValueError("the payload is not a JSON object")
    return payload


def is_paused(payload: "Payload") -> bool:
    """Return whether a background task of the payload will wake the agent again (a dev server will not)."""
    return count_waking_tasks(payload) > 0


def count_waking_tasks(payload: "Payload") -> int:
    """Return how many background tasks of the payload will wake the agent again."""
    tasks = payload.get("background_tasks")
    count = 0
    for task in tasks if isinstance(tasks, list) else ():
        if not isinstance(task, dict) or task.get("status") not in (None, "running", "pending"):
            continue
        kind = task.get("type")
        if isinstance(kind, str) and any(word in kind.lower() for word in WAKING_TASKS):
            count += 1
    return count


# ---- where things are ----------------------------------------------------------


def environment(name: bytes) -> str:
    """Return an environment variable, "" if it is not set."""
    return posix.environ.get(name, b"").decode("utf-8", "surrogateescape")


def folder_of(name: bytes) -> str:
    """Return the folder that a variable names, without a slash at its end; "" if it is not set."""
    return environment(name).rstrip("/")


def project_root(payload: "Payload") -> str:
    """Return the project's folder, where tailhook makes its files."""
    if root := folder_of(b"CLAUDE_PROJECT_DIR"):
        return root
    cwd = working_folder(payload)
    return next((folder for folder in walk_up(cwd) if exists(f"{folder}/.git")), cwd)


def project_folders(payload: "Payload") -> "Iterator[str]":
    """Yield the folders to search for a project's files, in order, each once."""
    root = folder_of(b"CLAUDE_PROJECT_DIR")
    if root:
        yield root
    home = folder_of(b"HOME")
    for folder in walk_up(working_folder(payload)):
        if folder != root:
            yield folder
        if folder == home or exists(f"{folder}/.git"):
            return


def working_folder(payload: "Payload") -> str:
    """Return the agent's folder: the payload's, otherwise the hook's own, or the project's if that is gone.

    If its path is too long to add the names of files, return the nearest folder above it with a shorter path. A process
    can be in such a folder, but the system opens no file by such a path (PATH_MAX).
    """
    cwd = get_text(payload, "cwd")
    if not cwd.startswith("/") or not is_path(cwd):
        try:
            cwd = posix.getcwd()
        except FileNotFoundError:
            cwd = folder_of(b"CLAUDE_PROJECT_DIR")
            if not cwd:
                raise
    if len(cwd) > MAX_FOLDER_BYTES // 4:
        path = cwd.encode("utf-8", "surrogateescape")
        if len(path) > MAX_FOLDER_BYTES:
            return path[: MAX_FOLDER_BYTES + 1].rpartition(b"/")[0].decode("utf-8", "surrogateescape")
    return cwd


def walk_up(folder: str) -> "Iterator[str]":
    """Yield `folder` and its parents, the nearest first and "/" last.

    folder: an absolute path. Links are not resolved.
    """
    folder = folder.rstrip("/")
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield "/"


def is_path(name: str) -> bool:
    """Return whether the system accepts `name` as a path: it has no NUL, and `os.fsencode` could encode it."""
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return "\0" not in name


def user_config() -> str:
    """Return the path of the user's configuration. It may not exist."""
    base = environment(b"XDG_CONFIG_HOME")
    if not base.startswith("/"):
        base = f"{environment(b'HOME')}/.config"
    return f"{base}/tailhook/config.json"


def exists(path: str) -> bool:
    """Return whether `path` exists, even as a broken link."""
    try:
        posix.lstat(path)
    except OSError:
        return False
    return True
