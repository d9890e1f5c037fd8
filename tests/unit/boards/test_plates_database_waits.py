"""A session's wait outlives the daemon, and another event does not replace it."""

from support.plate_reports import asked, ended, report, status

from tailhook.plates.db import Database
from tailhook.plates.display import describe_plate


def test_a_wait_outlives_the_daemon(url):
    for one in (
        asked("a"),
        report("tool_start:Bash", tool_use_id="b"),
        ended("Bash", "b"),
        ended("AskUserQuestion", "a"),
    ):
        database = Database(url)  # restarted before each event
        database.record(one)
        last = status(database)
        database.close()
        assert last == ("running" if one.tool_use_id == "a" and one.event_type == "tool_call" else "awaiting_input")


def test_a_subagents_wait_outlives_the_daemon_with_what_is_beneath(url):
    theirs = {"agent_id": "x", "tool_name": "Bash"}
    expected = ["idle", "idle", "awaiting_approval", "awaiting_approval", "idle"]
    reports = [
        report("stop"),
        report("tool_start", tool_use_id="b", **theirs),
        report("permission_asked", **theirs),
        report("stop"),
        report("tool_call", tool_use_id="b", **theirs),
    ]
    for one, after in zip(reports, expected, strict=True):
        database = Database(url)
        database.record(one)
        found = status(database)
        database.close()
        assert found == after


def test_an_event_that_moves_nothing_is_kept_for_the_timeline(database):
    database.record(asked("a", git_branch="main", tool_params={"command": "ask"}))
    before = describe_plate(database.get("s"), "")
    beside = {"project_path": "/elsewhere", "git_branch": "other", "tool_params": {"todos_done": 1, "todos": 2}}
    database.record(report("tool_start:TodoWrite", tool_use_id="b", agent_id="x", **beside))
    [_, event] = database.events_of("s", 10)
    assert (event["status"], event["agent_id"], event["tool_use_id"]) == (None, "x", "b")
    after = describe_plate(database.get("s"), "")
    changed = {name for name in after if after[name] != before[name]}
    assert changed <= {"updated_at", "todo_progress", "agents"}


def test_a_tool_beside_the_one_that_is_waited_for_is_not_the_one_that_is_shown(database):
    database.record(asked("a"))
    database.record(report("tool_start:Bash", tool_use_id="b"))
    plate = database.get("s")
    assert (plate["last_tool"], plate["last_event_type"]) == ("AskUserQuestion", "tool_start")
    assert [event["status"] for event in database.events_of("s", 10)] == ["awaiting_input", None]


def test_only_a_tools_start_or_a_permission_changes_the_tool_that_is_shown(database):
    database.record(report("tool_start:Read", tool_use_id="a"))
    database.record(report("stop", tool_name="Bash"))
    assert database.get("s")["last_tool"] == "Read"
    database.record(report("tool_start", tool_use_id="b"))
    assert database.get("s")["last_tool"] == "Read"


def test_a_permission_shows_the_tool_that_it_is_about(database):
    for name in ("Read", "Bash"):
        database.record(report(f"tool_start:{name}", tool_use_id=name))
    database.record(report("permission_asked", tool_name="Read"))
    assert (status(database), database.get("s")["last_tool"]) == ("awaiting_approval", "Read")


def test_a_subagents_permission_is_an_event_that_changed_the_status(database):
    database.record(report("tool_start:Edit"))
    database.record(report("tool_start:Bash", agent_id="x"))
    assert database.get("s")["last_tool"] == "Edit"
    database.record(report("stop"))
    database.record(report("permission_asked", tool_name="Bash", agent_id="x"))
    assert database.events_of("s", 1)[0]["status"] == "awaiting_approval"
    plate = database.get("s")
    assert (plate["last_event_type"], plate["last_tool"], plate["beneath"]) == ("permission_asked", "Bash", "idle")


def test_the_permissions_tool_is_found_by_its_command_or_file(database):
    for tool_use_id, params in (("a", {"file_path": "/a"}), ("b", {"file_path": "/b"})):
        database.record(report("tool_start:Read", tool_use_id=tool_use_id, tool_params=params))
    database.record(report("permission_asked", tool_name="Read", tool_params={"file_path": "/a"}))
    database.record(ended("Read", "b"))
    assert status(database) == "awaiting_approval"
    database.record(ended("Read", "a"))
    assert status(database) == "running"


def test_what_distinguishes_uses_of_a_tool_is_bounded(database):
    database.record(report("tool_start:" + "n" * 50_000, tool_params={"command": "c" * 50_000}))
    [(_, name, about, _, _)] = database.get("s")["tools"]
    assert (name, about) == ("n" * 200, "c" * 199 + "…")


def test_the_first_event_of_a_session_may_be_a_subagents(database):
    database.record(report("tool_start:Bash", agent_id="x", pid=5, pid_started=50), owner="k")
    plate = database.get("s")
    assert (plate["status"], plate["owner"], plate["pid"]) == ("starting", "k", 5)
    database.record(report("tool_start:Bash"))
    assert status(database) == "running"


def test_a_closed_plate_is_moved_by_no_subagent(database):
    for kind in ("session_start", "session_end"):
        database.record(report(kind))
    for kind in ("tool_start:Bash", "permission_asked", "tool_call"):
        database.record(report(kind, agent_id="x"))
    assert (status(database), database.get("s")["tools"]) == ("closed", None)
