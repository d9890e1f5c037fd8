"""The argv of the fastest form of `tailhook hook`, and how to know it again in a settings file."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import tailhook.hook
from tailhook.hook.machines import MACHINES

ENTRY = "/tailhook/hook/entry.py"


def hook_command(machines: str | None = None) -> list[str]:
    """The argv of the fastest form: the real interpreter, isolated, without `site`, and the entry file.

    machines: names, comma-separated; None for those that are configured.
    """
    entry = Path(str(tailhook.hook.__file__)).with_name("entry.py")
    return [real_interpreter(), "-I", "-S", str(entry), *([machines] if machines else [])]


def real_interpreter() -> str:
    """The interpreter's own file: a virtual environment's link or a version manager's shim costs time at each start."""
    base = getattr(sys, "_base_executable", "") or sys.executable
    return os.path.realpath(base)


def argv_of(hook: object) -> list[str]:
    """The argv of one `command` hook of a settings file, exec form or shell form; empty for anything else."""
    if not isinstance(hook, Mapping) or not isinstance(hook.get("command"), str):
        return []
    arguments = hook.get("args")
    if isinstance(arguments, list):
        return [hook["command"], *map(str, arguments)]
    try:
        return shlex.split(hook["command"])
    except ValueError:  # an open quotation mark
        return []


def is_ours(hook: object) -> bool:
    """Whether the hook is one that `tailhook install` writes, or that `tailhook hook-command` told to write."""
    return any(word.endswith(ENTRY) for word in argv_of(hook))


def is_tailhook(hook: object) -> bool:
    """Whether the hook runs tailhook in any form: also as `tailhook hook`, or from the plugin."""
    argv = argv_of(hook)
    return is_ours(hook) or any(
        word.rpartition("/")[2] == "tailhook" and argv[at + 1 : at + 2] == ["hook"] for at, word in enumerate(argv)
    )


def machines_of(argv: Sequence[str]) -> list[str] | None:
    """The machines that the argv of a hook names; None where it leaves them to the configuration."""
    named = {name for word in argv if not word.startswith("-") for name in word.split(",")}
    return [name for name in MACHINES if name in named] or None
