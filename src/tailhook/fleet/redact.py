"""Masks secrets in the columns that hold text of a session, by the rules of tailhook/machines/secrets.py."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from tailhook._core import ArrowBatch, make_batch
from tailhook.machines.secrets import MASK, is_authorization, is_secret_name, mask

# A secret may be recognised by the words before it, so the text around a context is examined, too.
EXAMINED_CHARS = 2048  # before a context
EXAMINED_AFTER_CHARS = 256
EDGE = "\x1e"  # marks an edge in a text; it counts as blank space, so it changes no word
PLACES = ("start", "end")  # the columns needed to find a match in its context
TEXTS = ("text", "command")
MASKED = frozenset({"context", "input", *TEXTS})
# A string, with the colon behind it if it is a member's name; a bracket; a literal; a number; or invalid JSON.
JSON_PIECE = re.compile(
    r"""(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")(?P<colon>\s*:)?|[][{}]|true|false|null|-?\d[-+.\deE]*|[^\s,:]""", re.DOTALL
)
OPENING, CLOSING = ("[", "{"), ("]", "}")
LITERALS = ("true", "false", "null")
NAMED = ("name", "key")  # members with the name for the member "value" of the same object
SURROGATE = re.compile("[\ud800-\udfff]")
DIGITS = "-0123456789"


def redacted(batches: Iterable[ArrowBatch], table: str, columns: Sequence[str], context: int) -> Iterator[ArrowBatch]:
    """Yield the batches with masked texts.

    batches: with the columns of `needed_columns`; contexts have EXAMINED_CHARS more characters.
    columns: of the returned batches.
    context: the number of shown characters around a match.
    """
    if MASKED.isdisjoint(columns):
        yield from batches
        return
    for batch in batches:
        values = dict(zip(batch.names, batch.columns(), strict=True))
        if "context" in columns:
            found = zip(values["context"], values["start"], values["end"], strict=True)
            values["context"] = [mask_context(text, start, end - start, context) for text, start, end in found]
        for name in TEXTS:
            if name in values:
                values[name] = [text and mask(text) for text in values[name]]
        if "input" in values:
            values["input"] = [text and mask_json(text) for text in values["input"]]
        rows = list(zip(*(values[name] for name in columns), strict=True))
        yield make_batch(table, tuple(columns), rows)


