"""`tailhook scan` as a whole process: every flag of the question, and the rows that it finds."""

import json
import os
import shutil
import time
from datetime import UTC, datetime

import pytest
from support.library_sample import asked, said, text, write_records
from support.scan_tables import TABLES

import tailhook as library
from tailhook.fleet.columns import LARGE, TABLE_COLUMNS

DONE = "<loop-done>COMPLETE</loop-done>"


def plain(row):
    """Return a row of the library as JSON has it."""
    return {
        name: value.isoformat(timespec="microseconds").replace("+00:00", "Z") if hasattr(value, "isoformat") else value
        for name, value in row._asdict().items()
    }


@TABLES
def test_the_rows_are_those_of_the_library(rows, tmp_path, monkeypatch, table):
    monkeypatch.chdir(tmp_path)
    question = {"patterns": {"found": "it"}} if table == "matches" else {}
    wanted = [plain(row) for row in library.scan("transcripts", table, **question).rows()]
    assert wanted
    found = rows("--table", table, *(["--pattern", "found=it"] if table == "matches" else []))
    assert found == wanted
    assert list(found[0]) == [name for name in TABLE_COLUMNS[table] if name not in LARGE]


def test_a_pattern_has_a_name_and_a_name_may_have_several_texts(rows):
    found = rows("--pattern", "word=first", "--pattern", "word=Notes", "--pattern", "other=fixed")
    assert [(row["name"], row["context"]) for row in found] == [
        ("word", "I run it first."),
        ("other", "Is it fixed?"),
        ("word", "Notes."),
    ]


def test_case_counts_unless_it_is_ignored(rows, scan):
    assert rows("--pattern", "a=NOTES") == rows("--pattern", "a=notes") == []
    for flag in ("-i", "--ignore-case"):
        assert [row["context"] for row in rows("--pattern", "a=NOTES", flag)] == ["Notes."]
    assert "only with --pattern" in scan("--signals", "-i", exit_code=2).stderr
    assert "only for --table matches" in scan("--table", "tools", "-i", exit_code=2).stderr
    assert "case counts" in scan("--help").stdout


def test_the_help_does_not_promise_that_results_of_tools_are_searched(scan):
    assert "not results of tools" in " ".join(scan("--help").stdout.split())


@pytest.mark.parametrize("words", [["--table", "records"], ["--pattern", "it=it"], ["--table", "sessions", "--count"]])
def test_a_session_or_a_project_that_nothing_fits_is_reported_in_one_line(scan, tmp_path, words):
    (line,) = scan(*words, "--session", "s-").stderr.splitlines()
    assert line == "tailhook: no row fits --session s-: write whole ids, as in the column session_id"
    (line,) = scan(*words, "--project", "notes").stderr.splitlines()
    assert (
        line
        == f"tailhook: no row fits --project {tmp_path}/notes: write a folder as in the column project, or one above it"
    )
    assert scan(*words, "--session", "s-1").stderr == ""
    assert scan(*words, "--project", "/home/me").stderr == ""


def test_times_between_which_there_is_nothing_are_reported_in_one_line(scan):
    (line,) = scan("--table", "usage", "--since", "2026-11-30", "--until", "2026-11-01").stderr.splitlines()
    assert line == "tailhook: no row fits these times: --since must be before --until"


def test_the_hint_on_a_session_does_not_ask_for_the_whole_id_of_one_that_was_given_whole(scan):
    (line,) = scan("--pattern", "x=not there", "--session", "s-1").stderr.splitlines()
    assert line == "tailhook: no row fits --session s-1: write whole ids, as in the column session_id"


def test_a_file_of_patterns_has_one_on_each_line(rows, tmp_path):
    (tmp_path / "patterns.txt").write_text("\ufeffword=first\n\nsigns=a=b\r\nother=fixed\n")
    assert [row["name"] for row in rows("--patterns", "patterns.txt")] == ["word", "other"]
    (tmp_path / "more.txt").write_text("notes=Notes\n")
    found = rows("--patterns", "patterns.txt", "--patterns", "more.txt", "--pattern", "it=it")
    assert {row["name"] for row in found} == {"word", "other", "notes", "it"}


