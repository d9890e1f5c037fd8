"""The memory machine as a pure function: scores, thresholds, messages, and quoted lines."""

from pathlib import Path

import pytest
from support.cases import in_one_test

from tailhook._core import score_lines
from tailhook.machines.keywords import KEYWORDS, NEGATION, tables
from tailhook.machines.memory import (
    CATEGORIES,
    FLAG_SECONDS,
    MAX_TEXT_BYTES,
    THRESHOLDS,
    Facts,
    MemorySettings,
    decide,
    invisible_letters,
    is_of_person,
    quote_line,
    score,
    share,
    summary_score,
)


def lines_of(*messages, tuned=False):
    return score_lines([message.encode("utf-8", "surrogatepass") for message in messages], tuned)


def scored(*messages, category="DECISION", tuned=False):
    lines = Facts(lines_of(*messages, tuned=tuned)).of(category)
    return round(score(lines), 4), [share(line) for line in lines]


PLAIN, BOOSTED = 0.3 / 1.9, 0.5 / 1.9

PAGE = Path(__file__).parents[2] / "docs/machines/memory.md"

# ---- scores ------------------------------------------------------------------


def test_words_of_the_host_and_no_words_are_not_a_persons():
    assert is_of_person(b"Go on.")
    assert not is_of_person(b"")
    assert not is_of_person(b"  [Request interrupted by user]")


def test_the_keywords_and_thresholds_are_those_of_the_machines_page():
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines()]
    table = {row[0]: row[1:] for row in rows if row and row[0] in THRESHOLDS}
    assert [*table] == [*THRESHOLDS]
    for category, (primaries, boosters, threshold) in table.items():
        assert float(threshold) == THRESHOLDS[category]
        if category in CATEGORIES:
            assert KEYWORDS[category] == (tuple(primaries.split(", ")), tuple(boosters.split(", ")))


def test_the_machines_page_names_the_bounds():
    page = PAGE.read_text()
    assert f"the newest {MAX_TEXT_BYTES >> 10} KiB of text are scored" in page
    assert f"less than {FLAG_SECONDS} s old" in page


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_keyword_scores_and_every_booster_boosts(category):
    primaries, boosters = KEYWORDS[category]
    for word in primaries:
        assert scored(f"So {word} it.", category=category) == (round(PLAIN, 4), [0.3])
        assert scored(f"So {word.upper()} it.", category=category) == (round(PLAIN, 4), [0.3])
        assert scored(f"So x{word} it.", category=category) == (0, [])
    for word in boosters:
        assert scored(f"So {primaries[0]} it.\n{word}", category=category)[1][:1] == [0.5]


@pytest.mark.parametrize(
    ("lines", "shares"),
    [
        (["decided"], [0.3]),
        (["decided"] * 3, [0.3, 0.3, 0.3]),
        (["decided"] * 5, [0.3, 0.3, 0.3]),
        (["decided because"] * 2, [0.5, 0.5]),
        (["decided because"] * 6, [0.5, 0.5, 0.3, 0.3, 0.3]),
        (["decided, chose and picked"], [0.3]),
        (["because"], []),
    ],
)
def test_a_category_has_two_boosted_lines_and_three_plain_ones(lines, shares):
    points = min(1, sum(shares) / 1.9)
    assert scored("\n".join(lines)) == (round(points, 4), shares)


@pytest.mark.parametrize(
    ("lines", "share"),
    [
        (["because", "x", "decided"], 0.5),
        (["because", "x", "x", "decided"], 0.3),
        (["decided", "because"], 0.5),
        (["decided", "x", "because"], 0.3),
        (["decided because"], 0.5),
        (["because", "", "decided"], 0.5),
        (["because", "`code`", "`more`", "x", "decided"], 0.5),
        (["because", "```", "code", "more", "```", "decided"], 0.5),
    ],
)
def test_a_booster_counts_two_lines_before_and_one_after(lines, share):
    assert scored("\n".join(lines))[1] == [share]


