"""The daemon publishes plates to its listeners; meanwhile it reads the names of projects from the database."""

import asyncio
import json
import threading

import pytest
from support.host import HANGS_S

from tailhook.plates.db import SessionProject
from tailhook.plates.hub import FIRST_PLATES, IN_WAITS, MAX_CHANGES, PAGE_PLATES, PAUSE_S, Hub
from tailhook.plates.rows import empty_plate


def load(hub, found, meanwhile=lambda: None):
    """Load the database's content while something else happens."""

    async def read():
        meanwhile()
        return found

    asyncio.run(hub.load(read))


def test_a_session_that_is_removed_while_the_names_are_read_leaves_no_name():
    hub = Hub()
    load(
        hub,
        [SessionProject("old", "/a/web", True), SessionProject("new", "/b/web", True)],
        lambda: hub.publish_removal("old"),
    )
    assert hub.names.paths == {"new": "/b/web"}
    assert hub.names.name_of("/b/web") == "web"


def test_a_session_that_changes_while_the_names_are_read_keeps_its_new_project():
    hub = Hub()
    load(hub, [SessionProject("s", "/a/web", True)], lambda: hub.publish_plate(empty_plate("s", "/b/web", 1)))
    assert hub.names.paths == {"s": "/b/web"}


def test_names_that_are_read_again_forget_sessions_that_were_removed_unnoticed():
    hub = Hub()
    load(hub, [SessionProject("old", "/a/web", True), SessionProject("new", "/b/web", True)])
    assert hub.names.name_of("/b/web") == "b/web"
    load(hub, [SessionProject("new", "/b/web", True)])
    assert hub.names.name_of("/b/web") == "web"


def test_of_two_loads_at_once_each_leaves_out_what_was_removed():
    hub = Hub()

    async def both():
        removed = asyncio.Event()

        async def read():
            await removed.wait()
            return [SessionProject("old", "/a/web", True)]

        loads = [asyncio.create_task(hub.load(read)) for _ in range(2)]
        await asyncio.sleep(0)
        hub.publish_removal("old")
        removed.set()
        await asyncio.gather(*loads)

    asyncio.run(both())
    assert hub.names.paths == {}
    assert hub.changed_since == {}


class Plates:
    """A database with these plates, for `Hub.listen`.

    reads: how many times those that wait were read.
    """

    def __init__(self, *plates):
        self.plates = plates
        self.reads = 0

    def iter_open(self, statuses):
        self.reads += statuses == IN_WAITS
        yield from (plate for plate in self.plates if plate["status"] in statuses)


def plate(name, **fields):
    """Return a plate of a session that runs."""
    return {**empty_plate(name, "/p", 1), "status": "running", **fields}


async def loaded(*plates):
    """Return a hub that knows these plates."""
    hub = Hub()

    async def read():
        return [SessionProject(one["session_id"], one["project_path"], True) for one in plates]

    await hub.load(read)
    return hub


def names_in(chunk):
    """Return the names and data of the events in a part of a stream."""
    lines = chunk.decode().replace("\r\n", "\n").split("\n")
    names = [line.partition(": ")[2] for line in lines if line.startswith("event: ")]
    data = [json.loads(line.partition(": ")[2]) for line in lines if line.startswith("data: ")]
    return list(zip(names, data, strict=True))


async def begin(hub, database, last_id=""):
    """Return a new listener that has got all open plates."""
    listener = hub.listen(database, last_id)
    async for chunk in listener:
        if names_in(chunk)[0][0] == "closed":
            return listener
    raise AssertionError


def test_a_change_is_encoded_once_for_all_listeners(monkeypatch):
    described = []
    monkeypatch.setattr(
        Hub, "describe", lambda _, plate: described.append(plate["session_id"]) or {"rank": "", **plate}
    )

    async def run():
        hub, database = await loaded(), Plates(plate("s"))
        listeners = [await begin(hub, database) for _ in range(3)]
        described.clear()
        hub.publish_plate(plate("s", error="new"))
        chunks = [await anext(listener) for listener in listeners]
        assert len(set(chunks)) == 1
        assert [(name, one["error"]) for name, one in names_in(chunks[0])] == [("plate", "new")]

    asyncio.run(run())
    assert described == ["s"]


