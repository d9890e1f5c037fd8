"""Runs the core's scan of ranges over files in memory, cut anywhere and fed in pieces."""

import io
from random import Random

from tailhook._core import RangeScan
from tailhook.fleet.answer import Conditions, answer_question
from tailhook.fleet.columns import TABLE_COLUMNS, MatchOptions
from tailhook.fleet.local import feed_translated, find_session, lines_in
from tailhook.fleet.program import CATEGORY_SET, SIGNAL_SET, compile_sets, make_program
from tailhook.patterns.sets import PatternSet
from tailhook.transcripts.host_records import name_of_host, recognize
from tailhook.transcripts.urls import name_of

EXACT = {"matches": ("path", "offset"), "records": ("path", "offset")}  # the order of rows of ranges


def conditions_of(question):
    """Return the conditions of a question for the oracle, by the product's names."""
    return Conditions(question.roles, question.since, question.until, question.project, question.sessions)


def sets_of(question):
    """Return the pattern sets of a question for the oracle."""
    found = [PatternSet(question.patterns)] if question.patterns else []
    return [*found, *[SIGNAL_SET] * question.signals, *[CATEGORY_SET] * question.categories]


def scan_rows(table, files, question, random=None):
    """Return the rows of a table as dicts, sorted like the oracle's.

    files: pairs of path and bytes.
    random: cuts each file into ranges, and the ranges into pieces; None: each file is one range.
    """

    def read(name):
        program = make_program(
            name,
            TABLE_COLUMNS[table],
            compile_sets(sets_of(question) if name == "matches" else ()),
            conditions_of(question),
            MatchOptions(*(getattr(question, option) for option in MatchOptions._fields)),
        )
        for path, data in files:
            yield from scan_file(program, path, data, random)

    batches = answer_question(table, TABLE_COLUMNS[table], conditions_of(question), read)
    rows = [dict(zip(batch.names, row, strict=True)) for batch in batches for row in zip(*batch.columns(), strict=True)]
    keys = EXACT.get(table)
    return sorted(rows, key=lambda row: [row[key] for key in keys]) if keys else rows


def scan_file(program, path, data, random):
    """Return the batches of one file. The product decides the host and the file's own session."""
    scan = RangeScan(program)
    if recognize(io.BytesIO(data)) is not None:
        return scan_translated(scan, path, data, ranges(len(data), random or Random(0), 4 if random else 0))
    session = find_session(io.BytesIO(data)) or name_of(path)
    for start, end in ranges(len(data), random or Random(0), 4 if random else 0):
        scan.begin(path, session, name_of_host(None), start, end)
        at = max(start - 1, 0)
        while at < len(data) and not scan.is_done:
            size = piece_bytes(random, len(data)) if random else 1 << 16
            scan.feed(data[at : at + size])
            at += size
        scan.end_file()
    return scan.finish()


def scan_translated(scan, path, data, cuts):
    """Return the batches of a file of another host."""
    file = io.BytesIO(data)
    for start, end in cuts:
        records = recognize(file)
        session = records.session_id or find_session(file) or name_of(path)
        scan.begin(path, session, name_of_host(records), start, end)
        records.read_changes(file, start)
        feed_translated(scan, records, lines_in(file, start, end))
    return scan.finish()


def piece_bytes(random, size):
    """Return the size of a piece of a file: often a byte for a small file, up to 1 MiB for a large one."""
    return random.choice((1, 7, 64, 1 << 16)) if size < 20_000 else int(2 ** random.uniform(0, 20))


def ranges(size, random, cuts):
    """Return ranges that cover a file. A large file has some ranges of one byte, and others of up to 1 MiB."""
    edges = {0, *(random.randrange(max(1, size)) for _ in range(cuts))}
    if cuts and size >= 20_000:
        edges |= {edge + int(2 ** random.uniform(0, 20)) for edge in edges for _ in range(4)}
        edges |= {edge + 1 for edge in edges}
    ordered = sorted(edge for edge in edges if edge < max(1, size))
    return list(zip(ordered, [*ordered[1:], None], strict=True))
