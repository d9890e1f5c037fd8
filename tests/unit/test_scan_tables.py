"""The tables that a scan draws for a person."""

import time
from datetime import UTC, datetime

import pytest
from support.cases import in_one_test
from support.library_sample import write_sample

import tailhook
from tailhook._core import make_batch
from tailhook.cli.table import HIGHLIGHT, OPTIONAL, SHOWN, TableLook, TableWriter, cut_end, cut_start, text_of
from tailhook.pictures.terminal import count_cells


@pytest.fixture
def folder(tmp_path):
    write_sample(tmp_path)
    return tmp_path


TIME = datetime(2026, 11, 22, 9, tzinfo=UTC)


def drawn(names, values, look, context=None, shown=None, table="matches"):
    return list(TableWriter(shown or names, look, context).lines(make_batch(table, tuple(names), values)))


def test_numbers_stand_right_and_texts_left():
    lines = drawn(["name", "start"], [("a", 5), ("longer", 12345)], TableLook())
    assert lines == ["name    start", "a           5", "longer 12,345"]


def test_later_batches_have_the_columns_of_the_first():
    writer = TableWriter(["name", "role"])
    first, second = (make_batch("matches", ("name", "role"), [(name, "user")]) for name in ("a", "bcdefg"))
    assert list(writer.lines(first)) == ["name role", "a    user"]
    assert list(writer.lines(second)) == ["bcdefg user"]
    assert list(writer.lines(make_batch("matches", ("name", "role"), []))) == []


def test_values_are_shown_as_a_person_reads_them(monkeypatch):
    names = ("tools", "is_meta", "is_error", "model")
    values = [(["Bash", "Edit"], True, False, None)]
    assert drawn(names, values, TableLook(), table="records")[1] == "Bash, Edit yes     no"


@pytest.mark.parametrize("zone", ["XXX+10", "XXX-10"])
def test_a_time_at_the_edge_of_the_calendar_is_shown_in_utc(monkeypatch, zone):
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)]
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    shown = {text_of(one) for one in times}
    monkeypatch.undo()
    time.tzset()
    assert shown & {"0001-01-01 00:00:00", "9999-12-31 23:59:59"}
    assert {one[:4] for one in shown} == {"0001", "9999"}


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_line_is_not_longer_than_the_terminal_and_shows_the_match(width):
    before, after = "前の言葉 " * 30, "words after it " * 30
    values = [("/a/long/path/" * 10, len(before), len(before) + 4, f"{before}TODO{after}")]
    names = ("path", "start", "end", "context")
    for look in (TableLook(width), TableLook(width, colours=True)):
        line = drawn(names, values, look, len(before), ("path", "context"))[1]
        plain = line.replace("\x1b[1;31m", "").replace("\x1b[35m", "").replace("\x1b[0m", "")
        assert count_cells(plain) <= width
        assert "TODO" in plain
        assert plain.startswith("…")
        assert ("\x1b[1;31mTODO\x1b[0m" in line) == look.colours


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 100, 132, 240])
@pytest.mark.parametrize("table", list(SHOWN))
def test_no_line_of_a_table_is_wider_than_the_terminal(folder, table, width):
    texts = {"patterns": {"it": "it"}} if table == "matches" else {}
    columns = [*SHOWN[table], *(HIGHLIGHT if table == "matches" else ())]
    for optional in (OPTIONAL, ()):
        writer = TableWriter(SHOWN[table], TableLook(width), 80, optional)
        lines = [
            line for batch in tailhook.scan(folder, table, columns=columns, **texts) for line in writer.lines(batch)
        ]
        assert len(lines) > 1
        assert max(map(count_cells, lines)) <= width
        assert optional or writer.shown == list(SHOWN[table])


def narrow_line(width, optional):
    """Return a line of a match on a narrow terminal with links."""
    names = (*SHOWN["matches"], *HIGHLIGHT)
    path = "/home/me/.claude/projects/-home-me-shop/0fae0449-64d3-4788.jsonl"
    values = [(TIME, path, "assistant", "todo", f"{'before ' * 9}TODO{' after' * 9}", 63, 67)]
    writer = TableWriter(SHOWN["matches"], TableLook(width, colours=True, links=True), 80, optional)
    return list(writer.lines(make_batch("matches", names, values)))[1]


@pytest.mark.parametrize("width", [10, 20, 30, 40, 50, 60])
def test_a_narrow_terminal_shows_the_match_then_its_name_then_its_path(width):
    line = narrow_line(width, OPTIONAL)
    assert "\x1b[1;31mTODO\x1b[0m" in line
    assert ("todo" in line) == (width >= 20)
    assert ("…-4788.jsonl" in line) == (width >= 40)


@pytest.mark.parametrize("width", [5, 10, 20, 30, 40, 50, 60])
def test_columns_that_were_chosen_share_a_narrow_terminal(width):
    line = narrow_line(width, ())
    assert ("\x1b[1;31mTODO\x1b[0m" in line) == (width >= 10)
    assert "\x1b\\\x1b]8;;" not in line  # a link without a text


def test_a_narrow_terminal_leaves_out_columns_before_an_id_is_cut():
    names = SHOWN["usage"]
    values = [(TIME, "0fae0449-64d3-4788-8622-d3a47d82c14b", "claude-sonnet-4-20250514", 3, 4, 5, 6)]
    shown = {}
    for width in (120, 80, 60):
        writer = TableWriter(names, TableLook(width), None, OPTIONAL)
        _, line = writer.lines(make_batch("usage", names, values))
        shown[width] = (len(writer.shown), line.split()[2])
    assert shown == {120: (7, values[0][1]), 80: (5, f"{values[0][1][:30]}…"), 60: (5, f"{values[0][1][:10]}…")}


def test_later_rows_fit_the_columns_of_the_terminal_even_if_they_are_longer():
    names = ("timestamp", "path", "text_bytes")
    writer = TableWriter(names, TableLook(100))
    path = "/home/me/.claude/projects/-home-me-shop/0fae0449-64d3-4788.jsonl"
    list(writer.lines(make_batch("records", names, [(None, "a.jsonl", 5)])))
    (line,) = writer.lines(make_batch("records", names, [(TIME, path, 1_234_567_890)]))
    assert path in line
    assert line.endswith("   1.2G")
    assert count_cells(line) == 100


@in_one_test("width", range(-1, 12))
def test_a_text_that_is_cut_fits(width):
    for words in ("transcript", "日本語のテキスト", "e\u0301a", ""):
        for cut in (cut_start, cut_end):
            assert count_cells(cut(words, width)) <= max(
                width, count_cells(words) if count_cells(words) <= width else 0
            )
