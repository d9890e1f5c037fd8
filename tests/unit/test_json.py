"""The JSON reader, writer and framer (RFC 8259)."""

import json
import math

import pytest
from support.cases import in_one_test

from tailhook._core import JsonFramer, parse_json, write_json


def fault_of(text):
    with pytest.raises(ValueError, match="at byte") as raised:
        parse_json(text)
    return str(raised.value)


def test_every_kind_of_value_becomes_its_python_kind():
    text = '{"object": {}, "array": [0, -12, 1.5, 2e3], "true": true, "false": false, "null": null, "": "text"}'
    assert parse_json(text) == json.loads(text)
    assert [type(number) for number in parse_json("[1, 1.0, 1e0, -0]")] == [int, float, float, int]


def test_str_and_bytes_give_the_same():
    assert parse_json('["é😀"]') == parse_json('["é😀"]'.encode()) == ["é😀"]


def test_only_str_and_bytes_are_read():
    for data in (5, None, ["[]"]):
        with pytest.raises(TypeError):
            parse_json(data)


def test_one_byte_order_mark_is_skipped_and_counted():
    assert parse_json(b'\xef\xbb\xbf {"a": 1}') == parse_json('\ufeff {"a": 1}') == {"a": 1}
    with pytest.raises(ValueError, match="expected a value at byte 3"):
        parse_json("\ufeff\ufeff1")
    with pytest.raises(ValueError, match="expected a value at byte 4"):
        parse_json("\ufeff ]")


def test_the_last_of_equal_names_wins_however_it_is_spelt():
    assert parse_json(r'{"a": 1, "b": 2, "\u0061": 3}') == {"a": 3, "b": 2}


def test_escapes_are_decoded():
    assert parse_json(r'"\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00"') == '"\\/\b\f\n\r\tAé€😀'


def test_a_surrogate_without_its_partner_is_kept():
    assert parse_json(r'["\ud83d", "\ude00\ud83d", "\ud83dx", "\ud83d\u0041"]') == [
        "\ud83d",
        "\ude00\ud83d",
        "\ud83dx",
        "\ud83dA",
    ]


@in_one_test(
    ("text", "fault"),
    [
        (b"", "expected a value at byte 0"),
        (b"[1,]", "expected a value at byte 3"),
        (b'{"a":1,}', "expected a member's name at byte 7"),
        (b'{"a" 1}', "expected ':' at byte 5"),
        (b"[1 2]", "expected ',' or the container's end at byte 3"),
        (b"[1}", "expected ',' or the container's end at byte 2"),
        (b"{} x", "expected the end of the text at byte 3"),
        (b"01", "expected the end of the text at byte 1"),
        (b"-", "expected a digit at byte 1"),
        (b"1.e3", "expected a digit at byte 2"),
        (b"nul", "expected a value at byte 3"),
        (b'"\\x"', "unknown escape at byte 1"),
        (b'"\\u12g4"', "escape without four hexadecimal digits at byte 1"),
        (b'"a\nb"', "control character in a string at byte 2"),
        (b'"abc', "string without end at byte 4"),
        (b'["\xff"]', "invalid UTF-8 at byte 2"),
    ],
)
def test_a_fault_names_what_is_wrong_and_its_place(text, fault):
    assert fault_of(text) == f"invalid JSON: {fault}"


