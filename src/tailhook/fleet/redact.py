"""Masks secrets in the columns that hold text of a session, by the rules of tailhook/machines/secrets.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tailhook._core import ArrowBatch, make_batch
from tailhook.machines.secrets import MASK, is_secret_name, mask

# A secret may be recognised by the words before it, so what stands around a context is examined, too.
EXAMINED_CHARS = 2048  # before a context
EXAMINED_AFTER_CHARS = 256
EDGE = "\x1e"  # marks an edge in a text; it counts as blank space, so it changes no word
PLACES = ("start", "end")  # the columns that are needed to find a match in its context
TEXTS = ("text", "command")
MASKED = frozenset({"context", "input", *TEXTS})


def redacted(batches: Iterable[ArrowBatch], table: str, columns: Sequence[str], context: int) -> Iterator[ArrowBatch]:
    """Yield the batches with masked texts.

    batches: with the columns that `needed_columns` returns; contexts of EXAMINED_CHARS more characters.
    columns: of the batches that are returned.
    context: characters around a match that are shown.
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
    """Return the columns that must be read to redact `columns`."""
    if "context" not in columns:
        return tuple(columns)
    return (*columns, *(name for name in PLACES if name not in columns))


def mask_context(text: str, start: int, length: int, context: int) -> str:
    r"""Return the context of a match without secrets. A word that the edge of the context cuts is left out.

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
    r"""Return JSON text with its strings masked. A text that is not valid JSON is masked as a whole.

    >>> mask_json('{"password": "hunter two", "command": "deploy --token abc"}')
    '{"password":"[secret]","command":"deploy --token [secret]"}'
    """
    try:
        value = json.loads(text)
    except ValueError:
        return mask(text)
    return json.dumps(masked_value(value, ""), ensure_ascii=False, separators=(",", ":"))


def masked_value(value: Any, name: str) -> Any:
    """Return a decoded value with masked strings.  name: of the member that it is; "" for none."""
    if isinstance(value, dict):
        return {key: masked_value(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [masked_value(one, name) for one in value]
    if not isinstance(value, str):
        return value
    return MASK if value and is_secret_name(name) else mask(value)
