"""Whether the hooks work: everything that can be wrong with them, with what to do about it.

Each check is a function that yields findings; `tailhook doctor` prints them.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tailhook._core import parse_json
from tailhook.doctor import daemon
from tailhook.doctor.finding import FAILURE, NOTE, OK, WARNING, Finding
from tailhook.doctor.trial import ROUNDS, try_hook
from tailhook.hook import config
from tailhook.hook import idle as idle_hook
from tailhook.hook.answer import describe
from tailhook.hook.event import load_config
from tailhook.hook.hosts import claude_code
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import project_folders, project_root, user_config
from tailhook.install import hooks
from tailhook.install.command import argv_of, is_tailhook, machines_of
from tailhook.install.hooks import Hook, SettingsError, hooks_of
from tailhook.install.settings import SCOPES, Settings, settings_path
from tailhook.machines import CLAIM, idle, whole_number
from tailhook.stores import loop
from tailhook.stores.atomic import replace_file, state_folder, state_folder_path
from tailhook.stores.frontmatter import FrontMatter

SLOW_RATIO = 2.0  # times bare Python: far beyond what the hook is built to, so not the noise of a busy machine
SLOW_START = 60.0  # milliseconds that bare Python may take
SLOW_SAVE = 10.0  # milliseconds that replacing a small file may take
RALPH_ASLEEP = 86400  # seconds without a change after which a ralph loop, which knows no age, is asked about
SWITCHES = ("TAILHOOK_DISABLE", *(row["off_switch"].decode() for row in MACHINES.values() if "off_switch" in row))


class Installed(NamedTuple):
    """Where tailhook is run from: a hook of a settings file, or the plugin, which has no hook there."""

    where: str
    hook: Hook | None
    machines: Sequence[str]


def examine(scopes: Sequence[str] = SCOPES) -> Iterator[Finding]:
    """Every finding, of the settings of these scopes and of what they need."""
    found: dict[str, dict[str, Any]] = {}
    for scope in scopes:
        path = settings_path(scope)
        try:
            text = Settings(path).text
        except (SettingsError, OSError) as error:
            advice = "Mend the file by hand; the host does not read it like this either."
            yield Finding("settings", FAILURE, describe(error), advice)
            continue
        if text is not None and path not in found:
            found[path] = hooks.values_of(text)
    settings = load_config(project_root({}))
    installed = list(installations(found, configured_machines(settings)))
    if not installed:
        yield Finding("installed", FAILURE, "no hook of tailhook is installed", "Install them:  tailhook install")
    timed: set[tuple[str, ...]] = set()
    for there in installed:
        yield tried(there, timed)
    yield from asked_twice(installed)
    yield from unreported(installed)
    yield from beside(found)
    yield from cap(found)
    yield from switched_off(found)
    yield from configuration()
    yield from state_files()
    yield from loops(settings)
    if any("plates" in there.machines for there in installed):
        yield from plates()


def plates() -> Iterator[Finding]:
    """Yield what is found about the daemon; a file that cannot be used is a finding too."""
    try:
        yield from daemon.check_daemon()
    except OSError as error:
        yield Finding("plates", FAILURE, describe(error), "Nothing of the board works meanwhile.")


def installations(found: dict[str, dict[str, Any]], wanted: Sequence[str]) -> Iterator[Installed]:
    """Every place that runs tailhook.  found: the settings by path.  wanted: the machines that are configured."""
    for path, values in found.items():
        for hook in hooks_of(values):
            if is_tailhook(hook.fields):
                yield Installed(f"{path}: {hook.event}", hook, machines_of(argv_of(hook.fields)) or wanted)
        plugins = values.get("enabledPlugins")
        for name, enabled in plugins.items() if isinstance(plugins, dict) else ():
            if name.partition("@")[0] == "tailhook" and enabled is True:
                yield Installed(f"{path}: the plugin {name}", None, wanted)


# ---- the hooks ---------------------------------------------------------------


def tried(there: Installed, timed: set[tuple[str, ...]]) -> Finding:
    """Whether one installed hook answers, and how fast.  timed: the argvs that need not be timed again."""
    if there.hook is None:
        places = os.pathsep.join((os.environ.get("PATH", os.defpath), str(Path.home() / ".local/bin")))
        if shutil.which("tailhook", path=places):
            return Finding("hook", OK, f"{there.where} finds the command")
        advice = "Install tailhook where the plugin looks: on PATH, or in ~/.local/bin."
        return Finding("hook", FAILURE, f"{there.where} does not find the command `tailhook`", advice)
    argv = tuple(argv_of(there.hook.fields))
    known = argv in timed and there.hook.event in hooks.REPORTED  # where it runs on every event alike
    trial = try_hook(there.hook.event, there.hook.fields, 0 if known else ROUNDS)
    if trial.fault:
        return Finding("hook", FAILURE, f"{there.where}: {trial.fault}", trial.advice)
    if known:
        return Finding("hook", OK, f"{there.where}: answers")
    timed.add(argv)
    if not trial.bare:
        advice = "The fast form is written by:  tailhook install"
        return Finding("hook", NOTE, f"{there.where}: answers, in its slow form", advice)
    ratio = trial.milliseconds / trial.bare
    figures = {"median_ms": trial.milliseconds, "bare_ms": trial.bare, "ratio": ratio}
    what = f"{there.where}: answers in {trial.milliseconds:.1f} ms, {ratio:.2f} times bare Python"
    if ratio > SLOW_RATIO:
        advice = "Is the machine busy, or the package on a slow file system? Look closer:  tailhook bench"
        return Finding("hook", WARNING, what, advice, figures)
    if trial.bare > SLOW_START:
        advice = "The interpreter itself starts slowly: a slow file system, a scanner of every program that starts."
        return Finding("hook", WARNING, f"{what}, which takes {trial.bare:.0f} ms", advice, figures)
    return Finding("hook", OK, what, "", figures)


def asked_twice(installed: Sequence[Installed]) -> Iterator[Finding]:
    """The machines that more than one installation asks: each counts every stop."""
    for name in MACHINES:
        places = [
            there.where
            for there in installed
            if name in there.machines and (there.hook is None or there.hook.event == "Stop")
        ]
        if len(places) > 1:
            advice = "Keep one of them. To take the others out:  tailhook uninstall --scope user|project|local"
            yield Finding("twice", FAILURE, f"{name} is asked {len(places)} times: {', '.join(places)}", advice)


def unreported(installed: Sequence[Installed]) -> Iterator[Finding]:
    """Yield a finding if plates is installed, but not for all events that it needs: an older version installed it."""
    events = {there.hook.event for there in installed if there.hook and "plates" in there.machines}
    missing = [event for event in hooks.REPORTED if event not in events]
    if events and missing:
        what = f"plates gets no {', '.join(missing)}: the board may show a waiting session as running"
        yield Finding("events", WARNING, what, "Register them:  tailhook install")


def beside(found: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Other tools' Stop hooks: all of them run, and one that blocks keeps the agent whatever ours say."""
    for path, values in found.items():
        for hook in hooks_of(values):
            if hook.event == "Stop" and not is_tailhook(hook.fields):
                name = hook.fields.get("command") or hook.fields.get("url") or f"a {hook.fields.get('type')} hook"
                advice = "If the agent goes on after a loop has ended, or a turn ends early, look there too."
                yield Finding("beside", NOTE, f"{path}: another Stop hook runs beside ours: {name}", advice)


