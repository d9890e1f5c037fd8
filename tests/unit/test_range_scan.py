"""The scan of ranges of a file: its order of calls, its limits, files that change, threads."""

import os
import sys
import threading
import time
from functools import partial
from itertools import pairwise

import pytest
from support.cases import in_one_test
from support.host import HANGS_S
from support.ranges import LARGE, RECORDS, begun, ended, filled, in_thread, record, rows

from tailhook._core import RangeScan, ScanProgram, scan_range
from tailhook.fleet.columns import MatchOptions
from tailhook.patterns.automaton import compile_table

MAX_LINE_BYTES = 16 << 20


def scanned(data, start=0, end=None, program=RECORDS, step=1 << 20):
    scan = begun(program, start, end)
    at = max(start - 1, 0)
    while at < len(data) and not scan.is_done:
        scan.feed(data[at : at + step])
        at += step
    scan.end_file()
    return rows(scan), scan.counts


def matches_of(pattern, gate=None, context=0, in_code=None):
    def table(texts):
        return compile_table([(0, text) for text in texts], ignore_case=False, word=False)

    columns = ["offset", "start", "end", "context"]
    return ScanProgram(
        table="matches",
        columns=columns,
        sets=[(table([pattern]), False, 0, 1)],
        names=["p"],
        gate=table(gate) if gate else None,
        options=MatchOptions(in_code, context),
    )


# ---- the order of calls --------------------------------------------------------


def test_nothing_is_scanned_before_a_range_is_begun_or_after_its_file_has_ended():
    scan = RangeScan(RECORDS)
    calls = [
        lambda: scan.feed(b""),
        lambda: scan.feed_line(b"", None, 0),
        lambda: scan.end_file(),
    ]
    for state in ("new", "ended"):
        for call in calls:
            with pytest.raises(RuntimeError, match="begin a range first"):
                call()
        if state == "new":
            assert scan.is_done
            scan.begin("t.jsonl", "s", "claude-code")
            scan.end_file()
    assert [len(batch) for batch in scan.finish()] == [0]


def test_a_range_that_is_begun_twice_forgets_the_unfinished_line():
    scan = begun()
    scan.feed(record() + b"\n" + record()[:20])
    scan.begin("u.jsonl", "s", "claude-code")
    scan.feed(record() + b"\n")
    scan.end_file()
    assert rows(scan) == [(0, "user", 1), (0, "user", 1)]


def test_batches_are_handed_out_once_and_the_scan_goes_on():
    scan = begun()
    scan.feed(record() + b"\n" + record())
    assert rows(scan) == [(0, "user", 1)]
    scan.end_file()
    assert rows(scan) == [(len(record()) + 1, "user", 1)]
    assert rows(scan) == []
    assert scan.counts == {"records": 2, "broken_lines": 0, "long_lines": 0}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("t", "s", "h", -1), ValueError),
        (("t", "s", "h", 2**63 - 1), ValueError),
        (("t", "s", "h", 2**63), OverflowError),
        (("t", "s", "h", 0, 2**63), OverflowError),
        (("t", "s", "h", 0, "end"), TypeError),
        ((None, "s", "h"), TypeError),
        ((b"t", "s", "h"), TypeError),
        (("t", 5, "h"), TypeError),
    ],
)
def test_a_range_of_wrong_values_is_refused_and_the_one_before_goes_on(arguments, error):
    scan = begun()
    scan.feed(record()[:10])
    with pytest.raises(error):
        scan.begin(*arguments)
    scan.feed(record()[10:])
    scan.end_file()
    assert rows(scan) == [(0, "user", 1)]


def test_paths_of_any_characters_are_text():
    scan = RangeScan(ScanProgram(table="records", columns=["path", "session_id", "host"]))
    scan.begin("\udcff/ü", "", "\ud800", 0)
    scan.feed(record())
    scan.end_file()
    assert rows(scan) == [("?/ü", "", "?")]


# ---- lines ---------------------------------------------------------------------


