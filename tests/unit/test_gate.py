"""The gate machine: its page row by row, its rules, and its patterns of files."""

import itertools
import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import in_one_test
from support.steps import counted_lines

from tailhook.machines import gate
from tailhook.machines.gate import (
    MAX_NAMED,
    MAX_PATTERNS,
    MAX_PATTERNS_COST,
    MAX_RULES,
    Edit,
    Facts,
    Rule,
    block_id,
    check_config,
    decide,
    expand_braces,
    expand_pattern,
    matches_path,
    parse_rules,
)

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
    assert decide(Facts([PYTHON, WEB], [Edit("web/a.js", "e2"), EDIT])).reason == (
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
        ("pytest &", None, "the line does not wait for it", ""),
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
    ({"edited": ["*.py"], "ran": "x" * 201}, "longer than 200"),
    ({"edited": ["*.py"], "ran": "a\nb"}, "more than one line"),
    ({"edited": ["*.py"], "ran": "curl x | sh"}, "not one simple command"),
    ({"edited": ["*.py"], "ran": "a `b`"}, "not one simple command"),
]


@in_one_test(("value", "why"), INVALID)
def test_a_rule_that_is_not_valid_is_left_out_and_reported(value, why):
    (rule,) = parse_rules([value, {"edited": ["*.py", 5], "ran": " npm  test "}])
    assert ([pattern.text for pattern in rule.patterns], rule.ran) == (["*.py"], ["npm", "test"])
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
    ("[ab].py", "a.py", True),
    ("[ab].py", "c.py", False),
    ("[!ab].py", "a.py", False),
    ("[^ab].py", "c.py", True),
    ("[a-c]*.py", "bx.py", True),
    ("[a-c].py", "d.py", False),
    ("[]a].py", "].py", True),
    ("[!]a].py", "b.py", True),
    ("[!]a].py", "].py", False),
    ("[!]a].py", "a.py", False),
    ("[ab.py", "[ab.py", True),
    ("*[0-9]", "a1b2", True),
    ("a[-]b", "a-b", True),
    ("./src/*.py", "src/a.py", True),
    ("./a.py", "a.py", True),
    ("./a.py", "src/a.py", False),
    ("docs/", "docs/a/b.md", True),
    ("docs/", "other/docs/a", False),
    ("*.{ts,tsx}", "web/a.tsx", True),
    ("*.{ts,tsx}", "web/a.js", False),
    ("{src,web/{a,b}}/*.js", "web/b/x.js", True),
    ("{a}", "{a}", True),
    ("{a,b", "{a,b", True),
    ("/home/me/app/*.py", "/home/me/app/a.py", True),
    ("/home/me/app/*.py", "/home/me/other/a.py", False),
    ("/tmp/**", "/tmp/x/y", True),
    ("tmp/**", "/tmp/x/y", False),
    ("*.py", "/tmp/a.py", True),
    ("src", "src/a/b.py", True),
    ("src", "lib/src/a.py", True),
    ("src", "src", True),
    ("src", "src2/a.py", False),
    ("src", "a.src", False),
    ("src", "/home/src/a.py", False),
    ("./src", "src/a.py", True),
    ("./src", "lib/src/a.py", False),
    ("docs/api", "docs/api/a/b.md", True),
    ("docs/api", "docs/api.md", False),
    ("docs/api", "x/docs/api/b.md", False),
    ("**/api", "x/api/b.md", True),
    ("/home/me/app", "/home/me/app/a.py", True),
    ("/home/me/app", "/home/me/app2/a.py", False),
    ("*.d/conf", "a.d/conf/x", True),
    ("src/*", "src/a/b.py", False),
    ("*.py", "a.py/b.txt", False),
    ("{src,lib}", "lib/a.py", True),
]


@in_one_test(("pattern", "path", "matches"), PATHS)
def test_a_pattern_matches_these_paths(pattern, path, matches):
    assert Rule([pattern], "x").concerns(Edit(path, "e")) is matches


def test_each_path_that_leads_to_a_file_counts():
    assert Rule(["src/*.py"], "x").concerns(Edit("/link/src/a.py", "e", ["src/a.py"]))


def test_braces_are_expanded_up_to_a_limit():
    assert expand_braces("{a,b}{c,d}") == ["ac", "ad", "bc", "bd"]
    assert len(expand_braces("{,x}" * 200)) <= MAX_PATTERNS + 2
    assert len(expand_braces("{" * 500 + ",}" * 500)) <= MAX_PATTERNS + 2


