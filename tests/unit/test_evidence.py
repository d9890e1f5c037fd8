"""The evidence for the end of a loop: each sentence of its page, without a transcript."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.host import frame, looping
from support.own_loops import QuietTurn, own_loop

from tailhook.cli.checks import quote_list
from tailhook.machines import evidence, idle, ralph
from tailhook.machines.evidence import find_evidence, needs_evidence, parse_checks
from tailhook.machines.rules import MAX_NAMED, MAX_RULES, Edit
from tailhook.stores.frontmatter import FrontMatter

BEGAN = "2026-01-02T03:04:05Z"
CHECKED = frame(began=BEGAN, checks=["pytest"], session_id="mine")


def edit(path="src/app.py", clock="14:32"):
    made = Edit(path, "e1")
    made.clock = clock
    return made


def found(*happened, unread="", checks=("pytest",), files=None):
    """Return the evidence about what happened, newest first."""
    rules = parse_checks({"checks": [*checks], **({"check_files": files} if files else {})})
    return find_evidence(rules, happened, lambda: unread, lambda: "14:02")


def reason(*happened, **other):
    """Return the same, as the agent reads it."""
    return found(*happened, **other)[0]


def doubt(*happened, **other):
    """Return the same, as the person reads it."""
    return found(*happened, **other)[1]


# ---- what counts as evidence ---------------------------------------------------


@pytest.mark.parametrize(
    ("happened", "since"),
    [
        (["pytest -q", edit()], ""),
        ([edit(), "pytest"], "src/app.py was edited at 14:32"),
        (["pytest"], ""),
        ([], "the loop began at 14:02"),
        (["npm test", edit()], "src/app.py was edited at 14:32"),
        (["echo pytest"], "the loop began at 14:02"),
    ],
)
def test_a_check_must_succeed_after_the_loop_began_and_after_the_newest_edit(happened, since):
    missing = reason(*happened)
    assert (f"- `pytest`: it has not run successfully since {since}." in missing) is bool(since)
    assert bool(missing) is bool(since)


def test_every_check_is_needed_and_the_missing_ones_are_named():
    missing = reason("ruff check", edit(), checks=("pytest", "ruff check", "mypy"))
    assert re.findall(r"- `([a-z ]+)`", missing) == ["pytest", "mypy"]


def test_a_run_that_hides_its_exit_code_is_quoted_with_what_to_run_instead():
    for happened in (["pytest | tail", edit()], ["pytest | tail"]):
        missing = reason(*happened)
        assert "`pytest | tail` does not count: its exit code is that of `tail`, behind a pipe." in missing
        assert "Run `pytest` in a tool call of its own" in missing


@pytest.mark.parametrize(
    ("path", "files", "counts"),
    [
        ("notes.md", ["*.py"], True),
        ("app.py", ["*.py"], False),
        ("/elsewhere/app.py", ["*.py"], False),
        ("/elsewhere/notes.md", None, False),
        ("a/b/c", None, False),
        ("web/a.js", ["*.py", "web/**"], False),
    ],
)
def test_only_edits_of_the_named_files_count_and_without_names_those_of_any_file(path, files, counts):
    assert (reason(edit(path), "pytest", files=files) == "") is counts


def test_without_any_time_the_reason_names_the_edit_alone():
    assert "since src/app.py was edited." in reason(edit(clock=""))


def test_what_was_not_read_counts_and_the_person_learns_of_it():
    unread = found(unread="over 64 MiB")
    assert unread == ("", "over 64 MiB")
    assert doubt("pytest", unread="over 64 MiB") == ""
    assert reason(edit(), unread="over 64 MiB")


def test_a_line_of_300_characters_is_quoted_whole_and_of_a_longer_one_its_beginning():
    line = "pytest | tail ".ljust(300, "x")
    assert f"`{line}` does not count" in reason(line)
    assert f"`{line}…` does not count" in reason(f"{line}x")


def test_many_missing_checks_are_counted_and_a_few_named():
    missing = reason(checks=[f"pytest t{number}" for number in range(9)])
    assert missing.count("\n- `") == MAX_NAMED
    assert missing.endswith("- and 4 more, which a later stop names")
    assert "more, which" not in reason(checks=[f"pytest t{number}" for number in range(MAX_NAMED)])


# ---- which ends need it --------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "needed"),
    [("COMPLETE", True), ("NO_MORE_ISSUES", True), ("MAX_ITERATIONS", False), ("MAX_ISSUES", False), ("STUCK", False)],
)
def test_only_an_end_that_claims_success_needs_it(reason, needed):
    assert reason in {one for words in idle.SIGNALS.values() for one in words.values()}
    assert needs_evidence(CHECKED, reason) is needed
    assert not needs_evidence(frame(began=BEGAN), reason)


def test_done_claims_success():
    assert idle.SIGNALS["issue"]["<issue-complete>DONE</issue-complete>"] in evidence.PROVEN


# ---- the machines --------------------------------------------------------------


class Refusing(QuietTurn):
    """A quiet turn.  refuse_end: as of a turn."""

    def __init__(self, refuse_end):
        self.refuse_end = refuse_end


def stop(top, refusal=("", ""), said="<loop-done>COMPLETE</loop-done>"):
    """Return idle's verdict on a signal, and the arguments with which it asked about the end."""
    asked = []

    def refuse(frame, reason, signal):
        asked.append((frame, reason, signal))
        return refusal

    facts = idle.Facts("mine", signals=lambda: [said], own=own_loop(Refusing(refuse)))
    state = looping(top)
    return idle.decide(state, facts, idle.time_of(state["updated_at"]) + 60), asked