def test_the_pause_of_a_listener_grows_with_their_number(monkeypatch):
    """So all listeners together are sent at most so many parts a second, and a single one gets each change."""
    pauses = []

    async def pause(seconds):
        pauses.append(seconds)

    async def run():
        hub, database = await loaded(), Plates()
        for number in (1, 2, 3):
            listener = await begin(hub, database)
            kept.append(listener)
            monkeypatch.setattr("tailhook.plates.hub.asyncio.sleep", pause)
            hub.publish_plate(plate("s", error=str(number)))
            await anext(listener)
            hub.publish_plate(plate("s", error="next"))
            await anext(listener)
            monkeypatch.undo()

    kept = []
    asyncio.run(run())
    assert pauses == [PAUSE_S * number for number in (1, 2, 3)]


def test_the_pauses_between_the_pages_of_ten_thousand_plates_take_a_fifth_of_a_second_at_most(monkeypatch):
    pauses = []

    async def run():
        hub, database = await loaded(), Plates(*(plate(str(number)) for number in range(1000)))
        monkeypatch.setattr("tailhook.plates.hub.time.sleep", pauses.append)
        await begin(hub, database)

    asyncio.run(run())
    assert 0 < 10 * sum(pauses) <= 0.2


def test_listeners_that_come_together_share_one_reading_of_the_plates():
    async def run():
        hub, database = await loaded(), Plates(plate("s"))
        await asyncio.gather(*(begin(hub, database) for _ in range(50)))
        assert database.reads == 1
        await asyncio.get_running_loop().shutdown_default_executor()  # its thread is the last that lets go
        assert hub.snapshot() is None  # it is not kept after the last of them has got it

    asyncio.run(run())


def test_the_first_page_is_sent_before_the_last_one_is_read_and_has_those_that_wait():
    async def run():
        hub, first_page_is_there = await loaded(), threading.Event()

        class Slow(Plates):
            def iter_open(self, statuses):
                for number, one in enumerate(super().iter_open(statuses)):
                    assert number < FIRST_PLATES or first_page_is_there.wait(HANGS_S)
                    yield one

        running = [plate(f"s{number}") for number in range(3 * PAGE_PLATES)]
        listener = hub.listen(Slow(*running, plate("asks", status="awaiting_input")))
        [(name, page)] = names_in(await anext(listener))
        first_page_is_there.set()
        assert (name, page[0]["session_id"], len(page)) == ("plates", "asks", FIRST_PLATES)
        rest = [names_in(chunk)[0] for chunk in [await anext(listener) for _ in range(4)]]
        assert [name for name, _ in rest] == ["more", "more", "more", "closed"]
        assert [len(found) for _, found in rest[:3]] == [PAGE_PLATES, PAGE_PLATES, PAGE_PLATES + 1 - FIRST_PLATES]

    asyncio.run(run())


def test_a_database_that_fails_ends_the_stream_and_the_next_listener_reads_again():
    async def run():
        hub = await loaded()

        class Broken(Plates):
            def iter_open(self, statuses):
                raise OSError("gone")

        with pytest.raises(OSError, match="gone"):
            await begin(hub, Broken())
        await begin(hub, Plates(plate("s")))

    asyncio.run(run())


def test_a_slow_listener_gets_only_the_newest_state_of_each_plate():
    async def run():
        hub, database = await loaded(), Plates()
        listener = await begin(hub, database)
        for number in range(10 * MAX_CHANGES):
            hub.publish_plate(plate(f"s-{number % 7}", error=str(number)))
        sent = [one["error"] for name, one in names_in(await anext(listener)) if name == "plate"]
        assert sent == [str(number) for number in range(10 * MAX_CHANGES - 7, 10 * MAX_CHANGES)]
        assert len(hub.changes) <= 8

    asyncio.run(run())


def test_a_listener_that_is_too_far_behind_begins_again_with_all_plates():
    async def run():
        hub, database = await loaded(), Plates(plate("s"))
        listener = await begin(hub, database)
        for number in range(MAX_CHANGES + 1):
            hub.publish_plate(plate(f"s-{number}"))
        assert len(hub.changes) == MAX_CHANGES
        assert names_in(await anext(listener))[0][0] == "plates"

    asyncio.run(run())


