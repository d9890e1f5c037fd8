"""Checks each host's hooks for all known faults, and reports what to do.

Each check is a function that yields findings; `tailhook doctor` prints them.
"""

import errno
import importlib
import json
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tailhook.doctor import daemon
from tailhook.doctor.finding import FAILURE, NOTE, OK, WARNING, Finding
from tailhook.doctor.memory_config import check_memory_config
from tailhook.doctor.pool import check_pool
from tailhook.doctor.trial import ROUNDS, try_hook
from tailhook.exits import temporary_folder
from tailhook.hook import config
from tailhook.hook import idle as idle_hook
from tailhook.hook.answer import describe
from tailhook.hook.event import load_config
from tailhook.hook.machines import MACHINES, configured_machines, machines_with
from tailhook.hook.payload import exists, project_folders, project_root, user_config
from tailhook.hook.terminal_notices import SEQUENCES
from tailhook.hosts import DEFAULT, current_session
from tailhook.install.command import client_of, is_tailhook, machines_of, reporting_machines, shell_command
from tailhook.install.hooks import hooks_of
from tailhook.install.hooks_file import SCOPES, hooks_files
from tailhook.install.installed import Found, Installed
from tailhook.install.obstacles import TRUST
from tailhook.install.settings import remove_empty_folders
from tailhook.install.survey import (
    Survey,
    advise_cap,
    counts_as_unusable,
    find_caps,
    reason_of,
    repair_of,
    survey_host,
)
from tailhook.machines import CLAIM, idle, ralph_briefing, whole_number
from tailhook.plates.notice_settings import check_settings
from tailhook.pool.installation import CLIENT_FILE, client_folder, real_interpreter
from tailhook.stores import loop
from tailhook.stores.atomic import replace_file, state_folder, state_folder_path
from tailhook.stores.ralph import find_ralph

SLOW_RATIO = 2.0  # times bare Python: far above a hook's usual time, so not the noise of a busy machine
SLOW_START = 60.0  # milliseconds that bare Python may take
SLOW_SAVE = 10.0  # milliseconds that replacing a small file may take
RALPH_ASLEEP = 86400  # seconds without a change after which a ralph loop is reported; it has no age limit of its own
CHOICES = {  # the known values of a text
    "hook.unbound": ("act", "refuse"),
    "memory.profile": ("seed", "tuned"),
    "triage.while_active": ("progress",),
}
SWITCHES = {  # what a variable disables if it is "1"
    "TAILHOOK_DISABLE": "all machines",
    **{row["off_switch"].decode(): f"the {name} machine" for name, row in MACHINES.items() if "off_switch" in row},
}
SECTIONS = ", ".join(config.KEYS)
VALUE_KINDS = {  # of values in the configuration
    "text": "a text",
    "flag": "true or false",
    "seconds": f"a number of seconds from 0 to {config.MAX_SECONDS}",
    "command": "a list of a program and its arguments",
    "texts": "a list of texts",
    "paths": "a list of paths",
    "objects": "a list of objects",
}


def check_installation(scopes: Sequence[str] = SCOPES) -> Iterator[Finding]:
    """Yield every finding about the hooks files of these scopes, and about the things that the hooks need."""
    settings = load_config(project_root({}))
    wanted = configured_machines(settings)
    surveys = [survey_host(file, wanted, scopes) for file in hooks_files()]
    unusable = [finding for survey in surveys for finding in report_unusable(survey)]
    yield from unusable
    installed = [there for survey in surveys for there in survey.installed]
    if not installed and not unusable:  # the hooks may be in a file that cannot be read
        yield Finding("installed", FAILURE, "no tailhook hook is installed", "Install the hooks:  tailhook install")
    used = {there.file.name for there in installed} or {DEFAULT}
    surveys = [survey for survey in surveys if survey.file.name in used]
    for survey in surveys:
        yield from report_obstacles(survey)
    timed: set[tuple[str, ...]] = set()
    for there in installed:
        yield try_installed_hook(there, timed)
    for survey in surveys:
        yield from find_duplicates(survey)
        yield from find_missing_events(survey.installed)
        yield from find_unread_machines(survey.installed)
        yield from check_block_cap(survey)
    found = [there for survey in surveys for there in survey.found]
    yield from find_other_stop_hooks(found)
    yield from find_own_switches(found)
    yield from check_configuration(installed, {*wanted, *(name for there in installed for name in there.machines)})
    yield from check_state_folder()
    yield from check_loops(settings)
    for client in sorted(find_clients(installed)):
        yield from check_pool(client)
    reporting = [there for there in installed if reporting_machines(there.machines)]
    if reporting:
        yield from check_plates(reporting[0].file.install_command(reporting[0].path))