def test_a_refused_end_is_an_ordinary_iteration_with_the_reason_of_the_refusal():
    verdict, asked = stop(CHECKED, ("It did not count.", ""))
    assert verdict.outcome == "block"
    assert verdict.reason.startswith("[ITERATION 2/10] ")
    assert verdict.reason.endswith("\n\nIt did not count.")
    assert verdict.change["stack"][-1]["iter"] == 2
    assert asked == [(CHECKED, "COMPLETE", "signal")]
    assert verdict.why.endswith("the end did not count")


def test_an_end_that_counts_ends_the_loop_and_a_doubt_is_for_the_person():
    verdict, _ = stop(CHECKED, ("", " (its checks are unknown: it is not there)"))
    assert (verdict.outcome, verdict.ended) == ("allow", True)
    assert verdict.change["reason"] == "COMPLETE"
    assert verdict.why == "the loop ended: COMPLETE (its checks are unknown: it is not there)"
    assert verdict.change["why"] == "COMPLETE (its checks are unknown: it is not there)"


def test_at_the_limit_a_refused_end_is_an_end_by_the_limit():
    verdict, _ = stop({**CHECKED, "iter": 10}, ("It did not count.", ""))
    assert (verdict.outcome, verdict.change["reason"]) == ("allow", "MAX_ITERATIONS")


def test_the_checks_of_the_inner_loop_count_for_its_end_alone():
    state = looping(CHECKED, {**CHECKED, "id": "g", "checks": ["mypy"]})
    asked = []
    facts = idle.Facts(
        "mine",
        signals=lambda: ["<loop-done>COMPLETE</loop-done>"],
        own=own_loop(Refusing(lambda top, *_: asked.append(top["checks"]) or ("", ""))),
    )
    verdict = idle.decide(state, facts, idle.time_of(state["updated_at"]) + 60)
    assert [one["id"] for one in verdict.change["stack"]] == ["f"]
    assert asked == [["mypy"]]


def test_a_state_of_another_tool_is_ended_by_its_signal_alone():
    verdict, asked = stop({key: value for key, value in CHECKED.items() if key != "began"}, ("It did not count.", ""))
    assert verdict.change["reason"] == "COMPLETE"
    assert asked == []


def test_a_long_refusal_beside_a_long_goal_stays_within_what_hosts_show():
    facts = idle.Facts(
        "mine",
        signals=lambda: ["<loop-done>COMPLETE</loop-done>"],
        goal=lambda: "x" * 20_000,
        own=own_loop(Refusing(lambda *_: ("y" * 20_000, ""))),
    )
    state = looping(CHECKED)
    verdict = idle.decide(state, facts, idle.time_of(state["updated_at"]) + 60)
    assert "<loop-done>COMPLETE</loop-done>" in verdict.reason
    assert len(verdict.reason) < 10_000


