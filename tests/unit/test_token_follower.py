"""Which sessions' tokens are read, when, and what the boards learn of them."""

import asyncio
import json
from itertools import count, pairwise

import pytest
from support.databases import database_in
from support.host import assistant
from support.plate_reports import report

from tailhook.board.rows import draw_plate, find_needs
from tailhook.plates import token_follower
from tailhook.plates.db import Database
from tailhook.plates.hub import Hub
from tailhook.plates.rows import empty_plate
from tailhook.plates.session_tokens import SessionTokens
from tailhook.plates.token_follower import LOOK_INTERVAL_S, TokenFollower

numbers = count(1)  # of the responses


def write(path, session_id, *outputs):
    """Add responses of these tokens to a transcript; return its path."""
    with path.open("a") as file:
        for output in outputs:
            one = {**assistant("Done.", id=f"m{next(numbers)}"), "sessionId": session_id}
            one["message"]["usage"] = {"input_tokens": 0, "output_tokens": output}
            file.write(json.dumps(one) + "\n")
    return str(path)


class World:
    """A follower with a database, a hub and a clock that the test moves."""

    def __init__(self, folder):
        self.folder = folder
        self.database = Database(database_in(folder))
        self.hub = Hub()
        self.now = 1000.0
        self.follower = TokenFollower(self.hub, self.database, "spool", clock=lambda: self.now)

    def session(self, session_id, *outputs, owner="spool", kind="prompt_submit", **fields):
        """Report a session with responses of these tokens."""
        path = write(self.folder / f"{session_id}.jsonl", session_id, *outputs)
        self.database.record(report(kind, session_id, transcript_path=path, **fields), owner=owner)

    def look(self):
        """Look at all sessions; return how many tokens each has."""
        self.now += LOOK_INTERVAL_S
        self.hub.publish_tokens(self.follower.step())
        return {session_id: tokens["used"] for session_id, tokens in self.hub.tokens.items()}


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.database.close()


def test_open_sessions_of_this_daemon_have_their_tokens(world):
    world.session("a", 1500)
    world.session("b", 1_000_000, 250_000)
    world.session("none")
    world.session("another", 5, owner="another daemon")
    world.session("closed", 5, kind="session_end")
    assert world.look() == {"a": "1k", "b": "1.2M"}
    plate = world.hub.describe(world.database.get("b"))
    assert plate["tokens_used"] == "1.2M"
    assert world.hub.describe(world.database.get("none"))["tokens_used"] is None


def test_the_boards_learn_each_change_once(world):
    world.session("a", 100)
    world.look()
    world.look()
    write(world.folder / "a.jsonl", "a", 50)
    world.look()
    number = world.hub.number
    world.look()
    assert world.hub.number == number == 2
    assert world.hub.changes["tokens", "a"].content == {"a": "150"}
    world.database.record(report("session_end", "a"), owner="spool")
    world.look()
    assert world.hub.changes["tokens", "a"].content == {"a": None}
    assert world.follower.sessions == {}


def test_a_session_that_only_the_hosts_list_has_has_its_tokens(world):
    plate = empty_plate("listed", "/p", 0)
    plate["transcript_path"] = write(world.folder / "listed.jsonl", "listed", 70)
    world.hub.listed = {"listed": plate, "other": empty_plate("other", "/p", 0)}
    assert world.look() == {"listed": "70"}


def test_a_step_reads_a_bounded_piece_and_all_sessions_get_their_turn(world, monkeypatch):
    monkeypatch.setattr(token_follower, "STEP_BYTES", 4000)
    for name in "abc":
        world.session(name, *[1] * 20)
    world.hub.publish_tokens(world.follower.step())
    steps = [places(world)]
    while world.follower.unread:
        world.hub.publish_tokens(world.follower.step())
        steps.append(places(world))
    assert len(steps) > 3
    for before, after in pairwise(steps):
        assert sum(after) - sum(before) <= 4000
        assert max(after) - min(after) <= 4000
    assert {name: tokens["used"] for name, tokens in world.hub.tokens.items()} == {"a": "20", "b": "20", "c": "20"}


def places(world):
    """Return how far each session's transcript was read."""
    return [sum(one.place for one in session.readings.values()) for session in world.follower.sessions.values()]


def test_of_many_sessions_those_that_changed_last_are_read(world, monkeypatch):
    monkeypatch.setattr(token_follower, "SELECT_TRANSCRIPTS", token_follower.SELECT_TRANSCRIPTS.limit(2))
    for number, name in enumerate("abc"):
        world.session(name, 5, ts=1000 + number)
    assert world.look().keys() == {"b", "c"}
    world.database.record(report("tool_start:Bash", "a", ts=5000), owner="spool")
    assert world.look().keys() == {"a", "c"}


def test_too_many_responses_for_the_memory_leave_a_session_without_tokens(world, monkeypatch):
    monkeypatch.setattr(token_follower, "MAX_RESPONSES", 15)
    world.session("small", *[1] * 5, ts=2000)
    world.session("large", *[1] * 20, ts=1000)
    assert world.look() == {"small": "5"}
    assert world.look() == {"small": "5"}
    assert world.follower.sessions["large"].responses == 0


