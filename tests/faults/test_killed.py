"""A hook killed at any system call leaves the old state or the new one, no lock, and a store that the next hook uses.

`make faults` kills at every call of every case. The suite takes the commonest cases, and some calls of the last third:
there, the store is read and written.
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from support.host import HANGS_S, Project, assistant, frame, looping, ralph_page
from support.oracles import jwz
from support.pool import Pool, wait_until
from support.ptrace import kill_when, run_until
from support.triage import entry, pipeline

DONE = "<loop-done>COMPLETE</loop-done>"
EVERY = os.environ.get("TAILHOOK_FAULTS") == "1"
FALLBACK = "---\nactive: true\niteration: 3\nmax_iterations: 10\n---\nThe prompt.\n"
# The content of the project - a state of the store, or a file of .claude and its text - and the agent's message.
CASES = {
    "iterating": (looping(frame(iter=3)), "Hm."),
    "completing": (looping(frame(iter=3)), DONE),
    "fallback": (("idle-loop.local.md", FALLBACK), "Hm."),
    "ralph": (("ralph-loop.local.md", ralph_page()), "Hm."),
    "ralph's promise": (("ralph-loop.local.md", ralph_page()), "<promise>TESTS GREEN</promise>"),
    "triage": (("triage_state/x_triage.json", json.dumps(pipeline("triage", entry()))), "Hm."),
    "nested": (looping(frame(id="outer", iter=7), frame(iter=3)), DONE),
    "claiming": (looping(frame(iter=3, session_id="claim")), "Hm."),
    "stale": (looping(frame(iter=3), age=9000), "Hm."),
    "aborted": (looping(frame(iter=3), event="ABORT"), "Hm."),
}

MAX_RUNS = 20  # of one system call: on a busy machine the worker may be too late for a hook, which is then cold
GOES_ON = ("iterating", "fallback", "ralph", "nested", "claiming")


def killed_calls(calls: int) -> list[int]:
    """Return at which of a hook's system calls it is killed; after the last one, it is not.

    A few are chosen, and the last ones: some hooks save just before their end.
    """
    chosen = range(1 if EVERY else calls * 2 // 3, calls + 2, 1 if EVERY else 11)
    return sorted({*chosen, *range(calls - 7, calls + 2)})


class Scene:
    """A project that can be put back as it was before the stop."""

    def __init__(self, project: Project, name: str) -> None:
        self.project = project
        state, said = CASES[name]
        project.write(assistant("Before.", id="m0"), assistant(said))
        self.payload = project.home / "payload.json"
        self.payload.write_text(json.dumps(project.payload()))
        self.file = project.folder / ".jwz" / "messages.jsonl"
        if isinstance(state, tuple):
            file, text = state
            self.file = project.folder / ".claude" / file
            self.file.parent.mkdir(parents=True)
            self.file.write_text(text)
            project.argv = [*project.argv[:-1], file.replace("_", "-").partition("-")[0]]
            # The file's own time is later than the transcript's each time it is put back.
            self.payload.write_text(json.dumps(project.payload(last_assistant_message=said)))
        else:
            jwz.post(project.folder, json.dumps(state))
        self.before = self.file.read_bytes()

    def reset(self) -> None:
        """Undo the stop."""
        for path in self.file.parent.iterdir():
            if path.name not in ("lock", self.file.name):
                path.unlink()
        self.file.write_bytes(self.before)

    def run(self, calls: int | None) -> tuple[int, int]:
        """Run one stop, killed at a system call."""
        project = self.project
        return run_until(project.argv, project.env, str(project.folder), str(self.payload), lambda call: call == calls)

    def state(self) -> object:
        """Return the state as a reader sees it, without the times and ids that differ from run to run."""
        if self.file.suffix == ".md":
            return self.file.read_text() if self.file.exists() else None
        if self.file.suffix == ".json":
            return {**json.loads(self.file.read_text()), "updated_at": None}
        whole = self.file.read_bytes()
        assert whole.startswith(self.before)
        lines = [json.loads(line) for line in whole.splitlines()]
        assert all(isinstance(line, dict) for line in lines)
        assert whole.endswith(b"\n")
        body = json.loads(lines[-1]["body"])
        del body["updated_at"]
        return body


@pytest.mark.parametrize("name", CASES if EVERY else list(CASES)[:6])
def test_killed_at_any_system_call_the_state_is_the_old_one_or_the_new(project, report, name):
    scene = Scene(project, name)
    old = scene.state()
    _, calls = scene.run(None)
    new = scene.state()
    assert new != old
    seen = []
    for number in killed_calls(calls):
        scene.reset()
        code, _ = scene.run(number)
        state = scene.state()
        assert state in (old, new), f"killed at call {number} of {calls}"
        assert code == -9 or state == new
        seen.append(state == new)
        # The lock died with its holder, and the store works.
        after = project.hook(scene.payload.read_bytes())
        assert "could not" not in after.stderr
        assert (scene.state() != state) is (state == old or name in GOES_ON)
    assert seen == sorted(seen), "once new, always new"
    assert {True, False} <= set(seen)
    report(f"faults: {name} killed at {min(len(seen), calls)} of its {calls} system calls, no state lost or torn")


@pytest.mark.parametrize("owner", ["claim", "another"])
def test_killed_at_any_system_call_of_a_prompt_the_next_prompt_gives_what_was_not_saved(project, report, owner):
    """It gives the briefing of a loop that waits for its session, or the notice about another session's loop."""
    jwz.post(project.folder, json.dumps(looping(frame(iter=3, session_id=owner, began="2026-01-02T03:04:05Z"))))
    payload = project.home / "payload.json"
    payload.write_text(json.dumps(project.payload(hook_event_name="UserPromptSubmit", prompt="Go on.")))
    notices = project.home / ".local" / "state" / "tailhook" / "notices"
    file = notices if owner == "another" else project.folder / ".jwz" / "messages.jsonl"
    before = file.read_bytes() if file.exists() else b""

    def run(calls):
        if file.exists():
            file.write_bytes(before)
        return run_until(project.argv, project.env, str(project.folder), str(payload), lambda call: call == calls)

    run(None)  # makes the folders
    _, calls = run(None)
    saved = file.read_bytes()
    assert len(saved) > len(before)
    seen = []
    for number in killed_calls(calls):
        code, _ = run(number)
        is_saved = len(file.read_bytes() if file.exists() else b"") == len(saved)
        assert is_saved or (file.read_bytes() if file.exists() else b"") == before
        assert bool(project.hook(payload.read_bytes()).stdout) is not is_saved
        seen.append((code == -9, is_saved))
    assert {(True, True), (True, False)} <= set(seen), "killed before the save and after it"
    report(f"faults: a prompt killed at {min(len(seen), calls)} of its {calls} system calls")


