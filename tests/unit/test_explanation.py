"""The marks of `tailhook explain` in a text, and why each counts or not."""

import re
from pathlib import Path

import pytest

from tailhook.machines import memory
from tailhook.pictures.explanation import CODE_WORDS, explain_text
from tailhook.pictures.explanation_lines import MAX_EXPLAINED_CHARS, cut_lines, hidden_part, sum_up
from tailhook.pictures.explanation_text import draw_explanation

DONE = "<loop-done>COMPLETE</loop-done>"
STUCK = "<loop-done>STUCK</loop-done>"


def marks(text, role="assistant", excluded="", tuned=False):
    """Return the marks of a text as (the text of each, its kind, its name, whether it counts, why)."""
    found = explain_text(text, role, excluded, tuned)
    return [(text[mark.start : mark.end], *mark[2:]) for mark in found.marks]


def whys(text, **options):
    """Return the reasons of the signals in a text."""
    return [why for _, kind, _, _, why in marks(text, **options) if kind == "signal"]


# ---- signals -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (DONE, "alone on its line, outside of code"),
        (f"> - {DONE}  ", "alone on its line, outside of code"),
        (f"I write {DONE} later", "not alone on its line"),
        (f"# {DONE}", "not alone on its line"),
        (f"```\n{DONE}\n```", "in a fenced block"),
        (f"```\n{DONE}", "in a fenced block"),
        (f"text\n\n    {DONE}", "in an indented block"),
        (f"`{DONE}`", "in a code span, not alone on its line"),
        (f"<!--\n{DONE}\n-->", "in an HTML comment"),
        (f"<pre>\n{DONE}\n</pre>", "in raw HTML"),
    ],
)
def test_a_signal_has_the_reason_why_it_counts_or_not(text, why):
    assert whys(text) == [why]


def test_the_last_signal_that_counts_decides():
    found = explain_text(f"{DONE}\n\n{STUCK}\n\n`{DONE}`", "assistant")
    assert [(mark.counts, mark.why) for mark in found.marks] == [
        (False, "a later signal decides"),
        (True, "alone on its line, outside of code"),
        (False, "in a code span, not alone on its line"),
    ]
    assert found.ends == ("STUCK", ("loop", "issue"))


def test_a_signal_of_a_person_does_not_count():
    assert whys(DONE, role="user") == ["only the agent's own words end a loop"]


def test_nothing_counts_in_a_message_that_is_excluded():
    found = explain_text(f"We decided.\n\n{DONE}", "assistant", "a sub-agent's message")
    assert [(mark.counts, mark.why) for mark in found.marks] == [
        (False, "a sub-agent's message"),
        (False, "a sub-agent's message"),
    ]
    assert (found.ends, found.shares) == (None, {})


# ---- keywords ----------------------------------------------------------------


def test_a_keyword_with_a_booster_counts_more():
    text = "We chose A.\nIt is because of B.\n"
    assert marks(text) == [
        ("chose", "keyword", "DECISION", True, '+0.5, with "because" near it'),
        ("because", "booster", "DECISION", True, "a keyword near it counts more"),
        ("because", "booster", "TECH_DEBT", False, "no keyword is near it"),
    ]
    assert explain_text(text, "assistant").shares == {"DECISION": 0.5}


def test_two_lines_with_and_three_without_a_booster_count():
    near = "We chose A over B.\n"
    text = near * 3 + "\n\n\n" + "We picked C.\n" * 3
    found = [(word, counts, why) for word, kind, _, counts, why in marks(text) if kind == "keyword"]
    assert found == [
        ("chose", True, '+0.5, with "over" near it'),
        ("chose", True, '+0.5, with "over" near it'),
        ("chose", True, "+0.3, 2 with a booster count already"),
        ("picked", True, "+0.3, no booster is near it"),
        ("picked", True, "+0.3, no booster is near it"),
        ("picked", False, "3 without a booster count already"),
    ]
    assert explain_text(text, "assistant").shares == {"DECISION": pytest.approx(1.9)}


@pytest.mark.parametrize(
    ("text", "why", "tuned"),
    [
        ("An error and an exception", "another keyword in its line counts", False),
        ("So `decided` it is", "in a code span", False),
        ("always\nuse it", "it goes over a line end", False),
        ("We have not decided", '"not" takes it back', True),
    ],
)
def test_a_keyword_has_the_reason_why_it_does_not_count(text, why, tuned):
    assert [(kind, reason) for _, kind, _, counts, reason in marks(text, tuned=tuned) if not counts][-1] == (
        "keyword",
        why,
    )


