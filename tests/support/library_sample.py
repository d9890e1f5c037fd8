"""The transcripts of the docs' samples, and records like theirs."""

import json
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]


def record(kind, second, **members):
    """Return a record of the session "s-1".  second: after 9 o'clock."""
    place = {"sessionId": "s-1", "cwd": "/home/me/shop", "gitBranch": "main", "version": "2.1.329"}
    return {"type": kind, "timestamp": f"2026-11-22T09:00:{second:06.3f}Z", **place, **members}


def asked(second, content, **members):
    return record("user", second, message={"role": "user", "content": content}, **members)


def said(second, name, block, tokens, **members):
    usage = {"input_tokens": 4, "output_tokens": tokens, "cache_read_input_tokens": 60_000}
    message = {"id": name, "role": "assistant", "model": "sonnet", "content": [block], "usage": usage}
    return record("assistant", second, message=message, requestId=f"req-{name}", **members)


def text(words):
    return {"type": "text", "text": words}


def use(name, tool, **given):
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def result(name, words, is_error):
    return [{"type": "tool_result", "tool_use_id": name, "content": words, "is_error": is_error}]


def write_sample(folder):
    """Copy examples/sessions: s-1.jsonl, with a sub-agent, and s-2.jsonl."""
    shutil.copytree(ROOT / "examples" / "sessions", folder, dirs_exist_ok=True)


def write_records(path, records):
    """Write the records as lines, and make the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
