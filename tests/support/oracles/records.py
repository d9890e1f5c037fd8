"""The fields of a record, found with the json module: the oracle of the record tests."""

import json

from support.oracles.scan_values import parse_time


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


def is_queued_prompt(record):
    """Return whether a record is a prompt typed while the agent worked."""
    attachment = record.get("attachment")
    if record.get("type") != "attachment" or not isinstance(attachment, dict):
        return False
    is_typed = (attachment.get("type"), attachment.get("commandMode")) == ("queued_command", "prompt")
    return is_typed and attachment.get("isMeta") is not True and is_of_person(attachment)


def is_of_person(record):
    origin = record.get("origin")
    return not isinstance(origin, dict) or "kind" not in origin or origin["kind"] == "human"


def content(record):
    if is_queued_prompt(record):
        return record["attachment"].get("prompt")
    message = record.get("message")
    if isinstance(message, dict) and "content" in message:
        return message["content"]
    return record.get("content") if record.get("type") in ("human", "user", "assistant") else None


def words(record):
    """Return the part with the text of a record: its message's content, or its own `content` if it is not a message.

    Claude Code 2.1.80 writes {"type": "system", "content": TEXT} and {"type": "queue-operation", "content": TEXT}.
    """
    message = record.get("message")
    if is_queued_prompt(record) or (isinstance(message, dict) and "content" in message):
        return content(record)
    return None if record.get("type") == "tool_result" else record.get("content")


def text(record, strings=True):
    """Return the text of a record.  strings: the strings in a list of blocks belong to it."""
    return "\n".join(texts(record, strings)) if not isinstance(words(record), str) else words(record)


def texts(record, strings=True):
    """Return the texts of a record that are not blank."""
    whole = words(record)
    blocks = [whole] if isinstance(whole, str) else whole if isinstance(whole, list) else []
    found = [block.get("text") if is_block(block, "text") else block for block in blocks]
    if not strings and isinstance(whole, list):
        found = [block.get("text") for block in blocks if is_block(block, "text")]
    return [piece for piece in found if isinstance(piece, str) and piece.strip()]


def is_block(block, kind):
    return isinstance(block, dict) and block.get("type") == kind


def role(record):
    if is_queued_prompt(record):
        return "user"
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
    return member(record, "id")


FLAGS = {
    "is_sidechain": "isSidechain",
    "is_meta": "isMeta",
    "is_api_error": "isApiErrorMessage",
    "is_compact_summary": "isCompactSummary",
}


def flags(record):
    return {ours: record.get(theirs) is True for ours, theirs in FLAGS.items()}


def is_same_message(one, other):
    requests = {name for name in (one.get("requestId"), other.get("requestId")) if isinstance(name, str) and name}
    return bool(message_id(one)) and message_id(one) == message_id(other) and len(requests) < 2


def last_message(records, is_of_sub_agent=False):
    """Return the text of the newest message that has text; records: oldest first.

    is_of_sub_agent: whether all of the file is a sub-agent's; then its messages are its own.
    """
    texts, newest, is_compacted = [], None, False
    ids = [record.get("uuid") for record in records]
    for number, record in reversed(list(enumerate(records))):
        is_compacted = is_compacted or '"compact_boundary"' in json.dumps(record)
        known = {**flags(record), **({"is_sidechain": False} if is_of_sub_agent else {})}
        if record.get("type") != "assistant" or any(known.values()):
            continue
        if texts and not is_same_message(newest, record):
            break
        if is_compacted and isinstance(ids[number], str) and ids[number] and ids[number] in ids[:number]:
            continue  # a compaction wrote it again
        if text(record, strings=False).strip():
            texts.append(text(record, strings=False))
            newest = record
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
    "<agent-notification",
    "<bash-",
    "<system-reminder",
    "<user-memory-input",
    "[Request interrupted",
    "Stop hook feedback:",
    "Operation stopped by hook:",
    "Caveat: The messages below",
)
APP_WRITTEN = ("<ci-monitor-event", "<create-pr-command")


def member(record, name):
    message = None if is_queued_prompt(record) else record.get("message")
    return message.get(name) if isinstance(message, dict) else None


def time(record):
    return parse_time(record.get("timestamp"))


def usage(record):
    whole = member(record, "usage")
    if not isinstance(whole, dict):
        return None
    counts = (whole.get(name) for name in TOKENS)
    return tuple(count if type(count) is int and 0 <= count < 2**63 else 0 for count in counts)


def results(record):
    whole = content(record)
    blocks = [record] if record.get("type") == "tool_result" else whole if isinstance(whole, list) else []
    return [block for block in blocks if is_block(block, "tool_result")]


def result_text(result):
    return text({"message": {"content": result.get("content")}})


def has_own_words(record):
    hosts = any(flag for name, flag in flags(record).items() if name != "is_sidechain")
    if role(record) not in ("human", "user", "assistant") or hosts or not texts(record):
        return False
    return role(record) == "assistant" or not texts(record)[0].lstrip(" \t\n\r\v\f").startswith(HOST_WRITTEN)


def is_prompt(record):
    is_persons = role(record) in ("human", "user") and not flags(record)["is_sidechain"]
    if not is_persons or not has_own_words(record) or not is_of_person(record) or results(record):
        return False
    if "planContent" in record:
        return False
    return not texts(record)[0].lstrip(" \t\n\r\v\f").startswith(APP_WRITTEN)


def is_error(record):
    failed = any(result.get("is_error") is True for result in results(record))
    return failed or flags(record)["is_api_error"] or record.get("subtype") == "api_error"


ATTRIBUTES = (
    *STRINGS,
    *FLAGS,
    *("role", "text", "message_id", "model", "time", "usage", "is_prompt", "has_own_words", "is_error", "offset"),
)


def everything(ours):
    """Return all values of a tailhook Record, without the whole object."""
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
    assert ours.has_own_words == has_own_words(record)
    assert [(one.tool_use_id, one.is_error, one.text) for one in ours.tool_results] == [
        (string(one.get("tool_use_id")), one.get("is_error") is True, result_text(one)) for one in results(record)
    ]
    assert {name: getattr(ours, name) for name in FLAGS} == flags(record)
    assert [(tool.id, tool.name, tool.input) for tool in ours.tools] == tools(record)
    assert ours.json() == record
