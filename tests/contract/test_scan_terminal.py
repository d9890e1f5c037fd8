"""`tailhook scan` on a terminal: colours, links, a summary and a progress bar."""

import os
import re
import signal
import sys

import pytest
from support.host import ENVIRONMENT
from support.library_sample import said, text, write_records
from support.scan_tables import TABLES
from support.terminal import Terminal


def in_terminal(tmp_path, *words, command="scan", **env):
    """Start `tailhook scan`, or another command, in a terminal."""
    settings = {**ENVIRONMENT, "HOME": str(tmp_path), "TERM": "xterm-256color", "TZ": "UTC", "COLUMNS": "100", **env}
    return Terminal([sys.executable, "-m", "tailhook", command, *map(str, words)], settings, tmp_path)


def test_a_terminal_shows_a_table_with_highlighted_matches_links_and_a_summary(tmp_path, folder):
    shown = in_terminal(tmp_path, "--pattern", "x=it", folder)
    assert shown.wait() == 0
    assert "\x1b[1mtimestamp" in shown.seen
    assert "I run \x1b[1;31mit\x1b[0m first." in shown.seen
    link = f"\x1b]8;;{(folder / 's-1.jsonl').as_uri()}\x1b\\\x1b[35m"
    assert link in shown.seen
    assert "2 matches; 3 files, " in shown.seen
    assert "/s)" in shown.seen


@pytest.mark.parametrize(
    ("words", "summary"),
    [
        (["--limit", "1"], "1 match; as many as --limit allows, in "),
        (["--limit", "1", "--sort", "line"], "1 match; 3 files, "),
        (["--limit", "9"], "2 matches; 3 files, "),
    ],
)
def test_the_summary_of_a_scan_that_a_limit_ended_counts_no_files(tmp_path, folder, words, summary):
    shown = in_terminal(tmp_path, "--pattern", "x=it", *words, folder)
    assert shown.wait() == 0
    assert summary in shown.seen


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_shows_none(tmp_path, folder, env):
    shown = in_terminal(tmp_path, "--pattern", "x=it", folder, **env)
    assert shown.wait() == 0
    assert "I run it first." in shown.seen
    # A slow scan shows a bar and hides the cursor meanwhile; neither is a colour. A dumb terminal has neither.
    assert not re.search(r"\x1b\[[\d;]*m" if "NO_COLOR" in env else r"\x1b\[", shown.seen)


def test_a_line_of_a_table_is_cut_to_the_terminal_with_the_match_in_it(tmp_path, folder):
    words = "word " * 15
    write_records(folder / "s-4.jsonl", [said(1, "m", text(f"{words}TODO {words}"), 1)])
    shown = in_terminal(tmp_path, "--pattern", "x=TODO", folder, NO_COLOR="1", TERM="dumb")
    assert shown.wait() == 0
    (line,) = [line for line in shown.seen.splitlines() if "TODO" in line]
    assert len(line) <= 100
    assert "…" in line


def test_a_long_scan_shows_a_progress_bar_that_rows_do_not_disturb(tmp_path, many):
    shown = in_terminal(tmp_path, "--table", "usage", many)  # ten times as long as a search for a rare word
    shown.until("of 4,000 files")
    shown.until("/s")
    os.kill(shown.pid, signal.SIGINT)
    assert shown.wait() == 130
    assert "tailhook: interrupted after " in shown.seen


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": "unknown"}, {"TTY_INTERACTIVE": "0"}], ids=str)
@pytest.mark.parametrize("command", ["scan", "usage"])
def test_a_terminal_that_cannot_draw_a_bar_gets_no_blank_lines(tmp_path, folder, command, env):
    words = ["--pattern", "x=it"] if command == "scan" else []
    shown = in_terminal(tmp_path, *words, folder, command=command, **env)
    assert shown.wait() == 0
    assert "" not in shown.seen.splitlines()


def test_a_terminal_without_rich_shows_the_rows(tmp_path, folder):
    (tmp_path / "rich.py").write_text("raise ImportError('not installed')")
    shown = in_terminal(tmp_path, "--pattern", "x=it", folder, PYTHONPATH=str(tmp_path))
    assert shown.wait() == 0
    assert "2 matches; " in shown.seen


@TABLES
def test_a_terminal_shows_every_table(tmp_path, folder, table):
    words = ["--pattern", "x=it"] if table == "matches" else ["--table", table]
    shown = in_terminal(tmp_path, *words, folder)
    assert shown.wait() == 0
    assert "Traceback" not in shown.seen
    assert "3 files" in shown.seen
