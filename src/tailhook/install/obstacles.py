"""Obstacles: things that keep a host from running the hooks in its files."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tailhook.install.command import shell_command
from tailhook.install.hooks_file import HooksFile
from tailhook.install.installed import Found, Installed
from tailhook.install.shape import name_path, name_place
from tailhook.stores.atomic import read_file

TRUST = "trust"  # the check of hooks that the person has yet to trust
CORRECT = "Correct that value, then restart running sessions."
SWITCH_ON = "Change it, so that hooks run again."
ASK_ADMINISTRATOR = "Ask the administrator of this computer to change it."


class Obstacle(NamedTuple):
    """A thing that keeps a host from running hooks.

    path: its file.
    what: the obstacle and its effect, for people; names the file.
    advice: what to do.
    within: the path of the entry with the hooks that do not run; () for the whole file; None for all files.
    spares: the kinds of places with hooks that still run.
    check: the name of the doctor's check.
    """

    path: str
    what: str
    advice: str
    within: Sequence[str | int] | None = None
    spares: Sequence[str] = ()
    check: str = "off"

    def stops(self, there: Installed) -> bool:
        """Return whether the hook of this place does not run."""
        if self.within is None:
            return there.kind not in self.spares
        hook = there.hook.path if there.hook else ()
        return there.path == self.path and hook[: len(self.within)] == tuple(self.within)


def find_obstacles(file: HooksFile, found: Sequence[Found], installed: Sequence[Installed]) -> Iterator[Obstacle]:
    """Yield everything that keeps a host from running hooks.

    file: the description of the host's hooks files.
    found: the existing ones.
    installed: the places in them that run tailhook.
    """
    yield from find_faulty_files(found)
    yield from find_hiding_files(found)
    yield from find_off_switches(found)
    yield from find_managed_switches(found)
    yield from find_toml_switches(file)
    yield from find_disabled_names(found, installed)
    yield from find_untrusted_hooks(file, installed)
    yield from find_useless_hooks(file, installed)


def find_faulty_files(found: Sequence[Found]) -> Iterator[Obstacle]:
    """Yield an obstacle for each value that makes the host ignore a whole file or an entry."""
    for there in found:
        title = there.file.host.TITLE
        for fault in there.faults:
            place = name_path(fault.path) if there.file.in_toml else name_place(there.text, fault.path)
            what = f"{there.path}, {place} {fault.complaint}, so {title}"
            if fault.drops_file:
                what += " runs no hook of this file"
                yield Obstacle(there.path, what, CORRECT, (), (), "settings")
            else:
                what += f" does not run that hook{there.file.older_versions}"
                yield Obstacle(there.path, what, CORRECT, fault.path[: 5 if len(fault.path) > 4 else 3], (), "settings")


def find_hiding_files(found: Sequence[Found]) -> Iterator[Obstacle]:
    """Yield an obstacle for each file whose hooks the host ignores because of another file beside it."""
    for there in found:
        path = os.path.join(os.path.dirname(there.path), there.file.hiding_file)  # noqa: PTH118, PTH120 - texts, as paths are here
        if there.file.hiding_file and os.path.lexists(path):
            what = f"{path} exists, so {there.file.host.TITLE} runs no hook of {there.path}"
            advice = f"Copy the entries that this command prints into it:  {there.file.install_command()} --print"
            yield Obstacle(there.path, what, advice, (), (), "settings")


def find_off_switches(found: Sequence[Found]) -> Iterator[Obstacle]:
    """Yield an obstacle for each file in which a person has switched all hooks off."""
    set_in: list[tuple[Found, object]] = []
    for there in found:
        value: object = {} if there.is_dropped else there.values
        for name in there.file.off_switch:
            value = value.get(name) if isinstance(value, dict) else None
        if there.file.off_switch and value is not None:
            set_in.append((there, value))
    for there, value in set_in[-1:] if found and found[0].file.off_is_overridden else set_in:
        if value is there.file.off_value and not there.is_managed:
            name = ".".join(there.file.off_switch)
            what = f"{there.path}: {name} is {json.dumps(value)}, so the host runs no hook"
            yield Obstacle(there.path, what, SWITCH_ON, spares=("managed",))


def find_managed_switches(found: Sequence[Found]) -> Iterator[Obstacle]:
    """Yield an obstacle for each setting of an administrator that keeps the user's hooks from running."""
    values: dict[str, tuple[str, object]] = {}
    for there in found:
        if there.is_managed:
            values |= {name: (there.path, value) for name, value in there.values.items()}
    for name, spared in found[0].file.managed_switches.items() if found else ():
        path, value = values.get(name, ("", None))
        if value in (None, False) or (isinstance(value, list) and "hooks" not in value):
            continue
        runs = "no hook" if not spared else "no hook of the user or of a project"
        what = f"{path}: {name} is {json.dumps(value)}, so the host runs {runs}"
        yield Obstacle(path, what, ASK_ADMINISTRATOR, spares=spared)


