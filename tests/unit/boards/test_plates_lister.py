"""When the host is asked for its list, and which of its sessions the boards get. The clock is simulated."""

import asyncio
import json

import psutil
import pytest

from tailhook.machines.plates import Status
from tailhook.plates.db import SessionProject
from tailhook.plates.hub import Hub
from tailhook.plates.listed import ListedSession, ListError
from tailhook.plates.lister import Lister, run_list
from tailhook.plates.rows import empty_plate


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Return a home without the host's files."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return tmp_path


def listed(session_id, status=Status.RUNNING, pid=None):
    """Return a session of the host's list."""
    return ListedSession(session_id, "/p", "", status, "", pid, None)


def write_files(folder, session_id="a", status="busy", changed=1_700_000_000_123):
    """Write the host's files about a session with process 7; return its transcript's path."""
    transcript = folder / "projects" / "-p" / "a.jsonl"
    state = folder / "sessions" / "7.json"
    for path in (transcript, state):
        path.parent.mkdir(parents=True)
    transcript.write_text("{}\n")
    state.write_text(json.dumps({"sessionId": session_id, "status": status, "statusUpdatedAt": changed}))
    return str(transcript)


class Run:
    """A lister whose host answers from a script. When it sleeps, the time moves on, and the next step is taken.

    steps: each is the host's answer (a list, or an error to raise), or a function to call with the hub.
    starts: when the host was asked, in simulated seconds.
    shown, failures: the sessions on the boards, and why there is no list, after each answer.
    replaced: the processes whose placeholders were removed.
    """

    def __init__(self, *steps, reported=(), watched=True, replace=None):
        self.steps = list(steps)
        self.hub = Hub()
        self.time = 0.0
        self.is_asking = self.is_over = False
        self.starts, self.shown, self.failures, self.replaced = [], [], [], []
        asyncio.run(self.run(reported, watched, replace or self.replaced.append))

    async def run(self, reported, watched, replace):
        self.hub.loop = asyncio.get_running_loop()
        lister = Lister(self.hub, "spool", replace, self.ask, self.sleep)

        async def read():
            return [SessionProject(session, "/p", True) for session in reported]

        await self.hub.load(read)
        if watched:
            self.hub.is_watched.set()
        task = asyncio.create_task(lister.follow())
        while not (self.is_over or task.done()):
            await asyncio.sleep(0)
            if not (self.is_asking or self.hub.is_watched.is_set()):
                self.is_over = not self.steps
                self.take()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def take(self):
        """Take the steps until the next answer, or until the board is closed."""
        while self.steps and callable(self.steps[0]):
            step = self.steps.pop(0)
            step(self.hub)
            if step is close:
                return

    async def ask(self):
        if not self.steps:
            self.is_over = True
            await asyncio.Event().wait()
        self.is_asking = True
        self.starts.append(self.time)
        self.take()
        answer = self.steps.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds):
        if self.is_asking:
            self.shown.append(sorted(self.hub.listed))
            self.failures.append(self.hub.list_failure)
        self.is_asking = False
        self.time += seconds
        self.take()


def close(hub):
    hub.is_watched.clear()


def open_board(hub):
    hub.is_watched.set()


def test_the_host_is_asked_every_ten_seconds_while_a_board_is_open():
    run = Run([], [], [], [])
    assert run.starts == [0, 10, 20, 30]


def test_the_host_is_not_asked_without_a_board():
    run = Run(open_board, [listed("a")], watched=False)
    assert run.starts == [0]
    closed = Run([listed("a")], close, lambda hub: None)
    assert closed.starts == [0]


def test_a_board_that_is_closed_and_opened_does_not_ask_sooner():
    run = Run([], close, open_board, [], close, open_board, [])
    assert run.starts == [0, 10, 20]


def test_sessions_appear_and_leave_with_the_list():
    run = Run([listed("a")], [listed("a"), listed("b")], [listed("b")], [])
    assert run.shown == [["a"], ["a", "b"], ["b"], []]


def test_a_session_that_a_hook_has_reported_is_left_to_the_hooks():
    run = Run([listed("a"), listed("b")], reported=["a"])
    assert run.shown == [["b"]]


def test_a_listed_process_and_its_ancestors_need_no_placeholder_whether_or_not_a_hook_reports_its_session():
    here = psutil.Process()
    gone = 2**22 + 1  # more than Linux and macOS have
    run = Run([listed("a", pid=here.pid), listed("b"), listed("c", pid=gone)], reported=["a"])
    assert run.replaced == [{here.pid, gone, *(parent.pid for parent in here.parents())}]


def report(session_id):
    """Return a step: a hook reports a session."""
    return lambda hub: hub.publish_plate(empty_plate(session_id, "/p", 1))


def test_a_session_is_left_to_the_hooks_from_its_first_event_on():
    run = Run([listed("a")], report("a"), [listed("a")], [])
    assert run.shown == [["a"], [], []]
    assert "a" in run.hub.names.paths


def test_a_hook_that_reports_while_the_host_is_asked_wins():
    run = Run(report("a"), [listed("a")])
    assert run.shown == [[]]


