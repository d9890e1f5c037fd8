"""Whole messages of a transcript."""

import io
import json
from datetime import UTC, datetime

import pytest
from support.corpora import transcript_paths

import tailhook
from tailhook._core import reverse_messages
from tailhook.transcripts import transcript
from tailhook.transcripts.messages import MAX_MESSAGE_GAP_BYTES
from tailhook.transcripts.records import Usage


def said(name, text, **members):
    blocks = [{"type": "text", "text": text}] if isinstance(text, str) else [text]
    usage = members.pop("usage", None)
    message = {"id": name, "role": "assistant", "model": "m-1", "content": blocks, "usage": usage}
    return {"type": "assistant", "message": message, **members}


def asked(text, **members):
    return {"type": "user", "message": {"role": "user", "content": text}, **members}


def messages(*records):
    file = io.BytesIO(b"".join(json.dumps(record).encode() + b"\n" for record in records))
    return list(transcript.open(file).messages())


def shown(*records):
    return [(message.id, message.role, message.text) for message in messages(*records)]


def use(name):
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}}


def test_the_records_of_a_message_are_one_message_although_others_are_between_them():
    result = asked([{"type": "tool_result", "tool_use_id": "t1", "content": "x"}])
    found = messages(
        asked("go"),
        said("a", "one", timestamp="2026-01-02T03:04:06Z", usage={"output_tokens": 1}),
        said("a", use("t1"), timestamp="2026-01-02T03:04:05Z", usage={"output_tokens": 40, "input_tokens": 2}),
        result,
        {"type": "system", "subtype": "api_error"},
        said("a", " \n"),
        said("a", "two", timestamp="2026-01-02T03:04:09Z", usage={"output_tokens": 40, "input_tokens": 3}),
        said("b", "end"),
    )
    assert [(one.id, one.role, one.text) for one in found] == [
        (None, "user", "go"),
        ("a", "assistant", "one\ntwo"),
        (None, "user", ""),
        ("b", "assistant", "end"),
    ]
    first = found[1]
    assert [tool.input["command"] for tool in first.tools] == ["t1"]
    assert first.start == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert first.end == datetime(2026, 1, 2, 3, 4, 9, tzinfo=UTC)
    assert first.usage == Usage(3, 40, 0, 0)
    assert (first.model, len(first.records)) == ("m-1", 4)
    assert (found[3].start, found[3].end, found[3].usage) == (None, None, None)
    assert repr(first).startswith("TranscriptMessage(id='a', role='assistant', offset=")


def test_records_without_an_id_are_messages_by_themselves():
    flat = {"type": "assistant", "content": "one"}
    assert shown(flat, flat, {"type": "human", "content": "go"}) == [
        (None, "assistant", "one"),
        (None, "assistant", "one"),
        (None, "human", "go"),
    ]
    assert shown(said(5, "number"), said(5, "again")) == [(None, "assistant", "number"), (None, "assistant", "again")]


def test_a_line_that_is_repeated_is_one_record_of_its_message():
    first, second = said("a", "one", uuid="u1"), said("a", use("t1"), uuid="u2")
    (found,) = messages(first, first, second, said("a", "two", uuid="u3"), second, first, said("a", "one"))
    assert (found.text, [tool.id for tool in found.tools]) == ("one\ntwo\none", ["t1"])
    assert [record.uuid for record in found.records] == ["u1", "u2", "u3", None]


REQUESTS = [("r1", "r2"), ("r1", "r1"), ("r1", None), (None, "r1"), (None, None), ("", "r1")]


