"""Transcripts of other hosts: the messages in them, and how they are recognized."""

import json
import os

import pytest
from support.cases import in_one_test
from support.host_records import RECORDS, TIME, UNIX_TIME

from tailhook.hosts import NAMES, RECORDED, find_recorded_host, find_translated_host
from tailhook.hosts.reading import recognize_host, reverse_host_messages

OTHERS = [name for name in NAMES if name in RECORDS]


@pytest.fixture
def messages(tmp_path):
    """Return a function that writes lines and returns the messages in them, newest first."""

    def read(name, *lines, max_record_bytes=1 << 20, max_records=1000, start=0):
        path = tmp_path / "transcript.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        fd = os.open(path, os.O_RDONLY)
        try:
            host = find_translated_host(name)
            return list(reverse_host_messages(host, fd, start, None, max_record_bytes, max_records))
        finally:
            os.close(fd)

    return read


def written(record):
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", OTHERS)
def test_messages_are_read_newest_first(messages, name):
    _, records = RECORDS[name]
    wanted = [(*message, UNIX_TIME) for _, message in records if message is not None]
    assert messages(name, *(written(record) for record, _ in records)) == wanted[::-1]


@in_one_test("name", RECORDED)
@in_one_test("other", OTHERS)
def test_a_transcript_is_recognized_by_its_first_record(name, other):
    first, _ = RECORDS[other]
    assert find_recorded_host(name).begins_transcript(first) is (name == other)


@pytest.mark.parametrize("name", RECORDED)
def test_claude_codes_first_record_is_not_another_hosts(name):
    record = {"type": "user", "message": {"role": "user", "content": "Do the work."}, "uuid": "u", "sessionId": "s"}
    assert find_recorded_host(name).begins_transcript(record) is False


@pytest.mark.parametrize("name", RECORDED)
def test_an_open_transcript_is_recognized(tmp_path, name):
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(written(RECORDS[name][0]) + b"\n" + written({"type": "session_meta", "payload": {}}) + b"\n")
    with path.open("rb") as file:
        assert name == recognize_host(file.fileno()).NAME


@pytest.mark.parametrize("data", [b"", b"\n", b"[]\n", b"\xff\n", b'{"type":"session_meta"', b"x" * (2 << 20)])
def test_a_file_without_a_first_record_does_not_come_from_another_host(tmp_path, data):
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert recognize_host(file.fileno()) is None


def test_a_message_that_stands_there_twice_is_read_once(messages):
    first = {"id": "2", "timestamp": TIME, "type": "gemini", "content": "Done."}
    again = {**first, "toolCalls": [{"name": "edit"}]}
    assert messages("gemini", written(first), written(again)) == [(True, b"Done.", ["edit"], UNIX_TIME)]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "value", [None, 1, "", "text", [], [1], {}, {"content": 1}, {"role": "assistant", "content": {}}]
)
def test_values_of_wrong_types_are_not_a_message(messages, name, value):
    _, records = RECORDS[name]
    lines = []
    for record, _ in records:
        for key in record:
            lines.append(written({**record, key: value}))
            if isinstance(record[key], dict):
                lines += [written({**record, key: {**record[key], inner: value}}) for inner in record[key]]
    for is_agents, words, tools, at in messages(name, *lines):
        assert (type(is_agents), type(words)) == (bool, bytes)
        assert all(type(tool) is str for tool in tools)
        assert at is None or type(at) is float


@pytest.mark.parametrize("name", OTHERS)
def test_lines_that_are_not_objects_are_skipped(messages, name):
    _, records = RECORDS[name]
    last, message = records[-1]
    torn = written(last)[:-3]
    assert messages(name, written(last), b"", b"[]", b"\xff\x00", torn) == [(*message, UNIX_TIME)]


def test_a_lone_surrogate_is_kept(messages):
    (message,) = messages("copilot", b'{"type":"assistant.message","data":{"content":"\\ud800"}}')
    assert message == (True, b"\xed\xa0\x80", [], None)


def test_records_beyond_the_limits_are_not_read(messages):
    _, records = RECORDS["gemini"]
    lines = [written(record) for record, _ in records]
    newest = [(True, b"Done.", [], UNIX_TIME)]
    assert messages("gemini", *lines, max_records=1) == newest
    assert messages("gemini", *lines, start=sum(len(line) + 1 for line in lines[:-1])) == newest
    assert messages("gemini", written({**records[-1][0], "content": "x" * 500}), max_record_bytes=400) == []
