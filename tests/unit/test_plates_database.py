"""The daemon's database stores every event once and derives the plates from them, on SQLite and PostgreSQL."""

import json
import os
import subprocess
import sys
import threading
import time
from itertools import count
from typing import get_args, get_type_hints

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory
from support.plate_events import parse_event
from support.postgres import postgres, wait_for
from support.usual_secrets import SECRETS, is_shown, written

from tailhook.machines.plates import Status
from tailhook.plates.db import Database, Moment, SpoolOffset, empty_plate
from tailhook.plates.display import describe_plate
from tailhook.plates.schemas import Report, unix_ms
from tailhook.plates.tables import Plate, events, metadata, migration_config, plates

numbers = count(1)


@pytest.fixture(scope="module")
def server():
    """Yield a PostgreSQL server, or None if it is not installed."""
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Return the URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/plates.db"
    base = request.getfixturevalue("server")
    if base is None:
        pytest.skip("PostgreSQL is not installed")
    name = f"test_{os.getpid()}_{next(numbers)}"
    wait_for(base)
    admin = sa.create_engine(base, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    admin.dispose()
    return base.replace("/postgres", f"/{name}")


@pytest.fixture
def database(url):
    """Yield an open database; `reported` has what it reports as changed, `gone` what it reports as gone."""
    reported, gone = [], []
    made = Database(url, reported.append, gone.append)
    made.reported, made.gone = reported, gone
    yield made
    made.close()


def report(kind, session="s", **fields):
    """Return a report.

    kind: the short form of an event.
    """
    word, _, rest = kind.partition(":")
    extra = {"tool_name": rest} if word == "tool_start" else {"error": rest} if rest else {}
    number = next(numbers)
    common = {"session_id": session, "project_path": "/p", "event_type": word, "ts": number, "mono": number}
    return Report(**{**common, "event_id": f"e{number}", **extra, **fields})


def status(database, session="s"):
    return database.get(session)["status"]


# ---- events ------------------------------------------------------------------


def test_a_plate_follows_its_events(database):
    for kind, expected in [
        ("session_start", "running"),
        ("tool_start:AskUserQuestion", "awaiting_input"),
        ("tool_call", "running"),
        ("stop", "idle"),
        ("stop:overloaded", "error"),
        ("session_end", "closed"),
        ("prompt_submit", "running"),
    ]:
        assert database.record(report(kind))
        assert status(database) == expected
        assert database.reported[-1]["status"] == expected
    assert [event["status"] for event in database.events_of("s", 3)] == ["error", "closed", "running"]


def test_what_no_database_can_keep_of_a_tool_is_made_fit(database):
    database.record(report("stop", tool_params={"a\0": ["\ud800", float("nan"), {"b": float("-inf")}, 1.5, None]}))
    [event] = database.events_of("s", 1)
    assert event["tool_params"] == {"a\ufffd": ["\ufffd", None, {"b": None}, 1.5, None]}


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_of_an_error_or_a_tools_input_is_stored(database, name):
    _, text = written(name)
    nested = {"command": text, "deep": [{"of": [f"a {text}"]}], "password": "hunter2hunter", "count": 3}
    database.record(report("tool_call:Bash", tool_params=nested, error=f"Command failed: {text}\nexit 1"))
    stored = [*database.events_of("s", 1), database.get("s")]
    assert not is_shown(name, json.dumps(stored, default=str)), stored
    params = stored[0]["tool_params"]
    assert (params["password"], params["count"]) == ("[secret]", 3)
    assert stored[0]["error"].startswith("Command failed: ")


def test_an_error_and_a_tools_input_without_a_secret_are_stored_as_they_are(database):
    text = "ls -la:  no such file\n\t(os error 2)\u00a0"
    database.record(report("tool_call:Bash", tool_params={"command": text, "n": [1, None]}, error=text))
    [event] = database.events_of("s", 1)
    assert (event["error"], event["tool_params"]) == (text, {"command": text, "n": [1, None]})


def test_an_event_that_is_known_changes_nothing(database):
    first = report("tool_start:ExitPlanMode")
    assert database.record(first)
    database.record(report("stop"))
    before = database.get("s")
    assert not database.record(first)
    assert database.get("s") == before
    assert len(database.events_of("s", 10)) == 2


def process(database):
    """Return the plate's process and its start, or None if it is a guess."""
    plate = database.get("s")
    return None if plate["pid_is_guess"] else (plate["pid"], plate["pid_started"])


# What events report about the process, a guess marked by "?", and what holds after each.
PROCESSES = [
    [("tool_call", "5 50", (5, 50))],
    [("tool_call", "5 50?", None), ("tool_call", "5 50?", (5, 50))],  # a shell around a hook is in one event alone
    [("tool_call", "5 50?", None), ("tool_call", "6 60?", None), ("tool_call", "6 60?", (6, 60))],
    [("tool_call", "5 50?", None), ("tool_call", "5 51?", None)],  # its number belongs to another one now
    [("tool_call", "5 -?", None), ("tool_call", "5 -?", (5, None))],  # on macOS no hook knows the start
    [("tool_call", "5 50", (5, 50)), ("tool_call", "6 60?", (5, 50)), ("tool_call", "6 60?", (5, 50))],
    [("tool_call", "5 50", (5, 50)), ("tool_call", "5 50?", (5, 50)), ("tool_call", "-", (5, 50))],
    [("tool_call", "5 50", (5, 50)), ("tool_call", "5 -", (5, 50)), ("tool_call", "6 60", (6, 60))],
    [("tool_call", "5 50?", None), ("tool_call", "6 60", (6, 60))],
    [("tool_call", "5 50", (5, 50)), ("session_start", "6 60?", None), ("tool_call", "6 60?", (6, 60))],
    [("tool_call", "5 50", (5, 50)), ("session_start", "5 50?", (5, 50)), ("session_start", "-", (5, 50))],
    # Opened again: the old process is gone.
    [("stop", "5 50", (5, 50)), ("session_end", "-", (5, 50)), ("prompt_submit", "-", (None, None))],
    [("stop", "5 50", (5, 50)), ("session_end", "-", (5, 50)), ("prompt_submit", "6 60?", None)],
    [("stop", "5 50", (5, 50)), ("session_end", "-", (5, 50)), ("prompt_submit", "6 60", (6, 60))],
    [("stop", "5 50", (5, 50)), ("session_end", "-", (5, 50)), ("prompt_submit", "5 -", (5, None))],
]


@pytest.mark.parametrize("events", PROCESSES)
def test_which_process_a_session_is(database, events):
    for kind, said, expected in events:
        pid, _, started = said.rstrip("?").partition(" ")
        database.record(
            report(
                kind,
                pid=None if pid == "-" else int(pid),
                pid_started=int(started) if started.isdigit() else None,
                pid_is_guess=said.endswith("?"),
            )
        )
        assert process(database) == expected


def test_an_event_that_comes_twice_confirms_no_process(database):
    guess = report("tool_call", pid=5, pid_started=50, pid_is_guess=True)
    database.record(guess)
    database.record(guess)
    assert process(database) is None


def test_an_older_event_is_kept_and_overrides_nothing(database):
    late = report("permission_asked")
    database.record(report("prompt_submit"))
    assert database.record(late)
    assert status(database) == "running"
    assert [event["status"] for event in database.events_of("s", 10)] == ["running", None]


def test_a_late_event_fills_what_is_empty_and_overrides_nothing(database):
    late = [report("stop", git_branch=branch, transcript_path="/t") for branch in ("older", "oldest")]
    database.record(report("prompt_submit", git_branch="main", project_path="/new"))
    for one in late:
        database.record(one)
    plate = database.get("s")
    assert (plate["git_branch"], plate["transcript_path"], plate["project_path"]) == ("main", "/t", "/new")


def test_a_late_event_under_a_clock_that_is_ahead_is_late(database):
    ahead = unix_ms() + 3_600_000
    database.record(report("prompt_submit", ts=ahead, mono=5000))
    database.record(report("stop", ts=ahead - 60_000, mono=4000))
    assert status(database) == "running"


def test_a_clock_that_was_set_back_makes_no_event_an_old_one(database):
    database.record(report("prompt_submit", ts=10_000_000, mono=5000))
    database.record(report("stop", ts=6_000_000, mono=6000))
    assert status(database) == "idle"


def test_a_machine_that_was_restarted_makes_no_event_an_old_one(database):
    database.record(report("prompt_submit", ts=1000, mono=5_000_000))
    database.record(report("stop", ts=2000, mono=100))
    assert status(database) == "idle"


def test_without_a_second_clock_the_older_time_is_older(database):
    database.record(report("prompt_submit", ts=2000, mono=None))
    database.record(report("stop", ts=1000, mono=None))
    assert status(database) == "running"


@pytest.mark.parametrize("ahead", [3_600_000, 10**11])
def test_a_time_that_is_yet_to_come_makes_no_later_event_an_old_one(database, ahead):
    database.record(report("session_start", ts=unix_ms() + ahead, mono=None))
    database.record(report("stop", ts=unix_ms(), mono=5000))
    assert status(database) == "idle"


@pytest.mark.parametrize("kind", ["tool_start:Bash", "tool_call", "stop", "stop:x", "permission_asked", "stop_failure"])
def test_a_closed_plate_stays_closed(database, kind):
    database.record(report("session_start"))
    database.record(report("session_end"))
    before = database.get("s")
    database.record(report(kind, project_path="/other", git_branch="main"))
    after = database.get("s")
    changed = {name for name in after if after[name] != before[name]}
    assert changed <= {"git_branch", "updated_at", "version"}
    assert [event["status"] for event in database.events_of("s", 9)] == ["running", "closed", None]


@pytest.mark.parametrize("kind", ["session_start", "prompt_submit"])
def test_what_is_older_than_the_closing_does_not_open_again(database, kind):
    database.record(report("tool_call"))
    assert database.close_sessions(session_id="s")
    database.record(report(kind))  # its clocks are those of the first days of 1970
    assert status(database) == "closed"
    database.record(report(kind, ts=unix_ms() + 1000, mono=None))
    assert status(database) == "running"


def test_an_unknown_type_begins_no_plate_and_is_counted_and_kept_once(database):
    first = report("coffee_break")
    assert database.record(first, SpoolOffset("file", 7))
    assert (database.get("s"), database.reported, database.offset("file")) == (None, [], 7)
    assert not database.record(first)
    database.record(report("stop"))
    assert not database.record(first)
    assert database.record(report("coffee_break"))
    assert database.event_counts() == {"stop": 1, "coffee_break": 2}
    assert [event["event_type"] for event in database.events_of("s", 10)] == ["stop", "coffee_break"]


def test_an_unknown_type_takes_no_placeholder_away(database):
    database.register("/p", "run", pid=77)
    database.record(report("coffee_break", run_id="run"))
    assert [plate["session_id"] for plate in database.all()] == ["pending:/p"]
    assert database.gone == []


def test_events_of_an_unknown_type_are_forgotten_like_others(database):
    database.record(report("coffee_break"))
    database.prune(1)
    assert database.event_counts() == {"coffee_break": 1}
    database.prune(-1)
    assert database.event_counts() == {}


def test_the_longest_names_are_kept(database):
    letters = "".join(chr(0x10000 + number * 7919 % 100_000) for number in range(4000))
    one = report("stop", session=letters[:500], event_id=letters[500:1000], run_id=letters[-500:], project_path=letters)
    assert database.record(one)
    assert database.all(project=letters)[0]["session_id"] == letters[:500]


def test_an_unknown_type_is_kept_and_changes_nothing(database):
    database.record(report("stop"))
    before = database.get("s")
    database.record(report("coffee_break"))
    assert database.get("s") == before
    assert database.event_counts() == {"stop": 1, "coffee_break": 1}


def test_the_typed_plate_has_the_columns_of_the_table():
    hints = get_type_hints(Plate)
    assert list(hints) == list(empty_plate("s", "/p", 0)) == plates.columns.keys()
    assert {name for name, hint in hints.items() if type(None) in get_args(hint)} == {
        name for name, column in plates.columns.items() if column.nullable
    }
    assert plates.columns.owner.name == "keeper"  # databases have the name of an older version


def test_the_api_shows_all_fields_of_a_plate(database):
    database.record(
        report(
            "tool_start:TodoWrite",
            ts=1000,
            transcript_path="/t.jsonl",
            git_branch="main",
            tool_params={"todos_done": 3, "todos": 7},
            run_id="r",
            pid=5,
            host="h",
            user="u",
        )
    )
    database.record(report("tool_start:Bash", tool_params={"command": "make"}, ts=2000))
    plate = describe_plate(database.get("s"), "web")
    assert plate.pop("rank").startswith("1-")
    assert plate.pop("created_at") <= plate.pop("updated_at")
    assert plate.pop("since") == "1970-01-01T00:00:01.000Z"
    assert plate == {
        "session_id": "s",
        "project_path": "/p",
        "transcript_path": "/t.jsonl",
        "git_branch": "main",
        "status": Status.RUNNING,
        "last_event_type": "tool_start",
        "last_tool": "Bash",
        "todo_progress": "3/7",
        "error": None,
        "run_id": "r",
        "pid": 5,
        "host": "h",
        "user": "u",
        "name": "web",
        "group": "running",
        "symbol": "●",
        "status_words": "running",
        "tone": "running",
        "detail": "Bash",
        "search": "/p\nmain\nrunning\nbash\nh\nu\ns",
    }


def test_an_error_is_shown_until_the_session_goes_on(database):
    database.record(report("stop_failure", error="rate_limit"))
    assert database.get("s")["error"] == "rate_limit"
    database.record(report("prompt_submit"))
    assert database.get("s")["error"] is None


def test_an_error_of_a_stop_is_shown_and_that_of_a_tool_is_not(database):
    database.record(report("stop:overloaded"))
    assert database.get("s")["error"] == "overloaded"
    database.record(report("tool_call", error="no such file"))
    assert (status(database), database.get("s")["error"]) == ("running", None)


def test_an_error_that_a_session_recovered_from_is_shown_no_more(database):
    database.record(report("stop_failure", error="rate_limit"))
    database.apply(database.get("s"), parse_event("health_check_recovery"))
    assert (status(database), database.get("s")["error"]) == ("idle", None)


def test_an_error_that_a_session_ended_with_is_shown(database):
    database.record(report("stop_failure", error="rate_limit"))
    database.close_sessions(session_id="s")
    assert (status(database), database.get("s")["error"]) == ("closed", "rate_limit")


def test_eight_writers_at_once_lose_and_double_nothing(url):
    databases = [Database(url) for _ in range(4)]
    reports = [report("tool_call", session=f"s{number % 5}") for number in range(200)]
    failed = []

    def write(database):
        try:
            for one in reports:
                database.record(one)
        except Exception as error:  # reported below, in the test's own thread
            failed.append(error)

    threads = [threading.Thread(target=write, args=(databases[number % 4],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert databases[0].event_counts() == {"tool_call": 200}
    for database in databases:
        database.close()


# ---- waits -------------------------------------------------------------------


def asked(tool_use_id, **fields):
    """Return a report of a question to the person."""
    return report("tool_start:AskUserQuestion", tool_use_id=tool_use_id, **fields)


def ended(name, tool_use_id, **fields):
    """Return a report of a tool's end."""
    return report("tool_call", tool_name=name, tool_use_id=tool_use_id, **fields)


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
    assert changed <= {"updated_at", "todo_progress"}


def test_a_tool_beside_the_one_that_is_waited_for_is_not_the_one_that_is_shown(database):
    database.record(asked("a"))
    database.record(report("tool_start:Bash", tool_use_id="b"))
    plate = database.get("s")
    assert (plate["last_tool"], plate["last_event_type"]) == ("AskUserQuestion", "tool_start")
    assert [event["status"] for event in database.events_of("s", 10)] == ["awaiting_input", None]


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
    assert (name, about) == ("n" * 200, "c" * 200)


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


# ---- since when --------------------------------------------------------------


def since(database):
    return database.get("s")["since"]


def test_a_status_holds_since_the_event_that_changed_it(database):
    for at, kind, expected in [
        (1000, "prompt_submit", 1000),
        (2000, "tool_start:Bash", 1000),
        (3000, "tool_call", 1000),
        (4000, "tool_start:AskUserQuestion", 4000),
        (5000, "tool_start:Bash", 4000),
        (6000, "stop", 6000),
    ]:
        database.record(report(kind, ts=at, mono=at))
        assert since(database) == expected


def test_a_wait_that_was_spooled_for_hours_has_lasted_for_hours(database):
    hours = 3 * 3_600_000
    database.record(report("permission_asked", ts=unix_ms() - hours, mono=None))
    assert unix_ms() - since(database) >= hours


def test_a_late_event_that_fills_a_field_changes_no_age(database):
    database.record(report("stop", ts=5000, mono=5000))
    database.record(report("tool_call", ts=4000, mono=4000, git_branch="main"))
    assert (since(database), database.get("s")["git_branch"]) == (5000, "main")


def test_a_late_end_of_a_wait_counts_from_when_it_happened(database):
    database.record(asked("a", ts=1000, mono=1000))
    database.record(report("tool_start:Bash", tool_use_id="b", ts=3000, mono=3000))
    database.record(ended("AskUserQuestion", "a", ts=2000, mono=2000))
    assert (status(database), since(database)) == ("running", 2000)
    assert database.get("s")["event_ts"] == 3000


@pytest.mark.parametrize("ahead", [60_000, 10**12])
def test_no_status_begins_in_the_future(database, ahead):
    before = unix_ms()
    database.record(report("stop", ts=before + ahead, mono=5))
    assert before <= since(database) <= unix_ms()


def test_a_clock_that_was_set_back_makes_no_age_negative(database):
    database.record(report("prompt_submit", ts=10_000_000, mono=5000))
    database.record(report("stop", ts=6_000_000, mono=6000))
    assert since(database) == 6_000_000


def test_what_the_daemon_finds_counts_from_when_it_finds_it(database):
    database.record(report("tool_start:ExitPlanMode", ts=1000, mono=None))
    database.apply(database.get("s"), parse_event("health_check_recovery"), Moment(9000, None))
    assert since(database) == 9000
    database.apply(database.get("s"), parse_event("session_end"), Moment(9500, None))
    assert since(database) == 9500


def test_a_placeholder_holds_since_its_registration(database):
    placeholder = database.register("/p", "run")
    database.record(report("coffee_break", run_id="run"))
    assert database.all()[0]["since"] == placeholder["since"] == placeholder["created_at"]


# ---- times that cannot be ----------------------------------------------------

END_OF_TIME = 8_640_000_000_000_000


@pytest.mark.parametrize("mono", [END_OF_TIME, None, 5])
def test_an_event_from_the_end_of_time_makes_no_later_one_an_old_one(database, mono):
    database.record(report("prompt_submit", ts=END_OF_TIME, mono=mono))
    database.record(report("stop", ts=unix_ms() + 1, mono=10))
    assert status(database) == "idle"


def test_a_time_within_a_day_is_kept_and_a_later_one_is_the_present():
    day = 86_400_000
    now = unix_ms()
    assert report("stop", ts=now + day - 10_000).ts == now + day - 10_000
    assert now <= report("stop", ts=now + day + 10_000).ts <= unix_ms()
    assert report("stop", ts=0).ts == 0


def test_no_machine_has_run_for_more_than_a_hundred_years():
    century = 100 * 366 * 86_400_000
    assert report("stop", mono=century).mono == century
    assert report("stop", mono=century + 1).mono is None


# ---- older databases ---------------------------------------------------------


REVISIONS = [one.revision for one in ScriptDirectory.from_config(migration_config()).walk_revisions()]  # newest first


def columns_in(connection):
    """The columns of each table."""
    found = sa.inspect(connection)
    tables = set(metadata.tables) & set(found.get_table_names())
    return {name: {column["name"] for column in found.get_columns(name)} for name in tables}


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_a_database_of_every_earlier_version_is_brought_to_the_newest_one_and_back(url, revision):
    engine = sa.create_engine(url)
    config = migration_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        before = columns_in(connection)
        row = {"session_id": "s", "project_path": "/p", "status": "awaiting_input"}
        row |= {"created_at": 1, "updated_at": 77, "since": 77, "event_ts": 0, "version": 3}
        names = [name for name in row if name in before["plates"]]
        values = ", ".join(f":{name}" for name in names)
        connection.execute(sa.text(f"INSERT INTO plates ({', '.join(names)}) VALUES ({values})"), row)
    database = Database(url)
    plate = database.get("s")
    assert (plate["since"], plate["tools"], plate["unprompted"], plate["owner"]) == (77, None, None, None)
    database.record(ended("AskUserQuestion", "a"))
    assert status(database) == "running"
    database.close()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
        assert columns_in(connection) == before
    engine.dispose()


# ---- the daemon's own events -------------------------------------------------


def test_a_recovery_overwrites_no_newer_event(database):
    database.record(report("tool_start:ExitPlanMode"))
    read = database.get("s")
    database.record(report("tool_start:AskUserQuestion"))
    assert not database.apply(read, parse_event("health_check_recovery"))
    assert status(database) == "awaiting_input"
    assert database.apply(database.get("s"), parse_event("health_check_recovery"))
    assert status(database) == "idle"
    assert database.reported[-1]["status"] == "idle"


def test_lags_are_those_of_the_hooks_events(database):
    now = unix_ms()
    database.record(report("tool_start:ExitPlanMode", ts=now - 50, mono=None))
    database.record(report("permission_asked", ts=now + 60_000, mono=None))  # by a clock that is ahead
    database.apply(database.get("s"), parse_event("health_check_recovery"))
    ahead, lag = database.lags(5)
    assert ahead == 0
    assert 50 <= lag < 30_000


# ---- the wrapper's placeholders ----------------------------------------------


def test_a_session_takes_its_placeholders_place(database):
    placeholder = database.register("/p", "run", pid=77)
    assert (placeholder["session_id"], placeholder["status"]) == ("pending:/p", "starting")
    database.record(report("session_start", run_id="run"))
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


# ---- reading and forgetting --------------------------------------------------


def test_plates_are_listed_newest_first_and_filtered(database):
    for session, project in (("a", "/one"), ("b", "/two"), ("c", "/one")):
        database.record(report("session_start", session=session, project_path=project))
        time.sleep(0.002)
    database.record(report("stop", session="a", project_path="/one"))
    assert [plate["session_id"] for plate in database.all()] == ["a", "c", "b"]
    assert [plate["session_id"] for plate in database.all(status="running")] == ["c", "b"]
    assert [plate["session_id"] for plate in database.all(project="/one")] == ["a", "c"]
    assert [plate["session_id"] for plate in database.all(status="idle", project="/two")] == []
    assert database.counts()["running"] == 2


def test_a_deleted_plate_takes_its_events_along(database):
    database.record(report("session_start"))
    assert database.delete("s")
    assert not database.delete("s")
    assert database.gone == ["s"]
    assert database.get("s") is None
    assert database.event_counts() == {}


def test_what_did_not_change_for_too_long_is_forgotten(database):
    database.record(report("session_start"))
    assert database.prune(days=1) == 0
    time.sleep(0.01)
    assert database.prune(days=0.005 / 86400) == 1
    assert len(database.gone) == 1
    assert database.all() == []


def test_old_events_of_a_living_plate_are_forgotten_and_its_status_is_not(database):
    database.record(report("session_start", event_id="old", git_branch="main"))
    database.record(report("tool_start:AskUserQuestion", event_id="last"))
    with database.engine.begin() as tx:
        tx.execute(sa.update(events).values(received_at=0))
    before = database.get("s")
    database.record(report("coffee_break", event_id="new"))
    assert database.prune(days=1) == 0
    assert [event["event_id"] for event in database.events_of("s", 9)] == ["new"]
    assert database.get("s") == before
    assert database.gone == []


def test_the_offset_of_a_spool_moves_with_its_event(database):
    assert database.offset("f") == 0
    database.record(report("stop"), SpoolOffset("f", 10))
    database.record(report("stop"), SpoolOffset("f", 25))
    database.move_offset(SpoolOffset("g", 5))
    assert (database.offset("f"), database.offset("g")) == (25, 5)
    database.forget_file("f")
    assert database.offset("f") == 0


def test_opening_again_changes_nothing_and_the_tables_are_those_of_the_code(database, url):
    database.record(report("stop"))
    again = Database(url)
    assert len(again.all()) == 1
    found = sa.inspect(again.engine)
    for table in metadata.tables.values():
        assert {column["name"] for column in found.get_columns(table.name)} == {column.name for column in table.columns}
    again.close()


# ---- the first start -----------------------------------------------------------

OPEN = "import sys; from tailhook.plates.db import Database; Database(sys.argv[1]).close()"
DIES = """
import os, sys
from alembic.operations import Operations
make = Operations.create_table
def make_one(*words, **more):
    make(*words, **more)
    os._exit(7)
Operations.create_table = make_one
"""


def opening(code, url):
    """Start a process that opens the database."""
    return subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE, text=True)


def test_one_that_is_killed_while_it_makes_the_tables_is_not_a_hindrance(url):
    killed = opening(DIES + OPEN, url)
    assert (killed.communicate()[1], killed.returncode) == ("", 7)
    again = Database(url)
    again.record(report("stop"))
    again.close()


def test_several_at_once_make_the_tables_once(url):
    processes = [opening(OPEN, url) for _ in range(6)]
    assert [process.communicate()[1] for process in processes] == [""] * 6


@pytest.mark.parametrize(("size", "kept"), [(None, None), (0, 0), (2**53, 2**53), (2**53 + 1, None), (2**80, None)])
def test_an_event_with_an_impossible_size_of_its_transcript_counts_without_it(database, size, kept):
    database.record(report("stop", transcript_size=size))
    assert (status(database), database.get("s")["transcript_size"]) == ("idle", kept)
