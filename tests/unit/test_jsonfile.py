"""A JSON file that others write too: read as columns, edited in place."""

import json
import os
import posix

import pytest

from tailhook.stores import jsonfile
from tailhook.stores.atomic import TOO_LARGE, Lock
from tailhook.stores.jsonfile import MAX_FILE_BYTES, PLACEHOLDER, ROWS_PIECE_BYTES, find_files

ROWS = [{"n": number} for number in range(3)]


@pytest.fixture
def file(tmp_path):
    """Return the only file of a folder, with its rows read as a column."""
    (tmp_path / "x.json").write_text(json.dumps({"phase": "a", "rows": ROWS, "end": 1}))
    (found,) = find_files(str(tmp_path), [], ".json")
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
    file.columns("rows", column_of_n)
    assert not file.has_changed()


def test_a_member_that_cannot_be_reached_is_an_os_error_and_nothing_is_written(file, tmp_path):
    before = (tmp_path / "x.json").read_text()
    with pytest.raises(OSError, match="the member 'of' is missing"):
        file.edit([(("end",), 2), (("phase", "of", "moon"), "full")])
    assert (tmp_path / "x.json").read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_an_own_edit_is_not_a_change(file):
    assert not file.has_changed()
    file.edit([(("phase",), "b")])
    assert not file.has_changed()


def column_of_n(rest):
    """Choose the one column that the tests read."""
    return (("n",),)


def written(folder, state):
    """Write a state into the only file of a folder; return the file."""
    (folder / "x.json").write_bytes(state if isinstance(state, bytes) else json.dumps(state).encode())
    (found,) = find_files(str(folder), [], ".json")
    return found


def test_an_array_of_many_pieces_is_laid_out_whole(tmp_path):
    state = {"phase": "a", "rows": [{"n": number, "text": "x" * 50} for number in range(ROWS_PIECE_BYTES // 10)]}
    found = written(tmp_path, state)
    found.columns("rows", column_of_n)
    found.edit([(("phase",), "b")])
    assert (tmp_path / "x.json").read_text() == json.dumps({**state, "phase": "b"}, indent=2) + "\n"


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_text_that_looks_like_the_place_of_the_rows_stays(tmp_path, times, place):
    text = PLACEHOLDER[:-1] + b' "' if times == 2 else PLACEHOLDER
    held = {"text": json.loads(text), "first": json.loads(PLACEHOLDER)}
    state = {"phase": "a", **(held if place == "before" else {}), "rows": ROWS, **(held if place == "after" else {})}
    found = written(tmp_path, state)
    found.columns("rows", column_of_n)
    found.edit([(("phase",), "b")])
    assert (tmp_path / "x.json").read_text() == json.dumps({**state, "phase": "b"}, indent=2) + "\n"


def test_a_byte_order_mark_is_dropped_and_a_file_without_the_array_is_edited_too(tmp_path):
    found = written(tmp_path, b"\xef\xbb\xbf" + json.dumps({"phase": "a"}).encode())
    found.columns("rows", column_of_n)
    found.edit([(("phase",), "b")])
    assert (tmp_path / "x.json").read_bytes() == b'{\n  "phase": "b"\n}\n'


def test_a_file_of_more_than_64_mib_is_refused(tmp_path):
    found = written(tmp_path, b"")
    os.truncate(tmp_path / "x.json", MAX_FILE_BYTES)
    with pytest.raises(ValueError, match="JSON"):
        found.columns("rows", column_of_n)
    os.truncate(tmp_path / "x.json", (64 << 20) + 1)
    with pytest.raises(OSError, match="larger than 64 MiB") as caught:
        found.columns("rows", column_of_n)
    assert (caught.value.errno, caught.value.filename) == (TOO_LARGE, f"{tmp_path}/x.json")


def test_a_file_that_is_gone_for_a_while_closes_no_stream_of_the_process(tmp_path):
    found = written(tmp_path, b'{"rows": []}')
    found.columns("rows", column_of_n)
    (tmp_path / "x.json").unlink()
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            found.columns("rows", column_of_n)
    os.fstat(0)


def open_files():
    """Return how many descriptors this process has."""
    return len(os.listdir("/dev/fd"))


def test_what_was_read_stays_open_once_until_the_file_is_let_go(tmp_path):
    before = open_files()
    found = written(tmp_path, {"rows": ROWS})
    for _ in range(3):
        found.columns("rows", column_of_n)
    assert os.fstat(found.read_from).st_ino == (tmp_path / "x.json").stat().st_ino
    assert open_files() == before + 2
    found.edit([(("phase",), "b")])
    assert open_files() == before + 2
    del found
    assert open_files() == before


def test_the_files_of_a_folder_come_in_the_order_of_their_names(tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    for name in ("z.json", "a.json", "\u00e9.json", "b.txt"):
        (folder / name).write_text("{}")
    found = list(find_files(str(tmp_path), ["a", "b"], ".json"))
    assert [file.path for file in found] == [f"{folder}/{name}.json" for name in ("a", "z", "\u00e9")]
    assert [file.data() for file in found] == [b"{}"] * 3


def test_links_are_left_out(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.json").write_text("{}")
    (tmp_path / "a" / "c.json").symlink_to("x.json")
    (tmp_path / "a" / "d.json").symlink_to("gone")
    (tmp_path / "b").symlink_to("a")
    assert [file.path for file in find_files(str(tmp_path), ["a"], ".json")] == [f"{tmp_path}/a/x.json"]
    assert list(find_files(str(tmp_path), ["b"], ".json")) == []
    assert list(find_files(str(tmp_path), ["gone"], ".json")) == []


def test_a_file_that_vanishes_while_the_folder_is_read_is_left_out(tmp_path, monkeypatch):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setattr(jsonfile, "posix", Vanishing(tmp_path / "a.json"))
    before = open_files()
    assert [file.path for file in find_files(str(tmp_path), [], ".json")] == [f"{tmp_path}/b.json"]
    assert open_files() == before


class Vanishing:
    """The module posix, except that a file is removed after its folder was listed."""

    def __init__(self, path):
        self.path = path

    def __getattr__(self, name):
        return getattr(posix, name)

    def listdir(self, fd):
        names = posix.listdir(fd)
        self.path.unlink()
        return names


def test_one_process_at_a_time_holds_the_lock(file, tmp_path, monkeypatch):
    monkeypatch.setattr("posix.environ", {**posix.environ, b"XDG_STATE_HOME": os.fsencode(tmp_path / "state")})
    with file.lock():
        assert file.private_file(".lock").startswith(f"{tmp_path}/state/tailhook/x.json-")
        with pytest.raises(TimeoutError), Lock(file.private_file(".lock"), seconds=0.01):
            pass