def test_a_pattern_may_be_very_long(rows, tmp_path, folder):
    long = "x" * 300_000
    (tmp_path / "patterns.txt").write_text(f"a={long}\n")
    write_records(folder / "s-4.jsonl", [said(1, "m", text(long), 1)])
    assert [(row["start"], row["end"]) for row in rows("--patterns", "patterns.txt")] == [(0, 300_000)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"word=first\nno sign\n", "patterns.txt, line 2: write NAME=TEXT"),
        (b"=text\n", "patterns.txt, line 1: write NAME=TEXT"),
        (b"name=\n", "patterns.txt, line 1: write NAME=TEXT"),
        (b"\n \n", "patterns.txt has no patterns: write one NAME=TEXT a line"),
        (b"name=\xff\n", "patterns.txt is not valid UTF-8"),
    ],
)
def test_a_file_that_is_not_one_of_patterns_is_refused(scan, tmp_path, data, message):
    (tmp_path / "patterns.txt").write_bytes(data)
    assert scan("--patterns", "patterns.txt", exit_code=2).stderr == f"tailhook: {message}\n"
    done = scan("--pattern", "a=b", "--patterns", "patterns.txt", exit_code=2)
    assert done.stderr == f"tailhook: {message}\n"


def test_a_pattern_of_a_file_has_every_character_of_its_line(rows, tmp_path, folder):
    texts = ["one\u2028two", "form\x0cfeed", " blanks ", "re\rturn"]
    write_records(folder / "s-4.jsonl", [said(1, "m", text("; ".join(texts)), 1)])
    lines = "".join(f"{number} ={one}\r\n" for number, one in enumerate(texts))
    (tmp_path / "patterns.txt").write_bytes(lines.encode())
    found = rows("--patterns", "patterns.txt", "--columns", "name")
    assert [row["name"] for row in found] == ["0 ", "1 ", "2 ", "3 "]


def test_signals_count_outside_of_code_unless_it_is_asked_for(rows):
    assert [row["line"] for row in rows("--signals")] == [3]
    assert [row["line"] for row in rows("--signals", "--outside-code")] == [3]
    pattern = ("--pattern", f"done={DONE}")
    assert [(row["line"], row["in_code"]) for row in rows(*pattern, "--in-code")] == [(1, True)]
    assert [row["line"] for row in rows(*pattern, "--anywhere")] == [1, 3]


def test_categories_are_keywords_of_the_memory_machine(rows, tmp_path, folder):
    write_records(folder / "s-3.jsonl", [said(1, "m-9", text("We chose A. TODO: test it."), 1)])
    assert [row["name"] for row in rows("--categories")] == ["DECISION", "TECH_DEBT"]


def test_own_words_are_searched_unless_more_is_asked_for(rows):
    assert rows("--pattern", "x=Found it") == []
    assert [row["agent_id"] for row in rows("--pattern", "x=Found it", "--sidechains")] == ["a-1"]
    assert rows("--pattern", "x=being continued") == []
    assert len(rows("--pattern", "x=being continued", "--all-text")) == 1


def test_a_context_has_as_many_characters_as_are_asked_for(rows):
    assert [row["context"] for row in rows("--pattern", "x=run", "--context", "2")] == ["I run i"]
    assert [row["context"] for row in rows("--pattern", "x=run", "--context", "0")] == ["run"]


def test_a_role_can_be_chosen_for_matches_and_records(rows):
    assert [row["role"] for row in rows("--pattern", "x=it", "--role", "user")] == ["user"]
    found = rows("--table", "records", "--role", "user", "--role", "assistant")
    assert {row["role"] for row in found} == {"user", "assistant"}
    assert len(found) == len(rows("--table", "records")) - 1


def test_rows_can_be_chosen_by_time_project_and_session(rows, scan, tmp_path):
    in_time = ("--since", "2026-11-22T09:00:07Z", "--until", "2026-11-22T09:00:09+00:00")
    assert [row["offset"] > 0 for row in rows("--table", "records", *in_time)] == [True]
    assert rows("--table", "records", "--since", "2026-11-23") == []
    assert rows("--table", "records", "--until", "2026-11-22") == []
    assert [row["session_id"] for row in rows("--table", "sessions", "--project", "/home/me/notes")] == ["s-2"]
    assert [row["session_id"] for row in rows("--table", "sessions", "--project", "/home/me")] == ["s-1", "s-2"]
    assert rows("--table", "sessions", "--project", "/home/m") == []
    assert {row["session_id"] for row in rows("--table", "records", "--session", "s-2")} == {"s-2"}
    both = rows("--table", "sessions", "--session", "s-2", "--session", "s-1")
    assert len(both) == 2


def test_a_project_may_be_named_from_the_current_folder(rows, tmp_path, folder):
    here = {**asked(1, "Here."), "cwd": str(tmp_path / "work" / "deep"), "sessionId": "here"}
    write_records(folder / "here.jsonl", [here])
    for name in ("work", "./work/deep/", str(tmp_path / "work"), "~/work"):
        assert [row["session_id"] for row in rows("--table", "sessions", "--project", name)] == ["here"]


