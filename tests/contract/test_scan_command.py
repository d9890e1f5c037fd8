"""`tailhook scan` as a whole process: every flag, every format, every way in which it can fail."""

import csv
import gzip
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone

import psutil
import pytest
from support.host import ENVIRONMENT, tailhook
from support.library_sample import asked, said, text, write_sample
from support.terminal import Terminal

import tailhook as library
from tailhook.fleet.columns import LARGE, TABLE_COLUMNS

DONE = "<loop-done>COMPLETE</loop-done>"
TABLES = pytest.mark.parametrize("table", TABLE_COLUMNS)


@pytest.fixture
def folder(tmp_path):
    """Return a folder with two sessions, of which one has a sub-agent."""
    found = tmp_path / "transcripts"
    found.mkdir()
    write_sample(found)
    return found


@pytest.fixture
def scan(tmp_path, folder):
    """Run `tailhook scan` in a folder of its own, on the sample or on other sources."""

    def run(*words, sources=("transcripts",), exit_code=0, **env):
        home = {"HOME": str(tmp_path), "TZ": "UTC", **env}
        done = tailhook("scan", *words, *map(str, sources), env=home, cwd=tmp_path)
        assert done.returncode == exit_code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def rows(scan):
    """Run it and return its rows."""

    def run(*words, **options):
        return [json.loads(line) for line in scan(*words, **options).stdout.splitlines()]

    return run


def plain(row):
    """Return a row of the library as JSON has it."""
    return {
        name: value.isoformat(timespec="microseconds").replace("+00:00", "Z") if hasattr(value, "isoformat") else value
        for name, value in row._asdict().items()
    }


