"""tailhook's hooks in the text of a host's hooks file: added, changed, found and removed.

Nothing here touches a file. `file` is always the description of the host's hooks file.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tailhook._core import parse_json
from tailhook.errors import TailhookError
from tailhook.hook.machines import machines_with
from tailhook.hosts import DEFAULT
from tailhook.install import json_text
from tailhook.install.command import argv_of, hook_command, is_ours, machines_of, reporting_machines
from tailhook.install.hooks_file import HooksFile
from tailhook.install.shape import CHECKS

FLAGS = ("--exit", "0", "--announce")  # every version of a host obeys the answer at exit code 0


class SettingsError(TailhookError):
    """A hooks file cannot be read or changed; the message has the reason and the place."""


class Hook(NamedTuple):
    """A hook in a hooks file.

    event: its event.
    path: where it is in the file's values.
    fields: its members.
    argv: what it runs, [] if that cannot be read.
    """

    event: str
    path: tuple[str | int, ...]
    fields: dict[str, Any]
    argv: list[str]


def values_of(file: HooksFile, text: str) -> dict[str, Any]:
    """Return the values of a hooks file; a blank one has none.

    Raises SettingsError if they do not have the host's shape, ValueError if the text is not JSON (or TOML).
    """
    if file.in_toml:
        from tailhook.install import toml_text  # its parser takes longer than all the rest

        found = toml_text.read_toml_text(text)
        if not isinstance(found.get(file.hooks_member, []), list):
            raise SettingsError(f'"{file.hooks_member}" is not a list')
        return found
    values = {} if is_blank(text) else parse_json(text)
    if not isinstance(values, dict):
        raise SettingsError("the settings are not a JSON object")
    for name in filter(None, (file.hooks_member, file.env_member)):
        if not isinstance(values.get(name, {}), dict):
            raise SettingsError(f'"{name}" is not an object')
    for event, groups in values.get(file.hooks_member, {}).items():
        if event in file.events and not isinstance(groups, list):
            raise SettingsError(f'"{file.hooks_member}"."{event}" is not a list')
    return values


def is_blank(text: str) -> bool:
    """Return whether a hooks file has no text but blank space, as after `touch`."""
    return not text.strip("\ufeff \t\r\n")


def hooks_of(file: HooksFile, values: dict[str, Any]) -> Iterator[Hook]:
    """Yield every hook of every event; skip values without the shape of one."""
    name = file.hooks_member
    if file.in_toml:
        for at, member in enumerate(values.get(name, [])):
            if isinstance(member, dict) and isinstance(event := member.get("event"), str):
                yield Hook(event, (name, at), member, argv_of(member, file.command_members))
        return
    for event, members in values.get(name, {}).items():
        for at, member in enumerate(members if isinstance(members, list) else ()):
            if not isinstance(member, dict):
                continue
            group = member.get("hooks")
            for place, fields in enumerate(group if isinstance(group, list) else ()):
                if isinstance(fields, dict):
                    path = (name, event, at, "hooks", place)
                    yield Hook(event, path, fields, argv_of(fields, file.command_members))
            if group is None and not file.has_groups:
                yield Hook(event, (name, event, at), member, argv_of(member, file.command_members))


def find_ours(file: HooksFile, text: str) -> list[Hook]:
    """Return the hooks that `tailhook install` writes."""
    return [hook for hook in hooks_of(file, values_of(file, text)) if is_ours(hook.argv)]


def block_cap(file: HooksFile, text: str) -> Any:
    """Return the file's limit on blocks in a row, None if it sets none.

    A null in the file means no limit; it is returned as "null".
    """
    if file.cap_member:
        limits = [hook.fields[file.cap_member] for hook in stops(file, text) if file.cap_member in hook.fields]
        return next(("null" if limit is None else limit for limit in limits), None)
    return values_of(file, text).get(file.env_member, {}).get(file.host.BLOCK_CAP_VARIABLE)


def stops(file: HooksFile, text: str) -> list[Hook]:
    """Return our hooks of the stop event."""
    return [hook for hook in find_ours(file, text) if hook.event == file.stop_event]


# ---- adding ------------------------------------------------------------------


def command_fields(
    file: HooksFile, event: str, machines: Sequence[str] | None, form: str, client: str
) -> dict[str, Any]:
    """Return the members of a hook's command.

    form: "exec", or "shell".
    client: the path of the native client, "" for the cold form.
    """
    argv = hook_command(",".join(machines) if machines else None, client)
    if file.name != DEFAULT:
        argv += ["--host", file.name]
    if not file.names_events:
        argv += ["--event", event]
    argv += FLAGS
    return {"command": argv[0], "args": argv[1:]} if form == "exec" else {file.command_members[0]: shlex.join(argv)}


def installed_machines(file: HooksFile, text: str) -> list[str] | None:
    """Return the machines in our stop hook, None if it names none or is missing."""
    return next((machines_of(hook.argv) for hook in stops(file, text)), None)


def installed_form(file: HooksFile, text: str) -> str:
    """Return the form of our stop hook; the host's best one if the hook is missing."""
    forms = ("exec" if "args" in hook.fields else "shell" for hook in stops(file, text))
    return next(forms, "exec" if file.has_exec_form else "shell")


