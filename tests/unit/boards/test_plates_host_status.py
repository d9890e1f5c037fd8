"""The host's own word about a session, in its file: it ends a turn and a wait that no hook reports."""

import json

import pytest
from support.cases import in_one_test
from support.plate_situations import APPROVAL, IDLE, INPUT, RUNNING, happen, play

from tailhook.machines.plates import HOST, Event, EventKind, HostStatus, Look, Situation, judge_host_status
from tailhook.plates.asked import read_asked
from tailhook.plates.host_status import read_status

ASKED, ANSWERED = Event(EventKind.INPUT_ASKED), Event(EventKind.INPUT_GIVEN)
ENDED, GIVEN = Event(EventKind.TURN_ENDED), Event(EventKind.PERMISSION_GIVEN)
ASKING = play(("tool_start:Bash=a", RUNNING), ("permission_asked:Bash", APPROVAL))
ASKING_TWICE, _ = happen(ASKING, "tool_start:ExitPlanMode=b")
AGENT_ASKING = play(("x/tool_start:Bash=a", RUNNING), ("x/permission_asked:Bash", APPROVAL))
DIALOG = play((f"input_asked:{HOST}", INPUT))
QUESTION = play(("tool_start:AskUserQuestion=a", INPUT))

# The last event was at 100, and it is 120 now.
JUDGED = [
    (Situation(RUNNING), HostStatus("idle", 110), ENDED),
    (Situation(RUNNING), HostStatus("idle", 118.9), ENDED),
    (Situation(RUNNING), HostStatus("idle", 119), None),  # a hook may still report it
    (Situation(RUNNING), HostStatus("idle", 100), None),  # before the prompt
    (Situation(RUNNING), HostStatus("idle", 121), None),  # by another clock
    (Situation(RUNNING), HostStatus("busy", 110), None),
    (Situation(RUNNING), HostStatus("waiting", 110, "sandbox request"), ASKED),
    (Situation(RUNNING), HostStatus("waiting", 118.9), ASKED),
    (Situation(RUNNING), HostStatus("waiting", 119, "sandbox request"), None),  # a hook may still report it
    (Situation(RUNNING), HostStatus("waiting", 90, "sandbox request"), ASKED),  # another tool ended meanwhile
    (Situation(RUNNING), HostStatus("waiting", 110, "dialog open"), ASKED),
    (Situation(RUNNING), HostStatus("waiting", 121, "sandbox request"), None),  # by another clock
    (Situation(IDLE), HostStatus("waiting", 90, "dialog open"), None),  # the person has opened a menu
    (QUESTION, HostStatus("waiting", 110, "input needed"), None),  # a hook reported it
    (DIALOG, HostStatus("waiting", 110, "sandbox request"), None),
    (DIALOG, HostStatus("busy", 110), ANSWERED),
    (DIALOG, HostStatus("busy", 99), ANSWERED),  # another tool ended meanwhile
    (DIALOG, HostStatus("idle", 110), ANSWERED),
    (Situation(RUNNING), HostStatus("a new one", 110), None),
    (Situation(IDLE), HostStatus("busy", 110), None),
    (ASKING, HostStatus("busy", 119.9), GIVEN),
    (ASKING, HostStatus("busy", 99), None),
    (ASKING, HostStatus("waiting", 110), None),
    (ASKING, HostStatus("idle", 110), None),  # the transcript shows a denial
    (ASKING_TWICE, HostStatus("busy", 110), None),
    (AGENT_ASKING, HostStatus("busy", 110), None),  # the session's own agent may be busy meanwhile
    (QUESTION, HostStatus("busy", 110), None),  # its hook reports the answer
]


@in_one_test(("situation", "host", "expected"), JUDGED)
def test_what_the_host_writes_about_a_session(situation, host, expected):
    assert judge_host_status(situation, 100, host, 120) == expected


def test_escape_before_the_first_answer_ends_the_turn(world):
    world.event("s", "prompt_submit")
    world.now += 5
    world.looks["s"] = Look(world.now - 4, at=world.now - 5)
    world.hosts["s"] = HostStatus("idle", world.now - 2)
    assert world.health.check() == 1
    assert world.status("s") == "idle"


def test_the_turn_goes_on_while_agents_work_in_the_background(world):
    world.event("s", "stop", background=1)
    world.now += 5
    world.hosts["s"] = HostStatus("idle", world.now - 2)
    assert world.health.check() == 0
    assert world.status("s") == "running"


def test_an_approved_tool_runs(world):
    world.event("s", "tool_start:WebFetch", tool_use_id="a")
    world.event("s", "permission_asked:WebFetch")
    world.now += 5
    world.hosts["s"] = HostStatus("busy", world.now - 0.1)
    assert world.health.check() == 1
    assert world.status("s") == "running"
    assert world.database.events_of("s", 1)[0]["tool_use_id"] == "a"