def test_windows_do_not_cross_messages():
    assert scored("because", "decided", "because")[1] == [0.3]


def test_a_whole_score_is_1():
    assert score(Facts(lines_of("\n".join(["decided because"] * 9))).of("DECISION")) == 1
    assert scored("\n".join(["decided because"] * 9))[0] == 1


def test_code_does_not_count():
    for text in (
        "`decided`",
        "```\ndecided\n```",
        "~~~\ndecided",
        "x\n\n    decided\n",
        "    decided",
        "``\ndecided ` it``",
    ):
        assert scored(text) == (0, [])
    assert scored("```\ncode", "decided")[1] == [0.3]


@pytest.mark.parametrize("code", ["```\nx\n```\n", "    x\n\n    y\n", "~~~\nx\n~~~\n"])
def test_a_block_of_code_is_not_a_line_and_the_blank_lines_around_it_are(code):
    assert scored(f"because\n\n{code}\nchose")[1] == [0.3]
    assert scored(f"{code}because\n\nchose\n\n{code}")[1] == [0.5]


def test_a_code_span_leaves_one_space():
    assert scored("went `x` with")[1] == [0.3]
    assert scored("decided`x`")[1] == [0.3]
    assert scored("de`x`cided") == (0, [])


def test_a_phrase_does_not_go_over_lines_but_over_any_blanks_of_one():
    assert scored("went\nwith") == (0, [])
    assert scored("went \t\u00a0with")[1] == [0.3]


@pytest.mark.parametrize(
    ("figures", "points"),
    [((0, 0, 0), 0), ((12, 4, 3), 1), ((4, 2, 5), 0.5), ((1, 1, 1), 0.17), ((2, 2, 16), 0.62)],
)
def test_the_summary_scores_what_happened(figures, points):
    assert summary_score(*figures) == pytest.approx(points)


# ---- the tuned profile -------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "We have not decided on it.",
        "We haven't chosen it.",
        "We haven\u2019t  chosen it.",
        "Nobody picked that.",
        "Should we go with it?",
        "I didn't choose it.",
    ],
)
def test_tuned_a_negation_takes_a_keyword_back(line):
    assert scored(line, tuned=True) == (0, [])


def test_tuned_a_negation_reaches_no_further_than_what_stands_right_behind_it():
    assert scored("It was not easy, but in the end we settled on it.", tuned=True)[1] == [0.3]


def test_tuned_several_keywords_of_a_line_count():
    assert scored("We settled on X, and ruled out Y.", tuned=True)[1] == [0.3, 0.3]
    assert scored("We settled on X, and ruled out Y.") == (0, [])


@pytest.mark.parametrize("line", ["rate limit", "Rate limits", "rate-limit", "rate  limited"])
def test_tuned_plurals_and_hyphens_are_known(line):
    assert scored(f"The {line} of the API.", category="CONSTRAINT", tuned=True)[1] == [0.3]


def test_the_tuned_table_holds_the_first_one():
    found = tables()
    assert set(found["seed"]) < set(found["tuned"])
    assert {number for number, _ in found["seed"]} == set(range(NEGATION))


# ---- the verdict -------------------------------------------------------------


def verdict(*messages, **facts):
    return decide(Facts(lines_of(*messages), **facts))


BOTH = "We chose A because of B.\nWe picked C over D."


def test_nothing_to_save_is_an_allow():
    assert verdict("Hello.").outcome == "allow"
    assert verdict("decided").outcome == "allow"


def test_the_message_has_a_line_per_category_that_passes_and_is_exactly_this():
    text = f"{BOTH}\n\n\nTODO because.\n\n\nTODO for now."
    assert verdict(text, tool_uses=12, tools=4, exchanges=3).reason == (
        "The following items should be saved as memories before stopping:\n"
        "- [DECISION] We chose A because of B. (score: 0.53)\n"
        "- [TECH_DEBT] TODO because. (score: 0.53)\n"
        "- [SESSION_SUMMARY] 12 tool uses, 4 tools, 3 exchanges (score: 1.00)\n"
        "\n"
        "Use the memory-management skill to save each item. After saving, you may stop."
    )


