"""Entries of a list of tables in TOML, such as [[hooks]]: added, changed and removed. All other bytes stay.

`tomllib` reads the file (docs/decisions/toml-entries.md). A place is outside of every value if the text from another
such place to it is valid.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tailhook.errors import TailhookError


class TomlError(TailhookError):
    """A list in TOML cannot be changed: it is written in another way, such as name = [{...}]."""

    def __init__(self, name: str) -> None:
        super().__init__(f'"{name}" is not written as [[{name}]], so tailhook can change nothing in it')


def read_toml_text(text: str) -> dict[str, Any]:
    """Return the values of a file. Raises ValueError, with the line and the column."""
    return tomllib.loads(text.removeprefix("\ufeff"))


@lru_cache(maxsize=32)
def entry_places(text: str, name: str) -> tuple[tuple[int, int], ...]:
    """Return where each entry of a list begins and ends. The comments after its last key are not a part of it.

    Raises TomlError.
    """
    entries = read_toml_text(text).get(name, [])
    found: list[tuple[int, int]] = []
    at = 0  # outside of every value
    for header in re.finditer(rf"(?:^|(?<=\ufeff))[ \t]*\[\[[ \t]*{name}[ \t]*\]\]", text, re.M):
        start = header.start()
        if start >= at and is_valid_toml(text[at:start]):  # otherwise the header is a part of a value
            ends = (start + line.end() for line in re.finditer(r"\n|\Z", text[start:]))
            entry = {name: entries[len(found) : len(found) + 1]}
            end = next((end for end in ends if is_valid_toml(text[start:end], entry)), None)
            if end is None:  # a part of it stands elsewhere
                break
            found.append((start, end))
            at = end
    if len(found) != len(entries):
        raise TomlError(name)
    return tuple(found)


def is_valid_toml(part: str, values: Mapping[str, Any] | None = None) -> bool:
    """Return whether a part of a file is valid by itself.

    values: those that it must have, None for any.
    """
    try:
        found = read_toml_text(part)
    except ValueError:
        return False
    return values is None or found == values


def write_toml_value(value: str | int) -> str:
    """Return a text or a number in TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def add_entry(text: str, name: str, entry: Mapping[str, str | int]) -> str:
    """Return the text with one more entry at its end.

    Raises TomlError.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[[{name}]]", *(f"{key} = {write_toml_value(value)}" for key, value in entry.items())]
    gap = "" if not text.strip("\ufeff \t\r\n") else end if text.endswith("\n") else end * 2
    added = text + gap + "".join(f"{line}{end}" for line in lines)
    if not is_valid_toml(added):
        raise TomlError(name)
    return added


def change_entry(text: str, span: tuple[int, int], old: str, new: str) -> str:
    """Return the text with another value in an entry.

    old: the value as it is now, a text.
    """
    start, end = span
    return text[:start] + text[start:end].replace(write_toml_value(old), write_toml_value(new), 1) + text[end:]


def remove_entry(text: str, span: tuple[int, int]) -> str:
    """Return the text without an entry, and without the empty line before it."""
    start, end = span
    before = re.sub(r"(\r?\n)\r?\n\Z", r"\1", text[:start])
    return before + text[end:]
