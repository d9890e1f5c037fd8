"""The common parts of the counters of token usage: rows, and reading of records. No code of the package."""

import json
from pathlib import Path
from typing import NamedTuple


class Response(NamedTuple):
    """A billed response of a model's API.

    session_id: of the session as a person knows it. A sub-agent of Codex since 0.144 has that of its root.
    timestamp: as the record has it.
    input_tokens: those neither read from nor written to a cache.
    """

    host: str
    session_id: str | None
    model: str | None
    timestamp: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int


def records_of(path: Path) -> list[dict]:
    """Return the JSON objects of a file, one a line. Other lines are ignored."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def part(value: object, *names: str) -> dict:
    """Return the object at a path of names, {} if it is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def number(value: object) -> int:
    """Return a count of tokens, 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
