"""Batches of the core in Arrow's memory layout: pyarrow reads them, and a consumer may take them apart in any way."""

import gc
import io
import re
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.cases import in_one_test

import tailhook
from tailhook._core import ArrowBatch, RangeScan, ScanProgram, arrow_stream, make_batch
from tailhook.fleet import output
from tailhook.fleet.columns import TABLE_COLUMNS
from tailhook.transcripts.records import EPOCH

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

NAMES = ("path", "uuid", "offset", "timestamp", "is_meta", "tools")
TIME = datetime(2026, 11, 1, 12, 30, 0, 123456, tzinfo=UTC)
ROWS = [
    ("a.jsonl", "u-1", 0, TIME, True, ["Bash", ""]),
    (None, None, None, None, None, None),
    ("b.jsonl", "", -(2**63), datetime.min.replace(tzinfo=UTC), False, []),
    ("a.jsonl", "ü\U0001f600", 2**63 - 1, datetime.max.replace(tzinfo=UTC), None, ["Read"]),
]
TYPES = ("dictionary<values=string, indices=int32, ordered=0>", "string", "int64", "timestamp[us, tz=UTC]", "bool")
EDGES = [(1, 1), (2, 28), (3, 1), (7, 31), (12, 31)]


def as_pyarrow(batch):
    found = pyarrow.record_batch(batch)
    found.validate(full=True)
    return found


def same(found, rows):
    assert list(zip(*found.to_pydict().values(), strict=True)) == rows
    assert [row is None for row in rows] == [False] * len(rows)


