"""What both boards show of a plate: its group, its place, its symbol, its words, its name, and what a filter searches.

The daemon computes this once, and the boards draw what they get. Pure: no I/O, no clock.

Text of a session is as the session wrote it. Each board removes from it what its own screen must not get.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from pydantic import BaseModel

from tailhook._core import iso_time
from tailhook.machines.plates import Status
from tailhook.plates.schemas import MAX_TIME_MS
from tailhook.plates.tables import Plate

BoardGroup = Literal["attention", "running", "rest"]
# In the boards' order.
BOARD_GROUPS: dict[BoardGroup, str] = {"attention": "Needs attention", "running": "Running", "rest": "The rest"}
MAX_RANK_NAME_CHARS = 100


class StatusDisplay(NamedTuple):
    """How a status is shown."""

    symbol: str
    words: str
    group: BoardGroup


STATUSES = {
    Status.AWAITING_INPUT: StatusDisplay("?", "awaiting input", "attention"),
    Status.AWAITING_APPROVAL: StatusDisplay("!", "awaiting approval", "attention"),
    Status.ERROR: StatusDisplay("✗", "error", "attention"),
    Status.RUNNING: StatusDisplay("●", "running", "running"),
    Status.STARTING: StatusDisplay("◌", "starting", "rest"),
    Status.IDLE: StatusDisplay("○", "idle", "rest"),
    Status.CLOSED: StatusDisplay("·", "closed", "rest"),
}


class StatusOut(BaseModel):
    """How a status is shown."""

    status: Status
    symbol: str
    words: str
    group: BoardGroup


class PlateOut(BaseModel):
    """A session.

    since: when the event happened that last changed the status, by the clock of its host. Its age counts from here.
    name: the name of the project's folder; with its parent's if another project has the same name.
    group: the group of the board that it stands in.
    rank: sort the sessions by it, as text. It is ASCII.
    symbol, status_words: how the status is shown.
    search: what a filter searches, in small letters. Every word of the filter must occur in it.
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
    name: str
    group: BoardGroup
    rank: str
    symbol: str
    status_words: str
    search: str


def describe_plate(plate: Plate, name: str) -> PlateOut:
    """Return a plate as the API shows it: without what only the daemon needs, times in ISO 8601.

    name: of its project, see `ProjectNames`.
    """
    status = Status(plate["status"])
    symbol, words, group = STATUSES[status]
    return PlateOut(
        session_id=plate["session_id"],
        project_path=plate["project_path"],
        transcript_path=plate["transcript_path"],
        git_branch=plate["git_branch"],
        status=status,
        last_event_type=plate["last_event_type"],
        last_tool=plate["last_tool"],
        todo_progress=plate["todo_progress"],
        error=plate["error"],
        run_id=plate["run_id"],
        pid=None if plate["pid_is_guess"] else plate["pid"],
        host=plate["host"],
        user=plate["user"],
        created_at=format_ms(plate["created_at"]),
        updated_at=format_ms(plate["updated_at"]),
        since=format_ms(plate["since"]),
        name=name,
        group=group,
        rank=rank_of(plate),
        symbol=symbol,
        status_words=words,
        search=search_text(plate),
    )


def describe_statuses() -> list[StatusOut]:
    """Return how each status is shown, in the order of the boards' help."""
    return [StatusOut(status=status, **display._asdict()) for status, display in STATUSES.items()]


def rank_of(plate: Plate) -> str:
    """Return the text by which the boards sort: it is ASCII, and the smallest comes first.

    First come the sessions that need attention, the one that has waited longest first. Running ones are in the order of
    their projects' names and of their creation, so that they keep their places whatever they do. Of the rest, the one
    whose status changed last comes first.
    """
    group = STATUSES[Status(plate["status"])].group
    time = {"attention": plate["since"], "running": 0, "rest": MAX_TIME_MS - plate["since"]}[group]
    name = project_folder_name(plate["project_path"])[:MAX_RANK_NAME_CHARS] if group == "running" else ""
    parts = (
        str(list(BOARD_GROUPS).index(group)),
        f"{time:016}",
        name.encode().hex(),
        f"{plate['created_at']:016}",
        plate["session_id"].encode().hex(),
    )
    return "-".join(parts)


def search_text(plate: Plate) -> str:
    """Return what a filter searches, in small letters."""
    words = STATUSES[Status(plate["status"])].words
    fields = (
        plate["project_path"],
        plate["git_branch"],
        words,
        plate["last_tool"],
        plate["host"],
        plate["user"],
        plate["session_id"],
    )
    return "\n".join(filter(None, fields)).lower()


def format_ms(at: int) -> str:
    """Return Unix milliseconds as ISO 8601 in UTC."""
    return iso_time(at / 1000, milliseconds=True)


def project_folder_name(path: str) -> str:
    """Return the last part of a project's path, or the whole path if it has none."""
    return PurePosixPath(path).name or path


class ProjectNames:
    """The names of the projects: the folder's name, with its parent's if two projects have the same folder name."""

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}  # by session
        self.sessions: dict[str, dict[str, set[str]]] = {}  # by folder name and path

    def load(self, paths: Iterable[tuple[str, str]]) -> None:
        """Note the paths of many sessions.

        paths: pairs of session id and project path.
        """
        for session_id, path in paths:
            self.put(session_id, path)

    def put(self, session_id: str, path: str) -> dict[str, str]:
        """Note the path of a session. Returns the new names of the other sessions whose names this changes."""
        if self.paths.get(session_id) == path:
            return {}
        renamed = self.remove(session_id)
        self.paths[session_id] = path
        same = self.sessions.setdefault(project_folder_name(path), {})
        was_ambiguous = len(same) > 1
        same.setdefault(path, set()).add(session_id)
        if len(same) > 1 and not was_ambiguous:
            renamed |= self.names_in(same)
        renamed.pop(session_id, None)
        return renamed

    def remove(self, session_id: str) -> dict[str, str]:
        """Forget a session. Returns the new names of the other sessions whose names this changes."""
        path = self.paths.pop(session_id, None)
        if path is None:
            return {}
        folder = project_folder_name(path)
        same = self.sessions[folder]
        was_ambiguous = len(same) > 1
        same[path].discard(session_id)
        if not same[path]:
            del same[path]
        if not same:
            del self.sessions[folder]
        return self.names_in(same) if was_ambiguous and len(same) == 1 else {}

    def names_in(self, same: dict[str, set[str]]) -> dict[str, str]:
        """Return the names of all sessions of projects with the same folder name."""
        return {session_id: self.name_of(path) for path, ids in same.items() for session_id in ids}

    def name_of(self, path: str) -> str:
        """Return the name of a project."""
        name = project_folder_name(path)
        others = [other for other in tuple(self.sessions.get(name, ())) if other != path]
        if not others:
            return name
        parent = PurePosixPath(path).parent.name
        return f"{parent}/{name}" if parent else path
