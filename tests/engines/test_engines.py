"""Daft, Daft on Ray, Ray Data and an S3 server give the rows of the local engine. Run by `make engines`."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from support import engines as helpers
from support.engines import local_rows, question, sorted_rows
from support.scan_tables import TABLES
from support.transcript_trees import grow_tree, mixed_files
from support.unwell_store import BUSY, CUT, RESET, every_second_request, first_requests, unwell

import tailhook
from tailhook.errors import SourceError
from tailhook.fleet import engines, listing
from tailhook.fleet.columns import TABLE_COLUMNS
from tailhook.transcripts import urls

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("default")]
daft = pytest.importorskip("daft")
ray = pytest.importorskip("ray")
daft.set_runner_native()  # otherwise it takes the Ray that a test starts
moto_server = pytest.importorskip("moto.server")

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def files():
    found = {}
    for seed in range(3):
        trees = (*grow_tree(Random(seed)).files, *mixed_files(Random(seed)))
        found |= {f"{seed}/{path.strip('/')}": data for path, data in trees}
    return found


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory):
    place = tmp_path_factory.mktemp("sources")
    for path, data in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    return place


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    return tmp_path_factory.mktemp("killed") / "killed"


@pytest.fixture(scope="module")
def faults():
    """Return the list of the functions that make faults. The proxy in front of the S3 server asks the last one."""
    return []


@pytest.fixture(scope="module")
def bucket(files, faults):
    """Start an S3 server behind a proxy, and return the URL of a prefix with the files."""
    import obstore
    from obstore.store import from_url

    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    with (
        unwell(address, lambda *asked: faults[-1](*asked) if faults else None) as (address, _),
        pytest.MonkeyPatch.context() as patches,
    ):
        environment = {
            "AWS_ENDPOINT_URL": address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
            "AWS_REGION": "us-east-1",
        }
        for name, value in environment.items():
            patches.setenv(name, value)
        web = from_url(address, client_options={"allow_http": True})
        obstore.put(web, "bucket", b"")
        store = from_url("s3://bucket")
        for path, data in files.items():
            obstore.put(store, f"all/{path}", data)
        yield "s3://bucket/all"
    server.stop()


@pytest.fixture(scope="module")
def cluster(bucket, killed):
    """Start Ray; its workers know the S3 server."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setenv(helpers.KILLED, str(killed))
        patches.setenv("PYTHONPATH", str(TESTS))
        patches.setenv("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    monkeypatch.setattr(engines, "make_tasks", engines.make_tasks)
    monkeypatch.setattr(engines, "BUCKET_BYTES", engines.BUCKET_BYTES)
    helpers.small_tasks()


@pytest.fixture
def asked(monkeypatch):
    """Return the questions that tasks were asked."""
    found = []
    original = engines.TaskReader.rows
    monkeypatch.setattr(
        engines.TaskReader,
        "rows",
        lambda reader, *rest: found.append((reader.question, rest)) or original(reader, *rest),
    )
    return found


@TABLES
def test_daft_gives_the_rows_of_the_local_engine(table, folder):
    one = question(folder, table)
    wanted = local_rows(one)
    assert wanted
    assert sorted_rows(one, one.to_daft().to_pylist()) == wanted


def test_daft_on_ray_gives_the_rows_of_the_local_engine_also_after_a_worker_is_killed(folder, bucket, faults, tmp_path):
    faults.append(of_objects(every_second_request(BUSY)))
    subprocess.run(
        [sys.executable, "-m", "support.engines", folder, bucket, tmp_path / "answers", *TABLE_COLUMNS],
        env={**os.environ, "PYTHONPATH": str(TESTS), helpers.KILLED: str(tmp_path / "killed")},
        check=True,
    )
    faults.clear()
    answers = json.loads((tmp_path / "answers").read_bytes())
    for table in TABLE_COLUMNS:
        assert answers[table] == local_rows(question(folder, table)), table
    for table in ("records", "usage"):
        assert answers[f"{table} after a kill"] == answers[table]
    for table in ("matches", "sessions"):
        assert answers[f"{table} of objects"] == sorted(row.replace(str(folder), bucket) for row in answers[table])
    assert answers["without a file"] == answers["records"]
    assert answers["missing"] == [[str(tmp_path / "answers.jsonl"), "No such file or directory"]]
    assert "answers.jsonl: No such file or directory" in answers["error"]


ENDING = """
import tailhook.fleet.daft, daft
slow_to_free = [[number] for number in range(1_000_000)]
print(daft.from_pydict({"a": [1, 2]}).where(daft.col("a") > 1).to_pylist())
"""


def test_a_program_of_daft_ends_without_a_crash():  # without the wait for its threads, 4 of 60 crashed
    def run(_):
        done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(run, range(30))) == {(0, "[{'a': 2}]\n", "")}


