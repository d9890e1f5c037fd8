"""A hook and a command at once: one overtakes the other at each of its system calls, and the command has the last word.

A person's command must never be undone by a hook that had read the state before.
"""

import os
import sys
import threading
from argparse import Namespace
from contextlib import suppress

import pytest
from support.host import HANGS_S, frame, looping, ralph_page
from support.oracles import jwz

from tailhook._core import flock_within, write_json
from tailhook.cli import loop as loop_commands
from tailhook.cli import ralph as ralph_commands
from tailhook.cli.loop_ends import find_last_end, read_end, read_last_end
from tailhook.cli.output import CommandError
from tailhook.hook.briefings import briefing_hook
from tailhook.hook.event import HookEvent
from tailhook.hook.machines import machine_hook
from tailhook.hosts import NAMES, find_host
from tailhook.machines import idle, ralph_briefing
from tailhook.stores import RALPH_FILE, atomic
from tailhook.stores.loop import find_loop
from tailhook.stores.ralph import find_ralph

BEGAN = "2026-01-02T03:04:05Z"
PAGE = "---\nactive: true\niteration: 1\nmax_iterations: 10\n---\n\nThe prompt.\n"
NEW_GOAL = "Another task."
ENDS = {"idle": "<loop-done>COMPLETE</loop-done>", "ralph": "<promise>TESTS GREEN</promise>"}


class Race:
    """A loop at iteration 1 that the first session claims, the hooks of its agents, and a person's commands.

    kind: where it is: "jwz", "file" (without a store) or "ralph".
    """

    def __init__(self, kind, folder, environment):
        self.kind, self.folder, self.environment = kind, folder, environment
        self.machine = "ralph" if kind == "ralph" else "idle"
        self.owner = "claim"
        self.commands = ralph_commands if kind == "ralph" else loop_commands

    def begin(self):
        """Write the loop's first state."""
        files = {"file": "idle-loop.local.md", "ralph": "ralph-loop.local.md"}
        for path in (*self.folder.glob(".jwz/messages.jsonl"), *self.folder.glob(".claude/*.md")):
            path.unlink()
        if self.kind == "jwz":
            new = frame(session_id="claim", began=BEGAN)
            jwz.post(self.folder, write_json(looping(new)).decode())
            return
        path = self.folder / ".claude" / files[self.kind]
        path.parent.mkdir(exist_ok=True)
        path.write_text(PAGE if self.kind == "file" else ralph_page(session_id=self.owner, began=BEGAN))

    def stop(self, said="Hm.", session="mine"):
        """Let an agent stop; return the outcome, and whether the hook has ended the loop."""
        payload = {"session_id": session, "cwd": str(self.folder), "last_assistant_message": said}
        verdict = machine_hook(self.machine).ask(HookEvent(payload, "Stop"))
        return (verdict.outcome, verdict.ended) if verdict else ("allow", False)

    def prompt(self):
        """Give an agent a prompt."""
        payload = {"session_id": "mine", "cwd": str(self.folder)}
        briefing_hook(self.machine).brief(HookEvent(payload, "UserPromptSubmit"))

    def run(self, action, session="", push=False):
        """Run a command of the loop in this process, for a session or outside of one; return whether it succeeded.

        push: for `start`, nest the new loop. Otherwise it takes the place of the old one.
        """
        self.environment[b"CLAUDE_CODE_SESSION_ID"] = session.encode()
        words = Namespace(
            json=False,
            prompt=[NEW_GOAL],
            prompt_file=None,
            check=[],
            check_files=[],
            stuck_after=4,
            tokens=None,
            minutes=None,
        )
        if self.kind == "ralph":
            words = Namespace(**vars(words), max_iterations=5, completion_promise="TESTS GREEN", force=True)
        else:
            new = {"mode": "loop", "max": 5, "issue": None, "filter": None, "worktree": None}
            words = Namespace(**vars(words), **new, push=push, replace=not push)
        with suppress(CommandError):
            getattr(self.commands, f"{action}_{self.machine.replace('idle', 'loop')}")(words)
            return True
        return False

    def found(self):
        """Return the loop that a hook finds, or None."""
        return (find_ralph if self.kind == "ralph" else find_loop)([str(self.folder)])

    def goal_of(self, loop):
        """Return the goal of a loop, "" if there is none."""
        return "" if loop is None else loop.prompt if self.kind == "ralph" else loop.goal

    def values(self):
        """Return the iteration, the session and the goal of the loop."""
        loop = self.found()
        values = loop.state if self.kind == "ralph" else loop.state["stack"][-1]
        count = values["iteration" if self.kind == "ralph" else "iter"]
        return int(count), values.get("session_id"), self.goal_of(loop)

    def is_live(self):
        """Return whether a loop runs or is paused."""
        loop = self.found()
        if self.kind == "ralph":
            return loop is not None and ralph_briefing.has_counts(loop.state)
        return loop is not None and bool(loop.state["stack"]) and loop.state["event"] == "STATE"

    def is_paused(self):
        """Return whether the loop is paused."""
        if self.kind == "ralph":
            return ralph_briefing.is_ralph_paused(self.found().state)
        return idle.is_loop_paused(self.found().state["stack"][-1])

    def end_reason(self):
        """Return the reason of the last loop's end, as `status` prints it."""
        read = read_last_end if self.machine == "idle" else lambda folder: read_end(folder, RALPH_FILE)
        return find_last_end(read)[1]["reason"]


