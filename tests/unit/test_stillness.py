"""A loop that tailhook began ends if its agent stands still."""

import pytest
from support.cases import in_one_test
from support.idle_states import NOW, frame, looping
from support.own_loops import QuietTurn, own_loop

from tailhook.machines import idle, idle_briefing, ralph, ralph_briefing
from tailhook.machines.stillness import judge_stillness

BEGAN = "2026-01-02T00:00:00Z"
FAILED = ("Bash", '{"command":"make"}', "Error: no rule, line 7")


class Stops(QuietTurn):
    """Stops of one agent, and its turns. Each stop gives the verdict on the state that the one before left.

    log: the calls of tools since the loop began, oldest first; its length is the transcript's size.
    has_times: whether it is known when they were.
    """

    def __init__(self, machine, stuck_after=4, began=BEGAN, has_times=True, **fields):
        self.machine, self.log, self.said, self.has_times = machine, [], b"", has_times
        common = {"began": began, "session_id": "mine", "stuck_after": stuck_after, **fields}
        self.state = (
            looping(frame(**{**common, "max": 100}))
            if machine is idle
            else {**common, "stuck_after": str(stuck_after), "iteration": "1"}
        )

    def place(self):
        return f"{len(self.log)}@0"

    def place_at(self, time):
        assert time == BEGAN
        return "0@0" if self.has_times else ""

    def calls(self, place):
        return reversed(self.log[int(place.partition("@")[0]) :])

    def words(self):
        return self.said

    def facts(self):
        return self.machine.Facts("mine", own=own_loop(self))

    def prompt(self):
        given = (self.state, self.facts(), NOW) if self.machine is idle else (self.state, "Work.", self.facts())
        self.keep((idle_briefing if self.machine is idle else ralph_briefing).brief(*given))
        return self

    def keep(self, found):
        if self.machine is idle:
            self.state = found.change or self.state
        else:
            self.state = {**self.state, **(found.change or {})}
        return found

    def stop(self, said, *calls):
        self.said = said.encode()
        self.log += calls
        given = (self.state, self.facts(), NOW) if self.machine is idle else (self.state, "Work.", self.facts())
        return self.keep(self.machine.decide(*given))


@pytest.fixture(params=[idle, ralph], ids=["idle", "ralph"])
def machine(request):
    return request.param


def test_four_stops_without_work_and_with_the_same_words_end_a_loop_and_are_quoted(machine):
    agent = Stops(machine).prompt()
    said = ("Holding 1.", "Holding\n 2. ", "Holding 37.", "Holding 400.")
    found = [agent.stop(words) for words in said]
    assert [one.ended for one in found] == [False, False, False, True]
    assert 'it stands still: 4 stops in a row without a tool, with the words "Holding 400."' in found[-1].why


def test_other_words_or_a_tool_begin_again(machine):
    agent = Stops(machine).prompt()
    said = [("A.",), ("A.",), ("A.",), ("B.",), ("A.",), ("A.",), ("A.", None), ("A.",), ("A.",), ("A.",), ("A.",)]
    assert [agent.stop(*one).ended for one in said] == [False] * 10 + [True]


def test_without_a_prompt_the_first_turn_counts_from_the_beginning_of_the_loop(machine):
    assert Stops(machine).stop("A.", *[FAILED] * 12).ended
    silent = Stops(machine)
    assert [silent.stop("A.").ended for _ in range(4)] == [False] * 3 + [True]


def test_an_agent_that_started_its_loop_has_used_a_tool_in_the_first_turn(machine):
    assert Stops(machine, briefed="mine").stop("A.", *[FAILED] * 12).ended
    silent = Stops(machine, briefed="mine")
    assert [silent.stop("A.").ended for _ in range(5)] == [False] * 4 + [True]