class Wanted(NamedTuple):
    """A hook that the file must have.

    matcher: of its group, None for none.
    command: the members of its command.
    """

    matcher: str | None
    command: dict[str, Any]


def wanted_hooks(
    file: HooksFile, machines: Sequence[str] | None, form: str, reports: bool, client: str
) -> dict[str, Wanted]:
    """Return the hook of each event; the arguments are those of `with_hooks`."""
    reports = reports or bool(reporting_machines(machines or ()))
    repeats = machines is None or not set(machines_with("repeats")).isdisjoint(machines)
    wanted = {file.stop_event: Wanted(None, command_fields(file, file.stop_event, machines, form, client))}
    if file.prompt_event and repeats:
        wanted[file.prompt_event] = Wanted(None, command_fields(file, file.prompt_event, machines, form, client))
    if file.repeat_event and (reports or repeats):
        matcher = None if reports else file.repeat_matcher or None
        wanted[file.repeat_event] = Wanted(matcher, command_fields(file, file.repeat_event, machines, form, client))
    for event, matcher in file.reported_events.items() if reports else ():
        reported = Wanted(matcher, command_fields(file, event, machines_with("reports"), form, client))
        wanted.setdefault(event, reported)
    return wanted


def with_hooks(
    file: HooksFile,
    text: str,
    machines: Sequence[str] | None,
    form: str,
    cap: int | None = None,
    before: str | None = None,
    reports: bool = False,
    client: str = "",
) -> str:
    """Return the text with our hooks, each once, with the wanted command; their other members stay.

    machines: for a stop, None for the configured ones.
    form: "exec", or "shell".
    cap: the host's limit on blocks in a row, 0 for none; None leaves it as it is.
    before: as for `without_hooks`, for a hook that is no longer wanted.
    reports: whether plates is among the configured ones.
    client: the path of the native client, "" for the cold form.
    """
    wanted = wanted_hooks(file, machines, form, reports, client)
    if file.in_toml:
        return with_toml_hooks(file, text, wanted)
    for name, value in file.file_members.items():
        if not json_text.find(text, (name,)):
            text = json_text.put(text, (), value, name)
    for event in file.events:
        there = [hook for hook in find_ours(file, text) if hook.event == event]
        kept = [hook for hook in there if event in wanted and has_matcher(file, text, hook, wanted[event].matcher)][:1]
        for hook in reversed(there):
            if hook not in kept:
                text = without_hook(text, hook, before)
        if kept:  # its place may have changed
            hook = next(hook for hook in find_ours(file, text) if hook.event == event)
            text = with_command(text, hook, wanted[event].command, file.command_members)
            text = with_usable_members(file, text, hook)
        elif event in wanted:
            text = with_hook(file, text, event, wanted[event])
    return text if cap is None else with_cap(file, text, cap)


