"""The fields of a record, found with the json module: the oracle of the record tests."""

import json


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


def assert_same(ours, record):
    """Compare a tailhook Record with the object of the json module."""

    assert ours.text == text(record)
    assert ours.role == string(role(record))
    assert ours.type == string(record.get("type"))
    assert ours.message_id == string(message_id(record))
    assert ours.uuid == string(record.get("uuid"))
    assert ours.timestamp == string(record.get("timestamp"))
    assert {name: getattr(ours, name) for name in FLAGS} == flags(record)
    assert [(tool.id, tool.name, tool.input) for tool in ours.tools] == tools(record)
    assert ours.json() == record
