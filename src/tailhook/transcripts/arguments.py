"""Checks of arguments: a wrong type is refused at the call, with the argument's name."""

from __future__ import annotations

import os
from operator import index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def check_strings(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return an argument that has several strings. Raises TypeError for anything else.

    name: of the argument.
    """
    problem = TypeError(f"{name} is {values!r}: give a list of strings")
    if isinstance(values, str | bytes):
        raise problem
    try:
        found = tuple(values)
    except TypeError:
        raise problem from None
    if not all(isinstance(value, str) for value in found):
        raise problem
    return found


def check_whole_number(name: str, value: int, least: int) -> int:
    """Return an argument that is a whole number. A number of numpy is one, too.

    name: of the argument.

    Raises TypeError for anything else, and ValueError for less than `least`.
    """
    try:
        found = index(value)
    except TypeError:
        found = None
    if found is None or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: give a whole number")
    if found < least:
        raise ValueError(f"{name} is {found}: give {least} or more")
    return found


def check_path(name: str, value: str | os.PathLike[str]) -> str:
    """Return an argument that is a path as a str. Raises TypeError for anything else.

    name: of the argument.
    """
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str):
        raise TypeError(f"{name} is {value!r}: give a path, a str or a Path")
    return path


def check_booleans(**values: bool) -> None:
    """Raise TypeError for an argument that is neither True nor False."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}: give True or False")