@in_one_test(
    "sequence",
    [b"\x80", b"\xc3", b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x8f\xbf\xbf",
     b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\xe2\x28\xa1", b"\xf0\x9f\x98"],
)  # fmt: skip
@in_one_test("before", [0, 1, 13, 14, 15, 16, 31, 64])
def test_malformed_utf8_is_refused_wherever_it_stands(sequence, before):
    assert fault_of(b'"' + b"a" * before + sequence + b'"') == f"invalid JSON: invalid UTF-8 at byte {before + 1}"
    assert fault_of(b'"' + b"a" * before + sequence) == f"invalid JSON: invalid UTF-8 at byte {before + 1}"


def test_1024_containers_may_be_open_and_not_one_more():
    value = parse_json("[" * 1024 + "]" * 1024)
    assert write_json(value) == b"[" * 1024 + b"]" * 1024
    assert fault_of("[" * 1025 + "]" * 1025) == "invalid JSON: nested too deeply at byte 1024"
    assert fault_of('{"a":' * 1_000_000) == f"invalid JSON: nested too deeply at byte {5 * 1024}"


@pytest.mark.parametrize("digits", [1, 17, 18, 19, 20, 40, 4300])
def test_an_integer_is_exact_at_any_size(digits):
    assert parse_json("9" * digits) == 10**digits - 1
    assert parse_json("-" + "9" * digits) == 1 - 10**digits


def test_an_integer_beyond_pythons_limit_is_refused_with_the_reason():
    assert "a number of 5000 digits is over Python's limit at byte 1" in fault_of("[" + "1" * 5000 + "]")


def test_floats_are_pythons_and_too_large_ones_infinite():
    assert parse_json("[0.1, 1e400, -1e400, 1E-400, 123456789012345678901.5]") == [
        0.1, math.inf, -math.inf, 0.0, 123456789012345678901.5
    ]  # fmt: skip


def test_the_three_layouts_are_those_of_the_json_module():
    value = {"a": [1, 2.5, {}, [], {"b": None}], "é": True, "c": '\x00\x1f\n\t\r\b\f"\\/\x7f\u2028'}
    assert write_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert write_json(value, 1) == json.dumps(value, ensure_ascii=False).encode()
    assert write_json(value, 2) == json.dumps(value, ensure_ascii=False, indent=2).encode()


def test_a_lone_surrogate_is_written_as_an_escape_and_the_rest_raw():
    assert write_json("é\ud800😀\udfff퟿") == b'"\xc3\xa9\\ud800\xf0\x9f\x98\x80\\udfff\xed\x9f\xbf"'


def test_tuples_are_arrays_and_subclasses_are_what_they_extend():
    class Number(int):
        def __repr__(self):
            return "not JSON"

    class Word(str):
        __slots__ = ()

    assert write_json((1, Number(2), (True, False))) == b"[1,2,[true,false]]"
    assert write_json({Word("a"): Word("é\ud800")}) == b'{"a":"\xc3\xa9\\ud800"}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {1: 2}, {None: 1}, b"bytes", {1, 2}, object()])
def test_what_has_no_json_form_is_refused(value):
    with pytest.raises(ValueError, match=r"has no JSON form|must be a str"):
        write_json([value])


def test_a_cycle_is_refused_and_not_followed_for_ever():
    value = {}
    value["self"] = [value]
    with pytest.raises(ValueError, match="nested too deeply, or within itself"):
        write_json(value)


def test_an_object_that_changes_while_it_is_written_is_an_error_and_no_crash():
    class Growing(dict):
        def items(self):
            for name in list(self):
                yield name, 1
                raise RuntimeError("changed")

    with pytest.raises(RuntimeError, match="changed"):
        write_json(Growing(a=1))


def feed_bytewise(text):
    framer = JsonFramer()
    return [framer.feed(text[i : i + 1]) for i in range(len(text))]


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b'  {"a": [1, {"b": "}"}]}',
        b'{"a\\"}": "\\\\"}',
        b'[[], "]"]',
        b'\xef\xbb\xbf{"bom": 1}',
        b'{"\\\\\\"":1}',
    ],
)
def test_the_end_of_an_object_is_found_in_pieces_of_any_size(text):
    assert feed_bytewise(text) == [-1] * (len(text) - 1) + [len(text)]
    assert JsonFramer().feed(text + b'{"more": ') == len(text)
    for cut in range(len(text)):
        framer = JsonFramer()
        assert framer.feed(text[:cut]) == -1
        assert framer.feed(text[cut:]) == len(text)


def test_an_unfinished_object_has_no_end():
    framer = JsonFramer()
    assert [framer.feed(piece) for piece in (b'{"a": "', b"}" * 100_000, b"\\", b'"', b"}")] == [-1] * 5


def test_a_closing_bracket_that_nothing_opened_ends_the_wait():
    assert JsonFramer().feed(b"x}") == 2
