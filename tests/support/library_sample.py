"""The transcripts that the ten questions of docs/library.md are asked about."""

import json


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


WORK = [
    asked(0, "Fix the failing test."),
    said(2, "m-1", text("I run it first."), 3),
    said(3, "m-1", use("t-1", "Bash", command="make test"), 61),
    asked(7, result("t-1", "1 failed", True)),
    said(9, "m-2", use("t-2", "Edit", file_path="/home/me/shop/cart.py"), 80),
    asked(9.5, result("t-2", "done", False)),
    record("system", 20, subtype="compact_boundary", compactMetadata={"trigger": "auto"}),
    asked(21, "This session is being continued ...", isCompactSummary=True),
    asked(30, "<command-name>/cost</command-name>"),
    asked(31, "Is it fixed?"),
    said(34, "m-3", text("I would say `<loop-done>COMPLETE</loop-done>`:\n\n<loop-done>COMPLETE</loop-done>"), 25),
]
OTHER = [
    {**asked(0, "What is in this folder?"), "sessionId": "s-2", "cwd": "/home/me/notes"},
    {**said(1, "m-4", text("Notes."), 5), "sessionId": "s-2", "cwd": "/home/me/notes"},
]
AGENT = [said(4, "m-5", text("Found it."), 12, agentId="a-1", isSidechain=True)]


def write_sample(folder):
    """Write s-1.jsonl, with a sub-agent, and s-2.jsonl."""
    for name, records in {"s-1": WORK, "s-2": OTHER, "s-1/subagents/agent-a-1": AGENT}.items():
        write_records(folder / f"{name}.jsonl", records)


def write_records(path, records):
    """Write the records as lines, and make the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
