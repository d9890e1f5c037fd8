"""The question of a folder that keeps rows, and how it differs from the one that is asked now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailhook.errors import ResumeError
from tailhook.fleet.program import category_search, signal_search
from tailhook.fleet.question import described_search
from tailhook.fleet.redact import EXAMINED_CHARS

FORMAT = 2
QUESTION = "scan.json"
CODE_FLAGS = {-1: "--anywhere", 0: "--outside-code", 1: "--in-code"}
SET_OPTIONS = ("own_line", "ignore_case", "word")  # of a PatternSet, which only the library takes
MAX_CHARS = 120  # of each side of a difference


def check_kept_question(folder: Path, wanted: Mapping[str, Any]) -> bool:
    """Return whether a folder is missing or empty, and otherwise check that it has the rows of a question.

    wanted: the question with its format.

    Raises ResumeError and OSError.
    """
    path = folder / QUESTION
    try:
        known = json.loads(path.read_bytes())
    except FileNotFoundError:
        if folder.exists() and any(not file.name.startswith(".") for file in folder.iterdir()):
            raise ResumeError(f"{folder} is not empty and has no {QUESTION}: choose an empty folder") from None
        return True
    except NotADirectoryError:
        raise ResumeError(f"{folder} is not a folder") from None
    except (ValueError, RecursionError):
        raise damage_of(path) from None
    if known == wanted:
        return False
    try:
        different = differences(known, wanted) if known["format"] == FORMAT else []
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise damage_of(path) from error
    if not different:
        raise ResumeError(f"{folder} was written by another version of tailhook: choose another folder")
    raise ResumeError(f"{folder} has the rows of another question ({'; '.join(different)}): choose another folder")


def damage_of(path: Path) -> ResumeError:
    """Return the error for a file of the folder that is not what a scan has written."""
    return ResumeError(f"{path} is damaged: remove the folder to begin again")


def differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs between two questions, in the words of the command: `--role: user there, all now`.

    there, now: as `Question.described` gives them.
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
        "--role": question["roles"] or ["all"],
        "--since": [question["since"] or "none"],
        "--until": [question["until"] or "none"],
        "--project": [question["project"] or "all"],
        "--session": question["sessions"] or ["all"],
        "--redact": [yes_or_no(question["redact"])],
    }
    options = question["options"]
    if options:
        found |= {
            "--outside-code, --in-code or --anywhere": [CODE_FLAGS[options["code"]]],
            "--context": [str(options["context"] - EXAMINED_CHARS * question["redact"])],
            "--all-text": [yes_or_no(options["all_text"])],
            "--sidechains": [yes_or_no(options["sidechains"])],
        }
    return found


def pattern_flags(searches: list[list[Any]]) -> dict[str, list[str]]:
    """Return the values of the flags of patterns.  searches: as `described_search` gives them."""
    found: dict[str, list[str]] = {"--pattern": [], "--signals": ["no"], "--categories": ["no"], "PatternSet": []}
    built_in = {"--signals": described_search(signal_search()), "--categories": described_search(category_search())}
    for search in searches:
        for flag, usual in built_in.items():
            if search[0].keys() == usual[0].keys():
                found[flag] = ["yes" if search == usual else "those of another version"]
                break
        else:
            found["--pattern"] += [f"{name}={text}" for name, texts in search[0].items() for text in texts]
            found["PatternSet"] += [name for name, is_on in zip(SET_OPTIONS, search[1:], strict=True) if is_on]
    return found


def yes_or_no(value: bool) -> str:
    """Return whether a flag was given."""
    return "yes" if value else "no"


def flag_difference(flag: str, there: list[str], now: list[str]) -> str:
    """Return how the values of a flag differ, without those that are on both sides.

    >>> flag_difference("--columns", ["path", "line"], ["path", "role", "name"])
    '--columns: line there, role, name now'
    >>> flag_difference("--columns", ["path"], ["path", "role"])
    '--columns: role now, not there'
    """
    gone = ", ".join(word for word in there if word not in now)
    added = ", ".join(word for word in now if word not in there)
    if gone and added:
        gone, added = cut_both(gone, added)
        return f"{flag}: {gone} there, {added} now"
    if gone:
        return f"{flag}: {cut(gone)} there, not now"
    if added:
        return f"{flag}: {cut(added)} now, not there"
    return f"{flag}: in another order"


def cut_both(first: str, second: str) -> tuple[str, str]:
    """Return two texts, cut if they are long, so that what differs can be seen."""
    pairs = enumerate(zip(first, second, strict=False))
    alike = next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))
    if alike < MAX_CHARS // 2:
        return cut(first), cut(second)
    start = alike - MAX_CHARS // 4
    return f"…{cut(first[start:])}", f"…{cut(second[start:])}"


def cut(text: str) -> str:
    """Return a text, or its beginning if it is long."""
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"
