"""The gate machine: its page row by row, its patterns of files, and what counts as a run of a command."""

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailhook.machines.gate import MAX_COMMAND_CHARS, Edit, Facts, Rule, decide, matches_path, parse_rules, runs

PYTHON = Rule(["*.py"], "pytest")
WEB = Rule(["web/**"], "npm test")
EDIT = Edit("src/app.py", "e1")

# number of the page's row: (facts, outcome, part of why, the change)
ROWS = {
    1: (Facts([], [EDIT]), "allow", "no rules", None),
    2: (Facts([PYTHON], [EDIT], paused=True), "allow", "background task", None),
    3: (Facts([PYTHON], [EDIT], stop_hook_active=True), "allow", "stop_hook_active", None),
    5: (Facts([PYTHON], ["pytest -q", EDIT]), "allow", "every edit was checked", None),
    6: (Facts([PYTHON], [EDIT], blocked={"e1"}), "allow", "blocked for these edits", None),
    7: (Facts([PYTHON], [EDIT, "pytest"]), "block", "1 command not run since an edit", ["e1"]),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_row_of_the_page(row):
    facts, outcome, why, change = ROWS[row]
    verdict = decide(facts)
    assert (verdict.outcome, verdict.change) == (outcome, change)
    assert why in verdict.why


def test_the_page_has_these_rows():
    page = (Path(__file__).parents[2] / "docs/machines/gate.md").read_text()
    table = page.split("## Decisions")[1]
    numbers = [int(line.split("|")[1]) for line in table.splitlines() if line[2:3].isdigit()]
    assert numbers == sorted([*ROWS, 4])  # 4 is the hook's: tests/contract/test_gate_process.py


def test_the_reason_names_the_command_and_the_file():
    reason = decide(Facts([PYTHON, WEB], [Edit("web/a.js", "e2"), EDIT])).reason
    assert "`pytest`: src/app.py was edited after its last successful run." in reason
    assert "`npm test`: web/a.js was edited" in reason


def test_a_reason_stays_short_and_on_its_lines():
    rules = [Rule([f"f{number}*"], f"check{number}") for number in range(50)]
    edits = [Edit(f"f{number}\n\x1b[31m" + "x" * 5000, f"e{number}") for number in range(50)]
    reason = decide(Facts(rules, edits)).reason
    assert len(reason) < 10_000
    assert reason.count("\n") == 5
    assert "\x1b" not in reason


def test_no_edit_needs_no_run():
    assert decide(Facts([PYTHON], ["ls", Edit("README.md", "e")])).outcome == "allow"


def test_a_newer_edit_is_blocked_for_again():
    assert decide(Facts([PYTHON], [Edit("b.py", "e2"), EDIT], blocked={"e1"})).change == ["e2"]


def test_the_transcript_is_read_no_farther_than_needed():
    def happened():
        yield EDIT
        raise AssertionError("read on")

    assert decide(Facts([PYTHON], happened())).outcome == "block"


@pytest.mark.parametrize(
    "value",
    [{}, {"edited": ["*.py"]}, {"ran": "x"}, {"edited": [], "ran": "x"}, {"edited": "*.py", "ran": "x"}]
    + [{"edited": ["*.py"], "ran": ran} for ran in ("", " ", 5, None, ["x"])]
    + [{"edited": [5, ""], "ran": "x"}],
)
def test_a_rule_without_both_is_left_out(value):
    (rule,) = parse_rules([value, {"edited": ["*.py", 5], "ran": " npm  test "}])
    assert (rule.edited, rule.ran) == (["*.py"], ["npm", "test"])


# ---- patterns of files -------------------------------------------------------

PATHS = [
    ("*.py", "app.py", True),
    ("*.py", "src/deep/app.py", True),
    ("*.py", "app.pyc", False),
    ("*.py", ".py", True),
    ("Makefile", "sub/Makefile", True),
    ("Makefile", "Makefile.am", False),
    ("src/*.py", "src/a.py", True),
    ("src/*.py", "src/a/b.py", False),
    ("src/*.py", "lib/src/a.py", False),
    ("src/**", "src/a/b", True),
    ("src/**/t_*.py", "src/t_a.py", True),
    ("src/**/t_*.py", "src/a/b/t_a.py", True),
    ("src/**/t_*.py", "src/a/b/x.py", False),
    ("**/a", "a", True),
    ("/src/a", "src/a", True),
    ("?.c", "a.c", True),
    ("?.c", "ab.c", False),
    ("*", "a/b", True),
    ("a*b*c", "aXbYbZc", True),
    ("a*b*c", "aXcYb", False),
    ("[ab].py", "a.py", False),
]


@pytest.mark.parametrize(("pattern", "path", "matches"), PATHS)
def test_a_pattern_matches_these_paths(pattern, path, matches):
    assert matches_path(pattern, path) is matches


@given(st.text("ab*?/", max_size=12), st.text("ab/", max_size=12))
def test_a_pattern_never_fails_and_a_path_matches_itself(pattern, path):
    matches_path(pattern, path)
    assert matches_path(path, path) or "/" not in path.strip("/") or path.startswith("/")


# ---- commands ----------------------------------------------------------------

RUN = """
pytest|pytest -q tests|cd a && pytest|A=1 B=2 pytest|.venv/bin/pytest -x|/usr/bin/pytest|timeout 60 pytest
timeout -k 5 60 pytest|env -i A=1 pytest|sudo -u me pytest|time pytest|nice -n 5 pytest|xargs pytest|! pytest
bash -c 'cd x; pytest -q'|sh -c "pytest"|bash -c "sh -c 'pytest'"|(pytest)
{ pytest; }|a;pytest|a||pytest|a | pytest|pytest &
if true; then pytest; fi|for i in 1 2; do pytest; done|pytest 2>&1 | tail -3|ls 2>&1; pytest|pytest>out.txt|>out pytest
'pytest' -q|py\\test|"pytest" a|pytest # all|nohup pytest|command pytest|exec pytest
"""
NOT_RUN = """
echo pytest|# pytest|ls # pytest|echo 'x; pytest'|git commit -m "pytest && done"|pytest-watch|python -m pytest
grep pytest setup.cfg|x="$(pytest)"|ls > pytest|sudo -E echo pytest|xargs -n1 echo pytest|which pytest
pip install pytest|cat pytest|'pytest -q'|bash pytest|bash -c|bash -c 'echo pytest'|pytest.ini
A=pytest|timeout pytest|'|"|\\|<<|& & ;;
"""


def lines_of(table):
    """Return the commands of a table; a | stands alone between two of them."""
    return [one for line in table.strip().splitlines() for one in re.split(r"(?<![| ])\|(?![| ])", line) if one]


@pytest.mark.parametrize("command", lines_of(RUN))
def test_this_runs_the_command(command):
    assert runs(command, ["pytest"])


@pytest.mark.parametrize("command", lines_of(NOT_RUN))
def test_this_does_not_run_the_command(command):
    assert not runs(command, ["pytest"])


@pytest.mark.parametrize(
    ("command", "is_run"),
    [
        ("cat <<EOF\npytest\nEOF", False),
        ("cat <<'E F' > f\nx\nE F\nls", False),
        ("cat <<EOF > f\nx\nEOF\npytest", True),
        ("cat <<-EOF\n\tpytest\n\tEOF\npytest", True),
        ("cat <<A <<B\npytest\nA\npytest\nB", False),
        ("cat <<A <<B\nA\nB\npytest", True),
        ("cat <<EOF\npytest", False),
        ("cat <<< pytest", False),
        ("ls \\\n pytest", False),
        ("ls\npytest", True),
    ],
)
def test_here_documents_and_lines(command, is_run):
    assert runs(command, ["pytest"]) is is_run


@pytest.mark.parametrize(
    ("command", "ran", "is_run"),
    [
        ("npm test", "npm test", True),
        ("npm --silent test -- -u", "npm test", True),
        ("npm run test", "npm test", False),
        ("npm -s run test", "npm run test", True),
        ("python -B -m pytest a", "python -m pytest", True),
        ("python x.py -m pytest", "python -m pytest", False),
        ("make -j4 test", "make test", True),
        ("make test-all", "make test", False),
        ("make", "make test", False),
        ("timeout 5 make", "timeout 5 make", True),
        ("./check.sh --fast", "./check.sh", True),
        ("check.sh", "./check.sh", False),
    ],
)
def test_a_command_of_several_words(command, ran, is_run):
    assert runs(command, ran.split()) is is_run


def test_a_command_that_is_too_long_to_take_apart_counts_if_it_names_the_program():
    long = "echo " + "x" * MAX_COMMAND_CHARS
    assert not runs(long, ["pytest"])
    assert runs(f"{long} pytest", ["pytest"])


@given(st.text("pytest ;&|<>(){}'\"\\#$\n=-\t", max_size=60))
def test_any_line_is_taken_apart(line):
    runs(line, ["pytest"])


# ---- generated sessions, whose labels are known ------------------------------


def test_generated_sessions_are_decided_as_labelled(report):
    """Sessions of edits, runs and other commands. The label is kept while the session is made, oldest first."""
    random, blocks = Random(20261122), 0
    files = {"python": ["a.py", "src/b.py"], "web": ["web/a.js", "web/x/y.css"], "none": ["README.md", "a.txt"]}
    checks = {"python": ["pytest -q", "cd src && pytest", "A=1 .venv/bin/pytest"], "web": ["npm test", "npm -s test"]}
    for number in range(1000):
        history, unchecked = [], set()
        for step in range(random.randrange(12)):
            kind = random.choice(list(files))
            if random.random() < 0.5:
                history.append(Edit(random.choice(files[kind]), f"{number}-{step}"))
                unchecked |= {kind} - {"none"}
            else:
                history.append(random.choice([*checks.get(kind, ()), "echo pytest && echo npm test", "ls -la"]))
                unchecked -= {kind} if history[-1] in checks.get(kind, ()) else set()
        verdict = decide(Facts([PYTHON, WEB], reversed(history)))
        assert (verdict.outcome == "block") == bool(unchecked), history
        assert len(verdict.change or ()) == len(unchecked)
        blocks += bool(unchecked)
    assert 200 < blocks < 800
    report(f"gate: 1,000 generated stops decided as labelled, {blocks} of them blocked")
