"""Fuzz targets of the core's JSON: its reader, its framer, its editor and its columns."""

import json
import tempfile

from tailhook import _core


def no_constant(word):
    raise ValueError(f"{word} is not JSON")


def standard(data):
    """Return the value of a JSON text by the standard library, held to RFC 8259. Raises ValueError."""
    text = data.decode("utf-8").removeprefix("\ufeff")
    if text.startswith("\ufeff"):
        raise ValueError("two byte order marks")
    try:
        return json.loads(text, parse_constant=no_constant)
    except RecursionError:
        raise ValueError("too deep") from None


def result_of(function, *arguments):
    """Return what the function returns, or ValueError if it raises that."""
    try:
        return function(*arguments)
    except ValueError:
        return ValueError


def json_text(data):
    ours, theirs = result_of(_core.parse_json, data), result_of(standard, data)
    assert repr(ours) == repr(theirs)
    if ours is ValueError:
        return
    for style in (0, 1, 2):
        written = result_of(_core.write_json, ours, style)
        assert written is ValueError or repr(_core.parse_json(written)) == repr(ours)


def json_framer(data):
    whole = _core.JsonFramer().feed(data)
    framer, end = _core.JsonFramer(), -1
    for at in range(0, len(data), 7):
        if end < 0:
            end = framer.feed(data[at : at + 7])
    assert end == whole
    value = result_of(standard, data)
    if isinstance(value, dict):
        assert _core.parse_json(data[:whole]) == value


def json_edit(data):
    value = result_of(_core.parse_json, data)
    if not isinstance(value, dict) or not value or "Infinity" in repr(value) or "inf" in repr(value):
        return
    key = sorted(value)[len(data) % len(value)]
    edited = _core.edit_json(data, [((key,), b'{"new":[1]}')])
    assert _core.parse_json(edited) == {**value, key: {"new": [1]}}
    removed = _core.edit_json(data, [((key,), None)])
    assert _core.parse_json(removed) == {name: member for name, member in value.items() if name != key}
    added = _core.edit_json(data, [((f"{key} new",), b"1")])
    assert _core.parse_json(added) == {**value, f"{key} new": 1}


def json_columns(data):
    """Compare read_json_columns with json. The first byte is the size of the reader's window; the rest is the file."""
    window_bytes, data = 4 + (data[0] if data else 0), data[1:]
    paths = (("a",), ("b",), ("a", "b"))
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        ours = result_of(_core.read_json_columns, file.fileno(), "rows", lambda top: paths, window_bytes)
        default = result_of(_core.read_json_columns, file.fileno(), "rows", lambda top: paths)
    assert repr(ours) == repr(default)
    value = result_of(standard, data)
    if ours is not ValueError:
        rows = value.pop("rows", None) if ours[1] is not None else None
        assert repr(ours[0]) == repr(value)
        if rows is not None:
            nested = [row.get("a") for row in rows]
            columns = [nested, [row.get("b") for row in rows]]
            columns.append([one.get("b") if isinstance(one, dict) else None for one in nested])
            assert repr(ours[1]) == repr(columns)
    elif isinstance(value, dict) and data.count(b"rows") <= 1 and b"\\" not in data:
        rows = value.get("rows")
        assert isinstance(rows, list)
        assert not all(isinstance(row, dict) for row in rows)