def test_a_change_while_the_plates_are_read_is_sent_after_them():
    async def run():
        hub = await loaded()

        class Slow(Plates):
            def iter_open(self, statuses):
                if statuses == IN_WAITS:
                    hub.publish_plate(plate("s", error="meanwhile"))  # after the number was noted
                else:
                    yield plate("s")

        listener = await begin(hub, Slow())
        assert [(name, one["error"]) for name, one in names_in(await anext(listener))] == [("plate", "meanwhile")]

    asyncio.run(run())


def test_a_session_that_closes_opens_or_leaves_changes_the_number_of_closed_ones():
    hub = Hub()
    load(hub, [SessionProject("a", "/p", True), SessionProject("b", "/p", False)])
    assert hub.closed == 1
    for change, count in (
        (lambda: hub.publish_plate(plate("a", status="closed")), 2),
        (lambda: hub.publish_plate(plate("a", status="closed", error="late")), 2),
        (lambda: hub.publish_plate(plate("b")), 1),
        (lambda: hub.publish_removal("a"), 0),
        (lambda: hub.publish_removal("b"), 0),
        (lambda: hub.publish_removal("never"), 0),
    ):
        change()
        assert hub.closed == count
        assert hub.changes["closed", ""].content == {"sessions": count}


def test_a_listener_of_another_daemons_changes_begins_again_after_a_lost_connection():
    async def run():
        hub, database = await loaded(), Plates(plate("s"))
        listener = await begin(hub, database)
        hub.restart()
        assert names_in(await anext(listener))[0][0] == "plates"

    asyncio.run(run())


def test_the_end_of_the_daemon_ends_every_stream():
    async def run():
        hub, database = await loaded(), Plates()
        listener = await begin(hub, database)
        hub.end()
        assert [chunk async for chunk in listener] == []
        assert hub.listeners == 0

    asyncio.run(run())


def hub_with_listed(session_id, path):
    """Return a hub with a session that only the host's list has."""
    hub = Hub()
    hub.publish_list({session_id: empty_plate(session_id, path, 1)})
    return hub


def test_a_listed_session_keeps_its_name_when_the_names_are_read_again():
    hub = hub_with_listed("listed", "/a/web")
    load(hub, [SessionProject("stored", "/b/web", True)])
    assert hub.names.name_of("/a/web") == "a/web"
    assert (hub.closed, hub.listed.keys()) == (0, {"listed"})
    hub.publish_list({})
    assert hub.names.paths == {"stored": "/b/web"}
    assert (hub.closed, hub.listed) == (0, {})


def test_a_listed_session_that_hooks_have_stored_meanwhile_is_left_to_them():
    hub = hub_with_listed("s", "/a/web")
    assert not hub.is_reported("s")
    load(hub, [SessionProject("s", "/b/web", False)])
    assert hub.is_reported("s")
    assert (hub.names.paths, hub.closed, hub.listed) == ({"s": "/b/web"}, 1, {})


@pytest.mark.parametrize(
    ("number", "position"),
    [("0", 0), ("7", 7), ("12", 12), ("13", -1), ("112", -1), ("", -1), ("-1", -1), ("1.0", -1)],
)
def test_the_place_after_an_event_is_known_by_its_id(number, position):
    hub = Hub()
    for _ in range(12):
        hub.publish_backlog(1)
    assert hub.position_in(f"{hub.run}-{number}") == position
    assert hub.position_in(f"0{hub.run}-{number}") == -1


def test_a_snapshot_is_shared_until_changes_before_it_are_forgotten():
    class Empty:
        def iter_open(self, statuses):
            return iter(())

    async def take():
        hub = Hub()
        first = hub.take_snapshot(Empty())
        hub.publish_backlog(1)
        assert hub.take_snapshot(Empty()) is first
        hub.restart()
        assert hub.take_snapshot(Empty()) is not first
        await asyncio.gather(*hub.readings)

    asyncio.run(take())


def test_the_newest_thousand_changes_are_kept():
    hub = Hub()
    for number in range(1002):
        hub.publish_removal(f"s{number}")
    assert (len(hub.changes), hub.forgotten) == (1000, 2)