def cap(found: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Yield what the host's limit on blocks in a row is, and where it is set."""
    variable = claude_code.BLOCK_CAP_VARIABLE
    set_to = [(path, values["env"][variable]) for path, values in found.items() if variable in values.get("env", {})]
    if not set_to and (word := os.environ.get(variable)):
        set_to = [("the environment", word)]
    if not set_to:
        count = f"{claude_code.BLOCK_CAP} blocks in a row without tool use"
        what = f"the host ends a turn after {count}, whatever a loop's limit is"
        yield Finding("cap", WARNING, what, "Lift that:  tailhook install --block-cap 0")
        return
    for path, value in set_to:
        number = whole_number(value)
        if number is None:
            advice = "Set a whole number:  tailhook install --block-cap 0"
            yield Finding("cap", WARNING, f"{path}: {variable} is {value!r}, not a whole number", advice)
            continue
        words = f"after {number} blocks in a row" if number else "however many blocks there are in a row: never"
        yield Finding("cap", OK, f"{path}: the host ends a turn {words}")


def switched_off(found: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """What keeps every hook from acting: the host's switch and our escape hatches."""
    advice = "Unset it to have loops again."
    for path, values in found.items():
        if values.get("disableAllHooks") is True:
            yield Finding("off", FAILURE, f"{path}: disableAllHooks keeps the host from running any hook", advice)
    places: dict[str, Mapping[str, object]] = {path: values.get("env", {}) for path, values in found.items()}
    for place, environment in {**places, "the environment": os.environ}.items():
        for name in SWITCHES:
            if environment.get(name) == "1":
                yield Finding("off", WARNING, f"{place}: {name}=1 lets every agent stop", advice)


# ---- configuration and state -------------------------------------------------


def configuration() -> Iterator[Finding]:
    """Files that cannot be read, keys that nobody reads, values that do not count."""
    user, root = user_config(), project_root({})
    yield from read_through(user, partial(config.user_bytes, user), of_project=False)
    yield from read_through(f"{root}/.claude/tailhook.json", partial(config.project_bytes, root), of_project=True)


def read_through(path: str, read: Callable[[], bytes], of_project: bool) -> Iterator[Finding]:
    """What is to be said of one configuration file."""
    try:
        values = parse_json(read())
        if not isinstance(values, dict):
            raise ValueError("the file is not a JSON object")
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        yield Finding("config", FAILURE, f"{path}: {reason}; the defaults are used", "Mend the file, or remove it.")
        return
    complaints = list(unread(values, of_project))
    for complaint in complaints:
        yield Finding("config", WARNING, f"{path}: {complaint}", "The README lists the keys and their values.")
    if not complaints:
        yield Finding("config", OK, f"{path}: every key is known")


def unread(values: dict[str, Any], of_project: bool) -> Iterator[str]:
    """What of a configuration is not used."""
    for section, keys in values.items():
        if section not in config.KEYS:
            yield f"the section {section!r} is not known"
            continue
        if not isinstance(keys, dict):
            yield f"the section {section!r} is not an object"
            continue
        for key, value in keys.items():
            if key not in config.KEYS[section]:
                yield f"the key {section}.{key} is not known"
            elif of_project and key in config.USER_KEYS[section]:
                yield f"the key {section}.{key} counts in the user's own file only"
            elif not config.usable_values({key: value}, config.KEYS[section]):
                yield f"{section}.{key} is {value!r}, of a type that does not count"
            elif (section, key) == ("hook", "machines") and (strangers := set(map(str, value)) - set(MACHINES)):
                yield f"hook.machines has unknown machines: {', '.join(sorted(strangers))}"


def state_files() -> Iterator[Finding]:
    """Whether states can be saved, and how fast."""
    advice = "Make it writable, or set XDG_STATE_HOME to a folder that is."
    try:
        with tempfile.TemporaryDirectory(prefix="doctor-", dir=state_folder()) as folder:
            times = []
            for number in range(5):
                started = time.perf_counter()
                replace_file(f"{folder}/state", str(number).encode())
                times.append((time.perf_counter() - started) * 1000)
    except OSError as error:
        yield Finding("state", FAILURE, f"no state can be saved: {describe(error)}", advice)
        return
    milliseconds, path = statistics.median(times), state_folder_path()
    what = f"{path}: a state is saved in {milliseconds:.1f} ms"
    if milliseconds > SLOW_SAVE:
        slow = "Is it on a network? Set XDG_STATE_HOME to a folder of this machine's own disk."
        yield Finding("state", WARNING, what, slow, {"median_ms": milliseconds})
    else:
        yield Finding("state", OK, what, "", {"median_ms": milliseconds})
    root = project_root({})
    if not os.access(root, os.W_OK):
        yield Finding("state", WARNING, f"{root}: not writable, so no loop can be kept in this project", advice)


def loops(settings: "config.Config") -> Iterator[Finding]:
    """Loops of this project that wait for a session which may not come."""
    folders = list(project_folders({}))
    home = loop.find_loop(folders)
    state = home.state if home else None
    stale_after = idle_hook.stale_after(settings)
    if home and isinstance(state, dict) and state.get("event") not in ("DONE", "ABORT") and state.get("stack"):
        now = time.time()
        age = idle.age_of(state, now)
        if age is not None and age > stale_after:
            what = f"{home.path}: a loop has not moved for {int(age)} s; the next stop will end it as stale"
            yield Finding("loop", WARNING, what, "End it:  tailhook loop cancel;  go on:  tailhook loop adopt")
        else:
            yield from owned_by("loop", home.path, idle.top_frame(state["stack"]).get("session_id"), "tailhook loop")
    for path in (Path(folder) / ".claude" / "ralph-loop.local.md" for folder in folders):
        try:
            text, changed = path.read_text(encoding="utf-8", errors="replace"), path.stat().st_mtime
            page = FrontMatter(text)
        except (OSError, ValueError):
            continue
        age = time.time() - changed
        if age > RALPH_ASLEEP:
            what = f"{path}: a ralph loop has not moved for {int(age // 3600)} hours"
            yield Finding("loop", WARNING, what, "If nobody works on it:  tailhook ralph cancel")
        yield from owned_by("ralph loop", str(path), page.get("session_id"), "tailhook ralph")


def owned_by(kind: str, path: str, owner: object, command: str) -> Iterator[Finding]:
    """Whose a live loop is, when it is not this session's."""
    session = os.environ.get(claude_code.SHELL_VARIABLE, "")
    if owner in (None, CLAIM) or owner == session:
        return
    advice = f"Its own session alone moves it. To take it over:  {command} adopt"
    yield Finding("loop", NOTE, f"{path}: a {kind} belongs to the session {owner}", advice)
