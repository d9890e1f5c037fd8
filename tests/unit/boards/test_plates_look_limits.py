"""How far the health check reads a transcript, and how often."""

import json
import os

import pytest
from support.host import assistant
from support.timed_records import record, write

from tailhook.hook.event import MAX_TRANSCRIPT_BYTES
from tailhook.hook.payload import MAX_RECORD_BYTES, MAX_RECORDS
from tailhook.plates import looks
from tailhook.plates.looks import MAX_DECODED_BYTES, LookCache, Since, look_at
from tailhook.plates.transcript_ends import last_words


def padded(path, number, *records):
    """Write records, and behind them so many bytes in lines that are not records."""
    write(path, *records)
    with path.open("ab") as out:
        out.write((b"x" * 999 + b"\n") * (number // 1000) + b"x" * (number % 1000 - 1) + b"\n" * (number % 1000 > 0))
    return str(path)


@pytest.mark.parametrize(("beyond", "at"), [(0, 1000), (1, None)])
def test_a_transcript_is_read_as_far_back_as_a_hook_reads_it(tmp_path, beyond, at):
    line = record("assistant", "Done.", 1000)
    path = padded(tmp_path / "t", MAX_TRANSCRIPT_BYTES - len(line) - 1 + beyond, line)
    assert look_at(path).at == at
    assert last_words(path) == ("Done." if at else None)


@pytest.mark.parametrize(("beyond", "at"), [(0, 2000), (1, 1000)])
def test_a_line_that_a_hook_passes_over_is_passed_over(tmp_path, beyond, at):
    own = record("user", "X", 2000)
    long = own.replace("X", "x" * (MAX_RECORD_BYTES - len(own) + 1 + beyond))
    path = write(tmp_path / "t", record("assistant", "Done.", 1000), long)
    assert look_at(path).at == at


@pytest.mark.parametrize(("beyond", "is_over"), [(0, True), (1, False)])
def test_of_a_long_record_it_is_not_known_that_it_ends_the_turn(tmp_path, beyond, is_over):
    ended = assistant("X", at=1000)
    ended["message"]["stop_reason"] = "end_turn"
    text = json.dumps(ended)
    path = write(tmp_path / "t", text.replace("X", "x" * (MAX_DECODED_BYTES - len(text) + 1 + beyond)))
    look = look_at(path)
    assert (look.at, look.interrupted, look.turn_over) == (1000, False, is_over)


@pytest.fixture
def looked(monkeypatch):
    """Count the looks at transcripts."""
    paths = []
    monkeypatch.setattr(looks, "look_at", lambda path, since: paths.append(path) or look_at(path, since))
    return paths


def test_a_transcript_is_looked_at_again_only_after_it_has_changed(tmp_path, looked):
    path = write(tmp_path / "t", record("assistant", "One.", 1000))
    looks = LookCache()
    assert looks(path) == looks(path) == look_at(path)
    assert looked == [path]
    with open(path, "a") as out:
        out.write(record("assistant", "Two.", 2000) + "\n")
    assert looks(path).at == 2000
    os.utime(path, (5, 5))
    assert looks(path).changed == 5
    size, other = os.path.getsize(path), tmp_path / "other"
    os.truncate(write(other, record("assistant", "Another.", 3000)), size)
    os.utime(other, (5, 5))
    os.replace(other, path)  # the same size and time, another inode
    assert looks(path).at == 3000
    assert len(looked) == 4
    looks(path)
    assert len(looked) == 4


def test_a_transcript_that_is_gone_and_comes_again_is_looked_at(tmp_path, looked):
    looks, path = LookCache(), str(tmp_path / "t")
    assert looks(path) is None
    assert looked == []
    write(tmp_path / "t", record("assistant", "One.", 1000))
    assert looks(path).at == 1000
    os.unlink(path)
    assert looks(path) is None
    assert looks("a\0b") is None


def test_what_is_remembered_of_transcripts_is_what_is_asked_for(tmp_path, looked):
    one, two = (write(tmp_path / name, record("assistant", "One.", 1000)) for name in "ab")
    looks = LookCache()
    looks(one)
    looks(two)
    looks.forget_others()
    looks(one)
    looks.forget_others()
    assert [path for path, _ in looks.seen] == [one]
    assert looked == [one, two]


def test_a_transcript_is_looked_at_again_if_another_event_has_come(tmp_path, looked):
    path = write(tmp_path / "t", record("assistant", "One.", 1000))
    looks = LookCache()
    assert not looks(path, Since(1000.0, size=os.path.getsize(path))).has_grown
    assert looks(path, Since(1000.0, size=0)) is not None
    assert len(looked) == 2


def test_more_empty_lines_than_a_hook_reads_are_passed_over(tmp_path):
    line = record("assistant", "Done.", 1000)
    for number, at in ((MAX_RECORDS - 1, 1000), (MAX_RECORDS, None)):
        path = write(tmp_path / "t", record("user", "Please.", 500), line)
        with open(path, "ab") as out:
            out.write(b"\n" * number)
        assert look_at(path).at == at
        assert last_words(path) == ("Done." if at else None)


def test_the_result_of_another_tool_is_recognised_however_large(tmp_path):
    call = assistant("", at=1000)
    call["message"]["content"] = [{"type": "tool_use", "id": "asked", "name": "AskUserQuestion", "input": {}}]
    other = {"type": "tool_result", "tool_use_id": "read", "content": '"tool_use_id":"asked" ' * MAX_DECODED_BYTES}
    result = {"type": "user", "timestamp": call["timestamp"], "message": {"role": "user", "content": [other]}}
    path = write(tmp_path / "t", json.dumps(call), json.dumps(result))
    look = look_at(path, Since(1000.0, 0, frozenset(("asked",))))
    assert look.pending == {"asked"}
    assert not look.ended