@TABLES
def test_ray_data_gives_the_rows_of_the_local_engine(table, folder, cluster):
    one = question(folder, table)
    assert sorted_rows(one, one.to_ray().take_all()) == local_rows(one)


@TABLES
def test_objects_of_an_s3_server_give_the_rows_of_files(table, folder, bucket, cluster):
    one = question(bucket, table)
    wanted = local_rows(question(folder, table))
    wanted = sorted(row.replace(str(folder), bucket) for row in wanted)
    assert local_rows(one) == wanted
    assert one.report.skipped == ()
    assert sorted_rows(one, one.to_daft().to_pylist()) == wanted
    if table in ("records", "usage"):  # one reads rows, one joins halves
        assert sorted_rows(one, one.to_ray().take_all()) == wanted


def of_objects(fault):
    """Return faults in answers about transcripts, and none in listings."""
    return lambda path, number: fault(path, number) if ".jsonl" in path else None


UNWELL = {"at times": every_second_request(BUSY, RESET, CUT), "away for a while": first_requests(BUSY, 6)}


@pytest.mark.parametrize(
    ("table", "fault"), [("records", "at times"), ("usage", "at times"), ("usage", "away for a while")]
)
def test_no_engine_loses_an_object_of_a_store_that_is_not_well(table, fault, folder, bucket, faults, cluster):
    wanted = sorted(row.replace(str(folder), bucket) for row in local_rows(question(folder, table)))
    for rows in (
        lambda one: [row._asdict() for row in one.rows()],
        lambda one: one.to_daft().to_pylist(),
        lambda one: one.to_ray().take_all(),
    ):
        faults.append(of_objects(UNWELL[fault]))
        one = question(bucket, table)
        found = sorted_rows(one, rows(one))
        faults.clear()
        assert found == wanted
        assert one.report.skipped == ()


def test_an_object_that_stays_unreadable_ends_the_query_or_is_in_the_report(bucket, files, faults, monkeypatch):
    monkeypatch.setattr(urls, "URL_BUDGET_S", 0.5)
    gone = next(path for path, data in files.items() if path.endswith(".jsonl") and data)
    faults.append(lambda path, number: BUSY if gone in path and "list-type" not in path else None)
    one = question(bucket, "records")
    with pytest.raises(Exception, match=f"{gone}: .*503 Service Unavailable"):
        one.to_daft().to_pylist()
    found = one.to_daft(errors="report").to_pylist()
    assert [path for path, _ in one.report.skipped] == [f"{bucket}/{gone}"]
    faults.clear()
    assert {row["path"] for row in found} == {row.path for row in one.rows()} - {f"{bucket}/{gone}"}


@pytest.mark.parametrize(
    ("engine", "table"),
    [*(("to_daft", table) for table in TABLE_COLUMNS), ("to_ray", "records"), ("to_ray", "sessions")],
)
def test_a_file_that_is_gone_ends_the_query_or_is_in_the_report(engine, table, folder, tmp_path, cluster):
    gone = tmp_path / "gone.jsonl"
    wanted = local_rows(question(folder, table))
    one = question([folder, tmp_path], table)
    for errors in ("raise", "report"):
        gone.write_text('{"type":"user"}\n')
        frame = getattr(one, engine)(errors=errors)
        gone.unlink()
        rows = frame.to_pylist if engine == "to_daft" else frame.take_all
        if errors == "raise":
            with pytest.raises(Exception, match=r"gone\.jsonl: No such file or directory"):
                rows()
        else:
            assert sorted_rows(one, rows()) == wanted
            assert one.report.skipped == ((str(gone), "No such file or directory"),)


