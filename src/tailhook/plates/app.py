"""The daemon's routes.

What they answer is in the OpenAPI description that they make (`/openapi.json`); every error is {"error": message}.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from sse_starlette import EventSourceResponse
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.staticfiles import StaticFiles

from tailhook import __version__
from tailhook.machines.plates import Kind, Status
from tailhook.plates.db import Database
from tailhook.plates.health import last_words
from tailhook.plates.inbox import Inbox
from tailhook.plates.report import Milliseconds, Name, Report, SessionName, Word
from tailhook.plates.tables import Plate

WEB = Path(__file__).with_name("web")
LAGS = 1000  # events, the last, whose time from the hook to here is told
BACKLOG = 1000  # changes that a slow listener may be behind; then it is told everything anew
PING = 15  # seconds between two signs of life on a stream
INTERNAL = (  # columns that only the daemon needs
    "pid_started",
    "pid_is_guess",
    "keeper",
    "event_ts",
    "event_mono",
    "transcript_size",
    "tools",
    "beneath",
    "unprompted",
    "version",
)


class Problem(BaseModel):
    """What went wrong."""

    error: str


class Done(BaseModel):
    """It was done."""

    status: str = "ok"


class Closed(Done):
    """It was done to so many plates."""

    closed: int


class Health(Done):
    """The daemon is there."""

    version: str


class PlateOut(BaseModel):
    """A session.

    since: when the event happened that last changed the status, by the clock of its host.
    """

    session_id: str
    project_path: str
    transcript_path: str | None
    git_branch: str | None
    status: Status
    last_event_type: str | None
    last_tool: str | None
    todo_progress: str | None
    error: str | None
    run_id: str | None
    pid: int | None
    host: str | None
    user: str | None
    created_at: str
    updated_at: str
    since: str


class EventOut(BaseModel):
    """An event of a session.

    agent_id: of the sub-agent that it belongs to.
    status: the session's status after it; null if the event changed nothing.
    """

    event_type: str
    tool_name: str | None
    agent_id: str | None
    tool_params: dict[str, Any] | None
    error: str | None
    ts: int
    status: Status | None


class Details(PlateOut):
    """A session, its last events, and the agent's last words."""

    events: list[EventOut] = []
    last_message: str | None = None


class Registration(BaseModel):
    """A session that the wrapper is about to start; its placeholder's name is made of the path and the run."""

    project_path: SessionName
    run_id: SessionName | None = None
    pid: Annotated[int, Field(gt=0, le=1 << 31)] | None = None
    pid_started: Milliseconds | None = None
    host: Word | None = None
    user: Word | None = None


class Ending(BaseModel):
    """A process that ended, by one of the three."""

    run_id: Name | None = None
    session_id: Name | None = None
    project_path: Name | None = None


class Figures(BaseModel):
    """How the daemon is doing.  lag_ms: from a hook's clock to the database."""

    version: str
    database: str
    uptime_seconds: float
    plates: dict[str, int]
    events: dict[str, int]
    unknown_events: int
    lag_ms: dict[str, float]
    spool_bytes: int
    spool_lost: int
    listeners: int


