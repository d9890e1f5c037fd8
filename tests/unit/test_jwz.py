"""The jwz store as a library: its records, its order, its faults."""

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest
from support.oracles import jwz

from tailhook.stores import jwz as store_module
from tailhook.stores.jwz import END_BYTES, LOOK_BACK_BYTES, UNREMEMBERED_BYTES, Store, ulid
from tailhook.stores.loop import TOPIC, find_loop


@pytest.fixture
def store(tmp_path):
    return Store.make(str(tmp_path))


def messages_file(store):
    return Path(store.path, "messages.jsonl")


def lines(store):
    return [json.loads(line) for line in messages_file(store).read_text().splitlines()]


def bytes_read():
    return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])


def post(store, *bodies, topic="t", now=1000.0):
    for body in bodies:
        with store.lock():
            store.post(topic, body, now)


def test_a_missing_store_is_made_and_found_again(tmp_path, store):
    assert store.path == f"{tmp_path}/.jwz"
    assert Store.find(str(tmp_path)).path == store.path
    assert Store.make(str(tmp_path)).path == store.path
    assert Store.find(str(tmp_path / ".jwz")) is None


def test_two_processes_that_make_a_store_at_once_have_the_same_one(tmp_path, monkeypatch):
    def make_after_another(path, make=os.mkdir):
        make(path)
        make(path)

    monkeypatch.setattr(store_module.posix, "mkdir", make_after_another)
    made = Store.make(str(tmp_path))
    assert (made.path, (tmp_path / ".jwz/.gitignore").read_text()) == (str(tmp_path / ".jwz"), "*\n")


def test_an_empty_store_has_no_messages(store):
    assert store.newest("t") is None


def test_records_are_minified_with_their_fields_in_jwz_order(store):
    post(store, 'a "b" é\n', now=1.5)
    text = messages_file(store).read_text()
    ulid_pattern = "([0-9A-HJKMNP-TV-Z]{26})"
    assert re.fullmatch(
        rf'{{"type":"topic","id":"{ulid_pattern}","name":"t","description":"","created_at":1500}}\n'
        rf'{{"type":"message","id":"{ulid_pattern}","topic_id":"\1","parent_id":null,"body":"a \\"b\\" é\\n",'
        r'"created_at":1500,"sender":null,"git":null}\n',
        text,
    )


def test_a_topic_is_made_once(store):
    post(store, "1", "2")
    post(store, "3", topic="u")
    post(store, "4")
    assert [record["type"] for record in lines(store)].count("topic") == 2
    assert (store.newest("t").body, store.newest("u").body) == ("4", "3")


def test_another_programs_topic_and_messages_are_taken_up(tmp_path):
    jwz.post(tmp_path, "theirs", topic="t")
    store = Store.find(str(tmp_path))
    post(store, "ours", now=4e9)
    assert [record["body"] for record in jwz.messages(tmp_path, "t")] == ["theirs", "ours"]


def test_the_greatest_time_is_the_newest_and_of_equals_the_later_line(tmp_path):
    for body, at in (("a", 5), ("b", 9), ("c", 9), ("d", 7)):
        jwz.post(tmp_path, body, topic="t", created_at=at)
    assert Store.find(str(tmp_path)).newest("t").body == "c"


@pytest.mark.parametrize("at", [2**63 - 1, 2**63, 10**40, 0, -(2**63), -(2**63) - 1, -(10**40)])
def test_a_message_is_found_and_another_posted_whatever_its_time_is(tmp_path, at):
    for body, time in (("before", at - 1), ("newest", at), ("late", at - 2)):
        jwz.post(tmp_path, body, topic="t", created_at=time)
    store = Store.find(str(tmp_path))
    assert store.newest("t").body == "newest"
    post(store, "ours", now=1.0)
    assert (store.newest("t").body, store.newest("t").created_at) == ("ours", max(at, 1000))


