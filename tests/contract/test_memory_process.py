"""The memory machine as the host meets it: the whole process, its flag, its mark."""

import json
import os
import time

import pytest
from host import assistant

MEMORABLE = "We chose A because of B.\nWe picked C over D."
FLAG = ".claude/.stop_hook_active"


def user(text, **fields):
    return {"type": "user", "message": {"role": "user", "content": text}, **fields}


@pytest.fixture
def memory(project):
    """A project whose hook asks the memory machine, with a transcript in which something was decided."""
    project.argv = [*project.argv[:-1], "memory"]
    project.write(user("Go on."), assistant(MEMORABLE, id="m1"))
    return project


def flag(project):
    return project.folder / FLAG


def configure(project, text):
    folder = project.folder / ".claude/memory"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory-config.json").write_text(text)


def reported(stop):
    return stop.exit_code == 2 and "- [DECISION] We chose A because of B. (score: 0.53)" in stop.answer["reason"]


# ---- the answer --------------------------------------------------------------


def test_what_was_decided_is_reported_on_stderr_and_as_json(memory):
    stop = memory.stop("Done.")
    assert reported(stop)
    assert stop.stderr == stop.answer["reason"] + "\n"
    assert stop.answer["decision"] == "block"


def test_with_exit_0_the_json_alone_blocks(memory):
    memory.env["TAILHOOK_EXIT"] = "0"
    stop = memory.stop("Done.")
    assert (stop.exit_code, stop.stderr, stop.answer["decision"]) == (0, "", "block")


def test_a_line_that_speaks_of_a_missing_file_still_blocks(memory):
    memory.write(assistant("decided because: no such file, can't open\n" * 3, id="m2"))
    stop = memory.stop("Done.")
    assert stop.exit_code == 2
    assert stop.stdout


def test_nothing_to_save_is_an_allow(memory):
    memory.transcript.write_text("")
    memory.write(user("decided?"), assistant("Hello."))
    assert memory.stop("Bye.").allowed
    assert not flag(memory).exists()


def test_the_last_message_counts_before_the_transcript_has_it(memory):
    memory.transcript.write_text("")
    memory.write(user("Go on."))
    assert reported(memory.stop(MEMORABLE))


def test_a_last_message_that_the_transcript_has_counts_once(memory):
    stop = memory.stop(MEMORABLE)
    assert "(score: 0.53)" in stop.answer["reason"]


@pytest.mark.parametrize("path", [None, "", "/nowhere", 5, "/dev/null", "/"])
def test_without_a_transcript_the_agent_may_stop(memory, path):
    assert memory.stop(MEMORABLE, transcript_path=path).allowed


# ---- which messages ----------------------------------------------------------


