"""What the listeners of /stream get: all open plates, then the newest state of each plate that changes.

Each text is encoded once for all listeners. A listener that was away for a short time gets only what has changed since.
"""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any, TypeVar
from weakref import ref

from sse_starlette import ServerSentEvent

from tailhook.hook.answer import plain
from tailhook.machines.plates import Status
from tailhook.plates.db import OPEN, Database, SessionProject
from tailhook.plates.display import STATUSES, ProjectNames, describe_plate, encode
from tailhook.plates.fields import PlateOut, TokensOut
from tailhook.plates.schemas import unix_ms
from tailhook.plates.tables import Plate

log = logging.getLogger("tailhook.plates")

FIRST_PLATES = 20  # in the first event of the stream: as many as a screen shows
PAGE_PLATES = 100  # in each of the next ones, before the changes begin
MAX_CHANGES = 1000  # newest ones that are kept; a listener further behind gets all plates again
READING_PAUSE_S = 0.001  # after a page, so that the daemon answers meanwhile
PAUSE_S = 0.00025  # for each listener, after each sending: several changes of a plate meanwhile become one
IN_WAITS = [status.value for status, sign in STATUSES.items() if sign["group"] == "waits"]
NOT_IN_WAITS = [status for status in OPEN if status not in IN_WAITS]

ShownT = TypeVar("ShownT")  # what a caller makes of a plate
Key = tuple[str, str]  # the event's name, and the session that it is about, if any


class Published:
    """Something that listeners have to learn.

    number: its place in the order of all changes.
    name: of its event in the stream; `names` for the new name of one session's project.
    content: a row of the table `plates`, or the event's data.
    """

    __slots__ = ("content", "encoded", "name", "number")

    def __init__(self, number: int, name: str, content: Any) -> None:
        self.number = number
        self.name = name
        self.content = content
        self.encoded = ""  # the data as JSON, once a listener needs it


class Snapshot:
    """All open plates at one time.

    number: of the last change before it.
    pages: the stream's events with them; more are added until it is whole.
    failure: why it will not be whole, or None.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.pages: list[bytes] = []
        self.is_whole = False
        self.failure: BaseException | None = None
        self.news = asyncio.Event()  # set when there is more, and replaced

    def wake(self) -> None:
        """Wake up the listeners that wait for more."""
        self.news.set()
        self.news = asyncio.Event()

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the pages, each as soon as it is there."""
        at = 0
        while True:
            while at < len(self.pages):
                yield self.pages[at]
                at += 1
            if self.failure:
                raise self.failure
            if self.is_whole:
                return
            await self.news.wait()


