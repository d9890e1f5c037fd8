"""The daemon's routes. `/openapi.json` describes them. Every error is {"error": message}."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from anyio import sleep_forever
from fastapi import APIRouter, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.staticfiles import StaticFiles

from tailhook import __version__
from tailhook.machines.plates import STUCK_TIMEOUT, EventKind, Status
from tailhook.plates.asked import read_asked
from tailhook.plates.browsers import CODE_LIFETIME_MIN
from tailhook.plates.context import context_at_end
from tailhook.plates.db import Database
from tailhook.plates.display import (
    BOARD_GROUPS,
    NO_MESSAGE,
    ProjectNames,
    describe_event,
    describe_plate,
    describe_statuses,
    encode,
    group_of,
)
from tailhook.plates.fields import DetailsOut, PlateOut, StatusesOut, SummaryOut, WaitsOut
from tailhook.plates.inbox import Inbox
from tailhook.plates.markdown import read_markdown
from tailhook.plates.schemas import Milliseconds, Name, Report, SessionName, Word, unix_ms
from tailhook.plates.sockets import Port
from tailhook.plates.tables import Plate
from tailhook.plates.timeline import find_agents, find_periods, find_tools
from tailhook.plates.transcript_ends import last_words
from tailhook.plates.waits import is_of_project, sum_waits

WEB = Path(__file__).with_name("web")
MAX_LAGS = 1000  # newest events over which the time from the hook to the database is measured
MAX_QUEUED = 1000  # changes that a slow listener may be behind; then its stream ends, and it begins again
PING_INTERVAL_S = 15  # on a stream
NO_PORT = "the daemon has no port, so there is no web board. To start one with a port:  tailhook plates serve"
MAX_EDGES = 400  # of the intervals of waits: a year of days


class Problem(BaseModel):
    """An error."""

    error: str


class Done(BaseModel):
    """The request was carried out."""

    status: str = "ok"


class Closed(Done):
    """So many plates were closed."""

    closed: int


class HealthOut(Done):
    """The daemon answers."""

    version: str


class Registration(BaseModel):
    """A session that the wrapper is about to start. Its placeholder's id consists of the path and the run."""

    project_path: SessionName
    run_id: SessionName | None = None
    pid: Annotated[int, Field(gt=0, le=1 << 31)] | None = None
    pid_started: Milliseconds | None = None
    host: Word | None = None
    user: Word | None = None


class Hiding(BaseModel):
    """Whether to show a session on the boards."""

    model_config = ConfigDict(extra="forbid")

    hidden: StrictBool


class Seeing(BaseModel):
    """A person has looked at what a session did."""

    model_config = ConfigDict(extra="forbid")

    seen: Literal[True]


class Ending(BaseModel):
    """A process that ended, identified by one of the three fields."""

    run_id: Name | None = None
    session_id: Name | None = None
    project_path: Name | None = None


class Figures(BaseModel):
    """Figures about the daemon.

    lag_ms: from a hook's clock to the database.
    notice_failures: why the last notice failed, by its target ("command" or "webhook"); without those that were sent.
    """

    version: str
    database: str
    uptime_seconds: float
    plates: dict[str, int]
    events: dict[str, int]
    unknown_events: int
    lag_ms: dict[str, float]
    spool_bytes: int
    spool_lost: int
    notice_failures: dict[str, str]
    listeners: int


class LinkOut(Done):
    """A link to the web board.

    minutes: how long it is valid.
    """

    link: str
    minutes: int


class SignedOut(Done):
    """So many browser tabs were signed out."""

    tabs: int


