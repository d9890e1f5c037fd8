"""Flags and arguments that `tailhook scan` refuses."""

import pytest


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
        (["--signals", "--columns", ","], "columns names no column"),
        (["--signals", "--columns", ""], "columns names no column"),
        (["--signals", "--columns", "name,line,name"], "a column is named twice"),
        (["--table", "usage", "--columns", "model,model"], "a column is named twice"),
        (["--signals", "--sort", "nothing"], "the table matches has no column 'nothing'. It has path, "),
        (["--signals", "-o", "out.xyz"], "out.xyz: the ending names no format (.jsonl, .csv, .parquet, .arrow): give"),
        (["--signals", "-o", "out.jsonl.gz"], "out.jsonl.gz: the ending names no format"),
        (["--signals", "--format", "parquet", "-o", "-"], "--format parquet needs -o FILE"),
        (["--signals", "--sort", ""], "the table matches has no column ''. It has path, "),
        (["--table", "records", "--project", ""], "--project is an empty name: give a folder"),
        (["--patterns", ""], "--patterns is an empty name: give a file\n"),
        (["--signals", "-o", ""], "-o is an empty name: give a file\n"),
        (["--signals", "--resume", ""], "--resume is an empty name: give a folder\n"),
        (["--signals", "--resume", "s3://a/b"], "resume is a URL (s3://a/b): rows are kept in a folder"),
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
        (["--context", "65537", "--redact"], "context is 65537: give at most 65,536"),
        (["--limit", "99999999999999999999"], "'99999999999999999999' is over 9,007,199,254,740,992"),
        (["--format", "xml"], "invalid choice: 'xml'"),
        (["--role", "usr"], "argument --role: invalid choice: 'usr'"),
    ],
)
def test_an_argument_that_is_not_valid_is_refused(scan, words, message):
    assert message in scan("--signals", *words, exit_code=2).stderr
