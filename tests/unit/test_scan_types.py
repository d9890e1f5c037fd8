"""The types of a scan for type checkers: its tables, its arguments, and the columns of its rows."""

import inspect
import json
import re
import subprocess
import sys
import typing
from types import GenericAlias, UnionType

import pytest

import tailhook
from tailhook.fleet import typed_rows
from tailhook.fleet.columns import TABLE_COLUMNS

ROWS = {
    "matches": typed_rows.RowOfMatches,
    "records": typed_rows.RowOfRecords,
    "tools": typed_rows.RowOfTools,
    "usage": typed_rows.RowOfUsage,
    "sessions": typed_rows.RowOfSessions,
}
USE = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
FULL = {
    "sessionId": "s",
    "uuid": "u",
    "timestamp": "2026-01-02T03:04:05Z",
    "cwd": "/p",
    "requestId": "r",
    "message": {
        "id": "m",
        "role": "assistant",
        "content": [{"type": "text", "text": "word"}, USE, {"type": "tool_use"}],
        "usage": {"input_tokens": 1},
    },
}


def fits(value, hint):
    """Return whether a value is of a type."""
    if isinstance(hint, UnionType):
        return any(fits(value, one) for one in typing.get_args(hint))
    if isinstance(hint, GenericAlias):
        return isinstance(value, list) and all(fits(one, typing.get_args(hint)[0]) for one in value)
    return type(value) is (type(None) if hint is None else hint)


@pytest.mark.parametrize("table", ROWS)
def test_the_rows_of_a_table_are_what_type_checkers_are_shown(tmp_path, table):
    hints = {name: hint for name, hint in typing.get_type_hints(ROWS[table]).items() if name != "_fields"}
    assert tuple(hints) == TABLE_COLUMNS[table]
    bare = {
        "type": "assistant",
        "message": {"role": "assistant", "content": ["word", {"type": "tool_use"}], "usage": {}},
    }
    records = [{"type": "assistant", **FULL}, bare, {}, {"type": None}]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    patterns = ["word"] if table == "matches" else []
    rows = list(tailhook.scan(tmp_path, table, patterns=patterns, columns=TABLE_COLUMNS[table]).rows())
    assert rows
    wrong = [(name, value) for row in rows for name, value in row._asdict().items() if not fits(value, hints[name])]
    assert wrong == []


def test_type_checkers_and_people_are_shown_every_argument_of_a_scan():
    arguments = inspect.signature(tailhook.scan).parameters.values()
    named = [argument.name for argument in arguments if argument.kind is argument.KEYWORD_ONLY]
    assert list(typed_rows.ScanOptions.__annotations__) == named
    described = re.findall(r"^((?:\w+, )*\w+): ", inspect.getdoc(tailhook.scan), re.MULTILINE)
    assert set(named) - set(", ".join(described).split(", ")) == set()


RIGHT = """
import tailhook
from datetime import datetime
from tailhook import Scan

context: str = next(tailhook.scan("t", patterns=["x"]).rows()).context
start: datetime | None = next(tailhook.scan(table="sessions").rows()).start
for name, file in tailhook.scan("t", "tools", columns=["name", "file"]).rows():
    print(name, file)
scan: Scan = tailhook.scan(["t"], "records", workers=2)
"""
WRONG = {
    "a misspelt table": 'tailhook.scan("t", "record")',
    "a misspelt table by name": 'tailhook.scan(table="session")',
    "a misspelt argument": 'tailhook.scan("t", "tools", workrs=2)',
    "a misspelt column": 'next(tailhook.scan("t", "tools").rows()).duration',
    "a column of another table": 'next(tailhook.scan("t", "usage").rows()).context',
    "a column that may be missing": 'next(tailhook.scan("t", "tools").rows()).duration_ms + 1',
}


def test_a_misspelt_table_argument_or_column_of_a_scan_does_not_pass_a_type_checker(tmp_path):
    pytest.importorskip("mypy")
    code = [*RIGHT.splitlines(), *WRONG.values()]
    (tmp_path / "program.py").write_text("\n".join(code))
    argv = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.10", "--cache-dir", tmp_path / "cache"]
    argv += ["--config-file", "", "--no-error-summary", tmp_path / "program.py"]
    checked = subprocess.run(argv, capture_output=True, text=True, check=False)
    found = [line.split(":") for line in checked.stdout.splitlines() if ": error: " in line]
    faulty = {int(line[1]) for line in found}
    assert faulty == {code.index(line) + 1 for line in WRONG.values()}, checked.stdout + checked.stderr
