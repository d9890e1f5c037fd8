"""The question of a folder with rows, and how it differs from the current question."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailhook.errors import ResumeError
from tailhook.fleet.program import CATEGORY_SET, SIGNAL_SET
from tailhook.fleet.question import described_set
from tailhook.fleet.redact import EXAMINED_CHARS

FORMAT = 2
QUESTION = "scan.json"
CODE_FLAGS = {-1: "--anywhere", 0: "--outside-code", 1: "--in-code"}
SET_OPTIONS = ("own_line", "ignore_case", "word")  # of a PatternSet; the command has a flag for the second one only
MAX_CHARS = 120  # of each side of a difference


def read_kept_question(folder: Path) -> Mapping[str, Any] | None:
    """Return the question of a folder with its format, or None if the folder is missing or empty.

    Raises ResumeError if it is not a scan's folder, and OSError.
    """
    path = folder / QUESTION
    try:
        known = json.loads(path.read_bytes())
    except FileNotFoundError:
        if folder.exists() and any(not file.name.startswith(".") for file in folder.iterdir()):
            raise ResumeError(f"{folder} is not empty and has no {QUESTION}: choose an empty folder") from None
        return None
    except NotADirectoryError:
        raise ResumeError(f"{folder} is not a folder") from None
    except (ValueError, RecursionError):
        raise damage_of(path) from None
    if not isinstance(known, dict):
        raise damage_of(path)
    return known


def check_same_question(folder: Path, known: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise ResumeError if the question of a folder differs from the current question.

    known: the question of the folder. wanted: the current one. Both have their format.
    """
    if known == wanted:
        return
    try:
        different = differences(known, wanted) if known["format"] == FORMAT else []
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise damage_of(folder / QUESTION) from error
    if not different:
        raise ResumeError(f"{folder} was written by another version of tailhook: choose another folder")
    raise ResumeError(f"{folder} has the rows of another question ({'; '.join(different)}): choose another folder")


def damage_of(path: Path) -> ResumeError:
    """Return the error for a damaged file of the folder with the rows. It may be in a folder below that."""
    folder = next((parent for parent in path.parents if (parent / QUESTION).exists()), path.parent)
    return ResumeError(f"{path} is damaged: remove {folder} to begin again")


def differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two questions, in the command's words: `--role was user and is all now`.

    there, now: from `Question.described`.
    """
    known, wanted = flags_of(there), flags_of(now)
    if known["--table"] != wanted["--table"]:
        # The other flags of a table follow from it.
        return [flag_difference("--table", known["--table"], wanted["--table"])]
    return [flag_difference(flag, known[flag], words) for flag, words in wanted.items() if known[flag] != words]


def flags_of(question: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values of a question by the flag that sets them."""
    found = {
        "--table": [question["table"]],
        "--columns": question["columns"],
        **pattern_flags(question["patterns"]),
        "--role": flag_values(question["roles"]),
        "--since": [question["since"] or "not given"],
        "--until": [question["until"] or "not given"],
        "--project": [question["project"] or "all"],
        "--session": flag_values(question["sessions"]),
        "--redact": [on_or_off(question["redact"])],
    }
    for name, value in question["options"].items():
        if name == "code":
            found["--outside-code, --in-code or --anywhere"] = [CODE_FLAGS[value]]
        elif name == "context":
            found["--context"] = [str(value - EXAMINED_CHARS * question["redact"])]
        else:
            found[f"--{name.replace('_', '-')}"] = [on_or_off(value)]
    return found


def flag_values(values: list[str] | None) -> list[str]:
    """Return the values of a flag. values: from `described_values`."""
    return ["none"] if values is None else values or ["all"]


def pattern_flags(sets: list[list[Any]]) -> dict[str, list[str]]:
    """Return the values of the flags of patterns. sets: from `described_set`."""
    found: dict[str, list[str]] = {"--pattern": [], "--ignore-case": ["off"], "PatternSet": []}
    found |= {"--signals": ["off"], "--categories": ["off"]}
    built_in = {"--signals": described_set(SIGNAL_SET), "--categories": described_set(CATEGORY_SET)}
    for one in sets:
        for flag, usual in built_in.items():
            if one[0].keys() == usual[0].keys():
                found[flag] = ["on" if one == usual else "those of another version"]
                break
        else:
            found["--pattern"] += [f"{name}={text}" for name, texts in one[0].items() for text in texts]
            options = dict(zip(SET_OPTIONS, one[1:], strict=True))
            if options.pop("ignore_case"):
                found["--ignore-case"] = ["on"]
            found["PatternSet"] += [name for name, is_on in options.items() if is_on]
    return found


def on_or_off(value: bool) -> str:
    """Return the words for a given flag, or for one that is not given."""
    return "on" if value else "off"


def flag_difference(flag: str, there: list[str], now: list[str]) -> str:
    """Return how the values of a flag differ, without common values.

    >>> flag_difference("--role", ["user"], ["all"])
    '--role was user and is all now'
    >>> flag_difference("--columns", ["path"], ["path", "role"])
    '--columns: role is new'
    >>> flag_difference("--columns", ["path", "line"], ["path", "role", "name"])
    '--columns: line is gone, and role, name are new'
    """
    gone, added = [word for word in there if word not in now], [word for word in now if word not in there]
    were, are = cut_both(", ".join(gone), ", ".join(added))
    if there and now and set(there).isdisjoint(now):
        return f"{flag} was {were} and is {are} now"
    parts = [f"{were} {'is' if len(gone) == 1 else 'are'} gone"] if gone else []
    parts += [f"{are} {'is' if len(added) == 1 else 'are'} new"] if added else []
    return f"{flag}: {', and '.join(parts) or 'in another order'}"


def cut_both(first: str, second: str) -> tuple[str, str]:
    """Return two texts, cut if they are long, but with their difference."""
    pairs = enumerate(zip(first, second, strict=False))
    alike = next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))
    if alike < MAX_CHARS // 2:
        return cut(first), cut(second)
    start = alike - MAX_CHARS // 4
    return f"…{cut(first[start:])}", f"…{cut(second[start:])}"


def cut(text: str) -> str:
    """Return a text, or its beginning if it is long."""
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"
