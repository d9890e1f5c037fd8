"""Libraries of data frames take a scan as it is, with all of its rows. Run by `make engines`."""

import json
from random import Random

import pytest
from support.engines import question
from support.scan_tables import TABLES
from support.transcript_trees import grow_tree, mixed_files

import tailhook

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("default")]
pyarrow = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")
pytest.importorskip("pandas")

TAKES = {  # what each library reads: rows as tuples
    "pyarrow": lambda scan: [tuple(row.values()) for row in pyarrow.table(scan).to_pylist()],
    "polars": lambda scan: polars.DataFrame(scan).rows(),
    "duckdb": lambda scan: duckdb.from_arrow(scan).pl().rows(),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with transcripts. One has texts for several batches of records."""
    place = tmp_path_factory.mktemp("sources")
    for path, data in (*grow_tree(Random(0)).files, *mixed_files(Random(0))):
        target = place / path.strip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    said = [{"type": role, "message": {"role": role, "content": "it " * 900_000}} for role in ("user", "assistant") * 3]
    (place / "long.jsonl").write_text("".join(json.dumps(record) + "\n" for record in said))
    return place


@pytest.mark.parametrize("library", TAKES)
@TABLES
def test_a_library_reads_the_rows_of_a_scan(folder, table, library):
    wanted = [tuple(row) for row in question(folder, table).rows()]
    assert wanted
    assert TAKES[library](question(folder, table)) == wanted


@pytest.mark.parametrize("library", TAKES)
def test_a_library_reads_several_batches(folder, library):
    scan = tailhook.scan(folder, "records", columns=["path", "role", "tools", "text"])
    assert len(list(scan)) > 2
    assert TAKES[library](scan) == [tuple(row) for row in scan.rows()]


@TABLES
def test_pandas_reads_the_rows_through_other_libraries(folder, table):
    scan = question(folder, table)
    wanted = [row.session_id for row in scan.rows()]
    for frame in (pyarrow.table(scan).to_pandas(), polars.DataFrame(scan).to_pandas(), duckdb.from_arrow(scan).df()):
        assert list(frame.columns) == list(scan.columns)
        assert frame["session_id"].tolist() == wanted


def test_duckdb_answers_the_question_on_the_page(folder):
    rows = duckdb.from_arrow(tailhook.scan(folder, "records"))
    counted = dict(rows.aggregate("session_id, count(*) AS records").fetchall())
    assert sum(counted.values()) == sum(len(batch) for batch in tailhook.scan(folder, "records"))
    assert "long" in counted


def test_polars_reads_an_arrow_file_of_several_batches(folder, tmp_path):
    from tailhook.fleet.output import write_arrow

    scan = tailhook.scan(folder, "records", columns=["path", "role", "text"])
    with (tmp_path / "rows.arrow").open("wb") as file:
        write_arrow(scan, scan, file)
    assert polars.read_ipc(tmp_path / "rows.arrow").rows() == [tuple(row) for row in scan.rows()]
