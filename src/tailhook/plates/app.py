"""The daemon's routes. `/openapi.json` describes them. Every error is {"error": message}."""

import sys
import time
from collections import Counter
from http import HTTPStatus
from mimetypes import guess_type
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from anyio import sleep_forever
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from sse_starlette import EventSourceResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from tailhook import __version__
from tailhook.machines.plates import STUCK_TIMEOUT, EventKind, Status
from tailhook.plates.asked import read_asked
from tailhook.plates.browsers import CODE_LIFETIME_MIN
from tailhook.plates.context import context_at_end
from tailhook.plates.db import Database
from tailhook.plates.display import (
    BOARD_GROUPS,
    NO_MESSAGE,
    describe_event,
    describe_statuses,
    group_of,
)
from tailhook.plates.fields import DetailsOut, PlateOut, StatusesOut, SummaryOut, WaitsOut
from tailhook.plates.hub import Hub
from tailhook.plates.inbox import Inbox
from tailhook.plates.markdown import read_markdown
from tailhook.plates.opening import first_line
from tailhook.plates.schemas import Milliseconds, Name, Report, SessionName, Word, unix_ms
from tailhook.plates.sockets import Port
from tailhook.plates.tables import Plate
from tailhook.plates.timeline import find_agents, find_periods, find_tools
from tailhook.plates.transcript_ends import last_words
from tailhook.plates.waits import is_of_project, sum_waits

WEB = Path(__file__).with_name("web")
MAX_LAGS = 1000  # newest events over which the time from the hook to the database is measured
MAX_PAGE = 1000  # plates in one answer, if the request has a limit
PING_INTERVAL_S = 15  # on a stream
NO_PORT = "the daemon has no port, so there is no web board. To start one with a port:  tailhook plates serve"
MAX_EDGES = 400  # of the intervals of waits: a year of days
Cursor = Annotated[str, Field(pattern=r"^[0-9]{1,16}:[^\x00]+$", max_length=100_000)]  # in a link to the next page


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
    store_failure: why waiting events could not be stored at the last try; "" if they could.
    notice_failures: why the last notice failed, by its target ("command" or "webhook"); without those that were sent.
    list_failure: why the host's list of sessions could not be read at last; "" if it could, or was not needed.
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
    store_failure: str
    notice_failures: dict[str, str]
    list_failure: str
    listeners: int


class TerminalOut(Done):
    """The environment variables that name a session's terminal, if it has any."""

    terminal: dict[str, str] | None


class LinkOut(Done):
    """A link to the web board.

    minutes: how long it is valid.
    """

    link: str
    minutes: int


class SignedOut(Done):
    """So many browser tabs were signed out."""

    tabs: int


class EventStream(EventSourceResponse):
    """A stream that the hub ends. sse-starlette's own would check twice a second whether the server is exiting."""

    async def _listen_for_exit_signal_with_grace(self) -> None:
        await sleep_forever()


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
    add_report_routes(app, database, inbox, hub)
    add_plate_routes(app, database, inbox, hub)
    add_board_routes(app, database, hub, stuck_timeout)
    add_daemon_routes(app, database, inbox, hub)
    add_sign_in_routes(app, port)
    add_page_routes(app)
    return app


# ---- routes ------------------------------------------------------------------


def add_report_routes(app: FastAPI, database: Database, inbox: Inbox, hub: Hub) -> None:
    """Add the routes for programs that report something: hooks and the wrapper."""

    @app.post("/events")
    def post_event(report: Report, request: Request) -> Done:
        """Store an event. An event that is stored already changes nothing."""
        origin = inbox.origin(report.model_dump(), peer_address(request))
        database.record(report.model_copy(update=origin.fields), owner=origin.owner)
        return Done()

    @app.post("/plates/register")
    def register(registration: Registration, request: Request) -> PlateOut:
        """Make a placeholder for a session that is about to start."""
        origin = inbox.origin(registration.model_dump(), peer_address(request))
        fields = {**registration.model_dump(), **origin.fields}
        return hub.describe(database.register(**fields, owner=origin.owner))

    @app.post("/plates/stopped")
    def stopped(ending: Ending) -> Closed:
        """Close the plates of a process that ended. Without any of the three fields, close nothing."""
        return Closed(closed=len(database.close_sessions(ending.run_id, ending.session_id, ending.project_path)))


