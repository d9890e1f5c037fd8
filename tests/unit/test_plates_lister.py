"""When the host is asked for its list, and which of its sessions the boards get. The clock is simulated."""

import asyncio

from tailhook.machines.plates import Status
from tailhook.plates.db import SessionProject
from tailhook.plates.hub import Hub
from tailhook.plates.listed import ListedSession, ListError
from tailhook.plates.lister import LIST_INTERVAL_S, MAX_RETRY_DELAY_S, Lister
from tailhook.plates.rows import empty_plate


def listed(session_id, status=Status.RUNNING):
    """Return a session of the host's list."""
    return ListedSession(session_id, "/p", "", status, "", None, None)


class Run:
    """A lister whose host answers from a script. When it sleeps, the time moves on, and the next step is taken.

    steps: each is the host's answer (a list, or an error to raise), or a function to call with the hub.
    starts: when the host was asked, in simulated seconds.
    shown, failures: the sessions on the boards, and why there is no list, before each sleep.
    """

    def __init__(self, *steps, reported=(), watched=True):
        self.steps = list(steps)
        self.hub = Hub()
        self.time = 0.0
        self.starts, self.delays, self.shown, self.failures = [], [], [], []
        asyncio.run(self.run(reported, watched))

    async def run(self, reported, watched):
        self.hub.loop = asyncio.get_running_loop()
        lister = Lister(self.hub, "spool", self.ask, self.sleep)

        async def read():
            return [SessionProject(session, "/p", True) for session in reported]

        await self.hub.load(read)
        if watched:
            self.hub.is_watched.set()
        task = asyncio.create_task(lister.follow())
        while self.steps and not task.done():
            before = len(self.starts)
            await asyncio.sleep(0)
            if len(self.starts) == before and not self.hub.is_watched.is_set():
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
        self.starts.append(self.time)
        self.take()
        answer = self.steps.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds):
        self.shown.append(sorted(self.hub.listed))
        self.delays.append(seconds)
        self.failures.append(self.hub.list_failure)
        self.time += seconds
        self.take()
        if not self.steps:
            await asyncio.Event().wait()


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
    assert run.delays == [60, 360, 2160, MAX_RETRY_DELAY_S, MAX_RETRY_DELAY_S, MAX_RETRY_DELAY_S]
    assert run.hub.list_failure == "error: unknown option '--json'"


def test_after_an_answer_the_interval_is_the_usual_one():
    run = Run(ListError("busy"), [], ListError("busy"))
    assert run.delays == [60, LIST_INTERVAL_S, 60]


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
