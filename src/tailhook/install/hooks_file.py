"""The place of a host's hooks, and the form of a hook in it."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tailhook.hook.payload import project_root
from tailhook.hosts import DEFAULT, NAMES, find_host
from tailhook.hosts.protocols import Host

SCOPES = ("user", "project", "local")


class HooksFile(NamedTuple):
    """The description of a host's hooks file.

    host: the host.
    paths: the file by scope. The user's is below `folder`, the others are below the project's root.
    folder: the host's folder, below the user's home.
    stop_event: the host's name of the event of an agent's stop.
    reported_events: the events that plates needs besides, with the matcher of each, None if it needs none.
    payload: of an event, for the doctor; "{folder}" stands for the project's folder, "{event}" for the event's name.
    folder_variable: the environment variable with the whole path of `folder`, "" if there is none.
    repeat_event: the event after a compaction, "" if the host has none.
    repeat_matcher: the matcher that limits `repeat_event` to compactions, "" if it has no other cause.
    prompt_event: the event of a person's prompt, if its answer gives the agent a text as it is; otherwise "".
    names_events: whether a payload has the event's name, as `hook_event_name`; otherwise a hook's command has it.
    file_members: members that the file must have.
    hooks_member: the member with the events.
    has_groups: whether hooks stand in groups, {"matcher": ..., "hooks": [HOOK, ...]}, or by themselves.
    hook_type: a hook's "type", "" if it has none.
    command_members: the members of a hook that may have the shell command; install writes the first.
    has_exec_form: whether a hook may have a program and "args" instead of a shell command.
    hook_members: further members of a hook.
    event_members: further members by event, in place of `hook_members`.
    env_member: the member that sets the environment of hooks, "" if there is none.
    cap_member: the member of a stop hook that limits the blocks in a row, "" if it has none.
    highest_cap: the highest limit on blocks in a row, 0 if the host can be without a limit.
    plugins_member: the member that lists the enabled plugins, "" if there is none.
    off_switch: the path of the value that switches all hooks off, () if there is none.
    off_value: the value that does so.
    off_is_overridden: whether only the value of the last scope counts.
    disabled_names: the path of the list of names of hooks that the host skips, () if there is none.
    toml_file: the person's settings below `folder`, in TOML; "" if there are none.
    toml_requirements: the path of an administrator's settings in TOML, "" if there are none.
    feature_names: the names of the feature that can switch all hooks off, in the table "features" of both files; the
        first one counts.
    managed_only: the setting in `toml_requirements` that leaves only an administrator's hooks on, "" if there is none.
    trust_option: the host's flag to run untrusted hooks; "" if hooks need no trust. The trusted ones are in the
        table "hooks.state" of `toml_file`.
    hiding_file: the name of a file beside this one; if it exists, the host ignores the hooks here. "" if there is none.
    managed_folders: the folders of an administrator's settings, by `sys.platform`; {} if the host has none.
    managed_switches: the settings of an administrator that keep hooks from running. The value of each: the kinds of
        places with hooks that still run ("managed", "plugin").
    setting_types: the required kind of a setting (see `tailhook.install.shape`), by its path with dots. With another
        value the host ignores the whole file.
    hook_types: the types that a hook may have; for each, the required members and their kinds.
    hook_member_types: the required kinds of a hook's optional members.
    guard_events: the events whose wrong entries make the host ignore the whole file. Of other events it ignores the
    entry.
    known_members: the members that the file may have; with any other the host ignores the file. () if all are allowed.
    has_defaults: whether null stands for a missing member, and a group may have no hooks.
    has_comments: whether the host accepts comments in the file, // and /* */.
    runs_equal_once: whether the host runs hooks with the same command only once.
    older_versions: what older versions do about a wrong entry, after a sentence; "" for the same.
    project_variables: the environment variables with the project's folder.
    in_toml: whether the file is TOML. Its hooks are a list of tables, and each names its event.
    machines: the only machines that can work in this host; () if all can.
    why_not_others: why the others cannot, as a sentence.
    unread_by: the machines that cannot read the host's transcripts, and so decide nothing.
    note: what a person must know after an install, "" for nothing.
    """

    host: Host
    paths: Mapping[str, str]
    folder: str
    stop_event: str
    reported_events: Mapping[str, str | None]
    payload: Mapping[str, Any]
    folder_variable: str = ""
    repeat_event: str = ""
    repeat_matcher: str = ""
    prompt_event: str = ""
    names_events: bool = True
    file_members: Mapping[str, Any] = {}
    hooks_member: str = "hooks"
    has_groups: bool = True
    hook_type: str = "command"
    command_members: Sequence[str] = ("command",)
    has_exec_form: bool = False
    hook_members: Mapping[str, Any] = {}
    event_members: Mapping[str, Mapping[str, Any]] = {}
    env_member: str = ""
    cap_member: str = ""
    highest_cap: int = 0
    plugins_member: str = ""
    off_switch: Sequence[str] = ()
    off_value: object = None
    off_is_overridden: bool = False
    disabled_names: Sequence[str] = ()
    toml_file: str = ""
    toml_requirements: str = ""
    feature_names: Sequence[str] = ()
    managed_only: str = ""
    trust_option: str = ""
    hiding_file: str = ""
    managed_folders: Mapping[str, str] = {}
    managed_switches: Mapping[str, Sequence[str]] = {}
    setting_types: Mapping[str, str] = {}
    hook_types: Mapping[str, Mapping[str, str]] = {}
    hook_member_types: Mapping[str, str] = {}
    guard_events: Sequence[str] = ()
    known_members: Sequence[str] = ()
    has_defaults: bool = False
    has_comments: bool = False
    runs_equal_once: bool = False
    older_versions: str = ""
    project_variables: Sequence[str] = ()
    in_toml: bool = False
    machines: Sequence[str] = ()
    why_not_others: str = ""
    unread_by: Sequence[str] = ("gate",)
    note: str = ""

    @property
    def name(self) -> str:
        """The host's name, as `--host` has it."""
        return self.host.NAME

    @property
    def new_text(self) -> str:
        """The first text of a new file."""
        return "" if self.in_toml else "{}\n"

    @property
    def answered_events(self) -> list[str]:
        """The events that the machines answer: they ask more of a hook than a report for the board."""
        return [*filter(None, (self.stop_event, self.prompt_event, self.repeat_event))]

    @property
    def events(self) -> list[str]:
        """Every event that an install may register, in the order of writing.

        The matcher of `repeat_event` depends on plates, so it is written after the other answered ones: then their
        order stays if plates comes and goes.
        """
        return list(dict.fromkeys((*self.answered_events, *self.reported_events)))

    @property
    def can_set_cap(self) -> bool:
        """Whether the file can set the host's limit on blocks in a row."""
        return bool(self.cap_member or (self.env_member and self.host.BLOCK_CAP_VARIABLE))

    @property
    def cap_advice(self) -> str:
        """What a person can do about the host's limit on blocks in a row, as the beginning of a sentence."""
        return f"To {'raise' if self.highest_cap else 'remove'} the host's limit"

    def install_command(self, path: str = "") -> str:
        """Return the command that installs the hooks into the host's file at a path.

        path: of a scope's file. For "" and any other path, the command is that for the user's file.
        """
        host = [] if self.name == DEFAULT else ["--host", self.name]
        scope = next((scope for scope in self.paths if path and self.path(scope) == path), "user")
        return " ".join(["tailhook install", *host, *([] if scope == "user" else ["--scope", scope])])

    def describe_unread(self, names: Sequence[str]) -> str:
        """Return what machines of `unread_by` do in the host, for a person."""
        verb = "blocks" if len(names) == 1 else "block"
        return f"{' and '.join(names)} cannot read what an agent of {self.host.TITLE} did, and {verb} no stop there"

    def path(self, scope: str) -> str:
        """Return the path of the file of a scope.

        scope: one of `paths`.
        """
        if scope != "user":
            return f"{project_root({})}/{self.paths[scope]}"
        return str(self.user_folder / self.paths[scope])

    @property
    def user_folder(self) -> Path:
        """The host's folder; an environment variable may name it."""
        named = os.environ.get(self.folder_variable) if self.folder_variable else None
        return Path(named or Path.home() / self.folder).absolute()

    @property
    def toml_path(self) -> str:
        """The path of the person's settings in TOML, "" if there are none."""
        return str(self.user_folder / self.toml_file) if self.toml_file else ""

    @property
    def managed_paths(self) -> list[str]:
        """The existing files of an administrator; a later one overrides an earlier one."""
        folder = self.managed_folders.get(sys.platform)
        if not folder:
            return []
        parts = (path for path in Path(folder, "managed-settings.d").glob("*.json") if path.name[0] != ".")
        return [str(path) for path in (Path(folder, "managed-settings.json"), *sorted(parts)) if path.exists()]


def hooks_file_of(name: str) -> HooksFile:
    """Return the description of a host's hooks file.

    name: one of `tailhook.hosts.NAMES`.
    """
    host = find_host(name)
    return HooksFile(host, **host.HOOKS_FILE)


def hooks_files() -> list[HooksFile]:
    """Return the descriptions for all hosts; that of Claude Code is the first."""
    return [hooks_file_of(name) for name in NAMES]
