"""The ralph machine as a pure function: every row of its page's order of decisions."""

import pytest
from support.cases import in_one_test
from support.own_loops import QuietTurn, own_loop

from tailhook._core import promises
from tailhook.machines.ralph import Facts, beginning_of, decide, normalize_space
from tailhook.machines.ralph_briefing import briefing, is_live

PROMPT = "Make the tests pass."


def state(**values):
    return {"active": "true", "iteration": "3", "max_iterations": "10", "completion_promise": "GREEN", **values}


def asked(said="", **facts):
    return Facts(promises=lambda own_line: promises(said, own_line), **facts)


def verdict(said="", prompt=PROMPT, facts=None, **values):
    return decide(state(**values), prompt, facts or asked(said))


# ---- the order of decisions --------------------------------------------------


def test_without_front_matter_the_loop_ends():
    found = decide(None, PROMPT, Facts())
    assert (found.outcome, found.ended) == ("allow", True)
    assert "front matter" in found.why


@in_one_test("key", ["iteration", "max_iterations"])
@in_one_test("value", ["", "ten", "-1", "1.5", "0x10", "1e3", "+1", "1_000", "\u0661", "true", "9" * 70])
def test_a_count_that_is_not_a_whole_number_ends_the_loop_and_its_line_is_reported(key, value):
    found = verdict(facts=asked(line=lambda name: {"iteration": 3, "max_iterations": 4}[name]), **{key: value})
    assert (found.outcome, found.ended) == ("allow", True)
    assert f'{key} is "{value}", not a whole number' in found.why
    assert f"(line {3 if key == 'iteration' else 4})" in found.why


def test_broken_counts_come_before_everything_else():
    assert verdict(iteration="x", active="false", session_id="other").ended


def test_absent_and_null_counts_are_0():
    found = verdict(iteration=None, max_iterations=None)
    assert (found.outcome, found.change) == ("block", {"iteration": "1"})
    assert decide({}, PROMPT, asked()).change == {"iteration": "1"}


def test_leading_zeros_are_decimal():
    assert verdict(iteration="08").change == {"iteration": "9"}
    assert verdict(iteration="09", max_iterations="0010").outcome == "block"


def test_a_count_may_be_larger_than_a_double_can_hold():
    found = verdict(iteration=str(2**53), max_iterations="1" + "0" * 40)
    assert (found.outcome, found.change) == ("block", {"iteration": str(2**53 + 1)})
    assert verdict(max_iterations="9" * 64).outcome == "block"


@pytest.mark.parametrize("value", ["false", "False", "FALSE"])
def test_a_loop_that_is_switched_off_is_left(value):
    found = verdict("<promise>GREEN</promise>", active=value)
    assert (found.outcome, found.change, found.ended) == ("allow", None, False)


@pytest.mark.parametrize("value", ["true", None, "yes", ""])
def test_any_other_value_of_active_runs(value):
    assert verdict(active=value).outcome == "block"


@pytest.mark.parametrize(
    ("owner", "session", "acts"),
    [
        (None, "mine", True),
        (None, "", True),
        ("mine", "mine", True),
        ("claim", "mine", True),
        ("other", "mine", False),
        ("", "", False),
        ("", "mine", False),
        ("mine", "", False),
        ("claim", "", False),
    ],
)
def test_a_loop_acts_on_its_own_session_alone(owner, session, acts):
    found = verdict(facts=asked(session_id=session), session_id=owner)
    assert found.outcome == ("block" if acts else "allow")
    assert acts or (found.change, found.ended) == (None, False)


def test_a_loop_without_a_session_can_be_refused():
    found = verdict(facts=asked(session_id="mine", unbound_acts=False))
    assert (found.outcome, found.change, found.ended) == ("allow", None, False)


def test_a_claim_becomes_the_session():
    assert verdict(facts=asked(session_id="mine"), session_id="claim").change == {
        "iteration": "4",
        "session_id": "mine",
    }


def test_at_the_limit_the_loop_ends():
    for count in ("10", "11"):
        found = verdict(iteration=count)
        assert (found.outcome, found.ended) == ("allow", True)
        assert "limit of 10" in found.why
    assert verdict(iteration="9").outcome == "block"
    assert verdict(iteration="1", max_iterations="1").ended