def add_plate_routes(app: FastAPI, database: Database, inbox: Inbox, hub: Hub) -> None:
    """Add the routes of the plates: a list of them, and one of them."""
    missing: dict[int | str, dict[str, Any]] = {404: {"model": Problem}}

    @app.get("/plates")
    def get_plates(
        answer: Response,
        status: Annotated[Status | None, Query()] = None,
        project: Annotated[Word | None, Query()] = None,
        limit: Annotated[int | None, Query(ge=1, le=MAX_PAGE)] = None,
        before: Annotated[Cursor | None, Query()] = None,
    ) -> list[PlateOut]:
        """Return the plates, newest change first. With a limit, the header Link (RFC 8288) names the next page."""
        wanted = status.value if status else None
        changed_at, _, session_id = (before or "").partition(":")
        cursor = (int(changed_at), session_id) if before else None

        def is_wanted(plate: Plate) -> bool:
            is_there = wanted in (None, plate["status"]) and project in (None, plate["project_path"])
            return is_there and (cursor is None or place_in_pages(plate) < cursor)

        both = hub.add_listed(database.all(wanted, project, limit, cursor), is_wanted)
        found = sorted(both, key=place_in_pages, reverse=True)[:limit]
        if limit and len(found) == limit:
            last = found[-1]
            asked = {"status": wanted, "project": project, "limit": limit}
            given = {name: value for name, value in asked.items() if value is not None}
            following = urlencode(given | {"before": f"{last['updated_at']}:{last['session_id']}"})
            answer.headers["Link"] = f'</plates?{following}>; rel="next"'
        return list(hub.apply_to_each(hub.describe, found))

    @app.get("/plates/{session_id:path}", responses=missing)
    def get_plate(session_id: str, events: Annotated[int, Query(ge=0, le=1000)] = 0) -> DetailsOut:
        """Return one plate, its last `events` events with their timeline, and the agent's last message."""
        plate = database.get(session_id) or hub.listed.get(session_id)
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
            "tokens": hub.tokens.get(session_id),
            "events": [describe_event(row) for row in rows],
            "periods": find_periods(rows),
            "agent_lanes": agents.lanes,
            "more_agents": agents.more,
            "tools": find_tools(rows),
            "last_message": message,
            "message": read_markdown(message or ""),
            "no_message": NO_MESSAGE,
        }

    @app.patch("/plates/{session_id:path}", responses=missing)
    def mark_plate(session_id: str, mark: Hiding | Seeing) -> PlateOut:
        """Hide a plate from the boards until its next prompt, show it again, or mark it as seen. Nothing is deleted."""
        marks = mark.model_dump()
        plate = database.mark(session_id, **marks) or hub.hide_listed(session_id, marks)
        if plate is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such plate")
        return hub.describe(plate)

    @app.delete("/plates/{session_id:path}", responses=missing)
    def delete_plate(session_id: str) -> Done:
        """Remove a plate and its events."""
        if not database.delete(session_id):
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such plate")
        return Done()

    @app.get("/terminals/{session_id:path}", responses=missing)
    def get_terminal(session_id: str) -> TerminalOut:
        """Return the variables that name a session's terminal. Not for browsers, which cannot show it."""
        plate = database.get(session_id) or hub.listed.get(session_id)
        if plate is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such plate")
        return TerminalOut(terminal=plate["terminal"])


def add_board_routes(app: FastAPI, database: Database, hub: Hub, stuck_timeout: float) -> None:
    """Add the routes of the boards for all plates together."""

    @app.get("/summary")
    def get_summary() -> SummaryOut:
        """Return how many plates stand in each group of the boards, and those that wait, longest first."""
        every = hub.add_listed(database.iter_open())
        groups = list(hub.apply_to_each(lambda plate: (group_of(plate), plate), every))
        counts = Counter(group for group, _ in groups)
        waiting = hub.apply_to_each(hub.describe, (plate for group, plate in groups if group == "waits"))
        return {
            "version": __version__,
            "counts": {group: counts[group] for group in BOARD_GROUPS},
            "waiting": sorted(waiting, key=itemgetter("rank")),
        }

    @app.get("/waits")
    def get_waits(
        edge: Annotated[list[Milliseconds], Query(max_length=MAX_EDGES)],
        project: Annotated[list[Word] | None, Query()] = None,
    ) -> WaitsOut:
        """Return how long sessions waited for a person in the intervals between times, such as a person's midnights.

        edge: the times, in Unix milliseconds.
        project: the names or folders of projects; a folder selects those below it, too. All projects if not given.
        """
        return waits_between(database, hub, sorted(set(edge)), project)

    @app.get("/statuses")
    def get_statuses() -> StatusesOut:
        """Return the groups of the boards, how statuses and marks are shown, and what a filter searches."""
        return describe_statuses(stuck_timeout)

    @app.get("/stream", response_class=EventSourceResponse)
    async def stream(request: Request) -> EventSourceResponse:
        """Send server-sent events: all open plates, then changes.

        `plates` has the first of them, waiting ones first, and replaces what was sent before; `more` has further ones.
        `closed` follows, with the number of closed plates, and comes again when that changes. `plate` and `removed` are
        sent for one plate; `names` has new values of `name` by session. `catching_up` has the number of waiting events
        while the daemon has many to store, and 0 at the end.

        With the header `Last-Event-ID`, only `closed` and what changed since that event, if the daemon still knows it.
        """
        return EventStream(hub.listen(database, request.headers.get("last-event-id", "")), ping=PING_INTERVAL_S)


