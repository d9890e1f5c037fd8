"""The JSON reader, writer and editor against the json module and orjson."""

import json

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tailhook._core import JsonFramer, edit_json, parse_json, write_json

TEXTS = st.text() | st.sampled_from(["", "a", "text", '"\\', "é" * 20, "x" * 70, "\x1f\x7f\u2028", "😀"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=30)
STYLES = st.integers(0, 2)


@given(VALUES, STYLES)
def test_what_was_written_reads_back(value, style):
    text = write_json(value, style)
    assert parse_json(text) == value
    assert json.loads(text) == value


@given(VALUES, st.booleans(), st.sampled_from([None, 0, 3]))
def test_what_the_json_module_writes_reads_the_same(value, ascii_only, indent):
    assert parse_json(json.dumps(value, ensure_ascii=ascii_only, indent=indent)) == value


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_survives_with_its_lone_surrogates(text):
    joined = json.loads(json.dumps(text))  # here, two surrogates have become a pair
    assert parse_json(write_json(text)) == joined
    assert write_json(text).decode("utf-8", "strict")


MUTATIONS = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from(b'{}[]",:\\ue0-.1tfn \n\x00\xff\x80'), st.booleans())
)


@given(VALUES, STYLES, MUTATIONS)
def test_a_mutated_document_is_accepted_exactly_when_orjson_accepts_it(value, style, mutations):
    text = bytearray(write_json(value, style))
    for place, byte, insert in mutations:
        place %= len(text) + 1
        text[place : place + (0 if insert else 1)] = bytes([byte])
    text = bytes(text)
    try:
        ours = parse_json(text)
    except ValueError:
        assume(b"e" not in text.lower())  # orjson refuses infinite numbers; this reader takes them
        with pytest.raises(ValueError, match=r"."):
            orjson.loads(text)
    else:
        assert ours == json.loads(text)


@given(
    st.lists(st.sampled_from(["\\\\", '\\"', "\\n", "\\u0041", "a", "bc" * 20, "é", "\\/"]), max_size=150),
    st.integers(0, 3),
)
def test_runs_of_escapes_are_followed_at_any_place_in_a_long_string(pieces, broken):
    """The reader works on blocks of 64 bytes; a run of backslashes may cross from one block to the next."""
    body = "".join(pieces) + ["", "\\", '"', "\\x"][broken]
    text = f'["{body}"]'
    if broken:
        with pytest.raises(ValueError, match="at byte"):
            parse_json(text)
    else:
        assert parse_json(text) == json.loads(text)


@given(VALUES, STYLES, st.data())
def test_an_edit_is_the_edit_of_the_value_and_leaves_every_other_byte(value, style, data):
    text = write_json({"root": value, "after": 1}, style)
    path, parent = ("root",), {"root": value, "after": 1}
    expected = parent
    while isinstance(parent[path[-1]], (dict, list)) and parent[path[-1]] and data.draw(st.booleans()):
        parent = parent[path[-1]]
        steps = sorted(parent) if isinstance(parent, dict) else range(-len(parent), len(parent))
        path += (data.draw(st.sampled_from(steps)),)
    new = data.draw(st.none() | VALUES.map(lambda inner: [inner]))
    if new is None:
        del parent[path[-1]]
        edited = edit_json(text, [(path, None)])
    else:
        old = write_json(parent[path[-1]], style)
        parent[path[-1]] = new
        edited = edit_json(text, [(path, write_json(new, style))])
        if style < 2:
            assert len(edited) == len(text) - len(old) + len(write_json(new, style))
    assert parse_json(edited) == expected
    if style == 0:
        assert edited == write_json(expected)


@given(VALUES, STYLES, TEXTS)
def test_an_added_member_imitates_its_object(value, style, name):
    before = {"first": value}
    assume(name != "first")
    edited = edit_json(write_json(before, style), [((name,), write_json(0))])
    assert edited == write_json(before | {name: 0}, style)


@given(st.dictionaries(TEXTS, VALUES), STYLES, st.lists(st.integers(0, 200)), st.binary())
def test_the_framer_finds_the_end_in_any_pieces(value, style, cuts, rest):
    text = write_json(value, style) + rest
    framer = JsonFramer()
    position, ends = 0, []
    for cut in [*cuts, len(text)]:
        ends.append(framer.feed(text[position : position + cut]))
        position += cut
        if ends[-1] >= 0:
            break
    assert ends[-1] == len(text) - len(rest)
    assert set(ends[:-1]) <= {-1}
