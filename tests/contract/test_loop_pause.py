"""`tailhook loop pause` and `resume`, and those of ralph: the agent may stop, and the loop stays as it is."""

import json
import os
import time
from functools import partial

import pytest
from support.host import frame, tailhook
from support.oracles import jwz

FALLBACK = "---\nactive: true\niteration: 3\nmax_iterations: 10\n---\n\nThe prompt.\n"


class OneLoop:
    """A running loop at iteration 3 and its commands.

    kind: where it is: "jwz", "file" (without a store) or "ralph".
    """

    def __init__(self, kind, project):
        self.kind, self.project = kind, project
        self.command = partial(project.as_agent, "ralph" if kind == "ralph" else "loop")
        self.file = project.folder / ".claude" / "idle-loop.local.md"
        if kind == "jwz":
            project.loop(frame(iter=3))
        elif kind == "ralph":
            self.file = project.ralph(iteration=3)
        else:
            self.file.parent.mkdir()
            self.file.write_text(FALLBACK)

    def state(self):
        """Return what is saved."""
        return jwz.newest(self.project.folder) if self.kind == "jwz" else self.file.read_text()

    def stop(self):
        """Let the agent stop with a text without a signal; return whether it must continue."""
        return not self.project.stop("Hm.").allowed

    def make_old(self):
        """Let three days pass without a change."""
        if self.kind == "jwz":
            self.project.loop(*self.state()["stack"], age=3 * 86400)
        else:
            past = time.time() - 3 * 86400
            os.utime(self.file, (past, past))


@pytest.fixture(params=["jwz", "file", "ralph"])
def one(request, project):
    """Return a running loop."""
    return OneLoop(request.param, project)


def test_a_paused_loop_allows_every_stop_changes_nothing_and_never_becomes_stale(one):
    assert one.command("pause").returncode == 0
    one.make_old()
    paused = one.state()
    assert [one.stop(), one.stop()] == [False, False]
    assert one.state() == paused


def test_it_continues_where_it_was_however_long_it_was_paused(one):
    one.command("pause")
    one.make_old()
    done = one.command("resume")
    assert (done.returncode, done.stdout) == (0, done.stdout.replace("paused", ""))
    assert one.stop()
    now = one.state()
    assert now["stack"][-1]["iter"] == 4 if one.kind == "jwz" else "\niteration: 4\n" in now


@pytest.mark.parametrize("session", [None, "other"])
def test_a_new_loop_beside_it_is_refused_with_the_command_that_continues_it(one, session):
    words = f"To continue it:  tailhook {'ralph' if one.kind == 'ralph' else 'loop'} resume\n"
    assert one.command("adopt", session="mine" if session else None).returncode == 0
    running = one.command("start", "Another.", session=session)
    assert (running.returncode, words in running.stderr) == (1, False)
    assert one.command("pause").returncode == 0
    paused = one.command("start", "Another.", session=session)
    assert (paused.returncode, words in paused.stderr) == (1, True)
    assert "to end it" in paused.stderr.lower() or "end it with" in paused.stderr.lower()


def test_it_is_paused_and_shown_as_paused_until_it_is_resumed(one):
    assert "resume" in one.command("pause").stdout
    assert one.command("pause").returncode == 0  # again: it stays paused
    assert " is paused" in one.command("status").stdout
    one.command("resume")
    assert " is running" in one.command("status").stdout
    done = one.command("resume")
    assert (done.returncode, "is not paused" in done.stderr) == (1, True)


def test_the_doctor_notes_it_and_does_not_call_it_abandoned(one):
    one.command("pause")
    one.make_old()
    findings = json.loads(one.project.tailhook("doctor", "--json").stdout)["findings"]
    (found,) = [finding for finding in findings if finding["check"] == "loop"]
    assert " is paused" in found["what"]
    assert "resume" in found["advice"]


def test_a_new_loop_does_not_take_the_place_of_a_paused_one(one):
    one.command("pause")
    paused = one.state()
    done = one.command("start", "Another task.")
    assert (done.returncode, "loop is paused" in done.stderr) == (1, True)
    assert one.state() == paused


