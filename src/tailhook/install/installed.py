"""The existing hooks files, and the places in them that run tailhook."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tailhook.install.command import is_tailhook, machines_of
from tailhook.install.hooks import Hook, hooks_of
from tailhook.install.hooks_file import HooksFile
from tailhook.install.shape import Fault


class Found(NamedTuple):
    """A hooks file that exists.

    file: the description of its host's hooks files.
    values: what it holds.
    faults: values in it that the host does not accept.
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
    hook: None if the plugin runs it: a plugin has no hook in the file.
    machines: the ones that it asks.
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


def find_installed(found: Sequence[Found], wanted: Sequence[str]) -> Iterator[Installed]:
    """Yield every place that runs tailhook. A plugin is one place, even if several files enable it.

    found: the files of one host.
    wanted: the configured machines.
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
