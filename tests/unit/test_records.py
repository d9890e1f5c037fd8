"""The records in the lines of a transcript."""

import json
from datetime import UTC, datetime

import pytest
from support.cases import in_one_test
from support.oracles import records as oracle
from support.oracles.scan import Question
from support.scans import scan_rows

from tailhook._core import parse_record
from tailhook.errors import RecordError, TailhookError
from tailhook.transcripts.records import Usage


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
    {"type": "system", "content": "not spoken", "message": {"content": None}},
    {"type": "queue-operation", "operation": "enqueue", "content": "not spoken"},
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
    {"type": "tool_result", "tool_use_id": "t2", "is_error": True, "content": "no such file"},
    {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"},
    {"type": "user", "message": {"content": "<command-name>/clear</command-name>"}},
    {"type": "user", "message": {"content": [said(" "), said("\n [Request interrupted by user]")]}},
    {"type": "user", "message": {"content": "a notification"}, "origin": {"kind": "task-notification"}},
    {"type": "user", "message": {"content": "a prompt"}, "origin": {"kind": "human"}},
    {"type": "user", "message": {"content": "a prompt"}, "origin": "elsewhere"},
    {"type": "user", "message": {"role": "assistant", "content": "no prompt"}},
    {"type": "assistant", "message": {"role": "user", "content": "a prompt"}},
    {"type": "user", "message": {"role": "system", "content": "whose?"}},
    {"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "prompt"}},
    {"attachment": {"type": "queued_command", "prompt": "x", "commandMode": "prompt"}, "message": {"content": "y"}},
    {"type": "user", "attachment": {"type": "queued_command", "prompt": "x", "commandMode": "prompt"}, "content": "y"},
    {"type": "user", "message": {"content": "a\\b\\u003c/\b\f\r\x00\x7f\u2028"}},
]


@in_one_test("record", RECORDS)
@in_one_test(
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


@in_one_test(
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
        b'{"type":"attachment","attachment":{"type":"\xff"}}',
        b'{"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"\xff"}}',
        b'{"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","prompt":["\xff"]}}',
    ],
)
def test_invalid_utf8_in_what_may_be_asked_for_makes_a_bad_line(line):
    assert parse_record(line) is None


def test_invalid_utf8_elsewhere_is_replaced_and_harms_only_the_whole_object():
    record = parse_record(
        b'{"type":"user","cwd":"/\xff\\u00e9","message":{"model":"\xc3","usage":"\xff","content":["fine",'
        b'{"type":"tool_result","tool_use_id":"\xff","content":[{"type":"text","text":"\xed\xa0\x80!"}]}]}}'
    )
    assert (record.cwd, record.model) == ("/\ufffdé", "\ufffd")
    assert [(one.tool_use_id, one.text) for one in record.tool_results] == [("\ufffd", "\ufffd\ufffd\ufffd!")]
    with pytest.raises(RecordError) as raised:
        record.json()
    assert isinstance(raised.value, TailhookError)
    assert isinstance(raised.value, ValueError)


def test_deep_nesting_is_a_bad_line_and_no_crash():
    assert parse_record(b'{"a":' + b"[" * 1024 + b"]" * 1024 + b"}").type is None
    assert parse_record(b'{"a":' + b"[" * 1025 + b"]" * 1025 + b"}") is None


def test_a_record_has_its_session_its_place_and_what_it_cost():
    record = parse_record(
        line_of(
            assistant(
                said("x"),
                sessionId="s",
                agentId="a",
                parentUuid="p",
                requestId="req",
                cwd="/p",
                gitBranch="main",
                version="2.1.329",
                timestamp="2026-01-02T03:04:05.678901+01:00",
            )
            | {"message": {"model": "m-1", "usage": {"input_tokens": 3, "output_tokens": 40, "service_tier": "x"}}}
        )
    )
    assert (record.session_id, record.agent_id, record.parent_uuid, record.request_id) == ("s", "a", "p", "req")
    assert (record.cwd, record.git_branch, record.host_version, record.model) == ("/p", "main", "2.1.329", "m-1")
    assert record.usage == Usage(input=3, output=40, cache_read=0, cache_creation=0)
    assert record.time == datetime(2026, 1, 2, 2, 4, 5, 678901, tzinfo=UTC)
    assert record.time.utcoffset().total_seconds() == 0


@pytest.mark.parametrize("stamp", ["", "soon", "2026-13-01", "0000-01-01T00:00:00Z", 5, None])
def test_a_timestamp_that_is_not_a_time_of_datetime_gives_none(stamp):
    assert parse_record(line_of({"timestamp": stamp})).time is None


def test_a_record_without_what_it_is_asked_for_gives_none():
    record = parse_record(b"{}")
    names = "session_id agent_id parent_uuid request_id model cwd git_branch host_version subtype usage time"
    assert [getattr(record, name) for name in names.split()] == [None] * 11
    assert (record.tool_results, record.is_prompt, record.is_error) == ([], False, False)


@pytest.mark.parametrize(
    "stamp", ["0001-01-01T00:00:00.000001Z", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z"]
)
def test_a_time_at_the_edge_of_the_years_has_its_microseconds(stamp):
    assert parse_record(line_of({"timestamp": stamp})).time == datetime.fromisoformat(stamp.replace("Z", "+00:00"))


@pytest.mark.parametrize("count", [0, 10**18, 2**62, 2**63 - 1])
def test_a_count_may_have_63_bits_as_in_the_table(count):
    usage = {"input_tokens": count, "output_tokens": count}
    record = {"type": "assistant", "message": {"usage": usage}}
    assert parse_record(line_of(record)).usage == (count, count, 0, 0)
    (row,) = scan_rows("usage", [("/t/s.jsonl", line_of(record))], Question())
    assert (row["input_tokens"], row["output_tokens"]) == (count, count)


@pytest.mark.parametrize("count", [-1, 1.0, 1e3, "7", None, [], {}, True, 2**63, 10**40])
def test_a_count_that_is_not_a_whole_number_of_tokens_is_0(count):
    record = parse_record(json.dumps({"message": {"usage": {"input_tokens": count, "output_tokens": 7}}}).encode())
    assert record.usage == (0, 7, 0, 0)


@in_one_test(
    ("content", "is_prompt"),
    [
        ("do it", True),
        ("  ", False),
        (["loose words"], True),
        ([said("look"), {"type": "image", "source": {}}], True),
        ([{"type": "image", "source": {}}], False),
        ([{"type": "tool_result", "content": "x"}, said("beside")], False),
        ("<command-name>/clear</command-name>", False),
        ("\v\n<local-command-stdout>done", False),
        ("<bash-input>ls", False),
        ("\u00a0<bash-input>ls", True),  # a space that is not ASCII: hosts write none
        ("<b", True),
        ("<task-notificatio", True),
        ("<task-notification", False),
        ("<agent-notification>\n<agent-id>", False),
        ("<bash-notification>\n<shell-id>", False),
        ("<ci-monitor-event>CI check failed", False),
        ("<create-pr-command>\n## Overview", False),
        ("[Request interrupted by user for tool use]", False),
        ("Stop hook feedback:\nno", False),
    ],
)
def test_a_prompt_is_what_a_person_typed(content, is_prompt):
    assert parse_record(line_of({"type": "user", "message": {"content": content}})).is_prompt is is_prompt
    assert parse_record(line_of({"type": "human", "content": content})).is_prompt is is_prompt
    assert parse_record(line_of({"type": "user", "content": content})).has_own_words >= is_prompt
    assert parse_record(line_of({"type": "user", "content": content})).text.strip() or not is_prompt
    for flag in ("isMeta", "isSidechain", "isCompactSummary"):
        assert not parse_record(line_of({"type": "user", "content": content, flag: True})).is_prompt
    assert not parse_record(line_of({"type": "assistant", "message": {"content": content}})).is_prompt


def queued(prompt, mode="prompt", **members):
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": mode, **members}
    return {"type": "attachment", "uuid": "u", "attachment": attachment}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (queued("and commit it"), "and commit it"),
        (queued("and commit it", origin={"kind": "human"}), "and commit it"),
        (queued([said("look:"), {"type": "image", "source": {}}, "here"]), "look:\nhere"),
        (queued("and commit it") | {"message": {"role": "assistant", "content": "no"}}, "and commit it"),
    ],
)
@pytest.mark.parametrize("order", [dict, lambda record: dict(reversed(record.items()))], ids=["", "backwards"])
def test_what_a_person_typed_while_the_agent_worked_is_a_prompt(written, text, order):
    oracle.assert_same(parse_record(line_of(order(written))), written)
    record = parse_record(line_of(order(written)))
    assert (record.type, record.role, record.text) == ("attachment", "user", text)
    assert (record.is_prompt, record.has_own_words) == (True, True)
    assert not parse_record(line_of(order(written) | {"isSidechain": True})).is_prompt


