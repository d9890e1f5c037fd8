"""Edits JSON as text: adds, replaces and removes items and members, and leaves every other byte as it is.

A new value takes on the layout of its surroundings. Removing it again restores the text as it was before. The hook's
own editor, `tailhook._core.edit_json`, changes the values of a state, and keeps less of the layout. A person writes a
settings file (docs/decisions/json-editors.md).

>>> put('{"a": [1]}', ("a",), 2)
'{"a": [1, 2]}'
>>> remove('{"a": [1, 2]}', ("a", 1))
'{"a": [1]}'
>>> print(put("{}", (), {"b": [1, 2]}, "a"))
{
  "a": {
    "b": [1, 2]
  }
}
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

Path = Sequence[str | int]

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+')


class Item(NamedTuple):
    """A member of an object or an item of an array, as offsets in the text.

    name: of a member, None for an item.
    start: of the name, or of an item's value.
    value: the start of the value.
    end: of the value.
    """

    name: str | None
    start: int
    value: int
    end: int


# ---- finding -----------------------------------------------------------------


def find(text: str, path: Path) -> Item | None:
    """Return the value at a path, the last one if a name repeats; None if there is none. The empty path is the root.

    text: valid JSON; a byte order mark before it is skipped.
    """
    root = len(text) - len(text.lstrip("\ufeff \t\r\n"))
    found = Item(None, root, root, len(text.rstrip()))
    for step in path:
        wanted = "{" if isinstance(step, str) else "["
        inside = items(text, found.value) if text[found.value] == wanted else []
        inside = inside[step : step + 1] if isinstance(step, int) else [item for item in inside if item.name == step]
        if not inside:
            return None
        found = inside[-1]
    return found


@lru_cache(maxsize=8)  # an edit looks several times into the same containers; they may be large
def items(text: str, at: int) -> Sequence[Item]:
    """Return the items or members of the container that begins at the offset `at`, in order."""
    found: list[Item] = []
    in_object, depth = text[at] == "{", 0
    name, start, value = None, -1, -1
    for token in TOKEN.finditer(text, at + 1):
        word = token[0]
        if word in "]}":
            depth -= 1
            if depth < 0:
                break
        elif depth == 0:
            if word in ":,":
                continue
            if in_object and start < 0:
                name, start = json.loads(word) if "\\" in word else word[1:-1], token.start()
                continue
            value = token.start()
            start = start if in_object else value
        if word in "[{":
            depth += 1
        elif depth == 0:
            found.append(Item(name, start, value, token.end()))
            name, start = None, -1
    return found


def raw(text: str, path: Path) -> str | None:
    """Return the text of the value at a path, None if there is none."""
    item = find(text, path)
    return text[item.value : item.end] if item else None


# ---- editing -----------------------------------------------------------------


def put(text: str, path: Path, value: object, name: str | None = None) -> str:
    """Return the text with `value` added as the last item of the array at the path, or as a member of the object there.

    name: of the member, None for an item.
    """
    container = existing(text, path)
    inside = items(text, container.value)
    style = Style.of(text)
    label = "" if name is None else json.dumps(name, ensure_ascii=False) + style.colon
    if inside:
        last = inside[-1]
        before = text[container.value + 1 if len(inside) == 1 else inside[-2].end : last.start]
        space = before.rpartition(",")[2]
        if not space and style.spaced:
            space = " "
        indent = space.rpartition("\n")[2] if "\n" in space else None
        return f"{text[: last.end]},{space}{label}{style.write(value, indent)}{text[last.end :]}"
    start, close = container.value + 1, container.end - 1
    if style.one_line:
        return text[:start] + label + style.write(value, None) + text[close:]
    outer = indent_of_line(text, container.value)
    inner = outer + style.indent
    written = f"{style.newline}{inner}{label}{style.write(value, inner)}{style.newline}{outer}"
    return text[:start] + written + text[close:]


def replace(text: str, path: Path, written: str) -> str:
    """Return the text with another value at the path.

    written: the new value, as JSON.
    """
    item = existing(text, path)
    return text[: item.value] + written + text[item.end :]


def remove(text: str, path: Path) -> str:
    """Return the text without the member or item at the path, and without the comma that belongs to it."""
    item, container = existing(text, path), existing(text, path[:-1])
    inside = items(text, container.value)
    at = inside.index(item)
    if len(inside) == 1:
        return text[: container.value + 1] + text[container.end - 1 :]
    if at == len(inside) - 1:
        return text[: inside[at - 1].end] + text[item.end :]
    return text[: item.start] + text[inside[at + 1].start :]


def existing(text: str, path: Path) -> Item:
    """Return the value at a path. Raises KeyError if there is none."""
    item = find(text, path)
    if item is None:
        raise KeyError(tuple(path))
    return item


# ---- layout ------------------------------------------------------------------


class Style(NamedTuple):
    """The layout of a text.

    newline: the characters that end a line.
    indent: one step of indentation.
    spaced: whether a space follows each colon.
    one_line: whether the whole text is on one line.
    """

    newline: str
    indent: str
    spaced: bool
    one_line: bool

    @classmethod
    def of(cls, text: str) -> "Style":
        """Return the layout of a text. For an empty object: one member per line, two spaces per step."""
        first = re.search(r"[{\[]\s*?\n([ \t]+)", text)
        colon = next((token for token in TOKEN.finditer(text) if token[0] == ":"), None)
        root = find(text, ())
        return cls(
            newline="\r\n" if "\r\n" in text else "\n",
            indent=first[1] if first else "  ",
            spaced=colon is None or text[colon.end()] in " \t\r\n",
            one_line=root is not None and "\n" not in text.strip() and bool(items(text, root.value)),
        )

    @property
    def colon(self) -> str:
        """The characters between a name and its value."""
        return ": " if self.spaced else ":"

    def write(self, value: Any, indent: str | None) -> str:
        """Return a value as JSON.

        indent: of the line on which it begins, None to write it on one line.
        """
        if isinstance(value, dict) and value and indent is not None:
            lines = [
                json.dumps(name, ensure_ascii=False) + self.colon + self.write(inner, indent + self.indent)
                for name, inner in value.items()
            ]
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value) and indent is not None:
            lines = [self.write(item, indent + self.indent) for item in value]
        else:
            separators = (", ", ": ") if self.spaced else (",", ":")
            return json.dumps(value, ensure_ascii=False, separators=separators)
        start, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
        newline = f"{self.newline}{indent}"
        return start + ",".join(f"{newline}{self.indent}{line}" for line in lines) + newline + end


def indent_of_line(text: str, at: int) -> str:
    """Return the blank space at the beginning of the line of the offset `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