def test_killed_at_any_system_call_an_event_is_in_the_spool_whole_or_not_at_all(project, report):
    project.argv = [*project.argv[:-1], "plates"]
    project.env["TAILHOOK_NO_AUTOSTART"] = "1"
    payload = project.home / "payload.json"
    payload.write_text(json.dumps(project.payload(hook_event_name="PostToolUse", tool_name="Read")))
    spool = project.home / ".local" / "state" / "tailhook" / "events"

    def run(calls):
        spool.unlink(missing_ok=True)
        code, made = run_until(project.argv, project.env, str(project.folder), str(payload), lambda call: call == calls)
        events = [json.loads(line) for line in spool.read_text().splitlines()] if spool.exists() else []
        assert not events or spool.read_bytes().endswith(b"\n")
        return code, made, len(events)

    _, calls, _ = run(None)
    seen = [run(number)[2] for number in killed_calls(calls)]
    assert seen == sorted(seen), "once there, always there"
    assert set(seen) == {0, 1}
    report(f"faults: plates killed at {min(len(seen), calls)} of its {calls} system calls, no event torn")


@pytest.mark.parametrize("name", CASES)
def test_a_worker_killed_at_any_system_call_answers_rightly_or_lets_the_agent_go(report, name):
    with tempfile.TemporaryDirectory(prefix="tailhook-") as home, Pool(Path(home)) as pool:
        scene = Scene(Project(Path(home, "project"), Path(home, "home"), [*pool.argv, "idle"]), name)
        old, outcomes = scene.state(), set()
        code, calls = run_with_watched_worker(pool, scene)
        new = scene.state()
        assert new != old
        step = 1 if EVERY else 20
        for number in [*range(1, calls + 1, step), calls + 1]:
            for _ in range(MAX_RUNS):
                scene.reset()
                pool.stop_until_warm()  # after ten workers that ended without an answer the pool would leave
                hook, entered = run_with_killed_worker(pool, scene, number)
                if entered >= min(number, calls):
                    break
            state, words = scene.state(), hook.stderr
            is_killed = hook.returncode == 0 and b"was killed" in words
            assert state in (old, new), f"killed at call {number} of {calls}"
            assert is_killed or (hook.returncode == code and state == new), f"call {number} of {calls}: {words}"
            outcomes.add((is_killed, state == old))
            after = scene.project.hook(scene.payload.read_bytes())
            assert "could not" not in after.stderr
            assert (scene.state() != state) is (state == old or name in GOES_ON)
        assert {(False, False), (True, True)} <= outcomes
        report(f"faults: {name}: a worker killed at {calls} system calls; carried out once, cold, or not at all")