@pytest.mark.parametrize(
    "record",
    [
        assistant(MEMORABLE, isSidechain=True),
        assistant(MEMORABLE, isMeta=True),
        assistant(MEMORABLE, isApiErrorMessage=True),
        user(MEMORABLE, isCompactSummary=True),
        user(f"<command-name>/x</command-name>{MEMORABLE}"),
        user(f"<local-command-stdout>{MEMORABLE}</local-command-stdout>"),
        user(f"<task-notification>\n{MEMORABLE}"),
        user(f"[Request interrupted by user]\n{MEMORABLE}"),
        user(f"Stop hook feedback:\n{MEMORABLE}"),
        user([{"type": "tool_result", "content": MEMORABLE}]),
        {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": MEMORABLE}]}},
        {"type": "system", "content": MEMORABLE},
        {"type": "progress", "data": assistant(MEMORABLE)},
    ],
)
def test_what_nobody_said_does_not_count(memory, record):
    memory.transcript.write_text("")
    memory.write(assistant("Hello."), record, user("Bye."))
    assert memory.stop("Bye.").allowed


def test_the_flat_shape_counts(memory):
    memory.transcript.write_text("")
    memory.write({"type": "human", "content": MEMORABLE}, {"type": "assistant", "content": "ok"})
    assert reported(memory.stop("ok"))


@pytest.mark.parametrize(("count", "expected"), [(9, True), (8, False)])
def test_so_many_messages_count_and_no_more(memory, count, expected):
    configure(memory, json.dumps({"triage": {"max_messages": 10}}))
    memory.write(*(user(f"message {n}") for n in range(count + (not expected) * 2)))
    assert reported(memory.stop()) is expected


def test_one_broken_record_costs_that_record_only(memory):
    with memory.transcript.open("a") as out:
        out.write('{"type":"assistant","message":{"con\n\0\0\0\n')
    memory.write(user("Bye."))
    assert reported(memory.stop("ok"))


def test_a_fence_that_is_not_closed_does_not_reach_into_another_message(memory):
    memory.transcript.write_text("")
    memory.write(assistant("```\ncode", id="m1"), assistant(MEMORABLE, id="m2"))
    assert reported(memory.stop("ok"))


def test_tools_and_exchanges_make_a_summary(memory):
    memory.transcript.write_text("")
    tools = [{"type": "tool_use", "id": "t", "name": name, "input": {}} for name in ("Bash", "Edit", "Bash", "Read")]
    for number in range(3):
        memory.write(user(f"go {number}"), {"type": "assistant", "message": {"id": f"m{number}", "content": tools}})
        memory.write(assistant("ok", id=f"t{number}"))
    memory.write({"type": "tool_use", "name": "Grep"})
    stop = memory.stop("ok")
    assert "- [SESSION_SUMMARY] 13 tool uses, 4 tools, 3 exchanges (score: 1.00)" in stop.answer["reason"]


# ---- configuration -----------------------------------------------------------


def test_the_machine_can_be_switched_off_and_its_thresholds_set(memory):
    configure(memory, '{"triage": {"enabled": "false"}}')
    assert memory.stop("ok").allowed
    configure(memory, '{"triage": {"thresholds": {"decision": 0.9}}}')
    assert memory.stop("ok").allowed
    configure(memory, '{"triage": {"thresholds": {"decision": "low"}}}')
    assert reported(memory.stop("ok"))


def test_a_threshold_that_is_no_number_costs_that_threshold_only(memory):
    configure(memory, '{"triage": {"thresholds": {"RUNBOOK": NaN, "DECISION": Infinity, "CONSTRAINT": -Infinity}}}')
    assert memory.stop("ok").allowed


@pytest.mark.parametrize("text", ["", "{", "[]", '{"triage": {"thresholds": {"DECISION": NaN}}}', "\0"])
def test_a_broken_configuration_means_the_defaults(memory, text):
    configure(memory, text)
    assert reported(memory.stop("ok"))


def test_a_configuration_is_not_read_through_a_link(memory):
    target = memory.home / "config.json"
    target.write_text('{"triage": {"enabled": false}}')
    configure(memory, "{}")
    path = memory.folder / ".claude/memory/memory-config.json"
    path.unlink()
    path.symlink_to(target)
    assert reported(memory.stop("ok"))


def test_the_tuned_profile_is_chosen_by_the_configuration(memory):
    memory.transcript.write_text("")
    memory.write(assistant("We settled on A and ruled out B.\nLet's go with A."))
    assert memory.stop("ok").allowed
    config = memory.home / ".config/tailhook"
    config.mkdir(parents=True)
    (config / "config.json").write_text('{"memory": {"profile": "tuned"}}')
    assert "[DECISION]" in memory.stop("ok").answer["reason"]


# ---- the flag ----------------------------------------------------------------


def test_the_flag_names_time_and_session_and_lets_the_next_stop_go(memory):
    before = time.time()
    memory.stop("ok")
    first, second = flag(memory).read_text().splitlines()
    assert before - 1 < float(first) < time.time() + 1
    assert second == "mine"
    assert flag(memory).stat().st_mode & 0o777 == 0o600
    memory.write(assistant(MEMORABLE, id="m9"))
    assert memory.stop("ok").allowed
    assert not flag(memory).exists()


def test_a_stale_flag_is_removed_and_the_session_judged(memory):
    flag(memory).parent.mkdir()
    flag(memory).write_text("1\nmine\n")
    os.utime(flag(memory), (time.time() - 301,) * 2)
    assert reported(memory.stop("ok"))
    assert float(flag(memory).read_text().splitlines()[0]) > 2


def test_a_flag_that_names_no_session_is_obeyed(memory):
    flag(memory).parent.mkdir()
    flag(memory).write_text(str(time.time()))
    assert memory.stop("ok").allowed
    assert not flag(memory).exists()


def test_another_sessions_flag_is_neither_obeyed_nor_deleted(memory):
    flag(memory).parent.mkdir()
    flag(memory).write_text(f"{time.time()}\nother\n")
    before = flag(memory).read_text()
    assert reported(memory.stop("ok"))
    assert memory.stop("ok").allowed
    assert flag(memory).read_text() == before


def test_a_flag_that_is_a_link_is_not_followed_and_the_agent_may_stop(memory):
    target = memory.home / "target"
    flag(memory).parent.mkdir()
    flag(memory).symlink_to(target)
    assert memory.stop("ok").allowed
    assert not target.exists()


def test_where_no_flag_can_be_made_the_agent_may_stop(memory):
    (memory.folder / ".claude").write_text("a file")
    assert memory.stop("ok").allowed


# ---- once per session --------------------------------------------------------


def test_a_session_is_told_once_and_later_stops_score_only_what_came_after(memory):
    assert reported(memory.stop("ok"))
    flag(memory).unlink()
    memory.write(assistant("Fine.", id="m2"))
    assert memory.stop("Fine.").allowed
    memory.write(assistant("decided, because\n\n\nchose over", id="m3"))
    stop = memory.stop("ok")
    assert "- [DECISION] decided, because (score: 0.53)" in stop.answer["reason"]


def test_a_message_that_the_transcript_got_late_is_not_told_twice(memory):
    memory.transcript.write_text("")
    memory.write(user("Go on."))
    assert reported(memory.stop(MEMORABLE))
    flag(memory).unlink()
    memory.write(assistant(MEMORABLE, id="m5"))
    assert memory.stop(MEMORABLE).allowed
    assert memory.stop("Fine.").allowed


def test_sessions_are_told_each(memory):
    assert reported(memory.stop("ok"))
    flag(memory).unlink()
    assert reported(memory.stop("ok", session_id="other"))


def test_a_transcript_that_began_anew_is_read_from_its_beginning(memory):
    memory.write(*(user("x" * 1000) for _ in range(5)))
    assert reported(memory.stop("ok"))
    flag(memory).unlink()
    memory.transcript.write_text("")
    memory.write(assistant(MEMORABLE, id="new"))
    assert reported(memory.stop("ok"))


@pytest.mark.parametrize("session", ["\ud800", "a\nb", "../../x", "x" * 5000])
def test_a_session_of_any_name_is_told_once(memory, session):
    assert reported(memory.stop("ok", session_id=session))
    flag(memory).unlink()
    assert memory.stop("ok", session_id=session).allowed


# ---- explain -----------------------------------------------------------------


def test_explain_shows_each_line_its_keyword_booster_and_share(memory):
    done = memory.tailhook("memory", "explain", str(memory.transcript))
    assert done.returncode == 0, done.stderr
    for part in ("DECISION", "0.53 of 0.40: reported", "0.5  message 2, chose + because: We chose A because of B."):
        assert part in done.stdout
    facts = json.loads(memory.tailhook("memory", "explain", str(memory.transcript), "--json").stdout)
    lines = facts["categories"]["DECISION"]["lines"]
    assert [(line["keyword"], line["booster"], line["share"]) for line in lines] == [
        ("chose", "because", 0.5),
        ("picked", "because", 0.5),
    ]
    assert facts["categories"]["SESSION_SUMMARY"]["exchanges"] == 1


@pytest.mark.parametrize("path", ["/nowhere.jsonl", "/"])
def test_explain_of_what_cannot_be_read_fails_with_a_line_that_names_it(memory, path):
    done = memory.tailhook("memory", "explain", path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"tailhook: {path}: ")
