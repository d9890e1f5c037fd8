"""A loop waits for work in the background if that ends by itself."""

import pytest
from support.cases import in_one_test
from support.idle_states import DONE, NOW, frame, looping
from support.own_loops import QuietTurn, own_loop

from tailhook.machines import CLAIM, idle, idle_briefing, ralph
from tailhook.machines.waiting import MAX_LISTED_WORK, Work, describe_waiting, find_work

BEGAN = "2026-01-02T00:00:00Z"
SHELL = {"id": "b1", "type": "shell", "status": "running", "description": "the tests", "command": "make test"}
WAKE_UP = {"id": "c1", "schedule": "0 9 * * 1", "recurring": False, "prompt": "Look again."}


class Stops(QuietTurn):
    """Stops of one agent, and its turns. Each stop gives the verdict on the state that the one before left.

    size: of the transcript.  tools_at: the sizes at which the agent used a tool.  passed: seconds since the loop began.
    """

    def __init__(self, machine):
        self.machine, self.size, self.tools_at, self.passed = machine, 100, [], 0
        common = {"began": BEGAN, "briefed": "mine", "session_id": "mine"}
        self.state = (
            looping(frame(**common))
            if machine is idle
            else {**common, "iteration": "1", "max_iterations": "10", "completion_promise": "GREEN"}
        )

    def stop(self, *tasks, wake_ups=(), signals=(), session="mine"):
        names = find_work(list(tasks), list(wake_ups))
        self.found = Work(names, self) if names else None
        if self.machine is idle:
            facts = idle.Facts(session, signals=lambda: signals, own=own_loop(self))
            found = idle.decide(self.state, facts, NOW + self.passed)
            self.state = self.state if found.change is None else found.change
        else:
            facts = ralph.Facts(session, promises=lambda own_line: signals, own=own_loop(self))
            found = ralph.decide(self.state, "Work.", facts)
            self.state = {**self.state, **(found.change or {})}
        self.size += 10
        return found

    def work(self):
        return self.found

    def place(self):
        return str(self.size)

    def used_tools(self, place):
        return any(at >= int(place or 0) for at in self.tools_at)

    def use_tool(self):
        self.tools_at.append(self.size)
        self.size += 10


@pytest.fixture(params=[idle, ralph], ids=["idle", "ralph"])
def agent(request):
    return Stops(request.param)


@pytest.mark.parametrize("work", [{"tasks": [SHELL]}, {"wake_ups": [WAKE_UP]}])
def test_the_first_stop_names_the_work_and_the_second_waits_and_changes_nothing(agent, work):
    tasks, wake_ups = work.get("tasks", ()), work.get("wake_ups", ())
    first = agent.stop(*tasks, wake_ups=wake_ups)
    name = "shell `make test`" if tasks else "a wake-up at `0 9 * * 1`"
    assert first.outcome == "block"
    assert first.reason.endswith(
        f"\n\nIn the background: {name}. If only this is left to wait for, stop again without using a tool: the loop "
        "then waits for it, too."
    )
    for _ in range(3):
        again = agent.stop(*tasks, wake_ups=wake_ups)
        assert (again.outcome, again.change, again.ended) == ("allow", None, False)
        assert again.message.startswith(f"tailhook: the loop waits for {name}, and goes on when that ends. To ")


def test_the_order_of_the_work_does_not_matter_and_a_change_counts_again(agent):
    other = {**SHELL, "id": "b2", "type": "MCP task"}
    outcomes = [
        agent.stop(*tasks).outcome for tasks in ((SHELL, other), (other, SHELL), (other,), (other,), (), (other,))
    ]
    assert outcomes == ["block", "allow", "block", "allow", "block", "block"]


def test_a_used_tool_counts_again_so_a_server_holds_up_nothing(agent):
    for _ in range(4):
        assert agent.stop(SHELL).outcome == "block"
        agent.use_tool()
    assert [agent.stop(SHELL).outcome for _ in range(3)] == ["block", "allow", "allow"]


def test_signals_and_the_limit_end_a_loop_that_waits(agent):
    signal = DONE if agent.machine is idle else "GREEN"
    assert [agent.stop(SHELL).outcome for _ in range(2)] == ["block", "allow"]
    assert agent.stop(SHELL, signals=[signal]).ended
    late = Stops(agent.machine)
    if late.machine is idle:
        late.state["stack"][0]["iter"] = 9
    else:
        late.state["iteration"] = "9"
    assert [late.stop(SHELL).ended for _ in range(2)] == [False, True]


