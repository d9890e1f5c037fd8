"""Where tailhook is installed for the user and for this project, and what keeps a host from running its hooks.

Reads hooks files and changes nothing. The commands that start a loop use it too, so it imports little.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tailhook.hook.event import load_config
from tailhook.hook.hosts import current_host
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import exists, project_root
from tailhook.install.command import is_tailhook, machines_of
from tailhook.install.hooks import Hook, SettingsError, hooks_of, values_of
from tailhook.install.hooks_file import SCOPES, HooksFile, hooks_file_of, hooks_files
from tailhook.install.settings import Settings
from tailhook.install.shape import Fault, find_faults, name_place
from tailhook.stores.atomic import read_file


class Found(NamedTuple):
    """A hooks file that exists.

    file: the description of its host's hooks files.
    values: what it holds.
    faults: what the host does not accept in it.
    is_managed: whether an administrator wrote it.
    """

    file: HooksFile
    path: str
    text: str
    values: dict[str, Any]
    faults: Sequence[Fault] = ()
    is_managed: bool = False

    @property
    def is_dropped(self) -> bool:
        """Whether the host ignores the whole file."""
        return any(fault.drops_file for fault in self.faults)

    @property
    def env(self) -> Mapping[str, object]:
        """The environment that the file sets for hooks; empty if the host's files set none."""
        env = {} if self.is_dropped else self.values.get(self.file.env_member)
        return env if isinstance(env, dict) else {}


class Installed(NamedTuple):
    """A place that runs tailhook.

    file: the description of its host's hooks files.
    path: of the hooks file.
    where: the place in it, for people.
    hook: None if the plugin runs it, which has no hook in the file.
    machines: those that are asked.
    kind: "file", "managed" if an administrator wrote the file, or "plugin".
    """

    file: HooksFile
    path: str
    where: str
    hook: Hook | None
    machines: Sequence[str]
    kind: str

    def asks(self, machine: str) -> bool:
        """Return whether a stop asks the machine here."""
        return machine in self.machines and self.asks_stops

    @property
    def asks_stops(self) -> bool:
        """Whether it runs when an agent stops."""
        return self.hook is None or self.hook.event == self.file.stop_event


class Obstacle(NamedTuple):
    """What keeps a host from running hooks.

    path: the file in which it is.
    what: what it is and what follows, for people; names the file.
    advice: what to do.
    within: the path of the entry whose hooks do not run; () for the whole file; None for the hooks of all files.
    spares: the kinds of places whose hooks run all the same.
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


class Survey(NamedTuple):
    """What is known of a host's hooks here.

    found: the hooks files that the host reads, in the order in which a later one counts.
    unusable: the paths of files that cannot be read, and why.
    installed: the places that run tailhook.
    obstacles: what keeps hooks from running.
    """

    found: Sequence[Found]
    unusable: Sequence[tuple[str, SettingsError | OSError]]
    installed: Sequence[Installed]
    obstacles: Sequence[Obstacle]

    def obstacles_of(self, there: Installed) -> list[Obstacle]:
        """Return what keeps the hook of a place from running."""
        return [obstacle for obstacle in self.obstacles if obstacle.stops(there)]


def survey_host(file: HooksFile, wanted: Sequence[str], scopes: Sequence[str] = SCOPES) -> Survey:
    """Return what is known of a host's hooks.

    wanted: the machines that are configured.
    scopes: which files to read; an administrator's are read with the user's.
    """
    found: list[Found] = []
    unusable: list[tuple[str, SettingsError | OSError]] = []
    paths = [(file.path(scope), False) for scope in scopes if scope in file.paths]
    for path, is_managed in [*paths, *((path, True) for path in file.managed_paths if "user" in scopes)]:
        if any(there.path == path for there in found):  # in the home folder, two scopes have one file
            continue
        try:
            text = Settings(file, path).text
        except (SettingsError, OSError) as error:
            unusable.append((path, error))
            continue
        if text is not None:
            values = values_of(file, text)
            found.append(Found(file, path, text, values, list(find_faults(file, values)), is_managed))
    switches = [*find_off_switches(found), *find_managed_switches(found), *find_disabled_feature(file)]
    obstacles = [*find_faulty_files(found), *switches]
    return Survey(found, unusable, list(find_installed(found, wanted)), obstacles)


def find_installed(found: Sequence[Found], wanted: Sequence[str]) -> Iterator[Installed]:
    """Yield every place that runs tailhook; a plugin that several files enable is one.

    found: the files of one host.
    wanted: the machines that are configured.
    """
    plugins: dict[str, tuple[Found, object]] = {}
    for there in found:
        kind = "managed" if there.is_managed else "file"
        for hook in hooks_of(there.file, there.values):
            if is_tailhook(hook.argv):
                where = f"{there.path}: {hook.event}"
                yield Installed(there.file, there.path, where, hook, machines_of(hook.argv) or wanted, kind)
        enabled = None if there.is_dropped else there.values.get(there.file.plugins_member)
        plugins |= {name: (there, on) for name, on in enabled.items()} if isinstance(enabled, dict) else {}
    for name, (there, on) in plugins.items():
        if name.partition("@")[0] == "tailhook" and on is True:
            yield Installed(there.file, there.path, f"{there.path}: the plugin {name}", None, wanted, "plugin")


def find_faulty_files(found: Sequence[Found]) -> Iterator[Obstacle]:
    """Yield an obstacle for each value for which the host ignores a whole file or an entry."""
    advice = "Correct that value, then restart running sessions."
    for there in found:
        for fault in there.faults:
            what = f"{there.path}, {name_place(there.text, fault.path)} {fault.complaint}, so {there.file.host.TITLE}"
            if fault.drops_file:
                what += " ignores the whole file and runs no hook in it"
                yield Obstacle(there.path, what, advice, (), (), "settings")
            else:
                what += " ignores that entry; older versions ignore the whole file"
                yield Obstacle(there.path, what, advice, fault.path[: 5 if len(fault.path) > 4 else 3], (), "settings")


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
            yield Obstacle(there.path, what, "Change it to use loops again.", spares=("managed",))


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
        yield Obstacle(path, what, "Ask the administrator of this computer to change it.", spares=spared)


def find_disabled_feature(file: HooksFile) -> Iterator[Obstacle]:
    """Yield an obstacle if the host's configuration in TOML switches all hooks off."""
    path = str(file.user_folder / file.features)
    if not file.features:
        return
    try:
        text = read_file(path)
        if not any(name.encode() in text for name in file.feature_names):
            return
        import tomllib  # takes longer than all the rest

        features = tomllib.loads(text.decode("utf-8")).get("features")
    except (OSError, ValueError):  # the host reports this itself
        return
    values = [features[name] for name in file.feature_names if name in features] if isinstance(features, dict) else []
    if values and values[0] is False:
        what = f"{path}: the feature {file.feature_names[0]} is false, so the host runs no hook"
        yield Obstacle(path, what, "Change it to use loops again.")