@in_one_test("count", [0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 1000])
def test_a_batch_of_any_length_is_read_as_it_was_made(count):
    rows = (ROWS * (count // len(ROWS) + 1))[:count]
    batch = make_batch("records", NAMES, rows)
    found = as_pyarrow(batch)
    assert len(batch) == found.num_rows == count
    assert batch.names == tuple(found.schema.names) == NAMES
    assert [str(field.type) for field in found.schema] == [*TYPES, "list<item: string>"]
    same(found, rows)
    assert list(zip(*batch.columns(), strict=True)) == rows


PAGE = Path(__file__).parents[2] / "docs" / "scan-rows.md"


@pytest.mark.parametrize("table", TABLE_COLUMNS)
def test_the_page_has_the_version_and_the_type_of_every_column(table):
    section = PAGE.read_text(encoding="utf-8").split("## Types\n")[1].split("\n## ")[0]
    types = {}
    for kind, cell in re.findall(r"^\| `([a-z].*?)` \| (.*) \|$", section, re.MULTILINE):
        for names, of_table in re.findall(r"((?:`\w+`(?: and )?)+)(?: of (\w+))?", cell):
            types |= (
                dict.fromkeys(re.findall(r"\w+", names.replace(" and ", " ")), kind) if of_table in ("", table) else {}
            )
    schema = pyarrow.schema(tailhook.scan("absent", table, columns=TABLE_COLUMNS[table], signals=table == "matches"))
    assert [(field.name, str(field.type)) for field in schema] == [(name, types[name]) for name in TABLE_COLUMNS[table]]
    assert all(field.nullable for field in schema)
    version = re.search(r"The version of the rows is (\d+)\.", section)[1]
    assert schema.metadata == {b"tailhook.row-version": version.encode()}


@pytest.mark.parametrize("write", [output.write_arrow, output.write_parquet])
def test_a_file_of_rows_has_their_version(tmp_path, write):
    batch = make_batch("records", NAMES, ROWS)
    with (tmp_path / "rows").open("wb") as file:
        write([batch], batch, file)
    read = pyarrow.ipc.open_file if write is output.write_arrow else pyarrow.parquet.ParquetFile
    with read(tmp_path / "rows") as file:
        schema = file.schema if write is output.write_arrow else file.schema_arrow
        assert schema.metadata[b"tailhook.row-version"] == b"1"


@pytest.mark.parametrize("write", [output.write_arrow, output.write_parquet])
def test_what_pyarrow_cannot_do_is_an_error_of_the_output(write):
    def batches():
        yield batch
        pyarrow.array([1]).cast(pyarrow.list_(pyarrow.string()))

    batch = make_batch("records", NAMES, ROWS)
    with pytest.raises(output.OutputError, match=r"^pyarrow cannot write the rows: Unsupported cast"):
        write(batches(), batch, io.BytesIO())


@pytest.mark.parametrize("write", [output.write_arrow, output.write_parquet])
def test_of_a_long_message_of_pyarrow_the_first_line_is_shown(write):
    def batches():
        yield batch
        pyarrow.concat_tables([pyarrow.table({name: [1]}) for name in "ab"])

    batch = make_batch("records", NAMES, ROWS)
    with pytest.raises(output.OutputError, match=r"^pyarrow cannot write the rows: Schema at index 1 .*$") as error:
        write(batches(), batch, io.BytesIO())
    assert "\n" not in str(error.value)


def test_arrow_rows_are_written_to_a_file_without_a_name():
    batch = make_batch("records", NAMES, ROWS)
    with tempfile.TemporaryFile() as file:
        assert isinstance(file.name, int)
        output.write_arrow([batch], batch, file)
        file.seek(0)
        with pyarrow.ipc.open_file(file) as found:
            assert found.read_all().num_rows == len(ROWS)


def test_times_can_be_texts_that_are_all_as_long():
    times = [TIME, None, TIME.replace(microsecond=0), *(row[3] for row in ROWS[2:])]
    batch = make_batch("records", ("timestamp",), [(time,) for time in times])
    assert batch.columns(times_as_text=True) == [
        [
            "2026-11-01T12:30:00.123456Z",
            None,
            "2026-11-01T12:30:00.000000Z",
            "0001-01-01T00:00:00.000000Z",
            "9999-12-31T23:59:59.999999Z",
        ]
    ]


def test_a_time_comes_back_as_it_was_on_any_day():
    ends = [datetime.min, datetime.max]
    days = [datetime(year, month, day) for year in (4, 100, 1600, 1899, 1970, 2000, 2024, 2100) for month, day in EDGES]
    times = [time.replace(tzinfo=UTC) for time in ends + days]
    batch = make_batch("records", ("timestamp",), [(time,) for time in times])
    assert batch.columns() == [times]
    microseconds = [(time - EPOCH) // timedelta(microseconds=1) for time in times]
    assert make_batch("records", ("timestamp",), [(number,) for number in microseconds]).columns() == [times]
    assert batch.columns(times_as_text=True)[0][2:] == [f"{time:%Y-%m-%dT%H:%M:%S.%fZ}".zfill(27) for time in times[2:]]


@pytest.mark.parametrize("length", [0, 1, 3, 4, 9, 200])
def test_a_part_of_a_batch_is_that_part_of_its_rows(length):
    batch = make_batch("records", NAMES, ROWS * 3)
    part = batch.head(length).select(NAMES[::-2])
    wanted = [row[::-2] for row in ROWS * 3][:length]
    del batch
    gc.collect()
    found = as_pyarrow(part)
    assert part.names == NAMES[::-2]
    assert len(part) == len(wanted)
    assert list(zip(*part.columns(), strict=True)) == wanted
    del part
    gc.collect()
    same(found, wanted)
    assert [column.null_count for column in found.columns] == [
        column.count(None) for column in zip(*wanted, strict=True)
    ] or [0] * 3


def test_a_part_that_cannot_be_is_refused():
    batch = make_batch("records", NAMES, ROWS)
    with pytest.raises(ValueError, match="not in tuple"):
        batch.select(("model",))
    with pytest.raises(ValueError, match="less than 0"):
        batch.head(-1)


def test_null_counts_are_those_of_the_values():
    found = as_pyarrow(make_batch("records", NAMES, ROWS))
    assert [column.null_count for column in found.columns] == [1, 1, 1, 1, 2, 1]
    assert as_pyarrow(make_batch("records", NAMES, [ROWS[0]])).column(0).null_count == 0


def test_a_dictionary_has_each_text_once():
    rows = [(f"{number % 1000}.jsonl",) for number in range(5000)]
    found = as_pyarrow(make_batch("records", ("path",), rows))
    assert found.column(0).dictionary.to_pylist() == [f"{number}.jsonl" for number in range(1000)]
    assert found.column(0).to_pylist() == [name for (name,) in rows]


def test_a_batch_without_columns_is_one():
    assert as_pyarrow(make_batch("records", (), [])).num_rows == 0
    assert len(ArrowBatch()) == 0
    assert ArrowBatch().columns() == []
    assert ArrowBatch().names == ()
    assert as_pyarrow(ArrowBatch()).num_columns == 0


@pytest.mark.parametrize(
    ("names", "row", "error"),
    [
        (("nothing",), ("a",), ValueError),
        ((5,), ("a",), TypeError),
        (("offset",), ("a",), TypeError),
        (("offset",), (2**63,), OverflowError),
        (("timestamp",), (datetime(2026, 1, 1),), TypeError),
        (("uuid",), (5,), TypeError),
        (("tools",), (5,), TypeError),
        (("tools",), ([5],), TypeError),
        (("offset", "uuid"), (1,), ValueError),
        (("offset",), (1, 2), ValueError),
        (("offset",), 5, TypeError),
    ],
)
def test_a_row_of_wrong_values_is_refused(names, row, error):
    with pytest.raises(error):
        make_batch("records", names, [row])


def test_lone_surrogates_become_question_marks():
    assert make_batch("records", ("uuid",), [("a\ud800",)]).columns() == [["a?"]]


# ---- consumers -----------------------------------------------------------------


def test_a_part_outlives_its_batch_and_the_other_parts():
    parts = [make_batch("records", NAMES, ROWS * 100)]
    found = pyarrow.record_batch(parts.pop())
    kept = [found.column(at).slice(50, 7) for at in range(len(NAMES))]
    kept.append(found.column(0).dictionary)
    kept.append(found.column(5).values)
    expected = [part.to_pylist() for part in kept]
    del found
    gc.collect()
    for at in (3, 0, 5, 1, 3, 2, 0, 0):
        kept_part, values = kept.pop(at), expected.pop(at)
        assert kept_part.to_pylist() == values
        kept_part.validate(full=True)
        del kept_part
        gc.collect()


def test_parts_are_released_in_other_threads():
    batch = make_batch("records", NAMES, ROWS * 100)

    def take(batch):
        for _ in range(50):
            found = pyarrow.record_batch(batch)
            column = found.column(1)
            del found
            assert column[0].as_py() == "u-1"

    threads = [threading.Thread(target=take, args=(batch,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    del batch
    for thread in threads:
        thread.join()


def test_capsules_that_no_consumer_takes_are_freed():
    batch = make_batch("records", NAMES, ROWS)
    before = sys.getrefcount(batch)
    for _ in range(100):
        batch.__arrow_c_array__()
        batch.__arrow_c_schema__()
        arrow_stream(batch, [batch])
    gc.collect()
    assert sys.getrefcount(batch) == before
    schema, array = batch.__arrow_c_array__()
    del batch, schema
    assert "arrow_array" in repr(array)


# ---- streams -------------------------------------------------------------------


class Streamed:
    def __init__(self, schema, batches):
        self.schema, self.batches = schema, batches

    def __arrow_c_stream__(self, requested_schema=None):
        return arrow_stream(self.schema, self.batches)


def test_a_stream_gives_all_batches():
    empty = make_batch("records", NAMES, [])
    batches = [make_batch("records", NAMES, ROWS), empty, make_batch("records", NAMES, ROWS[:1])]
    table = pyarrow.table(Streamed(empty, batches))
    table.validate(full=True)
    assert table.num_rows == 5
    assert pyarrow.table(Streamed(empty, [])).schema == table.schema


def failing():
    yield make_batch("records", NAMES, ROWS)
    raise OSError("no such disk: \udcff")


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (failing(), "no such disk"),
        ([5], "ArrowBatch"),
        ([make_batch("records", NAMES[:2], [])], "other columns"),
        ([make_batch("records", NAMES[::-1], [])], "other columns"),
        ([ArrowBatch()], "other columns"),
    ],
)
def test_an_error_of_the_iterator_is_the_streams(batches, message):
    with pytest.raises((OSError, pyarrow.ArrowException, TypeError), match=message):
        pyarrow.table(Streamed(make_batch("records", NAMES, []), batches))


def test_an_interrupt_while_a_stream_is_read_is_one():
    """The consumer makes an OSError of it; then Python raises KeyboardInterrupt in any case."""

    def interrupted():
        yield make_batch("records", NAMES, ROWS)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), suppress(OSError):  # noqa: PT012 - the next line must not be reached
        pyarrow.table(Streamed(make_batch("records", NAMES, []), interrupted()))
        pytest.fail("nothing was raised")


UNCAUGHT = """
import pyarrow
from tailhook._core import arrow_stream, make_batch

class Streamed:
    def __arrow_c_stream__(self, requested_schema=None):
        return arrow_stream(make_batch("records", ("uuid",), []), self.batches())
    def batches(self):
        yield make_batch("records", ("uuid",), [("u",)])
        raise KeyboardInterrupt

pyarrow.table(Streamed())
"""


def test_an_interrupt_that_nothing_catches_is_shown_with_its_traceback():
    done = subprocess.run([sys.executable, "-c", UNCAUGHT], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "OSError: KeyboardInterrupt" in done.stderr
    assert 'File "<string>", line 12' in done.stderr
    assert "lost sys.stderr" not in done.stderr


def test_a_stream_needs_a_batch_and_an_iterable():
    with pytest.raises(TypeError):
        arrow_stream(None, [])
    with pytest.raises(TypeError):
        arrow_stream(make_batch("records", NAMES, []), 5)


# ---- what a scan gives ---------------------------------------------------------


def test_a_scan_gives_batches_that_are_whole():
    columns = ["path", "offset", "uuid", "tools", "timestamp", "is_meta", "text"]
    scan = RangeScan(ScanProgram(table="records", columns=columns))
    line = (
        b'{"type":"assistant","uuid":"u","timestamp":"2026-01-02T03:04:05.678901Z","message":{"content":'
        b'[{"type":"text","text":"\\u00e9 \\ud800"},{"type":"tool_use","name":"Bash"}]}}\n'
    )
    scan.begin("a.jsonl", "s", "claude-code")
    for _ in range(40):
        scan.feed(line * 2500)
    scan.end_file()
    batches = scan.finish()
    assert [len(batch) for batch in batches] == [1 << 16, 100_000 - (1 << 16)]
    for batch in batches:
        found = as_pyarrow(batch)
        assert set(found.column("text").to_pylist()) == {"é �"}
        assert found.column("tools").to_pylist()[-1] == ["Bash"]
        assert {time.microsecond for time in found.column("timestamp").to_pylist()} == {678901}
    assert [batch.columns()[1][0] for batch in batches] == [0, len(line) << 16]
