"""Records of Claude Code written by hand, and the oracle's rows for them."""

import json
from datetime import UTC, datetime, timedelta

from support.oracles.scan import Question, rows

NOON = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def at(seconds=0):
    return NOON + timedelta(seconds=seconds)


def lines(*records, end=b"\n"):
    """Return the lines of records; bytes stay as they are."""
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + end for one in records)


def record(kind, content=None, seconds=0, message=None, **members):
    """Return a record of session s; seconds: its time after noon."""
    body = {} if content is None and message is None else {"message": {"role": kind, "content": content}}
    if message:
        body["message"] |= message
    stamp = at(seconds).isoformat().replace("+00:00", "Z")
    return {"type": kind, "sessionId": "s", "cwd": "/p", "timestamp": stamp, **body, **members}


def said(text, seconds=0, **members):
    return record("assistant", [{"type": "text", "text": text}], seconds, **members)


def typed(text, seconds=0, **members):
    return record("user", text, seconds, **members)


def queued(prompt, **members):
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **members}
    return record("attachment", attachment=attachment)


def response(message_id, output, seconds=0, request=None, **members):
    message = {"usage": {"input_tokens": 1, "output_tokens": output}, "model": "m"}
    message |= {} if message_id is None else {"id": message_id}
    more = {"requestId": request} if request else {}
    return record("assistant", [], seconds, message=message, **more, **members)


def nested(inner, agent="a1", **members):
    return record("progress", data={"message": inner, "agentId": agent}, **members)


def scanned(table, *records, **question):
    """Return the rows of one file, /t/s.jsonl."""
    return rows(table, [("/t/s.jsonl", lines(*records))], Question(**question))


def found(*records, **question):
    """Return the matches of the pattern TODO as (start, end, line, in_code)."""
    matches = scanned("matches", *records, **{"patterns": {"todo": "TODO"}, **question})
    return [(row["start"], row["end"], row["line"], row["in_code"]) for row in matches]


def billed(*of_files, **question):
    """Return (message id, output tokens, session) of each response; of_files: lists of records."""
    named = [(f"/t/{number}.jsonl", lines(*records)) for number, records in enumerate(of_files)]
    usage = rows("usage", named, Question(**question))
    return [(row["message_id"], row["output_tokens"], row["session_id"]) for row in usage]
