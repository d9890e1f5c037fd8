"""How full a session's context is."""

import json

import pytest
from support.host import assistant
from support.timed_records import record, write

from tailhook.plates.context import CONTEXT_TAIL_BYTES, context_at_end

CACHE = {"cache_read_input_tokens": 150_000, "cache_creation_input_tokens": 2000}
USAGE = {"input_tokens": 5, "output_tokens": 300, **CACHE}
BOUNDARY = '{"type":"system","subtype":"compact_boundary"}'
META = '{"type":"session_meta","payload":{"id":"s"}}'


def answer(usage=USAGE, **fields):
    """Return a record of a response of Claude Code."""
    one = {**assistant("Done."), **fields}
    one["message"] = {**one["message"], "usage": usage}
    return json.dumps(one)


def counted(tokens, window=258_400):
    """Return Codex's record of the tokens of its last response."""
    info = {"last_token_usage": {"total_tokens": tokens}, "model_context_window": window}
    return json.dumps({"type": "event_msg", "payload": {"type": "token_count", "info": info}})


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([answer()], "152k tokens"),
        ([answer({"input_tokens": 9}), answer()], "152k tokens"),
        ([answer(), record("user", "Go on.", 1)], "152k tokens"),
        ([answer(), answer({"input_tokens": 1}, isSidechain=True, agentId="a")], "152k tokens"),
        ([answer(), answer({"input_tokens": 0})], "152k tokens"),
        ([answer(), BOUNDARY], None),
        ([answer(), BOUNDARY, answer({"input_tokens": 900})], "900 tokens"),
        ([answer(), "x" * CONTEXT_TAIL_BYTES], None),
        ([], None),
        ([META, counted(129_200)], "129k of 258k tokens, 50 %"),
        ([META, counted(129_200, None)], "129k tokens"),
        ([META, counted(5000), counted(0)], "5k of 258k tokens, 1 %"),
        ([META, '{"type":"event_msg","payload":{"type":"token_count","info":null}}'], None),
        ([META, '{"type":"event_msg","payload":7}'], None),
    ],
)
def test_the_newest_response_has_the_size_of_the_context(tmp_path, records, expected):
    found = context_at_end(write(tmp_path / "t.jsonl", *records))
    assert (found and found["words"]) == expected


def test_a_transcript_that_cannot_be_read_has_no_context(tmp_path):
    assert context_at_end("") is None
    assert context_at_end(str(tmp_path / "none")) is None
