"""The configuration: the user's file, and the project's on top of it.

A project's file comes with its clone. So keys with which a stranger could write elsewhere count only in the user's
file. A project can leave machines out, but cannot enable one.
"""

import posix

from tailhook._core import parse_json
from tailhook.hook.answer import warn
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import is_path, user_config
from tailhook.stores.atomic import TOO_LARGE, open_folder, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tailhook.hook.protocols import KeyKind

    Config = dict[str, dict[str, Any]]

# Every section and key, and the kind of each key's value. A value of another kind counts as absent. A key with a dot is
# one of an object inside of the section.
KEYS: "dict[str, Mapping[str, KeyKind]]" = {
    "hook": {"machines": "texts", "unbound": "text", "log": "text"},
    "pool": {"autostart": "flag", "stats": "flag"},
    **{name: machine["keys"] for name, machine in MACHINES.items() if "keys" in machine},
}
USER_KEYS = {
    "hook": ("log",),
    "pool": ("autostart", "stats"),
    **{name: machine.get("user_keys", ()) for name, machine in MACHINES.items()},
}
MAX_CONFIG_BYTES = 256 << 10
MAX_SECONDS = 2**53  # a larger number cannot be a time
MAX_MEMBERS = 100  # used of a list


def load(project: str) -> "Config":
    """Return the sections of both files. A value of the project replaces the user's value of the same key.

    Two values of the project can only take away. In hook.machines, only the user's enabled machines count. hook.unbound
    counts only if it is "refuse". A user's file without hook.machines enables the default machines.

    Prints a warning if a file cannot be read. Such a file counts as empty, like a missing one.

    project: the project's root; "" without one.
    """
    config = read_sections(user_config(), user_bytes)
    ours = read_sections(f"{project}/.claude/tailhook.json", lambda path: project_bytes(project))
    for section, values in ours.items():
        for key in USER_KEYS.get(section, ()):
            values.pop(key, None)
        for key, kind in KEYS[section].items():
            if kind == "paths" and key in values:
                values[key] = [path for path in values[key] if stays_below(path)]
    if ours["hook"].get("unbound") != "refuse":
        ours["hook"].pop("unbound", None)
    if "machines" in ours["hook"]:
        asked = ours["hook"]["machines"]
        ours["hook"]["machines"] = [name for name in configured_machines(config) if name in asked]
    return {section: {**config[section], **ours[section]} for section in KEYS}


def stays_below(path: str) -> bool:
    """Return whether a path of a project's file stays inside the project."""
    return not path.startswith("/") and ".." not in path.split("/")


def user_bytes(path: str) -> bytes:
    """Return the user's file; a link to it is the user's own choice. Raises OSError."""
    return read_file(path, flags=posix.O_CLOEXEC | posix.O_NONBLOCK, max_bytes=MAX_CONFIG_BYTES)


def project_bytes(project: str) -> bytes:
    """Return the project's file, unless it is a link. Raises OSError."""
    folder = open_folder(project, ".claude")
    try:
        return read_file("tailhook.json", folder, max_bytes=MAX_CONFIG_BYTES)
    finally:
        posix.close(folder)


def read_sections(path: str, read: "Callable[[str], bytes]") -> "Config":
    """Return the known sections of one file, each with its usable values. Prints a warning for a broken file."""
    try:
        found = parse_config(read(path))
    except OSError as error:
        if error.errno == TOO_LARGE:
            warn(f"tailhook: {path}: {error.strerror}. The defaults are used.")
        found = {}
    except ValueError as error:
        warn(f"tailhook: {path}: {error}. The defaults are used.")
        found = {}
    return {section: usable_values(found.get(section), kinds) for section, kinds in KEYS.items()}


def parse_config(data: bytes) -> "dict[str, Any]":
    """Return what a configuration file holds. Raises ValueError with the place in the file, if it is known."""
    try:
        found = parse_json(data)
    except ValueError as error:
        raise ValueError(name_position(data, str(error))) from None
    if not isinstance(found, dict):
        raise ValueError("the file is not a JSON object")
    return found


def name_position(data: bytes, complaint: str) -> str:
    """Return a complaint of `parse_json` with a line and a column in place of its byte."""
    words, found, byte = complaint.rpartition(" at byte ")
    if not found or not byte.isdigit():
        return complaint
    before = data[: int(byte)].decode("utf-8-sig", "replace")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"{words} at line {line}, column {column}"


def usable_values(values: object, kinds: "Mapping[str, KeyKind]") -> "dict[str, Any]":
    """Return the values of one section with the right kind; of a list, the members with the right kind.

    Of a longer list, the first MAX_MEMBERS are returned.
    """
    if not isinstance(values, dict):
        return {}
    usable: dict[str, Any] = {}
    for key, kind in kinds.items():
        value = values.get(key)
        outer, dot, inner = key.partition(".")
        if dot:
            member = values.get(outer)
            value = member.get(inner) if isinstance(member, dict) else None
        if kind in ("texts", "paths", "objects"):
            if isinstance(value, list):
                wanted = is_object if kind == "objects" else is_text
                usable[key] = [member for member in value[:MAX_MEMBERS] if wanted(member)]
        elif IS_USABLE[kind](value):
            usable[key] = value
    return usable


def is_text(value: object) -> bool:
    """Return whether a value is a string that can be a path of the system."""
    return isinstance(value, str) and is_path(value)


def is_flag(value: object) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def is_seconds(value: object) -> bool:
    """Return whether a value is a number of seconds: finite and not negative."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS


def is_command_line(value: object) -> bool:
    """Return whether a value is a program with its arguments: without one of them it would be another command."""
    return isinstance(value, list) and 0 < len(value) <= MAX_MEMBERS and all(map(is_text, value)) and value[0] != ""


def is_object(value: object) -> bool:
    """Return whether a value is a JSON object."""
    return isinstance(value, dict)


IS_USABLE = {"text": is_text, "flag": is_flag, "seconds": is_seconds, "command": is_command_line}
