"""Following a transcript while it is written."""

import gzip
import io
import json
import os
import threading
from itertools import islice
from random import Random

import pytest
from support.host import HANGS_S
from support.host_records import RECORDS
from support.range_server import served

from tailhook._core import forward_lines
from tailhook.errors import SourceError
from tailhook.transcripts import following, transcript


class Pauses(threading.Event):
    """What a follower waits for between two looks at its file; counts how often it has found nothing new."""

    def __init__(self):
        super().__init__()
        self.changed = threading.Condition()
        self.number = 0

    def wait(self, timeout=None):
        with self.changed:
            self.number += 1
            self.changed.notify_all()
        return super().wait(timeout)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.following.FOLLOW_INTERVAL_S", 0.005)
    monkeypatch.setattr("tailhook.transcripts.following.Event", Pauses)


def line(number):
    return json.dumps({"type": "user", "n": number, "message": {"content": "x" * (number % 50)}}).encode() + b"\n"


def numbers(records):
    return [record.json()["n"] for record in records]


class Reader(threading.Thread):
    """Follows a transcript in a thread of its own, and keeps the numbers of its records."""

    def __init__(self, source):
        super().__init__()
        self.session = transcript.open(source)
        self.records = self.session.follow()
        self.found = []
        self.error = None
        self.start()

    @property
    def pauses(self):
        return self.session._followers[-1]._stopped

    def run(self):
        try:
            for record in self.records:
                self.found.append(record.json()["n"])
        except Exception as error:
            self.error = error
            with self.pauses.changed:
                self.pauses.changed.notify_all()

    def wait(self, wanted):
        """Wait until it has found these records."""
        with self.pauses.changed:
            self.pauses.changed.wait_for(lambda: self.found == wanted or self.error, HANGS_S)
        assert self.found == wanted
        assert self.error is None

    def looks(self):
        """Wait until it has looked at the file again, from the beginning of a look to its end, and found nothing."""
        with self.pauses.changed:
            number = self.pauses.number
            assert self.pauses.changed.wait_for(lambda: self.pauses.number > number + 1, HANGS_S)

    def close(self):
        self.session.close()
        self.join(HANGS_S)
        assert not self.is_alive()
        assert self.error is None


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(line(0) + line(1))
    return path


@pytest.fixture
def reader(path):
    reader = Reader(path)
    yield reader
    reader.close()


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def test_records_come_as_they_are_written(reader, path):
    reader.wait([0, 1])
    append(path, line(2))
    reader.wait([0, 1, 2])
    append(path, line(3) + line(4))
    reader.wait([0, 1, 2, 3, 4])


def test_a_record_that_is_written_again_is_given_once_and_again_in_a_new_file(reader, path):
    def known(number):
        return line(number).replace(b"{", b'{"uuid": "u%d", ' % number, 1)

    append(path, known(2) + known(3))
    reader.wait([0, 1, 2, 3])
    append(path, known(2) + known(3) + known(4))
    reader.wait([0, 1, 2, 3, 4])
    path.write_bytes(known(2))
    reader.wait([0, 1, 2, 3, 4, 2])


def test_a_torn_line_waits_until_it_is_whole(reader, path):
    whole = line(2)
    for byte in (whole[at : at + 9] for at in range(0, len(whole), 9)):
        append(path, byte)
        reader.looks()
    reader.wait([0, 1, 2])
    append(path, b'{"type":"user","n":')
    reader.looks()
    append(path, b"3" + b"\n" + line(4))
    reader.wait([0, 1, 2, 4])  # the torn line is not JSON; no other line is lost


def test_a_whole_object_is_given_before_its_newline_and_once(reader, path):
    append(path, line(2).rstrip())
    reader.wait([0, 1, 2])
    append(path, b"\r\n" + line(3).rstrip())
    reader.wait([0, 1, 2, 3])
    append(path, line(4).rstrip())  # two records joined
    reader.wait([0, 1, 2, 3, 4])
    append(path, b"\n" + line(5))
    reader.wait([0, 1, 2, 3, 4, 5])


def test_a_truncated_file_is_read_again_from_its_beginning(reader, path):
    reader.wait([0, 1])
    path.write_bytes(line(7))
    reader.wait([0, 1, 7])
    os.truncate(path, 0)
    reader.looks()
    append(path, line(8))
    reader.wait([0, 1, 7, 8])


