"""The breakdown of a scan in benches/stages.py, and its page by benches/report.py."""

import json
import sys
from pathlib import Path

import pytest

from tailhook.fleet.program import ESCAPED_ASCII
from tailhook.patterns.automaton import prefilter

BENCHES = Path(__file__).resolve().parents[2] / "benches"
LITERAL = [
    *("read", "prefilter", "bounds", "skip", "unescape", "search", "code map", "append"),
    "the whole scan",
]
RECORDS = ["read", "bounds", "skip", "append of one column", "append", "the whole scan"]


@pytest.fixture
def stages(monkeypatch):
    """Return the module of the stages."""
    return module(monkeypatch, "stages")


@pytest.fixture
def report(monkeypatch):
    """Return the module that writes the page."""
    return module(monkeypatch, "report")


def module(monkeypatch, name):
    """Return a module of the benchmarks; other tests do not see the import."""
    monkeypatch.syspath_prepend(BENCHES)
    found = __import__(name)
    monkeypatch.delitem(sys.modules, name)
    return found


@pytest.fixture
def folders(tmp_path, stages):
    """Return a folder with a transcript of four records, and its copy without records."""
    folder, copy = tmp_path / "p", tmp_path / "copy"
    folder.mkdir()
    texts = ["an error", "`an error` in code", "nothing"]
    records = [
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}
        for text in texts
    ]
    result = {"type": "tool_result", "tool_use_id": "t", "content": "an error"}
    records.append({"type": "user", "message": {"role": "user", "content": [result]}})
    (folder / "one.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    stages.copy_without_records(folder, copy)
    return folder, copy


def test_each_stage_of_a_literal_does_all_that_the_one_before_it_does(stages, folders):
    asked = stages.literal_stages("error")
    assert [stage.name for stage in asked] == LITERAL
    # The number of records read, and of rows. Three lines have the literal, one of them in prose.
    assert [stage.run(*folders) for stage in asked] == [(0, 0)] * 3 + [(3, 0)] * 3 + [(3, 1)] * 3


def test_each_stage_of_the_records_does_all_that_the_one_before_it_does(stages, folders):
    asked = stages.record_stages()
    assert [stage.name for stage in asked] == RECORDS
    assert [stage.run(*folders) for stage in asked] == [(0, 0)] * 2 + [(4, 0)] + [(4, 4)] * 3


def test_the_search_that_finds_nothing_looks_for_the_same_bytes_at_first(stages):
    literals = ["error", *ESCAPED_ASCII]
    found, missing = (
        prefilter([(text + end).encode() for text in literals], ignore_case=False) for end in ("", stages.NOWHERE)
    )
    assert found.nibbles == missing.nibbles


def test_stages_are_measured_in_turns_and_the_least_time_counts(stages):
    ran, times = [], iter([0, 5, 5, 6, 10, 12, 20, 24])
    seconds = stages.measure_in_turns([lambda: ran.append("a"), lambda: ran.append("b")], 2, lambda: next(times))
    assert (ran, seconds) == (["a", "b", "a", "b"], [2, 1])


def test_the_page_prints_stages_in_their_order_with_what_each_adds(stages, report):
    asked = stages.record_stages()[:3]
    measured = {
        "name": "test_stages_of_a_scan[records-x]",
        "params": {"question": "records", "published": "x"},
        "param": "records-x",
        "extra_info": {"table": stages.breakdown(asked, [0.2, 0.1, 0.4]), "note": "In turns."},
        "stats": {"median": 1.0},
    }
    page = report.sections([measured])
    assert page[:4] == ["", "## stages of a scan records", "", "In turns."]
    rows = [[cell.strip() for cell in line.split("|")[1:5]] for line in page[5:]]
    assert rows[0] == ["stage", "time so far", "this stage", "of the whole"]
    assert rows[2:] == [
        ["read", "200 ms", "200 ms", "50%"],
        ["bounds", "100 ms", "-100 ms", "-25%"],  # not sorted by time
        ["skip", "400 ms", "300 ms", "75%"],
    ]


def test_other_tables_are_sorted_by_time(report):
    measured = [
        {
            "name": f"test_lines[{engine}]",
            "params": {"engine": engine},
            "param": engine,
            "extra_info": {},
            "stats": {"median": seconds},
        }
        for engine, seconds in (("slow", 0.2), ("tailhook", 0.1))
    ]
    page = report.sections(measured)
    assert page[1] == "## lines"
    assert [line.split("|")[1].strip() for line in page[5:]] == ["tailhook", "slow"]
