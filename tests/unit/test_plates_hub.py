"""The daemon publishes plates to its listeners; meanwhile it reads the names of projects from the database."""

import asyncio

from tailhook.plates.app import Hub


def load(hub, found, meanwhile=lambda: None):
    """Load the database's content while something else happens."""

    async def read():
        meanwhile()
        return found

    asyncio.run(hub.load(read))


def test_a_session_that_is_removed_while_the_names_are_read_leaves_no_name():
    hub = Hub()
    load(hub, [("old", "/a/web"), ("new", "/b/web")], lambda: hub.publish_removal("old"))
    assert hub.names.paths == {"new": "/b/web"}
    assert hub.names.name_of("/b/web") == "web"


def test_a_session_that_changes_while_the_names_are_read_keeps_its_new_project():
    hub = Hub()
    load(hub, [("s", "/a/web")], lambda: hub.publish_plate({"session_id": "s", "project_path": "/b/web"}))
    assert hub.names.paths == {"s": "/b/web"}


def test_names_that_are_read_again_forget_sessions_that_were_removed_unnoticed():
    hub = Hub()
    load(hub, [("old", "/a/web"), ("new", "/b/web")])
    assert hub.names.name_of("/b/web") == "b/web"
    load(hub, [("new", "/b/web")])
    assert hub.names.name_of("/b/web") == "web"


def test_of_two_loads_at_once_each_leaves_out_what_was_removed():
    hub = Hub()

    async def both():
        removed = asyncio.Event()

        async def read():
            await removed.wait()
            return [("old", "/a/web")]

        loads = [asyncio.create_task(hub.load(read)) for _ in range(2)]
        await asyncio.sleep(0)
        hub.publish_removal("old")
        removed.set()
        await asyncio.gather(*loads)

    asyncio.run(both())
    assert hub.names.paths == {}
    assert hub.changed_since == {}
