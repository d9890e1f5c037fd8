"""How full a session's context is."""

import json

import pytest
from support.host import assistant
from support.timed_records import record, write

from tailhook._core import parse_json
from tailhook.board.rows import draw_plate
from tailhook.board.view import read_plate
from tailhook.plates.context import CONTEXT_TAIL_BYTES, context_at_end
from tailhook.plates.display import describe_plate, encode

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


def test_a_row_shows_how_full_the_context_is_after_each_change_of_the_transcript(world, tmp_path):
    path = tmp_path / "t.jsonl"
    world.event("s", "prompt_submit", transcript_path=write(path, META, counted(129_200)))
    world.health.check()
    assert " · 50 % context " in drawn(world)
    write(path, META, counted(129_200), counted(200_000))
    world.health.check()
    assert " · 77 % context " in drawn(world)
    write(path, answer())
    world.health.check()
    assert " · 152k context " in drawn(world)
    write(path, answer(), BOUNDARY)
    world.health.check()
    assert "context" not in drawn(world)


def test_a_size_of_the_context_that_the_row_does_not_show_changes_nothing(world, tmp_path):
    path = tmp_path / "t.jsonl"
    world.event("s", "prompt_submit", transcript_path=write(path, META, counted(129_200)))
    world.health.check()
    write(path, META, counted(129_201))
    assert world.health.check() == 0


def test_a_narrow_row_leaves_the_context_out_before_it_cuts_what_a_session_does(world, tmp_path):
    world.event("s", "prompt_submit", transcript_path=write(tmp_path / "t.jsonl", answer()))
    world.event("s", "tool_start", tool_name="Bash", tool_params={"command": "make test " * 3})
    world.health.check()
    assert "make test make test make test" in drawn(world, 50)
    assert "context" not in drawn(world, 50)


def drawn(world, width=120):
    """Return the lines of the only session on the terminal board."""
    plate = read_plate(parse_json(encode(describe_plate(world.database.get("s"), "shop"))))
    return "\n".join(line.plain for line in draw_plate(plate, 0, width))