def with_toml_hooks(file: HooksFile, text: str, wanted: dict[str, Wanted]) -> str:
    """Return a text in TOML with our hooks, each once. Raises `toml_text.TomlError`."""
    from tailhook.install import toml_text

    name, (member, *_) = file.hooks_member, file.command_members
    for event in file.events:
        there = [hook for hook in find_ours(file, text) if hook.event == event]
        fitting = [hook for hook in there if event in wanted and can_become(file, text, hook, wanted[event])]
        for hook in reversed(there):
            span = toml_text.entry_places(text, name)[int(hook.path[1])]
            if hook in fitting[:1]:
                text = toml_text.change_entry(text, span, hook.fields[member], wanted[event].command[member])
            else:
                text = toml_text.remove_entry(text, span)
        if event in wanted and not fitting:
            matcher = {"matcher": wanted[event].matcher} if wanted[event].matcher else {}
            entry = {"event": event, **matcher, **wanted[event].command, **own_members(file, event)}
            text = toml_text.add_entry(text, name, entry)
    return text


def can_become(file: HooksFile, text: str, hook: Hook, wanted: Wanted) -> bool:
    """Return whether a hook in TOML has the matcher, and the command or one that is written as we write it."""
    from tailhook.install import toml_text

    member, *_ = file.command_members
    command = hook.fields[member]
    is_command = command == wanted.command[member] or toml_text.write_toml_value(command) in entry_text(
        file, text, hook
    )
    return is_command and hook.fields.get("matcher") == wanted.matcher


def entry_text(file: HooksFile, text: str, hook: Hook) -> str:
    """Return the text of a hook, with its group if it stands in one."""
    if not file.in_toml:
        return json_text.raw(text, hook.path[:3]) or ""
    from tailhook.install import toml_text

    start, end = toml_text.entry_places(text, file.hooks_member)[int(hook.path[1])]
    return text[start:end]


def matcher_of(file: HooksFile, text: str, hook: Hook) -> str | None:
    """Return the matcher of a hook or of its group, None for none."""
    if file.in_toml or not file.has_groups:
        return hook.fields.get("matcher")
    found: str | None = json.loads(entry_text(file, text, hook)).get("matcher")
    return found


def has_matcher(file: HooksFile, text: str, hook: Hook, matcher: str | None) -> bool:
    """Return whether the hook's group has this matcher, None for none; True if the host has no groups."""
    return not file.has_groups or matcher == matcher_of(file, text, hook)


def own_members(file: HooksFile, event: str) -> dict[str, Any]:
    """Return a hook's members without its command."""
    return {
        **({"type": file.hook_type} if file.hook_type else {}),
        **file.hook_members,
        **file.event_members.get(event, {}),
    }


def with_usable_members(file: HooksFile, text: str, hook: Hook) -> str:
    """Return the text with our value in place of each unusable one, such as a timeout of "10"."""
    style = json_text.Style.of(text)
    for name, ours in own_members(file, hook.event).items():
        if name in hook.fields and not is_usable(file, name, hook.fields[name], ours):
            text = json_text.replace(text, (*hook.path, name), style.write(ours, None))
        elif name == "type" and name not in hook.fields:
            text = json_text.put(text, hook.path, ours, name)
    return text


def is_usable(file: HooksFile, name: str, value: object, ours: object) -> bool:
    """Return whether a person's value may stay in place of ours.

    ours: our value.
    """
    if name == "type":
        return value == ours
    kind = "a string" if isinstance(ours, str) else "a number above 0"
    return CHECKS[file.hook_member_types.get(name, kind)](value)


def with_hook(file: HooksFile, text: str, event: str, wanted: Wanted) -> str:
    """Return the text with one more hook, in a group of its own if the host has groups."""
    own = own_members(file, event)
    member = {**{name: own[name] for name in ("type",) if name in own}, **wanted.command, **own}
    if file.has_groups:
        group: dict[str, Any] = {} if wanted.matcher is None else {"matcher": wanted.matcher}
        member = {**group, "hooks": [member]}
    name = file.hooks_member
    if not json_text.find(text, (name,)):
        return json_text.put(text, (), {event: [member]}, name)
    if not json_text.find(text, (name, event)):
        return json_text.put(text, (name,), [member], event)
    return json_text.put(text, (name, event), member)