def run_with_watched_worker(pool, scene):
    """Run a stop until a worker answers it; return the exit code and how many system calls the worker made."""
    while True:
        pool.stop_until_warm()
        before = pool.records("Stop")
        hook, calls = run_with_killed_worker(pool, scene, None)
        if "w" in pool.ways_after(before):
            return hook.returncode, calls
        scene.reset()


def run_with_killed_worker(pool, scene, number):
    """Run a stop whose worker is killed at a system call; return the ended hook and how many calls the worker made.

    The parent is stopped meanwhile: it would start a second worker.
    """
    project, done, entered = scene.project, [], None

    def run():
        with scene.payload.open("rb") as stdin:
            options = {"stdin": stdin, "env": project.env, "cwd": project.folder, "capture_output": True}
            done.append(subprocess.run(project.argv, check=False, timeout=HANGS_S, **options))
        pool.finds_socket()  # wakes the worker, which waits in a system call

    hook = threading.Thread(target=run)
    while entered is None:  # the worker may be one that is ending
        wait_until(lambda: len(pool.workers()) >= 2)
        worker, *others = pool.workers()
        os.kill(pool.pid, signal.SIGSTOP)
        for other in others:
            with suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
        try:
            entered = kill_when(worker, hook.start, lambda call: call == number, lambda: bool(done))
        finally:
            os.kill(pool.pid, signal.SIGCONT)
    hook.join()
    return done[0], entered


def test_a_process_that_has_ended_is_not_followed():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    begun = []
    assert kill_when(child.pid, lambda: begun.append(True), lambda _: True, lambda: False) is None
    assert begun == []
    assert child.wait() == 0


@pytest.mark.parametrize(("name", "times"), [("iterating", 1), ("fallback", 2), ("ralph", 2), ("triage", 2)])
def test_with_fsync_a_save_waits_for_the_file_and_a_new_name_for_its_folder(project, name, times):
    scene, calls = Scene(project, name), {}
    for value in ("0", "0", "1"):  # the first makes the private folder
        project.env["TAILHOOK_FSYNC"] = value
        calls[value] = scene.run(None)[1]
        scene.reset()
    assert calls["1"] == calls["0"] + times


def test_killed_at_any_system_call_memory_reports_unless_it_is_kept_that_it_did(project, report):
    project.argv = [*project.argv[:-1], "memory"]
    project.write(assistant("We chose A because of B.\nWe picked C over D."))
    payload = project.home / "payload.json"
    payload.write_text(json.dumps(project.payload()))
    flag, marks = project.folder / ".claude" / ".stop_hook_active", project.home / ".local/state/tailhook"
    _, calls = run_until(project.argv, project.env, str(project.folder), str(payload), lambda _: False)
    (mark,) = marks.rglob("*.memory")
    whole, seen = {**json.loads(mark.read_bytes()), "blocked": None}, []
    for number in killed_calls(calls):
        flag.unlink(missing_ok=True)
        mark.unlink(missing_ok=True)
        run_until(project.argv, project.env, str(project.folder), str(payload), number.__eq__)
        flagged, kept = flag.exists(), mark.exists()
        assert not flagged or flag.read_text().endswith("\nmine\n"), f"killed at call {number} of {calls}"
        assert kept or not flagged, f"killed at call {number} of {calls}"
        assert not kept or {**json.loads(mark.read_bytes()), "blocked": None} == whole
        seen.append(flagged + kept)
        stop = project.stop()  # the lock died with its holder
        assert (stop.exit_code, stop.stderr == "") == (2 - 2 * kept, kept)
        assert project.stop().exit_code == 0
    assert seen == sorted(seen), "once new, always new"
    assert {0, 2} <= set(seen)
    report(f"faults: memory killed at {min(len(seen), calls)} of its {calls} system calls, no session left unreported")