@pytest.mark.parametrize(
    "written",
    [
        queued("<task-notification>done", "task-notification"),
        queued("ls", "bash"),
        queued("x", origin={"kind": "task-notification"}),
        queued("x", isMeta=True),
        queued("x") | {"type": "progress"},
        {"type": "attachment", "attachment": {"type": "file", "prompt": "x", "commandMode": "prompt"}},
    ],
)
def test_an_attachment_that_no_person_typed_is_not_a_message(written):
    record = parse_record(line_of(written))
    assert (record.role, record.text, record.is_prompt, record.has_own_words) == (None, "", False, False)


@pytest.mark.parametrize("kind", ["system", "queue-operation", "a-type-of-tomorrow"])
def test_text_at_the_top_level_of_a_record_is_its_text_but_not_own_words(kind):
    written = {"type": kind, "content": "Conversation compacted"}
    oracle.assert_same(parse_record(line_of(written)), written)
    record = parse_record(line_of(written))
    assert (record.text, record.role) == ("Conversation compacted", None)
    assert (record.is_prompt, record.has_own_words) == (False, False)


def test_the_last_attachment_and_its_last_type_count():
    queued_type, other = b'"type":"queued_command"', b'"type":"file"'
    rest = b'"commandMode":"prompt","prompt":"x"'
    for first, last, is_prompt in ((other, queued_type, True), (queued_type, other, False)):
        line = b'{"type":"attachment","attachment":{' + first + b"," + last + b"," + rest + b"}}"
        assert parse_record(line).is_prompt is is_prompt
        line = b'{"attachment":{' + first + b"," + rest + b'},"attachment":{' + last + b"," + rest + b"},"
        assert parse_record(line + b'"type":"attachment"}').is_prompt is is_prompt
    line = b'{"type":"attachment","attachment":{' + queued_type + b"," + rest + b'},"attachment":'
    assert [parse_record(line + last + b"}").is_prompt for last in (b"5", b"{}", b"[]")] == [False] * 3


