"""Whether a session's turn is over, whether a person has seen that, and whether a running one is stuck."""

import math

import pytest
from support.plate_reports import asked, report, status

from tailhook.machines.plates import HEALTH_CHECK_INTERVAL, STUCK_TIMEOUT, Look, Status, is_stuck
from tailhook.plates.display import describe_plate, describe_statuses


def shown(database, session="s"):
    """Return a session as the API shows it."""
    return describe_plate(database.get(session), "p")


def group(database):
    return shown(database)["group"]


def test_a_turn_that_ended_is_unseen_until_a_person_looks_at_it(database):
    database.record(report("prompt_submit", ts=1000, mono=1000))
    assert (group(database), shown(database)["turn_since"]) == ("working", "1970-01-01T00:00:01.000Z")
    database.record(report("stop", ts=61_000, mono=61_000, reply="All tests pass."))
    after = shown(database)
    assert (after["group"], after["unseen"], after["symbol"], after["status_words"]) == (
        "finished",
        True,
        "✓",
        "finished",
    )
    assert (after["status"], after["turn_until"]) == (Status.IDLE, "1970-01-01T00:01:01.000Z")
    assert after["activity"]["text"] == "All tests pass."
    database.mark("s", seen=True)
    after = shown(database)
    assert (after["group"], after["unseen"], after["status_words"]) == ("rest", False, "idle")
    assert after["activity"]["text"] == "All tests pass."


def test_looking_at_a_session_that_works_does_not_count_for_its_end(database):
    database.record(report("prompt_submit"))
    database.mark("s", seen=True)
    database.record(report("stop"))
    assert group(database) == "finished"


@pytest.mark.parametrize("by_host", [False, True])
def test_a_prompt_begins_the_next_turn(database, by_host):
    for _ in range(2):
        database.record(report("prompt_submit", ts=5000, mono=5000))
        database.record(report("stop", ts=6000, mono=6000, reply="Done."))
        database.mark("s", seen=True)
    database.record(report("prompt_submit", by_host=by_host, ts=7000, mono=7000))
    after = shown(database)
    assert (after["group"], after["turn_until"], after["activity"]["text"]) == ("working", None, "")
    assert after["turn_since"] == f"1970-01-01T00:00:0{5 if by_host else 7}.000Z"  # the host goes on with a turn
    database.record(report("stop", ts=8000, mono=8000))
    assert group(database) == "finished"


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["stop"], "finished"),
        (["stop_paused"], "finished"),
        (["turn_ended"], "finished"),
        (["stop", "turn_ended"], "finished"),  # the host's notice after a minute
        (["stop", "tool_call", "stop"], "finished"),  # another program's hook sent the agent on
        (["interrupted"], "rest"),  # the person was there
        (["stop", "tool_call", "interrupted"], "rest"),
        (["interrupted", "turn_ended"], "rest"),  # the host's notice after a minute
        (["stop_failure", "turn_ended", "health_check_recovery"], "rest"),
        (["stop", "session_start"], "rest"),
        (["stop", "session_end"], "rest"),
        (["stop:overloaded"], "waits"),
        (["stop_failure"], "waits"),
        (["stop_failure", "health_check_recovery"], "rest"),
        (["stop_blocked"], "working"),
    ],
)
def test_only_a_turn_that_ended_by_itself_is_finished(database, kinds, expected):
    database.record(report("prompt_submit"))
    for kind in kinds:
        database.record(report(kind))
    if kinds == ["stop", "session_start"]:
        database.record(report("turn_ended"))  # it is at its prompt
    assert group(database) == expected


def test_a_session_that_got_no_prompt_has_not_finished(database):
    database.record(report("session_start", source="startup"))
    database.record(report("turn_ended"))
    assert (group(database), shown(database)["turn_since"]) == ("rest", None)