def test_a_message_out_of_order_is_found_among_the_last_64_kib(tmp_path):
    jwz.post(tmp_path, "newest", topic="t", created_at=9)
    filler = "x" * 1000
    for number in range(LOOK_BACK_BYTES // 1000 - 15):
        jwz.post(tmp_path, f"{number} {filler}", topic="t" if number % 2 else "u", created_at=5)
    assert Store.find(str(tmp_path)).newest("t").body == "newest"


def test_a_post_is_never_older_than_what_is_there(store):
    post(store, "1", now=100.0)
    post(store, "2", now=50.0)
    assert [record["created_at"] for record in lines(store)] == [100_000] * 3


@pytest.mark.parametrize(
    "junk",
    [
        b'{"type":"message","id":"0',
        b"\x00" * 100,
        b"\xff\xfe",
        b'{"type":"topic","id":5,"name":"t"}',
        b'{"type":"message","topic_id":"ID","body":5,"created_at":99}',
        b'{"type":"message","topic_id":"ID","body":"x","created_at":"99"}',
        b'{"type":"note","topic_id":"ID","body":"x","created_at":99}',
        b'{"type":"message","topic_id":"other","body":"ID","created_at":99}',
        b"[]",
        b"null",
    ],
)
def test_a_line_that_is_not_a_message_is_left_out(tmp_path, junk):
    jwz.post(tmp_path, "good", topic="t", created_at=5)
    path = tmp_path / ".jwz" / "messages.jsonl"
    topic_id = json.loads(path.read_text().splitlines()[0])["id"].encode()
    with path.open("ab") as out:
        out.write(junk.replace(b"ID", topic_id) + b"\n")
    assert Store.find(str(tmp_path)).newest("t").body == "good"


def test_a_topic_with_an_empty_id_is_a_topic(store):
    messages_file(store).write_text('{"type":"topic","id":"","name":"t"}\n')
    post(store, "1")
    assert store.newest("t").body == "1"
    assert [record["type"] for record in lines(store)] == ["topic", "message"]


def test_a_torn_last_line_gets_its_newline_and_nothing_else(store):
    post(store, "1")
    path = messages_file(store)
    with path.open("ab") as out:
        out.write(b'{"type":"mess')
    post(store, "2")
    torn = path.read_bytes().splitlines()[2]
    assert torn == b'{"type":"mess'
    assert store.newest("t").body == "2"


def test_what_cannot_be_written_whole_is_not_there_at_all(store, monkeypatch):
    post(store, "1")
    path = messages_file(store)
    before = path.read_bytes()

    def half_then_full(fd, data, done=[]):  # noqa: B006
        if done:
            raise OSError(28, "No space left on device")
        done.append(1)
        return os.write(fd, data[: len(data) // 2])

    monkeypatch.setattr("tailhook.stores.atomic.posix.write", half_then_full)
    with pytest.raises(OSError, match="No space"):
        post(store, "2")
    assert path.read_bytes() == before


def test_a_body_with_a_lone_surrogate_is_written_as_valid_utf_8(store):
    post(store, "a\ud800b")
    assert store.newest("t").body == "a\ud800b"
    assert lines(store)


@pytest.mark.parametrize("iterations", [20, 200, 2000])
def test_a_loops_stop_does_not_get_dearer_with_its_own_iterations(tmp_path, monkeypatch, iterations):
    """The steps of a stop: find the loop, read it again under the lock, post the next state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    store, newest = Store.make(str(tmp_path)), None
    state = {"schema": 1, "event": "STATE", "stack": [{"id": "a", "mode": "loop", "max": 5000, "prompt": "x" * 100}]}
    with store.lock():
        for iteration in range(iterations):
            state["stack"][0]["iter"] = iteration
            newest = store.post(TOPIC, json.dumps(state), 1000.0 + iteration, newest)
    parsed, parse = [], store_module.parse_jwz_record
    monkeypatch.setattr(store_module, "parse_jwz_record", lambda line: parsed.append(line) or parse(line))
    loop = find_loop([str(tmp_path)])
    with loop.lock():
        assert not loop.reload()
        loop.save({**loop.state, "updated_at": "now"}, 1000.0 + iterations)
    assert loop.state["stack"][0]["iter"] == iterations - 1
    assert len(parsed) == 2  # the topic, and its newest message
    assert not (tmp_path / "state").exists()  # such a store needs no index


def test_a_store_is_read_again_if_another_program_has_posted_meanwhile(tmp_path):
    jwz.post(tmp_path, '{"schema": 1, "n": 1}', topic=TOPIC, created_at=1)
    loop = find_loop([str(tmp_path)])
    jwz.post(tmp_path, '{"schema": 1, "n": 2}', topic=TOPIC, created_at=2)
    assert (loop.reload(), loop.state["n"], loop.reload()) == (True, 2, False)
    (tmp_path / ".jwz" / "messages.jsonl").unlink()
    assert (loop.reload(), loop.newest, loop.reload()) == (True, None, False)


@pytest.mark.skipif(sys.platform != "linux", reason="what was read is counted in /proc")
def test_a_store_of_10_gb_costs_its_beginning_and_its_end(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    jwz.post(tmp_path, "first", topic="t", created_at=1)
    path = tmp_path / ".jwz" / "messages.jsonl"
    topic_id = json.loads(path.read_text().splitlines()[0])["id"]
    os.truncate(path, 10 << 30)
    record = {"type": "message", "id": "x", "topic_id": topic_id, "body": "last", "created_at": 2}
    with path.open("ab") as out:
        out.write(b"\n" + json.dumps(record).encode() + b"\n" + b'{"type":"message","body":"y"}\n' * 5000)
    store = Store.find(str(tmp_path))
    read_before = bytes_read()
    assert store.newest("t").body == "last"
    assert bytes_read() - read_before < 2 << 20


def test_a_folder_in_place_of_the_messages_is_an_error_and_a_pipe_is_not_waited_for(tmp_path):
    (tmp_path / ".jwz" / "messages.jsonl").mkdir(parents=True)
    with pytest.raises(OSError, match=r"."):
        Store.find(str(tmp_path)).newest("t")
    (tmp_path / ".jwz" / "messages.jsonl").rmdir()
    os.mkfifo(tmp_path / ".jwz" / "messages.jsonl")
    with pytest.raises(OSError, match=r"."):
        Store.find(str(tmp_path)).newest("t")


def test_the_lock_is_the_stores_own_and_private_files_stay_so(store, tmp_path):
    with store.lock():
        assert (tmp_path / ".jwz" / "lock").exists()
    post(store, "1")
    assert stat.S_ISREG((tmp_path / ".jwz" / "messages.jsonl").stat().st_mode)


def test_ulids_are_in_the_order_of_their_times_and_differ():
    made = [ulid(at) for at in (0, 1, 1, 2**40, 2**48 - 1)]
    assert [identity[:10] for identity in made] == sorted(identity[:10] for identity in made)
    assert made[0].startswith("0000000000")
    assert made[-1].startswith("7ZZZZZZZZZ")
    assert len(set(made)) == 5


def test_the_random_part_of_a_ulid_has_80_bits():
    digits = [ulid(1_767_312_245_000)[10:] for _ in range(200)]
    assert {len(random) for random in digits} == {16}
    assert all(len({random[place] for random in digits}) > 16 for place in range(16))


def test_all_users_of_the_folder_can_read_the_messages(store):
    mask = os.umask(0)
    try:
        post(store, "one")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(messages_file(store).stat().st_mode) == 0o666


def test_a_record_that_only_mentions_a_topics_name_is_not_that_topic(store):
    other = {"type": "topic", "id": "OTHER", "name": "other", "description": "t", "created_at": 1}
    messages_file(store).write_text(json.dumps(other, separators=(",", ":")) + "\n")
    post(store, "one")
    assert lines(store)[1]["name"] == "t"
    assert store.newest("t").topic_id == lines(store)[1]["id"]


def test_a_message_that_is_found_has_the_fields_of_its_record(store):
    post(store, "one")
    record, found = lines(store)[1], store.newest("t")
    assert (found.id, found.topic_id, found.body) == (record["id"], record["topic_id"], "one")
    assert found.created_at == record["created_at"] == 1_000_000
    assert messages_file(store).read_bytes()[found.offset :].startswith(b'{"type":"message"')


def test_the_page_on_the_decision_names_the_bounds():
    page = (Path(__file__).parents[2] / "docs/decisions/newest-message.md").read_text()
    assert f"with those in the {LOOK_BACK_BYTES >> 10} KiB before it" in page
    assert f"A store of up to {UNREMEMBERED_BYTES >> 10} KiB is read again" in page
    assert f"the first {END_BYTES >> 10} KiB are searched for the topic" in page
    assert f"the last {END_BYTES >> 10} KiB for its message" in page


def test_a_first_message_has_the_time_that_is_given(store):
    post(store, "one", now=0.0)
    assert store.newest("t").created_at == 0
