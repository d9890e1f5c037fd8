"""A loop ends when its budget of tokens or minutes is spent, after one turn to wrap up."""

import pytest
from support.cases import in_one_test
from support.idle_states import DONE, NOW, frame, looping
from support.own_loops import QuietTurn, own_loop

from tailhook._core import iso_time
from tailhook.machines import Verdict, idle, idle_briefing, ralph, ralph_briefing
from tailhook.machines.budgets import Spent, ask_to_wrap_up, describe_budgets, describe_spending, measure, parse_mark
from tailhook.machines.waiting import Work

BEGAN = iso_time(NOW - 600)
NO_NUMBERS = ["0", 0, -1, "-5", "x", "", "1e300", 1e300, 10.0, True, None, [], {}, [100], 2**53 + 1, "9" * 65]


class Loop(QuietTurn):
    """A loop with budgets, its stops and its turns. Each stop gives the verdict on the state that the one before left.

    used: the tokens so far, None if they cannot be counted.
    minutes: since the loop began.
    """

    def __init__(self, machine, outer=(), **fields):
        self.machine, self.used, self.minutes, self.asked = machine, 0, 1, 0
        self.background = None
        common = {"began": BEGAN, "session_id": "mine", "briefed": "mine", **fields}
        if machine is idle:
            self.state = looping(*outer, frame(**common))
        else:
            values = {"iteration": 1, "max_iterations": 10, "completion_promise": "GREEN", **common}
            values["max_iterations"] = values.pop("max", values["max_iterations"])
            values["iteration"] = values.pop("iter", values["iteration"])
            self.state = {key: str(value) for key, value in values.items()}

    def fields(self):
        return self.state["stack"][-1] if self.machine is idle else self.state

    def now(self):
        return NOW - 600 + 60 * self.minutes

    def spent(self, fields):
        self.asked += 1
        if self.used is None:
            return ""
        spent = Spent(self.now())
        spent.tokens = self.used
        return spent.mark()

    def work(self):
        return self.background

    def stop(self, is_done=False, background=None, **facts):
        self.background = background
        if self.machine is idle:
            self.state["updated_at"] = iso_time(self.now() - 60)
            signals = (DONE,) if is_done else ()
            given = idle.Facts("mine", signals=lambda: signals, own=own_loop(self, self.now()), **facts)
            found = idle.decide(self.state, given, self.now())
            self.state = found.change or self.state
        else:
            promises = ("GREEN",) if is_done else ()
            given = ralph.Facts("mine", promises=lambda own_line: promises, own=own_loop(self, self.now()), **facts)
            found = ralph.decide(self.state, "Work.", given)
            self.state = {**self.state, **(found.change or {})}
        return found

    def reason(self, found):
        """Return the saved reason of the loop's end."""
        assert found.ended
        return self.state["reason"] if self.machine is idle else found.end


@pytest.fixture(params=[idle, ralph], ids=["idle", "ralph"])
def machine(request):
    return request.param


def test_when_the_tokens_are_spent_one_turn_asks_to_wrap_up_and_the_stop_after_it_ends_the_loop(machine):
    loop = Loop(machine, tokens=1000)
    loop.used = 999
    assert "last turn" not in loop.stop().reason
    loop.used = 1000
    asked = loop.stop()
    assert asked.outcome == "block"
    request = (
        "This is the last turn of the loop, because its budget is spent: 1,000 of 1,000 tokens. Begin nothing new."
    )
    first, _, rest = asked.reason.partition("\n\n")
    assert first.startswith("[ITERATION 3/10] ") or first == "Work."
    assert request in rest
    assert "write what is done and what is left" in rest
    loop.used = 1300
    ended = loop.stop()
    assert (ended.outcome, loop.reason(ended)) == ("allow", "TOKEN_LIMIT")
    assert ended.why.endswith("its budget is spent: 1,300 of 1,000 tokens")


def test_when_the_minutes_are_over_the_loop_ends_in_the_same_way(machine):
    loop = Loop(machine, minutes=10)
    loop.minutes = 9.99
    assert "last turn" not in loop.stop().reason
    loop.minutes = 10
    assert "its budget is spent: 10 of 10 minutes" in loop.stop().reason
    loop.minutes = 12
    ended = loop.stop()
    assert loop.reason(ended) == "TIME_LIMIT"
    assert ended.why.endswith("its budget is spent: 12 of 10 minutes")
    assert loop.asked == 0


def test_a_signal_in_the_last_turn_or_before_it_is_the_reason_of_the_end(machine):
    for is_asked in (True, False):
        loop = Loop(machine, tokens=1000, minutes=5)
        loop.used, loop.minutes = 5000, 6
        if is_asked:
            assert loop.stop().outcome == "block"
        assert loop.reason(loop.stop(is_done=True)) == "COMPLETE"