def test_a_paused_loop_can_be_cancelled(one):
    one.command("pause")
    done = one.command("cancel", "--json")
    assert (done.returncode, json.loads(done.stdout)["iteration"]) == (0, 3)
    assert not one.stop()


def test_neither_a_prompt_nor_a_compaction_resumes_it(one):
    one.command("pause")
    paused = one.state()
    for event in ({"hook_event_name": "UserPromptSubmit"}, {"hook_event_name": "SessionStart", "source": "compact"}):
        stop = one.project.stop(**event)
        assert (stop.exit_code, stop.stdout) == (0, "")
    assert one.state() == paused


@pytest.mark.parametrize("command", ["pause", "resume"])
@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_without_a_loop_it_is_an_error(project, group, command):
    done = project.as_agent(group, command)
    assert (done.returncode, done.stdout) == (1, "")
    assert "loop is running in this project" in done.stderr


def test_another_programs_values_stay_as_they_are(project):
    project.loop(frame(iter=3, mine=[1, {"b": 1.0}]), theirs={"a": None})
    before = jwz.newest(project.folder)
    loop = partial(project.as_agent, "loop")
    loop("pause")
    loop("resume")
    after = jwz.newest(project.folder)
    assert {**after, "updated_at": None} == {**before, "updated_at": None}


# ---- what a person reads -------------------------------------------------------

GROUPS = pytest.mark.parametrize("group", ["loop", "ralph"])


@GROUPS
def test_pause_and_resume_name_the_loop_and_what_happens_next(project, group):
    run = partial(project.as_agent, group)
    limit = "--max" if group == "loop" else "--max-iterations"
    name = "loop" if group == "loop" else "ralph loop"
    assert run("start", limit, "9", "Make it green.", session="mine").returncode == 0
    about = "at iteration 1 of 9.\nGoal: Make it green.\n"
    resume = f"To continue it:  tailhook {group} resume\n"
    prompt = "It continues at the agent's next stop. If the agent has stopped already, send it a prompt.\n"
    for session in (None, "mine"):
        assert run("pause", session=session).stdout == f"The {name} of session mine was paused {about}{resume}"
        assert run("resume", session=session).stdout == f"The {name} of session mine was resumed {about}{prompt}"


@GROUPS
def test_resume_in_another_session_does_not_promise_that_the_loop_continues_there(project, group):
    run = partial(project.as_agent, group)
    assert run("start", "Go.", session="mine").returncode == 0
    assert run("pause", session="mine").returncode == 0
    resumed = run("resume", session="other").stdout
    assert resumed.endswith(f"\nTo continue it in this session, as after /clear:  tailhook {group} adopt\n")
    assert "next stop" not in resumed
    project.argv = [*project.argv[:-1], "ralph" if group == "ralph" else "idle"]
    assert project.stop("Hm.", session_id="other").allowed
    assert run("adopt", session="other").returncode == 0
    assert not project.stop("Hm.", session_id="other").allowed


@GROUPS
def test_adopt_names_what_continues_a_paused_loop(project, group):
    run = partial(project.as_agent, group)
    assert run("start", "Go.", session="mine").returncode == 0
    assert "paused" not in run("adopt", session="other").stdout
    assert run("pause", session="other").returncode == 0
    adopted = run("adopt", session="mine").stdout
    assert adopted.endswith(f"session mine.\nIt is paused. To continue it:  tailhook {group} resume\n")


@GROUPS
def test_a_folder_elsewhere_is_named_before_the_command_on_its_own_line(project, group):
    below = project.folder / "below"
    (below / ".git").mkdir(parents=True)
    assert project.as_agent(group, "start", "Go.").returncode == 0
    paused = tailhook(group, "pause", env=project.env, cwd=below).stdout.splitlines()
    assert paused[0].endswith(f" It is in {project.folder}.")
    assert paused[-1] == f"To continue it:  tailhook {group} resume"