def test_the_first_turn_is_unknown_if_the_times_of_calls_are(machine):
    agent = Stops(machine, has_times=False)
    assert [agent.stop("A.", *[FAILED] * 12).ended for _ in range(2)] == [False, True]
    silent = Stops(machine, has_times=False)
    assert [silent.stop("A.").ended for _ in range(5)] == [False] * 4 + [True]


def test_no_words_are_not_the_same_words(machine):
    agent = Stops(machine).prompt()
    assert not any(agent.stop(" \n").ended for _ in range(10))


def test_twelve_calls_with_the_same_input_and_error_end_a_loop_over_several_turns(machine):
    agent = Stops(machine).prompt()
    found = [
        agent.stop(f"Turn {letter}.", *[FAILED] * calls) for letter, calls in (("a", 5), ("b", 0), ("c", 6), ("d", 1))
    ]
    assert [one.ended for one in found] == [False, False, False, True]
    assert (
        '12 calls of Bash with the same input "{"command":"make"}" and the same error "Error: no rule, line 7"'
        in found[-1].why
    )


@in_one_test("other", [None, ("Read", *FAILED[1:]), (FAILED[0], "{}", FAILED[2]), (*FAILED[:2], "Error: another")])
def test_a_call_that_worked_or_differs_begins_again(other):
    for machine in (idle, ralph):
        agent = Stops(machine).prompt()
        assert not agent.stop("A.", *[FAILED] * 11).ended
        assert not agent.stop("B.", FAILED, other, *[FAILED] * 11).ended
        assert agent.stop("C.", FAILED).ended


def test_another_failing_call_in_a_later_turn_begins_again(machine):
    agent = Stops(machine).prompt()
    assert not agent.stop("A.", *[FAILED] * 11).ended
    assert not agent.stop("B.", *[("Read", *FAILED[1:])] * 11).ended
    assert agent.stop("C.", ("Read", *FAILED[1:])).ended


def test_numbers_in_an_error_do_not_matter(machine):
    agent = Stops(machine).prompt()
    assert agent.stop("A.", *((*FAILED[:2], f"Error: no rule, line {n}") for n in range(12))).ended


def test_zero_is_never_and_another_number_counts(machine):
    never = Stops(machine, 0).prompt()
    assert not any(never.stop("A.", FAILED).ended for _ in range(30))
    assert [Stops(machine, 1).prompt().stop("A.").ended] == [True]


def test_a_loop_of_another_program_never_ends_so(machine):
    agent = Stops(machine, began=None)
    assert not any(agent.stop("A.").ended for _ in range(9))
    assert "still" not in (agent.state["stack"][0] if machine is idle else agent.state)


def test_the_end_has_the_reason_stuck():
    agent = Stops(idle).prompt()
    found = [agent.stop("A.") for _ in range(4)][-1]
    assert (found.change["event"], found.change["reason"], found.change["stack"]) == ("DONE", "STUCK", [])
    agent = Stops(ralph).prompt()
    assert [agent.stop("A.") for _ in range(4)][-1].end == "STUCK"


def test_only_the_inner_loop_ends():
    agent = Stops(idle)
    agent.state["stack"].insert(0, frame(mode="grind", began=BEGAN, session_id="mine"))
    agent.prompt()
    found = [agent.stop("A.") for _ in range(4)][-1]
    assert found.ended
    assert "inner loop ended: it stands still" in found.why
    assert [one["mode"] for one in found.change["stack"]] == ["grind"]


def test_a_mark_of_any_form_is_a_beginning():
    turn = Stops(idle)
    turn.log, turn.said = [None] * 3, b"A."
    turn.has_times = False
    new, _ = judge_stillness(None, turn, 2, BEGAN)
    said = new.split(" ")[1]
    assert judge_stillness(f"3@0 {said} 1 0 0", turn, 2)[1]
    for mark in ("", 7, [], f"3@0 {said} 1", f" {said} 1 0 0", f"3@0 {said} -1 0 0", f"3@0 {said} 1 0 0 0"):
        assert judge_stillness(mark, turn, 2, BEGAN) == (new, "")