def test_the_last_turn_repeats_how_the_loop_ends(machine):
    loop = Loop(machine, minutes=5)
    loop.minutes = 6
    assert (DONE if machine is idle else "<promise>GREEN</promise>") in loop.stop().reason


def test_without_a_briefing_the_last_turn_has_it_before_the_request(machine):
    loop = Loop(machine, minutes=5, briefed="other")
    loop.minutes = 6
    parts = loop.stop().reason.split("\n\n")
    assert len(parts) == 3
    assert ["This is the last turn" in part for part in parts] == [False, False, True]
    assert "GREEN" in parts[1] or DONE in parts[1]


def test_the_iteration_limit_comes_before_a_budget_because_no_turn_is_left_to_wrap_up(machine):
    loop = Loop(machine, minutes=5, iter=10, max=10)
    loop.minutes = 6
    assert loop.reason(loop.stop()) == "MAX_ITERATIONS"


def test_if_the_last_turn_is_also_the_last_iteration_the_budget_is_the_reason(machine):
    loop = Loop(machine, minutes=5, iter=9, max=10)
    loop.minutes = 6
    assert loop.stop().outcome == "block"
    assert loop.reason(loop.stop()) == "TIME_LIMIT"
    kept = Loop(machine, minutes=5, iter=9, max=10)
    kept.minutes = 6
    kept.stop()
    assert kept.reason(kept.stop(is_done=True)) == "COMPLETE"


def test_of_two_spent_budgets_the_tokens_are_the_reason(machine):
    loop = Loop(machine, tokens=10, minutes=5)
    loop.used, loop.minutes = 10, 6
    loop.stop()
    assert loop.reason(loop.stop()) == "TOKEN_LIMIT"


def test_a_budget_is_judged_before_waiting_and_before_standing_still(machine):
    work = Work({"a": "shell `make`"}, QuietTurn())
    loop = Loop(machine, minutes=5, waits=work.mark(), stuck_after=1)
    loop.minutes = 6
    asked = loop.stop(background=work)
    assert asked.outcome == "block"
    assert "In the background" not in asked.reason
    assert loop.reason(loop.stop(background=work)) == "TIME_LIMIT"


def test_a_stop_that_waits_saves_no_count(machine):
    work = Work({"a": "shell `make`"}, QuietTurn())
    loop = Loop(machine, tokens=1000)
    assert "In the background" in loop.stop(background=work).reason
    loop.used = 500
    waiting = loop.stop(background=work)
    assert (waiting.outcome, waiting.change) == ("allow", None)


def test_sub_agents_at_work_pause_also_a_loop_that_wraps_up(machine):
    loop = Loop(machine, minutes=5)
    loop.minutes = 6
    loop.stop()
    paused = loop.stop(paused=True)
    assert (paused.outcome, paused.ended, paused.change) == ("allow", False, None)
    assert loop.reason(loop.stop()) == "TIME_LIMIT"


def test_the_count_is_saved_at_each_stop_and_a_stop_reads_from_there(machine):
    loop = Loop(machine, tokens=1000)
    loop.used = 17
    loop.stop()
    assert parse_mark(loop.fields()["spent"]).tokens == 17


def test_tokens_that_cannot_be_counted_hold_and_end_nothing(machine):
    loop = Loop(machine, tokens=10)
    loop.used = None
    for _ in range(8):
        found = loop.stop()
        assert found.outcome == "block"
        assert "last turn" not in found.reason
    assert "spent" not in loop.fields()


@in_one_test("value", NO_NUMBERS)
@in_one_test("kind", [idle, ralph])
@in_one_test("unit", ["tokens", "minutes"])
def test_a_budget_that_is_not_a_whole_number_above_0_is_never_spent(kind, unit, value):
    loop = Loop(kind, **{unit: value})
    loop.used, loop.minutes = 10**9, 100
    found = loop.stop()
    assert found.outcome == "block"
    assert "last turn" not in found.reason


@in_one_test(
    "mark", [None, 1, "", "x", "-", "1 2 3", "1 2 - - -", "-1 0 - -", "1e300 0 - -", "1 1 a:b:c -", "1 1 - a:1"]
)
def test_other_words_than_a_mark_are_not_read(mark):
    assert parse_mark(mark) is None


def test_numbers_as_strings_count(machine):
    loop = Loop(machine, tokens="1000")
    loop.used = 1000
    assert "1,000 of 1,000 tokens" in loop.stop().reason


@in_one_test("began", ["", "soon", 5, "2026-13-01T00:00:00Z"])
def test_a_loop_whose_beginning_cannot_be_read_has_no_budget_of_minutes(began):
    assert measure({"began": began, "minutes": 1}, NOW) == {}


