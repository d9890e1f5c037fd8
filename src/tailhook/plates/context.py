"""How full a session's context is, as the host's records have it: the tokens of the newest response.

Also numbers of tokens in words.
"""

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tailhook._core import Record, reverse_lines, reverse_records
from tailhook.hosts.reading import read_count
from tailhook.plates.fields import ContextOut, TokensOut
from tailhook.plates.transcript_ends import find_host_records, open_transcript

CONTEXT_TAIL_BYTES = 1 << 20  # searched from the transcript's end
MAX_CONTEXT_RECORD_BYTES = 1 << 18  # of a record; a longer one is skipped
MAX_CONTEXT_RECORDS = 500


def context_at_end(path: str) -> ContextOut | None:
    """Return the context of a session, or None if the end of its transcript does not have it.

    Reads at most 1 MiB, however large the transcript is.
    """
    try:
        for record in islice(records_at_end(path), MAX_CONTEXT_RECORDS):
            if record.subtype == "compact_boundary":
                return None  # the context is smaller now; the next response has its size
            tokens, window = count_in(record)
            if tokens:
                return {"tokens": tokens, "window": window, "words": context_words(tokens, window)}
    except (OSError, ValueError):
        pass
    return None


def records_at_end(path: str) -> Iterator[Record]:
    """Yield the newest records of a transcript, newest first. Raises OSError."""
    with open_transcript(path) as file:
        records = find_host_records(file)
        start = max(0, file.seek(0, os.SEEK_END) - CONTEXT_TAIL_BYTES)
        if records is None:
            yield from reverse_records(file, start, None, MAX_CONTEXT_RECORD_BYTES)
            return
        for offset, line in reverse_lines(file, start, None, MAX_CONTEXT_RECORD_BYTES):
            yield from reversed(records.records(line, offset))


def count_in(record: Record) -> tuple[int, int | None]:
    """Return the tokens of the context in a record, 0 if it does not have them, and those that fit, None if unknown.

    Codex (0.169.0) writes both. In other hosts' records the context of a response is its input and its output.
    """
    if record.type == "event_msg":
        payload = record.json().get("payload")
        info = members_of(payload).get("info") if members_of(payload).get("type") == "token_count" else None
        tokens = read_count(members_of(members_of(info).get("last_token_usage")), "total_tokens")
        return tokens or 0, read_count(members_of(info), "model_context_window") or None
    usage = record.usage
    return (0, None) if usage is None or record.is_sidechain else (sum(usage), None)


def members_of(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def context_used(path: str) -> str | None:
    """Return how full a session's context is, for a row of the boards, or None if its transcript does not have it."""
    context = context_at_end(path)
    if context is None:
        return None
    tokens, window = context["tokens"], context["window"]
    return f"{tokens * 100 // window} %" if window else short_count(tokens)


def context_words(tokens: int, window: int | None) -> str:
    """Return the size of a context for people.

    >>> context_words(152_300, None), context_words(129_200, 258_400), context_words(900, None)
    ('152k tokens', '129k of 258k tokens, 50 %', '900 tokens')
    """
    if window is None:
        return f"{short_count(tokens)} tokens"
    return f"{short_count(tokens)} of {short_count(window)} tokens, {tokens * 100 // window} %"


def describe_tokens(
    input_tokens: int, output_tokens: int, cache_read_tokens: int, cache_creation_tokens: int
) -> TokensOut:
    """Return the tokens of a session, also in words.

    >>> describe_tokens(1000, 20_000, 1_200_000, 30_000)["words"]
    '1.2M tokens: 1.2M input, 1.2M of it from a cache; 20k output'
    """
    asked = input_tokens + cache_read_tokens + cache_creation_tokens
    cached = f", {short_count(cache_read_tokens)} of it from a cache" if cache_read_tokens else ""
    used = short_count(asked + output_tokens)
    return {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cache_read_tokens": cache_read_tokens,
        "cache_creation_tokens": cache_creation_tokens,
        "used": used,
        "words": f"{used} tokens: {short_count(asked)} input{cached}; {short_count(output_tokens)} output",
    }


def short_count(tokens: int) -> str:
    """Return a number of tokens, in thousands or millions if it has so many.

    >>> [short_count(tokens) for tokens in (999, 999_999, 1_290_000, 12_900_000)]
    ['999', '999k', '1.2M', '12M']
    """
    if tokens >= 10_000_000:
        return f"{tokens // 1_000_000}M"
    if tokens >= 1_000_000:
        return f"{tokens // 100_000 / 10}M"
    return f"{tokens // 1000}k" if tokens >= 1000 else str(tokens)
