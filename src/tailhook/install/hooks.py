"""tailhook's hooks in the text of a settings file: put in, changed, found and taken out.

The text is that of `{"hooks": {EVENT: [{"hooks": [{"type": "command", …}]}]}}`, as Claude Code reads it. Nothing here
touches a file.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tailhook._core import parse_json
from tailhook.errors import TailhookError
from tailhook.hook.hosts import claude_code
from tailhook.hook.machines import machines_with
from tailhook.install import json_text
from tailhook.install.command import argv_of, hook_command, is_ours, machines_of

FLAGS = ("--exit", "0", "--announce")  # the answer that every version of the host obeys, and its end made known
TIMEOUT = 10  # seconds; a hook takes milliseconds and waits 2 s at the most for its input, 2 s for a lock
STATUS = {"Stop": "tailhook: may the agent stop?", "SessionStart": "tailhook: is there a loop to go on with?"}
# The events that only plates needs, with the matcher of each. A compaction that the host starts itself is in a turn.
REPORTED = {
    "UserPromptSubmit": None,
    "PreToolUse": "*",
    "PostToolUse": "*",
    "PostToolUseFailure": "*",
    "PermissionRequest": "*",
    "PermissionDenied": "*",
    "Elicitation": None,
    "ElicitationResult": None,
    "Notification": None,
    "PostCompact": "manual",
    "SubagentStop": None,
    "StopFailure": None,
    "SessionEnd": None,
}
EVENTS = ("Stop", "SessionStart", *REPORTED)
CAP = claude_code.BLOCK_CAP_VARIABLE


class SettingsError(TailhookError):
    """A settings file cannot be read or changed; the message says where and why."""


class Hook(NamedTuple):
    """A hook where it stands: in which event, in which of its groups, at which place, and what it says."""

    event: str
    group: int
    place: int
    fields: dict[str, Any]

    @property
    def path(self) -> tuple[str | int, ...]:
        """The way to it in the settings."""
        return "hooks", self.event, self.group, "hooks", self.place


def values_of(text: str) -> dict[str, Any]:
    """The settings as values.  Raises SettingsError where they have not the shape that the host reads."""
    values = parse_json(text.lstrip("\ufeff"))
    if not isinstance(values, dict):
        raise SettingsError("the settings are not a JSON object")
    for name in ("hooks", "env"):
        if not isinstance(values.get(name, {}), dict):
            raise SettingsError(f'"{name}" is not an object')
    for event, groups in values.get("hooks", {}).items():
        if event in EVENTS and not isinstance(groups, list):
            raise SettingsError(f'"hooks" has no list for "{event}"')
    return values


def hooks_of(values: dict[str, Any]) -> Iterator[Hook]:
    """Every hook of every event; what has not the shape of one is passed over."""
    for event, groups in values.get("hooks", {}).items():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            inside = group.get("hooks") if isinstance(group, dict) else None
            for place, fields in enumerate(inside if isinstance(inside, list) else ()):
                if isinstance(fields, dict):
                    yield Hook(event, at, place, fields)


def ours(text: str) -> list[Hook]:
    """The hooks that `tailhook install` writes."""
    return [hook for hook in hooks_of(values_of(text)) if is_ours(hook.fields)]


def block_cap(text: str) -> Any:
    """What the settings' env says of the host's limit on blocks in a row, None for nothing."""
    return values_of(text).get("env", {}).get(CAP)


# ---- putting in --------------------------------------------------------------


def command_fields(machines: Sequence[str] | None, form: str) -> dict[str, Any]:
    """The members of a hook that say what is run.  form: "exec", or "shell" for hosts before 2.1.139."""
    argv = [*hook_command(",".join(machines) if machines else None), *FLAGS]
    return {"command": argv[0], "args": argv[1:]} if form == "exec" else {"command": shlex.join(argv)}


def installed_machines(text: str) -> list[str] | None:
    """The machines that our Stop hook names, None where it names none or is not there."""
    return next((machines_of(argv_of(hook.fields)) for hook in ours(text) if hook.event == "Stop"), None)


def installed_form(text: str) -> str | None:
    """The form of our Stop hook, None where it is not there."""
    forms = ("exec" if "args" in hook.fields else "shell" for hook in ours(text) if hook.event == "Stop")
    return next(forms, None)


class Wanted(NamedTuple):
    """A hook that shall be there.  matcher: of its group, None for none.  command: the members that say what is run."""

    matcher: str | None
    command: dict[str, Any]


def wanted_hooks(machines: Sequence[str] | None, form: str, reports: bool) -> dict[str, Wanted]:
    """The hooks of each event; the arguments are those of `with_hooks`."""
    reports = reports or not set(machines_with("reports")).isdisjoint(machines or ())
    command = command_fields(machines, form)
    wanted = {"Stop": Wanted(None, command)}
    if reports or machines is None or not set(machines_with("repeats")).isdisjoint(machines):
        wanted["SessionStart"] = Wanted(None if reports else "compact", command)
    if reports:
        wanted |= {event: Wanted(matcher, command_fields(["plates"], form)) for event, matcher in REPORTED.items()}
    return wanted


def with_hooks(
    text: str,
    machines: Sequence[str] | None,
    form: str,
    cap: int | None = None,
    before: str | None = None,
    reports: bool = False,
) -> str:
    """The text with our hooks, each once, running what they should; what else they say stays.

    machines: those that a stop asks, None for those that are configured.  cap: for the settings' env; None leaves it as
    it is.  before: as for `without_hooks`, for a hook that is no longer wanted.  reports: whether plates is among those
    that are configured.
    """
    wanted = wanted_hooks(machines, form, reports)
    for event in EVENTS:
        there = [hook for hook in ours(text) if hook.event == event]
        kept = [hook for hook in there if event in wanted and matcher_of(text, hook) == wanted[event].matcher][:1]
        for hook in reversed(there):
            if hook not in kept:
                text = without_hook(text, hook, before)
        if kept:  # its place may be another one now
            hook = next(hook for hook in ours(text) if hook.event == event)
            text = changed(text, hook, wanted[event].command)
        elif event in wanted:
            text = with_hook(text, event, wanted[event])
    if cap is not None and block_cap(text) != str(cap):
        text = with_cap(text, str(cap))
    return text


def matcher_of(text: str, hook: Hook) -> Any:
    """The matcher of the hook's group, None for none."""
    return values_of(text)["hooks"][hook.event][hook.group].get("matcher")