def find_toml_switches(file: HooksFile) -> Iterator[Obstacle]:
    """Yield an obstacle for each setting in TOML, of the person or an administrator, that switches all hooks off."""
    name = file.feature_names[0] if file.feature_names else ""
    for path, advice in ((file.toml_path, SWITCH_ON), (file.toml_requirements, ASK_ADMINISTRATOR)):
        values = read_toml(path, (*file.feature_names, file.managed_only))
        features = table_at(values, "features")
        set_to = [features[name] for name in file.feature_names if name in features]
        if set_to and set_to[0] is False:
            yield Obstacle(path, f"{path}: the feature {name} is false, so the host runs no hook", advice)
        if path == file.toml_requirements and values.get(file.managed_only) is True:
            what = f"{path}: {file.managed_only} is true, so the host runs no hook of the user or of a project"
            yield Obstacle(path, what, advice)


def find_disabled_names(found: Sequence[Found], installed: Sequence[Installed]) -> Iterator[Obstacle]:
    """Yield an obstacle for a hook that a person has switched off by its name, or by its command if it has no name."""
    for there in found:
        *above, last = there.file.disabled_names or [""]
        value = table_at(there.values, *above).get(last)
        skipped = value if isinstance(value, list) else []
        for hook in [place.hook for place in installed if place.hook]:
            known_as = hook.fields.get("name") or shell_command(hook.fields, there.file.command_members)
            if known_as in skipped:
                listed = f"{there.path}: {'.'.join(there.file.disabled_names)} has {json.dumps(known_as)}"
                what = f"{listed}, so {there.file.host.TITLE} does not run that hook"
                yield Obstacle(there.path, what, "Remove the name, so that the hook runs again.")
                break


def find_untrusted_hooks(file: HooksFile, installed: Sequence[Installed]) -> Iterator[Obstacle]:
    """Yield an obstacle for each hook that the person has switched off, or has not trusted.

    Changes of a trusted hook are not checked: the host's digest may differ in each version.
    """
    if not file.trust_option or not installed:
        return
    states = table_at(read_toml(file.toml_path, ("state",)), "hooks", "state")
    for there in installed:
        if there.hook is None or there.kind != "file":
            continue
        event = re.sub(r"\B([A-Z])", r"_\1", there.hook.event).lower()
        at = f"{event}:{there.hook.path[2]}:{there.hook.path[4]}"
        keys = [f"{path}:{at}" for path in (there.path, os.path.realpath(there.path))]
        state = next((table_at(states, key) for key in keys if key in states), {})
        if state.get("enabled") is False:
            what = f"{file.toml_path}: the {there.hook.event} hook of {there.path} is disabled"
            yield Obstacle(there.path, what, f"Enable it in {file.host.TITLE}, with /hooks.", there.hook.path)
        elif not state.get("trusted_hash"):
            what = (
                f"{there.path}: you have not trusted the {there.hook.event} hook, so {file.host.TITLE} runs it only"
                f" with {file.trust_option}"
            )
            advice = f"Start {file.host.TITLE} and trust the hook in the dialog, or with /hooks."
            yield Obstacle(there.path, what, advice, there.hook.path, (), TRUST)


def find_useless_hooks(file: HooksFile, installed: Sequence[Installed]) -> Iterator[Obstacle]:
    """Yield an obstacle for each hook with machines that cannot work in the host."""
    for there in installed if file.machines else ():
        useless = [name for name in there.machines if name not in file.machines]
        if useless and there.hook:
            what = f"{there.where} asks {', '.join(useless)}, which cannot work in {file.host.TITLE}"
            advice = f"Install the hooks again:  {file.install_command(there.path)}"
            yield Obstacle(there.path, what, advice, there.hook.path, (), "machines")


def table_at(values: object, *names: str) -> Mapping[str, Any]:
    """Return the table at a path in values of TOML or JSON, {} if there is none."""
    for name in names:
        values = values.get(name) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else {}


def read_toml(path: str, names: Sequence[str]) -> Mapping[str, Any]:
    """Return the values of a file in TOML, {} if it has none of the names or cannot be read.

    A file with an error is reported by the host itself.
    """
    if not path:
        return {}
    try:
        text = read_file(path, flags=os.O_CLOEXEC | os.O_NONBLOCK)  # people link it to a folder of dotfiles
        if not any(name.encode() in text for name in names):
            return {}
        import tomllib  # takes longer than all the rest

        return tomllib.loads(text.decode("utf-8"))
    except (OSError, ValueError):
        return {}
