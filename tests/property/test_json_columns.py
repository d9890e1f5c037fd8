"""An array of objects in a JSON file, read as columns: the json module's values, whatever the layout."""

import json
import tempfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.cases import in_one_test
from support.long_runs import examples

from tailhook._core import JsonIndenter, fingerprint, read_json_columns

NAMES = st.sampled_from(["a", "b", "c", "rows", "é", 'x"y', "\\"])
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(NAMES, VALUES, max_size=5), max_size=6)
PATHS = (("a",), ("b",), ("a", "b"), ("a", "c"), ("rows",), ("é", 'x"y'))
LAYOUTS = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"indent": "\t", "ensure_ascii": False}])


def columns(text, paths=PATHS, array="rows", **options):
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.flush()
        value, found, span = read_json_columns(file.fileno(), array, lambda top: paths, **options)
    assert (span is None) is (found is None)
    if span:
        assert len(json.loads(text[slice(*span)])) == len(found[0])
    return value, found


def expected(value):
    rows = value.get("rows")
    if not isinstance(rows, list):
        return value, None
    found = []
    for first, *second in PATHS:
        column = [row.get(first) for row in rows]
        found.append(
            [value.get(second[0]) if isinstance(value, dict) else None for value in column] if second else column
        )
    return {key: inner for key, inner in value.items() if key != "rows"}, found


@given(st.dictionaries(NAMES, VALUES, max_size=4), ROWS | VALUES, st.booleans(), LAYOUTS, st.integers(4, 60))
@example({}, [], True, {}, 4)
def test_columns_are_what_the_json_module_reads(members, rows, last, layout, window_bytes):
    value = {**members, "rows": rows} if last else {"rows": rows, **members}
    if isinstance(value["rows"], list) and not all(isinstance(row, dict) for row in value["rows"]):
        with pytest.raises(ValueError, match="a row is not an object"):
            columns(json.dumps(value).encode())
        return
    text = json.dumps(value, **layout).encode("utf-8", "surrogatepass")
    assert columns(text) == expected(value)
    assert columns(b"\xef\xbb\xbf " + text + b"\n", window_bytes=window_bytes) == expected(value)


REPEATED = st.sampled_from([None, True, False, 10, 12, "a", "b", "ab", [1], [2], {"b": "x", "c": "y"}, {"b": "z"}])


@settings(max_examples=examples(80))
@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b"]), REPEATED, max_size=2), min_size=2, max_size=8),
    LAYOUTS,
    st.integers(1, 12),
)
def test_rows_that_repeat_values_are_read_alike_wherever_the_windows_edge_falls(rows, layout, blanks):
    """A value replaces the one of the row before only if the bytes of both are in the window."""
    text = json.dumps({"rows": rows}, **layout).encode().replace(b"}, {", b"}," + b" " * blanks + b"{")
    plain = expected({"rows": rows})
    for window_bytes in range(4, 70):
        assert columns(text, window_bytes=window_bytes) == plain, window_bytes


def test_a_window_that_ends_in_the_blank_space_between_two_rows_gives_each_row_its_own_value():
    """The default window; rows of 1,024 bytes, so that one edge falls there."""
    rows = [{"a": f"group-{n % 3:03}", "pad": ""} for n in range(600)]
    texts = [json.dumps(row) for row in rows]
    text = '{"rows":[' + ",".join(row.ljust(1023) for row in texts) + "]}"
    for blanks in range(1, 1024, 7):
        top, (values,) = columns(text.replace("[", "[" + " " * blanks, 1).encode(), (("a",),))
        assert values == [row["a"] for row in rows], blanks
        assert top == {}


@settings(max_examples=examples(180))
@given(st.integers(200_000, 300_000), st.integers(1, 400))
def test_a_row_or_a_member_may_lie_anywhere_in_the_window_and_be_larger_than_it(size, step):
    rows = [{"n": n, "a": "x" * (n * step % 5000), "b": {"c": [n]}} for n in range(200)]
    value = {"before": "y" * size, "number": 12345678901, "rows": [{"a": "z" * size * 2}, *rows], "after": [1.5] * 1000}
    text = json.dumps(value).encode()
    top, (a, c) = columns(text, (("a",), ("b", "c")))
    assert top == {key: value[key] for key in ("before", "number", "after")}
    assert a == [row["a"] for row in value["rows"]]
    assert c == [None, *([n] for n in range(200))]