def test_a_limit_of_0_means_no_limit():
    assert verdict(iteration="123456", max_iterations="0").outcome == "block"


def test_a_promise_kept_in_the_last_iteration_of_a_loop_of_tailhook_is_kept():
    own = {"iteration": "10", "began": "2026-01-02T03:04:05Z"}
    facts = asked("<promise>GREEN</promise>", own=own_loop(QuietTurn()))
    found = verdict(facts=facts, **own)
    assert (found.end, found.ended) == ("COMPLETE", True)
    refused = verdict(facts=asked("<promise>GREEN</promise>", own=own_loop(RefusingTurn())), **own)
    assert (refused.end, refused.ended) == ("MAX_ITERATIONS", True)
    silent = verdict(facts=asked(own=own_loop(QuietTurn()), problem=lambda: "no transcript"), **own)
    assert (silent.end, silent.ended) == ("MAX_ITERATIONS", True)
    assert verdict(facts=asked(paused=True, own=own_loop(QuietTurn())), **own).ended is False


class RefusingTurn(QuietTurn):
    """A turn without the evidence for the end of a loop."""

    def refuse_end(self, fields, reason, signal):
        return "run the check", ""


def test_the_limit_is_before_a_problem_and_a_promise_after_it():
    facts = Facts(problem=lambda: "no transcript", promises=lambda own_line: ["GREEN"])
    assert "limit" in verdict(facts=facts, iteration="10").why
    assert "no transcript" in verdict(facts=facts).why


def test_a_paused_session_leaves_the_loop_but_claims_it():
    facts = Facts("mine", paused=True, problem=lambda: "no transcript")
    assert (verdict(facts=facts).outcome, verdict(facts=facts).change) == ("allow", None)
    assert verdict(facts=facts, session_id="claim").change == {"session_id": "mine"}
    assert verdict(facts=facts, iteration="10").ended


def test_without_the_agents_words_the_loop_ends_with_the_reason():
    found = verdict(facts=Facts(problem=lambda: "its transcript has no assistant text"))
    assert (found.outcome, found.ended) == ("allow", True)
    assert "no assistant text" in found.why


def test_an_empty_prompt_ends_the_loop():
    assert "prompt is empty" in verdict(prompt="").why
    assert "promise is kept" in verdict("<promise>GREEN</promise>", prompt="").why


def test_otherwise_the_prompt_is_fed_back():
    found = verdict("Still red.")
    assert (found.outcome, found.reason, found.change, found.ended) == ("block", PROMPT, {"iteration": "4"}, False)
    assert found.why == "iteration 4/10"
    assert "iteration 4 of 10" in found.message
    assert "<promise>GREEN</promise>" in found.message
    assert "only when it is true" in found.message


def test_without_a_promise_the_message_warns_that_the_loop_has_no_end_of_its_own():
    for value in (None, "", "  "):
        found = verdict("<promise></promise>", completion_promise=value, max_iterations="0")
        assert (found.outcome, found.why) == ("block", "iteration 4")
        assert found.message.endswith("No promise is set, so no text ends the loop.")
    limited = verdict(completion_promise=None)
    assert limited.message.endswith("No promise is set, so only the limit ends the loop.")
    began = {"completion_promise": None, "began": "2026-01-02T03:04:05Z"}
    for end in ("tokens", "minutes", "stuck_after"):
        assert verdict(**began, **{end: "4"}).message.endswith("No promise is set, so no text ends the loop.")
        assert verdict(completion_promise=None, **{end: "4"}).message == limited.message
    assert verdict(**began, stuck_after="0").message == limited.message


# ---- the promise -------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "<promise>GREEN</promise>",
        "All done: <promise>GREEN</promise>, as agreed.",
        "<promise>  GREEN\n</promise>",
        "<promise>RED</promise> no, <promise>GREEN</promise>",
        "<promise>GREEN</promise> or <promise>RED</promise>",
        "In words: <promise> is the tag. <promise>GREEN</promise>",
        "`<promise>RED</promise>` <promise>GREEN</promise>",
        "> - <promise>GREEN</promise>",
        "# <promise>GREEN</promise>",
    ],
)
def test_a_promise_in_prose_is_kept(said):
    assert verdict(said).ended


