"""The in-place editor: one value changes, every other byte stays."""

import pytest

from tailhook._core import edit_json


def edited(text, *edits):
    return edit_json(
        text.encode(), [(path, None if value is None else value.encode()) for path, value in edits]
    ).decode()


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ('{"a":1,"b":2}', ("a",), "9", '{"a":9,"b":2}'),
        ('{ "a" :\t1.0e0 , "b" : "\\u0041" }', ("a",), "[]", '{ "a" :\t[] , "b" : "\\u0041" }'),
        ('{"a":{"b":[1,{"c":2}]}}', ("a", "b", 1, "c"), "3", '{"a":{"b":[1,{"c":3}]}}'),
        ("[1, 2, 3]", (-1,), "9", "[1, 2, 9]"),
        ("[1, 2, 3]", (-3,), "9", "[9, 2, 3]"),
        (' {"a":1}\n', (), "[2]", " [2]\n"),
        ('{"\\u0061":1}', ("a",), "2", '{"\\u0061":2}'),
        ('{"é":1}', ("é",), "2", '{"é":2}'),
        ('{"a":1,"a":2}', ("a",), "3", '{"a":1,"a":3}'),
    ],
)
def test_a_value_is_replaced_and_nothing_else(before, path, value, after):
    assert edited(before, (path, value)) == after


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ('{"a":1}', ("b",), '{"a":1,"b":0}'),
        ('{"a": 1}', ("b",), '{"a": 1, "b": 0}'),
        ('{"a": 1, "b": 2}', ("c",), '{"a": 1, "b": 2, "c": 0}'),
        ('{\n  "a": 1\n}\n', ("b",), '{\n  "a": 1,\n  "b": 0\n}\n'),
        ('{\n\t"a" : 1,\n\t"b" : 2\n}', ("c",), '{\n\t"a" : 1,\n\t"b" : 2,\n\t"c" : 0\n}'),
        ("{}", ("a",), '{"a":0}'),
        ('{"x": {}}', ("x", "a"), '{"x": {"a": 0}}'),
        ('{"x": [{}]}', ("x", 0, "a"), '{"x": [{"a": 0}]}'),
        ('{"a":1}', ('"\n\ud800',), '{"a":1,"\\"\\n\\ud800":0}'),
    ],
)
def test_an_absent_member_is_added_last_in_the_layout_of_the_others(before, path, after):
    assert edited(before, (path, "0")) == after


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ('{"a":1,"b":2,"c":3}', ("a",), '{"b":2,"c":3}'),
        ('{"a":1,"b":2,"c":3}', ("b",), '{"a":1,"c":3}'),
        ('{"a":1,"b":2,"c":3}', ("c",), '{"a":1,"b":2}'),
        ('{\n  "a": 1,\n  "b": 2\n}', ("a",), '{\n  "b": 2\n}'),
        ('{\n  "a": 1,\n  "b": 2\n}', ("b",), '{\n  "a": 1\n}'),
        ('{\n  "a": 1\n}', ("a",), "{\n}"),
        ("[1, [2, 3], 4]", (1, 0), "[1, [3], 4]"),
        ("[1]", (0,), "[]"),
        ('{"a":1,"b":2,"\\u0061":3}', ("a",), '{"b":2}'),
        ('{"a":1}', ("b",), '{"a":1}'),
    ],
)
def test_a_value_is_removed_with_one_comma(before, path, after):
    assert edited(before, (path, None)) == after


def test_a_byte_order_mark_stays():
    assert edited('\ufeff{"a":1}', (("a",), "2"), (("b",), "3")) == '\ufeff{"a":2,"b":3}'
    assert edited("\ufeff 1", ((), "2")) == "\ufeff 2"


def test_edits_are_done_in_order():
    assert edited("{}", (("a",), "{}"), (("a", "b"), "[1,2]"), (("a", "b", 0), None)) == '{"a":{"b":[2]}}'


@pytest.mark.parametrize("path", [("a", "b"), ("x", "b"), ("list", "b"), (0,), ("list", 2), ("list", -3), ("a", 0)])
def test_a_path_that_leads_nowhere_is_a_key_error(path):
    for value in ("0", None):
        with pytest.raises(KeyError):
            edited('{"a": 1, "list": [1, 2]}', (path, value))


def test_the_whole_text_cannot_be_removed():
    with pytest.raises(KeyError):
        edited("{}", ((), None))


def test_the_text_and_the_values_must_be_json():
    for text, value in (("{", "1"), ("{}", "1 2"), ("{}", "")):
        with pytest.raises(ValueError, match="invalid JSON"):
            edited(text, (("a",), value))


def test_a_value_that_nests_too_deeply_where_it_stands_is_refused():
    text, value = '{"a":' * 600 + "1" + "}" * 600, "[" * 424 + "]" * 424
    assert edited(text, (("a",) * 600, value), (("b",), "2")) == text.replace("1", value)[:-1] + ',"b":2}'
    with pytest.raises(ValueError, match="nested too deeply"):
        edited(text, (("a",) * 600, f"[{value}]"), (("b",), "1"))


def test_a_name_may_be_of_a_class_of_str():
    class Name(str):
        __slots__ = ()

    assert edited('{"a": 1, "\\u0062": 2}', ((Name("a"),), "3"), ((Name("b"),), None), ((Name("c"),), "4")) == (
        '{"a": 3, "c": 4}'
    )