@pytest.mark.parametrize("end", [[], ["interrupted"], ["stop_failure"], ["permission_asked:Bash"]])
@pytest.mark.parametrize("source", ["resume", "clear"])
def test_a_session_whose_turn_was_cut_off_has_not_finished_when_it_is_started_again(world, end, source):
    for kind in ["prompt_submit", *end, "session_end"]:
        world.event("s", kind)
    world.event("s", "session_start", source=source)
    world.now += HEALTH_CHECK_INTERVAL
    world.health.check()
    after = shown(world.database)
    assert (after["status"], after["group"], after["turn_until"]) == (Status.IDLE, "rest", None)
    world.event("s", "prompt_submit")
    world.event("s", "stop")
    assert group(world.database) == "finished"


def test_a_compaction_that_a_person_asks_for_after_an_interruption_finishes_no_turn(database):
    for kind, fields in (
        ("prompt_submit", {}),
        ("interrupted", {}),
        ("session_start", {"source": "compact"}),
        ("turn_ended", {}),
    ):
        database.record(report(kind, **fields))
    assert (status(database), group(database)) == ("idle", "rest")


def test_a_compaction_within_a_turn_does_not_change_when_it_began(database):
    for kind, fields in (("prompt_submit", {}), ("session_start", {"source": "compact"})):
        database.record(report(kind, ts=5000, mono=5000, **fields))
    assert shown(database)["turn_since"] == "1970-01-01T00:00:05.000Z"


def test_a_notice_that_nothing_happens_finishes_no_turn_while_agents_work_in_the_background(database):
    for kind, background in (("prompt_submit", 0), ("stop", 1), ("turn_ended", 0)):
        database.record(report(kind, background=background))
    assert (group(database), shown(database)["turn_until"]) == ("working", None)


def test_a_stop_with_agents_in_the_background_has_not_finished(database):
    database.record(report("prompt_submit"))
    database.record(report("stop", background=2, reply="Two agents are at work."))
    assert (group(database), shown(database)["agents"], shown(database)["activity"]["words"]) == (
        "working",
        2,
        "thinking",
    )


def test_a_sub_agents_events_end_no_turn(database):
    database.record(report("prompt_submit"))
    database.record(report("stop", reply="Done."))
    database.record(report("stop", agent_id="a", reply="I looked at it."))
    assert shown(database)["activity"]["text"] == "Done."


def test_a_late_stop_finishes_nothing(database):
    database.record(report("prompt_submit", ts=9000, mono=9000))
    database.record(report("stop", ts=8000, mono=8000, reply="Old."))
    assert (group(database), shown(database)["turn_until"]) == ("working", None)


def test_a_hidden_session_is_not_among_the_finished_ones(database):
    database.record(report("stop"))
    database.mark("s", hidden=True)
    assert group(database) == "rest"


def test_the_end_of_a_turn_that_the_daemon_finds_is_unseen_and_has_its_message_from_the_transcript(world, tmp_path):
    path = tmp_path / "t.jsonl"
    words = "## **Done.** All tests pass."
    path.write_text(
        f'{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"text","text":"{words}"}}]}}}}\n'
    )
    world.event("s", "prompt_submit", transcript_path=str(path))
    world.looks[str(path)] = Look(world.now, world.now + 1, turn_over=True)
    world.now += HEALTH_CHECK_INTERVAL
    world.health.check()
    world.health.check()
    after = shown(world.database)
    assert (after["group"], after["activity"]["text"]) == ("finished", "Done. All tests pass.")


def test_a_transcript_without_a_message_is_read_once_for_each_change(world, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("{}\n")
    read = []
    world.health.read_reply = read.append
    world.event("s", "prompt_submit", transcript_path=str(path))
    world.health.check()
    assert read == []
    world.event("s", "stop", transcript_path=str(path))
    for _ in range(3):
        world.health.check()
    assert read == [str(path)]
    path.write_text("{}\n{}\n")
    world.health.check()
    assert len(read) == 2
    world.event("s", "stop", transcript_path=str(path), reply="Done.")
    path.write_text("{}\n")
    world.health.check()
    assert len(read) == 2


# ---- stuck -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "age", "expected"),
    [
        (Status.RUNNING, STUCK_TIMEOUT + 1, True),
        (Status.RUNNING, STUCK_TIMEOUT, False),
        *((status, 10**6, False) for status in Status if status is not Status.RUNNING),
    ],
)
def test_only_a_running_session_can_be_stuck(status, age, expected):
    assert is_stuck(status, 1000.0, 1000.0 + age) is expected