def test_a_file_that_is_overwritten_with_as_many_bytes_or_more_is_read_again(reader, path):
    reader.wait([0, 1])
    path.write_bytes(line(5) + line(6) + line(7))
    reader.wait([0, 1, 5, 6, 7])


def test_a_file_that_replaces_another_is_read_from_its_beginning_after_the_rest_of_the_old_one(reader, path):
    reader.wait([0, 1])
    new = path.with_name("new")
    new.write_bytes(line(10) + line(11))
    append(path, line(2))
    new.replace(path)
    reader.wait([0, 1, 2, 10, 11])
    append(path, line(12))
    reader.wait([0, 1, 2, 10, 11, 12])


def test_a_transcript_reads_the_file_that_its_follower_has_moved_on_to(path):
    first, records = RECORDS["codex"]
    new = path.with_name("new")
    new.write_text(json.dumps(first) + "\n" + json.dumps(records[-1][0]) + "\n")
    with transcript.open(path) as session:
        assert session.host == "claude-code"
        for number, record in enumerate(session.follow()):
            if number == 1:
                old = iter(session)
                new.replace(path)
            if number == 3:
                newest = record
                break
        assert session.host == "codex"
        assert session.at(newest.offset).text == session.last_message() == newest.text
        assert len(list(session)) == 2
        assert numbers(old) == [0, 1]
    path.write_bytes(line(0))
    with transcript.open(path) as session:
        assert session.host == "claude-code"
        for number, _ in enumerate(session.follow()):
            if number == 0:
                path.write_text(json.dumps(first) + "\n")
            if number == 1:
                break
        assert session.host == "codex"


def test_two_followers_and_their_transcript_move_on_to_one_file(path):
    with transcript.open(path) as session:
        both = [session.follow(), session.follow()]
        assert [numbers(islice(one, 2)) for one in both] == [[0, 1]] * 2
        path.with_name("new").write_bytes(line(2))
        path.with_name("new").replace(path)
        assert [numbers(islice(one, 1)) for one in both] == [[2]] * 2
        assert numbers(session) == [2]
        for one in both:
            one.close()


@pytest.fixture
def reads(monkeypatch):
    """Return a list of the bytes of each read of a follower, and of the offset of each search for lines."""
    found = []

    def read(self, offset, size):
        found.append(("bytes", size))
        return original(self, offset, size)

    def search(file, start, end):
        found.append(("lines", start))
        return forward_lines(file, start, end)

    original = following.Follower._read
    monkeypatch.setattr(following.Follower, "_read", read)
    monkeypatch.setattr(following, "forward_lines", search)
    return found


def test_a_torn_line_is_not_read_again_until_the_file_changes_and_then_only_what_is_new(path, reads):
    torn = line(2)[:-4] + b"x" * 3_000_000
    path.write_bytes(line(0) + line(1) + torn)
    reader = Reader(path)
    reader.wait([0, 1])
    for _ in range(5):
        append(path, b"y" * 1000 + b"} z")
        reader.looks()
    reader.wait([0, 1])
    assert [what for what, _ in reads].count("lines") == 1
    assert sum(size for what, size in reads if what == "bytes") < 100_000
    append(path, line(2)[-4:] + line(3))
    reader.wait([0, 1, 2, 3])
    reader.close()


def test_a_torn_line_that_is_overwritten_in_place_is_read_again(path):
    whole = line(2).rstrip()
    path.write_bytes(line(0) + line(1) + b"#" * len(whole))
    reader = Reader(path)
    reader.wait([0, 1])
    reader.looks()
    with path.open("r+b") as file:
        file.seek(len(line(0) + line(1)))
        file.write(whole)
    reader.wait([0, 1, 2])
    with path.open("r+b") as file:
        file.seek(len(line(0) + line(1)))
        file.write(whole + b"\n" + line(3)[:9])
        reader.looks()
        file.write(line(3)[9:])
    reader.wait([0, 1, 2, 3])
    reader.close()


def test_a_file_that_is_removed_and_made_again_is_followed(reader, path):
    reader.wait([0, 1])
    path.unlink()
    reader.looks()
    path.write_bytes(line(3))
    reader.wait([0, 1, 3])