def report_unusable(survey: Survey) -> Iterator[Finding]:
    """Yield a finding for each hooks file of a host that cannot be used."""
    for path, error in survey.unusable:
        if counts_as_unusable(survey.file, path):
            yield Finding("settings", FAILURE, reason_of(error), repair_of(survey.file, error))


def report_obstacles(survey: Survey) -> Iterator[Finding]:
    """Yield a failure for each thing that keeps hooks from running.

    It is a warning if it concerns only another tool's entry, or hooks that the person has yet to trust.
    """
    for obstacle in survey.obstacles:
        is_another = obstacle.within and not any(map(obstacle.stops, survey.installed))
        status = WARNING if is_another or obstacle.check == TRUST else FAILURE
        yield Finding(obstacle.check, status, obstacle.what, obstacle.advice)


def check_plates(install: str) -> Iterator[Finding]:
    """Yield the findings about the daemon. A file that cannot be used is a finding, too.

    install: the command that writes the hooks again.
    """
    try:
        yield from daemon.check_daemon(install)
    except OSError as error:
        yield Finding("plates", FAILURE, describe(error), "The board does not work until this is fixed.")


def find_clients(installed: Sequence[Installed]) -> set[str]:
    """Return the paths of the native clients that hooks may run: of known hooks, and of this installation.

    The plugin and hand-written hooks run the last one.
    """
    clients = {client_of(there.hook.argv) for there in installed if there.hook} - {""}
    with suppress(OSError):
        path = Path(client_folder(real_interpreter()), CLIENT_FILE)
        clients |= {str(path)} if path.exists() else set()
    return clients


# ---- the hooks ---------------------------------------------------------------


def try_installed_hook(there: Installed, timed: set[tuple[str, ...]]) -> Finding:
    """Return whether one installed hook answers, and how fast.

    timed: the argvs that are already measured; this one is added.
    """
    if there.hook is None:
        places = os.pathsep.join((os.environ.get("PATH", os.defpath), str(Path.home() / ".local/bin")))
        if shutil.which("tailhook", path=places):
            return Finding("hook", OK, f"{there.where} finds the command")
        advice = "Install tailhook where the plugin looks: on PATH, or in ~/.local/bin."
        return Finding("hook", FAILURE, f"{there.where} does not find the command `tailhook`", advice)
    argv = tuple(word for word in there.hook.argv if word != there.hook.event)  # an argv may name its event
    known = argv in timed and there.hook.event not in there.file.answered_events  # reports all run the same code
    trial = try_hook(there.file, there.hook, 0 if known else ROUNDS, there.path)
    if trial.fault:
        return Finding("hook", FAILURE, f"{there.where}: {trial.fault}", trial.advice)
    if known:
        return Finding("hook", OK, f"{there.where}: answers")
    timed.add(argv)
    if not trial.bare_ms:
        advice = f"To install the fast form:  {there.file.install_command(there.path)}"
        return Finding("hook", NOTE, f"{there.where}: works, but through the slower command", advice)
    ratio = trial.cold_ratio
    figures = {"median_ms": trial.cold_ms, "bare_ms": trial.bare_ms, "ratio": ratio}
    cold = f"in {trial.cold_ms:.1f} ms, {ratio:.2f} times bare Python ({trial.bare_ms:.1f} ms)"
    what = f"{there.where}: answers {cold}"
    if trial.warm_ms:
        figures |= {"warm_ms": trial.warm_ms, "true_ms": trial.true_ms, "warm_ratio": trial.warm_ratio}
        warm = f"in {trial.warm_ms:.1f} ms, {trial.warm_ratio:.2f} times /bin/true ({trial.true_ms:.1f} ms)"
        what = f"{there.where}: answers {warm}; without the pool {cold}"
    elif trial.why_not_warm:
        what += f"; not timed with the pool: {trial.why_not_warm}"
    if ratio > SLOW_RATIO:
        advice = "Is the computer busy, or the package on a slow file system? To measure more:  tailhook bench"
        return Finding("hook", WARNING, what, advice, figures)
    if trial.bare_ms > SLOW_START:
        advice = "Python itself starts slowly. Causes: a slow file system, or a scanner of every program that starts."
        return Finding("hook", WARNING, what, advice, figures)
    return Finding("hook", OK, what, "", figures)