@pytest.mark.parametrize(("timeout", "age", "expected"), [(60, 61, True), (60, 60, False), (math.inf, 10**9, False)])
def test_the_user_chooses_when_a_session_is_stuck(timeout, age, expected):
    assert is_stuck(Status.RUNNING, 1000.0, 1000.0 + age, timeout) is expected


@pytest.mark.parametrize(
    ("timeout", "note"),
    [
        (STUCK_TIMEOUT, "nothing happened for 10 min"),
        (90, "nothing happened for 90 s"),
        (5400, "nothing happened for 90 min"),
        (math.inf, ""),
    ],
)
def test_the_boards_show_after_which_time_a_session_is_stuck(timeout, note):
    [group] = [one for one in describe_statuses(timeout)["groups"] if one["id"] == "stuck"]
    assert group["note"] == note


def let_pass(world, seconds):
    world.now += seconds
    world.health.check()
    if world.health.resting > world.now:  # after such a gap the daemon waits
        world.now = world.health.resting
        world.health.check()


def test_a_session_is_stuck_after_ten_minutes_without_an_event_although_its_command_runs(world):
    world.event("s", "prompt_submit", pid=5)
    world.event("s", "tool_start:Bash", pid=5, tool_use_id="a", tool_params={"command": "make all"})
    world.processes[5] = 1.0
    world.commands.add((5, "make all"))
    let_pass(world, STUCK_TIMEOUT - 20)
    assert group(world.database) == "working"
    began = shown(world.database)["updated_at"]
    let_pass(world, 40)
    after = shown(world.database)
    assert (after["group"], after["symbol"], after["status_words"], after["tone"]) == ("stuck", "▲", "stuck", "error")
    assert (after["status"], after["quiet_since"], after["activity"]["text"]) == (Status.RUNNING, began, "make all")
    world.event("s", "tool_call", pid=5, tool_use_id="a", tool_name="Bash")
    assert (group(world.database), shown(world.database)["quiet_since"]) == ("working", None)


def test_a_session_is_stuck_after_the_chosen_time(world):
    world.health.stuck_timeout = 120
    world.event("s", "prompt_submit")
    let_pass(world, 100)
    assert group(world.database) == "working"
    let_pass(world, 60)
    assert group(world.database) == "stuck"
    world.health.stuck_timeout = math.inf
    let_pass(world, 86_400)
    assert group(world.database) == "working"


def test_a_write_to_a_transcript_is_growth(world):
    world.event("s", "prompt_submit")
    let_pass(world, STUCK_TIMEOUT + 1)
    assert group(world.database) == "stuck"
    world.written["s"] = world.now
    world.health.check()
    assert group(world.database) == "working"


def test_a_session_that_waits_for_a_person_is_never_stuck(world):
    world.event("s", "tool_start:AskUserQuestion", tool_use_id="a")
    let_pass(world, 86_400)
    assert group(world.database) == "waits"


def test_a_stuck_session_without_any_sign_shows_that(world):
    world.event("s", "prompt_submit")
    let_pass(world, STUCK_TIMEOUT + 1)
    after = shown(world.database)
    assert (after["group"], after["status_words"], after["tone"]) == ("stuck", "no sign", "error")


# ---- the order ---------------------------------------------------------------


def test_the_groups_come_in_the_order_of_their_weight(database):
    for session, kinds in {
        "idle": ["session_start"],
        "works": ["prompt_submit"],
        "old end": ["prompt_submit", "stop"],
        "new end": ["prompt_submit", "stop"],
        "failed": ["stop_failure"],
    }.items():
        for kind in kinds:
            database.record(report(kind, session=session))
    database.record(report("turn_ended", session="idle"))
    database.record(asked("a", session="asks"))
    ranked = sorted(database.all(), key=lambda plate: describe_plate(plate, "p")["rank"])
    assert [plate["session_id"] for plate in ranked] == ["failed", "asks", "new end", "old end", "works", "idle"]