class Hub:
    """Tells the listeners of /stream what changed."""

    def __init__(self) -> None:
        self.queues: set[asyncio.Queue[tuple[str, Any] | None]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    def changed(self, plate: Plate) -> None:
        """A plate changed; called in any thread."""
        self.tell("plate", shown(plate))

    def removed(self, session_id: str) -> None:
        """A plate is gone; called in any thread."""
        self.tell("removed", {"session_id": session_id})

    def tell(self, name: str, fields: Any) -> None:
        """Something happened; called in any thread."""
        if self.loop and self.queues:
            self.loop.call_soon_threadsafe(self.put, (name, fields))

    def put(self, item: "tuple[str, Any] | None") -> None:
        """Queue it for every listener; one that does not keep up has to begin anew."""
        for queue in list(self.queues):
            try:
                queue.put_nowait(item)
            except asyncio.QueueFull:
                self.queues.discard(queue)

    async def listen(self, database: Database) -> AsyncIterator[dict[str, str]]:
        """All plates, then what changes; ends when the daemon does, or when the listener cannot keep up."""
        queue: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue(BACKLOG)
        self.queues.add(queue)
        try:
            everything = await asyncio.to_thread(database.all)
            yield {"event": "plates", "data": json.dumps([shown(plate) for plate in everything])}
            while queue in self.queues or not queue.empty():
                item = await queue.get()
                if item is None:
                    return
                yield {"event": item[0], "data": json.dumps(item[1])}
        finally:
            self.queues.discard(queue)


def make_app(database: Database, inbox: Inbox, hub: Hub) -> FastAPI:
    """The daemon's application."""
    problems: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 422)}
    missing: dict[int | str, dict[str, Any]] = {404: {"model": Problem}}
    app = FastAPI(title="tailhook plates", version=__version__, docs_url=None, redoc_url=None, responses=problems)
    started = time.monotonic()

    @app.exception_handler(StarletteHTTPException)
    async def refuse(_: Request, error: StarletteHTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def refuse_invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": "; ".join(map(told, error.errors()))}, HTTPStatus.UNPROCESSABLE_ENTITY)

    @app.exception_handler(Exception)
    async def fail(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": f"{type(error).__name__}: {error}"}, HTTPStatus.INTERNAL_SERVER_ERROR)

    @app.post("/events")
    def post_event(report: Report, request: Request) -> Done:
        """Keep an event; one that is known already changes nothing."""
        origin = inbox.origin(report.model_dump(), peer(request))
        database.record(report.model_copy(update=origin.fields), keeper=origin.keeper)
        return Done()

    @app.get("/plates")
    def get_plates(
        status: Annotated[Status | None, Query()] = None, project: Annotated[Word | None, Query()] = None
    ) -> list[PlateOut]:
        """All plates, the one that changed last first."""
        found = database.all(status.value if status else None, project)
        return [PlateOut.model_validate(shown(plate)) for plate in found]

    @app.post("/plates/register")
    def register(registration: Registration, request: Request) -> PlateOut:
        """A placeholder for a session that is about to start."""
        origin = inbox.origin(registration.model_dump(), peer(request))
        plate = database.register(**{**registration.model_dump(), **origin.fields, "keeper": origin.keeper})
        return PlateOut.model_validate(shown(plate))

    @app.post("/plates/stopped")
    def stopped(ending: Ending) -> Closed:
        """Close what a process that ended was showing; who names none of the three closes nothing."""
        return Closed(closed=len(database.stopped(ending.run_id, ending.session_id, ending.project_path)))

    @app.get("/plates/{session_id:path}", responses=missing)
    def get_plate(session_id: str, events: Annotated[int, Query(ge=0, le=1000)] = 0) -> Details:
        """One plate; with its last `events` events, and the agent's last words."""
        plate = database.get(session_id)
        if plate is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such plate")
        details = Details.model_validate(shown(plate))
        if events:
            details.events = [EventOut.model_validate(event) for event in database.events_of(session_id, events)]
            details.last_message = last_words(plate["transcript_path"] or "") if plate["keeper"] == inbox.id else None
        return details

    @app.delete("/plates/{session_id:path}", responses=missing)
    def delete_plate(session_id: str) -> Done:
        """Remove a plate and its events."""
        if not database.delete(session_id):
            raise HTTPException(HTTPStatus.NOT_FOUND, "no such plate")
        return Done()

    @app.get("/health")
    def health() -> Health:
        """Whether the daemon is there; needs no token."""
        return Health(version=__version__)

    @app.get("/status")
    def status() -> Figures:
        """How the daemon is doing."""
        events = database.event_counts()
        known = {kind.value for kind in Kind}
        lags = sorted(database.lags(LAGS)) or [0]
        return Figures(
            version=__version__,
            database=database.engine.dialect.name,
            uptime_seconds=time.monotonic() - started,
            plates=database.counts(),
            events=events,
            unknown_events=sum(count for kind, count in events.items() if kind not in known),
            lag_ms={"median": median(lags), "p99": lags[len(lags) * 99 // 100]},
            spool_bytes=inbox.waiting(),
            spool_lost=inbox.lost,
            listeners=len(hub.queues),
        )

    @app.get("/stream", response_class=EventSourceResponse)
    async def stream() -> EventSourceResponse:
        """Server-sent events: `plates` with all of them, then `plate` and `removed` as they change."""
        return EventSourceResponse(hub.listen(database), ping=PING)

    @app.get("/", include_in_schema=False)
    def board() -> Response:
        """The web board."""
        return Response((WEB / "index.html").read_bytes(), media_type="text/html; charset=utf-8")

    app.mount("/web", StaticFiles(directory=WEB))
    return app


def shown(plate: Plate) -> Plate:
    """Return a plate as the API shows it: times in ISO 8601, without what only the daemon needs."""
    told = {name: value for name, value in plate.items() if name not in INTERNAL}
    if plate["pid_is_guess"]:
        told["pid"] = None
    return {**told, **{name: iso_ms(plate[name]) for name in ("created_at", "updated_at", "since")}}


def iso_ms(at: int) -> str:
    """Unix milliseconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def peer(request: Request) -> str | None:
    """The address of who asks over TCP, None over the Unix socket."""
    return request.client.host if request.client else None


def told(error: Any) -> str:
    """One fault of a request, for whoever sent it."""
    where = ".".join(str(part) for part in error["loc"][1:])
    return f"{where}: {error['msg']}" if where else str(error["msg"])
