"""Many hooks at once count every one of them, among other writers of the store."""

import contextlib
import fcntl
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest
from support.host import assistant, frame, in_time, looping, ralph_page, run_on_payload
from support.long_runs import IS_LONG
from support.oracles import jwz
from support.pool import wait_until
from support.triage import entry, pipeline

from tailhook.pool.installation import CLIENT_FILE, client_folder_of
from tailhook.stores.hook_times import WARM, read_times

pytestmark = pytest.mark.one_form
HOOKS = 64 if IS_LONG else 16


def run_hook(project, session_id="mine", cwd=None):
    """Run a hook to its end. One that gives up at a time limit of its own has changed nothing, and runs again."""
    fields = {"session_id": session_id, "last_assistant_message": "Hm.", "cwd": str(cwd or project.folder)}
    payload = json.dumps(project.payload(**fields)).encode()
    return in_time(lambda: run_on_payload(project.argv, payload, env=project.env, cwd=project.folder))


def run_hooks_at_once(*hooks):
    """Run functions, all at once; return their results in that order."""
    with ThreadPoolExecutor(len(hooks)) as threads:
        return list(threads.map(lambda hook: hook(), hooks))


def is_warm(project):
    """Return whether the project's hook is the client."""
    return Path(project.argv[0]).name == CLIENT_FILE


def warm_hooks(project):
    """Return the workers' records of the last hooks; the folder of the records is the client's."""
    records = read_times(client_folder_of(project.argv[0])).get("Stop", [])
    return {record for record in records if record[2] == WARM}


def stop_all_at_once(project, exit_code=2):
    """Run many hooks side by side; return the answers of the blocking ones, with that exit code.

    In the warm form workers answer some of them; the others are cold, as no worker is free in time. On a busy machine
    that may be all: then a worker answers a later hook, elsewhere.
    """
    before = warm_hooks(project) if is_warm(project) else set()
    done = run_hooks_at_once(*[partial(run_hook, project)] * HOOKS)
    if is_warm(project):
        wait_until(lambda: warm_hooks(project) - before or stop_elsewhere(project))
    assert {hook.returncode for hook in done} <= {0, exit_code}, done
    return [json.loads(hook.stdout) for hook in done if hook.stdout]


def stop_elsewhere(project):
    """Run a hook in a folder without a loop."""
    elsewhere = project.home / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    payload = json.dumps(project.payload(session_id="other", cwd=str(elsewhere)))
    env = {**project.env, "CLAUDE_PROJECT_DIR": str(elsewhere)}
    run_on_payload(project.argv, payload.encode(), env=env, cwd=elsewhere, check=True)


@pytest.mark.parametrize("store", ["jwz", "file"])
def test_many_hooks_at_once_count_all(project, store):
    if store == "jwz":
        project.loop(frame(max=1000))
    else:
        path = project.folder / ".claude" / "idle-loop.local.md"
        path.parent.mkdir()
        path.write_text("---\nactive: true\niteration: 1\nmax_iterations: 1000\n---\nThe prompt.\n")
    announced = [answer["reason"].split("]")[0] for answer in stop_all_at_once(project)]
    assert sorted(announced) == sorted(f"[ITERATION {count}/1000" for count in range(2, HOOKS + 2))
    if store == "jwz":
        assert jwz.newest(project.folder)["stack"][0]["iter"] == HOOKS + 1
        assert len(jwz.messages(project.folder)) == HOOKS + 1
    else:
        assert f"iteration: {HOOKS + 1}\n" in path.read_text()


NOTES = b'{"type":"message","id":"00000000000000000000000000","topic_id":"OTHER","parent_id":null,"body":"%s"}\n' % (
    b"x" * 170
)


def write_large_store(project):
    """Write a loop's store with a million messages before the loop's topic."""
    messages = project.folder / ".jwz" / "messages.jsonl"
    messages.parent.mkdir()
    messages.write_bytes(NOTES * 1_000_000)
    with messages.open("a") as out:
        out.write('{"type":"topic","id":"T","name":"loop:current","description":"","created_at":1}\n')
        body = json.dumps(looping(frame(max=1000)))
        out.write(json.dumps({"type": "message", "id": "M", "topic_id": "T", "body": body, "created_at": 1}) + "\n")


