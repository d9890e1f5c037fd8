"""A bad line yields its last complete object that starts the line, follows another, or ends where the line ends."""

import pytest
from support.cases import in_one_test

from tailhook._core import parse_record

WHOLE = b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"whole {\\"}"}]}}'


def record_of(line):
    record = parse_record(line)
    return record and record.json()


@in_one_test(
    ("line", "record"),
    [
        (b'{"a":1}{"b":2}', {"b": 2}),
        (b'{"a":1} \t{"b":2}\0\0{"c":3}  ', {"c": 3}),
        (b'\0\0\0{"a":1}\0\0', {"a": 1}),
        (b'{"a":1}\0\0{"b":', {"a": 1}),
        (b'{"a":1}{"b":2}{"c":"torn', {"b": 2}),
        (b'{"a":1} trailing', {"a": 1}),
        (b'{"a":1}]', {"a": 1}),
        (b'leading {"a":1}', {"a": 1}),
        (b'log: {"a":1}', {"a": 1}),
        (b'}}{"a":1}', {"a": 1}),
        (b'{"torn":"abc{"a":1}', {"a": 1}),
        (b'{"torn":"abc, {"a":1}', {"a": 1}),
        (b'{"torn":"abc\\{"a":1}', {"a": 1}),
        (b'{"torn":"abc\\\\{"a":1}', {"a": 1}),
        (b'{"torn":"abc\0\0\0{"a":1}\0', {"a": 1}),
        (b'{"torn":"abc{"a":1}{"b":2}', {"b": 2}),
        (b'{"type":"user","message":{"con{"a":{"b":[{}]}}', {"a": {"b": [{}]}}),
        (b'{"torn":12{"a":1}', {"a": 1}),
        (b'{"torn":tr{"a":1}', {"a": 1}),
        (b'{"torn":1,{"a":1}', {"a": 1}),
        (b'{"torn"{"a":1}', {"a": 1}),
        (b'{{"a":1}', {"a": 1}),
        (b'{"x":1}{"torn":"abc{"a":1}', {"a": 1}),
        (b'{"x":1}{"torn":{"a":1}', {"x": 1}),
        (b'{"torn":"abc{"a":"\\"{[}]\\\\"}', {"a": '"{[}]\\'}),
        (b'{"x":1}{"bad":01}', {"x": 1}),
    ],
)
def test_the_last_object_that_qualifies_is_the_record(line, record):
    assert record_of(line) == record


@in_one_test(
    "line",
    [
        b'{"torn":{"a":1}',
        b'{"torn": {"a":1}  ',
        b'{"torn":[{"a":1}',
        b'{"torn":[1, {"a":1}',
        b'{"torn":[{},{"a":1}',
        b'{"x":{"y":[[{"a":1}',
        b'sage":{"a":1}',
        b'"x"},{"a":1}',
        b'x":[{"a":1}',
        b'{"t":"{"a":1}{"b":"\\"c"}", "d":1}',
        b'{"torn":{"a":1},"b',
        b'{"torn":{"a":1},',
        b'x{"a":1}x',
        b'x{"a":1}{"b":',
        b'{"a":1',
        b'a":1}',
        b"}",
        b'"}',
        b'\\"}',
        b"]}",
        b'[{"a":1}]',
        b'[{"a":1}',
        b'{"torn":"abc{"a":01}',
        b'{"type":"\xff"}',
    ],
)
def test_objects_within_a_torn_record_are_not_records(line):
    assert record_of(line) is None


@in_one_test("cut", range(1, len(WHOLE)))
def test_a_record_survives_one_torn_before_it_on_the_same_line_unless_it_stands_like_its_value(cut):
    torn = WHOLE[:cut]
    record = record_of(torn + b'{"next":1}')
    assert record == (None if torn.endswith((b":", b"[")) and torn.count(b'"') % 2 == 0 else {"next": 1})
    assert record_of(torn + b"\0\0" + b'{"next":1}') == {"next": 1}


@in_one_test("cut", range(1, len(WHOLE)))
def test_a_record_survives_one_torn_after_it_on_the_same_line(cut):
    assert record_of(b'{"first":1}' + WHOLE[:cut]) == {"first": 1}


@in_one_test("cut", range(1, len(WHOLE)))
def test_a_torn_record_yields_nothing(cut):
    assert record_of(WHOLE[:cut]) is None
    if cut not in (WHOLE.index(b'{"id"'), WHOLE.index(b'{"type":"text"')):  # an object that starts the line
        assert record_of(WHOLE[cut:]) is None


@pytest.mark.parametrize(
    "line",
    [
        b"{" * 5_000_000,
        b'{"a":' * 2_000_000,
        b"{" * 2_000_000 + b"}" * 2_000_000,
        b"{}" * 2_000_000 + b"x",
        b'{"' * 3_000_000 + b"}",
        b"\\" * 5_000_000 + b'"}',
        b'x"' + b'\\"' * 2_000_000 + b'"}',
        b'{"a":"' + b'{"b":1' * 1_000_000 + b"}",
        b"[{" * 2_000_000 + b"}]}",
        b'"{' * 2_000_000 + b'"}',
        b'{"type":"user","content":[' + b'{"type":"text","text":"x"},' * 300_000 + b"1]}",
        b'{"type":"user","content":[' + b'{"type":"text","text":" "},' * 300_000 + b"1]}",
        b'{"content":[],' * 300_000 + b"}",
        b'{"type":"user","content":"' + b"\\\\" * 3_000_000 + b'"}',
        b'{"type":"user","content":"' + b"\\u0041" * 1_000_000 + b'"}',
    ],
    ids=range(15),
)
def test_hostile_lines_take_linear_time(line):
    """Each would take hours if a part were read again for every byte."""
    record = parse_record(line)
    assert record is None or len(record.text) < len(line)
