"""The output of `tailhook scan`: limits, sorted rows, columns and every format."""

import csv
import io
import json

import pytest
from support.host import tailhook
from support.library_sample import said, text, write_records
from support.scan_tables import TABLES


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


def test_a_line_of_csv_ends_with_its_last_cell_as_other_commands_expect(scan):
    lines = scan("--table", "tools", "--format", "csv", "--columns", "name,is_error").stdout.split("\n")
    assert lines[0] == "name,is_error"
    assert [line for line in lines if line.endswith("True")] == ["Bash,True"]


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


def test_a_file_without_an_ending_has_json_lines_and_any_ending_is_allowed_with_a_format(scan, tmp_path):
    wanted = scan("--table", "records").stdout
    scan("--table", "records", "-o", "rows")
    scan("--table", "records", "-o", "rows.txt", "--format", "jsonl")
    assert (tmp_path / "rows").read_text() == (tmp_path / "rows.txt").read_text() == wanted
