"""The rules of the gate machine and of a loop's checks: their patterns of files."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import in_one_test
from support.steps import counted_lines

from tailhook.machines import rules as machine_rules
from tailhook.machines.gate import Facts, check_config, decide, parse_rules
from tailhook.machines.path_patterns import expand_braces, matches_path
from tailhook.machines.rules import MAX_COMPARED, MAX_PATTERNS, MAX_PATTERNS_COST, Edit, Rule
from tailhook.machines.shell_words import Budget

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
    ("././src/*.py", "src/a.py", True),
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
    assert expand_braces("{a,b}{c,d}", 9) == ["ac", "ad", "bc", "bd"]
    assert len(expand_braces("{,x}" * 200, 9)) == 9
    assert len(expand_braces("{" * 500 + ",}" * 500, 9)) <= 9


@given(st.text("ab*?/[]-!{},.", max_size=12), st.text("ab/-].", min_size=1, max_size=12))
def test_the_quick_look_at_a_path_changes_nothing(pattern, path):
    rule = {"edited": [pattern], "ran": "x"}
    for one in parse_rules([rule]):
        texts = [text for part in one.patterns() for text in (part.text, *filter(None, [part.below]))]
        slow = any(matches_path(text, path, Budget(MAX_COMPARED)) for text in texts)
        assert one.concerns(Edit(path, "e")) is slow


@given(st.text("ab*/", min_size=1, max_size=8), st.text("ab/", min_size=1, max_size=8))
def test_an_edit_without_a_pattern_s_mark_does_not_match(pattern, path):
    for rule in parse_rules([{"edited": [pattern], "ran": "x"}]):
        marks = [part.mark() for part in rule.patterns()]
        for whole in (path, f"/root/{path}"):
            given_text = json.dumps({"file_path": whole}).encode()
            assert any(mark in given_text for mark in marks) or not rule.concerns(Edit(whole, "e", [path]))


@pytest.mark.parametrize(
    ("pattern", "mark"),
    [("src", b"src"), ("a/b", b"b"), ("*.py", b'.py"'), ("docs/**", b"docs"), ("d*/**", b'"'), ("a/*", b'"')],
)
def test_the_mark_of_a_pattern_is_the_text_that_each_matching_path_has(pattern, mark):
    (found,) = Rule([pattern], "x").patterns()
    assert found.mark() == mark


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
    assert counted_lines(lambda: decide(Facts(parse_rules(rules), edits)), machine_rules) < 250_000


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
    found = expand_braces(pattern, 101)
    assert found == wanted or (len(wanted) > 100 and len(found) == 101)


@given(st.text("ab*?/", max_size=12), st.text("ab/", max_size=12))
def test_a_pattern_never_fails_and_a_path_matches_itself(pattern, path):
    budget = Budget(MAX_COMPARED)
    matches_path(pattern, path, budget)
    assert matches_path(path, path, budget) or "/" not in path.strip("/") or path.startswith("/")