def place_in_pages(plate: Plate) -> tuple[int, str]:
    """Return the key by which `Database.all` sorts plates, the largest first."""
    return plate["updated_at"], plate["session_id"]


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


def add_daemon_routes(app: FastAPI, database: Database, inbox: Inbox, hub: Hub) -> None:
    """Add the routes about the daemon itself."""
    started = time.monotonic()

    @app.head("/health", include_in_schema=False)
    @app.get("/health")
    def health() -> HealthOut:
        """Return the daemon's version. Needs no token."""
        return HealthOut(version=__version__)

    @app.get("/status")
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
            store_failure=inbox.failure,
            notice_failures=hub.notice_failures,
            list_failure=hub.list_failure,
            listeners=hub.listeners,
        )


def add_sign_in_routes(app: FastAPI, port: Port | None) -> None:
    """Add the routes about the browsers that are signed in. They are coroutines: `Browsers` is not thread-safe."""

    @app.post("/links", responses={409: {"model": Problem}})
    async def make_link() -> LinkOut:
        """Return a link that signs one browser tab in, once. A browser's secret does not allow this."""
        if port is None:
            raise HTTPException(HTTPStatus.CONFLICT, NO_PORT)
        return LinkOut(link=port.link(), minutes=CODE_LIFETIME_MIN)

    @app.post("/sign-out")
    async def sign_out() -> SignedOut:
        """Sign all browsers out, and end their streams and their open links. A browser's secret does not allow this."""
        return SignedOut(tabs=port.browsers.sign_out() if port else 0)


def add_page_routes(app: FastAPI) -> None:
    """Add the routes of the web board's files. An upgrade replaces the files, so they are read now.

    The page has the daemon's version, see `connect` in daemon.js.
    """
    files = {path.name: path.read_bytes() for path in WEB.iterdir()}
    page = files["index.html"].replace(b"{version}", __version__.encode())

    @app.head("/", include_in_schema=False)
    @app.get("/", include_in_schema=False)
    async def get_page() -> Response:
        """Return the page."""
        return Response(page, media_type="text/html")

    @app.head("/web/{name:path}", include_in_schema=False)
    @app.get("/web/{name:path}", include_in_schema=False)
    async def get_file(name: str) -> Response:
        """Return one of the page's files."""
        if name not in files:
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such file")
        return Response(files[name], media_type=guess_type(name)[0])


# ---- errors ------------------------------------------------------------------


async def answer_refusal(_: Request, error: Any) -> JSONResponse:
    """Return the answer to a request that a route refuses. error: an HTTPException."""
    return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)


async def answer_invalid(_: Request, error: Any) -> JSONResponse:
    """Return the answer to a request with invalid fields. error: a RequestValidationError."""
    return JSONResponse({"error": "; ".join(map(describe_fault, error.errors()))}, HTTPStatus.UNPROCESSABLE_ENTITY)


async def answer_failure(_: Request, error: Exception) -> JSONResponse:
    """Return the answer to a request that failed, with one line."""
    return JSONResponse({"error": f"{type(error).__name__}: {first_line(error)}"}, HTTPStatus.INTERNAL_SERVER_ERROR)


def peer_address(request: Request) -> str | None:
    """Return the client's address, or None over the Unix socket."""
    return request.client.host if request.client else None


def describe_fault(error: Any) -> str:
    """Return one fault of an invalid request as text."""
    where = ".".join(str(part) for part in error["loc"][1:])
    return f"{where}: {error['msg']}" if where else str(error["msg"])
