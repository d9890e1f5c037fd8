"""The registry of machines: one row for each, in the order in which a hook asks them.

Whatever lists machines reads it: the hook, its configuration, the commands, install, doctor and the tests of the
documentation. To add a machine, add a row here, `tailhook.hook.<name>` and `tailhook.machines.<name>`.
"""

from tailhook.hook.answer import COMPACT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypedDict

    class Machine(TypedDict, total=False):
        """What a hook must know of a machine before it imports it.

        marker_files: paths in a project's folders; one of them must exist, or the machine is not asked. Default: it is
            always asked.
        marker_setting: the machine's configuration key that stands in for the marker files.
        default: asked if no machine is named. Default: False.
        reports: reports every event and decides nothing. Default: it decides about stops.
        exit_code: of a block. Default: 0.
        style: of a block's JSON. Default: with spaces.
        repeats: repeats its live loop to the agent after a compaction. Default: False.
        takes_broken_payload: asked even if the payload cannot be read. Default: False.
        keys: its configuration keys, each with the type of its value. Default: none.
        """

        marker_files: tuple[str, ...]
        marker_setting: str
        default: bool
        reports: bool
        exit_code: int
        style: int
        repeats: bool
        takes_broken_payload: bool
        keys: dict[str, type | tuple[type, ...]]


MACHINES: "dict[str, Machine]" = {
    "idle": {
        "marker_files": (".jwz", ".zawinski", ".claude/idle-loop.local.md"),
        "default": True,
        "exit_code": 2,
        "repeats": True,
        "keys": {"stale_after": (int, float), "next_issue": str},
    },
    "ralph": {
        "marker_files": (".claude/ralph-loop.local.md",),
        "default": True,
        "style": COMPACT,
        "repeats": True,
        "takes_broken_payload": True,
    },
    "triage": {
        "marker_files": (
            ".claude/triage_state",
            "entrypoint-analysis/triage_state",
            ".claude/skills/self-repair-pipeline/triage_state",
            ".claude/self-repair-pipeline-state/triage_state",
        ),
        "marker_setting": "state_dirs",
        "default": True,
        "style": COMPACT,
        "keys": {"while_active": str, "state_dirs": list},
    },
    "memory": {"exit_code": 2, "keys": {"profile": str}},
    "plates": {"reports": True, "keys": {"autostart": bool}},
}


def machines_with(field: "Literal['default', 'repeats', 'reports']") -> list[str]:
    """Return the machines for which a field is set."""
    return [name for name, machine in MACHINES.items() if machine.get(field)]
