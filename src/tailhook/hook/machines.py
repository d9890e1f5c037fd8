"""The registry of machines: one row for each, in the order in which a hook asks them.

Whatever lists machines reads it: the hook, its configuration, the commands, install, doctor and the documentation's
tests. A machine is added by a row here, its `tailhook.hook.<name>` and its `tailhook.machines.<name>`.
"""

from tailhook.hook.answer import COMPACT, SPACED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Machine:
    """What a hook must know of a machine before it imports it.

    marker_files: paths in a project's folders; one of them must exist for the machine to be asked. Without any, it is
        always asked.
    marker_setting: a configuration key that stands in for the marker files, or "".
    is_default: whether it is asked if no machine is named.
    is_reporter: whether it reports every event and decides nothing; otherwise it decides about stops.
    exit_code: of a block, and style: of its JSON.
    repeats: whether it repeats its live loop to the agent after a compaction.
    takes_broken_payload: whether it is asked if the payload cannot be read.
    keys: its keys in the configuration, each with the type of its value.
    """

    __slots__ = (
        "exit_code",
        "is_default",
        "is_reporter",
        "keys",
        "marker_files",
        "marker_setting",
        "name",
        "repeats",
        "style",
        "takes_broken_payload",
    )

    def __init__(
        self,
        name: str,
        marker_files: "tuple[str, ...]" = (),
        marker_setting: str = "",
        is_default: bool = False,
        is_reporter: bool = False,
        exit_code: int = 0,
        style: int = SPACED,
        repeats: bool = False,
        takes_broken_payload: bool = False,
        keys: "Mapping[str, type | tuple[type, ...]] | None" = None,
    ) -> None:
        self.name = name
        self.marker_files = marker_files
        self.marker_setting = marker_setting
        self.is_default = is_default
        self.is_reporter = is_reporter
        self.exit_code = exit_code
        self.style = style
        self.repeats = repeats
        self.takes_broken_payload = takes_broken_payload
        self.keys = keys or {}


MACHINES = {
    machine.name: machine
    for machine in (
        Machine(
            "idle",
            marker_files=(".jwz", ".zawinski", ".claude/idle-loop.local.md"),
            is_default=True,
            exit_code=2,
            repeats=True,
            keys={"stale_after": (int, float), "next_issue": str},
        ),
        Machine(
            "ralph",
            marker_files=(".claude/ralph-loop.local.md",),
            is_default=True,
            style=COMPACT,
            repeats=True,
            takes_broken_payload=True,
        ),
        Machine(
            "triage",
            marker_files=(
                ".claude/triage_state",
                "entrypoint-analysis/triage_state",
                ".claude/skills/self-repair-pipeline/triage_state",
                ".claude/self-repair-pipeline-state/triage_state",
            ),
            marker_setting="state_dirs",
            is_default=True,
            style=COMPACT,
            keys={"while_active": str, "state_dirs": list},
        ),
        Machine("memory", exit_code=2, keys={"profile": str}),
        Machine("plates", is_reporter=True, keys={"autostart": bool}),
    )
}
DEFAULT_MACHINES = tuple(name for name, machine in MACHINES.items() if machine.is_default)
