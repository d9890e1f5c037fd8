"""The configuration as the hook reads it: the user's file, and the project's over it.

A project's file comes with its clone, so what would let a stranger write elsewhere is the user's alone.
"""

import posix

from tailhook._core import parse_json
from tailhook.hook.answer import warn
from tailhook.hook.machines import MACHINES
from tailhook.hook.payload import is_path, user_config
from tailhook.stores.atomic import TOO_LARGE, open_folder, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Config = dict[str, dict[str, Any]]

# Every section and key that is read, with the type its value must have. A value of another type counts as absent.
KEYS: "dict[str, dict[str, type | tuple[type, ...]]]" = {
    "hook": {"machines": list, "unbound": str, "log": str},
    **{name: machine["keys"] for name, machine in MACHINES.items() if "keys" in machine},
}
MAX_SECONDS = 2**53  # a larger number cannot be a time
USERS_ALONE = (("hook", "log"), ("plates", "autostart"))


def load(project: str) -> "Config":
    """The sections of both files, the values of the project's over the user's.

    project: the project's root.  A file that is not there has no sections; a broken one has none either, and a line on
    stderr says so.
    """
    config = parsed(user_config(), user_bytes)
    ours = parsed(f"{project}/.claude/tailhook.json", lambda path: project_bytes(project))
    for section, key in USERS_ALONE:
        ours[section].pop(key, None)
    if folders := ours["triage"].get("state_dirs"):
        ours["triage"]["state_dirs"] = [path for path in folders if stays_below(path)]
    return {section: {**config[section], **ours[section]} for section in KEYS}


def stays_below(path: str) -> bool:
    """Return whether a path of a project's file stays inside the project."""
    return not path.startswith("/") and ".." not in path.split("/")


def user_bytes(path: str) -> bytes:
    """The user's file; a link to it is the user's own choice."""
    return read_file(path, flags=posix.O_CLOEXEC | posix.O_NONBLOCK)


def project_bytes(project: str) -> bytes:
    """The project's file, not through a link."""
    folder = open_folder(project, ".claude")
    try:
        return read_file("tailhook.json", folder)
    finally:
        posix.close(folder)


def parsed(path: str, read: "Callable[[str], bytes]") -> "Config":
    """The known sections of one file, each with the values of the right type."""
    try:
        found = parse_json(read(path))
        if not isinstance(found, dict):
            raise ValueError("the file is no JSON object")
    except OSError as error:
        if error.errno == TOO_LARGE:
            warn(f"tailhook: {path}: {error.strerror}. The defaults are used.")
        found = {}
    except ValueError as error:
        warn(f"tailhook: {path}: {error}. The defaults are used.")
        found = {}
    return {section: known(found.get(section), types) for section, types in KEYS.items()}


def known(values: object, types: "dict[str, type | tuple[type, ...]]") -> "dict[str, Any]":
    """Return the values of one section that can be used; of a list those members that can."""
    if not isinstance(values, dict):
        return {}
    usable = {key: values[key] for key, kind in types.items() if is_usable(values.get(key), kind)}
    return {
        key: [item for item in value if isinstance(item, str) and is_path(item)] if isinstance(value, list) else value
        for key, value in usable.items()
    }


def is_usable(value: object, kind: "type | tuple[type, ...]") -> bool:
    """Return whether a value has the type of its key, and a number is one of seconds: finite and not negative."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return False
    if isinstance(value, str):
        return is_path(value)
    return not isinstance(value, (int, float)) or isinstance(value, bool) or 0 <= value <= MAX_SECONDS
