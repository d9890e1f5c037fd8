"""The daemon's database stores every event once and derives the plates from them, on SQLite and PostgreSQL."""

import json
import threading
from typing import get_args, get_type_hints

import pytest
import sqlalchemy as sa
from support.plate_events import parse_event
from support.plate_reports import report, status
from support.usual_secrets import SECRETS, is_shown, written

from tailhook.machines.plates import Status
from tailhook.plates import rows
from tailhook.plates.db import Database, SpoolLine, SpoolOffset
from tailhook.plates.display import describe_plate
from tailhook.plates.rows import empty_plate
from tailhook.plates.schemas import unix_ms
from tailhook.plates.tables import Plate, plates


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


def test_a_plate_is_read_and_written_once_for_all_its_events_in_a_transaction(database):
    asked = []

    @sa.event.listens_for(database.engine, "before_cursor_execute")
    def note(_connection, _cursor, statement, *_):
        asked.append(" ".join(statement.split()[:3]))

    kinds = ["prompt_submit", *["tool_start:Bash", "tool_call"] * 40, "stop"]
    lines = [SpoolLine(None, report(kind, session=name)) for kind in kinds for name in ("a", "b")]
    assert database.record_lines(lines, clock=lambda: 0) == (len(lines), len(lines))
    assert sum(words.startswith("UPDATE plates") for words in asked) == 2
    assert sum(words.startswith("INSERT INTO plates") for words in asked) == 2
    assert sum(words.startswith("SELECT plates") for words in asked) <= 4
    alone = [report(kind, session="alone") for kind in kinds]
    for one in alone:
        database.record(one)
    unlike = {"session_id", "created_at", "updated_at", "since", "event_ts", "event_mono", "version"}
    unlike |= {"prompted_at", "finished_at"}
    together, apart = (
        {field: value for field, value in database.get(name).items() if field not in unlike} for name in ("a", "alone")
    )
    assert together == apart
    assert [plate["status"] for plate in database.reported[:2]] == ["idle", "idle"]


def test_events_of_a_plate_that_another_process_changes_meanwhile_are_applied_to_the_new_one(database, monkeypatch):
    """As in a database of a team: the transaction begins again, and loses nothing."""
    database.record(report("prompt_submit"))
    insert, raced = rows.insert_report, []

    def interrupted(tx, *given):
        found = insert(tx, *given)
        if not raced:
            raced.append(tx.execute(sa.update(plates).values(version=plates.c.version + 1, git_branch="theirs")))
        return found

    monkeypatch.setattr("tailhook.plates.db.insert_report", interrupted)
    lines = [SpoolLine(None, report(kind)) for kind in ("tool_start:Bash", "stop")]
    batch = database.record_lines(lines, clock=lambda: 0)
    assert batch == (2, 2)
    assert len(raced) == 1
    assert status(database) == "idle"
    assert database.event_counts() == {"prompt_submit": 1, "tool_start": 1, "stop": 1}


def test_what_no_database_can_keep_of_a_tool_is_made_fit(database):
    database.record(report("stop", tool_params={"a\0": ["\ud800", float("nan"), {"b": float("-inf")}, 1.5, None]}))
    [event] = database.events_of("s", 1)
    assert event["tool_params"] == {"a\ufffd": ["\ufffd", None, {"b": None}, 1.5, None]}


def test_no_secret_of_an_error_or_a_tools_input_is_stored(database):
    for name in SECRETS:
        _, text = written(name)
        nested = {"command": text, "deep": [{"of": [f"a {text}"]}], "password": "hunter2hunter", "count": 3}
        database.record(report("tool_call:Bash", tool_params=nested, error=f"Command failed: {text}\nexit 1"))
        stored = [*database.events_of("s", 1), database.get("s")]
        assert not is_shown(name, json.dumps(stored, default=str)), (name, stored)
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


# The process by the events, a guess marked by "?", and the plate's process after each.
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
            agent_program="codex",
            terminal={"TMUX_PANE": "%3"},
            run_id="r",
            pid=5,
            host="h",
            user="u",
        )
    )
    database.record(report("tool_start:Bash", tool_params={"command": "make"}, ts=2000))
    plate = describe_plate(database.get("s"), "web")
    assert plate.pop("rank").startswith("3-")
    assert plate.pop("created_at") <= plate.pop("updated_at")
    assert plate.pop("since") == "1970-01-01T00:00:01.000Z"
    assert plate == {
        "session_id": "s",
        "project_path": "/p",
        "folder": None,
        "title": None,
        "prompt": None,
        "headline": "",
        "hidden": False,
        "tokens_used": None,
        "transcript_path": "/t.jsonl",
        "git_branch": "main",
        "status": Status.RUNNING,
        "last_event_type": "tool_start",
        "last_tool": "Bash",
        "todo_progress": "3/7",
        "error": None,
        "context_used": None,
        "agent_program": "codex",
        "resume": "cd /p && codex resume s",
        "run_id": "r",
        "pid": 5,
        "host": "h",
        "user": "u",
        "name": "web",
        "group": "working",
        "symbol": "●",
        "status_words": "running",
        "tone": "running",
        "silent_since": None,
        "quiet_since": None,
        "activity": {"words": "", "tool": "Bash", "text": "make", "choices": [], "is_code": True},
        "agents": 0,
        "turn_since": None,
        "turn_until": None,
        "unseen": False,
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
    for found in ("health_check_recovery", "tool_call", "interrupted"):
        database.apply(database.get("s"), parse_event(found))
    database.record(report("interrupted", ts=now - 50, mono=None))  # a hook reports it, too
    reported, ahead, lag = database.lags(10)
    assert reported >= 50
    assert ahead == 0
    assert 50 <= lag < 30_000


@pytest.mark.parametrize(("size", "kept"), [(None, None), (0, 0), (2**53, 2**53), (2**53 + 1, None), (2**80, None)])
def test_an_event_with_an_impossible_size_of_its_transcript_counts_without_it(database, size, kept):
    database.record(report("stop", transcript_size=size))
    assert (status(database), database.get("s")["transcript_size"]) == ("idle", kept)