class Hub:
    """Sends changes to the listeners of /stream, and knows the names of all projects.

    All methods except `changed`, `removed` and `catching_up` run in the event loop's thread.

    listeners: how many streams are open.
    opened: how many have been opened since the daemon's start.
    """

    def __init__(self) -> None:
        self.names = ProjectNames()
        self.open: set[str] = set()  # the sessions that are not closed
        self.loop: asyncio.AbstractEventLoop | None = None
        self.is_loaded = asyncio.Event()  # whether the names of the plates in the database are known
        self.changed_since: dict[object, set[str]] = {}  # sessions changed since a `load` began, by the load
        self.backlog = 0  # events that wait while the daemon catches up
        self.notice_failures: dict[str, str] = {}  # by target, see `notice_sending.Courier`
        self.listed: dict[str, Plate] = {}  # by session: those that no hook has reported, see `tailhook.plates.listed`
        self.list_failure = ""  # why the host's list could not be read at last
        self.tokens: dict[str, TokensOut] = {}  # by session, as far as they are known
        self.listeners = self.opened = 0
        self.is_watched = asyncio.Event()  # while there is a listener
        self.run = secrets.token_hex(4)
        self.number = 0  # of the newest change
        self.forgotten = 0  # number of the newest change that is no longer kept
        self.changes: OrderedDict[Key, Published] = OrderedDict()  # the newest one for each key, oldest first
        self.news = asyncio.Event()  # set at the next change, and replaced
        self.has_ended = False
        self.readings: set[asyncio.Task[None]] = set()  # each reads a snapshot
        self.snapshot: Callable[[], Snapshot | None] = lambda: None  # the one that is being sent, if any

    async def load(self, read: Callable[[], Awaitable[list[SessionProject]]]) -> None:
        """Read where all sessions in the database are, and forget other ones.

        A session that changes meanwhile stays as it is known.
        """
        this_load = object()
        changed = self.changed_since[this_load] = set()
        try:
            found = await read()
        finally:
            del self.changed_since[this_load]
        for session_id in {place.session_id for place in found} - changed:
            self.listed.pop(session_id, None)
        kept = changed | self.listed.keys()
        rest = [place for place in found if place.session_id not in kept]
        names = ProjectNames()
        names.load((place.session_id, place.project_path) for place in rest)
        names.load((session_id, path) for session_id, path in self.names.paths.items() if session_id in kept)
        self.names = names
        self.open = {place.session_id for place in rest if place.is_open} | (self.open & kept)
        self.is_loaded.set()

    def note_change(self, session_id: str) -> None:
        """Note that a session changed: a path that a running `load` read for it is outdated."""
        for changed in self.changed_since.values():
            changed.add(session_id)

    # ---- changes ----

    def changed(self, plate: Plate) -> None:
        """Publish a plate that changed. Can be called in any thread."""
        if self.loop:
            self.loop.call_soon_threadsafe(self.publish_plate, plate)

    def removed(self, session_id: str) -> None:
        """Publish that a plate is gone. Can be called in any thread."""
        if self.loop:
            self.loop.call_soon_threadsafe(self.publish_removal, session_id)

    def catching_up(self, waiting: int) -> None:
        """Publish how many events wait while the daemon catches up, or 0 after that. Can be called in any thread."""
        if self.loop:
            self.loop.call_soon_threadsafe(self.publish_backlog, waiting)

    def publish_backlog(self, waiting: int) -> None:
        """Send how many events wait."""
        self.backlog = waiting
        self.put("catching_up", "", {"events": waiting})

    def publish_plate(self, plate: Plate) -> None:
        """Send a plate, and the names of other sessions if this plate changes them."""
        session_id = plate["session_id"]
        self.listed.pop(session_id, None)
        self.note_change(session_id)
        before = self.closed
        renamed = self.names.put(session_id, plate["project_path"])
        self.open.discard(session_id)
        if plate["status"] != Status.CLOSED.value:
            self.open.add(session_id)
        self.put("plate", session_id, plate)
        self.publish_names(renamed)
        self.publish_closed(before)

    def publish_removal(self, session_id: str) -> None:
        """Send that a plate is gone, and the names of other sessions if this changes them."""
        self.listed.pop(session_id, None)
        self.note_change(session_id)
        before = self.closed
        renamed = self.names.remove(session_id)
        self.open.discard(session_id)
        self.changes.pop(("plate", session_id), None)
        self.put("removed", session_id, {"session_id": session_id})
        self.publish_names(renamed)
        self.publish_closed(before)

    def publish_names(self, renamed: dict[str, str]) -> None:
        """Send the new names of sessions' projects, by session."""
        for session_id, name in renamed.items():
            self.put("names", session_id, {session_id: name})

    def publish_tokens(self, found: Mapping[str, TokensOut | None]) -> None:
        """Send changes of the tokens of sessions.

        found: by session; None if they are not known any more.
        """
        for session_id, tokens in found.items():
            before = self.tokens_used(session_id)
            self.tokens.pop(session_id, None)
            if tokens:
                self.tokens[session_id] = tokens
            if self.tokens_used(session_id) != before:
                self.put("tokens", session_id, {session_id: self.tokens_used(session_id)})

    @property
    def closed(self) -> int:
        """How many sessions are closed."""
        return len(self.names.paths) - len(self.open)

    def publish_closed(self, before: int) -> None:
        """Send how many sessions are closed, if that has changed.

        before: how many there were.
        """
        if self.closed != before:
            self.put("closed", "", {"sessions": self.closed})

    def put(self, name: str, session_id: str, content: Any) -> None:
        """Keep a change for the listeners, in place of an older one about the same, and wake them up."""
        self.number += 1
        self.changes[name, session_id] = Published(self.number, name, content)
        self.changes.move_to_end((name, session_id))
        if len(self.changes) > MAX_CHANGES:
            _, oldest = self.changes.popitem(last=False)
            self.forgotten = oldest.number
        self.wake()

    def restart(self) -> None:
        """Send all plates to every listener again: some changes may be unknown here."""
        self.number += 1
        self.forgotten = self.number
        self.changes.clear()
        self.wake()

    def end(self) -> None:
        """End all streams."""
        self.has_ended = True
        self.wake()

    def wake(self) -> None:
        """Wake up the listeners."""
        self.news.set()
        self.news = asyncio.Event()

    # ---- sessions that only the host's list has ----

    def is_reported(self, session_id: str) -> bool:
        """Return whether a hook has reported a session. The session is then left to the hooks."""
        return session_id in self.names.paths and session_id not in self.listed

    def publish_list(self, found: Mapping[str, Plate]) -> None:
        """Send changes of the sessions in the host's list. A session that has left it is removed.

        found: all of them, by session.
        """
        for session_id in self.listed.keys() - found.keys():
            self.publish_removal(session_id)
        for session_id, plate in found.items():
            if plate != self.listed.get(session_id):
                self.publish_listed(plate)

    def publish_listed(self, plate: Plate) -> None:
        """Send a plate that only the host's list has."""
        self.publish_plate(plate)
        self.listed[plate["session_id"]] = plate

    def hide_listed(self, session_id: str, mark: Mapping[str, bool]) -> Plate | None:
        """Hide or show a session that only the host's list has. Returns its plate, or None.

        Can be called in any thread.

        mark: the fields of Hiding or Seeing.
        """
        plate = self.listed.get(session_id)
        if plate is None or self.loop is None or "hidden" not in mark:
            return plate
        hidden: Plate = {**plate, "hidden_at": unix_ms() if mark["hidden"] else None}
        self.loop.call_soon_threadsafe(self.replace_listed, hidden)
        return hidden

    def replace_listed(self, plate: Plate) -> None:
        """Send a plate that only the host's list has, unless it is gone meanwhile."""
        if plate["session_id"] in self.listed:
            self.publish_listed(plate)

    def add_listed(
        self, plates: Iterable[Plate], is_wanted: Callable[[Plate], bool] = lambda _: True
    ) -> Iterator[Plate]:
        """Yield plates of the database, then the wanted ones that only the host's list has.

        Can be called in any thread.
        """
        listed = self.listed.copy()
        for plate in plates:
            listed.pop(plate["session_id"], None)
            yield plate
        yield from filter(is_wanted, listed.values())

    # ---- listeners ----

    async def listen(self, database: Database, last_id: str = "") -> AsyncIterator[bytes]:
        """Yield the events of a stream: all open plates, the number of closed ones, then the changes.

        Ends when the daemon ends.

        last_id: of the last event that the listener got from an earlier stream. If that is known, only what changed
            since is sent.
        """
        self.listeners += 1
        self.opened += 1
        self.is_watched.set()
        try:
            await self.is_loaded.wait()
            at = self.position_in(last_id)
            if at >= self.forgotten:
                yield event("closed", encode({"sessions": self.closed}), self.id_at(at))
            while not self.has_ended:
                if at < self.forgotten:
                    snapshot = self.take_snapshot(database)
                    async for page in snapshot.read():
                        yield page
                    at = snapshot.number
                    del snapshot  # so its memory is free when the last listener has got it
                    yield event("closed", encode({"sessions": self.closed}), self.id_at(at))
                    if self.backlog:
                        yield event("catching_up", encode({"events": self.backlog}))
                elif at < self.number:
                    chunk, at = self.encode_changes(at), self.number
                    yield chunk
                    await asyncio.sleep(PAUSE_S * self.listeners)
                else:
                    await self.news.wait()
        finally:
            self.listeners -= 1
            if not self.listeners:
                self.is_watched.clear()

    def position_in(self, last_id: str) -> int:
        """Return the number in an event's id, or -1 if it is not of this run of the daemon."""
        run, _, number = last_id.partition("-")
        is_known = run == self.run and number.isdecimal() and len(number) <= len(str(self.number))
        return int(number) if is_known and int(number) <= self.number else -1

    def id_at(self, number: int) -> str:
        """Return the id of an event after which a listener knows all changes up to a number."""
        return f"{self.run}-{number}"

    def encode_changes(self, number: int) -> bytes:
        """Return the events with the changes after a number."""
        new: list[Published] = []
        for change in reversed(self.changes.values()):
            if change.number <= number:
                break
            new.append(change)
        return b"".join(self.encode_change(change) for change in reversed(new))

    def encode_change(self, change: Published) -> bytes:
        """Return the event with a change, or nothing if its plate cannot be shown. Its data is encoded once."""
        if not change.encoded and change.name == "plate":
            shown = list(self.apply_to_each(self.encode_plate, [change.content]))
            if not shown:
                return b""
            change.encoded = shown[0]
        change.encoded = change.encoded or encode(change.content)
        return event(change.name, change.encoded, self.id_at(change.number))

    def take_snapshot(self, database: Database) -> Snapshot:
        """Return all open plates. Listeners that come while they are read or sent share them."""
        kept = self.snapshot()
        if kept is None or kept.number < self.forgotten or kept.failure:
            kept = Snapshot(self.number)
            self.snapshot = ref(kept)
            reading = asyncio.create_task(self.read_snapshot(kept, database))
            self.readings.add(reading)  # asyncio itself keeps no task
            reading.add_done_callback(self.readings.discard)
        return kept

    async def read_snapshot(self, snapshot: Snapshot, database: Database) -> None:
        """Read all open plates into a snapshot, first those that wait for a person."""
        loop = asyncio.get_running_loop()

        def add_pages() -> None:
            names, sizes = chain(("plates",), repeat("more")), chain((FIRST_PLATES,), repeat(PAGE_PLATES))
            stored = chain(database.iter_open(IN_WAITS), database.iter_open(NOT_IN_WAITS))
            plates = self.add_listed(stored)
            while (page := list(islice(plates, next(sizes)))) or not snapshot.pages:
                texts = list(self.apply_to_each(self.encode_plate, page))
                snapshot.pages.append(event(next(names), f"[{','.join(texts)}]"))
                loop.call_soon_threadsafe(snapshot.wake)
                time.sleep(READING_PAUSE_S)

        try:
            await asyncio.to_thread(add_pages)
            snapshot.is_whole = True
        except Exception as error:
            snapshot.failure = error
        snapshot.wake()

    def encode_plate(self, plate: Plate) -> str:
        """Return a plate as JSON."""
        return encode(self.describe(plate))

    def apply_to_each(self, work: Callable[[Plate], ShownT], plates: Iterable[Plate]) -> Iterator[ShownT]:
        """Yield what a function returns for each plate. If it raises for a plate, log that, and leave the plate out.

        Another version of tailhook, or a damaged file, can leave a plate that this version cannot show.
        """
        for plate in plates:
            try:
                found = work(plate)
            except Exception as error:
                log.warning("the session %s cannot be shown: %s", plain(plate["session_id"]), plain(repr(error)))
            else:
                yield found

    def describe(self, plate: Plate) -> PlateOut:
        """Return a plate as the API shows it. Can be called in any thread."""
        return describe_plate(plate, self.names.name_of(plate["project_path"]), self.tokens_used(plate["session_id"]))

    def tokens_used(self, session_id: str) -> str | None:
        """Return how many tokens a session has used, in short, or None if that is not known."""
        tokens = self.tokens.get(session_id)
        return tokens and tokens["used"]


def event(name: str, data: str, event_id: str | None = None) -> bytes:
    """Return an event of the stream, as it is sent.

    event_id: a listener sends it as `Last-Event-ID` to get only later changes.
    """
    return ServerSentEvent(data, event=name, id=event_id).encode()
