"""Objects in a store that is busy, resets connections or cuts bodies: each loss is reported."""

import contextlib

import pytest
from support.range_server import environment_of_bucket, served
from support.unwell_store import BUSY, CUT, RESET, every_second_request, first_requests, unwell

import tailhook
from tailhook.errors import SourceError
from tailhook.fleet import objects
from tailhook.transcripts import urls

LINE = b'{"type":"user","sessionId":"s","message":{"role":"user","content":"Fix the TODO."}}\n'
FILES = {f"all/{number}.jsonl": LINE * (1 + number) for number in range(20)}
ROWS = sum(range(21))
# Until the store is well again, its answers fail more often than obstore repeats a request by default (10 times).
FAULTS = {
    "busy at times": every_second_request(BUSY),
    "reset at times": every_second_request(RESET),
    "cut at times": lambda path, number: CUT if path.endswith(".jsonl") and number % 2 == 0 else None,
    "away for a while": first_requests(BUSY, 12),
    "unreachable for a while": first_requests(RESET, 12),
}


@contextlib.contextmanager
def unwell_bucket(fault, files=FILES):
    """Serve files as the bucket `bucket`, behind a proxy with faults, and give the count of faults by path."""
    with (
        served({f"/bucket/{key}": data for key, data in files.items()}) as (address, _),
        unwell(address, fault) as (proxy, faults),
        environment_of_bucket(proxy),
    ):
        yield faults


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(urls, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(urls, "MAX_PAUSE_S", 0.02)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_is_not_well_for_a_while_loses_no_object(fault):
    with unwell_bucket(FAULTS[fault]) as faults:
        scan = tailhook.scan("s3://bucket/all", "records")
        assert sum(1 for _ in scan.rows()) == ROWS
        assert scan.report.skipped == ()
        assert all(faults[f"/bucket/{key}"] for key in FILES)


def test_a_listing_that_is_cut_goes_on_behind_what_was_listed():
    keys = [f"all/{number:03}.jsonl" for number in range(120)]
    once = lambda path, number: CUT if "continuation-token=54" in path and number == 0 else None  # noqa: E731
    with unwell_bucket(once, dict.fromkeys(keys, LINE)) as faults:
        problems = []
        found = [file.path for file in objects.find_objects("s3://bucket/all", problems, set())]
    assert problems == []
    assert found == [f"s3://bucket/{key}" for key in keys]
    assert any("start-after" in path for path in faults)


def test_an_object_that_stays_unreadable_is_reported_when_its_time_is_over(monkeypatch):
    monkeypatch.setattr(urls, "URL_BUDGET_S", 2)
    with unwell_bucket(lambda path, number: BUSY if path.endswith("/3.jsonl") else None) as faults:
        scan = tailhook.scan("s3://bucket/all", "records")
        assert sum(1 for _ in scan.rows()) == ROWS - 4
        ((path, reason),) = scan.report.skipped
    assert path == "s3://bucket/all/3.jsonl"
    assert "503 Service Unavailable" in reason
    assert faults["/bucket/all/3.jsonl"] > 4  # it was asked for again and again


@pytest.mark.parametrize("with_etags", [True, False])
def test_an_answer_that_was_cut_is_asked_for_again_with_and_without_an_etag(with_etags):
    with (
        served({"/a.jsonl": LINE * 100}, with_etags=with_etags) as (address, _),
        unwell(address, first_requests(CUT, 3)) as (proxy, faults),
        tailhook.open(f"{proxy}/a.jsonl") as session,
    ):
        assert sum(1 for _ in session) == 100
    assert faults["/a.jsonl"] == 3


def test_an_answer_that_is_always_cut_is_an_error_when_its_time_is_over(monkeypatch):
    monkeypatch.setattr(urls, "URL_BUDGET_S", 2)
    with (
        served({"/a.jsonl": LINE * 100}, with_etags=False) as (address, asked),
        unwell(address, lambda path, number: CUT if number else None) as (proxy, _),
    ):
        with pytest.raises(SourceError, match=r"a\.jsonl cannot be read: "):
            tailhook.open(f"{proxy}/a.jsonl")
        assert len(asked) > 3


def test_a_web_server_that_cannot_list_is_not_asked_for_as_long_as_an_object(monkeypatch):
    budgets = []
    original = objects.open_store
    monkeypatch.setattr(objects, "open_store", lambda *given: budgets.append(given[2:]) or original(*given))
    monkeypatch.setattr(objects, "WEB_LISTING_BUDGET_S", 0)
    with served({}) as (address, _):
        scan = tailhook.scan(f"{address}/folder/", "records")
        assert list(scan.rows()) == []
    assert "501" in scan.report.skipped[0].reason
    assert budgets == [(0,)]


@pytest.mark.parametrize("start", [0, 100, 1024])
def test_a_range_of_an_object_is_asked_for_in_as_few_requests_as_its_blocks(start, monkeypatch):
    monkeypatch.setattr(objects, "BLOCK_BYTES", 1024)
    size = 4 * 1024
    version = urls.UrlVersion(start + size, 0, "")
    part = objects.FileRange("p", start, start + size, start + size, version, 0, "s3://b/p")
    found = [span for span in objects.spans([part]) if span.start or not start]
    assert [span.start for span in found] == [max(0, start - 1), *range(start + 1024, start + size, 1024)]
    assert [span.start + span.length for span in found] == list(range(start + 1024, start + size + 1, 1024))
