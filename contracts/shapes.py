"""Types of values as a contract has them: one row for each member, whichever language declared it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Shape:
    """The values that a member may have.

    names: simple types ("string", "null") and fixed values ("'block'").
    members: of the objects among the values, None without objects. Of each: its shape, and whether it may be missing.
    items: the shape of the elements of the lists among the values, None without lists.
    """

    names: set[str] = field(default_factory=set)
    members: dict[str, tuple[Shape, bool]] | None = None
    items: Shape | None = None

    def fixed(self) -> str:
        """Return the only value that a member may have, "" if it may have several."""
        (name,) = self.names if len(self.names) == 1 else ("",)
        return name[1:-1] if name.startswith("'") else ""

    def text(self) -> str:
        """Return the shape on one line, without the members of its objects."""
        found = sorted(self.names)
        if self.members is not None:
            found.append("object")
        if self.items is not None:
            inner = self.items.text()
            found.append(f"({inner})[]" if " | " in inner else f"{inner}[]")
        return " | ".join(found) or "any"


def either(one: Shape, other: Shape) -> Shape:
    """Return the shape of values that have one of two shapes. A member of only one of them may be missing."""
    members = one.members if other.members is None else other.members
    if one.members is not None and other.members is not None:
        members = {}
        for name in {**one.members, **other.members}:
            first, second = one.members.get(name), other.members.get(name)
            if first and second:
                members[name] = either(first[0], second[0]), first[1] or second[1]
            elif found := first or second:
                members[name] = found[0], True
    items = one.items if other.items is None else other.items
    if one.items is not None and other.items is not None:
        items = either(one.items, other.items)
    return Shape(one.names | other.names, members, items)


def both(one: Shape, other: Shape) -> Shape:
    """Return the shape of values that have two shapes: the members of both."""
    members = one.members if other.members is None else {**(one.members or {}), **other.members}
    return Shape(one.names | other.names, members, one.items or other.items)


def rows(shape: Shape, depth: int, prefix: str = "") -> dict[str, str]:
    """Return the members of an object by name, each with its type; "?" at its end: it may be missing.

    depth: how many levels of nested objects have rows of their own.
    """
    found: dict[str, str] = {}
    for name, (member, is_optional) in sorted((shape.members or {}).items()):
        found[f"{prefix}{name}"] = member.text() + ("?" if is_optional else "")
        inner, mark = (member, "") if member.members is not None or member.items is None else (member.items, "[]")
        if depth:
            found |= rows(inner, depth - 1, f"{prefix}{name}{mark}.")
    return found
