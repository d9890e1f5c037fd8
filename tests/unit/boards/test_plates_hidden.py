"""A hidden session keeps everything, and is shown again with a person's next prompt."""

import pytest
from support.plate_reports import asked, report

from tailhook.plates.db import Database
from tailhook.plates.display import describe_plate


def hidden(database, session="s"):
    """Return whether a session's plate is hidden."""
    return describe_plate(database.get(session), "p")["hidden"]


def test_hiding_deletes_nothing_and_outlives_the_daemon(url):
    database = Database(url)
    database.record(asked("a"))
    before = database.get("s")
    database.mark("s", hidden=True)
    database.close()
    database = Database(url)
    assert hidden(database)
    assert [event["tool_use_id"] for event in database.events_of("s", 9)] == ["a"]
    database.mark("s", hidden=False)
    after = database.get("s")
    assert after == {**before, "version": after["version"]}
    database.close()


def test_a_hidden_session_needs_no_attention(database):
    database.record(asked("a"))
    assert describe_plate(database.get("s"), "p")["group"] == "waits"
    database.mark("s", hidden=True)
    shown = describe_plate(database.get("s"), "p")
    assert (shown["group"], shown["rank"][0], shown["status_words"]) == ("rest", "4", "awaiting input")


@pytest.mark.parametrize(
    ("kind", "fields", "after"),
    [
        ("prompt_submit", {}, False),
        ("prompt_submit", {"by_host": True}, True),
        ("prompt_submit", {"agent_id": "a"}, True),
        ("tool_start:Bash", {}, True),
        ("tool_start:AskUserQuestion", {}, True),
        ("stop", {}, True),
        ("session_end", {}, True),
        ("session_start", {"source": "resume"}, True),
        ("coffee_break", {}, True),
    ],
)
def test_only_a_persons_prompt_shows_a_hidden_session(database, kind, fields, after):
    database.record(report("tool_call"))
    database.mark("s", hidden=True)
    database.record(report(kind, **fields))
    assert hidden(database) is after


def test_a_prompt_of_before_the_newest_event_shows_no_hidden_session(database):
    database.record(report("stop", ts=5000, mono=5000))
    database.mark("s", hidden=True)
    database.record(report("prompt_submit", ts=4000, mono=4000))
    assert hidden(database)


def test_hiding_is_published_and_a_missing_session_is_not_hidden(database):
    database.record(report("stop"))
    database.mark("s", hidden=True)
    assert [plate["hidden_at"] is not None for plate in database.reported] == [False, True]
    assert database.mark("none", hidden=True) is None
    assert len(database.reported) == 2


def test_hiding_makes_a_report_that_read_the_plate_before_read_it_again(database):
    database.record(report("tool_call"))
    read = database.get("s")
    database.mark("s", hidden=True)
    assert database.get("s")["version"] == read["version"] + 1
