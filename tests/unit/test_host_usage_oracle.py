"""The oracle of token usage, against the bills of made-up histories in the hosts' forms."""

import pytest
from support.corpora import transcript_paths
from support.oracles.host_usage import HOSTS, Response, responses
from support.usage_histories import HISTORIES, NOT_FOLLOWED

ALL = {**HISTORIES, **NOT_FOLLOWED}


def counted(host, files, folder):
    """Return the oracle's responses in files with the given names and texts."""
    paths = [folder / name for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return responses(host, paths)


def in_order(found):
    """Return responses in an order of their own."""
    return sorted(found, key=repr)


@pytest.mark.parametrize("name", ALL)
def test_each_history_gives_its_bill(name, tmp_path):
    history = ALL[name]()
    assert in_order(counted(history.host, history.files, tmp_path)) == in_order(history.bill)


@pytest.mark.parametrize("name", ALL)
def test_the_order_of_the_files_does_not_matter(name, tmp_path):
    history = ALL[name]()
    turned = dict(reversed(history.files.items()))
    assert in_order(counted(history.host, turned, tmp_path)) == in_order(history.bill)


@pytest.mark.parametrize("name", ALL)
def test_a_second_copy_of_each_file_adds_nothing(name, tmp_path):
    history = ALL[name]()
    twice = history.files | {f"archived-{name}": text for name, text in history.files.items()}
    assert in_order(counted(history.host, twice, tmp_path)) == in_order(history.bill)


@pytest.mark.parametrize(
    ("name", "number", "fresh", "given", "cached"),
    [
        ("codex, counts only, paginated", 2, 1800, 150, 1200),
        ("codex, counts only, legacy", 2, 1800, 150, 1200),
        ("codex, both records, legacy", 2, 1770, 150, 1200),
        ("codex, old thread resumed", 3, 1900, 160, 1223),
        ("codex, unchanged total", 2, 1800, 150, 1200),
        ("codex, sub-agent replays, no turn ids", 3, 2300, 180, 3700),
        ("codex, sub-agents with equal totals", 4, 3600, 300, 2400),
        ("codex, fork of a fork, no copied meta", 4, 3500, 315, 4200),
        ("codex, forks with equal turns", 3, 2800, 250, 2200),
    ],
)
def test_what_people_reported_has_the_totals_worked_out_by_hand(name, number, fresh, given, cached, tmp_path):
    history = ALL[name]()
    found = counted(history.host, history.files, tmp_path)
    sums = [sum(column) for column in zip(*(row[4:7] for row in found), strict=True)]
    assert (len(found), *sums) == (number, fresh, given, cached)


def test_broken_lines_are_passed_over(tmp_path):
    history = HISTORIES["codex, counts only, legacy"]()
    torn = {name: f'[]\n{{"type": "sess\n{text}{{"type"' for name, text in history.files.items()}
    assert in_order(counted("codex", torn, tmp_path)) == in_order(history.bill)


@pytest.mark.parametrize("host", HOSTS)
def test_other_hosts_transcripts_have_no_usage_of_this_host(host):
    paths = transcript_paths()
    assert paths
    assert responses(host, paths) == []


def test_a_bill_is_made_of_whole_rows():
    for make in ALL.values():
        bill = make().bill
        assert bill
        assert all(isinstance(row, Response) and row.model and row.session_id and row.timestamp for row in bill)