@in_one_test(
    "said",
    [
        "GREEN",
        "<promise>green</promise>",
        "<promise>GREEN!</promise>",
        "<promise>GR EEN</promise>",
        "<promise>GREEN",
        "GREEN</promise>",
        "</promise>GREEN<promise>",
        "<Promise>GREEN</Promise>",
        "`<promise>GREEN</promise>`",
        "```\n<promise>GREEN</promise>\n```",
        "~~~\n<promise>GREEN</promise>",
        "Text\n\n    <promise>GREEN</promise>\n",
        "<pre>\n<promise>GREEN</promise>\n</pre>",
        "<!-- <promise>GREEN</promise> -->",
        "`<promise>`GREEN</promise>",
        "<promise>GREEN`</promise>`",
    ],
)
def test_a_promise_in_code_or_without_its_tags_does_not_count(said):
    assert verdict(said).outcome == "block"


def test_white_space_is_normalize_space_on_both_sides():
    said = "<promise>\n ALL\u00a0TESTS\t\n GREEN </promise>"
    assert verdict(said, completion_promise="  ALL TESTS  GREEN ").ended


def test_the_words_between_the_tags_may_hold_code():
    assert verdict("<promise>`make test` passes</promise>", completion_promise="`make test` passes").ended


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("<promise>GREEN</promise>", True),
        ("Done.\n\n  > 1. <promise>GREEN</promise>  \nMore.", True),
        ("<promise>\nGREEN\n</promise>", True),
        ("Done: <promise>GREEN</promise>", False),
        ("<promise>GREEN</promise>.", False),
        ("# <promise>GREEN</promise>", False),
    ],
)
def test_a_promise_may_be_asked_for_on_its_own_line(said, kept):
    assert verdict(said, promise_own_line="true").ended is kept
    assert verdict(said, promise_own_line="false").ended


def test_folding_knows_unicode_spaces():
    assert normalize_space("\u2003a\u3000b\x1fc\n") == "a b c"


def test_what_is_not_needed_is_not_asked_for():
    def never(*_):
        raise AssertionError

    assert decide(state(active="false"), PROMPT, Facts(problem=never, promises=never)).outcome == "allow"
    assert verdict(facts=Facts(promises=never), completion_promise=None).outcome == "block"


# ---- what the agent reads ----------------------------------------------------


def test_a_briefing_names_the_iteration_the_promise_and_the_prompt():
    words = briefing(state(), PROMPT)
    for part in ("iteration 3 of 10", "<promise>GREEN</promise>", PROMPT):
        assert part in words
    assert len(briefing(state(), "x" * 20_000)) < 10_000
    assert "(cut)" in briefing(state(), "x" * 8001)
    assert "(cut)" not in briefing(state(), "x" * 8000)


def test_a_briefing_counts_from_0_and_names_no_limit_if_the_file_names_none():
    assert briefing({}, PROMPT).startswith("Ralph iteration 0. No promise")


def test_a_long_promise_is_shown_whole():
    promise = "GREEN " * 1000 + "indeed"
    assert f"<promise>{promise}</promise>" in verdict(completion_promise=promise).message


def test_a_promise_reaches_the_message_in_plain_characters():
    found = verdict(completion_promise="G\x1b[31mREEN\u202e")
    assert "\x1b" not in found.message
    assert "\u202e" not in found.message


def test_a_loop_is_live_unless_it_is_off_or_broken():
    assert is_live(state())
    assert is_live({})
    assert not is_live(None)
    assert not is_live(state(active="false"))
    assert not is_live(state(iteration="x"))


def test_a_loops_beginning_stays_the_same_and_differs_from_that_of_another_loop():
    began = beginning_of(state(), PROMPT)
    assert beginning_of(state(iteration="9", session_id="mine"), PROMPT) == began
    assert beginning_of(state(), "Another.") != began
    assert beginning_of(state(began="2026-01-02T03:04:05Z"), PROMPT) != began
    assert beginning_of(state(started_at="2026-01-02T03:04:05Z"), PROMPT) != began
    assert beginning_of(None, PROMPT) != began
