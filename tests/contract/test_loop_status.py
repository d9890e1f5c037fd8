"""`tailhook loop status`, of a live loop and of the last one."""

import json
import re

import pytest
from support.host import frame
from support.install import write_hooks
from support.oracles import jwz

from tailhook.hook.machines import MACHINES

FALLBACK = "---\nactive: true\niteration: 3\nmax_iterations: 10\n---\n\nThe prompt.\n"


def test_status_prints_what_the_next_stop_would_get(project, loop):
    write_hooks(project)
    loop("start", "Go.", session="mine")
    facts = json.loads(loop("status", "--json").stdout)
    assert facts["state"] == jwz.newest(project.folder)
    assert 0 <= facts["age"] < 60
    assert facts["verdict"]["decision"] == "block"
    assert facts["verdict"]["reason"] == project.stop("Hm.").answer["reason"]
    words = loop("status", session="mine").stdout
    assert all(
        word in words
        for word in ("Go.", "Iteration 2 of at most 10", "must continue: iteration 3/10", "Session: mine.")
    )


def test_status_decides_with_every_text_of_the_configuration(project, loop):
    write_hooks(project)
    texts = {key: f"the {key}" for key, kind in MACHINES["idle"]["keys"].items() if kind == "text"}
    (project.folder / ".claude").mkdir()
    (project.folder / ".claude" / "tailhook.json").write_text(json.dumps({"idle": texts}))
    loop("start", "--mode", "grind", "Go.", session="mine")
    reason = json.loads(loop("status", "--json").stdout)["verdict"]["reason"]
    assert reason == project.stop("Hm.").answer["reason"]
    assert all(text in reason for text in texts.values())


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_status_gives_instructions_only_to_the_agent_that_must_continue(project, group):
    write_hooks(project)
    words = ("--worktree", str(project.folder), "--tokens", "9") if group == "loop" else ("--completion-promise", "G")
    assert project.as_agent(group, "start", *words, "The goal.", session="mine").returncode == 0

    def shown(session):
        out = project.as_agent(group, "status", session=session).stdout
        assert "The goal." in out
        return re.search(r"\byou(r|rs)?\b|Do not|absolute paths", out)

    assert shown("mine")
    assert not shown("other")
    assert not shown(None)
    assert project.as_agent(group, "pause").returncode == 0
    assert not shown("mine")
    assert project.as_agent(group, "resume").returncode == 0
    assert project.as_agent(group, "adopt").returncode == 0
    assert shown("the next one")


def test_status_shows_another_sessions_loop_with_what_ends_it(project, loop):
    loop("start", "--worktree", str(project.folder), "--check", "pytest", "--issue", "5", "x" * 20_000, session="mine")
    out = loop("status", session="other").stdout
    for line in (
        f"Its agent works in the worktree {project.folder}, for issue 5.",
        "Iteration 1 of 10 (mode loop). Its agent ends it with one of these:",
        "  <loop-done>COMPLETE</loop-done>",
        "COMPLETE counts only if this command has succeeded in this loop, and after the last edit of any file:",
        "At the next stop the agent may stop: another session's loop.",
    ):
        assert f"{line}\n" in out
    assert "… (cut; the whole is in " in out


def test_status_names_the_session_that_will_get_the_loop_and_the_nested_loops(loop):
    loop("start", "--mode", "grind", "Outer.")
    assert "Session: the next one that gets a prompt or stops.\n" in loop("status").stdout
    loop("start", "--push", "Inner.")
    assert "Nested loops: 2; this is the innermost one.\n" in loop("status").stdout


def test_status_without_a_loop_reports_that(loop):
    facts = json.loads(loop("status", "--json").stdout)
    assert facts == {
        "path": None,
        "state": None,
        "age": None,
        "verdict": {"decision": "allow", "why": "no loop", "reason": None},
    }
    assert loop("status").stdout == "No loop is running in this project.\n"


def test_status_of_a_loop_on_which_no_session_may_act_reports_what_the_hook_decides(project, loop):
    write_hooks(project)
    config = project.home / ".config" / "tailhook"
    config.mkdir(parents=True)
    (config / "config.json").write_text('{"hook": {"unbound": "refuse"}}')
    project.loop()
    assert project.stop("Hm.").allowed
    assert json.loads(loop("status", "--json").stdout)["verdict"]["decision"] == "allow"
    assert "must continue: iteration" not in loop("status").stdout


