"""Invariants of the waits of a session, whatever happens."""

from hypothesis import given
from hypothesis import strategies as st
from support.plate_events import parse_event
from support.plate_situations import APPROVAL, ERROR, IDLE, INPUT, RUNNING

from tailhook.machines.plates import MAX_OPEN_TOOLS, Detail, EventKind, Situation, Status, admits, follow

NAMES = ["AskUserQuestion", "ExitPlanMode", "Bash", "mcp__a__x"]
details = st.builds(
    Detail,
    tool_use_id=st.sampled_from(["", "1", "2"]),
    tool=st.sampled_from(["", "mcp__a", *NAMES]),
    about=st.sampled_from(["", "x"]),
    agent_id=st.sampled_from(["", "", "s"]),
    is_hosts=st.booleans(),
)
SHORT = [kind.value for kind in EventKind if kind is not EventKind.TOOL_START] + [
    "stop:error",
    *map("tool_start:{}".format, NAMES),
]
happenings = st.lists(st.tuples(st.sampled_from(SHORT).map(parse_event), details, st.booleans()), max_size=12)


def situation_after(events):
    situation = Situation(Status.STARTING)
    for event, detail, is_late in events:
        if admits(situation.status, event):
            situation, _ = follow(situation, event, detail, is_late)
    return situation


@given(happenings)
def test_whatever_happens_the_status_is_one_that_its_waits_allow(events):
    situation = situation_after(events)
    assert situation.status in Status
    assert len(situation.tools) <= MAX_OPEN_TOOLS
    own = [tool.wait for tool in situation.tools if tool.wait and not tool.agent_id]
    if own:
        assert situation.own is own[-1]
    assert situation.beneath in (None, RUNNING, IDLE)
    if situation.beneath:
        works_on = {RUNNING} if situation.agents and situation.beneath is IDLE else set()
        assert situation.status in works_on | {tool.wait for tool in situation.waits}
    assert not (situation.agents and situation.status is IDLE)


@given(happenings, st.sampled_from(["tool_start:AskUserQuestion", "tool_start:Bash"]), details)
def test_the_start_of_a_subagents_tool_never_changes_the_status(events, words, detail):
    situation = situation_after(events)
    after, reaches = follow(situation, parse_event(words), detail._replace(agent_id="s"))
    assert (after.status, after.beneath, reaches) == (situation.status, situation.beneath, False)


@given(happenings)
def test_a_prompt_of_a_person_always_sets_the_session_running(events):
    after, _ = follow(situation_after(events), parse_event("prompt_submit"), Detail())
    assert (after.status, after.waits) == (RUNNING, ())


@given(happenings)
def test_after_a_recovery_nothing_waits(events):
    after, _ = follow(situation_after(events), parse_event("health_check_recovery"), Detail())
    assert after.waits == ()
    assert after.status not in (INPUT, APPROVAL, ERROR)