class Hub:
    """Sends changes to the listeners of /stream, and knows the names of all projects.

    All methods except `changed`, `removed` and `catching_up` run in the event loop's thread.
    """

    def __init__(self) -> None:
        self.names = ProjectNames()
        self.queues: set[asyncio.Queue[ServerSentEvent | None]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.is_loaded = asyncio.Event()  # whether the names of the plates in the database are known
        self.changed_since: dict[object, set[str]] = {}  # sessions changed since a `load` began, by the load
        self.backlog = 0  # events that wait while the daemon catches up
        self.notice_failures: dict[str, str] = {}  # by target, see `notice_sending.Courier`

    async def load(self, read: Callable[[], Awaitable[list[tuple[str, str]]]]) -> None:
        """Read the projects' paths of all plates in the database, and forget other sessions.

        read: returns pairs of session id and project path. A session that changes meanwhile keeps its known path.
        """
        this_load = object()
        changed = self.changed_since[this_load] = set()
        try:
            found = await read()
        finally:
            del self.changed_since[this_load]
        names = ProjectNames()
        names.load((session_id, path) for session_id, path in found if session_id not in changed)
        names.load((session_id, path) for session_id, path in self.names.paths.items() if session_id in changed)
        self.names = names
        self.is_loaded.set()

    def note_change(self, session_id: str) -> None:
        """Note that a session changed: a path that a running `load` read for it is outdated."""
        for changed in self.changed_since.values():
            changed.add(session_id)

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
        self.put(backlog_event(waiting))

    def publish_plate(self, plate: Plate) -> None:
        """Send a plate, and the names of other sessions if this plate changes them."""
        self.note_change(plate["session_id"])
        renamed = self.names.put(plate["session_id"], plate["project_path"])
        if self.queues:
            self.put(ServerSentEvent(encode(self.describe(plate)), event="plate"))
            self.publish_names(renamed)

    def publish_removal(self, session_id: str) -> None:
        """Send that a plate is gone, and the names of other sessions if this changes them."""
        self.note_change(session_id)
        renamed = self.names.remove(session_id)
        if self.queues:
            self.put(ServerSentEvent(encode({"session_id": session_id}), event="removed"))
            self.publish_names(renamed)

    def publish_names(self, renamed: dict[str, str]) -> None:
        """Send the new names of sessions' projects, by session."""
        if renamed:
            self.put(ServerSentEvent(encode(renamed), event="names"))

    def put(self, item: "ServerSentEvent | None") -> None:
        """Queue an event for every listener, or None to end their streams. One that is too slow loses its stream."""
        for queue in list(self.queues):
            try:
                queue.put_nowait(item)
            except asyncio.QueueFull:
                self.queues.discard(queue)

    async def listen(self, database: Database) -> AsyncIterator[ServerSentEvent]:
        """Yield all plates, then the changes. Ends when the daemon ends or when the listener is too slow."""
        queue: asyncio.Queue[ServerSentEvent | None] = asyncio.Queue(MAX_QUEUED)
        self.queues.add(queue)
        try:
            await self.is_loaded.wait()
            everything = await asyncio.to_thread(lambda: self.encode_all(database.all()))
            yield ServerSentEvent(everything, event="plates")
            if self.backlog:
                yield backlog_event(self.backlog)
            while queue in self.queues or not queue.empty():
                item = await queue.get()
                if item is None:
                    return
                yield item
        finally:
            self.queues.discard(queue)

    def encode_all(self, plates: list[Plate]) -> str:
        """Return plates as a JSON array."""
        return encode([self.describe(plate) for plate in plates])

    def describe(self, plate: Plate) -> PlateOut:
        """Return a plate as the API shows it. Can be called in any thread."""
        return describe_plate(plate, self.names.name_of(plate["project_path"]))


class EventStream(EventSourceResponse):
    """A stream that the hub ends. sse-starlette's own would check twice a second whether the server is exiting."""

    async def _listen_for_exit_signal_with_grace(self) -> None:
        await sleep_forever()


def backlog_event(waiting: int) -> ServerSentEvent:
    """Return the event of the stream that shows how many events wait."""
    return ServerSentEvent(encode({"events": waiting}), event="catching_up")


def make_app(
    database: Database, inbox: Inbox, hub: Hub, stuck_timeout: float = STUCK_TIMEOUT, port: Port | None = None
) -> FastAPI:
    """Return the daemon's application.

    stuck_timeout: see `tailhook.machines.plates.is_stuck`.
    port: at which browsers sign in, if there is one.
    """
    # FastAPI imports this only to refuse its models: 2 MB of memory. It copes with a Pydantic that does not have it.
    sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]
    problems: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 422)}
    app = FastAPI(title="tailhook plates", version=__version__, docs_url=None, redoc_url=None, responses=problems)
    app.add_exception_handler(StarletteHTTPException, answer_refusal)
    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.add_exception_handler(Exception, answer_failure)
    app.include_router(report_routes(database, inbox, hub))
    app.include_router(plate_routes(database, inbox, hub, stuck_timeout))
    app.include_router(daemon_routes(database, inbox, hub))
    app.include_router(sign_in_routes(port))
    app.add_api_route("/", board_page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/web", StaticFiles(directory=WEB))
    return app


# ---- routes ------------------------------------------------------------------


def report_routes(database: Database, inbox: Inbox, hub: Hub) -> APIRouter:
    """Return the routes for programs that report something: hooks and the wrapper."""
    router = APIRouter()

    @router.post("/events")
    def post_event(report: Report, request: Request) -> Done:
        """Store an event. An event that is stored already changes nothing."""
        origin = inbox.origin(report.model_dump(), peer_address(request))
        database.record(report.model_copy(update=origin.fields), owner=origin.owner)
        return Done()

    @router.post("/plates/register")
    def register(registration: Registration, request: Request) -> PlateOut:
        """Make a placeholder for a session that is about to start."""
        origin = inbox.origin(registration.model_dump(), peer_address(request))
        fields = {**registration.model_dump(), **origin.fields}
        return hub.describe(database.register(**fields, owner=origin.owner))

    @router.post("/plates/stopped")
    def stopped(ending: Ending) -> Closed:
        """Close the plates of a process that ended. Without any of the three fields, close nothing."""
        return Closed(closed=len(database.close_sessions(ending.run_id, ending.session_id, ending.project_path)))

    return router


def plate_routes(database: Database, inbox: Inbox, hub: Hub, stuck_timeout: float) -> APIRouter:
    """Return the routes of the boards."""
    router = APIRouter()
    missing: dict[int | str, dict[str, Any]] = {404: {"model": Problem}}

    @router.get("/plates")
    def get_plates(
        status: Annotated[Status | None, Query()] = None, project: Annotated[Word | None, Query()] = None
    ) -> list[PlateOut]:
        """Return all plates, newest change first."""
        found = database.all(status.value if status else None, project)
        return [hub.describe(plate) for plate in found]

    @router.get("/plates/{session_id:path}", responses=missing)
    def get_plate(session_id: str, events: Annotated[int, Query(ge=0, le=1000)] = 0) -> DetailsOut:
        """Return one plate, its last `events` events with their timeline, and the agent's last message."""
        plate = database.get(session_id)
        if plate is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such plate")
        rows = database.events_of(session_id, events) if events else []
        can_read = events > 0 and plate["owner"] == inbox.id
        agents = find_agents(rows)
        message = last_words(plate["transcript_path"] or "") if can_read else None
        return {
            **hub.describe(plate),
            "asked": read_asked(plate, can_read),
            "context": context_at_end(plate["transcript_path"] or "") if can_read else None,
            "events": [describe_event(row) for row in rows],
            "periods": find_periods(rows),
            "agent_lanes": agents.lanes,
            "more_agents": agents.more,
            "tools": find_tools(rows),
            "last_message": message,
            "message": read_markdown(message or ""),
            "no_message": NO_MESSAGE,
        }

    @router.patch("/plates/{session_id:path}", responses=missing)
    def mark_plate(session_id: str, mark: Hiding | Seeing) -> PlateOut:
        """Hide a plate from the boards until its next prompt, show it again, or mark it as seen. Nothing is deleted."""
        plate = database.mark(session_id, **mark.model_dump())
        if plate is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such plate")
        return hub.describe(plate)

    @router.delete("/plates/{session_id:path}", responses=missing)
    def delete_plate(session_id: str) -> Done:
        """Remove a plate and its events."""
        if not database.delete(session_id):
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such plate")
        return Done()

    @router.get("/summary")
    def get_summary() -> SummaryOut:
        """Return how many plates stand in each group of the boards, and those that wait, longest first."""
        groups = [(group_of(plate), plate) for plate in database.open_ones()]
        counts = Counter(group for group, _ in groups)
        waiting = [hub.describe(plate) for group, plate in groups if group == "waits"]
        return {
            "version": __version__,
            "counts": {group: counts[group] for group in BOARD_GROUPS},
            "waiting": sorted(waiting, key=itemgetter("rank")),
        }

    @router.get("/waits")
    def get_waits(
        edge: Annotated[list[Milliseconds], Query(max_length=MAX_EDGES)],
        project: Annotated[list[Word] | None, Query()] = None,
    ) -> WaitsOut:
        """Return how long sessions waited for a person in the intervals between times, such as a person's midnights.

        edge: the times, in Unix milliseconds.
        project: the names or folders of projects; a folder selects those below it, too. All projects if not given.
        """
        return waits_between(database, hub, sorted(set(edge)), project)

    @router.get("/statuses")
    def get_statuses() -> StatusesOut:
        """Return the groups of the boards, how statuses and marks are shown, and what a filter searches."""
        return describe_statuses(stuck_timeout)

    @router.get("/stream", response_class=EventSourceResponse)
    async def stream() -> EventSourceResponse:
        """Send server-sent events: `plates` with all of them, then changes.

        `plate` and `removed` are sent for one plate; `names` has new values of `name` by session. `catching_up` has the
        number of waiting events while the daemon has many to store, and 0 at the end.
        """
        return EventStream(hub.listen(database), ping=PING_INTERVAL_S)

    return router


def waits_between(database: Database, hub: Hub, edges: list[int], projects: list[str] | None) -> WaitsOut:
    """Return how long sessions waited for a person between times, without the intervals before all that is stored.

    projects: names or folders; None for all.
    """
    found = database.waits_since(edges[0], unix_ms()) if edges else []
    oldest = database.oldest_event()
    stored = [wait.start for wait in found] + ([] if oldest is None else [oldest])
    first = next((at for at, end in enumerate(edges[1:]) if end > min(stored, default=end)), len(edges))
    if projects is not None:
        found = [wait for wait in found if is_of_project(wait.project_path, projects, hub.names.name_of)]
    return sum_waits(found, edges[first:], hub.names.name_of)


def daemon_routes(database: Database, inbox: Inbox, hub: Hub) -> APIRouter:
    """Return the routes about the daemon itself."""
    router = APIRouter()
    started = time.monotonic()

    @router.head("/health", include_in_schema=False)
    @router.get("/health")
    def health() -> HealthOut:
        """Return the daemon's version. Needs no token."""
        return HealthOut(version=__version__)

    @router.get("/status")
    def status() -> Figures:
        """Return figures about the daemon."""
        events = database.event_counts()
        known = {kind.value for kind in EventKind}
        lags = sorted(database.lags(MAX_LAGS)) or [0]
        return Figures(
            version=__version__,
            database=database.engine.dialect.name,
            uptime_seconds=time.monotonic() - started,
            plates=database.counts(),
            events=events,
            unknown_events=sum(count for kind, count in events.items() if kind not in known),
            lag_ms={"median": median(lags), "p99": lags[len(lags) * 99 // 100]},
            spool_bytes=inbox.count_waiting_bytes(),
            spool_lost=inbox.lost,
            notice_failures=hub.notice_failures,
            listeners=len(hub.queues),
        )

    return router


def sign_in_routes(port: Port | None) -> APIRouter:
    """Return the routes about the browsers that are signed in. They are coroutines: `Browsers` is not thread-safe."""
    router = APIRouter()

    @router.post("/links", responses={409: {"model": Problem}})
    async def make_link() -> LinkOut:
        """Return a link that signs one browser tab in, once. A browser's secret does not allow this."""
        if port is None:
            raise HTTPException(HTTPStatus.CONFLICT, NO_PORT)
        return LinkOut(link=port.link(), minutes=CODE_LIFETIME_MIN)

    @router.post("/sign-out")
    async def sign_out() -> SignedOut:
        """Sign all browsers out, and end their streams and their open links. A browser's secret does not allow this."""
        return SignedOut(tabs=port.browsers.sign_out() if port else 0)

    return router


def board_page() -> Response:
    """Return the page of the web board."""
    return Response((WEB / "index.html").read_bytes(), media_type="text/html; charset=utf-8")


# ---- errors ------------------------------------------------------------------


async def answer_refusal(_: Request, error: Any) -> JSONResponse:
    """Return the answer to a request that a route refuses. error: an HTTPException."""
    return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)


async def answer_invalid(_: Request, error: Any) -> JSONResponse:
    """Return the answer to a request with invalid fields. error: a RequestValidationError."""
    return JSONResponse({"error": "; ".join(map(describe_fault, error.errors()))}, HTTPStatus.UNPROCESSABLE_ENTITY)


async def answer_failure(_: Request, error: Exception) -> JSONResponse:
    """Return the answer to a request that failed."""
    return JSONResponse({"error": f"{type(error).__name__}: {error}"}, HTTPStatus.INTERNAL_SERVER_ERROR)


def peer_address(request: Request) -> str | None:
    """Return the client's address, or None over the Unix socket."""
    return request.client.host if request.client else None


def describe_fault(error: Any) -> str:
    """Return one fault of an invalid request as text."""
    where = ".".join(str(part) for part in error["loc"][1:])
    return f"{where}: {error['msg']}" if where else str(error["msg"])
