"""Where tailhook is installed for the user and for this project, and the obstacles to its hooks.

Reads hooks files and changes nothing. The commands that start a loop use it too, so it imports little.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from tailhook.errors import TailhookError
from tailhook.hook.answer import describe
from tailhook.hook.event import load_config
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import exists, project_root
from tailhook.hosts import DEFAULT, current_host
from tailhook.install.command import ENTRY
from tailhook.install.hooks import SettingsError, values_of
from tailhook.install.hooks_file import SCOPES, HooksFile, hooks_file_of, hooks_files
from tailhook.install.installed import Found, Installed, find_installed
from tailhook.install.obstacles import TRUST, Obstacle, find_obstacles
from tailhook.install.programs import why_not_startable
from tailhook.install.settings import Settings
from tailhook.install.shape import find_faults
from tailhook.pool.installation import POOLS
from tailhook.stores.atomic import TOO_LARGE, read_file


class Survey(NamedTuple):
    """The facts about a host's hooks here.

    file: the description of the host's hooks files.
    found: the files that the host reads; a later one overrides an earlier one.
    unusable: the paths of unreadable files, and why.
    installed: the places that run tailhook.
    obstacles: what keeps hooks from running.
    """

    file: HooksFile
    found: Sequence[Found]
    unusable: Sequence[tuple[str, SettingsError | OSError]]
    installed: Sequence[Installed]
    obstacles: Sequence[Obstacle]

    def obstacles_of(self, there: Installed) -> list[Obstacle]:
        """Return the obstacles to the hook of a place. A missing trust is left out: the host asks for it."""
        return [obstacle for obstacle in self.obstacles if obstacle.stops(there) and obstacle.check != TRUST]

    def why_not_run(self, there: Installed) -> str:
        """Return why the hook of a place does not run, and what to do; "" if it does."""
        if obstacles := self.obstacles_of(there):
            return f"{obstacles[0].what}. To see everything that is wrong:  tailhook doctor"
        if not there.hook or not (missing := why_not_startable(there.hook.argv)):
            return ""
        return f"{there.where}: {missing}. To install it again:  {self.file.install_command(there.path)}"

    @property
    def repeats(self) -> dict[str, list[Installed]]:
        """The machines that a stop asks in several places, and these: each counts the stop.

        Hooks that do not run are left out. Equal hooks count as one if the host runs them once.
        """
        running: dict[str, Installed] = {}
        for there in self.installed:
            if there.asks_stops and not self.why_not_run(there):
                is_run_once = there.hook and self.file.runs_equal_once
                running[str(there.hook.argv) if there.hook and is_run_once else there.where] = there
        found = {name: [there for there in running.values() if there.asks(name)] for name in MACHINES}
        return {name: places for name, places in found.items() if len(places) > 1}

    @property
    def hindrance(self) -> str:
        """The obstacle to a hook in the person's files, and what to do; "" if there is none."""
        for path, error in self.unusable:
            if counts_as_unusable(self.file, path):
                return f"{reason_of(error)}. {repair_of(self.file, error)}"
        obstacles = (found for found in self.obstacles if not found.within and "file" not in found.spares)
        return next((f"{obstacle.what}. {obstacle.advice}" for obstacle in obstacles), "")


def repair_of(file: HooksFile, error: TailhookError | OSError) -> str:
    """Return what to do about a hooks file that cannot be used."""
    if isinstance(error, OSError) and error.errno == TOO_LARGE:
        return "Make the file smaller. The host may read it, but tailhook does not."
    if file.has_comments:
        return f"Correct the file by hand, without comments: {file.host.TITLE} accepts them, tailhook does not."
    return "Correct the file by hand. The host cannot read it either."


def reason_of(error: TailhookError | OSError) -> str:
    """Return why a hooks file cannot be used, for a person."""
    return describe(error) if isinstance(error, OSError) else str(error)


def counts_as_unusable(file: HooksFile, path: str) -> bool:
    """Return whether a hooks file that cannot be used matters to tailhook.

    Another host's file counts only if tailhook is in it, because it may have comments.
    """
    if file.name == DEFAULT:
        return True
    try:
        text = read_file(path, flags=os.O_CLOEXEC | os.O_NONBLOCK)
        return ENTRY.encode() in text or f"/tailhook/{POOLS}/".encode() in text
    except OSError:
        return False


def survey_host(file: HooksFile, wanted: Sequence[str], scopes: Sequence[str] = SCOPES) -> Survey:
    """Return the facts about a host's hooks.

    wanted: the configured machines.
    scopes: of the files to read; an administrator's are read with the user's.
    """
    found: list[Found] = []
    unusable: list[tuple[str, SettingsError | OSError]] = []
    read: set[str] = set()
    paths = [(file.path(scope), False) for scope in scopes if scope in file.paths]
    for path, is_managed in [*paths, *((path, True) for path in file.managed_paths if "user" in scopes)]:
        if path in read:  # in the home folder, two scopes have one file
            continue
        read.add(path)
        try:
            text = Settings(file, path, is_changed=False).text
        except (SettingsError, OSError) as error:
            unusable.append((path, error))
            continue
        if text is not None:
            values = values_of(file, text)
            found.append(Found(file, path, text, values, list(find_faults(file, values)), is_managed))
    installed = list(find_installed(found, wanted))
    return Survey(file, found, unusable, installed, list(find_obstacles(file, found, installed)))


# ---- the limit on blocks in a row ---------------------------------------------


def find_caps(survey: Survey) -> list[tuple[str, str, object]]:
    """Return all settings of the limit on blocks in a row: place, name and value of each. The last one counts."""
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
    """Return how to change the host's limit on blocks in a row, as the end of a sentence: ":  tailhook install ..."."""
    file = survey.installed[0].file
    if all(there.kind == "plugin" for there in survey.installed):  # with hooks beside it, each stop would count twice
        member = f'"{file.env_member}": {{"{file.host.BLOCK_CAP_VARIABLE}": "0"}}'
        return f", add {member} to {file.path('user')}"
    asking = next(there for there in survey.installed if there.kind != "plugin")
    return f":  {file.install_command(asking.path)} --block-cap {file.highest_cap}"


# ---- for the commands that start a loop --------------------------------------


def surveys_here() -> list[Survey]:
    """Return the facts about the host that runs this process, or about all hosts if there is none."""
    host = current_host()
    files = [hooks_file_of(host.NAME)] if host.SHELL_VARIABLE in os.environ else hooks_files()
    wanted = configured_machines(load_config(project_root({})))
    return [survey_host(file, wanted) for file in files]


def find_own_switch(machine: str) -> str:
    """Return tailhook's own switch that keeps a machine from deciding here, "" if there is none."""
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
    reasons = [survey.why_not_run(there) for survey, there in asking]
    if not all(reasons):
        return ""
    if reasons:
        return f"no hook runs here: {reasons[0]}"
    host = current_host().NAME
    for survey in surveys:
        if (survey.file.name == host or survey.unusable) and (why := survey.hindrance):
            return f"no hook runs here: {why} Then:  {survey.file.install_command()}"
    path = next((there.path for survey in surveys for there in survey.installed if survey.file.name == host), "")
    command = hooks_file_of(host).install_command(path)
    if any(survey.installed for survey in surveys):
        return f"no hook that is installed here asks {machine}. To add it:  {command} --with {machine}"
    return f"no hook is installed here. To install the hooks:  {command}"