@in_one_test("end", [b"\n", b"\r\n", b"", b"\r", b"\n\n \n"])
@in_one_test("start", [b"", b"\xef\xbb\xbf", b"\n", b"\r\n\t"])
def test_line_ends_marks_and_blank_lines_give_no_rows(start, end):
    found, counts = scanned(start + record() + end)
    assert [row[1:] for row in found] == [("user", 1)]
    assert counts["broken_lines"] == 0


def test_nuls_make_a_line_broken_and_keep_its_record():
    found, counts = scanned(b"\0\0" + record() + b"\0\n\0\n" + record())
    assert [row[0] for row in found] == [0, len(record()) + 6]
    assert counts == {"records": 2, "broken_lines": 2, "long_lines": 0}


@pytest.mark.parametrize("newline", [b"", b"\n", b"\n" + record()])
@pytest.mark.parametrize("step", [1 << 20, 999_983, 40 << 20])
def test_a_line_of_16_mib_is_read_and_a_longer_one_is_counted(newline, step):
    room = MAX_LINE_BYTES - len(record(""))
    first = record() + b"\n"
    fits, counts = scanned(first + record("a" * room) + newline, step=step)
    last = [(len(first) + MAX_LINE_BYTES + 1, "user", 1)] if len(newline) > 1 else []
    assert fits == [(0, "user", 1), (len(first), "user", room), *last]
    assert counts["long_lines"] == 0
    longer, counts = scanned(first + record("a" * (room + 1)) + newline, step=step)
    assert longer == [(0, "user", 1), *((offset + 1, kind, size) for offset, kind, size in last)]
    assert counts["long_lines"] == 1


def test_a_long_line_belongs_to_one_range():
    data = record() + b"\n" + record("a" * MAX_LINE_BYTES) + b"\n" + record()
    found, long_lines = [], 0
    edges = [0, 1, 1000, 17 << 20, None]
    for start, end in pairwise(edges):
        some, counts = scanned(data, start, end)
        found += some
        long_lines += counts["long_lines"]
    assert [row[0] for row in found] == [0, len(data) - len(record())]
    assert long_lines == 1


def test_a_line_that_is_fed_alone_has_the_same_limit():
    scan = begun()
    longest = record("a" * (MAX_LINE_BYTES - len(record(""))))
    scan.feed_line(longest, record(), 5)
    scan.feed_line(longest + b"\n", record(), 6)
    scan.feed_line(longest + b" ", record(), 7)
    assert [row[0] for row in rows(scan)] == [5, 6]
    assert scan.counts["long_lines"] == 1


def test_a_line_of_another_host_has_its_own_size_and_damage_and_the_record_of_its_translation():
    scan = RangeScan(ScanProgram(table="sessions", columns=["offset", "line_bytes", "has_record", "is_broken", "uuid"]))
    scan.begin("t.jsonl", "s", "codex")
    for line in (b'{"a":1} \r\n', b'torn{"a":1}\n', b" \r\n", b"torn\n", b'\xef\xbb\xbf{"b":2}'):
        scan.feed_line(line, b'{"uuid":"u"}' if b"{" in line else None, len(line))
    assert rows(scan) == [
        (10, 10, True, False, "u"), (12, 12, True, True, "u"), (5, 5, False, True, None), (10, 10, True, False, "u"),
    ]  # fmt: skip
    assert scan.counts == {"records": 3, "broken_lines": 2, "long_lines": 0}


def test_one_record_with_gigabytes_of_matches_makes_batches_of_less_than_2_gib():
    """64 KiB of text with 4,096 matches, and all of the text around each: 256 MiB in one column."""
    text = "match of pattern" * 4096
    scan = begun(matches_of("match", context=65_536))
    scan.feed(record(text) + b"\n")
    scan.end_file()
    sizes = [sum(map(len, batch.columns()[3])) for batch in scan.finish()]
    assert len(sizes) > 10
    assert max(sizes) < 17 << 20