def test_eight_hooks_at_once_count_eight_in_a_store_of_a_million_messages(project):
    write_large_store(project)
    done = run_hooks_at_once(*[partial(run_hook, project)] * 8)
    announced = [json.loads(hook.stdout)["reason"].split("]")[0] for hook in done]
    assert sorted(announced) == sorted(f"[ITERATION {count}/1000" for count in range(2, 10)), done


def test_many_hooks_at_once_count_all_in_a_ralph_loop(project):
    path = project.ralph(max_iterations=100)
    announced = {answer["systemMessage"].split(".")[0] for answer in stop_all_at_once(project, exit_code=0)}
    assert announced == {f"Ralph iteration {count} of 100" for count in range(2, HOOKS + 2)}
    assert path.read_text() == ralph_page(iteration=HOOKS + 1, max_iterations=100)


def test_many_hooks_at_once_move_a_triage_phase_once(project):
    path = project.triage(pipeline("triage", entry()))
    answers = stop_all_at_once(project, exit_code=0)
    assert ["triage-aggregator" in answer["reason"] for answer in answers] == [True] * HOOKS
    assert json.loads(path.read_text())["phase"] == "aggregation"


@pytest.mark.parametrize("machine", ["ralph", "idle", "triage", "memory"])
def test_a_project_under_several_spellings_of_its_path_counts_exactly(project, machine):
    """A link to it, a dot, a doubled slash: one file, and so one lock."""
    link = project.home / "link"
    link.symlink_to(project.folder)
    name = project.folder.name
    spellings = [project.folder, link, f"{project.folder.parent}/./{name}", f"/{project.folder}"]
    file = project.folder / ".claude" / "idle-loop.local.md"
    if machine == "ralph":
        file = project.ralph(max_iterations=1000)
    elif machine == "triage":
        file = project.triage(pipeline("triage", entry()))
    else:
        file.parent.mkdir()
        project.write(assistant("We chose A because of B.\nWe picked C over D."))
        if machine == "idle":
            file.write_text("---\nactive: true\niteration: 1\nmax_iterations: 1000\n---\nThe prompt.\n")
        project.argv = [*project.argv[:-1], machine]
    done = run_hooks_at_once(*[partial(run_hook, project, cwd=spelling) for spelling in spellings * 5])
    blocked = sum(bool(hook.stdout) for hook in done)
    assert blocked == (1 if machine == "memory" else 20)
    if machine in ("ralph", "idle"):
        assert "\niteration: 21\n" in file.read_text()
    assert len(list((project.home / ".local/state/tailhook").rglob("*.lock"))) == 1


