"""The editor of settings files: a new value takes the layout around it, a removed one leaves no trace."""

import json

import pytest
from support.cases import in_one_test

from tailhook.install.json_text import find, items, put, raw, remove, replace


@in_one_test(
    ("before", "path", "name", "after"),
    [
        ('{"a":1}', (), "b", '{"a":1,"b":[0]}'),
        ('{"a": 1}', (), "b", '{"a": 1, "b": [0]}'),
        ('{"a": [1,2]}', ("a",), None, '{"a": [1,2, [0]]}'),
        ('{"a":[1]}', ("a",), None, '{"a":[1,[0]]}'),
        ('{\n  "a": 1\n}\n', (), "b", '{\n  "a": 1,\n  "b": [0]\n}\n'),
        ('{\r\n\t"a" : 1\r\n}', (), "b", '{\r\n\t"a" : 1,\r\n\t"b": [0]\r\n}'),
        ('{\n    "a": {}\n}', ("a",), "b", '{\n    "a": {\n        "b": [0]\n    }\n}'),
        ('{\n  "a": [\n  ]\n}', ("a",), None, '{\n  "a": [\n    [0]\n  ]\n}'),
        ("{}", (), "b", '{\n  "b": [0]\n}'),
        ("\ufeff {}\n", (), "b", '\ufeff {\n  "b": [0]\n}\n'),
        ('{"a": 1 }', (), "b", '{"a": 1, "b": [0] }'),
        ('{"a":1, "a":[{"c":"]}\\""}]}', ("a",), None, '{"a":1, "a":[{"c":"]}\\""},[0]]}'),
    ],
)
def test_what_is_put_in_stands_last_and_looks_like_its_neighbours(before, path, name, after):
    assert put(before, path, [0], name) == after


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ('{"a":1,"b":2,"c":3}', ("a",), '{"b":2,"c":3}'),
        ('{"a":1 , "b":2,"c":3}', ("b",), '{"a":1 , "c":3}'),
        ('{"a":1,"b":2 , "c":3 }', ("c",), '{"a":1,"b":2 }'),
        ('{\n  "a": 1\n}', ("a",), "{}"),
        ("[1, [2, 3], 4]", (1, 0), "[1, [3], 4]"),
        ('{"a":1,"a":2}', ("a",), '{"a":1}'),
    ],
)
def test_what_is_taken_out_takes_one_comma_with_it(before, path, after):
    assert remove(before, path) == after


def test_a_value_is_replaced_and_nothing_else():
    assert replace('{ "a" :\t1.0e0 , "b": [ 2 ] }', ("b", 0), '"x"') == '{ "a" :\t1.0e0 , "b": [ "x" ] }'


def test_objects_among_other_things_stand_a_line_each_and_lists_of_words_on_one():
    text = put("{}", (), [{"a": ["x", "é"], "b": {}}, 1], "c")
    assert text == '{\n  "c": [\n    {\n      "a": ["x", "é"],\n      "b": {}\n    },\n    1\n  ]\n}'


def test_the_last_of_equal_names_is_found_however_it_is_spelt():
    text = '{"a": 1, "\\u0061": [true, {"b": null}]}'
    assert raw(text, ("a", 1, "b")) == "null"
    assert [item.name for item in items(text, 0)] == ["a", "a"]


@pytest.mark.parametrize("path", [("b",), ("a", "x"), ("a", 5), (0,), ("a", 0, "x")])
def test_a_path_that_leads_nowhere_finds_nothing(path):
    text = '{"a": [1]}'
    assert find(text, path) is None
    assert raw(text, path) is None
    for edit in (lambda: put(text, path, 1), lambda: remove(text, path), lambda: replace(text, path, "1")):
        with pytest.raises(KeyError):
            edit()


def test_deep_values_are_passed_over_without_a_limit():
    text = json.dumps({"deep": 0, "a": [1]}).replace("0", "[" * 5000 + "]" * 5000)
    assert raw(text, ("a", 0)) == "1"


def test_an_edit_looks_into_a_container_once_however_large_it_is():
    text = '{"a": {' + ", ".join(f'"k{number}": 1' for number in range(1000)) + '}, "hooks": {}}'
    items.cache_clear()
    for number in range(10):
        text = put(text, ("hooks",), [], f"e{number}")
    assert items.cache_info().misses <= 30  # the file, its hooks, and the style, of ten texts
