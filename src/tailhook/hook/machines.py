"""The registry of machines: one row for each, in the order of asking. Also loads one, and decides and saves a state.

Everything that lists machines reads it: the hook, its configuration, the commands, install, doctor and the tests of the
documentation. To add a machine, add a row here, `tailhook.hook.<name>` and `tailhook.machines.<name>`.
"""

from tailhook._core import preload
from tailhook.hook.answer import COMPACT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from tailhook.hook.protocols import KeyKind, Machine, MachineHook, State
    from tailhook.machines import ChangeT, Verdict

# Of the user alone: a project decides nothing about boards and notices.
PLATES_KEYS: "dict[str, KeyKind]" = {
    "autostart": "flag",
    "notify.terminal": "texts",
    "notify.command": "command",
    "notify.webhook": "text",
    "notify.format": "text",
    "notify.on": "texts",
    "notify.quiet": "text",
    "stuck_after": "seconds",
}
# The marker files of idle and ralph repeat names of `tailhook.stores`: its import would cost every hook time.
MACHINES: "dict[str, Machine]" = {
    "idle": {
        "off_switch": b"IDLE_LOOP_DISABLE",
        "off_file": ".idle-disabled",
        "marker_files": (".jwz", ".zawinski", ".claude/idle-loop.local.md"),
        "default": True,
        "exit_code": 2,
        "repeats": True,
        "keys": {"stale_after": "seconds", "next_issue": "text"},
        "stores": ("jwz", "loop"),
    },
    "ralph": {
        "marker_files": (".claude/ralph-loop.local.md",),
        "default": True,
        "style": COMPACT,
        "repeats": True,
        "takes_broken_payload": True,
        "stores": ("frontmatter", "ralph"),
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
        "keys": {"while_active": "text", "state_dirs": "paths"},
        "stores": ("jsonfile",),
    },
    "gate": {
        "marker_files": (),
        "marker_setting": "rules",
        "keys": {"rules": "objects"},
        "parts": ("machines.shell_words", "machines.shell_line", "machines.rules", "hook.edits_and_commands"),
    },
    "memory": {"exit_code": 2, "keys": {"profile": "text"}},
    "plates": {
        "reports": True,
        "keys": PLATES_KEYS,
        "user_keys": tuple(PLATES_KEYS),
        "stores": ("processes", "spool"),
    },
}


def machines_with(field: "Literal['default', 'marker_files', 'repeats', 'reports']") -> list[str]:
    """Return the machines for which a field is set."""
    return [name for name, machine in MACHINES.items() if machine.get(field)]


def configured_machines(config: "Mapping[str, Any]") -> list[str]:
    """Return the configured or the default machines, in the order of asking."""
    wanted = config.get("hook", {}).get("machines")
    return machines_with("default") if wanted is None else [name for name in MACHINES if name in wanted]


def decide_and_save(
    state: "State", decide: "Callable[[], Verdict[ChangeT] | None]", save: "Callable[[Verdict[ChangeT]], None]"
) -> "Verdict[ChangeT] | None":
    """Decide about a state, save its change, and return the verdict: see `unsaved` if saving fails.

    Decides first without the lock, because that may read a whole transcript. If there is something to save, takes the
    lock, reads the state again, and decides again if another process has changed it meanwhile.

    decide: returns the verdict on the last read state.
    save: writes the change of a verdict. Raises OSError.
    """
    verdict = decide()
    if verdict is None or verdict.change is None:
        return verdict
    try:
        with state.lock():
            if state.reload():
                verdict = decide()
            if verdict is not None and verdict.change is not None:
                save(verdict)
    except OSError as error:
        from tailhook.hook.failures import unsaved

        return unsaved(state.path, error)
    return verdict


def machine_hook(name: str) -> "MachineHook":
    """Import and return the module `tailhook.hook.<name>`."""
    preload(*machine_modules(name))
    module: MachineHook = __import__(f"tailhook.hook.{name}", None, None, ("ask",))
    return module


def machine_modules(name: str) -> "list[str]":
    """Return the modules that a machine's hook imports, in the order of loading, by their names in the package."""
    machine = MACHINES[name]
    stores = [f"stores.{store}" for store in machine.get("stores", ())]
    pure = [] if machine.get("reports") else ["machines", *machine.get("parts", ()), f"machines.{name}"]
    return ["stores", "stores.atomic", *stores, *pure, f"hook.{name}"]