def test_a_session_that_was_removed_from_the_hooks_database_is_shown_if_it_is_listed():
    run = Run(lambda hub: hub.publish_removal("a"), [listed("a")], reported=["a"])
    assert run.shown == [["a"]]


def test_a_failure_shows_no_old_sessions_and_is_kept_until_the_next_answer():
    run = Run([listed("a")], ListError("exit status 1"), [listed("a")])
    assert run.shown == [["a"], [], ["a"]]
    assert run.failures == ["", "exit status 1", ""]


def test_a_host_that_fails_again_and_again_is_asked_less_and_less():
    run = Run(*[ListError("error: unknown option '--json'")] * 6)
    assert run.starts == [0, 60, 420, 2580, 6180, 9780]
    assert run.hub.list_failure == "error: unknown option '--json'"


def open_another(hub):
    hub.opened += 1


@pytest.mark.parametrize("opening", [[open_another], [close, open_board]])
def test_a_board_that_is_opened_after_failures_ends_the_long_wait(opening):
    failure = ListError("busy")
    run = Run(*[failure] * 4, *opening, failure, failure, [])
    assert run.starts == [0, 60, 420, 2580, 2590, 2650, 3010]


def test_a_database_that_cannot_be_written_hides_no_session_and_is_not_called_a_failure_of_the_host(caplog):
    def refuse(pids):
        raise OSError("disk full")

    run = Run([listed("a")], [listed("a")], replace=refuse)
    assert (run.shown, run.failures, run.starts) == ([["a"], ["a"]], ["", ""], [0, 10])
    assert "disk full" in caplog.text


def test_after_an_answer_the_interval_is_the_usual_one():
    run = Run(ListError("busy"), [], ListError("busy"), [])
    assert run.starts == [0, 60, 70, 130]


def test_the_same_failure_is_logged_once(caplog):
    Run(ListError("one"), ListError("one"), ListError("two"), [], ListError("two"))
    assert [record.args[0] for record in caplog.records] == ["one", "two", "two"]


def test_any_failure_is_only_logged():
    run = Run(OSError(8, "Exec format error", "/bin/claude"), RuntimeError("no home"), [listed("a")])
    assert run.shown == [[], [], ["a"]]


def test_what_a_person_hid_stays_hidden_when_the_boards_were_closed():
    def hide(hub):
        hub.publish_listed({**hub.listed["a"], "hidden_at": 5})

    gone = []
    run = Run([listed("a")], hide, close, lambda hub: gone.append(hub.listed == {}), open_board, [listed("a")])
    assert gone == [True]
    assert run.hub.listed["a"]["hidden_at"] == 5


def test_the_hosts_files_add_the_transcript_and_the_time_of_the_status(home):
    transcript = write_files(home / ".claude")
    (plate,) = Run([listed("a", pid=7)]).hub.listed.values()
    assert (plate["transcript_path"], plate["since"]) == (transcript, 1_700_000_000_123)


def test_the_hosts_files_are_found_in_the_folder_that_its_variable_names(home, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    transcript = write_files(home / "elsewhere")
    (plate,) = Run([listed("a", pid=7)]).hub.listed.values()
    assert plate["transcript_path"] == transcript


@pytest.mark.parametrize(
    "files",
    [
        {"status": "idle"},  # it has changed since the list was made
        {"session_id": "another"},
        {"changed": "yesterday"},
        {"changed": 10**300},
        {"changed": -5},
    ],
)
def test_a_file_that_does_not_fit_the_list_adds_no_time(home, files):
    write_files(home / ".claude", **files)
    run = Run([listed("a", pid=7)], [listed("a", pid=7)])
    (plate,) = run.hub.listed.values()
    assert plate["since"] == plate["updated_at"]
    assert run.failures == ["", ""]


def test_a_session_without_files_is_shown():
    run = Run([listed("a", pid=7)])
    assert run.shown == [["a"]]
    assert run.hub.listed["a"]["transcript_path"] is None


def test_a_folder_of_transcripts_that_cannot_be_read_hides_no_session(home):
    (home / ".claude").write_text("a file")
    assert Run([listed("a", pid=7)]).shown == [["a"]]


# ---- the program -----------------------------------------------------------------


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Return a function that runs the program `claude`, a shell script with these lines, and returns the sessions."""

    def run(script):
        program = tmp_path / "bin" / "claude"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return [one.session_id for one in asyncio.run(run_list())]

    return run


def test_the_sessions_that_the_program_prints_are_listed(ask):
    assert ask("""echo '[{"sessionId": "a", "cwd": "/p"}]'""") == ["a"]


def test_the_reason_of_a_program_that_fails_is_its_exit_status_with_its_errors(ask):
    with pytest.raises(ListError, match=r"^exit status 3: error: no such option$"):
        ask("echo 'error: no such option' >&2; exit 3")


@pytest.mark.parametrize(("blanks", "is_read"), [((1 << 20) - 3, True), ((1 << 20) - 2, False)])
def test_a_mebibyte_of_output_is_too_much(ask, blanks, is_read):
    script = f"printf '[%{blanks}s]' ''"
    if is_read:
        assert ask(script) == []
    else:
        with pytest.raises(ListError, match="it printed more than 1048576 bytes"):
            ask(script)