def test_times_outside_of_the_years_1_to_9999_are_null():
    stamps = ("0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59.999999Z", "9999-12-31T24:00Z")
    lines = [b'{"type":"user","timestamp":"%s"}' % stamp.encode() for stamp in stamps]
    found, _ = scanned(b"\n".join(lines), program=ScanProgram(table="records", columns=["timestamp"]))
    assert [time and time.microsecond for (time,) in found] == [None, None, 999999, None]


# ---- ranges --------------------------------------------------------------------


def test_ranges_beyond_the_file_have_no_rows():
    data = record() + b"\n"
    for start, end in [(len(data), None), (len(data) + 1, None), (10**15, 10**16), (5, 5), (7, 3), (0, 0), (0, -1)]:
        assert scanned(data, start, end)[0] == []
    assert scanned(b"")[0] == []


def test_every_cut_of_a_file_gives_each_line_once():
    data = b"\n".join([record(), b"", record("yy"), b"\r", record("")])
    whole = scanned(data)[0]
    for first in range(len(data) + 2):
        for second in range(first, len(data) + 2, 7):
            parts = [scanned(data, *part, step=11)[0] for part in ((0, first), (first, second), (second, None))]
            assert [row for part in parts for row in part] == whole


# ---- files ---------------------------------------------------------------------


def rows_in(fd, start=0, end=None, program=RECORDS):
    return [row for batch in scan_range(fd, start, end, program) for row in zip(*batch.columns(), strict=True)]


def test_a_file_is_read_without_moving_its_position(file):
    fd = filled(file, record() + b"\n" + record("yy"))
    assert [row[2] for row in rows_in(fd)] == [1, 2]
    assert os.lseek(fd, 0, os.SEEK_CUR) == file.tell()


def test_a_range_names_its_file_and_counts_join_those_of_others(file):
    program = ScanProgram(table="records", columns=["path", "session_id", "host", "offset"])
    fd = filled(file, record() + b"\n" + record("yy") + b"\ntorn")
    scan = RangeScan(program)
    for path in ("a", "b"):
        assert scan_range(fd, 5, None, program, path=path, session_id="s", host="h", into=scan) == []
    assert rows(scan) == [("a", "s", "h", len(record()) + 1), ("b", "s", "h", len(record()) + 1)]
    assert scan.counts == {"records": 2, "broken_lines": 2, "long_lines": 0}
    assert scan.program is program
    assert rows_in(fd, program=program) == [("", "", "claude-code", 0), ("", "", "claude-code", len(record()) + 1)]


def test_a_scan_of_another_question_does_not_take_rows(file):
    with pytest.raises(ValueError, match="another question"):
        scan_range(filled(file, record()), 0, None, RECORDS, into=RangeScan(matches_of("x")))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, None), ValueError),
        ((2**63, None), OverflowError),
        ((0, "end"), TypeError),
        ((None, None), TypeError),
    ],
)
def test_wrong_values_are_refused_and_the_scan_goes_on(file, arguments, error):
    fd = filled(file, record())
    scan = RangeScan(RECORDS)
    with pytest.raises(error):
        scan_range(fd, *arguments, RECORDS, into=scan)
    scan_range(fd, 0, None, RECORDS, into=scan)
    assert len(rows(scan)) == 1
    for wrong in ({"path": None}, {"session_id": b"s"}, {"into": RECORDS}):
        with pytest.raises(TypeError):
            scan_range(fd, 0, None, RECORDS, **wrong)


def test_a_file_that_shrank_ends(file):
    fd = filled(file, record() + b"\n" + record())
    os.truncate(fd, len(record()) + 3)
    assert rows_in(fd, 0, 1000) == [(0, "user", 1)]
    assert rows_in(fd, 50, 1000) == []


def test_what_is_not_a_file_is_an_error(tmp_path):
    read_end, write_end = os.pipe()
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        for fd in (-1, read_end, folder, 10_000):
            scan = RangeScan(RECORDS)
            with pytest.raises(OSError):  # noqa: PT011 - each has its own number
                scan_range(fd, 0, None, RECORDS, into=scan)
            assert rows(scan) == []
    finally:
        for fd in (read_end, write_end, folder):
            os.close(fd)


