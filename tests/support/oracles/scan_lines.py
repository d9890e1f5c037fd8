"""The object of a line that is its record, and its JSON text, for the oracle of the scan."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from support.oracles.scan_values import mapping, sequence, whole_number

BLANK = " \t\r\n\0"
# Stands for each part of invalid UTF-8. Transcripts do not have this noncharacter.
INVALID = "\U0010fffe"
codecs.register_error("tailhook.mark", lambda error: (INVALID, error.end))
# The members that must be UTF-8. Elsewhere, invalid UTF-8 becomes U+FFFD.
OF_RECORD = ("type", "id", "uuid", "name", "input", "content", "timestamp", "message")
OF_MESSAGE = ("id", "role", "content")
OF_BLOCK = ("type", "id", "name", "input", "text")


def is_damaged(record: dict[str, Any]) -> bool:
    """Return whether a member of those is not UTF-8: then the line has no record."""
    message = mapping(record.get("message"))
    blocks = [*sequence(record.get("content")), *sequence(message.get("content"))]
    texts = [record.get(name) for name in OF_RECORD] + [message.get(name) for name in OF_MESSAGE] + blocks
    texts.append(mapping(record.get("attachment")).get("type"))
    texts += [block.get(name) for block in map(mapping, blocks) for name in OF_BLOCK]
    return any(INVALID in text for text in texts if isinstance(text, str))


def is_object(text: str) -> bool:
    try:
        found = json.loads(text, parse_constant=refuse, parse_int=whole_number)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and not is_damaged(found)


def refuse(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity are not JSON (RFC 8259, 6)


DECODER = json.JSONDecoder(parse_constant=refuse, parse_int=whole_number)


def object_in(line: bytes) -> tuple[str | None, bool]:
    """Return the result of `find_object`, but no record if it is a queued prompt with invalid UTF-8."""
    source, is_broken = find_object(line)
    record = {} if source is None else json.loads(source, parse_int=whole_number)
    if holds_queued_prompt(record) and is_damaged({"content": record["attachment"].get("prompt")}):
        return None, True
    return source, is_broken


def find_object(line: bytes) -> tuple[str | None, bool]:
    """Return the JSON text of the object that is a line's record, None without one, and whether the line is broken.

    A byte order mark at the start of a line is ignored. In a broken line it is the last complete object that starts the
    line, follows another complete object, or ends where the line ends, apart from blank space and NULs. Objects nested
    in a torn record are left out.
    """
    text = line.decode("utf-8", "tailhook.mark").removeprefix("\ufeff")
    if is_object(text):
        return text.strip(" \t\r\n"), False
    rest, last = text.strip(BLANK), None
    while rest.startswith("{"):
        try:
            found, end = DECODER.raw_decode(rest)
        except (ValueError, RecursionError):
            break
        if is_damaged(found):
            break
        last, rest = rest[:end], rest[end:].lstrip(BLANK)
    if rest.endswith("}"):
        for at in (match.start() for match in re.finditer(r"\{", rest)):
            if is_object(rest[at:]) and not is_nested(rest[:at]):
                return rest[at:], True
    return last, True


# The JSON before a nested object: not the end of `log: {…}`, or of a record torn inside a string.
BEFORE_VALUE = re.compile(r"""(?:(?:^|["\0])\s*:|(?:^|["}\]\0])\s*,|(?:^|[:,[\0])\s*\[)\s*$""")


def is_nested(before: str) -> bool:
    """Return whether an object after `before` stands there as a value of a torn record."""
    last = before.rstrip(" \t\r\n")[-1:]
    try:
        json.loads(before)
    except json.JSONDecodeError as fault:
        if fault.msg.startswith("Unterminated string"):
            return False
        if before.startswith("{") and fault.pos >= len(before.rstrip(" \t\r\n")):  # torn where it ends
            return last in tuple(":[") or (last == "," and open_containers(before)[-1:] != ["{"])
    # Its beginning is missing, or several records are torn: the beginnings of strings are unknown.
    return BEFORE_VALUE.search(before) is not None


def open_containers(before: str) -> list[str]:
    """Return the brackets that are open at the end of a beginning of JSON."""
    found: list[str] = []
    for bracket in re.findall(r"[\[\]{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", before)):
        if bracket in "{[":
            found.append(bracket)
        else:
            found.pop()
    return found


def raw_member(text: str | None, name: str) -> str | None:
    """Return the JSON text of an object's member, None without one. The last of equal names counts."""
    found, at = None, 1
    if text is None or not text.startswith("{"):
        return None
    while (at := after_blank(text, at)) < len(text) and text[at] != "}":
        key, at = DECODER.raw_decode(text, at)
        start = after_blank(text, after_blank(text, at) + 1)
        _, at = DECODER.raw_decode(text, start)
        if key == name:
            found = text[start:at]
        at = after_blank(text, at)
        at += text[at] == ","
    return found


def raw_elements(text: str | None) -> list[str]:
    """Return the JSON texts of an array's elements."""
    found, at = [], 1
    if text is None or not text.startswith("["):
        return []
    while (at := after_blank(text, at)) < len(text) and text[at] != "]":
        _, end = DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = after_blank(text, end)
        at += text[at] == ","
    return found


def after_blank(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip(" \t\r\n"))


def holds_queued_prompt(record: dict[str, Any]) -> bool:
    """Return whether a record is an attachment with a prompt typed while the agent worked."""
    attachment = mapping(record.get("attachment"))
    is_typed = attachment.get("type") == "queued_command" and attachment.get("commandMode") == "prompt"
    is_typed = is_typed and attachment.get("isMeta") is not True and is_of_person(attachment)
    return record.get("type") == "attachment" and is_typed


def is_of_person(record: dict[str, Any]) -> bool:
    """Return whether the `origin` of a record, if it has one with a kind, is a person."""
    return mapping(record.get("origin")).get("kind", "human") == "human"
