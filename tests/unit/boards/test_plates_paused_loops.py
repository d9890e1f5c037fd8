"""The board shows that a session's loop is paused: from the stop at which it is paused until the next event."""

import pytest
from support.plate_reports import report, status

from tailhook.plates.display import describe_event, describe_plate


def activity(database):
    return describe_plate(database.get("s"), "project")["activity"]["words"]


def test_a_stop_with_a_paused_loop_is_idle_and_shows_that(database):
    database.record(report("prompt_submit"))
    database.record(report("tool_start:Bash"))
    database.record(report("stop_paused"))
    assert (status(database), activity(database)) == ("idle", "loop paused")
    assert "stop, loop paused" in [describe_event(event)["words"] for event in database.events_of("s", 9)]


def test_the_hosts_notice_that_it_waits_for_the_person_does_not_hide_it(database):
    database.record(report("stop_paused"))
    database.record(report("turn_ended"))
    assert (status(database), activity(database)) == ("idle", "loop paused")


@pytest.mark.parametrize("after", ["prompt_submit", "stop", "stop_blocked", "session_end"])
def test_any_other_event_takes_it_away(database, after):
    database.record(report("stop_paused"))
    database.record(report(after))
    assert activity(database) in ("", "thinking")
