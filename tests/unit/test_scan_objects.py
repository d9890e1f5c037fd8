"""Transcripts at URLs: which objects a URL stands for, and the same rows as from files."""

import gzip
import os
import re
import tempfile
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

import pytest
from support.range_server import bucket, served
from support.transcript_trees import grow_tree, mixed_files

import tailhook
from tailhook._core import RangeScan
from tailhook.fleet import listing, local, objects, plan
from tailhook.fleet.columns import TABLE_COLUMNS

LINE = b'{"type":"user","sessionId":"s","message":{"role":"user","content":"Fix the TODO."}}\n'
CODEX = b'{"type":"session_meta","payload":{"id":"s","cwd":"/p"}}\n'
CODEX_LINE = b'{"type":"response_item","payload":{"type":"message","role":"user","content":"Fix the TODO."}}\n'


def all_rows(source, table, root, **question):
    """Return the rows of a table, with paths below `root`."""
    if table == "matches":
        question = {"patterns": ["the "], "in_code": None, **question}
    columns = [name for name in TABLE_COLUMNS[table] if name != "bytes"]
    found = tailhook.scan(source, table, columns=columns, workers=2, **question)
    rows = [
        tuple(re.sub(f"^{re.escape(root)}", "", value) if isinstance(value, str) else value for value in row)
        for row in found.rows()
    ]
    assert found.report.skipped == ()
    return rows


@pytest.fixture
def small_tasks(monkeypatch):
    """Cut files into ranges of 1 KB, keep 600 bytes of their beginnings and fetch blocks of 512 bytes."""
    original = plan.make_tasks
    monkeypatch.setattr("tailhook.fleet.scan.make_tasks", lambda files: original(files, 1 << 10))
    monkeypatch.setattr(objects, "BLOCK_BYTES", 512)
    monkeypatch.setattr(objects, "OVER_BYTES", 100)
    monkeypatch.setattr(objects, "HEAD_BYTES", 600)
    monkeypatch.setattr(objects, "MAX_AHEAD_BYTES", 2048)


@pytest.mark.parametrize("table", TABLE_COLUMNS)
def test_objects_in_a_bucket_give_the_rows_of_files(tmp_path, table, small_tasks):
    found = [*grow_tree(Random(0)).files, *mixed_files(Random(3))]
    found += [("a b%20ü #1.jsonl", LINE), ("packed.jsonl.gz", gzip.compress(LINE * 9)), ("empty.jsonl", b"")]
    keys = {f"all/{path.strip('/')}": data for path, data in found}
    for key, data in keys.items():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(data)
    wanted = all_rows(tmp_path / "all", table, f"{tmp_path}/")
    with bucket(keys):
        assert all_rows("s3://bucket/all", table, "s3://bucket/") == wanted
    assert wanted


@pytest.mark.parametrize("data", [b"", LINE, CODEX + CODEX_LINE], ids=["empty", "claude-code", "codex"])
def test_an_object_that_is_compressed_by_its_name_only_is_scanned_as_the_same_file_is(tmp_path, data):
    for table in TABLE_COLUMNS:
        with bucket({"all/a.jsonl.gz": data, "all/b.jsonl.zst": data}) as (files, _):
            for path, content in files.items():
                (tmp_path / path.removeprefix("/bucket/all/")).write_bytes(content)
            found = all_rows("s3://bucket/all", table, "s3://bucket/all")
            assert found == all_rows(tmp_path, table, str(tmp_path))
            assert found or not data or table in ("matches", "tools", "usage")


@pytest.mark.parametrize("data", [LINE, gzip.compress(LINE)], ids=["plain", "compressed"])
def test_an_object_for_whose_copy_there_is_no_room_is_reported(data, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(Path("/dev/full").open, "r+b"))
    with bucket({"a.jsonl.gz": data}):
        scan = tailhook.scan("s3://bucket/a.jsonl.gz", "records")
        assert list(scan.rows()) == []
    place = f"{tempfile.gettempdir()}: No space left on device"
    assert scan.report.skipped == (("s3://bucket/a.jsonl.gz", f"it cannot be copied to a temporary file: {place}"),)


def listed(*urls):
    problems = []
    return [file.path for file in listing.find_source_files(urls, problems)], problems