def find_duplicates(survey: Survey) -> Iterator[Finding]:
    """Yield a finding for each machine that one host asks in two places: both count every stop."""
    for name, places in survey.repeats.items():
        command = survey.file.install_command().replace("install", "uninstall")
        scopes = ", ".join(survey.file.paths)
        advice = f"Keep one of them. To remove another:  {command} --scope SCOPE  (SCOPE is one of {scopes})"
        if any(there.hook is None for there in places):
            advice += ", or disable the plugin"
        where = ", ".join(there.where for there in places)
        yield Finding("twice", FAILURE, f"{name} is asked {len(places)} times: {where}", advice)


def find_missing_events(installed: Sequence[Installed]) -> Iterator[Finding]:
    """Yield a finding if plates or a loop's machine is installed, but not for all its events.

    An older version of tailhook installed it then.

    installed: the places of one host.
    """
    hooks = [there for there in installed if there.hook]
    if not hooks:
        return
    file = hooks[0].file
    reports = [there for there in hooks if reporting_machines(there.machines)]
    events = {there.hook.event for there in reports if there.hook}
    missing = [event for event in file.reported_events if event not in events] if events else []
    if missing:
        what = f"the hooks report no {', '.join(missing)}: the board may show a waiting session as running"
        yield Finding("events", WARNING, what, f"Register them:  {file.install_command(reports[0].path)}")
    loops = set(machines_with("repeats"))
    asking = [there for there in hooks if not loops.isdisjoint(there.machines)]
    of_loops = {there.hook.event for there in asking if there.hook}
    if of_loops and file.prompt_event and file.prompt_event not in of_loops:
        what = f"loops get no {file.prompt_event}: an agent learns the goal of a person's loop only when it stops"
        yield Finding("events", WARNING, what, f"Register it:  {file.install_command(asking[0].path)}")


def find_unread_machines(installed: Sequence[Installed]) -> Iterator[Finding]:
    """Yield a note for each stop hook with machines that decide nothing in its host."""
    for there in installed:
        names = [name for name in there.file.unread_by if there.asks(name)]
        if names:
            advice = f"To leave them out:  {there.file.install_command(there.path)} --without {','.join(names)}"
            yield Finding("machines", NOTE, f"{there.where}: {there.file.describe_unread(names)}", advice)


def find_other_stop_hooks(found: Sequence[Found]) -> Iterator[Finding]:
    """Yield a note for each stop hook of another tool: the agent continues if any hook blocks."""
    for there in found:
        file, path = there.file, there.path
        for hook in hooks_of(file, there.values):
            if hook.event == file.stop_event and not is_tailhook(hook.argv):
                command = shell_command(hook.fields, file.command_members)
                name = command or hook.fields.get("url") or f"a {hook.fields.get('type')} hook"
                advice = "If the agent continues after a loop has ended, or a turn ends early, check that hook too."
                yield Finding("beside", NOTE, f"{path}: another {hook.event} hook runs too: {name}", advice)


def check_block_cap(survey: Survey) -> Iterator[Finding]:
    """Yield the host's limit on blocks in a row, and its place; nothing if no hook is installed."""
    if not survey.installed or not survey.installed[0].file.host.BLOCK_CAP:
        return
    file = survey.installed[0].file
    host = file.host
    set_to = find_caps(survey)
    if not set_to:
        count = f"{host.BLOCK_CAP} {host.BLOCK_CAP_COUNTS}"
        what = f"{host.TITLE} ends a turn after {count}, even if a loop's own limit is higher"
        if file.can_set_cap:
            yield Finding("cap", WARNING, what, f"{file.cap_advice}{advise_cap(survey)}")
        else:
            advice = "When this happens, send the agent another prompt; the loop continues."
            yield Finding("cap", NOTE, what, advice)
        return
    for path, name, value in set_to:
        number = 0 if value is None and file.cap_member else whole_number(value)
        if number is None:
            what = f"{path}: {name} is {value!r}, not a whole number"
            yield Finding("cap", WARNING, what, f"Set a whole number{advise_cap(survey)}")
            continue
        ends = f"ends a turn after {number} blocks in a row" if number else "never ends a turn because of blocks"
        yield Finding("cap", OK, f"{path}: {host.TITLE} {ends}")