def test_a_stopped_scan_reads_nothing(file):
    fd = filled(file, (record() + b"\n") * 1000)
    scan = RangeScan(RECORDS)
    scan.stop()
    scan_range(fd, 0, None, RECORDS, into=scan)
    scan.begin("t.jsonl", "s", "claude-code")
    scan.feed(record() + b"\n")
    assert (scan.counts["records"], rows(scan)) == (0, [])


# ---- threads -------------------------------------------------------------------


def test_a_second_thread_is_refused_and_the_first_one_goes_on(file):
    fd = filled(file, LARGE)
    scan = RangeScan(RECORDS, 1)
    reading = in_thread(partial(scan_range, fd, 0, None, RECORDS, into=scan))
    taken = [scan.take()]  # the thread then waits for room
    time.sleep(0.1)
    for call in (
        lambda: scan.feed(b""),
        lambda: scan.feed_line(b"", None, 0),
        lambda: scan.begin("x", "s", "h"),
        lambda: scan_range(fd, 0, None, RECORDS, into=scan),
        scan.end_file,
        scan.finish,
        lambda: scan.counts,
        lambda: scan.unknown_types,
    ):
        with pytest.raises(RuntimeError, match="another thread uses this scan"):
            call()
    taken.append(scan.take())
    assert ended(reading)
    assert sum(map(len, [*taken, *scan.finish()])) == 200_000


def test_threads_share_one_question(file):
    fd = filled(file, b"".join(record(f"use `TODO` and TODO {number}") + b"\n" for number in range(20_000)))
    program = matches_of("TODO", gate=["TODO"], context=5)
    size = os.fstat(fd).st_size
    found: dict[int, list] = {}

    def run(number):
        found[number] = rows_in(fd, number * size // 4, (number + 1) * size // 4, program)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole, _ = scanned(os.pread(fd, size, 0), program=program)
    assert [row for number in range(4) for row in found[number]] == whole
    assert sum(map(len, found.values())) == 40_000


def test_a_range_needs_no_gil_from_the_first_to_the_last_byte(file):
    """This one keeps the GIL until another thread has scanned 13 MB, with labels of links and four batches."""
    said = "[`TODO`][É] and [TODO][ß], TODO\\n\\n[é]: x\\n[SS]: y"
    fd = filled(file, (record(said) + b"\n") * 100_000)
    program = matches_of("TODO", gate=["TODO"], context=5)
    scan, begins, interval = RangeScan(program), [], sys.getswitchinterval()

    def run():
        begins.append(True)
        scan_range(fd, 0, None, program, into=scan)

    sys.setswitchinterval(1000)  # seconds; a thread that does not wait keeps the GIL so long
    try:
        thread = in_thread(run)
        while not begins:
            time.sleep(0)
        assert not scan.is_done
        deadline = time.monotonic() + HANGS_S
        while not scan.is_done and time.monotonic() < deadline:
            pass
        assert scan.is_done
    finally:
        sys.setswitchinterval(interval)
    assert ended(thread)
    sizes = [len(batch) for batch in scan.finish()]
    assert (sum(sizes), sizes[:4]) == (300_000, [65_536] * 4)


# ---- the gate ------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_a_gate_opens_for_every_line_with_one_of_its_literals(step):
    lines = [record(text) for text in ("a", "needle", "x" * 300, "x" * 90 + "needle", "needleneedle", "need", "")]
    data = b"\n".join(lines * 5)
    gated = scanned(data, program=matches_of("needle", gate=["needle"]), step=step)[0]
    assert gated == scanned(data, program=matches_of("needle"), step=step)[0]
    assert len(gated) == 20


def test_a_gate_of_more_literals_than_a_prefilter_takes_lets_all_lines_pass():
    many = [f"{number:05}" for number in range(900)]
    data = b"\n".join([record("needle 00001"), record("x")])
    assert len(scanned(data, program=matches_of("needle", gate=many))[0]) == 1
