"""Reads TypeScript's declarations, and what is left of them in JavaScript, with tree-sitter."""

from collections.abc import Iterator
from functools import reduce

import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from contracts.shapes import Shape, both, either

PARSER = Parser(Language(tree_sitter_typescript.language_typescript()))
MAX_DEPTH = 5  # of names of types in named types: some name themselves


def parse(source: bytes) -> Node:
    """Return the tree of a file."""
    return PARSER.parse(source).root_node


def text_of(node: Node | None) -> str:
    """Return a node's text; of a string, without its quotes."""
    text = node.text.decode() if node is not None and node.text is not None else ""
    return text[1:-1] if node is not None and node.type == "string" else text


def quoted(node: Node | None) -> str:
    """Return a string's node as a fixed value."""
    return f"'{text_of(node)}'"


def walk(node: Node, kind: str, nested: bool = True) -> Iterator[Node]:
    """Yield the nodes of a kind, in the order of the text.  nested: also those in a node of that kind."""
    stack = [node]
    while stack:
        found = stack.pop()
        if found.type == kind:
            yield found
        if nested or found.type != kind:
            stack += reversed(found.children)


class Declarations:
    """The types that several files declare."""

    def __init__(self, *sources: bytes) -> None:
        self.nodes: dict[str, Node] = {}
        for source in sources:
            tree = parse(source)
            for kind in ("type_alias_declaration", "interface_declaration", "enum_declaration"):
                for node in walk(tree, kind):
                    self.nodes.setdefault(text_of(node.child_by_field_name("name")), node)

    def shape(self, name: str, depth: int = 0) -> Shape:
        """Return the shape of a declared type, "any" if it is not declared.

        depth: how many names led to it. At 0, raises KeyError if it is not declared.
        """
        if depth and (name not in self.nodes or depth > MAX_DEPTH):
            return Shape({"any"})
        node = self.nodes[name]
        if node.type == "type_alias_declaration":
            return self.read(node.child_by_field_name("value"), depth)
        body = node.child_by_field_name("body")
        assert body is not None
        if node.type == "enum_declaration":
            return Shape({quoted(one.child_by_field_name("value")) for one in walk(body, "enum_assignment")})
        shape = self.read(body, depth)
        for clause in node.children:
            if clause.type == "extends_type_clause":
                shape = reduce(lambda own, base: both(self.read(base, depth), own), clause.named_children, shape)
        return shape

    def alternatives(self, node: Node | None) -> list[Node]:
        """Return the types that a union joins; of a name, those of its declaration."""
        if node is None:
            return []
        if node.type == "type_identifier" and text_of(node) in self.nodes:
            return self.alternatives(self.nodes[text_of(node)].child_by_field_name("value")) or [node]
        if node.type in ("union_type", "parenthesized_type"):
            return [one for part in node.named_children for one in self.alternatives(part)]
        return [] if node.type == "comment" else [node]

    def read(self, node: Node | None, depth: int = 0) -> Shape:
        """Return the shape of a type."""
        if node is None:
            return Shape({"any"})
        parts = [part for part in node.named_children if part.type != "comment"]
        match node.type:
            case "union_type":
                shapes = [self.read(part, depth) for part in parts]
                return reduce(either, shapes)
            case "intersection_type":
                return reduce(both, [self.read(part, depth) for part in parts])
            case "parenthesized_type" | "readonly_type" | "type_annotation":
                return self.read(parts[0], depth)
            case "array_type":
                return Shape(items=self.read(parts[0], depth))
            case "object_type" | "interface_body":
                return Shape(members=dict(self.members(node, depth)))
            case "type_identifier" | "nested_type_identifier":
                return self.named(text_of(node), depth)
            case "generic_type":
                return self.generic(parts, depth)
            case "literal_type":
                return Shape({quoted(parts[0]) if parts[0].type == "string" else text_of(node)})
            case "predefined_type":
                name = text_of(node)
                return Shape({"any" if name == "unknown" else name} - {"never"})
        return Shape({"any"})

    def named(self, name: str, depth: int) -> Shape:
        """Return the shape of a name, or of ENUM.NAME."""
        space, _, own = name.rpartition(".")
        if space in self.nodes and self.nodes[space].type == "enum_declaration":
            for one in walk(self.nodes[space], "enum_assignment"):
                if text_of(one.child_by_field_name("name")) == own:
                    return Shape({quoted(one.child_by_field_name("value"))})
        return self.shape(own, depth + 1)

    def generic(self, parts: list[Node], depth: int) -> Shape:
        """Return the shape of NAME<TYPE, ...>."""
        arguments = parts[1].named_children
        match text_of(parts[0]):
            case "Record":
                return Shape(members={})
            case "Partial":
                whole = self.read(arguments[0], depth)
                return Shape(whole.names, {name: (one, True) for name, (one, _) in (whole.members or {}).items()})
            case "Array" | "ReadonlyArray":
                return Shape(items=self.read(arguments[0], depth))
        return Shape({"any"})

    def members(self, node: Node, depth: int) -> Iterator[tuple[str, tuple[Shape, bool]]]:
        """Yield the members of an object. One whose type is `never` is left out."""
        for member in node.named_children:
            if member.type != "property_signature":
                continue
            shape = self.read(member.child_by_field_name("type"), depth)
            is_optional = any(part.type == "?" for part in member.children) or "undefined" in shape.names
            shape.names.discard("undefined")
            if shape != Shape():
                yield text_of(member.child_by_field_name("name")), (shape, is_optional)


# ---- JavaScript: names are left, most types are not -----------------------------


def read_object(node: Node) -> Shape:
    """Return the shape of the objects that an object literal makes. The type of a computed value is "any".

    `...CONDITION ? {...} : {}` and `...CONDITION && {...}` give members that may be missing.
    """
    members: dict[str, tuple[Shape, bool]] = {}
    for part in node.named_children:
        if part.type == "pair":
            value = part.child_by_field_name("value")
            assert value is not None
            shape = read_object(value) if value.type == "object" else Shape({value_type(value)})
            members[text_of(part.child_by_field_name("key"))] = shape, False
        elif part.type == "shorthand_property_identifier":
            members[text_of(part)] = Shape({"any"}), False
        elif part.type == "spread_element" and part.named_children[0].type in (
            "ternary_expression",
            "binary_expression",
        ):
            for inner in walk(part, "object", nested=False):
                members |= {name: (shape, True) for name, (shape, _) in (read_object(inner).members or {}).items()}
    return Shape(members=members)


def value_type(value: Node) -> str:
    """Return the type of a value, "any" if the code does not show it."""
    if value.type in ("string", "template_string"):
        return "string"
    return {"number": "number", "true": "boolean", "false": "boolean", "array": "any[]"}.get(value.type, "any")


def read_literal(node: Node) -> object:
    """Return the value of a literal: an object, a list, a string, a number, true or false; otherwise None."""
    match node.type:
        case "object":
            pairs = [part for part in node.named_children if part.type == "pair"]
            return {text_of(one.child_by_field_name("key")): read_literal(one.named_children[-1]) for one in pairs}
        case "array":
            return [read_literal(part) for part in node.named_children if part.type != "comment"]
        case "string":
            return text_of(node)
        case "true" | "false":
            return node.type == "true"
    return None
