"""A session that a wrapper has started: its placeholder, its end, and its process."""

from support.plate_reports import report, status

from tailhook.plates.db import Moment


def test_a_session_takes_its_placeholders_place(database):
    placeholder = database.register("/p", "run", pid=77)
    assert (placeholder["session_id"], placeholder["status"]) == ("pending:/p", "starting")
    database.record(report("session_start", run_id="run", ts=placeholder["created_at"] + 1))
    [plate] = database.all()
    assert (plate["session_id"], plate["pid"], plate["created_at"]) == ("s", 77, placeholder["created_at"])
    assert database.gone == ["pending:/p"]


def test_a_session_that_was_faster_than_its_wrapper_gets_no_placeholder(database):
    database.record(report("session_start", run_id="run"))
    assert database.register("/p", "run", pid=77)["session_id"] == "s"
    [plate] = database.all()
    assert (plate["session_id"], plate["status"], plate["pid"]) == ("s", "running", 77)


def test_a_registration_without_a_process_takes_none_away(database):
    database.record(report("session_start", run_id="run", pid=78, pid_is_guess=True))
    database.register("/p", "run")
    assert (database.get("s")["pid"], database.get("s")["pid_is_guess"]) == (78, True)


def test_a_process_that_is_known_in_another_way_needs_no_placeholder(database):
    for folder, pid, owner in (("/a", 7, "mine"), ("/b", 8, "mine"), ("/c", 7, "another")):
        database.register(folder, f"run of {folder}", pid, owner=owner)
    database.record(report("session_start", pid=7, pid_started=5), owner="mine")
    database.remove_placeholders("mine", [7, 9])
    assert {plate["session_id"] for plate in database.all()} == {"pending:/b", "pending:/c", "s"}
    assert database.gone == ["pending:/a"]
    database.remove_placeholders("mine", [])
    assert len(database.all()) == 3


def test_a_run_may_have_the_name_of_one_that_is_over(database):
    database.register("/p", "job", pid=7)
    database.close_sessions(run_id="job")
    plate = database.register("/p", "job", pid=8)
    assert (plate["session_id"], plate["status"], plate["pid"]) == ("pending:/p", "starting", 8)


def test_a_process_that_the_session_named_itself_is_its_own(database):
    database.record(report("session_start", run_id="run", pid=78, pid_started=5))
    database.register("/p", "run", pid=77)
    assert (database.get("s")["pid"], database.get("s")["pid_started"]) == (78, 5)


def test_a_run_that_is_over_before_its_first_event_came_is_over(database):
    database.register("/p", "run", pid=77)
    database.close_sessions(run_id="run")
    database.record(report("session_start", run_id="run"))
    assert [(plate["session_id"], plate["status"]) for plate in database.all()] == [("s", "closed")]


def test_an_end_that_is_reported_late_closes_nothing_that_went_on_since(database):
    database.record(report("session_start", run_id="run", ts=100, mono=None))
    database.record(report("prompt_submit", ts=300, mono=None))
    assert database.close_sessions(run_id="run", at=Moment(200, None)) == []
    assert len(database.close_sessions(run_id="run", at=Moment(400, None))) == 1
    database.record(report("session_start", ts=500, mono=None))
    assert status(database) == "running"


def test_two_sessions_in_one_folder_do_not_close_each_other(database):
    database.register("/p", "one")
    database.register("/p", "two")
    database.record(report("session_start", session="a", run_id="one"))
    database.record(report("session_start", session="b", run_id="two"))
    assert [plate["session_id"] for plate in database.close_sessions(run_id="one")] == ["a"]
    assert (status(database, "a"), status(database, "b")) == ("closed", "running")


def test_a_project_alone_closes_one_plate_and_not_two(database):
    database.record(report("session_start", session="a"))
    assert len(database.close_sessions(project_path="/p")) == 1
    database.record(report("session_start", session="b"))
    database.record(report("session_start", session="c"))
    assert database.close_sessions(project_path="/p") == []


def test_a_placeholder_of_a_run_that_is_over_makes_room(database):
    database.register("/p", "one")
    database.close_sessions(run_id="one")
    assert database.register("/p", "two")["session_id"] == "pending:/p"
    assert len(database.all()) == 1
