"""An array of objects in a JSON file, read as columns: what the json module says, whatever the layout."""

import json
import tempfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

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


def columns(text, paths=PATHS):
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.flush()
        value, found, span = read_json_columns(file.fileno(), "rows", lambda top: paths)
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


@given(st.dictionaries(NAMES, VALUES, max_size=4), ROWS | VALUES, st.booleans(), LAYOUTS)
@example({}, [], True, {})
def test_columns_are_what_the_json_module_reads(members, rows, last, layout):
    value = {**members, "rows": rows} if last else {"rows": rows, **members}
    if isinstance(value["rows"], list) and not all(isinstance(row, dict) for row in value["rows"]):
        with pytest.raises(ValueError, match="a row is no object"):
            columns(json.dumps(value).encode())
        return
    text = json.dumps(value, **layout).encode("utf-8", "surrogatepass")
    assert columns(text) == expected(value)
    assert columns(b"\xef\xbb\xbf " + text + b"\n") == expected(value)


@settings(max_examples=30)
@given(st.integers(200_000, 300_000), st.integers(1, 400))
def test_a_row_or_a_member_may_lie_anywhere_in_the_window_and_be_larger_than_it(size, step):
    rows = [{"n": n, "a": "x" * (n * step % 5000), "b": {"c": [n]}} for n in range(200)]
    value = {"before": "y" * size, "number": 12345678901, "rows": [{"a": "z" * size * 2}, *rows], "after": [1.5] * 1000}
    text = json.dumps(value).encode()
    top, (a, c) = columns(text, (("a",), ("b", "c")))
    assert top == {key: value[key] for key in ("before", "number", "after")}
    assert a == [row["a"] for row in value["rows"]]
    assert c == [None, *([n] for n in range(200))]


@pytest.mark.parametrize(
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
    with pytest.raises(ValueError, match=r"JSON|no object"):
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


@given(VALUES, LAYOUTS, st.lists(st.integers(1, 30), min_size=1), st.integers(0, 2))
def test_a_text_laid_out_anew_is_what_the_json_module_writes_however_it_is_cut(value, layout, sizes, depth):
    text = json.dumps(value, **layout).encode("utf-8", "surrogatepass")
    whole = json.dumps(value, indent=2, ensure_ascii=layout.get("ensure_ascii", True)).encode("utf-8", "surrogatepass")
    assert JsonIndenter().feed(text) == whole
    pieces, at, indenter = [], 0, JsonIndenter(depth)
    for size in sizes * (len(text) // sum(sizes) + 1):
        pieces.append(indenter.feed(text[at : at + size]))
        at += size
    assert b"".join(pieces) == whole.replace(b"\n", b"\n" + b"  " * depth)


@given(st.binary(max_size=40), st.integers(0, 39), st.integers(1, 255))
def test_a_fingerprint_tells_a_change_of_any_byte(data, at, change):
    changed = bytearray(data)
    if at < len(data):
        changed[at] ^= change
        assert fingerprint(bytes(changed)) != fingerprint(data)
    assert fingerprint(data + b"\0") != fingerprint(data)
    assert 0 <= fingerprint(data) < 2**64
