"""The newest message, as the hooks see it."""

import io
import json
import os
import subprocess
import sys

import pytest
from support.cases import in_one_test

from tailhook._core import last_message, reverse_messages


def assistant(text=None, /, message="m1", **members):
    blocks = [] if text is None else [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": message, "role": "assistant", "content": blocks}} | members


def user(text="go on", **members):
    return {"type": "user", "message": {"role": "user", "content": text}} | members


def transcript(*records):
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    return io.BytesIO(b"".join(line + b"\n" for line in lines))


def outcome(*records, **bounds):
    return joined(last_message(transcript(*records), **bounds))


def joined(answer):
    """Return (outcome, text); the text is None if there is none."""
    outcome, texts = answer
    return outcome, b"\n".join(text for text, _ in texts).decode() if texts else None


def test_the_newest_text_is_found():
    assert outcome(assistant("old"), user(), assistant("new", message="m2"), user()) == ("text", "new")


def test_all_texts_of_the_message_are_joined_in_file_order():
    assert outcome(
        assistant("other", message="m0"), assistant("one"), assistant(), assistant(" \n"), user(), assistant("two")
    ) == ("text", "one\ntwo")


def test_two_responses_with_one_message_id_and_different_request_ids_are_two_messages():
    records = assistant("DONE", requestId="r1"), user(), assistant("Not finished.", requestId="r2")
    assert outcome(*records) == ("text", "Not finished.")
    assert outcome(*records[:2], assistant("Still.", requestId="r1")) == ("text", "DONE\nStill.")


@pytest.mark.parametrize("missing", [{}, {"requestId": ""}, {"requestId": None}, {"requestId": 5}])
def test_a_record_without_a_request_id_belongs_to_its_message_id(missing):
    assert outcome(assistant("one", requestId="r1"), assistant("two", **missing)) == ("text", "one\ntwo")
    assert outcome(assistant("one", **missing), assistant("two", requestId="r1")) == ("text", "one\ntwo")


def test_text_blocks_of_one_line_are_joined_and_blank_ones_left_out():
    record = assistant()
    record["message"]["content"] = [{"type": "text", "text": text} for text in ("one", "\n\n", "", "two\n")]
    assert outcome(record) == ("text", "one\ntwo\n")


def test_a_newer_message_without_text_does_not_hide_the_text():
    assert outcome(assistant("said"), assistant(message="m2"), assistant("  ", message="m3")) == ("text", "said")


@pytest.mark.parametrize(("lines", "expected"), [(249_000, "text"), (251_000, "unknown")])
@pytest.mark.parametrize("line", [b"", b"{}", b'{"type":"mode"}'])
def test_beyond_the_lines_that_are_read_nothing_is_known(line, lines, expected):
    """The cost of a stop does not grow with their number, however short they are."""
    source = transcript(assistant("said"), *[line] * lines)
    assert last_message(source, max_lines=250_000)[0] == expected
    assert last_message(source)[0] == "text"
    assert len(list(reverse_messages(source, max_lines=250_000))) == (expected == "text")


def test_the_message_ends_at_another_id_even_when_its_own_returns():
    assert outcome(assistant("far"), assistant(message="m2"), assistant("near")) == ("text", "near")


def test_what_is_not_the_assistants_own_does_not_count():
    others = [{"isSidechain": True}, {"isMeta": True}, {"isApiErrorMessage": True}, {"isCompactSummary": True}]
    assert outcome(assistant("own"), *(assistant("not", message="x", **flag) for flag in others)) == ("text", "own")
    nested = {"type": "progress", "data": assistant("nested"), "message": {"role": "assistant", "content": "no"}}
    assert outcome(assistant("own"), nested, user("own?")) == ("text", "own")
    between = [assistant("one"), *(assistant("not", message="x", **flag) for flag in others), assistant("two")]
    assert outcome(*between) == ("text", "one\ntwo")


def test_flat_records_and_those_without_an_id_are_messages_by_themselves():
    flat = [{"type": "assistant", "content": text} for text in ("one", "two")]
    assert outcome(*flat) == ("text", "two")
    nameless = [{"type": "assistant", "message": {"content": text}} for text in ("one", "two")]
    assert outcome(*nameless) == ("text", "two")
    assert outcome(assistant("own"), flat[0], assistant("mine")) == ("text", "mine")


def test_without_any_text_it_reports_what_there_was():
    assert outcome() == ("no_assistant", None)
    assert outcome(user(), assistant("x", isSidechain=True)) == ("no_assistant", None)
    assert outcome(user(), assistant(), assistant(" ")) == ("no_text", None)
    assert outcome({"type": "assistant"}) == ("no_text", None)
    assert outcome(b'{"type":"assistant"}') == ("no_text", None)


@pytest.mark.parametrize("bad", [b"", b"{", b"\0" * 100, b"garbage", b'{"type":"assistant","message":{"content":"torn'])
def test_bad_lines_hide_nothing_around_them(bad):
    assert outcome(assistant("one"), bad, assistant("two"), bad) == ("text", "one\ntwo")


def test_a_record_on_a_bad_line_counts():
    line = b'{"type":"user","message":{"con' + json.dumps(assistant("here")).encode()
    assert outcome(line, user()) == ("text", "here")


@in_one_test("size", [*range(80), 200, 1000])
@in_one_test("letter", range(10))
def test_an_assistant_is_found_wherever_the_word_stands_and_however_it_is_spelt(size, letter):
    word = "".join(f"\\u{ord(c):04x}" if i == letter else c for i, c in enumerate("assistant"))
    first = f'{{"type":"{word}","content":"{"x" * size}"}}'.encode()
    last = f'{{"content":"x{"as" * size}","type":"{word}"}}'.encode()
    assert outcome(first, b'{"type":"user"}') == (("text", "x" * size) if size else ("no_text", None))
    assert outcome(first, last) == ("text", "x" + "as" * size)


NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


@in_one_test(
    ("timestamp", "seconds"),
    [
        ("2026-01-01T12:00:00Z", NOON),
        ("2026-01-01T12:00:00.25Z", NOON + 0.25),
        ("2026-01-01t11:59:59z", NOON - 1),
        ("2026-01-01 11:59:59", NOON - 1),
        ("2026-01-01T14:00:00+02:00", NOON),
        ("2026-01-01T06:30:00-05:30", NOON),
        ("2024-02-29T00:00:00Z", 1_709_164_800),
        ("2026-03-01T00:00:00Z", 1_772_323_200),
        ("2026-13-01T00:00:00Z", None),
        ("1999-01-01", 915_148_800),
        ("yesterday", None),
        ("", None),
        (1_000_000_000, None),
        (None, None),
    ],
)
def test_each_text_has_the_time_of_its_record(timestamp, seconds):
    assert last_message(transcript(assistant("said", timestamp=timestamp))) == ("text", [(b"said", seconds)])


def test_the_texts_of_a_message_have_times_of_their_own():
    one = assistant("one", timestamp="2026-01-01T11:00:00Z")
    two = assistant("two", timestamp="2026-01-01T12:00:00Z")
    assert last_message(transcript(one, two)) == ("text", [(b"one", NOON - 3600), (b"two", NOON)])


def test_what_lies_beyond_the_bound_is_unknown():
    file = transcript(assistant("far"), user("x" * 10_000))
    assert joined(last_message(file, max_bytes=10_000)) == ("unknown", None)
    assert joined(last_message(file, max_bytes=11_000)) == ("text", "far")
    assert joined(last_message(transcript(assistant("cut" * 100), assistant()), max_bytes=300)) == ("unknown", None)


def test_a_line_passed_over_makes_older_text_unknown():
    long = user("x" * 1000)
    assert outcome(assistant("old"), long, max_line=1000) == ("unknown", None)
    assert outcome(long, max_line=1000) == ("unknown", None)
    assert outcome(long, assistant("new"), max_line=1000) == ("text", "new")
    assert outcome(assistant("new" * 400), max_line=1000) == ("unknown", None)


def test_a_file_that_is_overwritten_meanwhile_is_unknown():
    class Shrinking(io.BytesIO):
        def readinto(self, buffer):
            count = super().readinto(buffer)
            self.truncate(100)
            return count

    file = Shrinking(transcript(assistant("old"), user("x" * 200_000)).getvalue())
    assert joined(last_message(file)) == ("unknown", None)


def test_a_descriptor_will_do(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + transcript(assistant("said")).getvalue().rstrip() + b"\r\n")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert joined(last_message(descriptor)) == ("text", "said")
    finally:
        os.close(descriptor)


def test_memory_is_bounded_by_twice_the_line_that_is_read(tmp_path):
    pytest.importorskip("resource")
    size = 15_000_000
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(b'{"type":"user"}\n' * 1_000_000 + json.dumps(assistant("é\n" + "x" * size)).encode() + b"\n")
    program = (
        "import resource, sys; from tailhook._core import last_message, reverse_messages;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "file = open(sys.argv[1], 'rb', buffering=0);"
        "outcome, [(text, time)] = last_message(file);"
        "print(len(text), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, check=True, text=True)
    length, kibibytes = map(int, done.stdout.split())
    assert length == size + 3  # é and the newline
    assert kibibytes * 1024 < 2 * size + (2 << 20)