def write_records(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


# ---- the question --------------------------------------------------------------


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


# ---- output --------------------------------------------------------------------


def test_a_limit_ends_the_rows(rows):
    everything = rows("--table", "records")
    for limit in (1, 5, len(everything), 1000):
        assert rows("--table", "records", "--limit", str(limit)) == everything[:limit]


def test_a_count_is_a_number(scan, rows):
    assert scan("--table", "records", "--count").stdout == f"{len(rows('--table', 'records'))}\n"
    assert scan("--pattern", "x=absent", "--count").stdout == "0\n"
    assert scan("--table", "records", "--count", "--limit", "2").stdout == "2\n"


def test_rows_are_sorted_by_a_column_with_nulls_at_the_end(rows):
    found = rows("--table", "tools", "--sort", "duration_ms:desc", "--columns", "name")
    assert found == [{"name": "Bash"}, {"name": "Edit"}]
    models = [row["model"] for row in rows("--table", "records", "--sort", "model")]
    assert models[0] == "sonnet"
    assert models[-1] is None
    assert [row["model"] for row in rows("--table", "records", "--sort", "model:desc")] == models
    assert rows("--table", "records", "--sort", "offset:desc", "--limit", "1")[0]["offset"] > 0


def test_columns_are_printed_in_the_order_in_which_they_are_named(rows):
    found = rows("--table", "records", "--columns", "text,type, session_id", "--session", "s-2")
    assert [list(row) for row in found] == [["text", "type", "session_id"]] * 2
    assert [row["text"] for row in found] == ["What is in this folder?", "Notes."]
    (edit, *_) = [row for row in rows("--table", "tools", "--columns", "name,input,file") if row["name"] == "Edit"]
    assert json.loads(edit["input"]) == {"file_path": edit["file"]}


def test_json_is_a_short_form_of_json_lines(scan, tmp_path):
    wanted = scan("--table", "records", "--format", "jsonl").stdout
    scan("--table", "records", "--json", "-o", "rows")
    assert (tmp_path / "rows").read_text() == scan("--table", "records", "--json").stdout == wanted
    assert json.loads(scan("--table", "records", "--count", "--json").stdout) == {"rows": 14}


def test_csv_has_the_names_and_then_the_rows(scan, rows):
    text = scan("--table", "records", "--format", "csv").stdout
    found = list(csv.DictReader(io.StringIO(text)))
    assert [row["uuid"] for row in found] == [row["uuid"] or "" for row in rows("--table", "records")]
    assert {row["tools"] for row in found} >= {"[]", '["Bash"]'}
    assert scan("--table", "records", "--format", "csv", "--session", "none").stdout.count("\n") == 1


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
@TABLES
def test_a_file_has_the_rows_that_are_printed(scan, rows, tmp_path, table, ending):
    question = ["--table", table, *(["--pattern", "x=it"] if table == "matches" else [])]
    done = scan(*question, "-o", f"out.{ending}")
    assert (done.stdout, done.stderr) == ("", "")
    wanted = rows(*question)
    assert len(read_rows(tmp_path / f"out.{ending}")) == len(wanted) > 0
    if ending != "csv":
        assert read_rows(tmp_path / f"out.{ending}") == wanted
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out.{ending}", "transcripts"]


def read_rows(path):
    """Return the rows of a file, with times as JSON has them."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(path.read_text(), newline="")))
    import pyarrow.ipc
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.ipc.open_file(path).read_all()
    return [
        {
            name: value.isoformat(timespec="microseconds").replace("+00:00", "Z")
            if hasattr(value, "isoformat")
            else value
            for name, value in row.items()
        }
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_of_several_batches_has_all_rows(scan, rows, tmp_path, folder, ending):
    words = "word " * 860_000  # a batch ends after 4 MiB of text
    records = [
        {"type": role, "sessionId": f"s-{number}", "message": {"role": role, "content": words}}
        for number, role in enumerate(["user", "assistant", "user"])
    ]
    write_records(folder / "long.jsonl", [*records, {"type": "summary"}])
    question = ["--table", "records", "--columns", "path,session_id,role,type,text"]
    scan(*question, "-o", f"out.{ending}")
    assert read_rows(tmp_path / f"out.{ending}") == rows(*question)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out.{ending}", "transcripts"]
    if ending == "arrow":
        import pyarrow.ipc

        with pyarrow.ipc.open_file(tmp_path / "out.arrow") as file:
            assert file.read_all().column("path").num_chunks == file.num_record_batches > 2
            assert file.stats.num_dictionary_batches == 4  # one for each column, as all libraries read it


def test_a_file_without_rows_has_their_columns(scan, tmp_path):
    scan("--table", "records", "--session", "none", "-o", "out.parquet")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert (table.num_rows, table.column_names[:2]) == (0, ["path", "offset"])


def test_the_format_of_a_file_may_be_chosen(scan, tmp_path):
    scan("--table", "sessions", "-o", "out")
    assert json.loads((tmp_path / "out").read_text().splitlines()[0])["session_id"] == "s-1"
    scan("--table", "sessions", "-o", "out", "--format", "csv")
    assert (tmp_path / "out").read_text().startswith("host,session_id")
    scan("--table", "sessions", "-o", "out", "--format", "table")
    assert "\x1b" not in (tmp_path / "out").read_text()


def test_a_table_in_a_pipe_has_no_colours_and_no_links(scan):
    shown = scan("--pattern", "x=it", "--format", "table").stdout.splitlines()
    assert shown[0].split() == ["timestamp", "path", "role", "name", "context"]
    assert shown[1].startswith("2026-11-22 09:00:02 transcripts/s-1.jsonl ")
    assert shown[1].endswith("I run it first.")
    assert "\x1b" not in "".join(shown)


def test_text_that_steers_a_terminal_is_shown_as_escapes(scan, folder):
    write_records(folder / "s-4.jsonl", [said(1, "m", text("It is \x1b]0;mine\x07 TODO\nnow"), 1)])
    (line,) = scan("--pattern", "x=TODO", "--format", "table").stdout.splitlines()[1:]
    assert line.endswith("It is \\x1b]0;mine\\x07 TODO now")


def test_secrets_are_masked(rows, folder):
    said_so = said(1, "m", text("Then TODO: export API_TOKEN=abc123def and deploy."), 1)
    used = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "login --token abc123def"}}
    write_records(folder / "s-4.jsonl", [said_so, said(2, "n", used, 1)])
    (found,) = rows("--pattern", "x=TODO", "--redact")
    assert found["context"] == "Then TODO: export API_TOKEN=[secret] and deploy."
    found = rows("--table", "records", "--columns", "text", "--redact")
    assert "Then TODO: export API_TOKEN=[secret] and deploy." in [row["text"] for row in found]
    found = rows("--table", "tools", "--columns", "command,input", "--redact", "--sort", "command:desc")
    assert found[1] == {"command": "login --token [secret]", "input": '{"command": "login --token [secret]"}'}
    assert "abc123def" not in json.dumps(found)


# ---- what is refused -----------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            "nothing to find: give --pattern NAME=TEXT, --patterns FILE, --signals or --categories, or another --table",
        ),
        (["--pattern", "TODO"], "--pattern TODO: write NAME=TEXT"),
        (["--table", "tools", "--pattern", "a=b"], "--pattern: only for --table matches"),
        (["--table", "tools", "--patterns", "f"], "--patterns: only for --table matches"),
        (["--table", "tools", "--signals"], "--signals: only for --table matches"),
        (["--table", "tools", "--categories"], "--categories: only for --table matches"),
        (["--table", "usage", "--in-code"], "--outside-code, --in-code and --anywhere: only for --table matches"),
        (["--table", "usage", "--context", "3"], "--context: only for --table matches"),
        (["--table", "records", "--all-text"], "--all-text: only for --table matches"),
        (["--table", "records", "--sidechains"], "--sidechains: only for --table matches"),
        (["--table", "usage", "--role", "user"], "rows of the table usage have no role"),
        (["--signals", "--columns", "model"], "the table matches has no column 'model'. It has path, "),
        (["--signals", "--columns", ","], "--columns names no column"),
        (["--signals", "--sort", "nothing"], "the table matches has no column 'nothing'. It has path, "),
        (["--signals", "-o", "out.xyz"], "out.xyz: the ending names no format (.jsonl, .csv, .parquet, .arrow): give"),
        (["--signals", "-o", "out.jsonl.gz"], "out.jsonl.gz: the ending names no format"),
        (["--signals", "--format", "parquet", "-o", "-"], "--format parquet needs -o FILE"),
        (["--signals", "--sort", ""], "the table matches has no column ''. It has path, "),
        (["--table", "records", "--project", ""], "--project is an empty name: give a folder"),
        (["--signals", "-o", ""], "-o is an empty name: give a file\n"),
        (["--signals", "--resume", ""], "--resume is an empty name: give a folder\n"),
        (["--signals", ""], "a source is an empty name: give a file, a folder, a glob or a URL\n"),
        (["--signals", "-o", "new/"], "-o new/ is the name of a folder: give that of a file\n"),
        (["--signals", "-o", "new/.", "--format", "csv"], "-o new/. is the name of a folder: give that of a file\n"),
        (["--pattern", b"a=\xff"], "the pattern '\\udcff' has a lone surrogate, which no text of a transcript has"),
        (["--signals", "--format", "parquet"], "--format parquet needs -o FILE"),
        (["--signals", "--format", "arrow"], "--format arrow needs -o FILE"),
        (["--signals", "--count", "-o", "f"], "--count prints a number: leave out --format and -o"),
        (["--signals", "--json", "--resume", "r"], "--resume keeps all rows as Parquet files: leave out --json"),
        (["--signals", "--count", "--format", "csv"], "--count prints a number: leave out --format and -o"),
    ],
)
def test_flags_that_make_no_question_are_refused(scan, words, message):
    done = scan(*words, exit_code=2)
    assert done.stdout == ""
    assert done.stderr.startswith(f"tailhook: {message}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--table", "lines"], "invalid choice: 'lines'"),
        (["--in-code", "--anywhere"], "not allowed with argument"),
        (["--json", "--format", "csv"], "argument --format: not allowed with argument --json"),
        (["--since", "soon"], "argument --since: 'soon' is not a time. Write it as 2026-11-01, "),
        (["--until", "2026-13-01"], "argument --until: '2026-13-01' is not a time"),
        (["--limit", "0"], "'0' is not a whole number of 1 or more"),
        (["--workers", "0"], "'0' is not a whole number of 1 or more"),
        (["--context", "-1"], "--context"),
        (["--format", "xml"], "invalid choice: 'xml'"),
        (["--role", "usr"], "argument --role: invalid choice: 'usr'"),
    ],
)
def test_an_argument_that_is_not_valid_is_refused(scan, words, message):
    assert message in scan("--signals", *words, exit_code=2).stderr


def test_a_file_that_was_last_modified_a_day_before_the_time_asked_for_is_not_opened(folder):
    since = datetime(2026, 11, 1, tzinfo=timezone.utc)
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
        scan = library.scan(folder, "records", since=datetime(2026, 1, 1, tzinfo=timezone.utc))
        assert (len(list(scan.rows())) > 0, scan.report.older_files) == (True, 0)


# ---- sources that cannot be read -----------------------------------------------


def test_a_missing_source_is_reported_and_the_others_are_scanned(scan):
    sources = ("absent.jsonl", "transcripts", "absent-*.jsonl")
    done = scan("--table", "sessions", sources=sources, exit_code=1)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == (
        "tailhook: absent.jsonl: No such file or directory\ntailhook: absent-*.jsonl: no file matches\n"
    )


def test_a_link_that_leads_to_no_file_is_reported(scan, folder):
    (folder / "s-0.jsonl").symlink_to("gone.jsonl")
    done = scan("--table", "sessions", sources=("transcripts", "transcripts/s-0.jsonl"), exit_code=1)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == "tailhook: transcripts/s-0.jsonl: No such file or directory\n"


def test_what_is_not_a_regular_file_is_reported(scan, folder):
    os.mkfifo(folder / "s-0.jsonl")
    done = scan("--table", "sessions", exit_code=1)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == "tailhook: transcripts/s-0.jsonl: it is not a regular file\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_and_a_folder_without_permission_are_reported(scan, folder):
    (folder / "s-2.jsonl").chmod(0)
    (folder / "closed").mkdir(mode=0)
    done = scan("--table", "sessions", exit_code=1)
    assert len(done.stdout.splitlines()) == 1
    assert sorted(done.stderr.splitlines()) == [
        "tailhook: transcripts/closed: Permission denied",
        "tailhook: transcripts/s-2.jsonl: Permission denied",
    ]


def test_many_sources_that_cannot_be_read_are_counted(scan):
    done = scan("--table", "sessions", sources=[f"absent-{number}" for number in range(30)], exit_code=1)
    lines = done.stderr.splitlines()
    assert len(lines) == 21
    assert lines[-1] == "tailhook: 10 more sources could not be read"


def test_a_compressed_file_that_is_cut_off_is_reported(scan, folder):
    import gzip

    data = gzip.compress(b'{"type":"user"}\n' * 1000)
    (folder / "s-3.jsonl.gz").write_bytes(data[:-20])
    done = scan("--table", "records", "--count", exit_code=1)
    assert done.stderr.startswith("tailhook: transcripts/s-3.jsonl.gz: ")
    assert "is cut off" in done.stderr


def test_lines_that_are_not_records_are_counted(scan, rows, folder):
    whole = len(rows("--table", "records"))
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "binary.jsonl").write_bytes(bytes(range(256)) * 10)
    line = json.dumps(asked(1, "Torn."))
    (folder / "torn.jsonl").write_text(f"{line}\n{line[:40]}")
    done = scan("--table", "records")
    assert len(done.stdout.splitlines()) == whole + 1
    assert done.stderr == f"tailhook: {len(bytes(range(256)).splitlines()[:1]) * 10 + 2} lines are not valid records\n"


def test_records_of_unknown_types_are_reported(scan, folder):
    kinds = ["later", "newer", "later", "user"]
    write_records(folder / "new.jsonl", [{"type": kind, "version": f"3.{at}"} for at, kind in enumerate(kinds)])
    done = scan("--table", "sessions")
    assert done.stderr == "tailhook: records of unknown types: later (2), newer (1)\n"


def test_a_file_that_vanishes_while_the_scan_runs_is_reported(folder):
    paths = [folder / "s-1.jsonl", folder / "s-2.jsonl"]
    scan = library.scan(paths, "records", progress=lambda progress: paths[0].unlink(missing_ok=True))
    assert {row.session_id for row in scan.rows()} == {"s-2"}
    assert [(problem.path, problem.reason) for problem in scan.report.skipped] == [
        (str(paths[0]), "No such file or directory")
    ]


def test_a_file_that_is_truncated_while_the_scan_runs_gives_whole_lines(folder):
    path = folder / "s-1.jsonl"
    scan = library.scan(path, "records", progress=lambda progress: os.truncate(path, 300))
    assert len(list(scan.rows())) <= 1
    assert [problem.path for problem in scan.report.skipped] == [str(path)]


# ---- outputs that cannot be written ---------------------------------------------


def run_into(stdout, folder, *words):
    """Run a command in a folder with this stdout."""
    return subprocess.run(
        [sys.executable, "-m", "tailhook", *words],
        env={**ENVIRONMENT, "HOME": str(folder)},
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "--table", "records", "transcripts"],
        ["scan", "--table", "records", "--count", "transcripts"],
        ["usage", "transcripts"],
        ["usage", "--json", "transcripts"],
        ["anatomy", "transcripts/s-1.jsonl", "-o", "picture.svg"],
    ],
    ids=" ".join,
)
def test_a_full_disk_at_the_output_is_reported(tmp_path, folder, words):
    with open("/dev/full", "wb") as full:
        done = run_into(full, tmp_path, *words)
    assert (done.returncode, done.stderr) == (1, "tailhook: standard output: No space left on device\n")


@pytest.mark.parametrize(
    "words",
    [
        ["scan", "--table", "records", "--count", "transcripts"],
        ["usage", "transcripts"],
        ["explain", "transcripts/s-1.jsonl"],
    ],
    ids=" ".join,
)
def test_a_reader_that_has_left_is_not_an_error(tmp_path, folder, words):
    reader, writer = os.pipe()
    os.close(reader)
    done = run_into(writer, tmp_path, *words)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, folder, ending):
    (tmp_path / f"out.{ending}").write_text("old")
    done = subprocess.run(
        [sys.executable, "-m", "tailhook", "scan", "--table", "records", folder, "-o", f"out.{ending}"],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )
    assert done.returncode == 1
    assert done.stderr == f"tailhook: out.{ending}: File too large\n"
    assert (tmp_path / f"out.{ending}").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out.{ending}", "transcripts"]


def test_an_output_that_is_not_a_file_is_refused(scan, tmp_path):
    (tmp_path / "out").mkdir()
    assert scan("--signals", "-o", "out", exit_code=1).stderr == (
        "tailhook: out is not a regular file: rows are only written to one\n"
    )
    assert "No such file or directory" in scan("--signals", "-o", "absent/out.jsonl", exit_code=1).stderr


@pytest.mark.parametrize("way", ["name", "spelling", "folder", "glob", "link", "hard link", "host"])
def test_an_output_that_would_replace_a_source_is_refused(scan, folder, tmp_path, way):
    (tmp_path / "link.jsonl").symlink_to(folder / "s-1.jsonl")
    os.link(folder / "s-1.jsonl", tmp_path / "hard.jsonl")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "projects").symlink_to(folder)
    name, source = {
        "name": ("transcripts/s-1.jsonl", "transcripts/s-1.jsonl"),
        "spelling": ("./transcripts/../transcripts/s-1.jsonl", "transcripts/s-1.jsonl"),
        "folder": (str(folder / "s-1.jsonl"), "transcripts"),
        "glob": ("transcripts/s-1.jsonl", "trans*/*.jsonl"),
        "link": ("link.jsonl", "transcripts"),
        "hard link": ("hard.jsonl", "transcripts"),
        "host": ("transcripts/s-1.jsonl", None),
    }[way]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    done = scan("--pattern", "a=zzzz", "-o", name, sources=(source,) if source else (), exit_code=2)
    assert done.stderr == f"tailhook: {name} is one of the files to scan: give the name of another file\n"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before


def test_an_output_that_is_a_link_is_followed(scan, tmp_path):
    (tmp_path / "out.jsonl").symlink_to("real.jsonl")
    scan("--table", "sessions", "-o", "out.jsonl")
    assert (tmp_path / "out.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_text() == scan("--table", "sessions").stdout


def test_a_file_that_is_not_scanned_is_replaced(scan, folder, tmp_path):
    (tmp_path / "out.jsonl").write_bytes((folder / "s-1.jsonl").read_bytes())
    scan("--pattern", "a=zzzz", "-o", "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_a_reader_that_leaves_ends_the_scan_without_a_message(tmp_path, many):
    done = subprocess.run(
        f"{sys.executable} -m tailhook scan --table records {many} | head -n 2",
        shell=True,
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


@pytest.mark.parametrize("module", ["pyarrow", "rich"])
def test_without_the_extra_only_its_formats_are_refused(tmp_path, folder, module):
    (tmp_path / f"{module}.py").write_text("raise ImportError('not installed')")
    home = {"HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    assert tailhook("scan", "--table", "sessions", str(folder), env=home, cwd=tmp_path).returncode == 0
    done = tailhook("scan", "--table", "sessions", str(folder), "-o", "out.parquet", env=home, cwd=tmp_path)
    if module == "pyarrow":
        assert done.returncode == 1
        assert "pip install 'tailhook[scan]'" in done.stderr
        assert not (tmp_path / "out.parquet").exists()
    else:
        assert done.returncode == 0


def test_a_minus_as_the_file_is_stdout(scan, tmp_path):
    usual = scan("--table", "records").stdout
    assert scan("--table", "records", "-o", "-").stdout == usual
    assert scan("--table", "records", "-o", "-", "--format", "csv").stdout.startswith("path,offset,")
    assert not (tmp_path / "-").exists()


def test_a_file_without_an_ending_has_json_lines_and_any_ending_is_allowed_with_a_format(scan, tmp_path):
    wanted = scan("--table", "records").stdout
    scan("--table", "records", "-o", "rows")
    scan("--table", "records", "-o", "rows.txt", "--format", "jsonl")
    assert (tmp_path / "rows").read_text() == (tmp_path / "rows.txt").read_text() == wanted


def test_a_message_names_the_file_once(scan, folder):
    packed = gzip.compress((folder / "s-1.jsonl").read_bytes())
    (folder / "cut.jsonl.gz").write_bytes(packed[:-9])
    done = scan("--table", "records", exit_code=1)
    assert done.stderr == "tailhook: transcripts/cut.jsonl.gz: it is cut off: its compressed data has no end\n"


def test_a_file_that_cannot_be_made_is_named_as_the_person_named_it(scan):
    done = scan("--table", "records", "-o", "none/out.jsonl", exit_code=1)
    assert done.stderr == "tailhook: none/out.jsonl: No such file or directory\n"


def test_the_folder_that_has_no_room_for_a_decompressed_file_is_named(folder, tmp_path):
    (folder / "big.jsonl.gz").write_bytes(gzip.compress((folder / "s-1.jsonl").read_bytes() * 4000))
    done = subprocess.run(
        [sys.executable, "-m", "tailhook", "scan", "--table", "records", "--count", "transcripts"],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )
    place = f"{tempfile.gettempdir()}: File too large"
    assert done.stderr == f"tailhook: transcripts/big.jsonl.gz: it cannot be decompressed: {place}\n"
    assert done.returncode == 1


def test_one_line_is_and_two_lines_are(scan, folder):
    (folder / "bad.jsonl").write_text("no\n")
    assert "tailhook: 1 line is not a valid record\n" in scan("--table", "records").stderr
    (folder / "bad.jsonl").write_text("no\nno\n")
    assert "tailhook: 2 lines are not valid records\n" in scan("--table", "records").stderr


# ---- long scans ----------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Return a folder with many names of one file: 20 GB to read, without needing the space."""
    found = tmp_path_factory.mktemp("many")
    line = json.dumps(said(2, "m-1", text("I run it first. " * 20), 3)) + "\n"
    (found / "0000.jsonl").write_text(line * (5_000_000 // len(line)))
    for number in range(1, 4000):
        os.link(found / "0000.jsonl", found / f"{number:04}.jsonl")
    return found


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_ends_the_scan_with_what_is_finished(tmp_path, many, workers):
    words = ["--table", "records", "--columns", "path,offset", "--workers", workers, many]
    interrupt(tmp_path, words, lambda process: (tmp_path / "out").stat().st_size > 0)
    lines = (tmp_path / "out").read_text().splitlines()
    assert [sorted(json.loads(line)) for line in (lines[0], lines[-1])] == [["offset", "path"]] * 2


def interrupt(tmp_path, words, is_time):
    """Interrupt a scan of `many`, and return how many seconds it takes to end. Its output is in the file "out".

    is_time: takes the process, and returns whether to interrupt it.
    """
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tailhook", "scan", *words],
            env={**ENVIRONMENT, "HOME": str(tmp_path)},
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )
    wait_until(lambda: is_time(process))
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    seconds = time.monotonic() - started
    assert process.returncode == 130
    assert errors.startswith("tailhook: interrupted after ")
    assert errors.endswith(" of 4,000 files\n")
    return seconds


@TABLES
def test_an_interrupt_ends_a_scan_within_a_fifth_of_a_second(tmp_path, many, table):
    words = ["--table", table, *(["--pattern", "x=TODO"] if table == "matches" else []), many]

    def has_begun(process):
        return psutil.Process(process.pid).num_threads() > 1

    # The first ones may be slow because of other tests.
    assert any(interrupt(tmp_path, words, has_begun) < 0.2 for _ in range(8))
    if table != "records":  # usage and sessions are joined at the end; no line is a match or a tool use
        assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize(("way", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_scan_that_is_ended_leaves_no_file(tmp_path, many, way, exit_code):
    process = subprocess.Popen(
        [sys.executable, "-m", "tailhook", "scan", "--table", "records", many, "-o", "out.jsonl"],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: list(tmp_path.glob(".out.jsonl*")))
    process.send_signal(way)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == exit_code
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


INTERRUPT = """
import runpy, signal, sys
name = sys.argv.pop(1)
sys.modules.pop(name, None)
class Finder:
    def find_spec(self, module, path=None, target=None):
        if module == name:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
INTERRUPTED = f"""{INTERRUPT}
sys.argv[0] = "tailhook"
runpy.run_module("tailhook", run_name="__main__")
"""
READ_RECORD = f"""{INTERRUPT}
import tailhook
[record] = tailhook.open("s.jsonl")
record.json()
"""


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("tailhook.cli.parser", ["scan"]),
        ("tailhook.cli.scan", ["scan"]),
        ("tailhook.fleet.scan", ["scan", "--table", "usage"]),
        ("tailhook.pictures.explanation", ["explain", "s.jsonl"]),
        ("tailhook.pictures.anatomy", ["anatomy", "s.jsonl", "-o", "f.svg"]),
        ("tailhook.messages", ["explain", "s.jsonl", "--message", "1"]),
    ],
)
def test_an_interrupt_before_the_work_begins_ends_a_command_without_a_traceback(tmp_path, module, words):
    (tmp_path / "s.jsonl").write_text(json.dumps(said(1, "m", text("hello"), 1)) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, *words],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "tailhook: interrupted\n")


@pytest.mark.parametrize("module", ["uuid", "dataclasses"])
@pytest.mark.parametrize(
    ("script", "exit_code", "message"),
    [
        (INTERRUPTED, 130, "tailhook: interrupted before the first file\n"),
        (READ_RECORD, -signal.SIGINT, "KeyboardInterrupt\n"),
    ],
    ids=["command", "library"],
)
def test_an_interrupt_while_orjson_is_imported_does_not_crash_the_process(tmp_path, module, script, exit_code, message):
    (tmp_path / "s.jsonl").write_text(json.dumps(said(1, "m", text("hello"), 1)) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", script, module, "scan", "--table", "records", "s.jsonl"],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.endswith(message)) == (exit_code, True)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "words", ["scan --table records transcripts", "usage transcripts", "scan --table records none"]
)
def test_a_closed_stream_is_as_if_nothing_read_it(tmp_path, folder, closed, words):
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m tailhook {words} {closed}', sys.executable],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (1 if "none" in words else 0)
    assert "Traceback" not in done.stderr
    assert folder.is_dir()


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# ---- on a terminal -------------------------------------------------------------


def in_terminal(tmp_path, *words, **env):
    """Start `tailhook scan` in a terminal."""
    settings = {**ENVIRONMENT, "HOME": str(tmp_path), "TERM": "xterm-256color", "TZ": "UTC", "COLUMNS": "100", **env}
    return Terminal([sys.executable, "-m", "tailhook", "scan", *map(str, words)], settings, tmp_path)


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
        (["--limit", "1"], "1 match; as many as --limit allows, in 0."),
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
    assert "\x1b[" not in shown.seen


def test_a_line_of_a_table_is_cut_to_the_terminal_with_the_match_in_it(tmp_path, folder):
    words = "word " * 15
    write_records(folder / "s-4.jsonl", [said(1, "m", text(f"{words}TODO {words}"), 1)])
    shown = in_terminal(tmp_path, "--pattern", "x=TODO", folder, NO_COLOR="1", TERM="dumb")
    assert shown.wait() == 0
    (line,) = [line for line in shown.seen.splitlines() if "TODO" in line]
    assert len(line) <= 100
    assert "…" in line


def test_a_long_scan_shows_a_progress_bar_that_rows_do_not_disturb(tmp_path, many):
    shown = in_terminal(tmp_path, "--pattern", "x=absent", many)
    shown.until("of 4,000 files")
    shown.until("/s")
    os.kill(shown.pid, signal.SIGINT)
    assert shown.wait() == 130
    assert "tailhook: interrupted after " in shown.seen


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