def with_hook(text: str, event: str, wanted: Wanted) -> str:
    """The text with one hook more, in a group of its own."""
    hook = {"type": "command", **wanted.command, "timeout": TIMEOUT}
    if event in STATUS:
        hook["statusMessage"] = STATUS[event]
    group: dict[str, Any] = {} if wanted.matcher is None else {"matcher": wanted.matcher}
    group["hooks"] = [hook]
    if not json_text.find(text, ("hooks",)):
        return json_text.put(text, (), {event: [group]}, "hooks")
    if not json_text.find(text, ("hooks", event)):
        return json_text.put(text, ("hooks",), [group], event)
    return json_text.put(text, ("hooks", event), group)


def changed(text: str, hook: Hook, command: dict[str, Any]) -> str:
    """The text with a hook of ours that runs `command`."""
    if {name: hook.fields[name] for name in ("command", "args") if name in hook.fields} == command:
        return text
    text = json_text.replace(text, (*hook.path, "command"), json.dumps(command["command"], ensure_ascii=False))
    if "args" in hook.fields and "args" in command:
        style = json_text.Style.of(text)
        return json_text.replace(text, (*hook.path, "args"), style.write(command["args"], None))
    if "args" in hook.fields:
        return json_text.remove(text, (*hook.path, "args"))
    return json_text.put(text, hook.path, command["args"], "args") if "args" in command else text


def with_cap(text: str, cap: str) -> str:
    """The text whose env sets the host's limit."""
    if block_cap(text) is not None or json_text.find(text, ("env", CAP)):
        return json_text.replace(text, ("env", CAP), json.dumps(cap))
    if json_text.find(text, ("env",)):
        return json_text.put(text, ("env",), cap, CAP)
    return json_text.put(text, (), {CAP: cap}, "env")


# ---- taking out --------------------------------------------------------------


def without_hooks(text: str, before: str | None = None, cap: int | None = None) -> str:
    """The text without our hooks, and without what they alone were in.

    before: the text as it was before they came, where that is known: what was empty then is empty again, as it was
    written.  cap: the limit that was set with them, None for none; it goes where it still stands.
    """
    for hook in reversed(ours(text)):
        text = without_hook(text, hook, before)
    if cap is not None and block_cap(text) == str(cap):
        old = before and json_text.raw(before, ("env", CAP))
        text = json_text.replace(text, ("env", CAP), old) if old else without(text, ("env", CAP), before)
    return text


def without_hook(text: str, hook: Hook, before: str | None) -> str:
    """The text without one hook; its group goes with its last one."""
    others = json_text.items(text, json_text.existing(text, hook.path[:-1]).value)
    return json_text.remove(text, hook.path) if len(others) > 1 else without(text, hook.path[:3], before)


def without(text: str, path: Sequence[str | int], before: str | None) -> str:
    """The text without what is at the path, nor the containers that are empty then and were not there before."""
    text = json_text.remove(text, path)
    above = path[:-1]
    if json_text.items(text, json_text.existing(text, above).value):
        return text
    empty = json_text.raw(before, above) if before is not None else None
    if empty is not None:
        return text if json_text.items(empty, 0) else json_text.replace(text, above, empty)
    return without(text, above, before) if above else text
