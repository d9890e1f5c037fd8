"""The results of a look at a transcript: the newest records, and the tools that have ended."""

import json
import os
import socket

import pytest
from support.host import assistant
from support.timed_records import call, host_record, record, result, write

from tailhook.plates.looks import LookBuilder, Since, look_at
from tailhook.plates.signs import transcript_of_agent
from tailhook.plates.transcript_ends import last_words


def test_a_look_reads_the_newest_record_of_the_session_itself(tmp_path):
    path = write(
        tmp_path / "t",
        record("assistant", "Done.", 1000),
        record("user", "hook feedback", 2000, isMeta=True),
        record("assistant", "sub-agent", 3000, isSidechain=True),
        record("assistant", "API Error", 4000, isApiErrorMessage=True),
        '{"type":"system","timestamp":"2030-01-01T00:00:00Z"}',
    )
    assert look_at(path)[1:4] == (1000, False, False)


def test_the_newest_own_record_with_a_time_counts(tmp_path):
    older, newer = record("user", "[Request interrupted by user]", 1000), record("assistant", "Go on.", 1005)
    assert look_at(write(tmp_path / "t", older, newer))[1:4] == (1005, False, False)
    assert look_at(write(tmp_path / "t", newer, older))[1:4] == (1000, True, False)
    flat = '{"type":"human","content":"yes"}'
    assert look_at(write(tmp_path / "t", older, flat))[1:4] == (1000, True, False)


def test_a_look_sees_an_interruption_and_the_end_of_a_turn(tmp_path):
    path = write(tmp_path / "a", record("user", "[Request interrupted by user for tool use]", 1000))
    assert look_at(path)[1:4] == (1000, True, False)
    ended = {**assistant("Done.", at=1000)}
    ended["message"]["stop_reason"] = "end_turn"
    assert look_at(write(tmp_path / "b", json.dumps(ended)))[1:4] == (1000, False, True)