def with_command(text: str, hook: Hook, command: dict[str, Any], members: Sequence[str]) -> str:
    """Return the text with another command in a hook of ours.

    command: the members of the command.
    members: the members that may have the shell command.
    """
    if {name: hook.fields[name] for name in (*members, "args") if name in hook.fields} == command:
        return text
    style = json_text.Style.of(text)
    for name in (*members, "args"):
        if name in hook.fields and name in command:
            text = json_text.replace(text, (*hook.path, name), style.write(command[name], None))
        elif name in command:
            text = json_text.put(text, hook.path, command[name], name)
        elif name in hook.fields:
            text = json_text.remove(text, (*hook.path, name))
    return text


def with_cap(file: HooksFile, text: str, cap: int) -> str:
    """Return the text with the host's limit on blocks in a row.

    cap: 0 for no limit.
    """
    if file.cap_member:
        written = json.dumps(cap or None)
        for hook in stops(file, text):
            path = (*hook.path, file.cap_member)
            if file.cap_member not in hook.fields:
                text = json_text.put(text, hook.path, cap or None, file.cap_member)
            elif json_text.raw(text, path) != written:
                text = json_text.replace(text, path, written)
        return text
    path = (file.env_member, file.host.BLOCK_CAP_VARIABLE)
    if not file.can_set_cap or block_cap(file, text) == str(cap):
        return text
    if json_text.find(text, path):
        return json_text.replace(text, path, json.dumps(str(cap)))
    if json_text.find(text, path[:1]):
        return json_text.put(text, path[:1], str(cap), path[1])
    return json_text.put(text, (), {path[1]: str(cap)}, path[0])


# ---- removing ----------------------------------------------------------------


def without_hooks(file: HooksFile, text: str, before: str | None = None, cap: int | None = None) -> str:
    """Return the text without our hooks, and without containers that held nothing else.

    before: the text before the hooks were added, if it is known. Containers that were empty get their old text again.
    cap: the limit that was set with the hooks, None for none. It is removed if it is unchanged.
    """
    if is_blank(text):
        return text
    if file.in_toml:
        from tailhook.install import toml_text

        for hook in reversed(find_ours(file, text)):
            text = toml_text.remove_entry(text, toml_text.entry_places(text, file.hooks_member)[int(hook.path[1])])
        if before is not None and text.rstrip() == before.rstrip():  # the same but for empty lines at the end
            return before
        return text
    for hook in reversed(find_ours(file, text)):
        text = without_hook(text, hook, before)
    path = (file.env_member, file.host.BLOCK_CAP_VARIABLE)
    if all(path) and cap is not None and block_cap(file, text) == str(cap):
        old = before and json_text.raw(before, path)
        text = json_text.replace(text, path, old) if old else without(text, path, before)
    for name in file.file_members:
        if before is not None and not json_text.find(before, (name,)) and json_text.find(text, (name,)):
            text = without(text, (name,), before)
    return text


def is_empty(file: HooksFile, text: str) -> bool:
    """Return whether the file equals a new one, without a comment in TOML."""
    if file.in_toml:
        return is_blank(text)
    return values_of(file, text) in ({}, file.file_members)


def without_hook(text: str, hook: Hook, before: str | None) -> str:
    """Return the text without one hook, and without its group or list if nothing else is in there."""
    others = json_text.items(text, json_text.existing(text, hook.path[:-1]).value)
    return json_text.remove(text, hook.path) if len(others) > 1 else without(text, hook.path[:3], before)


def without(text: str, path: Sequence[str | int], before: str | None) -> str:
    """Return the text without the value at the path, and without containers that this has emptied."""
    text = json_text.remove(text, path)
    above = path[:-1]
    if json_text.items(text, json_text.existing(text, above).value):
        return text
    empty = json_text.raw(before, above) if before is not None else None
    if empty is not None:
        return text if json_text.items(empty, 0) else json_text.replace(text, above, empty)
    return without(text, above, before) if above else text
