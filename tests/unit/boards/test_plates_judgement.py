"""The health check's conclusions from one look at a session's transcript."""

import pytest
from support.cases import in_one_test
from support.plate_events import parse_event

from tailhook.machines.plates import Look, Status, examine

# The status, when the transcript was written, its newest record, and what follows; the last event was at 100.
JUDGED = [
    ("awaiting_input", Look(101), None),
    ("awaiting_input", Look(102), None),
    ("awaiting_input", Look(102.1), "health_check_recovery"),
    ("awaiting_approval", Look(110), "health_check_recovery"),
    ("error", Look(110), "health_check_recovery"),
    ("awaiting_input", Look(100.5, at=100.4), "health_check_recovery"),  # within the two seconds
    ("awaiting_input", Look(100.5, at=99.9), None),  # the event's own record, written late
    ("awaiting_approval", Look(110, at=109, interrupted=True), "interrupted"),
    ("awaiting_approval", Look(110, at=99, interrupted=True), "health_check_recovery"),  # by an older one
    ("running", Look(110), None),
    ("running", Look(110, at=109), None),
    ("running", Look(110, at=109, turn_over=True), "turn_ended"),
    ("running", Look(119, at=109, turn_over=True), None),  # it is being written
    ("running", Look(110, at=109, turn_over=True, failed=True), "stop_failure"),
    ("running", Look(119, at=109, turn_over=True, failed=True), None),  # a hook may still report it
    ("running", Look(110, at=99, turn_over=True, failed=True), None),  # a prompt came since
    ("idle", Look(110, at=109, turn_over=True, failed=True), None),
    ("running", Look(110, at=99, turn_over=True), None),  # a prompt came since
    ("running", Look(119, at=119, interrupted=True), "interrupted"),
    ("idle", Look(110, at=109, turn_over=True), None),
    ("starting", Look(110, at=109, turn_over=True), None),
    ("closed", Look(110, at=109), None),
    # A record without own words, such as the host's, may be the newest one.
    ("awaiting_input", Look(100.5, at=99.9, newest=100.4), "health_check_recovery"),
    ("error", Look(100.5, at=99.9, newest=100.4), "health_check_recovery"),
    ("awaiting_input", Look(100.5, at=99.9, newest=100), None),
    ("awaiting_input", Look(100.5, at=99.9, has_grown=True), "health_check_recovery"),
    ("running", Look(110, at=99.9, newest=109, has_grown=True, turn_over=True), None),
    ("running", Look(100, at=100, interrupted=True), None),  # at the very time of the event
    ("running", Look(110, at=99, interrupted=True), None),  # of an older turn
    ("running", Look(118, at=109, turn_over=True), None),  # two seconds ago
    ("idle", Look(110, at=109, interrupted=True), None),
    ("starting", Look(110, at=109, interrupted=True), None),
    # Records of other tools or sub-agents are not an answer, however late.
    ("awaiting_input", Look(110, at=99.9, newest=99.9, is_others=True), None),
    ("awaiting_input", Look(110, at=99.9, newest=104, is_others=True), "health_check_recovery"),
    # Within a second of its record, a hook may still report what ended the wait. Nothing reports an interruption.
    ("awaiting_input", Look(119.5), None),
    ("awaiting_approval", Look(119.5, at=119, newest=119), None),
    ("awaiting_approval", Look(119.5, at=118.9, newest=118.9), "health_check_recovery"),  # another tool still writes
    ("awaiting_approval", Look(119.5, at=119.4, interrupted=True), "interrupted"),
    ("error", Look(120.5, at=120.4), "health_check_recovery"),  # the transcript's clock is ahead
]


@in_one_test(("status", "look", "expected"), JUDGED)
def test_what_a_transcript_shows(status, look, expected):
    event = examine(Status(status), 100, look, now=120)
    assert event == (parse_event(expected) if expected else None)


# The same with a clock that was set back: the event lies in the future. Then the transcript at the first look since the
# event counts.
SET_BACK = [
    ("awaiting_input", None, Look(110, at=109), None),
    ("awaiting_input", Look(110, at=109), Look(110, at=109), None),
    ("awaiting_input", Look(110, at=109), Look(30, at=29), "health_check_recovery"),
    ("awaiting_input", Look(110, at=109), Look(30, at=109), "health_check_recovery"),
    ("error", Look(110, at=109), Look(30, at=29, interrupted=True), "interrupted"),
    ("running", Look(110, at=109), Look(30, at=29, turn_over=True), "turn_ended"),
    ("running", Look(110, at=109), Look(49, at=49, turn_over=True), None),  # it is being written
    ("running", Look(30, at=29, turn_over=True), Look(30, at=29, turn_over=True), None),
]


def test_an_event_of_this_very_moment_is_not_still_to_come():
    reported = examine(Status.RUNNING, 100, Look(100, at=100.0, interrupted=True), now=100, first=Look(99))
    assert reported is None


@pytest.mark.parametrize(("status", "first", "look", "expected"), SET_BACK)
def test_what_a_transcript_shows_when_the_clock_was_set_back(status, first, look, expected):
    event = examine(Status(status), 100, look, now=50, first=first)
    assert event == (parse_event(expected) if expected else None)


# The tools that a session waits for since 100, the records about them in its transcript, and the conclusion.
WAITED_FOR = [
    ("a", Look(100.1, at=99, newest=99, pending=frozenset("a")), None),
    ("a", Look(110, at=109, newest=109, has_grown=True, pending=frozenset("a")), None),
    ("a", Look(100.1, at=99, newest=99, ended=frozenset("a")), "health_check_recovery"),
    ("a", Look(110, at=109, interrupted=True, ended=frozenset("a")), "interrupted"),
    ("ab", Look(110, at=109, ended=frozenset("a"), pending=frozenset("b")), None),
    ("ab", Look(100.1, at=99, ended=frozenset("ab")), "health_check_recovery"),
    ("ab", Look(100.1, at=99, ended=frozenset("a")), None),  # of the other one the transcript shows nothing yet
    ("ab", Look(110, at=99, ended=frozenset("a")), "health_check_recovery"),
    ("a", Look(110, at=109), "health_check_recovery"),  # in a shape that cannot be read
    ("a", Look(100.1, at=99), None),
]


@pytest.mark.parametrize(("waits", "look", "expected"), WAITED_FOR)
def test_what_a_transcript_shows_about_tools_that_are_waited_for(waits, look, expected):
    event = examine(Status.AWAITING_APPROVAL, 100, look, now=120, waits=frozenset(waits))
    assert event == (parse_event(expected) if expected else None)


def test_a_tool_that_is_waited_for_needs_no_clock():
    pending, ended = (Look(110, at=109, **{name: frozenset("a")}) for name in ("pending", "ended"))
    other = Look(30, at=29, pending=frozenset("a"))
    assert examine(Status.AWAITING_INPUT, 100, other, now=50, first=pending, waits=frozenset("a")) is None
    reported = examine(Status.AWAITING_INPUT, 100, ended, now=50, first=ended, waits=frozenset("a"))
    assert reported == parse_event("health_check_recovery")