def test_a_project_of_another_system_is_compared_as_it_is(rows, folder):
    write_records(folder / "w.jsonl", [{**asked(1, "Here."), "cwd": "C:\\src\\app", "sessionId": "w"}])
    assert [row["session_id"] for row in rows("--table", "sessions", "--project", "C:\\src")] == ["w"]


def test_a_time_may_be_counted_from_now(rows, folder):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_records(folder / "now.jsonl", [{**asked(1, "Now."), "timestamp": now, "sessionId": "now"}])
    for since in ("1h", "60m", "7d", "2w", "3600s", "yesterday"):
        assert "now" in {row["session_id"] for row in rows("--table", "sessions", "--since", since)}
    assert "now" not in {row["session_id"] for row in rows("--table", "sessions", "--until", "1h")}


def test_sources_are_files_folders_and_globs(rows, folder):
    def sessions(*sources):
        return [row["session_id"] for row in rows("--table", "sessions", sources=sources)]

    assert sessions("transcripts/s-2.jsonl") == ["s-2"]
    assert sessions("transcripts/s-*.jsonl") == ["s-1", "s-2"]
    assert sessions("transcripts", folder / "s-1.jsonl") == ["s-1", "s-2"]
    shutil.copytree(folder, folder.parent / "home" / "projects" / "p")
    found = rows("--table", "sessions", sources=(), CLAUDE_CONFIG_DIR=str(folder.parent / "home"))
    assert [row["session_id"] for row in found] == ["s-1", "s-2"]


def test_without_sources_and_without_transcripts_a_hint_is_printed(scan):
    done = scan("--table", "records", sources=())
    assert done.stdout == ""
    assert done.stderr == "tailhook: there are no transcripts of an installed host: name files or folders\n"


def test_folders_without_a_transcript_are_reported(scan, folder):
    (folder.parent / "notes").mkdir()
    (folder.parent / "notes" / "s-1.json").write_text("{}")
    done = scan("--table", "records", "--count", sources=("notes",))
    assert done.stdout == "0\n"
    assert done.stderr == "tailhook: no transcript is below the named folders: a transcript has .jsonl in its name\n"
    assert scan("--table", "records", "--until", "2000-01-01", sources=("transcripts", "notes")).stderr == ""


def test_a_folder_that_a_variable_names_and_that_is_missing_is_reported(scan, folder):
    named = str(folder / "none")
    done = scan("--table", "records", sources=(), exit_code=1, CLAUDE_CONFIG_DIR=named)
    assert done.stdout == ""
    assert done.stderr == f"tailhook: {named}: No such file or directory; CLAUDE_CONFIG_DIR names it\n"


def test_a_limit_that_is_reached_in_the_first_file_prints_no_hint(scan, folder):
    (folder / "projects").mkdir()
    line = json.dumps(said(2, "m-1", text("I run it first. " * 20), 3)) + "\n"
    (folder / "projects" / "s.jsonl").write_text(line * (9_000_000 // len(line)))
    words = ("--table", "records", "--columns", "path,text", "--limit", "1")
    assert scan(*words, sources=(), CLAUDE_CONFIG_DIR=str(folder)).stderr == ""


def test_sources_may_stand_behind_flags(rows):
    assert len(rows("--table", "sessions", "--limit", "1")) == 1


@pytest.mark.parametrize("workers", ["1", "2", "5"])
def test_the_rows_do_not_depend_on_the_workers(scan, workers):
    usual = scan("--table", "records").stdout
    assert scan("--table", "records", "--workers", workers).stdout == usual


def test_a_file_that_was_last_modified_a_day_before_the_time_asked_for_is_not_opened(folder):
    since = datetime(2026, 11, 1, tzinfo=UTC)
    (folder / "s-3.jsonl.gz").write_bytes(b"\x1f\x8b it would be a problem")
    for before, older_files in ((86_400 - 1, 0), (86_400 + 1, 1)):
        os.utime(folder / "s-3.jsonl.gz", (since.timestamp() - before,) * 2)
        for table in ("records", "tools", "usage", "sessions"):
            scan = library.scan(folder, table, since=since)
            list(scan.rows())
            is_read = not older_files or table in ("usage", "sessions")
            assert (scan.report.older_files, len(scan.report.skipped)) == (0 if is_read else 1, int(is_read))


def test_a_file_with_a_time_that_was_made_up_is_opened(folder):
    for made_up in (0, 315_532_800):
        for path in folder.rglob("*.jsonl"):
            os.utime(path, (made_up, made_up))
        scan = library.scan(folder, "records", since=datetime(2026, 1, 1, tzinfo=UTC))
        assert (len(list(scan.rows())) > 0, scan.report.older_files) == (True, 0)
