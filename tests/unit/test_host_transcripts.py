"""Transcripts of other hosts: records as Codex 0.169.0, Gemini 0.61.0 and Copilot 1.0.102 write them, and Cursor's."""

import json
import os

import pytest

from tailhook.hook.hosts import NAMES, find_translated_host
from tailhook.hook.hosts.transcripts import join_texts, reverse_host_messages

OTHERS = NAMES[1:]
TIME = "2026-11-22T08:39:05.387Z"
UNIX_TIME = 1795336745.387


def codex_item(**item):
    return {"timestamp": TIME, "ordinal": 7, "type": "response_item", "payload": item}


def codex_text(role, kind, text):
    return codex_item(type="message", id="msg_1", role=role, content=[{"type": kind, "text": text}])


# Of each host: the first record, and then records with the messages that they give, oldest first.
RECORDS = {
    "codex": (
        {"timestamp": TIME, "ordinal": 0, "type": "session_meta", "payload": {"session_id": "s", "cwd": "/p"}},
        [
            (codex_text("developer", "input_text", "<skills_instructions>"), None),
            (codex_text("user", "input_text", "<environment_context>\n  <cwd>/p</cwd>"), None),
            (codex_text("user", "input_text", "# AGENTS.md instructions for /p\n\nBe brief."), None),
            (codex_text("user", "input_text", "Do the work."), (False, b"Do the work.", [])),
            (codex_item(type="function_call", name="exec_command", arguments="{}"), (True, b"", ["exec_command"])),
            (codex_item(type="custom_tool_call", name="apply_patch", input=""), (True, b"", ["apply_patch"])),
            (codex_item(type="function_call_output", output="assistant"), None),
            ({"timestamp": TIME, "type": "event_msg", "payload": {"type": "task_complete", "role": "assistant"}}, None),
            (codex_text("user", "input_text", '<hook_prompt hook_run_id="stop:2">[ITERATION 2/10]'), None),
            (codex_text("assistant", "output_text", "  Done.\n"), (True, b"  Done.\n", [])),
        ],
    ),
    "gemini": (
        {"sessionId": "s", "projectHash": "76f3", "startTime": TIME, "lastUpdated": TIME, "kind": "main"},
        [
            ({"$set": {"messages": [{"type": "user", "content": [{"text": "Not a message."}]}]}}, None),
            ({"id": "0", "timestamp": TIME, "type": "user", "content": [{"text": "<session_context>\nToday"}]}, None),
            (
                {"id": "1", "timestamp": TIME, "type": "user", "content": [{"text": "Do the work."}]},
                (False, b"Do the work.", []),
            ),
            ({"id": "2", "timestamp": TIME, "type": "gemini", "content": "", "thoughts": []}, None),  # twice: see below
            (
                {"id": "2", "timestamp": TIME, "type": "gemini", "content": "", "toolCalls": [{"name": "run_shell"}]},
                (True, b"", ["run_shell"]),
            ),
            ({"id": "3", "timestamp": TIME, "type": "user", "content": [{"functionResponse": {"id": "r"}}]}, None),
            ({"$set": {"lastUpdated": TIME}}, None),
            ({"id": "4", "timestamp": TIME, "type": "gemini", "content": "Done."}, (True, b"Done.", [])),
        ],
    ),
    "cursor": (
        {"role": "user", "message": {"content": [{"type": "text", "text": "Do the work."}]}},
        [
            (
                {"role": "user", "message": {"content": [{"type": "text", "text": "Do the work."}]}, "timestamp": TIME},
                (False, b"Do the work.", []),
            ),
            (
                {
                    "role": "assistant",
                    "timestamp": TIME,
                    "message": {
                        "content": [
                            {"type": "text", "text": "Done."},
                            {"type": "tool_use", "name": "Shell", "input": {}},
                        ]
                    },
                },
                (True, b"Done.", ["Shell"]),
            ),
        ],
    ),
    "copilot": (
        {"type": "session.start", "data": {"sessionId": "s", "producer": "copilot-agent"}},
        [
            ({"type": "hook.start", "data": {"hookType": "userPromptSubmitted"}, "id": "0", "timestamp": TIME}, None),
            (
                {"type": "user.message", "data": {"content": "Do the work."}, "id": "1", "timestamp": TIME},
                (False, b"Do the work.", []),
            ),
            ({"type": "system.message", "data": {"role": "system", "content": "You are …"}, "id": "2"}, None),
            (
                {
                    "type": "assistant.message",
                    "data": {"content": "", "toolRequests": [{"name": "bash", "arguments": {}}]},
                    "id": "3",
                    "timestamp": TIME,
                },
                (True, b"", ["bash"]),
            ),
            ({"type": "assistant.turn_end", "data": {"turnId": "0"}, "id": "4", "timestamp": TIME}, None),
            (
                {
                    "type": "assistant.message",
                    "data": {"content": "Done.", "toolRequests": []},
                    "id": "5",
                    "timestamp": TIME,
                },
                (True, b"Done.", []),
            ),
        ],
    ),
}


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


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("other", OTHERS)
def test_a_transcript_is_recognized_by_its_first_record(name, other):
    first, _ = RECORDS[other]
    assert find_translated_host(name).begins_transcript(first) is (name == other)


@pytest.mark.parametrize("name", OTHERS)
def test_claude_codes_first_record_is_not_another_hosts(name):
    record = {"type": "user", "message": {"role": "user", "content": "Do the work."}, "uuid": "u", "sessionId": "s"}
    assert find_translated_host(name).begins_transcript(record) is False


def test_a_message_that_stands_there_twice_is_read_once(messages):
    first = {"id": "2", "timestamp": TIME, "type": "gemini", "content": "Done."}
    again = {**first, "toolCalls": [{"name": "edit"}]}
    assert messages("gemini", written(first), written(again)) == [(True, b"Done.", ["edit"], UNIX_TIME)]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "value", [None, 1, "", "text", [], [1], {}, {"content": 1}, {"role": "assistant", "content": {}}]
)
def test_values_of_wrong_types_are_no_message(messages, name, value):
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
def test_lines_that_are_no_objects_are_skipped(messages, name):
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


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("one", "one"),
        ([{"text": "one"}, {"text": " "}, {"text": "two"}], "one\ntwo"),
        ([{"text": 1}, "two", None, {"type": "image"}], ""),
        (None, ""),
        (7, ""),
    ],
)
def test_the_texts_of_a_message_are_joined_by_line_breaks(content, text):
    assert join_texts(content) == text