def test_a_dialog_that_no_hook_reports_is_waited_for_until_the_hosts_file_ends_it(world):
    world.event("s", "tool_start:Bash", tool_use_id="a")
    world.now += 5
    world.looks["s"] = Look(world.now, world.now)  # another tool's records
    world.hosts["s"] = HostStatus("waiting", world.now - 2, "sandbox request")
    assert world.health.check() == 1
    plate = world.database.get("s")
    assert (plate["status"], read_asked(plate, False)["questions"][0]["text"]) == ("awaiting_input", "sandbox request")
    assert world.database.events_of("s", 1)[0]["agent_id"] is None
    for _ in range(20):
        world.now += 10
        world.looks["s"] = Look(world.now, world.now)
        world.event("s", "tool_call", tool_use_id="b", tool_name="Read")
        assert world.health.check() == 0
    assert world.status("s") == "awaiting_input"
    world.hosts["s"] = HostStatus("busy", world.now - 1)
    world.now += 1
    assert world.health.check() == 1
    assert world.status("s") == "running"


def test_after_a_dialog_without_a_hook_the_turn_may_be_over(world):
    world.event("s", "prompt_submit")
    world.hosts["s"] = HostStatus("waiting", world.now, "dialog open")
    world.now += 2
    assert world.health.check() == 1
    assert world.status("s") == "awaiting_input"
    world.hosts["s"] = HostStatus("idle", world.now)
    world.now += 2
    for status in ("running", "idle"):
        world.health.check()
        assert world.status("s") == status


def test_a_dialog_is_not_reported_twice_if_its_hook_is_slow(world):
    world.event("s", "tool_start:Bash", tool_use_id="a", pid=5)
    world.processes[5] = 1.0
    world.hosts["s"] = HostStatus("waiting", world.now, "permission prompt")
    world.reporting.add(5)
    world.now += 5
    assert world.health.check() == 0
    world.event("s", "permission_asked:Bash", pid=5)
    world.reporting.clear()
    assert world.health.check() == 0
    assert len(world.database.get("s")["tools"]) == 1


def test_a_dialog_without_a_file_ends_as_the_transcript_goes_on(world):
    world.event("s", "prompt_submit")
    world.hosts["s"] = HostStatus("waiting", world.now, "goal proposal")
    world.now += 5
    world.health.check()
    del world.hosts["s"]
    world.looks["s"] = Look(world.now, world.now)
    world.now += 5
    world.health.check()
    assert world.status("s") == "running"


@pytest.fixture
def file(tmp_path):
    """Return the path of the host's file about the process 5."""
    path = tmp_path / ".claude" / "sessions" / "5.json"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def plate(world, file):
    """Return the plate of a session whose process is 5."""
    transcript = file.parents[1] / "projects" / "-p" / "s.jsonl"
    world.event("s", "prompt_submit", pid=5, pid_started=1234, transcript_path=str(transcript))
    return world.database.get("s")


WORDS = {"pid": 5, "sessionId": "s", "status": "idle", "statusUpdatedAt": 1795727875931}
BROKEN = [
    {"sessionId": "another"},
    {"sessionId": None},
    {"status": None},
    {"status": ["idle"]},
    {"statusUpdatedAt": "1795727875931"},
    {"statusUpdatedAt": None},
]


def test_the_host_names_the_session_its_status_and_since_when(file, plate):
    file.write_text(json.dumps(WORDS))
    assert read_status(plate) == HostStatus("idle", 1795727875.931)


@pytest.mark.parametrize(
    ("given", "expected"), [("sandbox request", "sandbox request"), (7, ""), ("a\x1b\0" + "x" * 999, "a\\x1b\\x00")]
)
def test_the_host_names_the_kind_of_its_dialog(file, plate, given, expected):
    file.write_text(json.dumps({**WORDS, "status": "waiting", "waitingFor": given}))
    found = read_status(plate)
    assert (found.word, found.waits_for.rstrip("x"), len(found.waits_for) <= 200) == ("waiting", expected, True)


@pytest.mark.parametrize("change", BROKEN)
def test_a_file_about_another_session_or_of_another_form_has_no_word(file, plate, change):
    file.write_text(json.dumps({**WORDS, **change}))
    assert read_status(plate) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"status":"idle"}' + b" " * (1 << 23)])
def test_a_file_that_cannot_be_read_has_no_word(file, plate, content):
    file.write_bytes(content)
    assert read_status(plate) is None
    file.unlink()
    assert read_status(plate) is None
    file.mkdir()
    assert read_status(plate) is None


@pytest.mark.parametrize(
    "fields",
    [{"pid": None}, {"transcript_path": None}, {"transcript_path": "s.jsonl"}, {"transcript_path": "/a/b/c/s"}],
)
def test_without_a_process_or_a_transcript_of_claude_code_there_is_no_file(plate, fields):
    assert read_status({**plate, **fields}) is None