def test_places_are_those_of_the_text_behind_code_and_wide_characters():
    text = "日本 `x` 🎉 decided\n```\ncode\n```\nfailed"
    assert [mark[0] for mark in marks(text)] == ["decided", "failed"]


def test_what_it_comes_to_is_one_sentence_about_signals_and_one_about_scores():
    assert sum_up(explain_text(f"We decided.\n\n{DONE}", "assistant"), "assistant", "") == [
        "Signal COMPLETE would end a loop (mode loop or issue).",
        "This message adds DECISION +0.3 of 1.9 to the scores of the memory machine.",
    ]
    (first, _) = sum_up(explain_text(f"a {DONE}", "assistant"), "assistant", "")
    assert first == "1 signal, which does not count: this message would not end a loop."
    assert sum_up(explain_text(DONE, "user"), "user", "") == [
        "Only the agent's own words can end a loop.",
        "This message adds nothing to the scores of the memory machine.",
    ]
    assert sum_up(explain_text("a", "assistant"), "assistant", "a sub-agent's message") == [
        "No signal: this message would not end a loop.",
        "Nothing in this message counts: a sub-agent's message.",
    ]


# ---- lines -------------------------------------------------------------------


def test_lines_end_as_the_code_map_has_it():
    text = "a\r\nb\rc\x0bd\n\ne"
    found = [text[line.start : line.end] for line in cut_lines(explain_text(text, "assistant"))]
    assert found == ["a", "b", "c\x0bd", "", "e"]


def test_the_runs_of_a_line_cover_it():
    text = f"Run `make {DONE}` and `decided`."
    (line,) = cut_lines(explain_text(text, "assistant"))
    assert "".join(text[run.start : run.end] for run in line.runs) == text
    assert [text[run.start : run.end] for run in line.runs if run.is_code] == ["`make ", DONE, "`", "`", "decided", "`"]
    assert [run.mark.kind for run in line.runs if run.mark] == ["signal", "keyword"]


def test_a_huge_text_is_shown_in_part():
    found = explain_text("a line of words\n" * 100_000, "assistant")
    assert sum(line.end - line.start + 1 for line in cut_lines(found)) <= MAX_EXPLAINED_CHARS + 1
    assert hidden_part(found) == f"Not shown: {1_600_000 - MAX_EXPLAINED_CHARS:,} more characters."


def test_keywords_are_marked_as_far_as_the_memory_machine_scores_a_text():
    text = "é\n" * (memory.MAX_TEXT_BYTES // 3) + "We decided.\n"
    assert marks(text) == []
    assert [mark[0] for mark in marks(text[20:])] == ["decided"]


def draw(text, width=60):
    return list(draw_explanation(explain_text(text, "assistant"), width, lambda words, style: words))


def test_a_mark_is_under_its_words_and_its_note_beside_it():
    assert draw("We decided.\n\n    code") == [
        "1 │ We decided.",
        "  │    ~~~~~~~ ✓ DECISION +0.3, no booster is near it",
        "2 │",
        "3 ┊     code",
    ]


def test_an_empty_line_in_code_is_code():
    assert [row.split()[1] for row in draw("```\na\n\nb\n```\n\nc\n\n    d\n\n    e")] == [*"┊┊┊┊┊│││┊┊┊"]


def test_a_mark_is_under_wide_characters_and_escapes():
    assert draw("日本\x1b\tdecided")[:2] == [
        "1 │ 日本\\x1b    decided",
        "  │             ~~~~~~~ ✓ DECISION +0.3, no booster is near",
    ]


def test_a_long_line_is_broken_at_blanks_and_its_marks_with_it():
    rows = draw(f"{'word ' * 9}{DONE} end", 50)
    assert max(map(len, rows)) <= 50
    assert [row[4:] for row in rows if "^" in row] == [f"{'':14}{'^' * 31}"] or any("^" * 31 in row for row in rows)


def test_every_kind_of_code_has_a_name_and_words():
    core = (Path(__file__).parents[2] / "ext" / "markdown" / "code_map.pxi").read_text(encoding="utf-8")
    kinds = core.partition("cdef enum:")[2].partition("MD_PROSE")[0].split()
    named = dict(re.findall(r'if kind == (MD_\w+):\n +return "(\w+)"', core))
    assert list(named) == kinds
    assert sorted(named.values()) == sorted(CODE_WORDS)
