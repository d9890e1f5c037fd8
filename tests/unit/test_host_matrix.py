"""The matrix of hosts: which releases it runs, what it prints of them, and the page that has them."""

import json
import re
import sys
from pathlib import Path

import pytest

from tailhook.hosts import NAMES, find_host

ENDTOEND = Path(__file__).parents[1] / "endtoend"
PAGE = Path(__file__).parents[2] / "docs" / "hosts.md"
WORKS, FAILS = {"Esc": ""}, {"Esc": "it is running"}


@pytest.fixture(scope="module")
def matrix():
    """Return the module. It stands beside the tests of whole sessions."""
    sys.path.insert(0, str(ENDTOEND))
    try:
        import host_matrix
    finally:
        sys.path.remove(str(ENDTOEND))
    return host_matrix


def test_a_week_has_its_newest_release_by_number_and_never_an_older_one(matrix):
    times = {
        "created": "2026-06-02T00:00:00Z",
        "0.9.0": "2026-05-31T23:59:59Z",
        "0.9.1": "2026-06-01T00:00:00Z",
        "0.10.0": "2026-06-02T00:00:00Z",
        "0.9.2": "2026-06-07T00:00:00Z",
        "0.11.0-beta.1": "2026-06-07T00:00:00Z",
        "0.9.3": "2026-06-08T00:00:00Z",  # a mended old one, in the next week
        "0.12.0": "2026-06-15T00:00:00Z",
    }
    assert matrix.newest_of_weeks(times) == ["0.10.0", "0.12.0"]


def test_a_release_without_a_session_is_run_again(matrix, monkeypatch):
    times = {"0.1.0": "2026-06-02T00:00:00Z", "0.2.0": "2026-06-09T00:00:00Z", "0.3.0": "2026-06-16T00:00:00Z"}
    monkeypatch.setattr(matrix, "npm", lambda *_, **__: json.dumps(times))
    all_sessions = dict.fromkeys(matrix.tests_of("codex"), "it fails")
    known = {"0.1.0": all_sessions, "0.2.0": {name: why for name, why in all_sessions.items() if name != "Esc"}}
    assert matrix.missing("codex", known) == ["0.2.0", "0.3.0"]


def test_the_first_release_that_behaves_differently_is_named(matrix):
    rows = {"0.9.0": FAILS, "0.10.0": WORKS, "0.11.0": {**WORKS, "a loop": "no"}, "0.12.0": FAILS}
    assert matrix.changes({"codex": rows}) == ["codex 0.10.0, Esc: works again", "codex 0.12.0, Esc: it is running"]


@pytest.mark.parametrize(
    ("row", "release", "known", "is_worse"),
    [
        (FAILS, "0.2.0", {"0.2.0": WORKS, "0.10.0": FAILS}, True),
        (FAILS, "0.2.0", {"0.2.0": FAILS, "0.10.0": WORKS}, False),
        (FAILS, "0.11.0", {"0.9.0": FAILS, "0.10.0": WORKS}, True),
        (FAILS, "0.11.0", {"0.9.0": WORKS, "0.10.0": FAILS}, False),
        (FAILS, "0.11.0", {}, True),
        (WORKS, "0.11.0", {"0.10.0": FAILS}, False),
    ],
)
def test_a_release_is_compared_with_itself_and_a_new_one_with_the_newest(matrix, row, release, known, is_worse):
    assert matrix.fails_newly(row, release, known) is is_worse


def test_the_page_has_the_results(matrix):
    page = PAGE.read_text(encoding="utf-8")
    begin, end = page.index(matrix.BEGIN), page.index(matrix.END) + len(matrix.END)
    assert page[begin:end] == matrix.tables(json.loads(matrix.RESULTS.read_text(encoding="utf-8")))


def test_the_page_names_events_that_the_hosts_report():
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").split("\n## ")[1].split("\n")]
    files = {host.TITLE: host.HOOKS_FILE for host in map(find_host, NAMES)}
    titles = {title: {file["stop_event"], *file["reported_events"]} for title, file in files.items()}
    [header] = [row for row in rows if set(row) & set(titles)]
    for row in rows[rows.index(header) + 2 :]:
        for title, cell in zip(header, row[1:], strict=False):
            events = set(re.findall(r"`([A-Za-z]+)`", cell)) - {"status", "error", "terminationReason"}  # of a stop
            assert events <= titles[title], (title, row[0])


def test_a_report_has_the_first_line_of_what_failed_for_each_test(matrix, tmp_path):
    (tmp_path / "report.xml").write_text(
        """<testsuites><testsuite><testcase name="one[a]"/><testcase name="one[b]"><failure message="E 1&#10;E 2"/>
        </testcase><testcase name="two"/><testcase name="three"><skipped message="not installed"/></testcase>
        </testsuite></testsuites>"""
    )
    assert matrix.read_report(tmp_path / "report.xml") == {"one": "E 1", "two": "", "three": "not installed"}


def test_each_session_has_a_test(matrix):
    for tests in matrix.SESSIONS.values():
        for test in tests.values():
            file, _, name = test.partition("::")
            assert f"def {name}(" in (ENDTOEND / file).read_text(encoding="utf-8")