def test_what_a_query_does_with_errors_is_one_of_two_words(folder):
    for engine in ("to_daft", "to_ray"):
        with pytest.raises(ValueError, match='errors is \'skip\': give "raise" or "report"'):
            getattr(question(folder, "records"), engine)(errors="skip")


@pytest.mark.parametrize("table", ["records", "usage"])
def test_a_ray_worker_that_is_killed_loses_no_row_and_doubles_none(table, folder, cluster):
    one = question(folder, table)
    with helpers.one_worker_dies():
        found = one.to_ray().take_all()
    assert sorted_rows(one, found) == local_rows(one)


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("matches", {"patterns": {"found": "it"}, "columns": ["path", "context"]}),
        ("records", {"columns": ["path", "text"]}),
        ("tools", {"columns": ["command", "input"]}),
    ],
)
def test_secrets_are_masked_by_every_engine(table, options, tmp_path, cluster):
    secret = "abc123def"
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": f"login --token {secret}"}}
    said = {"type": "text", "text": f"Is it export API_TOKEN={secret} here?"}
    lines = [
        {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [part]}}
        for part in (said, call)
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    one = tailhook.scan(tmp_path, table, redact=True, **options)
    wanted = local_rows(one)
    assert "[secret]" in str(wanted)
    for rows in (one.to_daft().to_pylist(), one.to_ray().take_all()):
        assert sorted_rows(one, rows) == wanted
        assert secret not in str(rows)


def test_what_only_the_local_engine_does_is_refused(folder, tmp_path):
    kept = question(folder, "records", resume=tmp_path / "kept")
    watched = question(folder, "records", progress=print)
    for engine in ("to_daft", "to_ray"):
        with pytest.raises(ValueError, match="keeps no rows for a later run: leave out resume"):
            getattr(kept, engine)()
        with pytest.raises(ValueError, match="shows its own progress: leave out progress"):
            getattr(watched, engine)()
    assert not (tmp_path / "kept").exists()


def test_sources_that_cannot_be_listed_are_an_error_or_in_the_report_and_logged(folder, cluster, caplog):
    one = question([folder, folder / "absent"], "records")
    for make in (one.to_daft, one.to_ray, lambda: engines.plan_scan(one)):
        caplog.clear()
        with pytest.raises(SourceError, match=str(folder / "absent")):
            make()
        assert f"tailhook: {folder / 'absent'}: " in caplog.text
    for make in (one.to_daft, one.to_ray):
        make(errors="report")
        assert [problem.path for problem in one.report.skipped] == [str(folder / "absent")]
    found = one.to_daft(errors="report").to_pylist()
    assert sorted_rows(one, found) == local_rows(question(folder, "records"))


def test_sources_are_listed_once(folder, cluster, monkeypatch):
    listed = []
    original = listing.find_source_files
    monkeypatch.setattr(
        "tailhook.fleet.scan.find_source_files", lambda *arguments: listed.append(arguments) or original(*arguments)
    )
    question(folder, "records").to_ray().count()
    assert len(listed) == 1
    question(folder, "sessions").to_daft().collect()
    assert len(listed) == 2


