"""The records in the lines of a transcript."""

import json

import pytest
from support.oracles import records as oracle

from tailhook._core import parse_record
from tailhook.errors import RecordError, TailhookError


def assistant(*blocks, **members):
    return {"type": "assistant", "message": {"id": "msg_1", "role": "assistant", "content": list(blocks)}} | members


def said(text):
    return {"type": "text", "text": text}


def line_of(record):
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


RECORDS = [
    {},
    {"type": "assistant"},
    assistant(),
    assistant(said("one")),
    assistant(said("one"), said(" \n\t\u2003"), said("two"), said("")),
    assistant({"type": "thinking", "thinking": "hm"}, said('é😀\n"quoted"')),
    assistant({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls", "n": [1, {}]}}),
    assistant({"type": "tool_use"}, {"type": "text"}, {"type": "text", "text": 5}, "loose", 7, None, [said("deep")]),
    assistant(said("x"), isSidechain=True, isMeta=False, isApiErrorMessage=True, isCompactSummary=1),
    assistant(said("x"), uuid="u-1", timestamp="2026-01-02T03:04:05.678Z", isMeta="true"),
    {"type": "user", "message": {"role": "user", "content": "plain"}},
    {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": [said("no")]}]}},
    {"type": "assistant", "content": "flat"},
    {"type": "human", "content": [said("flat"), said("blocks")]},
    {"type": "system", "content": "not spoken"},
    {"type": "summary", "content": [said("not spoken")]},
    {"type": "tool_use", "id": "t2", "name": "Read", "input": {"path": "x"}},
    {"type": "tool_use", "content": "x"},
    {"type": "assistant", "message": "no object", "content": "flat"},
    {"type": "assistant", "message": {"id": 5, "role": None}, "content": "flat beside"},
    {"type": "assistant", "message": {"content": None}, "content": "nested counts, even null"},
    {"type": "assistant", "message": {"content": {"type": "text", "text": "no array"}}},
    {"type": "progress", "data": {"type": "assistant", "message": {"role": "assistant", "content": "nested"}}},
    {"type": "api-request-blob", "message": {"role": "assistant", "content": "a request"}},
    {"type": 5, "uuid": [], "timestamp": {}, "message": []},
    {"message": {"role": "assistant", "content": "typeless"}},
    {"filler": "x" * 70_000, "message": {"content": "late type"}, "type": "assistant"},
    {"type": "user", "message": {"content": "a\\b\\u003c/\b\f\r\x00\x7f\u2028"}},
]


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize(
    "write",
    [
        line_of,
        lambda record: json.dumps(record).encode(),
        lambda record: b" \t" + json.dumps(record, separators=(" ,  ", "\t: ")).encode() + b" ",
        lambda record: line_of(dict(reversed(record.items()))),
    ],
    ids=["compact", "ascii", "spaced", "backwards"],
)
def test_a_record_has_the_values_of_its_object(record, write):
    oracle.assert_same(parse_record(write(record)), record)


def test_names_and_values_may_be_written_with_escapes():
    line = (
        rb'{"\u0074ype":"\u0061ssistant","mess\u0061ge":{"\u0069d":"m","c\u006fntent":[{"typ\u0065":"te\u0078t",'
        rb'"t\u0065xt":"\u003cdone\u003e \ud83d\ude00"}]},"isMet\u0061":true}'
    )
    record = parse_record(line)
    assert (record.type, record.message_id, record.text, record.is_meta) == ("assistant", "m", "<done> 😀", True)


def test_the_last_of_equal_names_wins():
    line = (
        b'{"type":"user","message":{"id":"a","content":"first"},"type":"assistant","isMeta":true,'
        b'"message":{"content":"x","content":[{"type":"thinking","text":"y","type":"text","text":"z"}]},"isMeta":false}'
    )
    record = parse_record(line)
    assert (record.type, record.message_id, record.text, record.is_meta) == ("assistant", None, "z", False)


def test_a_lone_surrogate_is_kept_in_the_text():
    record = parse_record(rb'{"type":"assistant","content":"\ud83d x \ude00 \u00e9"}')
    assert record.text == "\ud83d x \ude00 é"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"\0\0\0",
        b"null",
        b"[]",
        b'["a"]',
        b'"text"',
        b"5",
        b"{",
        b'{"type"}',
        b'{"type":}',
        b'{"type":"user",}',
        b'{"type":"user"',
        b'{"a":1 "b":2}',
        b'{"a":[1 2]}',
        b'{"a":{"b"}}',
        b'{"a":01}',
        b'{"a":tru}',
        b'{"a":[1}',
        b'{"a":"\\x"}',
        b'{"a":"\\u12"}',
        b'{"a":"\x01"}',
        b'{"message":{"content":[}}',
        b'{"message":{"content":[{"type" "text"}]}}',
        b'{"message":{"content":["a",]}}',
        b'{"message":{"id":"a" "b":1}}',
        b"{'type':1}",
    ],
)
def test_a_line_whose_grammar_is_broken_holds_no_record(line):
    assert parse_record(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"\xff"}',
        b'{"type":"user","message":{"content":"\xc3"}}',
        b'{"type":"user","message":{"content":[{"type":"text","text":"\xed\xa0\x80"}]}}',
        b'{"uuid":"\xc0\xaf"}',
    ],
)
def test_invalid_utf8_in_what_may_be_asked_for_makes_a_bad_line(line):
    assert parse_record(line) is None


def test_invalid_utf8_elsewhere_harms_only_the_whole_object():
    record = parse_record(b'{"type":"user","cwd":"\xff","message":{"content":"fine"}}')
    assert record.text == "fine"
    with pytest.raises(RecordError) as raised:
        record.json()
    assert isinstance(raised.value, TailhookError)
    assert isinstance(raised.value, ValueError)


def test_deep_nesting_is_a_bad_line_and_no_crash():
    assert parse_record(b'{"a":' + b"[" * 1024 + b"]" * 1024 + b"}").type is None
    assert parse_record(b'{"a":' + b"[" * 1025 + b"]" * 1025 + b"}") is None


def test_only_bytes_are_a_line():
    for line in ("{}", None, 5):
        with pytest.raises(TypeError):
            parse_record(line)


def test_a_record_shows_what_it_is():
    assert repr(parse_record(b'{"type":"user"}', 7)) == "Record(type='user', offset=7)"
    tool = parse_record(b'{"type":"tool_use","id":"a","name":"Bash"}').tools[0]
    assert (repr(tool), tool.input) == ("ToolUse(id='a', name='Bash')", None)