def needed_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to read for redacting `columns`."""
    if "context" not in columns:
        return tuple(columns)
    return (*columns, *(name for name in PLACES if name not in columns))


def mask_context(text: str, start: int, length: int, context: int) -> str:
    r"""Return the context of a match without secrets. A word cut by the edge of the context is left out.

    text: the match with up to context + EXAMINED_CHARS characters on both sides.
    start: of the match in its record's text.  length: of the match.

    >>> mask_context("use --token abc123 for TODO items here", 23, 4, 12)
    '[secret] for TODO items here'
    >>> mask_context("use --token abc123 for TODO items here", 23, 4, 6)
    'for TODO items'
    """
    match = min(start, context + EXAMINED_CHARS)
    text = text.replace(EDGE, " ")
    first, last = max(0, match - context), min(len(text), match + length + context)
    if first and not text[first - 1].isspace():
        first = next((at for at in range(first, match) if text[at].isspace()), -1)
        if first < 0:
            first = next((at for at in range(match, 0, -1) if text[at - 1].isspace()), 0)
    if last < len(text) and not text[last].isspace():
        last = next((at for at in range(last, match + length, -1) if text[at - 1].isspace()), -1)
        if last < 0:
            last = next((at for at in range(match + length, len(text)) if text[at].isspace()), len(text))
    end = min(len(text), last + EXAMINED_AFTER_CHARS)
    parts = mask(f"{text[:first]}{EDGE}{text[first:last]}{EDGE}{text[last:end]}").split(EDGE)
    if len(parts) != 3:  # an edge is inside a secret
        return MASK
    return parts[1].strip() if first or last < len(text) else parts[1]


def mask_json(text: str) -> str:
    r"""Return JSON text without secrets; everything else stays as it is. Invalid JSON is masked as a whole.

    Nothing recurses: the core accepts more levels than Python's recursion limit allows.

    >>> mask_json('{"password": "hunter two", "pin": {"token": 12}, "command": "deploy --token abc"}')
    '{"password": "[secret]", "pin": {"token": "[secret]"}, "command": "deploy --token [secret]"}'
    """
    parts: list[str] = []
    end = 0  # of the text in `parts`
    open_lists: list[bool] = []  # for each open object and list: whether it is a list
    open_secrets: list[bool] = []  # for each: whether it is the value of a secret's name
    open_names: list[bool] = []  # for each: whether the value of its member "value" is a secret
    is_secret = False  # the next value
    member = ""  # the newest name of a member
    command: dict[int, str] = {}  # the text of the newest member "command", by its index in `parts`
    words: dict[int, str] = {}  # the texts and numbers in a row in a list, likewise
    for found in JSON_PIECE.finditer(text):
        piece = found[0]
        parts += text[end : found.start()], piece
        end = found.end()
        if piece in OPENING:
            open_lists.append(piece == "[")
            open_secrets.append(is_secret)
            open_names.append(False)
        elif piece in CLOSING and open_lists:
            open_lists.pop()
            open_secrets.pop()
            open_names.pop()
            is_secret = bool(open_secrets) and open_secrets[-1]
        elif piece[0] == '"' and len(piece) > 1:
            value = decode_string(found["string"])
            shown = MASK if is_secret and value and not found["colon"] else mask(value)
            if found["colon"]:
                member = value.lower()
                is_named = member == "value" and open_names[-1:] == [True]
                is_secret = is_named or open_secrets[-1:] == [True] or names_secret(value)
            elif open_lists[-1:] == [True]:
                words[len(parts) - 1] = shown
            elif member == "command":
                command = {len(parts) - 1: shown}
            elif member in NAMED and open_names:
                open_names[-1] = names_secret(value)
            if shown != value:
                parts[-1] = encode_string(shown) + (found["colon"] or "")
            continue
        elif piece[0] in DIGITS:
            parts[-1] = encode_string(MASK) if is_secret else piece
            if open_lists[-1:] == [True]:
                words[len(parts) - 1] = MASK if is_secret else piece
            continue
        elif piece in LITERALS:
            continue
        else:
            return mask(text)
        mask_words(parts, words)
        words = command if piece == "[" and member == "args" else {}
        command = {}
    return "".join((*parts, text[end:]))


def mask_words(parts: list[str], words: dict[int, str]) -> None:
    """Mask the texts of a list that are secrets because of earlier texts, such as an option.

    parts: of JSON text; the secrets are replaced. words: the texts and numbers by their index in it.
    """
    if len(words) < 2:
        return
    plain = [word.replace(EDGE, " ") for word in words.values()]
    joined = EDGE.join(plain)
    shown = mask(joined)
    if shown == joined:
        return
    masked = shown.split(EDGE)
    if len(masked) != len(words):  # a secret goes on from one text to another
        masked = [MASK] * len(words)
    for place, word, before in zip(words, masked, plain, strict=True):
        if word != before:
            parts[place] = encode_string(word)


def names_secret(name: str) -> bool:
    """Return whether the value of a member with this name is a secret."""
    return is_secret_name(name) or is_authorization(name) or name.lower().endswith(("cookie", "cookies"))


def decode_string(word: str) -> str:
    """Return the decoded text of a string in JSON text; the string itself if it is not valid."""
    try:
        return str(json.loads(word, strict=False))
    except ValueError:
        return word


def encode_string(value: str) -> str:
    """Return a text as a string of JSON text. A lone surrogate becomes U+FFFD, as in all rows."""
    return json.dumps(SURROGATE.sub("\ufffd", value), ensure_ascii=False)