def find_own_switches(found: Sequence[Found]) -> Iterator[Finding]:
    """Yield tailhook's own variables and files that keep hooks from acting or from writing their log."""
    places: list[tuple[str, Mapping[str, object]]] = [(there.path, there.env) for there in found]
    for place, environment in [*places, ("the environment", os.environ)]:
        for name, disabled in SWITCHES.items():
            value = environment.get(name)
            if value == "1":
                what = f"{place}: {name}=1 disables {disabled}"
                yield Finding("off", WARNING, what, "Unset it, so that hooks act again.")
            elif value not in (None, "", "0"):
                what = f"{place}: {name} is {value!r}, which does not disable {disabled}: only 1 does"
                yield Finding("off", WARNING, what, "Set it to 1, or unset it.")
        if (log := environment.get("TAILHOOK_LOG")) and (fault := fault_of_log(str(log))):
            what = f"{place}: TAILHOOK_LOG is {log!r}: {fault}"
            yield Finding("config", WARNING, what, "Set it to the path of a file that you can write.")
    for name, row in MACHINES.items():
        if "off_file" in row and exists(path := f"{project_root({})}/{row['off_file']}"):
            what = f"{path} disables the {name} machine in this project"
            yield Finding("off", WARNING, what, "Remove it, so that hooks act again.")


# ---- configuration and state -------------------------------------------------


def check_configuration(installed: Sequence[Installed], enabled: Set[str]) -> Iterator[Finding]:
    """Yield what is wrong with the configuration files: unreadable files, unknown keys, unusable values.

    installed: the places that run tailhook.
    enabled: the machines of the configuration and of the installed hooks.
    """
    own, root = user_config(), project_root({})
    theirs = f"{root}/.claude/tailhook.json"
    yield from check_config_file(own, partial(config.user_bytes, own), installed)
    yield from check_config_file(theirs, partial(config.project_bytes, root), installed, enabled)
    if "memory" in enabled:
        yield from check_memory_config(root)


def check_config_file(
    path: str, read: Callable[[], bytes], installed: Sequence[Installed], enabled: Set[str] | None = None
) -> Iterator[Finding]:
    """Yield the findings about one configuration file.

    read: returns its bytes; raises OSError.
    installed: the places that run tailhook.
    enabled: for a project's file, the machines that its user has enabled; such a file may set fewer keys.
    """
    try:
        values = config.parse_config(read())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        yield Finding("config", FAILURE, f"{path}: {reason}; the defaults are used", "Fix the file, or remove it.")
        return
    complaints = list(find_unused_keys(values, of_project=enabled is not None))
    for complaint in complaints:
        yield Finding("config", WARNING, f"{path}: {complaint}", "Change it in that file, or remove it.")
    if not complaints:
        yield Finding("config", OK, f"{path}: every key is known")
    if enabled is None:
        yield from find_overridden_machines(path, values, installed)
    else:
        yield from find_machines_not_enabled(path, values, enabled)


def find_overridden_machines(path: str, values: Mapping[str, Any], installed: Sequence[Installed]) -> Iterator[Finding]:
    """Yield a note for each hook whose argv names other machines than the user's file.

    Such a hook asks the machines of its argv.

    values: of the user's file, at `path`.
    """
    wanted = config.usable_values(values.get("hook"), config.KEYS["hook"]).get("machines")
    if wanted is None:
        return
    for there in installed:
        named = machines_of(there.hook.argv) if there.hook and there.asks_stops and not there.file.machines else None
        if named and {*named} != {*wanted}:
            names = ", ".join(named)
            what = f"{there.where} names its machines ({names}), so hook.machines of {path} has no effect there"
            advice = f"To change them:  {there.file.install_command(there.path)} --with MACHINES --without MACHINES"
            yield Finding("machines", NOTE, what, advice)


def find_machines_not_enabled(path: str, values: Mapping[str, Any], enabled: Set[str]) -> Iterator[Finding]:
    """Yield a note for each machine in a project's file that is not asked: a clone cannot enable one.

    If the file names no machines, its sections count as names.

    enabled: the machines that the user has enabled.
    """
    named = config.usable_values(values.get("hook"), config.KEYS["hook"]).get("machines", values)
    for name in MACHINES:
        if name in named and name not in enabled:
            what = f"{path} asks for the machine {name}, which you have not enabled, so it is not asked"
            advice = f"To enable it:  tailhook install --with {name}  (plugin: hook.machines in {user_config()})"
            yield Finding("machines", NOTE, what, advice)