@in_one_test(
    "text",
    [
        b"",
        b" ",
        b"[]",
        b"1",
        b"{",
        b'{"a"',
        b'{"a":',
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1]',
        b'{"rows":[{}',
        b'{"rows":[{},]}',
        b'{"rows":[{"a":1,}]}',
        b'{"rows":[{"a" 1}]}',
        b'{"rows":[1]}',
        b'{"rows":[{"a":"\xff"}]}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"rows":[{"a":tru}]}',
        b'{"a":1} x',
        b'{"a":01}',
        b"{" * 5000,
    ],
)
def test_what_is_not_json_or_no_such_object_is_refused(text):
    with pytest.raises(ValueError, match=r"JSON|not an object"):
        columns(text)


def test_the_last_of_equal_names_counts():
    text = b'{"rows":[{"a":9}],"n":1,"rows":[{"a":1,"\\u0061":2,"b":{"c":1},"b":3}],"n":2}'
    assert columns(text, (("a",), ("b", "c"))) == ({"n": 2}, [[2], [None]])
    assert columns(b'{"rows":[{}],"rows":5}') == ({"rows": 5}, None)


def test_the_columns_are_chosen_by_what_stands_before():
    seen = []
    with tempfile.TemporaryFile() as file:
        file.write(b'{"phase":"x","rows":[{"a":1}],"late":2}')
        file.flush()
        read_json_columns(file.fileno(), "rows", lambda top: seen.append(dict(top)) or (("a",),))
    assert seen == [{"phase": "x"}]


@pytest.mark.parametrize("paths", [((),), (("a", "b", "c"),), (("",),), (("x" * 65,),), (("a",),) * 17])
def test_columns_that_cannot_be_are_refused(paths):
    with pytest.raises(ValueError, match="column"):
        columns(b'{"rows":[{}]}', paths)


@pytest.mark.parametrize("array", ["", "x" * 65, "é" * 33, "x" * 410], ids=["empty", "65", "66", "410"])
def test_an_arrays_name_that_is_empty_or_over_64_bytes_is_refused(array):
    """The name is unescaped into a buffer on the stack: a longer one would overflow it."""
    escaped = "\\u0061" + "b" * 409
    with pytest.raises(ValueError, match="name must have 1 to 64 bytes"):
        columns(json.dumps({"x": 1}).replace("x", escaped).encode(), (("a",),), array=array)


def test_the_longest_name_of_an_array_is_found_however_it_is_spelt():
    name = "a" * 64
    assert columns(f'{{"{name}":[{{"a":1}}]}}'.encode(), (("a",),), array=name) == ({}, [[1]])
    escaped = "\\u0061" * 64
    assert columns(f'{{"{escaped}":[{{"a":1}}]}}'.encode(), (("a",),), array=name) == ({}, [[1]])


@pytest.mark.parametrize("window_bytes", [-1, 0, 3])
def test_a_window_that_is_too_small_is_refused(window_bytes):
    with pytest.raises(ValueError, match="at least 4 bytes"):
        columns(b'{"rows":[]}', window_bytes=window_bytes)


@given(VALUES, LAYOUTS, st.lists(st.integers(1, 30), min_size=1), st.integers(0, 2))
def test_a_text_that_is_laid_out_again_is_what_the_json_module_writes_however_it_is_cut(value, layout, sizes, depth):
    text = json.dumps(value, **layout).encode("utf-8", "surrogatepass")
    whole = json.dumps(value, indent=2, ensure_ascii=layout.get("ensure_ascii", True)).encode("utf-8", "surrogatepass")
    assert JsonIndenter().feed(text) == whole
    pieces, at, indenter = [], 0, JsonIndenter(depth)
    for size in sizes * (len(text) // sum(sizes) + 1):
        pieces.append(indenter.feed(text[at : at + size]))
        at += size
    assert b"".join(pieces) == whole.replace(b"\n", b"\n" + b"  " * depth)


@given(st.binary(max_size=40), st.integers(0, 39), st.integers(1, 255))
def test_a_fingerprint_shows_a_change_of_any_byte(data, at, change):
    changed = bytearray(data)
    if at < len(data):
        changed[at] ^= change
        assert fingerprint(bytes(changed)) != fingerprint(data)
    assert fingerprint(data + b"\0") != fingerprint(data)
    assert 0 <= fingerprint(data) < 2**64