def test_a_session_that_cannot_be_counted_leaves_the_others_alone(world, monkeypatch, caplog):
    world.session("a", 5)
    world.session("b", 5)
    read = SessionTokens.read

    def fail_for_a(self, most):
        if self.session_id == "a":
            raise RuntimeError("odd")
        return read(self, most)

    monkeypatch.setattr(SessionTokens, "read", fail_for_a)
    assert world.look() == {"b": "5"}
    world.look()
    assert [record.args for record in caplog.records] == [("a", "RuntimeError('odd')")]


def test_a_row_has_as_many_figures_as_fit_the_tokens_last(world):
    world.session("s", 1_500_000)
    world.look()
    plate = {**world.hub.describe(world.database.get("s")), "context_used": "50 %", "turn_since": None}
    for progress, width, shown in (
        (None, 120, ["thinking · 50 % context   ", "    1.5M tokens "]),
        (None, 60, ["thinking  ", "    1.5M tokens "]),
        (None, 59, ["thinking · 50 % context · 1.5M tokens "]),
        (None, 35, ["thinking · 50 % context  "]),
        ("3/7", 76, ["thinking · 50 % context  ", "  3 of 7 ▰▰"]),
        ("3/7", 120, ["thinking · 50 % context · 1.5M tokens ", "  3 of 7 ▰▰"]),
    ):
        one = {**plate, "todo_progress": progress}
        lines = draw_plate(one, 0, width, needs=find_needs([one]))
        assert {line.cell_len for line in lines} == {width}
        row = "".join(line.plain for line in lines)
        assert [words for words in shown if words not in row] == []
        assert row.count("tokens") == "".join(shown).count("tokens")
    assert "tokens" not in draw_plate({**plate, "group": "rest"}, 0, 200)[0].plain
    finished = {**plate, "group": "finished", "turn_since": plate["since"], "turn_until": plate["since"]}
    assert [line.plain.count("tokens") for line in draw_plate(finished, 0, 120)] == [0, 1]


class Run:
    """A follower with boards that open and close. Each sleep takes the next step of a script."""

    def __init__(self, world, *steps, linger=60.0):
        self.world = world
        self.steps = list(steps)
        self.delays, self.shown = [], []
        self.linger = linger
        asyncio.run(self.run())

    async def run(self):
        world = self.world
        world.follower.sleep, world.follower.linger = self.sleep, self.linger
        self.is_over = asyncio.Event()
        await world.hub.load(self.read)
        self.steps.pop(0)(world)
        task = asyncio.create_task(world.follower.follow())
        ends = [task, asyncio.create_task(self.is_over.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for one in ends:
            one.cancel()
        await asyncio.gather(*ends, return_exceptions=True)

    async def read(self):
        return []

    async def sleep(self, seconds):
        self.delays.append(seconds)
        self.shown.append({name: tokens["used"] for name, tokens in self.world.hub.tokens.items()})
        self.world.now += seconds
        if not self.steps:
            self.is_over.set()
            await asyncio.Event().wait()
        if step := self.steps.pop(0):
            step(self.world)
            await asyncio.sleep(0)


def open_board(world):
    world.hub.is_watched.set()


def close_board(world):
    """Close the board, and open it again when `world.is_closed` returns true."""

    async def open_again():
        while not world.is_closed():
            await asyncio.sleep(0)
        world.hub.is_watched.set()

    world.hub.is_watched.clear()
    world.opening = asyncio.create_task(open_again())


def test_the_transcripts_are_looked_at_every_two_seconds_while_a_board_is_open(world):
    world.session("a", 5)
    run = Run(world, open_board, None, lambda world: write(world.folder / "a.jsonl", "a", 6), None)
    assert run.delays == [2, 2, 2, 2]
    assert run.shown == [{"a": "5"}, {"a": "5"}, {"a": "11"}, {"a": "11"}]


@pytest.mark.parametrize(("linger", "kept"), [(60, ["a"]), (0.001, [])])
def test_without_a_board_the_tokens_are_not_known_and_what_was_read_is_kept_for_a_while(world, linger, kept):
    world.session("a", 5)
    world.is_closed = lambda: world.hub.tokens == {} and list(world.follower.sessions) == kept
    run = Run(world, open_board, close_board, None, linger=linger)
    assert world.opening.done()
    assert run.shown == [{"a": "5"}] * 3


def test_a_large_transcript_leaves_most_of_the_time_to_others(world, monkeypatch):
    monkeypatch.setattr(token_follower, "STEP_BYTES", 1000)
    world.session("a", *[1] * 20)
    step = world.follower.step

    def slow_step():
        world.now += 0.1
        return step()

    world.follower.step = slow_step
    run = Run(world, open_board, *[None] * 8)
    assert run.delays[:3] == pytest.approx([0.4] * 3)
    assert run.shown[-1] == {"a": "20"}


def test_a_failure_of_the_database_is_logged_once_and_ends_nothing(world, monkeypatch, caplog):
    world.session("a", 5)
    good, world.follower.database = world.database, None

    def mend(world):
        world.follower.database = good

    run = Run(world, open_board, None, mend, None)
    assert run.shown == [{}, {}, {"a": "5"}, {"a": "5"}]
    assert run.delays == [2, 2, 2, 2]
    assert [record.args[0] for record in caplog.records] == ["all sessions"]