def find_unused_keys(values: dict[str, Any], of_project: bool) -> Iterator[str]:
    """Yield a complaint for each unused section, key and value."""
    for section, keys in values.items():
        if section not in config.KEYS:
            outer, dot, key = section.partition(".")
            meant = f": write {json.dumps({outer: nested(key, keys)})}" if dot and outer in config.KEYS else ""
            yield f"the section {section!r} is unknown{meant or f': the sections are {SECTIONS}'}"
            continue
        if not isinstance(keys, dict):
            yield f"the section {section!r} is not an object"
            continue
        for key, value in flatten_keys(section, keys):
            if key in keys and "." in key and key in config.KEYS[section]:
                yield f"the key {key!r} in {section!r} is unknown: write {json.dumps({section: nested(key, value)})}"
            elif key not in config.KEYS[section]:
                own = config.USER_KEYS[section] if of_project else ()
                known = ", ".join(one for one in config.KEYS[section] if one not in own)
                yield f"the key {section}.{key} is unknown" + (f": the keys of {section} are {known}" if known else "")
            elif of_project and key in config.USER_KEYS[section]:
                yield f"the key {section}.{key} is ignored here: only the user's own file can set it"
            elif of_project and (section, key) == ("hook", "unbound") and value != "refuse":
                yield 'hook.unbound is ignored here: a project\'s file can only set it to "refuse"'
            elif not config.usable_values(nested(key, value), config.KEYS[section]):
                yield f"{section}.{key} is {value!r}, not {VALUE_KINDS[config.KEYS[section][key]]}, and is ignored"
            elif (section, key) == ("hook", "machines") and (strangers := set(map(str, value)) - set(MACHINES)):
                yield f"hook.machines has unknown machines: {', '.join(sorted(strangers))}"
            elif (section, key) == ("plates", "notify.terminal") and (unknown := set(map(str, value)) - set(SEQUENCES)):
                yield f"{section}.{key} has unknown forms: {', '.join(sorted(unknown))}"
            else:
                yield from find_unused_values(f"{section}.{key}", value, of_project)
        if section == "plates" and not of_project:
            yield from check_settings(config.usable_values(keys, config.KEYS[section]))
        if section in MACHINES:
            check = getattr(importlib.import_module(f"tailhook.machines.{section}"), "check_config", None)
            yield from check(keys) if check else ()


def find_unused_values(name: str, value: Any, of_project: bool) -> Iterator[str]:
    """Yield a complaint for each value of the right type that no hook uses.

    name: the key, such as "hook.log".
    """
    if name in CHOICES and value not in CHOICES[name]:
        choices = " or ".join(f'"{choice}"' for choice in CHOICES[name])
        yield f"{name} is {value!r}, which is unknown and is ignored: it can be {choices}"
    elif name == "hook.log" and (fault := fault_of_log(value)):
        yield f"hook.log is {value!r}: {fault}"
    elif name == "triage.state_dirs":
        for path in value:
            if not config.is_text(path):
                yield f"{path!r} of {name} is not a path and is ignored"
            elif of_project and not config.stays_below(path):
                yield f"{path!r} of {name} is ignored here: a project's file can only name folders in the project"
            elif path.startswith("~"):
                yield f"{path!r} of {name} is a folder in the project: write your home folder as {str(Path.home())!r}"
    if isinstance(value, list) and len(value) > config.MAX_MEMBERS:
        yield f"{name} has {len(value)} values, but only the first {config.MAX_MEMBERS} count"


def fault_of_log(path: str) -> str:
    """Return why hooks cannot write the log, "" if they can. Creates nothing."""
    if not path.startswith("/"):
        return "not an absolute path, so each hook looks for it in its own folder"
    file = Path(path)
    with suppress(OSError):
        if file.is_symlink():
            return "a symbolic link, so no log is written"
        if os.access(file if file.exists() else file.parent, os.W_OK) and not file.is_dir():
            return ""
    return "not writable, so no log is written"