def test_the_best_line_is_boosted_and_the_earlier_of_several():
    text = "Plain: decided.\n\n\nFirst: chose, because.\n\n\nSecond: chose, because."
    assert "First: chose" in verdict(text).reason


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_category_passes_at_its_threshold(category):
    word = KEYWORDS[category][0][0]
    points = 0.3 / 1.9
    for threshold, passes in ((points, True), (points + 1e-9, False), (0.0, True)):
        found = verdict(word, thresholds={**THRESHOLDS, category: threshold})
        assert (found.outcome == "block") is passes


def test_the_summary_is_reported_once_and_not_of_nothing():
    assert verdict(tool_uses=20, tools=1).change is True
    assert verdict(tool_uses=20, tools=1, summarized=True).outcome == "allow"
    assert verdict(BOTH, tool_uses=20, tools=1, summarized=True).change is False
    assert verdict(thresholds={**THRESHOLDS, "SESSION_SUMMARY": 0.0}).outcome == "allow"


def test_the_summary_passes_at_its_threshold():
    assert verdict(tool_uses=10, tools=1, exchanges=0).change is True
    assert verdict(tool_uses=9, tools=1, exchanges=2).outcome == "allow"


def test_what_the_transcript_does_not_show_did_not_happen():
    for given, figures in (
        ({"tool_uses": 20}, "20 tool uses, 0 tools, 0 exchanges"),
        ({"tools": 10}, "0 tool uses, 10 tools, 0 exchanges"),
        ({"exchanges": 50}, "0 tool uses, 0 tools, 50 exchanges"),
    ):
        assert f"{figures} (score: 1.00)" in decide(Facts([], **given)).reason


def test_without_a_keyword_no_threshold_is_passed():
    assert verdict("Hello.", thresholds=dict.fromkeys(THRESHOLDS, 0.0)).outcome == "allow"


# ---- configuration -----------------------------------------------------------


def settings(**section):
    return MemorySettings({"triage": section})


@pytest.mark.parametrize("config", [None, [], 5, {}, {"triage": None}, {"triage": []}, {"triage": {"thresholds": 5}}])
def test_what_is_not_a_configuration_means_the_defaults(config):
    found = MemorySettings(config)
    assert (found.enabled, found.max_messages, found.thresholds) == (True, 50, THRESHOLDS)


@pytest.mark.parametrize(
    ("value", "enabled"),
    [
        (False, False),
        ("false", False),
        ("False ", False),
        (True, True),
        ("no", True),
        (0, True),
        (None, True),
        ([], True),
    ],
)
def test_false_and_its_name_switch_the_machine_off(value, enabled):
    assert settings(enabled=value).enabled is enabled


@pytest.mark.parametrize(
    ("value", "count"),
    [(50, 50), (1, 10), (-5, 10), (9999, 200), (120, 120), ("120", 50), (12.5, 50), (True, 50), (None, 50), ([60], 50)],
)
def test_max_messages_is_clamped_and_of_a_wrong_type_ignored(value, count):
    assert settings(max_messages=value).max_messages == count


@pytest.mark.parametrize(
    ("value", "threshold"),
    [
        (0.7, 0.7),
        (0, 0),
        (1, 1),
        (7, 1),
        (-1, 0),
        ("0.7", 0.4),
        (True, 0.4),
        (None, 0.4),
        (float("nan"), 0.4),
        ([], 0.4),
    ],
)
def test_a_threshold_is_clamped_and_of_a_wrong_type_ignored_one_by_one(value, threshold):
    found = settings(thresholds={"decision": value, "Runbook": 0.9, "nonsense": 0.1})
    assert found.thresholds == {**THRESHOLDS, "DECISION": threshold, "RUNBOOK": 0.9}


# ---- quoting -----------------------------------------------------------------


