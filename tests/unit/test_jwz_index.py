"""The index of a large jwz store: the same messages as without it, at the cost of the appended lines."""

import json
import os
import re
import sys
from pathlib import Path
from random import Random

import pytest
from support.oracles import jwz

from tailhook.stores import jwz as store_module
from tailhook.stores import jwz_index
from tailhook.stores.jwz import Store

NOTE = '{"type":"message","id":"%026d","topic_id":"OTHER","parent_id":null,"body":"a note","created_at":1}\n'


@pytest.fixture
def private(tmp_path, monkeypatch):
    """Return the private state folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "tailhook"


@pytest.fixture
def small(monkeypatch):
    """Set the sizes to some hundred bytes, so that a store of a few kilobytes is a large one."""
    monkeypatch.setattr(store_module, "UNREMEMBERED_BYTES", 500)
    monkeypatch.setattr(store_module, "END_BYTES", 200)
    monkeypatch.setattr(jwz_index, "UNREMEMBERED_BYTES", 500)
    monkeypatch.setattr(jwz_index, "NEAR_END_BYTES", 700)
    monkeypatch.setattr(jwz_index, "PIECE_BYTES", 100)
    for module in (store_module, jwz_index):
        monkeypatch.setattr(module, "MAX_LINE_BYTES", 400)
    monkeypatch.setattr(jwz_index, "CHUNK_BYTES", 400)


def add_notes(folder, count, start=0):
    """Append messages of another topic."""
    (folder / ".jwz").mkdir(exist_ok=True)
    with (folder / ".jwz" / "messages.jsonl").open("a") as out:
        out.writelines(NOTE % number for number in range(start, start + count))


def newest(folder, topic="t", seconds=None):
    """Return the body of the newest message, read by a newly opened store."""
    found = Store.find(str(folder)).newest(topic, seconds)
    return found.body if found else None


def records_of(path):
    """Return every line that is a JSON object."""
    for line in path.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if len(line) <= 400:
            yield record


def bytes_read():
    return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="what was read is counted in /proc")


# ---- the same messages -------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_a_store_that_grows_is_read_as_one_that_is_read_whole(tmp_path, private, small, seed):
    """Posts, notes, torn lines and too long lines, in any order; the oracle reads the store each time."""
    chance = Random(seed)
    path = tmp_path / ".jwz" / "messages.jsonl"
    path.parent.mkdir()
    path.touch()
    torn = '{"type":"message","id":"1'
    for step in range(25):
        action = chance.choice(["post", "post", "notes", "notes", "other", "torn", "long"])
        if action == "post":
            store = Store.find(str(tmp_path))
            with store.lock():
                store.post("t", f"body {step}", 1.0 + step)
        elif action == "notes":
            add_notes(tmp_path, chance.randrange(1, 30), 100 * step)
        elif action == "other":
            store = Store.find(str(tmp_path))
            with store.lock():
                store.post("u", f"other {step}", 1.0 + step)
        elif action == "torn":
            path.write_bytes(path.read_bytes() + torn[: chance.randrange(1, len(torn))].encode())
            if chance.random() < 0.5:
                path.write_bytes(path.read_bytes() + b"\n")
        else:
            path.write_bytes(path.read_bytes() + b'{"long":"' + b"x" * chance.randrange(350, 1500) + b'"}\n')
        records = list(records_of(path))
        for topic in ("t", "u", "absent"):
            ids = [record["id"] for record in records if record.get("type") == "topic" and record["name"] == topic]
            assert len(ids) <= 1
            found = [record for record in records if record.get("topic_id") in ids and record["type"] == "message"]
            assert newest(tmp_path, topic) == (found[-1]["body"] if found else None), (step, action, topic)


@pytest.mark.parametrize("where", ["first", "last", "absent", "buried"])
def test_a_topic_is_found_wherever_it_stands(tmp_path, private, small, where):
    if where in ("first", "buried"):
        jwz.post(tmp_path, "one", topic="t", created_at=1)
    add_notes(tmp_path, 200)
    if where in ("first", "last"):
        jwz.post(tmp_path, "two", topic="t", created_at=2)
    expected = {"first": "two", "last": "two", "absent": None, "buried": "one"}[where]
    for _ in range(3):
        assert newest(tmp_path) == expected
    jwz.post(tmp_path, "three", topic="t", created_at=3)
    assert newest(tmp_path) == "three"
    add_notes(tmp_path, 200)
    assert newest(tmp_path) == "three"
    assert [record["body"] for record in jwz.messages(tmp_path, "t")][-1] == "three"


def test_a_message_whose_time_is_later_than_that_of_a_later_line_stays_the_newest(tmp_path, private, small):
    jwz.post(tmp_path, "late clock", topic="t", created_at=100)
    add_notes(tmp_path, 50)
    assert newest(tmp_path) == "late clock"
    jwz.post(tmp_path, "set back", topic="t", created_at=50)
    assert newest(tmp_path) == "late clock"
    jwz.post(tmp_path, "equal", topic="t", created_at=100)
    assert newest(tmp_path) == "equal"


def test_a_line_that_was_not_complete_is_read_when_it_is(tmp_path, private, small):
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    add_notes(tmp_path, 50)
    path = tmp_path / ".jwz" / "messages.jsonl"
    jwz.post(tmp_path, "two", topic="t", created_at=2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert newest(tmp_path) == "one"
    with path.open("ab") as out:
        out.write(whole[-30:])
    assert newest(tmp_path) == "two"


@pytest.mark.parametrize("change", ["truncated", "rewritten", "replaced", "removed"])
def test_a_store_that_is_no_longer_what_it_was_is_read_again(tmp_path, private, small, change):
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    add_notes(tmp_path, 50)
    assert newest(tmp_path) == "one"
    path = tmp_path / ".jwz" / "messages.jsonl"
    if change == "truncated":
        path.write_bytes(path.read_bytes()[:-400])
        expected = "one"
    elif change == "rewritten":  # in place: the same inode, the same size
        path.write_bytes(path.read_bytes().replace(b"one", b"two").replace(b"a note", b"a nite"))
        expected = "two"
    else:
        path.unlink()
        add_notes(tmp_path, 60)
        expected = None
        if change == "replaced":
            jwz.post(tmp_path, "new", topic="t", created_at=1)
            expected = "new"
    assert newest(tmp_path) == expected
    assert newest(tmp_path) == expected


BROKEN = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"{}",
    b'{"offset":"x"}',
    b'{"offset":-1,"witness":0}',
    b'{"offset":1e9,"witness":0}',
    b'{"offset":99999999,"witness":1}',
    b"\xff" * 100,
]


@pytest.mark.parametrize("saved", BROKEN)
def test_a_broken_file_of_what_is_known_is_made_again(tmp_path, private, small, saved):
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    add_notes(tmp_path, 50)
    assert newest(tmp_path) == "one"
    (file,) = private.glob("jwz-*")
    good = file.read_bytes()
    file.write_bytes(saved)
    assert newest(tmp_path) == "one"
    assert file.read_bytes() == good
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("key", "value"),
    [("newest_at", 5), ("newest_at", -1), ("newest_at", "x"), ("newest_at", 10**30), ("topic_id", "OTHER")],
)
def test_a_newest_message_that_is_not_where_it_should_be_is_looked_for_again(tmp_path, private, small, key, value):
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    add_notes(tmp_path, 50)
    assert newest(tmp_path) == "one"
    (file,) = private.glob("jwz-*")
    file.write_text(json.dumps({**json.loads(file.read_bytes()), key: value}))
    assert newest(tmp_path) == "one"


def test_if_nothing_can_be_saved_the_store_is_still_read(tmp_path, monkeypatch, small):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    add_notes(tmp_path, 50)
    assert newest(tmp_path) == "one"


def test_two_topics_of_one_store_are_remembered_apart(tmp_path, private, small):
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    jwz.post(tmp_path, "two", topic="u", created_at=2)
    add_notes(tmp_path, 50)
    assert (newest(tmp_path, "t"), newest(tmp_path, "u")) == ("one", "two")
    assert len(list(private.glob("jwz-*"))) == 2


def test_one_store_may_be_asked_about_several_topics(tmp_path, private, small):
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    jwz.post(tmp_path, "two", topic="u", created_at=2)
    add_notes(tmp_path, 50)
    store = Store.find(str(tmp_path))
    assert [store.newest(topic).body for topic in ("t", "u", "t")] == ["one", "two", "one"]
    with store.lock():
        store.post("u", "three", 3.0)
        store.post("new", "four", 4.0)
    assert [newest(tmp_path, topic) for topic in ("t", "u", "new")] == ["one", "three", "four"]


# ---- the cost ----------------------------------------------------------------


@needs_proc
@pytest.mark.parametrize("where", ["first", "last", "absent", "buried"])
def test_a_large_store_is_read_once_and_then_only_what_was_appended(tmp_path, private, where):
    if where in ("first", "buried"):
        jwz.post(tmp_path, "one", topic="t", created_at=1)
    add_notes(tmp_path, 200_000)
    path = tmp_path / ".jwz" / "messages.jsonl"
    if where in ("first", "last"):
        with path.open("a") as out:
            topic_id = jwz.records(tmp_path)[0]["id"] if where == "first" else "T"
            if where == "last":
                out.write('{"type":"topic","id":"T","name":"t","description":"","created_at":1}\n')
            fields = {"type": "message", "id": "M", "topic_id": topic_id, "body": "one", "created_at": 1}
            out.write(json.dumps(fields, separators=(",", ":")) + "\n")
    expected = None if where == "absent" else "one"
    before = bytes_read()
    assert newest(tmp_path) == expected
    first = bytes_read() - before
    assert first < 3 * path.stat().st_size
    for added in (0, 3, 1000):
        add_notes(tmp_path, added)
        before = bytes_read()
        assert newest(tmp_path) == expected
        assert bytes_read() - before < 900_000, added


@needs_proc
def test_a_store_is_read_for_as_long_as_it_may_be_and_then_goes_on_from_there(tmp_path, private):
    add_notes(tmp_path, 100)
    path = tmp_path / ".jwz" / "messages.jsonl"
    os.truncate(path, 200 << 20)
    store = Store.find(str(tmp_path))
    with pytest.raises(OSError, match=r"read for the first time \(0\.\d of 0\.2 GB so far\)"):
        store.newest("t", 0.0)
    read, before = [], bytes_read()
    for _ in range(40):
        try:
            assert newest(tmp_path, "t", 0.0) is None
            break
        except OSError:
            read.append(bytes_read() - before)
            before = bytes_read()
    else:
        pytest.fail("the reading never came to its end")
    assert len(read) > 5
    assert max(read) < 80 << 20


@needs_proc
def test_a_line_of_a_gigabyte_that_is_not_complete_costs_no_more_than_the_longest_line(tmp_path, private):
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    path = tmp_path / ".jwz" / "messages.jsonl"
    os.truncate(path, 1 << 30)
    assert newest(tmp_path) == "one"
    before = bytes_read()
    assert newest(tmp_path) == "one"
    assert bytes_read() - before < 120 << 20


def test_a_message_near_the_end_is_found_without_reading_what_is_before_it(tmp_path, private, small):
    jwz.post(tmp_path, "old", topic="t", created_at=1)
    add_notes(tmp_path, 50)
    jwz.post(tmp_path, "new", topic="t", created_at=2)
    assert newest(tmp_path, seconds=-1) == "new"


def test_what_is_known_is_saved_again_only_once_much_was_appended(tmp_path, private, small):
    jwz.post(tmp_path, "one", topic="t", created_at=1)
    add_notes(tmp_path, 50)
    assert newest(tmp_path) == "one"
    (file,) = private.glob("jwz-*")
    saved = file.stat().st_ino, file.stat().st_mtime_ns
    add_notes(tmp_path, 1)
    assert newest(tmp_path) == "one"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == saved