def test_a_url_is_an_object_a_prefix_or_a_glob():
    keys = dict.fromkeys(
        ["a/x.jsonl", "a/b/y.jsonl.gz", "a/b/z.txt", "ab/w.jsonl", "v.jsonl", "a/b/c/2026-1.jsonl"], LINE
    )
    with bucket(keys):
        everything = ["a/b/c/2026-1.jsonl", "a/b/y.jsonl.gz", "a/x.jsonl", "ab/w.jsonl", "v.jsonl"]
        for url, wanted in {
            "s3://bucket": everything,
            "s3://bucket/": everything,
            "s3://bucket/a": everything[:3],
            "s3://bucket/a/": everything[:3],
            "s3://bucket/a/x.jsonl": ["a/x.jsonl"],
            "s3://bucket/a/b/z.txt": ["a/b/z.txt"],
            "s3://bucket/**/*.jsonl": [key for key in everything if key.endswith(".jsonl")],
            "s3://bucket/a/*/*/2026-?.jsonl": ["a/b/c/2026-1.jsonl"],
            "s3://bucket/a*/*.jsonl": ["a/x.jsonl", "ab/w.jsonl"],
        }.items():
            assert listed(url) == ([f"s3://bucket/{key}" for key in wanted], []), url
        assert listed("s3://bucket/none") == ([], [("s3://bucket/none", "nothing is there")])
        assert listed("s3://bucket/*.csv") == ([], [("s3://bucket/*.csv", "no file matches")])


