"""A JSON file that others write too: read as columns, edited in place."""

import json

import pytest

from tailhook.stores.jsonfile import files

ROWS = [{"n": number} for number in range(3)]


@pytest.fixture
def file(tmp_path):
    """The only file of a folder, its rows read as a column."""
    (tmp_path / "x.json").write_text(json.dumps({"phase": "a", "rows": ROWS, "end": 1}))
    (found,) = files(str(tmp_path), [], ".json")
    assert found.columns("rows", lambda rest: (("n",),))[1] == [[0, 1, 2]]
    return found


def test_an_edit_leaves_the_rows_and_the_order(file, tmp_path):
    file.edit([(("phase",), "b")])
    assert (tmp_path / "x.json").read_text() == json.dumps({"phase": "b", "rows": ROWS, "end": 1}, indent=2) + "\n"


def test_a_file_that_changed_since_it_was_read_is_not_edited(file, tmp_path):
    changed = json.dumps({"phase": "a", "more": "x" * 20, "rows": ROWS, "end": 1})
    (tmp_path / "x.json").write_text(changed)
    with pytest.raises(OSError, match="has changed"):
        file.edit([(("phase",), "b")])
    assert (tmp_path / "x.json").read_text() == changed
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert file.has_changed()
