"""`tailhook loop status`, of a live loop and of the last one."""

import json

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
    words = loop("status").stdout
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
    assert (facts["verdict"]["decision"], facts["verdict"]["why"]) == ("allow", "stale")
    assert facts["age"] >= 9000
    assert jwz.newest(project.folder) == state


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
    ended = f"The last one ended: STUCK, at iteration 3, at {facts['state']['updated_at']}, session mine."
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
        ("<loop-done>STUCK</loop-done>", "STUCK", "STUCK"),
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