def test_a_clock_that_was_set_back_spends_nothing():
    assert measure({"began": iso_time(NOW + 5000), "minutes": 1}, NOW) == {"minutes": (0, 1)}


@in_one_test("kind", [idle, ralph])
def test_a_state_of_another_program_behaves_as_before(kind):
    for fields in ({"tokens": 1, "minutes": 1}, {"wrap_up": "TOKEN_LIMIT"}):
        plain, other = Loop(kind, began="", **fields), Loop(kind, began="")
        plain.used = 100
        one, two = plain.stop(), other.stop()
        assert (one.outcome, one.why, one.reason, one.message) == (two.outcome, two.why, two.reason, two.message)
        assert plain.asked == 0
        assert {key: value for key, value in plain.fields().items() if key not in fields} == other.fields()


@in_one_test("reason", ["STUCK", 5, ["TOKEN_LIMIT"], {"a": 1}, True])
@in_one_test("kind", [idle, ralph])
def test_a_last_turn_with_a_damaged_reason_is_over_too(kind, reason):
    loop = Loop(kind, minutes=100, wrap_up=reason)
    assert loop.reason(loop.stop()) == "TOKEN_LIMIT"


@pytest.mark.parametrize("refused", ["", "x" * 20_000], ids=["silent", "refused"])
def test_the_reason_stays_below_what_hosts_show_whatever_is_in_it(refused):
    loop = Loop(idle, briefed="", tokens=2**53, minutes=2**53, prompt_file="p" * 100, iter=2**52, max=2**53)
    loop.used = 2**53
    loop.refuse_end = lambda *_: (refused, "")
    asked = loop.stop(is_done=bool(refused), goal=lambda: "Work. " * 5000)
    assert len(asked.reason) < 10_000
    assert asked.reason.endswith("The loop ends when you stop.")
    assert DONE in asked.reason


def test_the_budget_of_an_inner_loop_ends_that_loop_alone():
    outer = frame(id="outer", began=BEGAN, session_id="mine", iter=3, tokens=10**6)
    loop = Loop(idle, outer=[outer], minutes=5)
    loop.minutes = 6
    loop.stop()
    ended = loop.stop()
    assert (ended.outcome, ended.ended) == ("allow", True)
    assert ended.why.startswith("inner loop ended: its budget is spent: 6 of 5 minutes. The outer loop")
    assert loop.state["event"] == "STATE"
    assert loop.state["stack"] == [outer]


def test_the_briefing_names_the_budgets():
    fields = {"began": BEGAN, "tokens": 250_000, "minutes": 90}
    [line] = describe_budgets(fields)
    assert line.startswith("Budget: 250,000 tokens (input, cache creation and output) and 90 minutes since the loop")
    assert line in idle_briefing.briefing(looping(frame(**fields)), "Work.", idle.Facts("mine"))
    assert line in ralph_briefing.briefing({key: str(value) for key, value in fields.items()}, "Work.")
    assert "Budget" not in idle_briefing.briefing(looping(frame(began=BEGAN)), "Work.", idle.Facts("mine"))


def test_a_person_reads_what_is_spent_and_what_is_left():
    spent = Spent(NOW)
    spent.tokens = 1200
    fields = {"began": BEGAN, "tokens": 1000, "minutes": 90, "spent": spent.mark()}
    assert describe_spending(fields, NOW) == [
        "Budget of tokens: 1,200 of 1,000 spent, 0 left (counted at the last stop).",
        "Budget of minutes: 10 of 90 spent, 80 left.",
    ]


def test_before_a_stop_has_counted_the_tokens_a_person_reads_that():
    fields = {"began": BEGAN, "tokens": 1000}
    words = "Budget of tokens: 1,000. No stop has counted them yet; only Claude Code's tokens are counted."
    assert describe_spending(fields, NOW) == [words]
    assert describe_spending({"tokens": 1000, "minutes": 5}, NOW) == []


def test_a_mark_is_read_as_it_was_written_and_keeps_the_newest_parts():
    spent = Spent(NOW)
    for number in range(200):
        spent.places[str(number)] = number, 5
        spent.add(f"r{number}", 1, 10)
    again = parse_mark(spent.mark())
    assert (again.tokens, again.until, list(again.places)[-1]) == (2000, NOW, "199")
    assert (len(again.places), len(again.recent)) == (64, 16)
    assert spent.mark().isascii()
    assert len(spent.mark()) < 2000


@pytest.mark.parametrize(
    ("is_refused", "words"), [(False, "nothing new."), (True, "nothing new except the missing checks.")]
)
def test_the_last_turn_may_run_the_checks_that_a_refused_signal_needs(is_refused, words):
    asked = ask_to_wrap_up(Verdict("block", "iteration 2/10", None, "Run what is missing."), "it is spent", is_refused)
    assert f"because it is spent. Begin {words} Bring what" in asked.reason