@pytest.mark.parametrize("requests", REQUESTS, ids=str)
def test_library_hooks_and_scan_know_a_message_by_the_same_ids(tmp_path, requests):
    """Under load, a host gives two responses one message id (Claude Code 2.1.332)."""
    path = tmp_path / "s.jsonl"
    records = [
        said("same", f"text {number}", requestId=request, uuid=f"u{number}", sessionId="s", usage={"output_tokens": 1})
        for number, request in enumerate(requests)
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    found = messages(*records)
    (session,) = tailhook.scan(path, "sessions").rows()
    assert len(found) == session.messages == len(list(tailhook.scan(path, "usage").rows()))
    newest = next(message for message in found if message.records[-1].text == f"text {len(requests) - 1}")
    with tailhook.open(path) as opened:
        assert opened.last_message() == newest.text


def test_a_prompt_that_a_compaction_wrote_again_was_typed_once():
    first = [asked("Fix it.", uuid="u1"), said("m", "Fixed.", uuid="u2", requestId="r")]
    others = [said(f"o{number}", "x" * 1000, uuid=f"v{number}") for number in range(MAX_MESSAGE_GAP_BYTES // 1000)]
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "u3"}
    found = messages(*first, *others, boundary, *first, {**boundary, "uuid": "u4"}, asked("Thanks.", uuid="u5"))
    kept = [message.text for message in found if not message.text.startswith("x")]
    assert kept == ["Fix it.", "Fixed.", "Thanks."]


def test_a_message_that_is_repeated_much_later_is_another_one():
    filler = asked("x" * (MAX_MESSAGE_GAP_BYTES + 1))
    assert [name for name, _, _ in shown(said("a", "1"), said("b", "2"), filler, said("a", "1"))] == [
        "a",
        "b",
        None,
        "a",
    ]


def test_a_huge_result_between_two_records_of_a_message_does_not_part_them():
    filler = asked("x" * (MAX_MESSAGE_GAP_BYTES + 1))
    assert [text for name, _, text in shown(said("a", "1"), filler, said("a", "2"), said("b", "3")) if name] == [
        "1\n2",
        "3",
    ]


def test_a_sub_agent_in_the_same_file_does_not_end_the_agents_message():
    filler = asked("x" * (MAX_MESSAGE_GAP_BYTES + 1), isSidechain=True)
    inner = said("s", "inner", isSidechain=True)
    assert [(name, text) for name, _, text in shown(said("a", "1"), inner, filler, said("a", "2")) if name] == [
        ("a", "1\n2"),
        ("s", "inner"),
    ]


def test_messages_come_in_the_order_of_their_first_records_and_lose_no_record():
    records = [said(f"m{n % 7}", str(n)) for n in range(50)]
    found = messages(*records)
    offsets = [record.offset for message in found for record in message.records]
    assert len(offsets) == 50
    starts = [message.records[0].offset for message in found]
    assert starts == sorted(starts)


@pytest.mark.parametrize("record", [{}, {"type": "assistant"}, {"type": "user", "message": 5}, {"type": "new-type"}])
def test_records_without_anything_raise_nothing(record):
    for message in messages(record):
        assert (message.text, message.tools, message.usage, message.model, message.start) == ("", [], None, None, None)


def test_messages_of_real_transcripts_end_with_the_last_message_and_have_every_record():
    for path in transcript_paths():
        with transcript.open(path) as session:
            found = list(session.messages())
            spoken = [record.offset for record in session if record.role is not None]
            assert sorted(record.offset for one in found for record in one.records) == spoken
            ids = {record.message_id for record in session if record.role == "assistant"}
            assert sum(one.role == "assistant" for one in found) == len(ids)
            own = [one for one in found if one.role == "assistant" and one.text and not is_foreign(one.records[0])]
            assert own[-1].text == session.last_message()


def is_foreign(record):
    return record.is_sidechain or record.is_meta or record.is_api_error or record.is_compact_summary


def message_line(number, uuid=None, kind="assistant", second=None):
    fields = asked(f"words {number}") if kind == "user" else said(f"m{number}", f"words {number}")
    time = f"2026-01-02T03:{(second or number) // 60:02}:{(second or number) % 60:02}Z"
    return {**fields, "uuid": uuid or f"u{number}", "timestamp": time}


COMPACTED = {"type": "system", "subtype": "compact_boundary", "uuid": "c"}
OLD = [message_line(number) for number in range(1, 60)]
NEW = [message_line(number) for number in range(100, 120)]
LATE = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "Wait."}, "uuid": "q"}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([*OLD, COMPACTED, *NEW], False),
        ([*OLD, *OLD[30:], COMPACTED, *NEW], True),  # the block's beginning is among the newest 50
        ([*OLD, *OLD[5:], COMPACTED, *NEW], True),  # it is not: the oldest of them stands before, too
        ([*OLD, COMPACTED, *OLD[40:], *NEW], True),  # as when a compacted session is resumed
        ([*OLD, *OLD[30:], *NEW], False),  # without a compaction, no message is written again
        ([*OLD, COMPACTED, {**LATE, "timestamp": "2026-01-02T03:00:01Z"}, *NEW], False),
        ([{"type": "file-history-snapshot", "messageId": "u19"}, *OLD[10:], COMPACTED, *NEW], False),
        ([*OLD, COMPACTED, *({**record, "timestamp": None} for record in NEW)], True),
    ],
)
@pytest.mark.parametrize("filler", [0, 100, 70_000])
def test_whether_a_message_may_stand_twice_is_seen_while_messages_are_read(tmp_path, records, expected, filler):
    """Also if the original is some blocks of 64 KiB before the copy."""
    path = tmp_path / "session.jsonl"
    lines = [json.dumps(record, separators=(",", ":")) for record in records]
    lines.insert(len(OLD) // 2, json.dumps({"type": "progress", "data": "x" * filler}))
    path.write_text("\n".join(lines) + "\n")
    with path.open("rb") as file:
        found = reverse_messages(file.fileno())
        for _ in range(50):
            next(found)
        assert found.may_repeat(file.fileno(), 1 << 26) is expected


@pytest.mark.parametrize("place", [*range(65_480, 65_560), 200_000])
def test_the_uuid_of_a_copy_is_found_wherever_its_original_stands(tmp_path, place):
    path = tmp_path / "session.jsonl"
    copy = json.dumps(message_line(1), separators=(",", ":"))
    boundary = json.dumps(COMPACTED, separators=(",", ":"))
    start = json.dumps({"type": "progress", "data": ""}, separators=(",", ":"))
    filler = start[:-2] + "x" * (place - len(start) - 1) + '"}'
    path.write_text("\n".join([filler, copy, boundary, copy]) + "\n")
    with path.open("rb") as file:
        found = reverse_messages(file.fileno(), path.stat().st_size - len(copy) - len(boundary) - 2)
        assert [words for _, words, _ in found] == [b"words 1"]
        assert found.may_repeat(file.fileno(), 1 << 26)
        assert not found.may_repeat(file.fileno(), 10)  # bytes before the message
