"""Writes transcripts of Claude Code with given times in the records."""

import json
from datetime import UTC, datetime

from support.host import assistant


def write(path, *records):
    path.write_text("".join(f"{one}\n" for one in records))
    return str(path)


def stamp(at):
    """Return Unix seconds in the form of a record's timestamp."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def record(kind, text, at, **fields):
    """Return a record of a transcript."""
    one = {**assistant(text), "timestamp": stamp(at), "type": kind, **fields}
    one["message"] |= {"role": kind, **fields.get("message", {})}
    return json.dumps(one)


def call(*ids, message="m1", at=1000, **fields):
    """Return a record of the agent with calls of tools."""
    one = {**assistant(id=message), "timestamp": stamp(at), **fields}
    one["message"]["content"] = [{"type": "tool_use", "id": name, "name": "Bash", "input": {}} for name in ids]
    return json.dumps(one)


def result(*ids, at=1001, words=None, **fields):
    """Return a record with the results of tools, and perhaps text of the host."""
    one = {**assistant(), "timestamp": stamp(at), "type": "user", **fields}
    content = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in ids]
    one["message"] = {"role": "user", "content": [*content, *([{"type": "text", "text": words}] if words else [])]}
    return json.dumps(one)


def host_record(kind, at=None, **fields):
    """Return a bookkeeping record of the host, with or without a time."""
    time = {} if at is None else {"timestamp": stamp(at)}
    return json.dumps({"type": kind, **time, **fields})