def test_a_queued_prompt_that_the_host_wrote_is_not_a_persons():
    record = parse_record(line_of(queued("<system-reminder>x</system-reminder>")))
    assert (record.role, record.is_prompt, record.has_own_words) == ("user", False, False)


def test_an_error_is_a_failed_tool_or_request():
    failed = {"type": "tool_result", "is_error": True}
    assert parse_record(line_of({"type": "user", "message": {"content": [said("x"), failed]}})).is_error
    assert parse_record(line_of(failed)).is_error
    assert parse_record(line_of({"type": "system", "subtype": "api_error"})).is_error
    assert parse_record(line_of(assistant(said("x"), isApiErrorMessage=True))).is_error
    assert not parse_record(line_of({"type": "user", "message": {"content": [failed | {"is_error": False}]}})).is_error
    assert not parse_record(line_of({"is_error": True})).is_error
    # A record that is a result itself has no other results.
    assert not parse_record(line_of({"type": "tool_result", "message": {"content": [failed]}})).is_error


def test_only_bytes_are_a_line():
    for line in ("{}", None, 5):
        with pytest.raises(TypeError):
            parse_record(line)


def test_a_record_shows_what_it_is():
    assert repr(parse_record(b'{"type":"user"}', 7)) == "Record(type='user', offset=7)"
    tool = parse_record(b'{"type":"tool_use","id":"a","name":"Bash"}').tools[0]
    assert (repr(tool), tool.input) == ("ToolUse(id='a', name='Bash')", None)
    (result,) = parse_record(b'{"type":"tool_result","tool_use_id":"a"}').tool_results
    assert repr(result) == "ToolResult(tool_use_id='a', is_error=False)"


def test_what_a_hook_or_a_button_writes_in_a_persons_name_is_not_a_prompt():
    typed = {"type": "user", "message": {"role": "user", "content": "Implement it."}}
    plan = {
        **typed,
        "planContent": "1. Do it.",
        "message": {"role": "user", "content": "Implement the following plan:"},
    }
    stopped = {"type": "user", "message": {"role": "user", "content": "Operation stopped by hook: no"}}
    records = [parse_record(json.dumps(record).encode()) for record in (typed, plan, stopped)]
    assert [record.is_prompt for record in records] == [True, False, False]