def test_status_of_a_stale_loop_reports_what_will_happen_to_it_and_changes_nothing(project, loop):
    state = project.loop(age=9000)
    facts = json.loads(loop("status", "--json").stdout)
    assert facts["verdict"]["decision"] == "allow"
    assert facts["age"] >= 9000
    assert re.fullmatch(
        r"No loop is running in this project\.\n"
        r"The last one is stale and ends at the next stop: nothing changed it for 90\d\d seconds\.\n"
        r"To start it again:  tailhook loop start\n",
        loop("status").stdout,
    )
    assert jwz.newest(project.folder) == state


@pytest.mark.parametrize("asking", ["mine", "other", None])
def test_a_stale_loop_is_named_as_one_with_its_goal_and_what_starts_it_again(project, loop, asking):
    loop("start", "Make it work.", session="mine")
    project.loop(*jwz.newest(project.folder)["stack"], age=9000)
    about = (
        r"The last one is stale and ends at the next stop of session mine: nothing changed it for 90\d\d seconds\.\n"
        r" *Goal: Make it work\.\n *To start it again:  tailhook loop start\n"
    )
    assert re.fullmatch(rf"No loop is running in this project\.\n{about}", loop("status", session=asking).stdout)
    for word in ("pause", "resume", "adopt", "cancel"):
        done = loop(word, session=asking)
        assert done.returncode == 1
        assert re.search(rf": no loop is running in this project\n *{about}", done.stderr)
    assert loop("start", "Again.", session=asking).returncode == 0


@pytest.mark.parametrize("body", ["broken", "[]", '{"schema": 1, "stack": [5]}', '{"schema": 1, "stack": "x"}'])
def test_status_of_a_corrupted_loop_is_not_a_crash(project, loop, body):
    jwz.post(project.folder, body)
    for words in (["status"], ["status", "--json"], ["cancel"], ["adopt"]):
        assert "Traceback" not in loop(*words).stderr


def test_a_states_texts_reach_the_terminal_only_in_plain_characters(project, loop):
    project.loop(frame(session_id="\x1b[31m\u202eevil"))
    out = loop("status").stdout
    assert "evil" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_a_prompt_reaches_the_terminal_only_in_plain_characters(loop):
    out = loop("start", "Line one.\nLine \x1b]0;two\x07").stdout + loop("status").stdout
    assert out.count("Line one.\n") == 2
    assert "\x1b" not in out
    assert "\x07" not in out


def test_status_of_a_finished_loop_shows_how_it_ended(project, loop):
    project.loop(frame(iter=3, session_id="mine"))
    project.stop("<loop-done>STUCK</loop-done>")
    facts = json.loads(loop("status", "--json").stdout)
    assert (facts["state"]["event"], facts["state"]["reason"]) == ("DONE", "STUCK")
    assert facts["verdict"]["decision"] == "allow"
    at = facts["state"]["updated_at"].replace("T", " ").replace("Z", " UTC")
    ended = f"The last one ended: the agent reported it (STUCK), at iteration 3, at {at}, session mine."
    assert loop("status").stdout == f"No loop is running in this project.\n{ended}\n"
    assert facts["ended"] == {
        "reason": "STUCK",
        "iteration": 3,
        "at": facts["state"]["updated_at"],
        "session_id": "mine",
    }


def test_status_after_a_cancel_shows_how_the_loop_ended(project, loop):
    project.loop(frame(iter=2))
    assert loop("cancel").returncode == 0
    said = "The last one ended: it was cancelled (USER_CANCELLED), at iteration 2, at 20"
    assert said in loop("status").stdout


@pytest.mark.parametrize(
    ("said", "reason", "words"),
    [
        ("<loop-done>STUCK</loop-done>", "STUCK", "the agent reported it (STUCK)"),
        (None, "USER_CANCELLED", "it was cancelled (USER_CANCELLED)"),
    ],
)
def test_status_shows_how_a_loop_of_the_fallback_file_ended(project, loop, said, reason, words):
    path = project.folder / ".claude" / "idle-loop.local.md"
    path.parent.mkdir()
    path.write_text(FALLBACK)
    assert (project.stop(said).allowed if said else loop("cancel").returncode == 0) is True
    assert not path.exists()
    assert f"The last one ended: {words}, at iteration 3, at 20" in loop("status").stdout
    ended = json.loads(loop("status", "--json").stdout)["ended"]
    assert (ended["reason"], ended["iteration"]) == (reason, 3)