# The records behind the agent's message with calls of the tools a and b. The session waits for a.
AFTER_THE_CALL = {
    "nothing": ([], False),
    "its own result": ([result("a")], True),
    "both results": ([result("a", "b")], True),
    "the other tool's result": ([result("b")], False),
    "the other tool's result with words": ([result("b", words="<system-reminder>")], False),
    "its own result with words": ([result("b", "a", words="<system-reminder>")], True),
    "a picture by the person": (
        [json.dumps({"type": "user", "message": {"role": "user", "content": [{"type": "image", "tool_use_id": "b"}]}})],
        True,
    ),
    "the other tool's result, then its own": ([result("b"), result("a")], True),
    "more of the same message": ([call("c", message="m1", at=1005)], False),
    "another message": ([record("assistant", "Go on.", 1005, message={"id": "m2"})], True),
    "a message without an id": ([record("assistant", "Go on.", 1005, message={"id": None})], True),
    "a message of a sub-agent": ([record("assistant", "Go on.", 1005, message={"id": "m2"}, isSidechain=True)], False),
    "a result of a sub-agent's": ([result("a", isSidechain=True)], False),
    "a person's prompt": ([record("user", "Do this instead.", 1005)], True),
    "an interruption": ([record("user", "[Request interrupted by user for tool use]", 1005)], True),
    "a summary of what was said": ([record("user", "This session goes on.", 1005, isCompactSummary=True)], False),
    "words of the host": ([record("user", "hook feedback", 1005, isMeta=True)], False),
    "the host's own records": (
        [
            host_record("mode"),
            host_record("system", 1005),
            host_record("attachment", 1005),
            host_record("queue-operation", 1005),
            host_record("of-a-later-version"),
        ],
        False,
    ),
    "a half record": (['{"type":"user","message":{"role":"user","content":[{"type":"tool_result"'], False),
    "contents of other shapes": (
        [
            json.dumps({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result"}, 3, None]}}),
            json.dumps(
                {"type": "user", "message": {"role": "user", "content": [{"type": "image", "tool_use_id": "a"}]}}
            ),
            json.dumps(
                {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": 3}]}}
            ),
        ],
        True,  # the person's move: these are messages to the agent, and no results
    ),
}


@pytest.mark.parametrize(("records", "is_over"), AFTER_THE_CALL.values(), ids=AFTER_THE_CALL)
def test_whether_a_tool_that_is_waited_for_has_ended(tmp_path, records, is_over):
    path = write(tmp_path / "t", record("user", "Go.", 990), call("a", "b"), *records)
    look = look_at(path, Since(1000, 0, frozenset("a")))
    assert (look.ended, look.pending) == ((frozenset("a"), frozenset()) if is_over else (frozenset(), frozenset("a")))


def test_a_result_whose_call_is_not_there_is_news(tmp_path):
    path = write(tmp_path / "t", record("user", "Go.", 990), result("a", "b", at=1001))
    look = look_at(path, Since(1000, None, frozenset("a")))
    assert (look.newest, look.is_others, look.pending, look.ended) == (1001, False, frozenset(), frozenset())
    look = look_at(path, Since(1000, None, frozenset("c")))
    assert (look.newest, look.is_others) == (990, True)


def test_messages_without_ids_are_one_record_each(tmp_path):
    path = write(tmp_path / "t", call("a", message=None))
    assert look_at(path, Since(1000, 0, frozenset("a"))).pending == {"a"}
    path = write(tmp_path / "t", call("a", message=None), record("assistant", "Go on.", 1005, message={"id": None}))
    assert look_at(path, Since(1000, 0, frozenset("a"))).ended == {"a"}


def test_the_calls_of_one_message_may_stand_in_several_records(tmp_path):
    path = write(tmp_path / "t", call("a"), call("b"), call("c"), result("b"))
    look = look_at(path, Since(1000, 0, frozenset("ab")))
    assert (look.ended, look.pending) == (frozenset("b"), frozenset("a"))


def test_a_call_that_is_far_back_is_found_and_one_that_is_too_far_is_not(tmp_path):
    noise = [host_record("progress", 1000) for _ in range(498)]
    look = look_at(write(tmp_path / "t", call("a"), *noise, result("b")), Since(1000, 0, frozenset("a")))
    assert look.pending == {"a"}
    look = look_at(write(tmp_path / "t", call("a"), *noise, *noise[:1], result("b")), Since(1000, 0, frozenset("a")))
    assert (look.pending, look.ended) == (frozenset(), frozenset())


def test_a_record_that_cannot_be_decoded_hides_no_other_one(tmp_path):
    odd = b'{"type":"user","message":{"role":"user","content":[],"x":"\xff"}}'
    path = tmp_path / "t"
    path.write_bytes(b"\n".join([call("a").encode(), result("a").encode(), odd, b""]))
    assert look_at(str(path), Since(1000, 0, frozenset("a"))).ended == {"a"}


@pytest.mark.parametrize(
    ("record", "newest", "has_grown"),
    [
        (host_record("system", 1002), 1002, False),
        (host_record("progress", 1002), 1002, False),
        (record("user", "hook feedback", 1002, isMeta=True), 1002, False),
        (record("assistant", "API Error", 1002, isApiErrorMessage=True), 1002, False),
        (result("a", at=1002), 1002, False),
        ('{"type":"human","content":"yes"}', 990, True),
        ('{"type":"assistant","content":"flat"}', 990, True),
        ('{"type":"summary","summary":"x"}', 990, False),
        ('{"type":"api-request-blob","message":{"role":"user","content":"Go."}}', 990, False),
        ('{"type":"assistant","isSidechain":true,"content":"flat"}', 990, False),
        ('{"type":"mode","mode":"plan"}', 990, False),
        ('{"type":"file-history-snapshot"}', 990, False),
        (record("assistant", "sub-agent", 1002, isSidechain=True), 990, False),
        ("not json", 990, False),
    ],
)
def test_what_was_written_since_the_event(tmp_path, record, newest, has_grown):
    before = json.dumps({**assistant("Go.", at=990)})
    size = len(before) + 1
    look = look_at(write(tmp_path / "t", before, record), Since(1000, size))
    assert (look.newest, look.has_grown) == (newest, has_grown)
    assert look_at(str(tmp_path / "t"), Since(1000, None)).has_grown is False  # it is not known what was there


def test_what_was_there_at_the_event_is_nothing_new(tmp_path):
    flat = '{"type":"human","content":"yes"}'
    path = write(tmp_path / "t", flat)
    assert not look_at(path, Since(1000, len(flat) + 1)).has_grown
    assert look_at(path, Since(1000, len(flat))).has_grown is False  # the line had begun
    assert look_at(path, Since(1000, 0)).has_grown


def test_only_others_have_written_if_all_of_it_is_theirs(tmp_path):
    before = record("user", "Go.", 990)
    size, calls = len(before) + 1, frozenset("a")
    theirs = [record("assistant", "sub-agent", 1002, isSidechain=True), result("b", at=1003)]
    assert look_at(write(tmp_path / "t", before, *theirs), Since(1000, size, calls)).is_others
    assert look_at(write(tmp_path / "t", before, *theirs), Since(1000, None, calls)).is_others
    assert not look_at(
        write(tmp_path / "t", before, *theirs), Since(1000, size)
    ).is_others  # whose result it is, is unknown
    assert not look_at(
        write(tmp_path / "t", before, *theirs, host_record("system", 999)), Since(1000, size, calls)
    ).is_others
    assert not look_at(write(tmp_path / "t", before), Since(1000, size, calls)).is_others
    assert look_at(write(tmp_path / "t", before, theirs[0]), Since(1000, size, calls)).is_others


def test_what_was_written_before_the_event_is_looked_at_for_the_calls_and_the_newest_own_record(tmp_path):
    path = write(tmp_path / "t", call("a", at=990), call("c", at=991), host_record("system", 992))
    look = look_at(path, Since(1000, os.path.getsize(path), frozenset("a")))
    assert (look.pending, look.at, look.newest) == ({"a"}, 991, 992)
    assert look_at(path, Since(1000, os.path.getsize(path))).at == 991


def test_without_a_size_the_first_older_record_ends_what_was_written_since(tmp_path):
    theirs = record("assistant", "sub-agent", 1003, isSidechain=True)
    path = write(tmp_path / "t", host_record("system", 1002), record("user", "Go.", 990), theirs)
    assert look_at(path, Since(1000, None)).is_others
    assert not look_at(path, Since(1003, None)).is_others  # at the very time of the event


def test_of_a_long_transcript_only_the_end_since_the_event_is_read(tmp_path, monkeypatch):
    lines = [record("assistant", "x", 900)] * 1000
    path = write(tmp_path / "t", *lines, call("a"), result("b"))
    size = os.path.getsize(path) - len(call("a")) - len(result("b")) - 2
    read = []
    add = LookBuilder.add_record
    monkeypatch.setattr(LookBuilder, "add_record", lambda self, line, one: read.append(one) or add(self, line, one))
    look_at(path, Since(1000, size, frozenset("a")))
    assert len(read) == 3
    read.clear()
    look_at(path, Since(950, None))
    assert len(read) == 3
    read.clear()
    look_at(path)
    assert len(read) == 50


def test_a_subagents_transcript_is_in_a_folder_beside_the_sessions():
    path = transcript_of_agent("/home/ada/.claude/projects/-p/5f.jsonl", "a97")
    assert path == "/home/ada/.claude/projects/-p/5f/subagents/agent-a97.jsonl"
    assert transcript_of_agent("/t/5f.jsonl", "../../x/y").startswith("/t/5f/subagents/agent-y")
    assert transcript_of_agent("/", "a") == "//subagents/agent-a.jsonl"


NO_RECORDS = ["", "\n\n", "not json\n", "{}\n", '{"type":"user","timestamp":"soon"}\n', "\0" * 100]


@pytest.mark.parametrize("content", NO_RECORDS)
def test_a_transcript_without_a_record_has_its_time_alone(tmp_path, content):
    (tmp_path / "t").write_text(content)
    assert look_at(str(tmp_path / "t"))[:4] == ((tmp_path / "t").stat().st_mtime, None, False, False)


@pytest.mark.parametrize("path", ["", "/nowhere", "/", "/dev/null/x"])
def test_without_a_transcript_nothing_is_seen(path):
    assert look_at(path) is None
    assert last_words(path) is None


@pytest.mark.parametrize("read", [look_at, last_words])
def test_a_transcript_that_is_not_a_file_blocks_no_reader(tmp_path, read):
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name in ("fifo", "socket"):
            assert read(str(tmp_path / name)) is None
    assert read("/dev/zero") is None
