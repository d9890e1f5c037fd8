"""The gate machine: its page row by row, its rules, and its patterns of files."""

from pathlib import Path
from random import Random

import pytest
from support.cases import in_one_test

from tailhook.machines.gate import Facts, block_id, check_config, decide, parse_rules
from tailhook.machines.rules import MAX_NAMED, MAX_RULES, Edit, Rule, expand_pattern

PYTHON = Rule(["*.py"], "pytest")
WEB = Rule(["web/**"], "npm test")
EDIT = Edit("src/app.py", "e1")

# number of the page's row: (facts, outcome, part of why, the change)
ROWS = {
    1: (Facts([], [EDIT]), "allow", "no rules", None),
    2: (Facts([PYTHON], [EDIT], paused=True), "allow", "background task", None),
    3: (Facts([PYTHON], [EDIT], stop_hook_active=True), "allow", "stop_hook_active", None),
    5: (Facts([PYTHON], ["pytest -q", EDIT]), "allow", "no unchecked edit was found", None),
    6: (Facts([PYTHON], [EDIT], blocked={block_id(EDIT, PYTHON)}), "allow", "blocked for these edits", None),
    7: (Facts([PYTHON], [EDIT, "pytest"]), "block", "1 command not run since an edit", [block_id(EDIT, PYTHON)]),
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


HEAD = (
    "Files were edited and not checked since. Before you stop, run each of these commands, and fix the problems that"
    " it reports. They are in gate.rules, in this project's .claude/tailhook.json or in the user's own configuration."
    " Leave out a command that does not check files:\n"
)


def test_the_reason_names_the_command_and_the_file():
    verdict = decide(Facts([PYTHON, WEB], [Edit("web/a.js", "e2"), EDIT]))
    assert verdict.why == "2 commands not run since an edit"
    assert verdict.reason == (
        f"{HEAD}- `npm test`: it has not run successfully since web/a.js was edited.\n"
        "- `pytest`: it has not run successfully since src/app.py was edited."
    )


@in_one_test(
    ("line", "shown", "why", "advice"),
    [
        ("pytest -q a; echo", None, "its exit code is that of `echo`", ""),
        ("pytest -q | tail -3", None, "its exit code is that of `tail`, behind a pipe", "pipe"),
        ("pytest a; pytest b", None, "its exit code is that of the last `pytest` in it", ""),
        ("cd a\npytest\n\techo done\n", r"cd a\npytest\n echo done", "its exit code is that of `echo`", ""),
        ("pytest || true", None, "its exit code is that of `true`", ""),
        ("pytest &", None, "it runs in the background", ""),
        ("! pytest", None, "`!` inverts its exit code", ""),
        ("if pytest; then ls; fi", None, "`if` takes its exit code", ""),
        ("while pytest; do ls; done", None, "`while` takes its exit code", ""),
        ("[ -f a ] || pytest", None, "the line can succeed without it", ""),
        ("pytest && git diff", None,
         "the host reports no error if a line that ends with `git diff` exits with 1", ""),
        (f"pytest {'x' * 400}; ls", f"pytest {'x' * 293}…", "its exit code is that of `ls`", ""),
    ],
)  # fmt: skip
def test_the_reason_names_why_a_run_does_not_count_and_what_to_run(line, shown, why, advice):
    assert decide(Facts([PYTHON], ["ls", line, EDIT])).reason == (
        f"{HEAD}- `pytest`: it has not run successfully since src/app.py was edited. `{shown or line}` does not count:"
        f" {why}. Run `pytest` in a tool call of its own{', or with `set -o pipefail;` in front' if advice else ''}."
    )


def test_the_newest_run_that_does_not_count_is_the_one_that_is_shown():
    assert "`pytest | tail` does not" in decide(Facts([PYTHON], ["pytest | tail", "pytest; ls", EDIT])).reason
    assert "does not count" not in decide(Facts([PYTHON], [EDIT, "pytest | tail"])).reason


def test_a_run_that_does_not_count_is_asked_for_once():
    facts = Facts([PYTHON], ["pytest | tail", EDIT])
    assert decide(Facts([PYTHON], ["pytest | tail", EDIT], stop_hook_active=True)).outcome == "allow"
    assert decide(Facts([PYTHON], ["pytest | tail", EDIT], blocked=set(decide(facts).change))).outcome == "allow"


def test_an_older_run_that_counts_is_enough():
    assert decide(Facts([PYTHON], ["pytest | tail", "pytest", EDIT])).outcome == "allow"


def test_a_reason_stays_short_and_on_its_lines():
    rules = [Rule([f"f{number}*"], f"check{number}") for number in range(50)]
    edits = [Edit(f"f{number}\n\x1b[31m" + "x" * 5000, f"e{number}") for number in range(50)]
    runs = [f"check{number} {'x' * 1000}\n\x1b | {'y' * 1000}" for number in range(50)]
    reason = decide(Facts(rules, [*runs, *edits])).reason
    assert len(reason) < 10_000
    assert reason.count("\n") == MAX_NAMED + 1
    assert reason.endswith("- and 45 more, which a later stop names")
    assert "\x1b" not in reason


def test_the_reason_names_the_file_of_its_commands():
    assert ".claude/tailhook.json" in decide(Facts([PYTHON], [EDIT])).reason


@pytest.mark.parametrize("is_one_file", [True, False])
def test_only_the_rules_that_were_named_count_as_blocked(is_one_file):
    """Of seven rules, the first block names five, the second one names the others."""
    rules = [Rule(["*" if is_one_file else f"f{number}"], f"check{number}") for number in range(7)]
    edits = [EDIT] if is_one_file else [Edit(f"f{number}", f"e{number}") for number in range(7)]
    first = decide(Facts(rules, edits))
    assert len(first.change) == len(set(first.change)) == MAX_NAMED
    second = decide(Facts(rules, edits, blocked=set(first.change)))
    assert "`check5`" in second.reason
    assert "`check6`" in second.reason
    assert len({*first.change, *second.change}) == 7
    assert decide(Facts(rules, edits, blocked={*first.change, *second.change})).outcome == "allow"


def test_a_rule_that_was_added_after_a_block_is_blocked_for():
    blocked = set(decide(Facts([PYTHON], [EDIT])).change)
    assert "`ruff`" in decide(Facts([PYTHON, Rule(["*.py"], "ruff")], [EDIT], blocked=blocked)).reason


def test_what_is_kept_of_a_block_is_short():
    (kept,) = decide(Facts([Rule(["*.py"], "x" * 200)], [Edit("a.py", "e" * 5000)])).change
    assert len(kept) == 16


def test_an_edit_whose_id_an_older_version_kept_is_not_blocked_for_again():
    assert decide(Facts([PYTHON, Rule(["*.py"], "ruff")], [EDIT], blocked={"e1"})).outcome == "allow"


def test_a_command_is_shown_as_it_is_written():
    assert "`pytest -k 'a b'`" in decide(Facts([Rule(["*.py"], " pytest -k 'a b' ")], [EDIT])).reason


def test_no_edit_needs_no_run():
    assert decide(Facts([PYTHON], ["ls", Edit("README.md", "e")])).outcome == "allow"


def test_a_newer_edit_is_blocked_for_again():
    blocked = {block_id(EDIT, PYTHON)}
    newer = Edit("b.py", "e2")
    assert decide(Facts([PYTHON], [newer, EDIT], blocked=blocked)).change == [block_id(newer, PYTHON)]


def test_the_transcript_is_read_no_farther_than_needed():
    def happened():
        yield EDIT
        raise AssertionError("read on")

    assert decide(Facts([PYTHON], happened())).outcome == "block"


INVALID = [
    ({}, '"edited" is not a list'),
    ({"edited": ["*.py"]}, '"ran" is not a command'),
    ({"ran": "x"}, '"edited" is not a list'),
    ({"edited": "*.py", "ran": "x"}, '"edited" is not a list'),
    ({"edited": [], "ran": "x"}, '"edited" does not hold'),
    ({"edited": [5, ""], "ran": "x"}, '"edited" does not hold'),
    ({"edited": ["{,x}" * 9], "ran": "x"}, '"edited" does not hold'),
    *(({"edited": ["*.py"], "ran": ran}, '"ran" is not a command') for ran in ("", " ", 5, None, ["x"])),
    ({"edited": ["*.py"], "ran": "npm\u00a0test"}, "the blank '\\xa0', which no shell takes for a space"),
    ({"edited": ["*.py"], "ran": "x" * 201}, "longer than 200"),
    ({"edited": ["*.py"], "ran": "a\nb"}, "more than one line"),
    ({"edited": ["*.py"], "ran": "curl x | sh"}, "not one simple command"),
    ({"edited": ["*.py"], "ran": "a `b`"}, "not one simple command"),
]


@in_one_test(("value", "why"), INVALID)
def test_a_rule_that_is_not_valid_is_left_out_and_reported(value, why):
    (rule,) = parse_rules([value, {"edited": ["*.py", 5], "ran": " npm  test "}])
    assert (rule.texts, rule.ran) == (["*.py"], ["npm", "test"])
    (fault,) = check_config({"rules": [{"edited": ["*.py"], "ran": "x"}, value]})
    assert fault.startswith("rule 2 of gate.rules is not valid: ")
    assert why in fault


def test_what_is_not_an_object_and_too_many_rules_are_reported():
    rule = {"edited": ["*.py"], "ran": "x"}
    assert list(check_config({"rules": [rule, 5]})) == ["rule 2 of gate.rules is not valid: it is not an object"]
    assert len(parse_rules([rule] * (MAX_RULES + 1))) == MAX_RULES
    assert "only the first 50 count" in next(check_config({"rules": [rule] * (MAX_RULES + 1)}))
    assert list(check_config({"rules": [rule]})) == list(check_config({})) == list(check_config({"rules": 5})) == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("!a.py", "exclude"),
        ("~/a", "absolute"),
        ("a\\b", "backslash"),
        ("a/../b", ".."),
        ("../a", ".."),
        ("a//b", '""'),
        ("", "empty"),
        ("a" * 1001, "longer"),
        (5, "not a text"),
    ],
)
def test_a_pattern_that_cannot_match_is_reported(pattern, why):
    (fault,) = check_config({"rules": [{"edited": ["*.py", pattern], "ran": "x"}]})
    assert fault.startswith("rule 1 of gate.rules: the pattern ")
    assert why in fault
    assert expand_pattern(pattern) == [] if isinstance(pattern, str) else True


# ---- generated sessions, whose labels are known ------------------------------


def test_generated_sessions_are_decided_as_labelled(report):
    """Sessions of edits, runs and other commands, oldest first. Each step updates the label."""
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
