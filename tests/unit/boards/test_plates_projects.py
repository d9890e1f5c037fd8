"""A session keeps the project and the time of its beginning."""

import pytest
from support.plate_reports import ended, report

from tailhook.plates.display import describe_plate


def place(database):
    """Return the project and the folder of the session's plate."""
    plate = database.get("s")
    return plate["project_path"], plate["folder"]


def test_an_agent_that_changes_its_folder_keeps_its_project_its_place_and_its_name(database):
    database.record(report("session_start", source="startup", project_path="/p"))
    database.record(report("prompt_submit", project_path="/p"))
    rank = describe_plate(database.get("s"), "p")["rank"]
    for folder in ("/p/deep", "/p/deep/sub", "/elsewhere"):
        database.record(report("tool_call", project_path=folder))
        assert place(database) == ("/p", folder)
        assert describe_plate(database.get("s"), "p")["rank"] == rank
    assert database.all(project="/p")
    database.record(report("stop", project_path="/p"))
    assert place(database) == ("/p", None)


def test_a_host_that_names_its_project_has_it_from_the_first_event_on(database):
    database.record(report("tool_call", project_path="/p", folder="/p/deep"))
    assert place(database) == ("/p", "/p/deep")
    assert "/p/deep" in describe_plate(database.get("s"), "p")["search"]


def test_the_first_event_that_comes_late_still_names_the_project(database):
    database.record(report("tool_call", project_path="/p/deep", ts=2000, mono=2000))
    database.record(report("session_start", source="startup", project_path="/p", ts=1000, mono=1000))
    assert place(database)[0] == "/p"


@pytest.mark.parametrize(("source", "expected"), [("resume", "/q"), ("startup", "/q"), ("compact", "/p"), (None, "/p")])
def test_a_start_names_the_project_and_a_compaction_does_not(database, source, expected):
    database.record(report("prompt_submit", project_path="/p"))
    database.record(report("session_start", source=source, project_path="/q"))
    assert place(database)[0] == expected


def test_a_run_is_found_by_its_project_after_the_agent_changed_its_folder(database):
    database.record(report("prompt_submit", project_path="/p"))
    database.record(report("tool_call", project_path="/p/deep"))
    assert [plate["session_id"] for plate in database.close_sessions(project_path="/p")] == ["s"]


def test_a_session_began_with_its_first_event_and_not_when_that_was_stored(database):
    database.record(report("prompt_submit", ts=5000, mono=5000))
    plate = database.get("s")
    assert plate["created_at"] == plate["since"] == 5000
    database.record(report("session_start", source="startup", ts=4000, mono=4000))
    database.record(ended("Bash", "a", ts=9000, mono=9000))
    assert database.get("s")["created_at"] == 4000
