"""Faults of a valid JSON file that make a host ignore the file or an entry.

Describes only the common faults. tests/endtoend/test_claude_settings.py compares it with the real program.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tailhook.install import json_text
from tailhook.install.hooks_file import HooksFile

MAX_VALUE_CHARS = 40  # of a value


def is_number(value: object) -> bool:
    """Return whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "true or false": lambda value: isinstance(value, bool),
    "an object": lambda value: isinstance(value, dict),
    "a list": lambda value: isinstance(value, list),
    "a list of strings": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "a whole number": lambda value: is_number(value) and value >= 0 and not isinstance(value, float),
    "a number above 0": lambda value: is_number(value) and value > 0,
    "a whole number above 0": lambda value: is_number(value) and value > 0 and value == int(value),
    "a URL": lambda value: isinstance(value, str) and bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value)),
}


class Fault(NamedTuple):
    """A value that the host does not accept.

    path: its place in the file's values, even if it is missing there.
    complaint: the fault, after the name of the place: "is missing".
    drops_file: whether the host ignores the whole file; otherwise it ignores the entry.
    """

    path: tuple[str | int, ...]
    complaint: str
    drops_file: bool


def find_faults(file: HooksFile, values: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the values that the host does not accept, at most one fault for each entry.

    values: the result of `tailhook.install.hooks.values_of`.
    """
    for name in values if file.known_members else ():
        if name not in file.known_members:
            yield Fault((name,), f"is not one of {', '.join(file.known_members)}", drops_file=True)
    for name, wanted in file.setting_types.items():
        *above, last = name.split(".")
        holder: Any = values
        for step in above:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if complaint := find_complaint(holder, last, wanted) if isinstance(holder, dict) and last in holder else "":
            yield Fault((*above, last), complaint, drops_file=True)
    if file.in_toml:
        yield from find_entry_faults(file, values.get(file.hooks_member, []))
        return
    for event, groups in values.get("hooks", {}).items() if file.hook_types else ():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            for path, complaint in find_group_complaints(file, group):
                yield Fault(("hooks", event, at, *path), complaint, event in file.guard_events)


def find_entry_faults(file: HooksFile, entries: Sequence[object]) -> Iterator[Fault]:
    """Yield a fault of each wrong entry in a list of hooks in TOML: with one, the host ignores all entries."""
    required = file.hook_types[file.hook_type]
    for at, entry in enumerate(entries):
        path = file.hooks_member, at
        if not isinstance(entry, dict):
            yield Fault(path, f"is {describe_value(entry)}, not a table", drops_file=True)
            continue
        known = {**required, **file.hook_member_types}
        odd = next((name for name in entry if name not in known), "")
        if odd:
            yield Fault((*path, odd), f"is not one of {', '.join(known)}", drops_file=True)
            continue
        wrong = {name: find_complaint(entry, name, known[name]) for name in known if name in required or name in entry}
        name = next((name for name, complaint in wrong.items() if complaint), "")
        if name:
            yield Fault((*path, name), wrong[name], drops_file=True)


def find_group_complaints(file: HooksFile, group: object) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each fault of a group of hooks and of its hooks: the path below the group, and the complaint."""
    if not isinstance(group, dict):
        yield (), f"is {describe_value(group)}, not an object"
        return
    if file.has_defaults:
        group = {"hooks": [], **{name: value for name, value in group.items() if value is not None}}
    for name, wanted in (("hooks", "a list"), *((("matcher", "a string"),) if "matcher" in group else ())):
        if complaint := find_complaint(group, name, wanted):
            yield (name,), complaint
            return
    for at, hook in enumerate(group["hooks"]):
        if not isinstance(hook, dict):
            yield ("hooks", at), f"is {describe_value(hook)}, not an object"
            continue
        kind = hook.get("type")
        if not isinstance(kind, str) or kind not in file.hook_types:
            known = ", ".join(file.hook_types)
            yield (
                ("hooks", at, "type"),
                f"is {describe_value(kind) if 'type' in hook else 'missing'}, not one of {known}",
            )
            continue
        if file.has_defaults:
            hook = {name: value for name, value in hook.items() if value is not None}
        optional = {name: wanted for name, wanted in file.hook_member_types.items() if name in hook}
        for name, wanted in {**file.hook_types[kind], **optional}.items():
            if complaint := find_complaint(hook, name, wanted):
                yield ("hooks", at, name), complaint
                break


def find_complaint(holder: Mapping[str, Any], name: str, wanted: str) -> str:
    """Return the fault of a member, "" for none.

    wanted: its required kind, one of the keys of CHECKS.
    """
    if name not in holder:
        return "is missing"
    return "" if CHECKS[wanted](holder[name]) else f"is {describe_value(holder[name])}, not {wanted}"


def describe_value(value: object) -> str:
    """Return a JSON value for a person: short ones as they are, others by their kind."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= MAX_VALUE_CHARS else "a string" if isinstance(value, str) else "a number"


def name_place(text: str, path: tuple[str | int, ...]) -> str:
    """Return the line of a value in a file's text, and its path, for a person: "line 4: hooks.Stop[0].matcher".

    path: of the value; if it is missing, the line is the container's.
    """
    known = next(path[:length] for length in range(len(path), -1, -1) if json_text.find(text, path[:length]))
    line = text.count("\n", 0, json_text.existing(text, known).value) + 1
    return f"line {line}: {name_path(path)}"


def name_path(path: tuple[str | int, ...]) -> str:
    """Return the path of a value for a person: "hooks.Stop[0].matcher"."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
