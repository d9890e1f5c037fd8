"""Every record of the real transcripts, against the json module."""

import json

import pytest
from support.corpora import transcript_paths
from support.oracles import records as oracle

from tailhook._core import forward_lines, parse_record, reverse_lines
from tailhook.transcripts import transcript


def test_records_of_real_transcripts_are_what_the_json_module_reads():
    paths = transcript_paths()
    assert paths
    for path in paths:
        lines = path.read_bytes().splitlines()
        records = [json.loads(line) for line in lines if oracle.is_object(line)]
        with transcript.open(path) as session:
            ours = list(session)
            assert len(ours) == len(records)
            for mine, record in zip(ours, records, strict=True):
                oracle.assert_same(mine, record)
            assert [mine.offset for mine in session.reversed()] == [mine.offset for mine in ours[::-1]]
            assert session.last_message() == oracle.last_message(records)


def test_real_transcripts_read_the_same_from_both_ends():
    for path in transcript_paths():
        with path.open("rb") as file:
            lines = list(forward_lines(file))
            assert [line for _, line in lines] == file.read().removesuffix(b"\n").split(b"\n")
            assert list(reverse_lines(file)) == lines[::-1]


def test_every_cut_of_a_real_line_is_survived():
    shortest = min(transcript_paths(), key=lambda path: path.stat().st_size)
    for line in shortest.read_bytes().splitlines()[:8]:
        record = json.loads(line)
        for cut in range(1, len(line), max(1, len(line) // 300)):
            assert parse_record(line[:cut]) is None
            assert parse_record(line[cut:]) is None or line[cut : cut + 1] == b"{"
            assert parse_record(line + line[:cut]).json() == record


@pytest.mark.parametrize("bound", [1, 1000, 100_000])
def test_real_transcripts_split_into_ranges_give_every_line_once(bound):
    path = min(transcript_paths(), key=lambda path: path.stat().st_size)
    size = path.stat().st_size
    with path.open("rb") as file:
        step = max(bound, size // 2000)
        ranges = [forward_lines(file, start, start + step) for start in range(0, size, step)]
        assert [line for piece in ranges for line in piece] == list(forward_lines(file))