def test_a_loop_of_another_program_never_waits(agent):
    if agent.machine is idle:
        agent.state["stack"][0].update(began=None, waits="keep")
    else:
        agent.state.update(began=None, waits="keep")
    found = [agent.stop(SHELL) for _ in range(3)]
    assert [one.outcome for one in found] == ["block"] * 3
    assert not any("background" in one.reason for one in found)
    assert (agent.state["stack"][0] if agent.machine is idle else agent.state)["waits"] == "keep"


def test_another_saved_value_is_not_a_wait():
    turn = Stops(idle)
    turn.size, turn.tools_at = 1, [0]
    work = Work(find_work([SHELL], None), turn)
    ids = work.mark().partition(":")[2].partition(" ")[0]
    assert work.is_waited_for(f"1:{ids}")
    for mark in (None, "", 7, [], ids, f":{ids}", "1:x", f"1:{ids}:"):
        assert not work.is_waited_for(mark)


def test_a_saved_wait_is_described_with_its_time_and_another_value_is_not():
    assert describe_waiting("10@1767312245.5:0f shell `make: x`").startswith(
        "the loop has waited for shell `make: x` since 2026-01-02T00:04:05Z. If that has ended, "
    )
    for mark in (None, "", 7, "10@1767312245.5:0f", "10:0f shell", "10@nan:0f shell", "10@1e999:0f shell"):
        assert describe_waiting(mark) == ""


@in_one_test(
    ("tasks", "wake_ups"),
    [
        (None, None),
        ("shell", 7),
        ([None, "x", 3], [None, []]),
        ([{**SHELL, "status": "completed"}], []),
        ([{**SHELL, "type": "dream"}, {**SHELL, "type": 7}], []),
        ([], [{**WAKE_UP, "recurring": True}, {**WAKE_UP, "recurring": None}]),
    ],
)
def test_what_does_not_end_by_itself_or_is_malformed_is_not_waited_for(tasks, wake_ups):
    assert find_work(tasks, wake_ups) == {}


@in_one_test(("status", "kind"), [("running", "shell"), ("pending", "monitor"), (None, "MCP task"), (None, "Shell")])
def test_work_is_in_flight_while_it_runs_is_pending_or_has_no_status(status, kind):
    assert len(find_work([{**SHELL, "status": status, "type": kind}], [])) == 1


def test_hostile_names_stay_on_one_line_and_many_are_counted():
    tasks = [{**SHELL, "id": f"b{n}", "command": "a\n\x1b[2J" + "x" * 5000} for n in range(MAX_LISTED_WORK + 3)]
    shown = Work(find_work(tasks, []), Stops(idle)).shown()
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert len(shown) < 1000
    assert shown.endswith(" and 3 more")


def test_a_loop_that_waits_to_be_claimed_is_claimed_at_its_first_stop(agent):
    frame_of = agent.state["stack"][0] if agent.machine is idle else agent.state
    frame_of["session_id"] = CLAIM
    agent.stop(SHELL)
    assert (agent.state["stack"][0] if agent.machine is idle else agent.state)["session_id"] == "mine"
    assert agent.stop(SHELL).outcome == "allow"


@pytest.mark.parametrize(
    ("hours", "began", "goes_on"),
    [(3, BEGAN, True), (23, BEGAN, True), (25, BEGAN, False), (3, None, False)],
    ids=["3 hours", "23 hours", "25 hours", "another program's loop"],
)
def test_a_loop_that_waits_for_hours_goes_on_when_its_work_has_ended(hours, began, goes_on):
    agent = Stops(idle)
    assert [agent.stop(SHELL).outcome for _ in range(2)] == ["block", "allow"]
    if began is None:
        del agent.state["stack"][0]["began"]
    agent.passed = hours * 3600
    assert idle_briefing.is_live(agent.state, NOW + agent.passed) is goes_on
    found = agent.stop()
    assert found.outcome == ("block" if goes_on else "allow")
    assert agent.state.get("reason") == (None if goes_on else "STALENESS")


def test_a_loop_that_no_longer_waits_is_stale_after_two_hours():
    agent = Stops(idle)
    agent.stop(SHELL)
    agent.stop(SHELL)
    assert agent.stop().outcome == "block"
    agent.passed = 3 * 3600
    agent.stop()
    assert agent.state["reason"] == "STALENESS"