def test_the_newer_end_is_shown_of_a_store_and_a_fallback_file(project, loop):
    project.loop(frame(iter=5), age=3600)
    project.stop("<loop-done>COMPLETE</loop-done>")
    path = project.folder / ".claude" / "idle-loop.local.md"
    path.parent.mkdir()
    path.write_text(FALLBACK)
    (project.folder / ".jwz").rename(project.folder / "jwz")
    assert loop("cancel").returncode == 0
    (project.folder / "jwz").rename(project.folder / ".jwz")
    assert "USER_CANCELLED" in loop("status").stdout


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_loop_that_no_session_had_ended_without_a_session(project, group):
    assert project.as_agent(group, "start", "Go.").returncode == 0
    assert " that gets a prompt or stops" in project.as_agent(group, "status").stdout
    assert project.as_agent(group, "cancel").returncode == 0
    shown = project.as_agent(group, "status").stdout
    assert "USER_CANCELLED" in shown
    assert "claim" not in shown
    ended = json.loads(project.as_agent(group, "status", "--json").stdout)["ended"]
    assert (ended["iteration"], ended["session_id"]) == (1, None)


LAST = "iteration 1 of 1 was its last one"
SIGNAL = "<loop-done>{}</loop-done>"


@pytest.mark.parametrize(
    ("words", "said", "announced", "shown"),
    [
        ((), SIGNAL.format("STUCK"), "STUCK", "the agent reported STUCK, at iteration 1"),
        ((), SIGNAL.format("MAX_ITERATIONS"), "MAX_ITERATIONS", "the agent reported MAX_ITERATIONS, at iteration 1"),
        (
            ("--max", "1"),
            "Hm.",
            "iteration 1 of 1 was its last one",
            "iteration 1 of 1 was its last one (MAX_ITERATIONS)",
        ),
        (
            ("--stuck-after", "1"),
            "Hm.",
            'it stands still: a stop without a tool, with the words "Hm."',
            'it stands still: a stop without a tool, with the words "Hm." (STUCK), at iteration 1',
        ),
    ],
)
def test_a_loop_that_ends_at_its_first_stop_has_its_session_and_why_it_ended(
    project, loop, words, said, announced, shown
):
    project.transcript.write_text("")
    assert loop("start", *words, "Go.").returncode == 0
    assert project.stop(said, "--announce").answer["systemMessage"] == f"tailhook: the loop ended: {announced}"
    assert f"The last one ended: {shown}, at 20" in loop("status").stdout
    assert loop("status").stdout.endswith(", session mine.\n")
    assert json.loads(loop("status", "--json").stdout)["ended"]["why"] == announced


def test_a_signal_without_evidence_in_the_last_iteration_is_named_at_the_end(project, loop):
    project.transcript.write_text("")
    assert loop("start", "--max", "1", "--check", "pytest", "Go.").returncode == 0
    why = f"{LAST}, and the agent's signal did not count: its checks have not succeeded"
    assert project.stop(SIGNAL.format("COMPLETE"), "--announce").answer["systemMessage"].endswith(f"ended: {why}")
    assert f"ended: {why} (MAX_ITERATIONS), at 20" in loop("status").stdout


def test_at_its_end_each_loop_of_a_stack_is_named(project, loop):
    project.transcript.write_text("")
    loop("start", "--mode", "grind", "--max", "9", "--filter", "label:bug", "Outer.", session="mine")
    loop("start", "--push", "--max", "1", "Inner.", session="mine")
    why = f"{LAST}. The loop around it ended, too: mode grind, label:bug, at iteration 1 of 9"
    assert project.stop("Hm.", "--announce").answer["systemMessage"] == f"tailhook: the loop ended: {why}"
    assert f"The last one ended: {why} (MAX_ITERATIONS), at 20" in loop("status").stdout


def test_a_ralph_loop_that_ends_at_its_first_stop_has_its_session_and_why_it_ended(project):
    project.argv = [*project.argv[:-1], "ralph"]
    assert project.as_agent("ralph", "start", "--completion-promise", "G", "Go.").returncode == 0
    assert project.stop("<promise>G</promise>").allowed
    shown = project.as_agent("ralph", "status").stdout
    assert "The last one ended: the promise is kept: G (COMPLETE), at iteration 1, at 20" in shown
    assert shown.endswith(", session mine.\n")


def test_the_time_of_an_end_is_local_and_names_its_zone(project, loop):
    project.loop(frame(iter=2))
    assert loop("cancel").returncode == 0
    assert re.search(r", at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d XYZ", loop("status", TZ="XYZ-3").stdout)
