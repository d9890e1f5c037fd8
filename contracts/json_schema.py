"""Reads JSON schemas (draft 7) as shapes."""

import json
from typing import Any

from contracts.shapes import Shape, both, either


def read_schema(schema: dict[str, Any] | bool, definitions: dict[str, Any]) -> Shape:
    """Return the shape of a schema.

    definitions: the schemas that a "$ref" names, by the last part of its path.
    """
    if isinstance(schema, bool):  # `true` allows any value
        return Shape({"any"})
    if "$ref" in schema:
        return read_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "const" in schema or "enum" in schema:
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        return Shape({f"'{value}'" if isinstance(value, str) else json.dumps(value) for value in values})
    shape = Shape()
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array":
            shape = either(shape, Shape(items=read_schema(schema.get("items", {}), definitions)))
        elif kind == "object":
            needed = schema.get("required", ())
            members = {
                name: (read_schema(member, definitions), name not in needed)
                for name, member in schema.get("properties", {}).items()
            }
            shape = either(shape, Shape(members=members))
        else:
            shape.names.add(kind)
    for alternative in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        shape = either(shape, read_schema(alternative, definitions))
    for part in schema.get("allOf", ()):
        shape = both(shape, read_schema(part, definitions))
    return shape
