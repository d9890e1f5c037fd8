"""The fields of a record, found with the json module: the oracle of the record tests."""

import json
from datetime import datetime, timedelta, timezone

from tailhook._core import unix_time


def is_object(line):
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


BLANK = " \t\r\n\0"


def candidates(line):
    """Yield every object that a bad line may hold: those at its start, one after another, and those at its end."""
    text = line.decode("utf-8", "replace").strip(BLANK)
    found, rest = [], text
    while rest.startswith("{"):
        try:
            value, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            break
        found.append(value)
        rest = rest[end:].lstrip(BLANK)
    return found + [json.loads(text[at:]) for at in range(len(text)) if text[at] == "{" and is_object(text[at:])]


def string(value):
    return value if isinstance(value, str) else None


def content(record):
    message = record.get("message")
    if isinstance(message, dict) and "content" in message:
        return message["content"]
    return record.get("content") if record.get("type") in ("human", "user", "assistant") else None


def text(record):
    whole = content(record)
    if isinstance(whole, str):
        return whole
    blocks = whole if isinstance(whole, list) else []
    texts = [block["text"] for block in blocks if is_block(block, "text") and isinstance(block.get("text"), str)]
    return "\n".join(piece for piece in texts if piece.strip())


def is_block(block, kind):
    return isinstance(block, dict) and block.get("type") == kind


def role(record):
    if record.get("type") not in ("human", "user", "assistant"):
        return None
    message = record.get("message")
    return message["role"] if isinstance(message, dict) and "role" in message else record["type"]


def tools(record):
    whole = content(record)
    blocks = [record, *(whole if isinstance(whole, list) else ())]
    uses = [block for block in blocks if is_block(block, "tool_use")]
    return [(string(use.get("id")), string(use.get("name")), use.get("input")) for use in uses]


def message_id(record):
    message = record.get("message")
    return message.get("id") if isinstance(message, dict) else None


FLAGS = {
    "is_sidechain": "isSidechain",
    "is_meta": "isMeta",
    "is_api_error": "isApiErrorMessage",
    "is_compact_summary": "isCompactSummary",
}


def flags(record):
    return {ours: record.get(theirs) is True for ours, theirs in FLAGS.items()}


def last_message(records):
    """Return the text of the newest message that has text; records: oldest first."""
    texts, newest = [], None
    for record in reversed(records):
        if record.get("type") != "assistant" or any(flags(record).values()):
            continue
        if texts and (newest is None or message_id(record) != newest):
            break
        if text(record).strip():
            texts.append(text(record))
            newest = message_id(record)
    return "\n".join(reversed(texts)) if texts else None


STRINGS = {
    "type": "type",
    "uuid": "uuid",
    "timestamp": "timestamp",
    "session_id": "sessionId",
    "agent_id": "agentId",
    "parent_uuid": "parentUuid",
    "request_id": "requestId",
    "cwd": "cwd",
    "git_branch": "gitBranch",
    "host_version": "version",
    "subtype": "subtype",
}
TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
HOST_WRITTEN = (
    "<command-",
    "<local-command-",
    "<task-notification",
    "<bash-",
    "<system-reminder",
    "<user-memory-input",
    "[Request interrupted",
    "Stop hook feedback:",
    "Caveat: The messages below",
)


def member(record, name):
    message = record.get("message")
    return message.get(name) if isinstance(message, dict) else None


def time(record):
    seconds = unix_time(record["timestamp"]) if isinstance(record.get("timestamp"), str) else None
    try:
        return None if seconds is None else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    except OverflowError:
        return None


def usage(record):
    whole = member(record, "usage")
    if not isinstance(whole, dict):
        return None
    counts = (whole.get(name) for name in TOKENS)
    return tuple(count if type(count) is int and 0 <= count < 10**18 else 0 for count in counts)


def results(record):
    whole = content(record)
    blocks = [record] if record.get("type") == "tool_result" else whole if isinstance(whole, list) else []
    return [block for block in blocks if is_block(block, "tool_result")]


def result_text(result):
    return text({"message": {"content": result.get("content")}})


def is_prompt(record):
    if record.get("type") not in ("human", "user") or any(flags(record).values()) or results(record):
        return False
    origin, whole = record.get("origin"), content(record)
    if isinstance(origin, dict) and "kind" in origin and origin["kind"] != "human":
        return False
    blocks = [whole] if isinstance(whole, str) else whole if isinstance(whole, list) else []
    texts = [block if isinstance(block, str) else is_block(block, "text") and block.get("text") for block in blocks]
    words = [words.lstrip(" \t\n\r\v\f") for words in texts if isinstance(words, str) and words.strip()]
    return bool(words) and not words[0].startswith(HOST_WRITTEN)


def is_error(record):
    failed = any(result.get("is_error") is True for result in results(record))
    return failed or flags(record)["is_api_error"] or record.get("subtype") == "api_error"


ATTRIBUTES = (
    *STRINGS,
    *FLAGS,
    *("role", "text", "message_id", "model", "time", "usage", "is_prompt", "is_error", "offset"),
)


def everything(ours):
    """Return all that a tailhook Record can be asked for, without the whole object."""
    tools = [(tool.id, tool.name, tool.input) for tool in ours.tools]
    found = [(result.tool_use_id, result.is_error, result.text) for result in ours.tool_results]
    return [getattr(ours, name) for name in ATTRIBUTES], tools, found


def assert_same(ours, record):
    """Compare a tailhook Record with the object of the json module."""

    assert ours.text == text(record)
    assert ours.role == string(role(record))
    assert ours.message_id == string(message_id(record))
    assert {name: getattr(ours, name) for name in STRINGS} == {
        name: string(record.get(theirs)) for name, theirs in STRINGS.items()
    }
    assert ours.model == string(member(record, "model"))
    assert ours.time == time(record)
    assert ours.usage == usage(record)
    assert (ours.is_prompt, ours.is_error) == (is_prompt(record), is_error(record))
    assert [(one.tool_use_id, one.is_error, one.text) for one in ours.tool_results] == [
        (string(one.get("tool_use_id")), one.get("is_error") is True, result_text(one)) for one in results(record)
    ]
    assert {name: getattr(ours, name) for name in FLAGS} == flags(record)
    assert [(tool.id, tool.name, tool.input) for tool in ours.tools] == tools(record)
    assert ours.json() == record