def test_a_link_that_is_turned_to_another_file_is_followed(tmp_path):
    for number in (1, 2):
        (tmp_path / f"{number}.jsonl").write_bytes(line(number))
    link = tmp_path / "link.jsonl"
    link.symlink_to("1.jsonl")
    reader = Reader(link)
    reader.wait([1])
    (tmp_path / "other").symlink_to("2.jsonl")
    (tmp_path / "other").replace(link)
    reader.wait([1, 2])
    reader.close()


def test_a_pipe_that_takes_the_path_is_not_waited_for(reader, path):
    reader.wait([0, 1])
    os.mkfifo(path.with_name("pipe"))
    path.with_name("pipe").replace(path)
    reader.looks()
    assert reader.is_alive()
    path.unlink()
    path.write_bytes(line(2))
    reader.wait([0, 1, 2])


def test_a_byte_order_mark_and_binary_bytes_do_not_stop_it(tmp_path):
    path = tmp_path / "session.jsonl"
    noise = Random(1).randbytes(5000).replace(b"{", b"(")
    path.write_bytes(b"\xef\xbb\xbf" + line(0) + noise + b"\n" + bytes(100) + line(1))
    reader = Reader(path)
    reader.wait([0, 1])
    append(path, line(2))
    reader.wait([0, 1, 2])
    reader.close()


def test_a_break_ends_it_and_closes_what_it_opened(path):
    with transcript.open(path) as session:
        for record in session.follow():
            if record.json()["n"] == 1:
                break
        assert numbers(session) == [0, 1]


def test_close_ends_it_at_once_also_inside_of_its_loop(path):
    session = transcript.open(path)
    seen = []
    for record in session.follow():
        seen.append(record.json()["n"])
        session.close()
    assert seen == [0]


def test_a_transcript_that_is_closed_before_its_first_record_is_read_gives_none(path):
    session = transcript.open(path)
    records = session.follow()
    session.close()
    assert list(records) == []
    with pytest.raises(ValueError, match="closed"):
        session.follow()


def test_close_by_another_thread_wakes_it(path, monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.following.FOLLOW_INTERVAL_S", 2 * HANGS_S)
    reader = Reader(path)
    reader.wait([0, 1])
    reader.close()


def test_an_empty_file_is_followed_and_its_host_recognized_when_it_writes(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"")
    first, records = RECORDS["codex"]
    texts = []
    with transcript.open(path) as session:
        for number, record in enumerate((first, *(record for record, _ in records))):
            threading.Timer(0.01 * number, append, (path, json.dumps(record).encode() + b"\n")).start()
        for record in session.follow():
            texts.append(record.text)
            if record.role == "assistant" and record.text:
                break
    assert texts[-1] == "  Done.\n"


@pytest.mark.parametrize("opened", ["buffered", "raw", "memory"])
def test_a_file_of_the_callers_is_followed(path, opened):
    file = io.BytesIO(path.read_bytes()) if opened == "memory" else path.open("rb", 0 if opened == "raw" else -1)
    reader = Reader(file)
    reader.wait([0, 1])
    if opened == "memory":
        file.seek(0, 2)
        file.write(line(2))
    else:
        append(path, line(2))
    reader.wait([0, 1, 2])
    reader.close()
    assert not file.closed
    file.close()


def test_a_file_of_the_callers_that_is_closed_ends_it(path):
    with path.open("rb") as file:
        reader = Reader(file)
        reader.wait([0, 1])
    reader.join(HANGS_S)
    assert not reader.is_alive()
    assert reader.error is None


def test_a_compressed_file_and_a_url_cannot_be_followed(tmp_path):
    path = tmp_path / "session.jsonl.gz"
    path.write_bytes(gzip.compress(line(1)))
    with transcript.open(path) as session, pytest.raises(SourceError, match="cannot be followed"):
        session.follow()
    with served({"/a.jsonl?token=hunter2": line(1)}) as (address, _):
        url = f"{address.replace('//', '//me:hunter2@')}/a.jsonl?token=hunter2"
        refused = pytest.raises(SourceError, match=f"^{address}/a.jsonl cannot be followed")  # not its credentials
        with transcript.open(url) as session, refused:
            session.follow()


def test_a_writer_that_never_stops_loses_no_record(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"")
    reader = Reader(path)
    data = b"".join(map(line, range(5000)))

    def write():
        with path.open("ab", 0) as file:
            for at in range(0, len(data), 997):
                file.write(data[at : at + 997])

    writer = threading.Thread(target=write)
    writer.start()
    writer.join()
    reader.wait(list(range(5000)))
    reader.close()
