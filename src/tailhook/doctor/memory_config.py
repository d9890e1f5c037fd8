"""Checks a project's memory-config.json for what the memory machine does not use."""

from collections.abc import Iterator

from tailhook.doctor.finding import FAILURE, OK, WARNING, Finding
from tailhook.hook.config import name_position
from tailhook.hook.memory import memory_config_bytes, parse_memory_config
from tailhook.machines.memory import DEFAULT_MESSAGES, MAX_MESSAGES, MIN_MESSAGES, THRESHOLDS


def check_memory_config(root: str) -> Iterator[Finding]:
    """Yield the findings about the file; none if it is missing.  root: the project's root."""
    path = f"{root}/.claude/memory/memory-config.json"
    try:
        data = memory_config_bytes(root)
    except FileNotFoundError:
        return
    except OSError as error:
        yield Finding("config", FAILURE, f"{path}: {error.strerror}; the defaults are used", "Fix it, or remove it.")
        return
    try:
        values = parse_memory_config(data)
    except ValueError as error:
        what = f"{path}: {name_position(data, str(error))}; the defaults are used"
        yield Finding("config", FAILURE, what, "Fix the file, or remove it.")
        return
    complaints = list(find_unused_settings(values))
    for complaint in complaints:
        yield Finding("config", WARNING, f"{path}: {complaint}", "Change it in that file, or remove it.")
    if not complaints:
        yield Finding("config", OK, f"{path}: every key is known")


def find_unused_settings(values: object) -> Iterator[str]:
    """Yield a complaint for each value that is not used as it is written.  values: what the file holds."""
    section = values.get("triage") if isinstance(values, dict) else None
    if not isinstance(section, dict):
        yield 'it has no object "triage", so the defaults are used'
        return
    for name, value in section.items():
        if name == "enabled":
            if not isinstance(value, bool) and str(value).strip().lower() != "false":
                yield f"enabled is {value!r}, not true or false, and is ignored"
        elif name == "max_messages":
            if not isinstance(value, int) or isinstance(value, bool):
                yield f"max_messages is {value!r}, not a whole number: {DEFAULT_MESSAGES} is used"
            elif not MIN_MESSAGES <= value <= MAX_MESSAGES:
                used = min(max(value, MIN_MESSAGES), MAX_MESSAGES)
                yield f"max_messages is {value!r}, not from {MIN_MESSAGES} to {MAX_MESSAGES}: {used} is used"
        elif name != "thresholds":
            yield f"the key {name} is unknown: the keys are enabled, max_messages and thresholds"
        elif not isinstance(value, dict):
            yield f"thresholds is {value!r}, not an object, and is ignored"
        else:
            yield from find_unused_thresholds(value)


def find_unused_thresholds(values: dict[str, object]) -> Iterator[str]:
    """Yield a complaint for each threshold that is not used as it is written."""
    for category, value in values.items():
        if category.upper() not in THRESHOLDS:
            known = ", ".join(THRESHOLDS)
            yield f"the category {category} of thresholds is unknown: the categories are {known}"
        elif not isinstance(value, int | float) or isinstance(value, bool):
            yield f"the threshold of {category} is {value!r}, not a number, and is ignored"
        elif not 0 <= value <= 1:
            yield f"the threshold of {category} is {value!r}, not from 0 to 1: {min(max(value, 0), 1)} is used"
