"""The fuzz targets of the scan: any cuts give the same rows."""

import io
import os
import tempfile
import zlib
from functools import partial
from itertools import pairwise
from random import Random
from unittest.mock import patch

from fuzz.json_targets import result_of
from support.oracles.scan import utf8

from tailhook import _core
from tailhook.fleet import local
from tailhook.fleet import program as programs
from tailhook.fleet.answer import Conditions
from tailhook.fleet.columns import TABLE_COLUMNS, MatchOptions
from tailhook.fleet.plan import FileRange
from tailhook.patterns.sets import PatternSet
from tailhook.transcripts.host_records import recognize
from tailhook.transcripts.transcript import Transcript


def scan_range(data):
    """Scan a file whole, cut at random places, and without its gate: the rows are the same. Compare with the reader."""
    assert_same_rows(data, partial(rows_of_ranges, data))
    if b"\xef\xbb\xbf" in data or result_of(data.decode, "utf-8") is ValueError:
        return  # the scan ignores a mark on every line; a Record raises for a value that is not UTF-8
    rows = rows_of_ranges(data, SCANS[0][0], [0, None], len(data) + 1)
    assert [row[2:] for row in rows] == list(map(record_row, _core.forward_records(io.BytesIO(data))))


def scan_translated(data):
    """Scan another host's transcript as `scan_range` does, with the function that scans a file."""
    if recognize(io.BytesIO(data)) is None:
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        assert_same_rows(data, partial(rows_of_file, file.name))
        rows = rows_of_file(file.name, SCANS[0][0], [0, None])
    with Transcript(io.BytesIO(data)) as transcript:
        assert [row[2:] for row in rows] == list(map(record_row, transcript))


def assert_same_rows(data, read):
    """Compare the rows of a file read whole, in ranges, in small steps and without its gate.

    read: takes a program, the edges of ranges, and how many bytes are read at a time. Returns the rows.
    """
    chance = Random(zlib.crc32(data))
    for program, ungated in SCANS:
        found = read(program, [0, None], len(data) + 1)
        edges = sorted(chance.randint(0, len(data)) for _ in range(4))
        assert read(program, [0, *edges, None], chance.choice((1, 7, 64, 4096))) == found
        assert read(ungated, [0, None], len(data) + 1) == found


def record_row(record):
    """Return the row of a record without its path and host."""
    texts = map(utf8, (record.type, record.uuid, record.model, record.text))
    return (record.offset, *texts, record.is_prompt, record.is_error)


def rows_of_ranges(data, program, edges, step):
    """Return the rows of a file, cut at the edges and fed `step` bytes at a time."""
    scan = _core.RangeScan(program)
    for start, end in pairwise(edges):
        scan.begin("t.jsonl", "s", "claude-code", start, end)
        at = max(start - 1, 0)
        while at < len(data) and not scan.is_done:
            scan.feed(data[at : at + step])
            at += step
        scan.end_file()
    return rows_of(scan)


def rows_of_file(path, program, edges, step=local.LINE_BLOCK_BYTES):
    """Return the rows of a file, cut at the edges and read `step` bytes at a time."""
    scan, problems = _core.RangeScan(program), []
    with patch.object(local, "LINE_BLOCK_BYTES", step):
        for start, end in pairwise(edges):
            local.scan_file(scan, FileRange(path, start, end, os.path.getsize(path)), problems)
    assert not problems
    return rows_of(scan)


def rows_of(scan):
    """Return the rows that a scan has found."""
    return [row for batch in scan.finish() for row in zip(*batch.columns(), strict=True)]


def scan_programs():
    """Return (a question for each table, the same without its gate)."""
    sets = [programs.SIGNAL_SET, programs.CATEGORY_SET, PatternSet({"e": ["é"], "word": ["TODO"]})]
    compiled = programs.compile_sets(sets)
    columns = TABLE_COLUMNS | {
        "records": ("path", "host", "offset", "type", "uuid", "model", "text", "is_prompt", "is_error")
    }
    found = []
    for table in ("records", "matches", "tools", "usage", "sessions"):
        asked = compiled if table == "matches" else programs.CompiledSets()
        options = MatchOptions(in_code=None, context=5, all_text=True)
        program = programs.make_program(table, columns[table], asked, Conditions(), options)
        _, (arguments,) = program.__reduce__()
        found.append((program, _core.ScanProgram(**{**arguments, "gate": None})))
    return found


SCANS = scan_programs()
