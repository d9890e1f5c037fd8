"""The plates machine, row by row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import in_one_test
from support.plate_events import parse_event

from tailhook.machines.plates import (
    HEALTH_CHECK_INTERVAL,
    MAX_RECOVERY_TIME,
    STALENESS_THRESHOLD,
    EventKind,
    Status,
    is_stale,
    precedes,
    transition,
)

# From each status, in this order: starting, running, idle, awaiting_input, awaiting_approval, error, closed.
RUNNING, IDLE, INPUT, APPROVAL, ERROR, CLOSED = (
    "running",
    "idle",
    "awaiting_input",
    "awaiting_approval",
    "error",
    "closed",
)
TABLE = {
    "session_start": [RUNNING] * 7,
    "prompt_submit": [RUNNING] * 7,
    "tool_start:AskUserQuestion": [INPUT] * 7,
    "tool_start:ExitPlanMode": [APPROVAL] * 7,
    "tool_start:Bash": [RUNNING] * 7,
    "tool_call": [RUNNING] * 7,
    "stop:error": [ERROR] * 7,
    "stop": [IDLE] * 7,
    "health_check_recovery": ["starting", RUNNING, IDLE, IDLE, IDLE, IDLE, CLOSED],
    # beyond the nine
    "turn_ended": ["starting", IDLE, IDLE, INPUT, APPROVAL, ERROR, CLOSED],
    "interrupted": [IDLE] * 7,
    "permission_asked": [APPROVAL] * 7,
    "permission_given": ["starting", RUNNING, IDLE, INPUT, RUNNING, ERROR, CLOSED],
    "stop_blocked": [RUNNING] * 7,
    "session_end": [CLOSED] * 7,
    "stop_failure": [ERROR] * 7,
    "input_asked": [INPUT] * 7,
    "input_given": ["starting", RUNNING, IDLE, RUNNING, APPROVAL, ERROR, CLOSED],
    "subagent_start": ["starting", RUNNING, IDLE, INPUT, APPROVAL, ERROR, CLOSED],
    "subagent_stop": ["starting", RUNNING, IDLE, INPUT, APPROVAL, ERROR, CLOSED],
}
events = st.sampled_from(sorted(TABLE)) | st.text(min_size=1).map("tool_start:{}".format)


@in_one_test("event", TABLE)
@in_one_test("status", Status)
def test_every_status_and_every_event(status, event):
    after = TABLE[event][list(Status).index(status)]
    assert transition(status, parse_event(event)) is Status(after)


def test_the_table_has_every_kind_of_event():
    assert {parse_event(event).kind for event in TABLE} == set(EventKind)


def test_the_statuses_are_the_seven_words():
    words = ["starting", "running", "idle", "awaiting_input", "awaiting_approval", "error", "closed"]
    assert [status.value for status in Status] == words


@given(st.sampled_from(Status), events)
def test_the_same_event_in_the_same_status_always_does_the_same(status, event):
    assert transition(status, parse_event(event)) is transition(status, parse_event(event))


@given(st.lists(events))
def test_any_sequence_of_events_stays_among_the_statuses(sequence):
    status = Status.STARTING
    for event in sequence:
        status = transition(status, parse_event(event))
        assert status in Status


@given(st.lists(events), st.sampled_from(["session_start", "prompt_submit"]))
def test_a_prompt_or_a_start_always_sets_a_session_running(sequence, last):
    status = Status.STARTING
    for event in [*sequence, last]:
        status = transition(status, parse_event(event))
    assert status is Status.RUNNING


@given(st.sampled_from(Status))
def test_after_a_recovery_no_session_needs_attention(status):
    after = transition(status, parse_event("health_check_recovery"))
    assert after not in (Status.AWAITING_INPUT, Status.AWAITING_APPROVAL, Status.ERROR)


def test_the_constants_bound_the_recovery():
    assert HEALTH_CHECK_INTERVAL == 10
    assert STALENESS_THRESHOLD == 2
    assert MAX_RECOVERY_TIME == HEALTH_CHECK_INTERVAL + STALENESS_THRESHOLD


# An event is older only by all clocks that both events have. Equal times do not make it older.
PRECEDES = [
    (99, None, 100, None, True),
    (100, None, 100, None, False),
    (99, 9, 100, 10, True),
    (99, 10, 100, 10, False),
    (99, 11, 100, 10, False),
    (100, 9, 100, 10, False),
    (99, None, 100, 10, True),
    (99, 9, 100, None, True),
]


@pytest.mark.parametrize(("at", "mono", "last_at", "last_mono", "older"), PRECEDES)
def test_an_event_with_an_equal_time_is_not_older(at, mono, last_at, last_mono, older):
    assert precedes(at, mono, last_at, last_mono) is older


@pytest.mark.parametrize(("changed", "stale"), [(100, False), (102, False), (102.001, True), (98, False)])
def test_a_transcript_is_stale_two_seconds_after_the_last_event(changed, stale):
    assert is_stale(changed, last_event=100) is stale
