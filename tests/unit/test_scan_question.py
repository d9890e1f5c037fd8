"""The questions of `tailhook.scan`, and the arguments that it refuses before it reads anything."""

import copy
import inspect
import json
import pickle
from datetime import UTC, date, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import get_args

import pytest
from support.cases import in_one_test
from support.library_sample import write_sample
from support.oracles import scan as oracle

import tailhook
from tailhook._core import scan_range
from tailhook.fleet import program as programs
from tailhook.fleet.answer import Conditions
from tailhook.fleet.columns import TABLE_COLUMNS, MatchOptions, Table
from tailhook.fleet.engines import Comparison, make_reader, narrow, plan_scan

START = datetime(2026, 11, 1, tzinfo=UTC)
TABLES = ("matches", "records", "tools", "usage", "sessions")


@in_one_test(
    ("question", "reason"),
    [
        ({"table": "lines"}, "there is no table 'lines'"),
        ({"table": "matches"}, "nothing to find"),
        ({"table": "records", "patterns": ["x"]}, "only the table matches takes patterns"),
        ({"table": "usage", "signals": True, "context": 5}, "only the table matches takes signals, context"),
        ({"table": "tools", "categories": True}, "only the table matches takes categories"),
        ({"table": "sessions", "in_code": None}, "only the table matches takes in_code"),
        ({"table": "records", "all_text": True, "sidechains": True}, "takes all_text, sidechains"),
        ({"patterns": tailhook.PatternSet(["x"], outside_code=False)}, "give in_code=None"),
        ({"patterns": ["a\udcff"]}, "the pattern 'a.udcff' has a lone surrogate"),
        ({"patterns": {"\udcff": "a"}}, "the pattern '.udcff' has a lone surrogate"),
        ({"table": "records", "roles": ["usr"]}, "there is no role 'usr': choose among user, assistant, human"),
        ({"table": "records", "workers": 0}, "workers is 0"),
        ({"table": "records", "workers": -1}, "workers is -1"),
        ({"signals": True, "context": -1, "redact": True}, "context is -1"),
        ({"signals": True, "context": 65_537}, "context is 65537: give at most 65,536"),
        ({"signals": True, "context": 2**80, "redact": True}, "give at most 65,536"),
        ({"table": "records", "project": ""}, "project is an empty name"),
        ({"table": "usage", "columns": ["cost"]}, "has no column 'cost'"),
        *(({"table": table, "columns": []}, "columns names no column") for table in TABLES),
        *(({"table": table, "columns": ["session_id"] * 2}, "a column is named twice") for table in TABLES),
        ({"table": "tools", "roles": ["user"]}, "rows of the table tools have no role"),
        ({"table": "tools", "roles": []}, "rows of the table tools have no role"),
        ({"table": "records", "columns": ["type"], "resume": "folder"}, "resume needs the column path"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(question, reason):
    with pytest.raises(ValueError, match=reason):
        tailhook.scan("sessions", **question)


@in_one_test("name", ["roles", "sessions", "columns"])
@in_one_test("value", ["user", b"user", [1], 5])
def test_what_is_not_a_list_of_strings_is_refused(name, value):
    with pytest.raises(TypeError, match=f"{name} is .*: give a list of strings"):
        tailhook.scan("sessions", "records", **{name: value})


@in_one_test(
    ("question", "reason"),
    [
        ({"sources": [None]}, "a source is None: give a path"),
        ({"sources": ["a", b"a"]}, "a source is b'a': give a path"),
        ({"sources": b"a"}, "sources is b'a': give paths"),
        ({"sources": 5}, "sources is 5: give paths"),
        ({"table": ["records"]}, r"table is \['records'\]: give one of matches, records"),
        ({"workers": "2"}, "workers is '2': give a whole number"),
        ({"workers": True}, "workers is True: give a whole number"),
        ({"progress": 5}, "progress is 5: give a function"),
        ({"redact": "x"}, "redact is 'x': give True or False"),
        ({"project": 5}, "project is 5: give a path"),
        ({"project": b"/p"}, "project is b'/p': give a path"),
        ({"resume": 5}, "resume is 5: give a path"),
        ({"table": "matches", "patterns": [1]}, "patterns and their names are str, not int: 1"),
        ({"table": "matches", "patterns": {"a": 5}}, "patterns and their names are str, not int: 5"),
        ({"table": "matches", "patterns": {"a": b"x"}}, "patterns and their names are str, not bytes: b'x'"),
        ({"table": "matches", "patterns": 5}, "patterns is 5: give a list of strings"),
        ({"table": "matches", "signals": 2}, "signals is 2: give True or False"),
        ({"table": "matches", "categories": "no"}, "categories is 'no': give True or False"),
        ({"table": "matches", "signals": True, "all_text": "no"}, "all_text is 'no': give True or False"),
        ({"table": "matches", "signals": True, "sidechains": 1}, "sidechains is 1: give True or False"),
        ({"table": "matches", "signals": True, "in_code": "yes"}, "in_code is 'yes': give True or False"),
        ({"table": "matches", "signals": True, "context": "3"}, "context is '3': give a whole number"),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused(question, reason):
    with pytest.raises(TypeError, match=reason):
        tailhook.scan(**{"sources": "sessions", "table": "records", **question})


@pytest.mark.parametrize("value", ["2026-11-01", "yesterday", date(2026, 11, 1), 5])
@pytest.mark.parametrize("name", ["since", "until"])
def test_a_time_that_is_not_a_datetime_is_refused(name, value):
    with pytest.raises(TypeError, match=f"{name} is .*, which is not a datetime: give an aware datetime"):
        tailhook.scan("sessions", "records", **{name: value})


def test_a_set_that_does_not_exclude_code_finds_matches_in_code(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"assistant","message":{"role":"assistant","content":"`TODO` TODO"}}\n')
    anywhere = tailhook.PatternSet(["TODO"], outside_code=False)
    assert [row.in_code for row in tailhook.scan(path, patterns=anywhere, in_code=None).rows()] == [True, False]


@pytest.mark.parametrize("table", ["records", "tools", "usage", "sessions"])
@pytest.mark.parametrize("name", ["since", "until"])
def test_a_time_without_a_zone_is_refused(table, name):
    with pytest.raises(TypeError, match=f"{name} is .* no time zone"):
        tailhook.scan("sessions", table, **{name: datetime(2026, 11, 1)})


def write_session(folder, session, cwd="/w", stamps=(START,), tokens=5):
    """Write a transcript with a record of the agent for each time, and return its path."""
    lines = []
    for number, stamp in enumerate(stamps):
        content = [{"type": "text", "text": "TODO"}, {"type": "tool_use", "id": f"t{number}", "name": "Bash"}]
        usage = {"input_tokens": tokens, "output_tokens": tokens}
        message = {"id": f"{session}{number}", "role": "assistant", "content": content, "usage": usage}
        facts = {"type": "assistant", "sessionId": session, "cwd": cwd, "timestamp": stamp.isoformat()}
        lines.append(json.dumps({**facts, "message": message}) + "\n")
    path = folder / f"{session}.jsonl"
    path.write_text("".join(lines))
    return str(path)


def oracle_rows(table, paths, **conditions):
    """Return the slow reference's rows for files."""
    files = [(path, Path(path).read_bytes()) for path in paths]
    return oracle.rows(table, files, oracle.Question({"TODO": "TODO"}, **conditions))


def sessions_found(table, source, **conditions):
    """Return the sessions of a table's rows, sorted."""
    patterns = ["TODO"] if table == "matches" else ()
    return sorted(row.session_id for row in tailhook.scan(source, table, patterns=patterns, **conditions).rows())


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    ("project", "found"),
    [
        ("/", ["below", "deep", "other", "root"]),
        ("/home", ["below", "deep"]),
        ("/home/", ["below", "deep"]),
        ("/home/me", ["deep"]),
        ("C:\\", ["drive"]),
        ("C:\\src", ["drive"]),
    ],
)
def test_a_project_means_the_same_for_every_table(tmp_path, table, project, found):
    folders = {"root": "/", "below": "/home", "deep": "/home/me", "other": "/homes", "drive": "C:\\src", "none": "x/"}
    paths = [write_session(tmp_path, name, folder) for name, folder in folders.items()]
    assert sessions_found(table, tmp_path, project=project) == found
    assert sorted(row["session_id"] for row in oracle_rows(table, paths, project=project)) == found


def test_a_relative_project_begins_at_the_current_folder(tmp_path, monkeypatch):
    write_session(tmp_path, "s", str(tmp_path / "src" / "app"))
    monkeypatch.chdir(tmp_path)
    for name in (".", "src", "src/", "./src/../src/app", Path("src")):
        assert sessions_found("records", tmp_path, project=name) == ["s"]
    assert sessions_found("records", tmp_path, project="other") == []
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sessions_found("records", tmp_path, project="~/src") == ["s"]


@pytest.mark.parametrize("table", TABLES)
def test_no_time_is_between_a_time_and_itself(tmp_path, table):
    path = write_session(tmp_path, "s", stamps=[START, START + timedelta(hours=2)])
    noon = START + timedelta(hours=1)
    for until in (noon, START):
        assert sessions_found(table, tmp_path, since=noon, until=until) == []
        assert oracle_rows(table, [path], since=noon, until=until) == []


def test_the_sum_of_a_sessions_tokens_is_at_most_the_greatest_whole_number_of_a_column(tmp_path):
    path = write_session(tmp_path, "s", stamps=[START, START], tokens=2**63 - 1)
    (row,) = tailhook.scan(path, "sessions").rows()
    (wanted,) = oracle_rows("sessions", [path])
    assert row.input_tokens == row.output_tokens == wanted["input_tokens"] == 2**63 - 1
    assert row.cache_read_tokens == 0


def rows_of(path, table):
    return list(tailhook.scan(path, table).rows())


@pytest.mark.parametrize("table", ["records", "tools", "usage", "sessions"])
def test_rows_can_be_pickled_also_by_a_process_that_made_them(tmp_path, table):
    path = write_session(tmp_path, "s")
    found = rows_of(path, table)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert [row._asdict() for row in again] == [row._asdict() for row in found]
    assert copy.copy(found[0]).session_id == "s"
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(rows_of, (path, table)) == found


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["roles", "sessions"])
def test_an_empty_list_chooses_no_row_and_none_chooses_all(tmp_path, table, name):
    if name == "roles" and table not in ("matches", "records"):
        return
    write_sample(tmp_path)
    patterns = ["it"] if table == "matches" else ()
    counts = [
        sum(1 for _ in tailhook.scan(tmp_path, table, patterns=patterns, **{name: value}).rows())
        for value in (None, [], (), iter(()))
    ]
    assert counts[0] > 0
    assert counts[1:] == [0, 0, 0]
    empty = tailhook.scan(tmp_path, table, patterns=patterns, **{name: []})
    assert f"{name}=()" in repr(empty)
    assert empty._question.described() != tailhook.scan(tmp_path, table, patterns=patterns)._question.described()


@pytest.mark.parametrize("table", TABLES)
def test_an_engine_that_only_counts_rows_gets_as_many_without_columns(tmp_path, table):
    write_sample(tmp_path)
    patterns = ["it"] if table == "matches" else ()
    count = sum(1 for _ in tailhook.scan(tmp_path, table, patterns=patterns).rows())
    assert count > 0
    for redact in (False, True):
        question = narrow(tailhook.scan([], table, patterns=patterns, redact=redact)._question, [], [])
        assert sum(map(len, tailhook.Scan([tmp_path], question, 1))) == count


def test_a_scan_shows_its_question_in_one_line():
    scan = tailhook.scan(
        ["a\nb"], patterns={"todo": "TODO"}, since=START, project="/w", roles=["user"], columns=["line"]
    )
    assert repr(scan) == (
        "Scan('matches', sources=['a\\nb'], patterns=['todo'], roles=('user',), since='2026-11-01 00:00:00+00:00', "
        "project='/w', columns=('line',))"
    )
    assert repr(tailhook.scan("https://me:hunter2@host/a?token=hunter2", "records")).startswith(
        "Scan('records', sources=['https://host/a'], "
    )
    assert len(repr(tailhook.scan(["s" * 500] * 500, categories=True, signals=True))) < 600


def test_a_scan_has_no_other_names_than_those_that_are_documented():
    names = {name for name in (*dir(tailhook.Scan), *vars(tailhook.scan(None, "usage"))) if not name.startswith("_")}
    assert names == {"columns", "report", "resume", "rows", "sources", "table", "to_daft", "to_ray", "update"}


@pytest.mark.parametrize("column", ["timestamp", "role", "session_id", "project"])
def test_a_comparison_of_an_engine_with_no_value_is_left_to_the_engine(column):
    question = tailhook.scan([], "records", columns=["path", column])._question
    assert narrow(question, None, [Comparison(column, "in", ())]) == question


@pytest.mark.parametrize("operator", ["<=", "<", "in"])
@pytest.mark.parametrize("until", [None, START])
def test_a_comparison_with_the_last_time_that_there_is_narrows_nothing(operator, until):
    question = tailhook.scan([], "records", until=until)._question
    last = datetime.max.replace(tzinfo=UTC)
    assert narrow(question, None, [Comparison("timestamp", operator, (START, last))]).conditions.until == until


@pytest.mark.parametrize(
    ("project", "wanted"), [("", None), ("/", None), ("\\\\", None), ("/p/", "/p"), ("C:\\", "C:")]
)
def test_a_project_that_an_engine_compares_is_a_folder_or_left_to_the_engine(project, wanted):
    question = tailhook.scan([], "records", columns=["path", "project"])._question
    found = narrow(question, None, [Comparison("project", "in", (project,))])
    assert found.conditions.project == wanted


@pytest.mark.parametrize("column", ["input", "command", "file"])
def test_a_large_column_of_tools_is_read_only_if_it_is_asked_for(tmp_path, column):
    use = {"type": "tool_use", "id": "t", "name": "Edit", "input": {"file_path": "/a", "command": "b"}}
    line = {"type": "assistant", "message": {"content": [use, {**use, "id": "u", "name": "Bash"}]}}
    (tmp_path / "s.jsonl").write_text(json.dumps(line))
    for columns in (["name", column], ["name"]):
        scan = tailhook.scan(tmp_path, "tools", columns=columns)
        (batch,) = scan._read("tools", scan._find_files(run := scan._new_run()), run)
        assert (column in batch.names) == (column in columns)
        assert [row.name for row in scan.rows()] == ["Edit", "Bash"]
        assert column not in columns or any(getattr(row, column) for row in scan.rows())


@pytest.mark.parametrize("table", ["tools", "usage", "sessions"])
def test_an_engine_cannot_plan_a_scan_whose_rows_are_joined_from_several_tasks(tmp_path, table):
    with pytest.raises(ValueError, match=f"rows of the table {table} are joined from several tasks: use to_daft"):
        plan_scan(tailhook.scan(tmp_path, table))


@pytest.mark.parametrize("question", [{"table": "records"}, {"patterns": ["x"]}])
def test_an_engine_can_plan_a_scan_whose_rows_come_from_one_task_each(tmp_path, question):
    path = tmp_path / "s.jsonl"
    path.write_text("{}\n")
    reader, tasks = plan_scan(tailhook.scan(path, **question))
    assert reader.table == question.get("table", "matches")
    assert [[part.path for part in task] for task in tasks] == [[str(path)]]


@pytest.fixture
def compiled(monkeypatch):
    """The texts of each compiled table."""
    tables = []
    real = programs.compile_table

    def note(patterns, **options):
        tables.append([text for _, text in patterns])
        return real(patterns, **options)

    monkeypatch.setattr("tailhook.fleet.program.compile_table", note)
    return tables


def test_patterns_are_compiled_once_for_a_scan_however_often_it_is_read(tmp_path, compiled):
    (tmp_path / "one.jsonl").write_text('{"type":"user","message":{"role":"user","content":"one two"}}\n')
    question = tailhook.scan(tmp_path, patterns=["one", "two"], resume=tmp_path / "rows")
    question.update()
    assert [row.name for row in question.rows()] == ["one", "two"]
    make_reader(question._question).narrowed(["name"], [])
    assert len(compiled) == 1


def test_the_table_of_a_pattern_set_is_used_as_it_is(tmp_path, compiled):
    (tmp_path / "one.jsonl").write_text('{"type":"user","message":{"role":"user","content":"one two"}}\n')
    question = tailhook.scan(tmp_path, patterns=tailhook.PatternSet({"a": "One  Two"}, ignore_case=True, word=True))
    assert [row.name for row in question.rows()] == ["a"]
    (gate,) = compiled
    assert "One" in gate
    assert "One  Two" not in gate


@pytest.mark.parametrize("ignore_case", [False, True])
def test_an_escape_that_the_gate_finds_does_not_match(tmp_path, ignore_case):
    content = r"u0041 \\u212A \u0041nd"
    line = '{"type":"user","message":{"role":"user","content":"CONTENT"}}\n'.replace("CONTENT", content)
    (tmp_path / "one.jsonl").write_text(line)
    compiled = programs.compile_sets([tailhook.PatternSet({"and": ["And"]}, ignore_case=ignore_case)])
    assert compiled.gate is compiled.sets[0][0]
    options = MatchOptions(in_code=None)
    program = programs.make_program("matches", ("name", "start"), compiled, Conditions(), options)
    with open(tmp_path / "one.jsonl", "rb") as file:
        batches = scan_range(file.fileno(), 0, None, program)
    assert [row for batch in batches for row in zip(*batch.columns(), strict=True)] == [("and", 13)]


def test_a_type_checker_knows_the_tables():
    assert get_args(Table) == tuple(TABLE_COLUMNS)
    assert inspect.signature(tailhook.scan, eval_str=True).parameters["table"].annotation == Table