# ---- the limit on blocks in a row ---------------------------------------------


def find_caps(survey: Survey) -> list[tuple[str, str, object]]:
    """Return the limits on blocks in a row that are set: of each the place, its name and its value. The last counts."""
    if not survey.installed:
        return []
    file = survey.installed[0].file
    if file.cap_member:
        hooks = [(there, there.hook.fields) for there in survey.installed if there.hook and there.asks_stops]
        return [
            (there.path, file.cap_member, fields[file.cap_member])
            for there, fields in hooks
            if file.cap_member in fields
        ]
    variable = file.host.BLOCK_CAP_VARIABLE
    places = [(there.path, variable, there.env[variable]) for there in survey.found if variable in there.env]
    if variable and not places and (word := os.environ.get(variable)):
        return [("the environment", variable, word)]
    return places


def advise_cap(survey: Survey) -> str:
    """Return how to remove the host's limit on blocks in a row, after what it is for: ":  tailhook install ..."."""
    file = survey.installed[0].file
    if all(there.kind == "plugin" for there in survey.installed):  # with hooks beside it, each stop would count twice
        member = f'"{file.env_member}": {{"{file.host.BLOCK_CAP_VARIABLE}": "0"}}'
        return f", add {member} to {file.path('user')}"
    return f":  {file.install_command} --block-cap 0"


# ---- for the commands that start a loop --------------------------------------


def surveys_here() -> list[Survey]:
    """Return what is known of the host whose agent runs this process, or of all hosts if none does."""
    host = current_host()
    files = [hooks_file_of(host.NAME)] if host.SHELL_VARIABLE in os.environ else hooks_files()
    wanted = configured_machines(load_config(project_root({})))
    return [survey_host(file, wanted) for file in files]


def find_own_switch(machine: str) -> str:
    """Return which of tailhook's own switches keeps a machine from deciding here, "" if none does."""
    for name in ("TAILHOOK_DISABLE", MACHINES[machine].get("off_switch", b"").decode()):
        if name and os.environ.get(name) == "1":
            return f"{name} is 1 in the environment. To use loops again, unset it"
    path = f"{project_root({})}/{MACHINES[machine].get('off_file', '')}"
    return f"{path} is there. To use loops again, remove it" if path[-1] != "/" and exists(path) else ""


def why_not_driven(surveys: Sequence[Survey], machine: str) -> str:
    """Return why no hook asks the machine when an agent stops here, and what to do; "" if one does."""
    if switch := find_own_switch(machine):
        return switch
    asking = [(survey, there) for survey in surveys for there in survey.installed if there.asks(machine)]
    obstacles = [survey.obstacles_of(there) for survey, there in asking]
    if not all(obstacles):
        return ""
    if obstacles:
        return f"no hook runs here: {obstacles[0][0].what}. To see everything that is wrong:  tailhook doctor"
    host = current_host()
    command = hooks_file_of(host.NAME).install_command
    if any(survey.installed for survey in surveys):
        return f"no hook that is installed here asks {machine}. To add it:  {command} --with {machine}"
    return f"no hook is installed here. To install the hooks:  {command}"