def test_daft_pushes_columns_and_conditions_down(folder, asked):
    one = question(folder, "records")
    times = sorted(row.timestamp for row in one.rows() if row.timestamp)
    start, end = times[len(times) // 4], times[len(times) // 2]
    there = [row for row in one.rows() if row.role == "user" and row.timestamp and start <= row.timestamp < end]
    sessions = sorted({row.session_id for row in there})[:2]
    col = daft.col
    frame = one.to_daft().where(
        (col("role") == "user")
        & col("session_id").is_in(sessions)
        & (col("timestamp") >= start)
        & (col("timestamp") < end)
    )
    found = frame.select("path", "offset").to_pylist()
    wanted = [(row.path, row.offset) for row in there if row.session_id in sessions]
    assert sorted((row["path"], row["offset"]) for row in found) == sorted(wanted)
    assert wanted
    narrowed = asked[0][0]
    assert set(narrowed.columns) == {"path", "offset", "role", "session_id", "timestamp"}
    conditions = narrowed.conditions
    assert (conditions.roles, sorted(conditions.sessions)) == (("user",), sessions)
    assert (conditions.since, conditions.until) == (start, end + timedelta(microseconds=1))


@pytest.mark.parametrize("count", [1, 2, 9])  # Daft writes a short list as comparisons joined by `or`
def test_daft_pushes_a_list_of_any_length_down(count, folder, asked):
    values = [f"session {number}" for number in range(count)]
    frame = question(folder, "records").to_daft().where(daft.col("session_id").is_in(values))
    assert frame.select("path").to_pylist() == []
    assert {frozenset(one.conditions.sessions) for one, _ in asked} == {frozenset(values)}


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        (daft.functions.coalesce(daft.col("type"), daft.col("role")) == "user", {"type", "role"}),
        (daft.col("text_bytes").cast(daft.DataType.string()) != "5", {"text_bytes"}),
        (daft.col("role").is_in(["user", "assistant", "system", daft.col("type")]), {"role", "type"}),
        (daft.col("role").alias("name") == "user", {"role"}),
    ],
)
def test_the_columns_that_a_filter_of_daft_needs_are_read(condition, columns, folder, asked):
    assert question(folder, "records").to_daft().where(condition).select("path").to_pylist()
    assert {frozenset(one.columns) for one, _ in asked} == {frozenset({"path", *columns})}


def test_a_condition_that_a_scan_cannot_use_is_left_to_daft(folder):
    one = question(folder, "records")
    col = daft.col
    for condition, wanted in [
        (
            (col("role") == "user") | (col("type") == "assistant"),
            lambda row: row.role == "user" or row.type == "assistant",
        ),
        (~(col("role") == "user"), lambda row: row.role is not None and row.role != "user"),
        ((col("role") == "user") & (col("role") == "assistant"), lambda row: False),
        (col("project") == "/home/me/src/app", lambda row: row.project == "/home/me/src/app"),
        (col("role") == col("type"), lambda row: row.role is not None and row.role == row.type),
        (col("role").is_in([col("type"), "user"]), lambda row: row.role is not None and row.role in (row.type, "user")),
        (col("role").upper() == "USER", lambda row: row.role == "user"),
        (col("text_bytes") + 1 > 20, lambda row: row.text_bytes > 19),
        (col("timestamp").is_null(), lambda row: row.timestamp is None),
    ]:
        found = one.to_daft().where(condition).count_rows()
        assert found == sum(1 for row in one.rows() if wanted(row)), str(condition)


@pytest.mark.parametrize("project", ["", "/", "\\", "\\\\", "//", "/p", "/p/", "C:\\", "C:"])
def test_a_project_that_daft_compares_may_be_any_text(tmp_path, project):
    projects = ["", "/", "\\", "\\\\", "//", "/p", "/p/", "/p/q", "/pq", "C:\\", "C:", "C:\\p"]
    lines = [json.dumps({"type": "user", "cwd": found}) + "\n" for found in projects]
    (tmp_path / "s.jsonl").write_text("".join(lines))
    frame = question(tmp_path, "records").to_daft()
    assert frame.where(daft.col("project") == project).select("project").to_pylist() == [{"project": project}]


