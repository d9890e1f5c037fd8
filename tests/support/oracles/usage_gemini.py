"""A second counter of Gemini CLI's token usage, from Gemini's own files.

The rules are those of packages/core/src/services/chatRecordingService.ts in @google/gemini-cli 0.61.0.

A message of the model has `tokens` of one response (recordMessageTokens fills them once). pushMessage appends the whole
message again when its tokens or tool calls come. `$set` with `messages` is the whole conversation again, after a
resume, a compression or an edit: its messages keep their ids and tokens, and new ones have none. A session that was a
.json file is copied to a .jsonl file. So a response is known by its session and the message's id.

`$rewindTo` takes messages away, and `$set` may drop some. They were billed, so they count.

`input` is Gemini's promptTokenCount, which has the cached ones. The prompt of server-side tools (`tool`) and the
thinking (`thoughts`) are apart: `total` is the sum of input, output, thoughts and tool. Calls without tools (a
compression, a title, a choice of the model) leave nothing in the file.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from support.oracles.usage_rows import Response, number, part, records_of


def gemini(files: list[Path]) -> list[Response]:
    """Return each billed response of Gemini's chats."""
    found: dict[tuple, Response] = {}
    for path in files:
        session_id = None
        for record in chat_of(path):
            session_id = record.get("sessionId") or session_id
            for message in messages_of(record):
                tokens = part(message, "tokens")
                if message.get("type") == "gemini" and tokens:
                    found[session_id, message.get("id")] = gemini_response(session_id, message, tokens)
    return [response for response in found.values() if any(response[4:])]


def chat_of(path: Path) -> list[dict]:
    """Return the records of a chat. An old one (.json) is a single object, on many lines."""
    try:
        whole = json.loads(path.read_bytes())
    except ValueError:
        return records_of(path)
    return [whole] if isinstance(whole, dict) else []


def messages_of(record: dict) -> Iterator[dict]:
    """Return the messages that a record holds: itself, or those of a conversation."""
    if isinstance(record.get("id"), str):
        yield record
        return
    for listed in (part(record, "$set").get("messages"), record.get("messages")):
        if isinstance(listed, list):
            yield from (message for message in listed if isinstance(message, dict))


def gemini_response(session_id: object, message: dict, tokens: dict) -> Response:
    """Return a response as a row."""
    taken, cached, given = (number(tokens.get(name)) for name in ("input", "cached", "output"))
    tool, thoughts = number(tokens.get("tool")), number(tokens.get("thoughts"))
    fresh = max(0, taken - cached) + tool
    return Response(
        "gemini", session_id, message.get("model"), message.get("timestamp"), fresh, given + thoughts, cached, 0
    )