def flatten_keys(section: str, keys: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys of a section with their values; those of an object inside of it have a dot."""
    for key, value in keys.items():
        if isinstance(value, dict) and any(name.startswith(f"{key}.") for name in config.KEYS[section]):
            yield from ((f"{key}.{inner}", member) for inner, member in value.items())
        else:
            yield key, value


def nested(key: str, value: object) -> dict[str, Any]:
    """Return a section with one key. For `outer.inner`, the section has an object `outer` with the key `inner`."""
    outer, dot, inner = key.partition(".")
    return {outer: {inner: value}} if dot else {key: value}


def check_state_folder() -> Iterator[Finding]:
    """Yield whether states can be saved, and how fast."""
    times = []
    try:
        folder = Path(state_folder_path())
        was_there, had_parent = folder.exists(), folder.parent.exists()
        parent = state_folder()
        try:
            with temporary_folder("doctor-", parent) as trial:
                for number in range(5):
                    started = time.perf_counter()
                    replace_file(f"{trial}/state", str(number).encode())
                    times.append((time.perf_counter() - started) * 1000)
        finally:
            if not was_there:  # before an install; otherwise one may be writing into an empty folder just now
                remove_empty_folders(with_parents=not had_parent)
    except OSError as error:
        advice = "Make that folder writable, or set XDG_STATE_HOME to a writable folder."
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "Make room on its disk, or set XDG_STATE_HOME to a folder on another one."
        if error.errno is None:  # the folder is writable, but not only for the user
            advice = "Set XDG_STATE_HOME to a folder that only you can write to."
        yield Finding("state", FAILURE, f"state files cannot be saved: {describe(error)}", advice)
        return
    milliseconds, path = statistics.median(times), state_folder_path()
    what = f"{path}: saving a state file takes {milliseconds:.1f} ms"
    if milliseconds > SLOW_SAVE:
        slow = "Is it on a network? Set XDG_STATE_HOME to a folder on this computer's own disk."
        yield Finding("state", WARNING, what, slow, {"median_ms": milliseconds})
    else:
        yield Finding("state", OK, what, "", {"median_ms": milliseconds})
    root = project_root({})
    if not os.access(root, os.W_OK):
        what = f"{root} is not writable, so loops cannot be saved in this project"
        yield Finding("state", WARNING, what, "Make the folder writable.")


def check_loops(settings: "config.Config") -> Iterator[Finding]:
    """Yield the loops of this project that cannot be read, are stale, or belong to another session."""
    for check in (partial(check_idle_loop, idle_hook.stale_after(settings)), check_ralph_loop):
        try:
            yield from check(list(project_folders({})))
        except OSError as error:
            yield Finding("loop", FAILURE, describe(error), "A hook cannot read it either, and lets the agent stop.")


def check_idle_loop(stale_after: float, folders: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding about the idle machine's loop. Raises OSError if it cannot be read."""
    found = loop.find_loop(folders)
    state = found.state if found else None
    if not found or not isinstance(state, dict) or state.get("event") in ("DONE", "ABORT") or not state.get("stack"):
        return
    age, top = idle.age_of(state, time.time()), idle.top_frame(state["stack"])
    if idle.is_loop_paused(top):
        yield paused("loop", found.path, "tailhook loop")
    elif age is not None and age > idle.patience(top, stale_after):
        what = (
            f"{found.path}: a loop has not changed for {int(age)} s and counts as abandoned;"
            " the next stop of its session ends it"
        )
        yield Finding("loop", WARNING, what, "To continue, start it again:  tailhook loop start")
    else:
        yield from check_owner("loop", found.path, top.get("session_id"), "tailhook loop")


def check_ralph_loop(folders: Sequence[str]) -> Iterator[Finding]:
    """Yield findings about the ralph loop. Raises OSError if its file cannot be read."""
    found = find_ralph(folders)
    if not found or not found.page:
        return
    age = time.time() - found.changed
    if ralph_briefing.is_ralph_paused(found.state):
        yield paused("ralph loop", found.path, "tailhook ralph")
        return
    if age > RALPH_ASLEEP:
        what = f"{found.path}: a ralph loop has not changed for {int(age // 3600)} hours"
        yield Finding("loop", WARNING, what, "To end it:  tailhook ralph cancel")
    yield from check_owner("ralph loop", found.path, found.page.get("session_id"), "tailhook ralph")


def paused(kind: str, path: str, command: str) -> Finding:
    """Return a note about a paused loop.  command: the group of commands that can continue it."""
    return Finding("loop", NOTE, f"{path}: a {kind} is paused", f"To continue it:  {command} resume")


def check_owner(kind: str, path: str, owner: object, command: str) -> Iterator[Finding]:
    """Yield a note if a live loop belongs to another session.

    command: the group of commands that can take it over.
    """
    if owner in (None, CLAIM) or owner == current_session():
        return
    advice = f"Only that session can continue it. To take it over:  {command} adopt"
    yield Finding("loop", NOTE, f"{path}: a {kind} belongs to the session {owner}", advice)