def promise(refusal, **more):
    """Return ralph's verdict on a kept promise."""
    values = {"iteration": "1", "max_iterations": "5", "completion_promise": "GREEN", "began": BEGAN, **more}
    facts = ralph.Facts("mine", promises=lambda own_line: ["GREEN"], own=own_loop(Refusing(lambda *_: refusal)))
    return ralph.decide({key: value for key, value in values.items() if value}, "Work.", facts)


def test_a_refused_promise_is_an_ordinary_iteration_with_the_reason_of_the_refusal():
    verdict = promise(("It did not count.", ""))
    assert (verdict.outcome, verdict.change["iteration"]) == ("block", "2")
    assert verdict.reason.startswith("Work.")
    assert verdict.reason.endswith("\n\nIt did not count.")


@pytest.mark.parametrize("more", [{"began": None}, {"iteration": "5"}])
def test_a_promise_of_another_tools_loop_and_one_at_the_limit_end_it(more):
    verdict = promise(("It did not count.", ""), **more)
    assert (verdict.outcome, verdict.change) == ("allow", {})


def test_a_kept_promise_with_a_doubt_has_the_reason_complete():
    verdict = promise(("", " (its checks are unknown: it is not there)"))
    assert verdict.why.endswith("it is not there)")
    assert verdict.end == "COMPLETE"


# ---- the fields ----------------------------------------------------------------


@pytest.mark.parametrize(
    "checks", [None, "pytest", 5, [], {}, [5, None], ["pytest | tail"], ["a;b"], [""], ["\0"], ["x" * 300], "[", "5"]
)
def test_fields_that_cannot_be_read_hold_no_check(checks):
    assert parse_checks({"checks": checks}) == []


def test_patterns_that_cannot_match_leave_no_check():
    assert parse_checks({"checks": ["pytest"], "check_files": ["!x"]}) == []


def test_a_frame_has_no_more_checks_than_gate_has_rules():
    assert len(parse_checks({"checks": [f"t{number}" for number in range(MAX_RULES + 9)]})) == MAX_RULES


def test_many_checks_and_patterns_leave_room_in_a_briefing():
    fields = {"began": BEGAN, "checks": [f"pytest {'x' * 180}{n}" for n in range(50)]}
    lines = evidence.describe_checks(fields, {"COMPLETE": "COMPLETE"})
    assert sum(map(len, lines)) < 3000
    assert lines[-1] == "  and 40 more, which a stop without them names"
    listed = evidence.describe_checks({**fields, "checks": fields["checks"][:10]}, {"COMPLETE": "COMPLETE"})
    assert listed == lines[:-1]
    lines = evidence.describe_checks({**fields, "check_files": ["x" * 999] * 9}, {"COMPLETE": "COMPLETE"})
    assert sum(map(len, lines)) < 1000
    assert lines[0].count("x") == 499  # of 500 characters


def test_a_briefing_counts_its_commands():
    (one, _), (two, *_) = (
        evidence.describe_checks({"began": BEGAN, "checks": checks}, {"DONE": "COMPLETE"})
        for checks in (["pytest"], ["pytest", "ruff check"])
    )
    assert "only if this command has succeeded" in one
    assert "only if each of these commands has succeeded" in two


def test_a_briefing_has_checks_only_for_a_loop_of_tailhook_and_a_signal_of_success():
    fields = {"began": BEGAN, "checks": ["pytest"]}
    assert evidence.describe_checks(fields, {"DONE": "COMPLETE", "STUCK": "STUCK"})[0].startswith("DONE counts only")
    assert evidence.describe_checks(fields, {"STUCK": "STUCK"}) == []
    assert evidence.describe_checks({"checks": ["pytest"]}, {"DONE": "COMPLETE"}) == []


TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=4)


@given(TEXTS)
def test_lists_of_any_texts_survive_in_front_matter(texts):
    page = FrontMatter(f"---\nbegan: x\nchecks: {quote_list(texts)}\nlast: y\n---\nWork.")
    assert (page["last"], page.body) == ("y", "Work.")
    assert json.loads(page["checks"]) == evidence.listed_texts(page["checks"]) == texts