def test_a_file_on_a_web_server_is_scanned_and_a_server_that_lists_nothing_is_a_problem(monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    with served({"/folder/a b.jsonl": LINE}) as (address, _):
        url = f"{address}/folder/a%20b.jsonl"
        asked = tailhook.scan([url, f"{address}/folder/"], patterns=["TODO"])
        assert [(row.path, row.session_id) for row in asked.rows()] == [(url, "s")]
        assert [problem.path for problem in asked.report.skipped] == [f"{address}/folder/"]
        with tailhook.open(url) as session:
            assert session.at(0).text == "Fix the TODO."


@pytest.mark.parametrize("with_head", [True, False])
def test_an_address_with_a_query_is_one_file(with_head, monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    line = LINE.replace(b'"s"', b'""')
    files = {"/a.jsonl?signed=1/": line, "/b.jsonl.gz?signed=2": gzip.compress(line)}
    with served(files, with_head=with_head) as (address, _):
        urls = [f"{address}/a.jsonl?signed=1/", f"{address}/b.jsonl.gz?signed=2#x"]
        asked = tailhook.scan([*urls, f"{address}/a.jsonl?signed=3/"], patterns=["TODO"])
        assert [(row.path, row.session_id) for row in asked.rows()] == [(urls[0], "a"), (urls[1], "b")]
        assert [problem.path for problem in asked.report.skipped] == [f"{address}/a.jsonl?signed=3/"]


def test_a_signed_address_is_shown_without_its_signature_and_keeps_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    data = LINE * 3
    signed = [f"/a.jsonl?X-Amz-Date={day}&X-Amz-Signature=0f{day}" for day in range(3)]
    with served(dict.fromkeys(signed, data)) as (address, _):
        for query in signed:
            scan = tailhook.scan(address + query, "records", resume=tmp_path / "kept")
            assert [row.path for row in scan.rows()] == [f"{address}/a.jsonl"] * 3
        kept = b"".join(file.read_bytes() for file in (tmp_path / "kept").iterdir())
        assert b"Signature" not in kept
        assert listed(f"{address}/a.jsonl?X-Amz-Signature=1") == ([], [(f"{address}/a.jsonl", "nothing is there")])


def test_what_names_a_file_in_a_query_stays_beside_a_token(tmp_path):
    files = {f"/get?id={number}&token=x": LINE.replace(b'"s"', b'"%d"' % number) for number in (7, 8)}
    with served(files) as (address, _):
        rows = list(tailhook.scan([address + name for name in files], "records").rows())
        assert [(row.path, row.session_id) for row in rows] == [(f"{address}/get?id={n}", str(n)) for n in (7, 8)]


def test_two_files_that_are_shown_by_one_path_are_not_taken_for_one():
    with served({"/a.jsonl?token=x": LINE, "/a.jsonl?token=y": LINE * 2}) as (address, _):
        asked = tailhook.scan([f"{address}/a.jsonl?token=x", f"{address}/a.jsonl?token=y"], "records")
        assert len(list(asked.rows())) == 1
        assert [problem.path for problem in asked.report.skipped] == [f"{address}/a.jsonl"]


def test_messages_have_no_credentials_of_a_url(monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    with served({"/a.jsonl?access_token=hunter2": b"\x1f\x8b broken"}) as (address, _):
        user = address.replace("//", "//me:hunter2@")
        for url in (
            f"{address}/a.jsonl?access_token=hunter2",
            f"{user}/none.jsonl",
            "http://me:hunter2@127.0.0.1:1/a(1).jsonl?sig=hunter2",
        ):
            with pytest.raises((tailhook.SourceError, FileNotFoundError)) as caught:
                tailhook.open(url)
            asked = tailhook.scan(url, "records")
            assert list(asked.rows()) == []
            assert "hunter2" not in f"{caught.value}{asked.report.skipped}"
            assert "127.0.0.1" in str(caught.value)


def test_a_scheme_may_be_in_capitals():
    with bucket({"a.jsonl": LINE}):
        assert listed("S3://bucket/a.jsonl") == (["s3://bucket/a.jsonl"], [])
        with tailhook.open("S3://bucket/a.jsonl") as session:
            assert session.at(0).session_id == "s"


def test_what_is_not_at_its_address_is_reported_without_the_words_of_a_listing(monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    with served({"/a.jsonl": LINE}) as (address, _):
        for url in (f"{address}/none.jsonl", f"{address}/folder", f"{address}/a.jsonl?signed=1"):
            assert listed(url) == ([], [(url, "nothing is there")])


def test_why_a_store_refuses_is_reported(monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    with bucket({}):
        found, ((url, reason),) = listed("s3://other/folder/")
    assert (found, url) == ([], "s3://other/folder/")
    assert reason.endswith("404 Not Found: NoSuchBucket: It isn't there")


@pytest.mark.parametrize("names", [("a.jsonl", "b.jsonl"), ("a/", "b/"), ("a.jsonl?id=1", "a.jsonl?id=2")])
def test_a_server_that_cannot_be_reached_is_asked_for_one_source_only(monkeypatch, names):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    monkeypatch.setattr("tailhook.fleet.objects.WEB_LISTING_BUDGET_S", 0)
    with served({"/c.jsonl": LINE}) as (reached, _):
        with served({}) as (address, _):
            pass
        first, second = (f"{address}/{name}" for name in names)
        found, problems = listed(first, second, f"{reached}/c.jsonl")
    assert found == [f"{reached}/c.jsonl"]
    assert [url for url, _ in problems] == [first, second]
    assert problems[0][1].endswith("error sending request")
    assert problems[1][1] == "its server could not be reached for another source"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_task_does_not_ask_a_server_for_other_objects_after_it_could_not_be_reached(monkeypatch, pack):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    ending = "jsonl" if pack is bytes else "jsonl.gz"
    with bucket({f"{number:02}.{ending}": pack(LINE) for number in range(40)}):
        task, *others = plan.make_tasks(listing.find_source_files(["s3://bucket"], []))
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        result = local.scan_task(tailhook.scan("s3://bucket", "records")._programs["records"], task)
    assert (len(result.problems), others) == (40, [])
    assert result.problems[0].reason.endswith("error sending request")
    assert {problem.reason for problem in result.problems[1:]} == {"its server could not be reached for another source"}


@pytest.mark.parametrize("query", ["", "?id=1"])
def test_a_server_that_cannot_be_reached_is_asked_in_one_way_only(monkeypatch, query):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    asked = []
    monkeypatch.setattr("obstore.get", lambda *given, **options: asked.append(given))
    with served({}) as (address, _):
        pass
    with pytest.raises(tailhook.SourceError, match="error sending request"):
        tailhook.open(f"{address}/a.jsonl{query}")
    assert asked == []


def test_without_credentials_the_reason_names_the_variables_to_set(monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with served({}) as (address, _):
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", address)
        found, ((url, reason),) = listed("s3://bucket/folder/")
    assert (found, url) == ([], "s3://bucket/folder/")
    assert "no credentials are in the environment: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or " in reason


def test_a_path_and_an_offset_of_a_row_open_the_record_again():
    with bucket({"a b%20ü #1.jsonl": LINE * 3}):
        for row in tailhook.scan("s3://bucket", "records").rows():
            with tailhook.open(row.path) as session:
                assert session.at(row.offset).session_id == "s"


def test_an_object_that_vanished_is_a_problem_and_the_others_are_scanned(monkeypatch):
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    with bucket({"a.jsonl": LINE, "b.jsonl": LINE, "c.jsonl": LINE}) as (files, _):
        (task,) = plan.make_tasks(listing.find_source_files(["s3://bucket"], []))
        del files["/bucket/b.jsonl"]
        result = local.scan_task(tailhook.scan("s3://bucket", "records")._programs["records"], task)
        assert [problem.path for problem in result.problems] == ["s3://bucket/b.jsonl"]
        assert result.counts["records"] == 2


class ReplacedFile(dict):
    """A file of a server, {path: bytes}, that is replaced after so many requests for it."""

    def __init__(self, path, old, new, requests):
        super().__init__({path: old})
        self.path, self.new, self.requests = path, new, requests

    def get(self, path, default=None):
        self.requests -= path == self.path
        if self.requests == 0:
            self[path] = self.new
        return super().get(path, default)


WAYS = {
    "plain": ("/a.jsonl", lambda text: LINE.replace(b"TODO", text) * 20),
    "another host's": ("/a.jsonl", lambda text: CODEX + CODEX_LINE.replace(b"TODO", text) * 20),
    "compressed": ("/a.jsonl.gz", lambda text: gzip.compress(LINE.replace(b"TODO", text) * 20, 0, mtime=0)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("with_etags", [True, False])
def test_an_object_that_is_replaced_while_it_is_read_gives_rows_of_one_version(
    way, with_etags, small_tasks, monkeypatch
):
    """Without etags, objects are known by size and time, and the server reports one time for all."""
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BUDGET_S", 0)
    monkeypatch.setattr("tailhook.transcripts.urls.URL_BLOCK_BYTES", 256)
    path, data = WAYS[way]
    problems = set()
    for requests in range(1, 25, 3):
        files = ReplacedFile(path, data(b"OLD!"), data(b"NEW!" if with_etags else b"NEWER!"), requests)
        with served(files, with_etags=with_etags) as (address, _):
            scan = tailhook.scan(f"{address}{path}", patterns=["OLD", "NEW"], columns=["name"], workers=1)
            names = [row.name for row in scan.rows()]
        assert names in (["OLD"] * len(names), ["NEW"] * len(names)), requests
        assert len(names) == 20 or scan.report.skipped, requests
        problems |= {problem.reason for problem in scan.report.skipped}
    assert problems == {"it was replaced while it was read: read it again"}


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_with_fewer_bytes_than_were_asked_for_is_a_problem(way):
    path, data = WAYS[way]
    with served({path: data(b"TODO")}, missing_bytes=1) as (address, _):
        scan = tailhook.scan(f"{address}{path}", patterns=["TODO"])
        assert list(scan.rows()) == []
    ((url, reason),) = scan.report.skipped
    assert url == f"{address}{path}"
    assert reason.startswith("it gave fewer bytes than asked for: ")


@pytest.mark.parametrize("data", [LINE * 50_000, CODEX + CODEX_LINE * 50_000], ids=["claude-code", "codex"])
def test_a_large_object_is_fetched_in_blocks_and_each_once(data, monkeypatch):
    monkeypatch.setattr(objects, "BLOCK_BYTES", 1 << 20)
    with bucket({"a.jsonl": data}) as (_, asked):
        assert sum(1 for row in tailhook.scan("s3://bucket", patterns=["TODO"]).rows()) == 50_000
        assert sorted(asked) == [(start, min(start + (1 << 20), len(data))) for start in range(0, len(data), 1 << 20)]


@pytest.mark.parametrize("data", [LINE * 20_000, CODEX + CODEX_LINE * 20_000], ids=["claude-code", "codex"])
def test_a_task_that_is_stopped_does_not_read_its_object_to_the_end(data, monkeypatch):
    monkeypatch.setattr(objects, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(objects, "MAX_AHEAD_BYTES", 1 << 17)
    with bucket({"a.jsonl": data}) as (_, asked):
        (task,) = plan.make_tasks(listing.find_source_files(["s3://bucket"], []))
        program = tailhook.scan("s3://bucket", "records")._programs["records"]
        scan = RangeScan(program)
        original = objects.ObjectReader.blocks

        def blocks(*arguments):
            for number, block in enumerate(original(*arguments)):
                if number == 3:
                    scan.stop()
                yield block

        monkeypatch.setattr(objects.ObjectReader, "blocks", blocks)
        local.scan_task(program, task, scan)
        assert 0 < sum(end - start for start, end in asked) < len(data) / 2


def test_an_object_that_was_last_modified_a_day_before_the_time_asked_for_is_not_fetched():
    written = datetime(2026, 11, 22, 8, tzinfo=UTC)  # as the server reports all objects
    with bucket({"a.jsonl": LINE, "b.jsonl": LINE}):
        for hours, older_files in ((24, 0), (25, 2)):
            scan = tailhook.scan("s3://bucket/", "records", since=written + timedelta(hours=hours))
            assert list(scan.rows()) == []
            assert (scan.report.files, scan.report.older_files) == (2 - older_files, older_files)