@pytest.mark.parametrize("machine", ["ralph", "triage", "memory"])
def test_a_lock_that_another_keeps_lets_the_agent_go_with_a_warning(project, machine):
    project.write(assistant("We chose A because of B.\nWe picked C over D."))
    file = {"ralph": project.ralph(), "triage": project.triage(pipeline("triage", entry()))}.get(machine)
    before = file.read_bytes() if file else b""
    project.argv = [*project.argv[:-1], machine]
    assert not project.stop().allowed  # makes the lock
    private = project.home / ".local/state/tailhook"
    for mark in (*private.rglob("*.memory"), *project.folder.glob(".claude/.stop_hook_active")):
        mark.unlink()
    if file:
        file.write_bytes(before)
    (lock,) = private.rglob("*.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        stop = project.stop()
    assert stop.allowed
    assert "locked by another process for 2 s" in stop.stderr
    assert stop.stderr.count("\n") == 1
    assert file is None or file.read_bytes() == before
    assert not project.stop().allowed


@pytest.fixture
def memorable(project):
    """Return a project with a hook for the memory machine, in a session with something to save."""
    project.argv = [*project.argv[:-1], "memory"]
    project.write(assistant("We chose A because of B.\nWe picked C over D."))
    return project


def test_of_many_hooks_at_once_one_reports_what_to_save(memorable):
    assert len(stop_all_at_once(memorable)) == 1


def is_opened_again(path):
    """Return whether another process, a hook or a worker, has a file open."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and any(file.path == str(path) for file in process.open_files()):
                return True
    return False


def test_a_large_store_is_read_before_its_lock_is_taken(project):
    write_large_store(project)
    lock = project.folder / ".jwz" / "lock"
    with ThreadPoolExecutor(1) as threads, lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        hook = threads.submit(run_hook, project)
        wait_until(lambda: is_opened_again(lock))
        assert list((project.home / ".local/state/tailhook").rglob("jwz-*"))  # what it remembers of the messages
    assert hook.result().returncode == 2


def test_a_hook_that_another_overtakes_while_it_reads_reports_nothing(memorable):
    assert memorable.stop().exit_code == 2
    private = memorable.home / ".local/state/tailhook"
    (mark,), (lock,) = private.rglob("*.memory"), private.rglob("*.lock")
    reported = mark.read_bytes()
    mark.unlink()
    (memorable.folder / ".claude/.stop_hook_active").unlink()
    with ThreadPoolExecutor(1) as threads, lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        hook = threads.submit(run_hook, memorable)
        wait_until(lambda: is_opened_again(lock))  # it has read the transcript
        mark.write_bytes(reported)
    assert hook.result().returncode == 0


def test_other_writers_of_the_store_lose_nothing_and_cost_nothing(project):
    project.loop(frame(max=1000))
    stop = threading.Event()
    posted = []

    def chatter():
        while not stop.is_set():
            posted.append(len(posted))
            jwz.post(project.folder, f"note {posted[-1]}", topic="notes")

    writer = threading.Thread(target=chatter)
    writer.start()
    try:
        assert len(stop_all_at_once(project)) == HOOKS
    finally:
        stop.set()
        writer.join()
    assert jwz.newest(project.folder)["stack"][0]["iter"] == HOOKS + 1
    assert [record["body"] for record in jwz.messages(project.folder, "notes")] == [f"note {n}" for n in posted]


def test_the_first_of_two_sessions_claims_the_loop_and_the_other_is_let_go(project):
    jwz.post(project.folder, json.dumps(looping(frame(session_id="claim"))))
    names = ("one", "two") * 4
    codes = {}
    for name, hook in zip(names, run_hooks_at_once(*[partial(run_hook, project, name) for name in names]), strict=True):
        codes.setdefault(name, set()).add(hook.returncode)
    owner = jwz.newest(project.folder)["stack"][0]["session_id"]
    other = "two" if owner == "one" else "one"
    assert codes == {owner: {2}, other: {0}}
    assert jwz.newest(project.folder)["stack"][0]["iter"] == 5


@pytest.mark.parametrize("kind", ["jwz", "file", "ralph"])
def test_a_loop_that_is_cancelled_among_hooks_is_gone_for_all_later_ones(project, kind):
    file = project.folder / ".claude" / "idle-loop.local.md"
    if kind == "jwz":
        project.loop(frame(max=1000))
    elif kind == "ralph":
        file = project.ralph(max_iterations=1000)
    else:
        file.parent.mkdir()
        file.write_text("---\nactive: true\niteration: 1\nmax_iterations: 1000\n---\nThe prompt.\n")
    *done, cancelled = run_hooks_at_once(
        *[partial(run_hook, project)] * 4,
        partial(in_time, lambda: project.as_agent("ralph" if kind == "ralph" else "loop", "cancel", "--json")),
    )
    blocks = [bool(hook.stdout) for hook in done]
    assert json.loads(cancelled.stdout)["iteration"] == 1 + sum(blocks)  # the hooks before it
    assert not file.exists()
    assert kind != "jwz" or jwz.newest(project.folder)["event"] == "ABORT"
    assert project.stop("Hm.").allowed
