"""The last words of a session, for the board."""

import json

import pytest
from support.host import assistant
from support.host_records import RECORDS
from support.timed_records import record, write
from support.usual_secrets import SECRETS, is_shown, written

from tailhook.hosts import RECORDED
from tailhook.plates.transcript_ends import MAX_MESSAGE_CHARS, last_words


@pytest.mark.parametrize("name", RECORDED)
def test_last_words_are_read_from_other_hosts_transcripts(tmp_path, name):
    first, records = RECORDS[name]
    path = tmp_path / "host.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in (first, *(record for record, _ in records))))
    assert last_words(str(path)).strip() == "Done."
    path.write_text(f"{json.dumps(first)}\n")
    assert last_words(str(path)) is None


def test_last_words_are_not_those_that_a_second_compaction_wrote_again(tmp_path):
    old, new = (json.dumps(assistant(words, id=words)) for words in ("Old.", "New."))
    compaction = '{"type":"system","subtype":"compact_boundary"}'
    assert last_words(write(tmp_path / "t", old, compaction, new, old, compaction)) == "New."


def test_last_words_have_nothing_in_them_that_steers_a_terminal(tmp_path):
    path = write(tmp_path / "t", record("assistant", "a\x1b[31mb\u202ec\nd", 1))
    assert last_words(path) == "a\ufffd[31mb\ufffdc\nd"


def test_last_words_keep_ordinary_text_and_show_no_secret(tmp_path):
    persian = "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    text = f"{persian}, French\u00a0: 3\u202f000\n\nif x:\n\treturn 👩\u200d👧\u3000全角"
    assert last_words(write(tmp_path / "t", record("assistant", text, 1))) == text
    for name in SECRETS:
        words = f"I ran this:\n\n    {written(name)[1]}\n\nIt worked."
        found = last_words(write(tmp_path / "t", record("assistant", words, 1)))
        assert not is_shown(name, found), found
        assert found.startswith("I ran this:\n\n    ")


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_last_words_have_a_length_at_most(tmp_path, letter):
    path = write(tmp_path / "t", record("assistant", letter * (MAX_MESSAGE_CHARS + 1), 1000))
    assert last_words(path) == letter * (MAX_MESSAGE_CHARS - 2) + "\n…"
    assert (
        last_words(write(tmp_path / "t", record("assistant", letter * MAX_MESSAGE_CHARS, 1000)))
        == letter * MAX_MESSAGE_CHARS
    )
