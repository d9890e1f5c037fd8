"""ScanProgram, the compiled question: it refuses bad arguments, and a pickle of another process cannot break it."""

import pickle
import subprocess
import sys

import pytest
from support.cases import in_one_test

from tailhook import _core
from tailhook._core import RangeScan, ScanProgram
from tailhook.fleet.columns import MatchOptions
from tailhook.patterns.automaton import compile_table

TABLE = compile_table([(0, "one"), (1, "two")], ignore_case=False, word=False)
GOOD = {"table": "matches", "columns": ("name", "start"), "sets": [(TABLE, False, 0, 2)], "names": ("a", "b")}
LINE = b'{"type":"user","message":{"role":"user","content":"one two"}}\n'


def rows(program, data=LINE):
    scan = RangeScan(program)
    scan.begin("t.jsonl", "s", "claude-code")
    scan.feed(data)
    scan.end_file()
    return [row for batch in scan.finish() for row in zip(*batch.columns(), strict=True)]


def test_a_question_finds_its_names():
    assert rows(ScanProgram(**GOOD)) == [("a", 0), ("b", 4)]
    second = compile_table([(0, "two")], ignore_case=False, word=False)
    both = [(TABLE, False, 1, 2), (second, False, 0, 1)]
    assert rows(ScanProgram(**GOOD | {"sets": both, "names": ("z", "a", "b")})) == [("a", 0), ("z", 4), ("b", 4)]


@in_one_test(
    ("change", "error"),
    [
        ({"table": "nothing"}, ValueError),
        ({"table": None}, TypeError),
        ({"columns": ("nothing",)}, ValueError),
        ({"columns": ("name", "name")}, ValueError),
        ({"columns": (5,)}, TypeError),
        ({"columns": 5}, TypeError),
        ({"sets": 5}, TypeError),
        ({"sets": [5]}, TypeError),
        ({"sets": [(TABLE,)]}, ValueError),
        ({"sets": [(None, False, 0, 2)]}, TypeError),
        ({"sets": [(b"", False, 0, 2)]}, ValueError),
        ({"sets": [(b"\0" * 4096, False, 0, 2)]}, ValueError),
        ({"sets": [(TABLE[:-4], False, 0, 2)]}, ValueError),
        ({"sets": [(TABLE, False, 0, 1)]}, ValueError),
        ({"sets": [(TABLE, False, 0, 3)]}, ValueError),
        ({"sets": [(TABLE, False, 1, 2)]}, ValueError),
        ({"sets": [(TABLE, False, -2, 2)]}, ValueError),
        ({"sets": [(TABLE, False, 0, -1)]}, ValueError),
        ({"sets": [(TABLE, False, 2**64, 2)]}, ValueError),
        ({"names": ()}, ValueError),
        ({"names": (1, 2)}, TypeError),
        ({"gate": compile_table([(0, "one"), (1, "three")], ignore_case=False, word=False)}, ValueError),
        ({"gate": b"none"}, ValueError),
        ({"gate": "none"}, TypeError),
        ({"options": MatchOptions()[:-1]}, ValueError),
        ({"options": None}, TypeError),
        ({"options": MatchOptions(context=-1)}, ValueError),
        ({"options": MatchOptions(context=131_073)}, ValueError),
        ({"options": MatchOptions(context=2**80)}, ValueError),
        ({"options": MatchOptions(context="all")}, TypeError),
        ({"since": 2**63}, OverflowError),
        ({"until": "now"}, TypeError),
        ({"roles": (5,)}, TypeError),
        ({"projects": 5}, TypeError),
        ({"unknown": 1}, TypeError),
    ],
)
def test_what_is_wrong_is_refused(change, error):
    with pytest.raises(error):
        ScanProgram(**GOOD | change)


def test_a_program_needs_its_arguments():
    with pytest.raises(TypeError):
        ScanProgram()
    with pytest.raises(TypeError):
        ScanProgram.__new__(ScanProgram)
    with pytest.raises(TypeError):
        RangeScan(None)


def test_a_column_that_the_table_lacks_is_refused_with_the_rows():
    scan = RangeScan(ScanProgram(table="records", columns=("type", "input_tokens")))
    scan.begin("t.jsonl", "s", "claude-code")
    scan.feed(LINE)
    scan.end_file()
    with pytest.raises(ValueError, match="no column 'input_tokens'"):
        scan.finish()
    with pytest.raises(MemoryError):  # some rows are lost
        scan.finish()


def test_lone_surrogates_in_conditions_match_nothing():
    assert rows(ScanProgram(**GOOD | {"roles": ("\ud800",)})) == []


def test_a_program_is_the_same_in_another_process():
    program = ScanProgram(
        **GOOD, gate=compile_table([(0, "two")], ignore_case=False, word=False), options=MatchOptions(None, 3)
    )
    code = (
        "import pickle, sys; from tailhook._core import RangeScan\n"
        "scan = RangeScan(pickle.loads(sys.stdin.buffer.read()))\n"
        "scan.begin('t.jsonl', 's', 'claude-code'); scan.feed(" + repr(LINE) + "); scan.end_file()\n"
        "print([batch.columns() for batch in scan.finish()])\n"
        "assert 'tailhook.patterns.automaton' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(program), capture_output=True, check=True)
    assert eval(done.stdout) == [[["a", "b"], [0, 4]]]
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(program))))
    assert rows(again) == rows(program)


def test_a_pickle_of_another_version_is_an_error():
    for changed in ({**GOOD, "later": 1}, {}, {**GOOD, "table": "later"}):
        with pytest.raises((TypeError, ValueError)):
            _core.scan_unpickle(changed)
    with pytest.raises(TypeError):
        _core.scan_unpickle(None)


def test_no_damage_to_a_table_leads_out_of_it():
    """With one word changed, the table is refused or finds something else. It never reads beyond its end."""
    for at in range(0, len(TABLE), 4):
        for value in (0, 1, 0xFFFF, 0xFFFFFFFF):
            data = TABLE[:at] + value.to_bytes(4, "little") + TABLE[at + 4 :]
            try:
                program = ScanProgram(**GOOD | {"sets": [(data, False, 0, 2)]}, gate=None)
            except ValueError:
                continue
            rows(program, LINE * 3)


def test_objects_with_memory_of_the_core_are_not_pickled():
    with pytest.raises(TypeError):
        pickle.dumps(RangeScan(ScanProgram(**GOOD)))
    with pytest.raises(TypeError):
        pickle.dumps(_core.ArrowBatch())