@pytest.fixture(params=["jwz", "file", "ralph"])
def race(request, tmp_path, monkeypatch):
    """Return a project with a loop; this process is its hooks and commands."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    environment = {b"HOME": os.fsencode(tmp_path)}
    monkeypatch.setattr("posix.environ", environment)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder)
    for commands in (loop_commands, ralph_commands):
        monkeypatch.setattr(commands, "report_driver", lambda *_: None)  # whether a hook is installed
    atomic.forget_folder()
    for name in NAMES:  # a program that stands in an import holds the lock of the module
        find_host(name)
    for name in ("idle", "ralph"):
        machine_hook(name)
    yield Race(request.param, folder, environment)
    atomic.forget_folder()


@pytest.fixture
def overtake(monkeypatch):
    """Run a program, and another one in its middle; return the results of both, None after the last system call.

    at: the number of the system call. Before it, the other one runs until its end, or until it waits for the lock.
    """
    stands = threading.Event()

    def wait_for_lock(fd, seconds):
        if flock_within(fd, 0):
            return True
        stands.set()
        return flock_within(fd, HANGS_S)

    monkeypatch.setattr(atomic, "flock_within", wait_for_lock)

    def run(one, other, at):
        calls, results = 0, []

        def run_other():
            try:
                results.append(other())
            finally:
                stands.set()

        second = threading.Thread(target=run_other)

        def profile(_, event, function):
            nonlocal calls
            if event == "c_call" and function.__module__ == "posix":
                calls += 1
                if calls == at:
                    sys.setprofile(None)
                    second.start()
                    assert stands.wait(HANGS_S)

        stands.clear()
        sys.setprofile(profile)
        try:
            first = one()
        finally:
            sys.setprofile(None)
            with suppress(RuntimeError):  # it was not started
                second.join()
        return None if calls < at else (first, *results)

    return run


@pytest.fixture(params=["the command overtakes the hook", "the hook overtakes the command"])
def races(request, race, overtake):
    """Yield the results of a hook and a command, for each system call at which the one overtakes the other."""

    def run(hook, command):
        at, is_command_first = 1, request.param.startswith("the hook")
        while True:
            race.begin()
            results = overtake(*((command, hook) if is_command_first else (hook, command)), at)
            if results is None:
                assert at > 10
                return
            assert len(results) == 2
            yield tuple(reversed(results)) if is_command_first else results
            at += 1

    return run


def test_a_cancelled_loop_is_gone_whatever_a_hook_had_read_before(race, races):
    for _, done in races(race.stop, lambda: race.run("cancel")):
        assert done
        assert not race.is_live()
        assert race.end_reason() == "USER_CANCELLED"
        assert race.stop() == ("allow", False)
        assert not list(race.folder.glob(".claude/*.md"))


@pytest.mark.parametrize("owner", ["claim", "another session"])
@pytest.mark.parametrize("race", ["ralph"], indirect=True)
def test_cancel_names_the_log_if_a_hook_has_written_one(race, races, capsys, owner):
    race.owner = owner
    for _, done in races(race.stop, lambda: race.run("cancel")):
        log = race.folder / ".claude" / "ralph-debug.log"
        assert done
        assert log.exists() is (f"stays: {log}\n" in capsys.readouterr().out)
        log.unlink(missing_ok=True)


def test_a_loop_is_cancelled_or_ends_by_its_signal_and_not_both(race, races):
    reasons = set()
    for (outcome, ended), done in races(lambda: race.stop(ENDS[race.machine]), lambda: race.run("cancel")):
        assert outcome == "allow"
        assert ended is not done
        assert not race.is_live()
        assert race.end_reason() == ("USER_CANCELLED" if done else "COMPLETE")
        reasons.add(race.end_reason())
    assert len(reasons) == 2


def test_a_paused_loop_stays_paused_whatever_a_hook_had_read_before(race, races):
    for (outcome, _), done in races(race.stop, lambda: race.run("pause")):
        assert done
        assert race.is_paused()
        assert race.values()[0] == (2 if outcome == "block" else 1)
        assert race.stop() == ("allow", False)


def test_an_adopted_loop_stays_the_new_sessions_whatever_a_hook_had_read_before(race, races):
    for (outcome, _), done in races(race.stop, lambda: race.run("adopt", "other")):
        assert done
        assert race.values()[:2] == (2 if outcome == "block" else 1, "other")
        assert race.stop() == ("allow", False)
        assert race.stop(session="other") == ("block", False)


def test_a_new_loop_takes_the_place_of_the_old_one_whatever_a_hook_had_read_before(race, races):
    for _, done in races(race.stop, lambda: race.run("start", "mine")):
        assert done
        assert race.values()[1:] == ("mine", NEW_GOAL)
        assert race.values()[0] in (1, 2)
        assert race.stop() == ("block", False)


@pytest.mark.parametrize("race", ["jwz"], indirect=True)
def test_a_nested_loop_is_not_lost_whatever_a_hook_had_read_before(race, races):
    for _, done in races(race.stop, lambda: race.run("start", "mine", push=True)):
        assert done
        assert race.values()[1:] == ("mine", NEW_GOAL)
        assert len(race.found().state["stack"]) == 2
        assert race.stop() == ("block", False)


@pytest.fixture
def met(race, monkeypatch):
    """Return a list with the goal of the loop in each first reading of a hook."""
    hook, name, met = machine_hook(race.machine), f"find_{'ralph' if race.kind == 'ralph' else 'loop'}", []
    find = getattr(hook, name)

    def find_and_note(*words):
        loop = find(*words)
        met.append(race.goal_of(loop))
        return loop

    monkeypatch.setattr(hook, name, find_and_note)
    return met


def test_the_signal_of_a_loop_does_not_end_the_one_that_takes_its_place(race, races, met):
    for _, done in races(lambda: race.stop(ENDS[race.machine]), lambda: race.run("start", "mine")):
        assert done
        if met.pop() != NEW_GOAL:  # otherwise it is a stop of the new loop
            assert race.values()[1:] == ("mine", NEW_GOAL)
            assert race.stop() == ("block", False)
            met.clear()


@pytest.mark.parametrize("race", ["jwz"], indirect=True)
def test_the_signal_of_a_loop_does_not_end_the_one_that_is_nested_in_it(race, races, met):
    for (_, ended), done in races(lambda: race.stop(ENDS[race.machine]), lambda: race.run("start", "mine", push=True)):
        assert done is not ended or met.pop() == NEW_GOAL
        assert done is race.is_live()
        met.clear()


def test_a_prompt_brings_no_cancelled_paused_or_replaced_loop_back(race, races):
    for _, done in races(race.prompt, lambda: race.run("cancel")):
        assert done
        assert not race.is_live()
    for _, done in races(race.prompt, lambda: race.run("pause")):
        assert done
        assert race.is_paused()
    for _, done in races(race.prompt, lambda: race.run("start", "mine")):
        assert done
        assert race.values() == (1, "mine", NEW_GOAL)


def test_a_thousand_stops_bring_no_cancelled_loop_back(race):
    """Threads race as the scheduler lets them, switched as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(334):  # of each kind of loop
            race.begin()
            start = threading.Barrier(2)

            def stop(start=start):
                start.wait()
                race.stop()

            hook = threading.Thread(target=stop)
            hook.start()
            start.wait()
            done = race.run("cancel")
            hook.join()
            assert done
            assert not race.is_live()
            assert race.stop() == ("allow", False)
    finally:
        sys.setswitchinterval(before)
