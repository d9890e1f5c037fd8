"""A session that starts in the process of another one takes its place."""

import pytest
from support.plate_reports import report, status

HOST = {"host": "here", "pid": 5, "pid_started": 1234}


@pytest.fixture
def waiting(database):
    """Return a database with a session that waits for the person."""
    database.record(report("prompt_submit", ts=1000, **HOST))
    database.record(report("permission_asked:Bash", ts=2000, **HOST))
    return database


@pytest.mark.parametrize("source", ["clear", "resume", "startup", "fork"])
def test_the_session_before_is_closed_although_nothing_reported_its_end(waiting, source):
    waiting.record(report("session_start", session_id="new", source=source, ts=3000, **HOST))
    assert (status(waiting), waiting.get("new")["status"]) == ("closed", "running")
    assert waiting.events_of("s", 1)[0]["ts"] == 3000


@pytest.mark.parametrize(
    "fields",
    [
        {"session_id": "s"},
        {"pid": 6},
        {"pid_started": 1235},
        {"host": "there"},
        {"pid_is_guess": True},
        {"pid": None, "pid_started": None},
        {"source": "compact"},
        {"source": None},
        {"event_type": "prompt_submit"},
        {"ts": 1500},
    ],
)
def test_otherwise_it_stays(waiting, fields):
    started = {"session_id": "new", "source": "clear", "ts": 3000, "mono": None, **HOST, **fields}
    waiting.record(report(started.pop("event_type", "session_start"), **started))
    assert status(waiting) != "closed"


@pytest.mark.parametrize(("program", "then"), [("claude-code", "closed"), (None, "awaiting_approval")])
@pytest.mark.parametrize("confirmed_at", [None, 1_800_000_000.5])
def test_on_macos_the_session_before_is_closed_although_no_hook_knows_the_start(database, program, then, confirmed_at):
    fields = {"host": "here", "pid": 5, "agent_program": program}
    database.record(report("prompt_submit", ts=1000, **fields))
    database.record(report("permission_asked:Bash", ts=2000, **fields))
    if confirmed_at:
        database.confirm_process(database.get("s"), confirmed_at)
    database.record(report("session_start", session_id="new", source="clear", ts=3000, **fields))
    assert (status(database), database.get("new")["status"]) == (then, "running")


def test_its_late_events_do_not_open_it_and_a_resume_does(waiting):
    waiting.record(report("session_start", session_id="new", source="clear", ts=3000, **HOST))
    waiting.record(report("tool_call:Bash", ts=4000, **HOST))
    assert status(waiting) == "closed"
    waiting.record(report("session_start", source="resume", ts=5000, **HOST))
    assert (status(waiting), waiting.get("new")["status"]) == ("running", "closed")