def test_ray_pushes_columns_down(folder, cluster, monkeypatch):
    pushed = []
    original = engines.TaskReader.with_columns
    monkeypatch.setattr(
        engines.TaskReader, "with_columns", lambda reader, names: pushed.append({*names}) or original(reader, names)
    )
    one = question(folder, "records", columns=["path", "role"])
    frame = question(folder, "records").to_ray()
    users = frame.filter(expr=ray.data.expressions.col("role") == "user")
    for selected, columns, needed in (
        (frame.select_columns(["role", "path"]), ["role", "path"], {"role", "path"}),  # in another order
        (users.select_columns(["path"]), ["path"], None),  # Ray pushes nothing past a filter
        (frame.rename_columns({"path": "file"}).select_columns(["file"]), ["file"], {"path"}),
    ):
        pushed.clear()
        assert [*selected.take(1)[0]] == selected.columns() == columns
        assert (needed in pushed) == bool(needed)
    assert sorted_rows(one, frame.select_columns(["role", "path"]).take_all()) == local_rows(one)
    assert frame.select_columns(["role"]).count() == len(local_rows(one))


def test_a_limit_ends_the_scan_early(folder, asked):
    frame = question(folder, "records").to_daft()
    assert len(frame.limit(3).to_pylist()) == 3
    assert {rest[-1] for _, rest in asked} == {3}
    assert len(frame.where(daft.col("role") == "user").limit(3).to_pylist()) == 3


def test_an_empty_source_has_no_rows_and_the_columns_of_its_table(tmp_path, cluster):
    for table in TABLE_COLUMNS:
        one = question(tmp_path, table)
        assert one.to_daft().column_names == list(one.columns)
        assert one.to_daft().to_pylist() == []
        assert one.to_ray().take_all() == []
    for table in ("records", "usage"):
        one = question(tmp_path, table)
        assert one.to_ray().schema().names == list(one.columns)


def test_rows_on_ray_have_the_columns_of_their_table_if_no_line_gives_one(tmp_path, cluster):
    (tmp_path / "a.jsonl").write_text("not a record\n")
    one = question(tmp_path, "tools")
    assert one.to_ray().schema().names == list(one.columns)


@pytest.mark.parametrize("engine", ["to_daft", "to_ray"])
def test_a_relative_source_is_found_from_any_folder_and_its_rows_have_the_given_path(
    engine, folder, tmp_path, monkeypatch, cluster
):
    monkeypatch.chdir(folder)
    for table in ("records", "usage"):
        one = question("0", table)
        wanted = local_rows(one)
        assert wanted
        frame = getattr(one, engine)()
        monkeypatch.chdir(tmp_path)
        assert sorted_rows(one, frame.to_pylist() if engine == "to_daft" else frame.take_all()) == wanted
        monkeypatch.chdir(folder)
    (tmp_path / "gone.jsonl").write_text('{"type":"user"}\n')
    monkeypatch.chdir(tmp_path)
    one = question("gone.jsonl", "records")
    frame = getattr(one, engine)(errors="report")
    (tmp_path / "gone.jsonl").unlink()
    assert (frame.to_pylist() if engine == "to_daft" else frame.take_all()) == []
    assert one.report.skipped == (("gone.jsonl", "No such file or directory"),)


REPORT_AFTER_RAY = """
import sys, ray, tailhook
from tailhook.errors import SourceError
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
scan = tailhook.scan(sys.argv[1], "records")
print(len(scan.to_ray(errors="report").take_all()))
ray.shutdown()
try:
    scan.report
except SourceError as error:
    print(error)
"""


def test_a_report_that_has_ended_with_ray_is_an_error_in_plain_words(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"type":"user"}\n')
    done = subprocess.run(
        [sys.executable, "-c", REPORT_AFTER_RAY, tmp_path], capture_output=True, text=True, check=True
    )
    rows, words = done.stdout.splitlines()
    assert rows == "1"
    assert words.startswith("Ray or one of its workers has ended, and with it the list of the sources that")


def test_times_are_those_of_the_rows(folder):
    one = question(folder, "usage", since=datetime(2026, 11, 1, 12, 1, tzinfo=UTC))
    assert sorted_rows(one, one.to_daft().to_pylist()) == local_rows(one)