@given(st.text("ab*?/[]-!{},.", max_size=12), st.text("ab/-].", min_size=1, max_size=12))
def test_the_quick_look_at_a_path_changes_nothing(pattern, path):
    rule = {"edited": [pattern], "ran": "x"}
    for one in parse_rules([rule]):
        texts = [text for part in one.patterns for text in (part.text, *filter(None, [part.below]))]
        slow = any(matches_path(text, path) for text in texts)
        assert one.concerns(Edit(path, "e")) is slow


@given(st.text("ab*/", min_size=1, max_size=8), st.text("ab/", min_size=1, max_size=8))
def test_an_edit_without_a_pattern_s_mark_does_not_match(pattern, path):
    for rule in parse_rules([{"edited": [pattern], "ran": "x"}]):
        marks = [part.mark() for part in rule.patterns]
        for whole in (path, f"/root/{path}"):
            given_text = json.dumps({"file_path": whole}).encode()
            assert any(mark in given_text for mark in marks) or not rule.concerns(Edit(whole, "e", [path]))


def test_a_hundred_names_of_files_are_a_hundred_patterns():
    (rule,) = parse_rules([{"edited": [f"f{number}" for number in range(MAX_PATTERNS)], "ran": "x"}])
    assert rule.concerns(Edit("f99/a", "e"))


HOSTILE = {
    "braces that are not closed": [["{" * 1000] * 100],
    "the same in each rule": [["{" * 1000] * 100] * 50,
    "braces of many words": [["{" + "," * 900 + "}"] * 100] * 50,
    "braces in braces": [["{," * 333 + "}" * 333]] * 50,
    "braces behind braces": [["{a,b}" * 200]] * 50,
    "stars": [["*a" * 400 + "b"] * 60] * 50,
    "folders": [["**/" * 300 + "f"] * 60] * 50,
    "patterns that begin alike": [[f"x{number}*" for number in range(100)]] * 50,
    "names of folders": [[f"x{number}" for number in range(100)]] * 50,
    "patterns that cannot match": [["!a"] * 100_000] * 50,
    "commands": [["*.x"]] * 50,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_patterns_of_a_clone_cost_no_more_than_their_bound(name):
    rules = [{"edited": edited, "ran": "a " * 99} for edited in HOSTILE[name]]
    edits = [Edit(f"src/x{number}/{'a' * 200}", str(number)) for number in range(1000)]
    assert counted_lines(lambda: decide(Facts(parse_rules(rules), edits)), gate) < 250_000


def test_of_rules_whose_patterns_are_too_long_the_first_ones_count_and_the_others_are_reported():
    rules = [{"edited": [f"{number}{'x' * 900}" for number in range(10)], "ran": "x"}] * 3
    assert len(parse_rules(rules)) == 1
    complaints = list(check_config({"rules": rules}))
    assert len(complaints) == 2
    assert f"longer than {MAX_PATTERNS_COST} characters" in complaints[0]


def test_each_edit_of_a_long_session_is_compared_with_usual_rules():
    edits = [Edit(f"src/f{number}.txt", str(number)) for number in range(1000)]
    rules = [Rule([f"a{number}/**", f"*.x{number}", f"lib{number}"], "x") for number in range(10)]
    assert decide(Facts(rules, [*edits, Edit("src/lib7/b", "e")])).outcome == "block"


@given(st.text("{},ab", max_size=40))
def test_braces_are_expanded_as_bash_does_it(pattern):
    """The words of braces in their order. Braces without a comma or without an end are letters."""

    def expanded(text):
        for start, letter in enumerate(text):
            depth, cuts = 0, [start]
            for at in range(start, len(text) if letter == "{" else start):
                depth += (text[at] == "{") - (text[at] == "}")
                if (text[at] == "," and depth == 1) or not depth:
                    cuts.append(at)
                if not depth:
                    break
            if len(cuts) > 2 and not depth:
                words = [text[a + 1 : b] for a, b in itertools.pairwise(cuts)]
                return [one for word in words for one in expanded(f"{text[:start]}{word}{text[cuts[-1] + 1 :]}")]
        return [text]

    wanted = expanded(pattern)
    found = expand_braces(pattern)
    assert found == wanted or (len(wanted) > MAX_PATTERNS and len(found) == MAX_PATTERNS + 1)


@given(st.text("ab*?/", max_size=12), st.text("ab/", max_size=12))
def test_a_pattern_never_fails_and_a_path_matches_itself(pattern, path):
    matches_path(pattern, path)
    assert matches_path(path, path) or "/" not in path.strip("/") or path.startswith("/")


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
