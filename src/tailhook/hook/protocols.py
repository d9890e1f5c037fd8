"""The interfaces between the modules of a machine. For type checkers only: a hook never imports this module."""

from typing import Any, Literal, Protocol, TypedDict

from tailhook.hook.event import HookEvent
from tailhook.machines import Verdict
from tailhook.stores.atomic import Lock

# Kinds of a configuration key's value: a text, true or false, a number of seconds, a program with its arguments, or a
# list of texts, of folders (a project's own file may name only folders inside the project) or of objects.
KeyKind = Literal["text", "flag", "seconds", "command", "texts", "paths", "objects"]


class Machine(TypedDict, total=False):
    """The facts about a machine that a hook needs before it imports the machine.

    off_switch: an environment variable; if it is 1, the machine is not asked. Default: only TAILHOOK_DISABLE.
    off_file: the name of a file in the project's root; if it is there, the machine does nothing. Default: none.
    marker_files: paths in a project's folders; one of them must exist, or the machine is not asked. Default: it is
        always asked.
    marker_setting: the machine's configuration key that replaces the marker files.
    default: asked if no machine is named. Default: False.
    reports: reports every event and decides nothing. Default: it decides about stops.
    exit_code: of a block. Default: 0.
    style: of a block's JSON. Default: with spaces.
    repeats: gives the agent its live loop at a prompt, if it has not had it, and after a compaction. Default: False.
    takes_broken_payload: asked even if the payload cannot be read, or does not come. Default: False.
    keys: its configuration keys, and the kinds of their values. Default: none.
    user_keys: those of its keys that a project's own file may not set. Default: none.
    parts: other modules that its own ones import, in the order of loading. A hook loads them in advance. Default: none.
    stores: the modules of `tailhook.stores` that it imports besides `atomic`, imported ones first. A hook loads them in
        advance, which is faster. Default: none.
    """

    off_switch: bytes
    off_file: str
    marker_files: tuple[str, ...]
    marker_setting: str
    default: bool
    reports: bool
    exit_code: int
    style: int
    repeats: bool
    takes_broken_payload: bool
    keys: dict[str, KeyKind]
    user_keys: tuple[str, ...]
    parts: tuple[str, ...]
    stores: tuple[str, ...]


class State(Protocol):
    """A machine's state, read from the disk."""

    @property
    def path(self) -> str:
        """Its place, for messages."""
        ...

    def lock(self) -> Lock:
        """Return the lock to hold from `reload` until the state is saved."""
        ...

    def reload(self) -> bool:
        """Read the state again; return whether it had changed. Raises OSError."""
        ...


class MachineHook(Protocol):
    """The module `tailhook.hook.<name>` of a machine."""

    def ask(self, event: HookEvent) -> "Verdict[Any] | None":
        """Decide about a stop; return None if there is nothing to decide. For machines that decide."""
        ...

    def report(self, event: HookEvent, blocked: bool) -> None:
        """Report an event of any kind. For machines that `reports` is set for."""
        ...


class BriefingHook(Protocol):
    """The module `tailhook.hook.<name>_briefing` of a machine that `repeats` is set for."""

    def repeat(self, event: HookEvent) -> str:
        """Return the instructions to repeat after a compaction, or ""."""
        ...

    def brief(self, event: HookEvent) -> "Verdict[Any] | None":
        """Return what to give at a prompt: `reason` to the agent, `message` to the person."""
        ...


class DecidingMachine(Protocol):
    """The module `tailhook.machines.<name>` of a machine that decides about stops. It is pure: no I/O and no clock.

    Facts: a class; the facts about one stop, from the payload, the transcript and the configuration.
    """

    Facts: type[Any]

    def decide(self, *args: Any, **kwargs: Any) -> "Verdict[Any]":
        """Decide what happens when the agent stops.

        Each machine has its own parameters: its state if it has one, in one or several values; a `Facts`; and the time
        if the decision depends on it.
        """
        ...


class LoopBriefing(Protocol):
    """The module `tailhook.machines.<name>_briefing` of a machine with `repeats`. It is pure, too."""

    def is_live(self, *args: Any, **kwargs: Any) -> bool:
        """Return whether a state, the first argument, is a running loop of any session."""
        ...

    def brief(self, *args: Any, **kwargs: Any) -> "Verdict[Any] | None":
        """Give the agent its briefing at a prompt; return None if it has had it. It has the parameters of `decide`."""
        ...

    def briefing(self, *args: Any, **kwargs: Any) -> str:
        """Return the instructions for an agent in a loop. The first argument is the state of a live loop."""
        ...