@in_one_test(
    ("line", "shown"),
    [
        ("plain", "plain"),
        ("a `b` c", "a b c"),
        ("a <b> & c", "a &lt;b&gt; &amp; c"),
        ("a\x1b[31mb\x00c\x07", "a[31mbc"),
        ("a\u200bb\u202ec\u2066d\ufeffe", "abcde"),
        ("a\U000e0041b\U000e0100c\ufe0fd\u3164e", "abcde"),
        ("a\tb\u00a0c\u2028d", "a b c d"),
        ("a\ud800b", "a\ufffdb"),
        ("  many   blanks  ", "many blanks"),
        ("x" * 200, "x" * 119 + "…"),
        ("&" * 200, "&amp;" * 119 + "…"),
        ("é" * 200, "é" * 119 + "…"),
    ],
)
def test_a_line_is_cleaned_cut_and_then_escaped(line, shown):
    assert quote_line(line) == shown


@in_one_test("letter", "\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef\U000e0041")
def test_fillers_selectors_and_tags_are_not_shown(letter):
    assert quote_line(f"a{letter}b") == "ab"


@in_one_test(
    "secret",
    [
        "sk-proj-aB3defghijklmnop",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_11AAAAAAA0123456789abc",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdef",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.abc",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1234",
    ],
)
@in_one_test("around", ["{}", "the key is {} now", '"{}",', "KEY={}", "({})."])
def test_what_looks_like_a_key_is_masked(secret, around):
    shown = quote_line("decided " + around.format(secret))
    assert secret not in shown
    assert secret[:12] not in shown
    assert "[secret]" in shown


@pytest.mark.parametrize("around", ["the key is {} now", "KEY={}", 'token: "{}",', "the secret ({})."])
def test_a_digest_is_masked_if_it_is_called_a_key_and_not_otherwise(around):
    digest = "3f786850e387550fdab836ed7e6dc881de23001b"
    assert digest not in quote_line(f"decided {around.format(digest)}")
    assert digest in quote_line(f"decided to go back to commit {digest}")


@in_one_test(
    ("line", "shown"),
    [
        ("password=hunter2", "password=[secret]"),
        ("DB_PASSWORD: hunter2", "DB_PASSWORD: [secret]"),
        ("token = abc", "token = [secret]"),
        ("api_key: 'abc',", "api_key: [secret]"),
        ("the password is hunter2 here", "the password is [secret] here"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [secret]"),
        ("at https://me:pw@example.org/x", "at [secret]"),
        ('passphrase="correct horse battery" was chosen', "passphrase=[secret] was chosen"),
        ("the passphrase is 'correct horse', chosen", "the passphrase is [secret] chosen"),
        ('secret: "abc" chosen', "secret: [secret] chosen"),
        ("chose mysql --password hunter2 -v", "chose mysql --password [secret] -v"),
        ("DB_PASS=hunter2 pwd=abc private_key=x", "DB_PASS=[secret] pwd=[secret] private_key=[secret]"),
    ],
)
def test_what_is_named_a_secret_is_masked(line, shown):
    assert quote_line(line) == shown


@pytest.mark.parametrize(
    "line",
    [
        "the token expired because the clock was wrong",
        "see src/tailhook/machines/memory.py and https://example.org/a:b",
        "a secret of good tests: short names",
        "internationalization_of_the_interface",
        "version 1.2.3, commit abc123",
        "the sk-prefix of SG.",
        "https://example.org/2026/11/21/a-page-with-a-long-name.html",
    ],
)
def test_ordinary_words_are_not_masked(line):
    assert "[secret]" not in quote_line(line).replace("tests: [secret]", "")


def test_a_quoted_line_leaves_out_every_variation_selector_and_nothing_beside_them():
    left_out = invisible_letters()
    for first, last in ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF)):
        assert {number in left_out for number in range(first, last + 1)} == {True}
        assert first - 1 not in left_out
        assert last + 1 not in left_out
